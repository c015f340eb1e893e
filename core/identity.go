package core

import (
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
)

// IdentityText returns the text under which APIs whose ids are strings show an id: a string as it is, a MongoDB _id of
// another kind as its canonical Extended JSON.
func IdentityText(id value.Value) string {
	if id.Kind() == value.String {
		return id.Str()
	}
	return string(doc.AppendExtJSON(nil, id, false))
}

// HasOtherIdentity reports whether a text may stand for an id other than the string itself. It is cheap: texts that
// people use as ids hardly ever do.
func HasOtherIdentity(text string) bool {
	switch {
	case text == "":
		return false
	case text[0] == '{':
		return true
	}
	return text == "true" || text == "false" || text == "null"
}

// IdentityFromText returns the ids that a text may stand for: the string itself first, then the value whose canonical
// Extended JSON it is, when it is one.
func IdentityFromText(text string) []value.Value {
	ids := []value.Value{value.StringOf(text)}
	if HasOtherIdentity(text) {
		if v, err := doc.ValueFromExtJSON([]byte(text)); err == nil && IdentityText(v) == text {
			ids = append(ids, v)
		}
	}
	return ids
}
