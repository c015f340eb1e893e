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

// IdentityFromText returns the ids that a text may stand for: the string itself first, then the value whose canonical
// Extended JSON it is, when it is one.
func IdentityFromText(text string) []value.Value {
	ids := []value.Value{value.StringOf(text)}
	if len(text) > 0 && text[0] == '{' {
		if v, err := doc.ValueFromExtJSON([]byte(text)); err == nil && IdentityText(v) == text {
			ids = append(ids, v)
		}
	}
	return ids
}
