package core

import (
	"testing"

	"github.com/orrerydb/orrery/core/value"
)

// Every identity is found by its text. A text that isn't canonical finds only the item that has it as its id.
func TestIdentityTexts(t *testing.T) {
	for _, id := range []value.Value{value.StringOf("x"), value.StringOf(""), value.StringOf("true"),
		value.BoolOf(true), value.BoolOf(false), value.NullValue(), value.Int32Of(7),
		value.Int64Of(7), value.DoubleOf(2.5), value.ObjectIDOf(make([]byte, 12)), value.DateOf(5, 0),
		value.UUIDOf(make([]byte, 16)), value.TimestampOf(5)} {
		text := IdentityText(id)
		found := false
		for _, v := range IdentityFromText(text) {
			found = found || v.Kind() == id.Kind() && value.EqualBSON(v, id)
		}
		if !found {
			t.Errorf("%s gives no %v", text, id.Kind())
		}
		if id.Kind() != value.String && !HasOtherIdentity(text) {
			t.Errorf("%s has another identity", text)
		}
	}
	for _, text := range []string{"7", "True", " true", `{"$numberInt": "7"}`, `{"$numberInt":"x"}`, "{",
		`{"$oid":"0"}`, "[1]", `"x"`} {
		if ids := IdentityFromText(text); len(ids) != 1 || ids[0].Str() != text {
			t.Errorf("%s gives %d identities", text, len(ids))
		}
	}
}
