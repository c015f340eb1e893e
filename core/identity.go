package core

import (
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
)

// IdentityText returns the text of an id for APIs whose ids are strings: a string unchanged, a MongoDB _id of another
// kind as its canonical Extended JSON.
func IdentityText(id value.Value) string {
	if id.Kind() == value.String {
		return id.Str()
	}
	return string(doc.AppendExtJSON(nil, id, false))
}

// HasOtherIdentity reports whether a text may stand for an id other than the string itself. It takes little time. Texts
// that are used as ids rarely do.
func HasOtherIdentity(text string) bool {
	switch {
	case text == "":
		return false
	case text[0] == '{':
		return true
	}
	return text == "true" || text == "false" || text == "null"
}

// IdentityFromText returns the ids that a text may stand for: first the string itself, then the value of which the text
// is the canonical Extended JSON, if there is one.
func IdentityFromText(text string) []value.Value {
	ids := []value.Value{value.StringOf(text)}
	if HasOtherIdentity(text) {
		if v, err := doc.ValueFromExtJSON([]byte(text)); err == nil && IdentityText(v) == text {
			ids = append(ids, v)
		}
	}
	return ids
}
