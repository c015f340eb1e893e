package changes

import (
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/core/value"
)

func object(t *testing.T, text string) value.Value {
	t.Helper()
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(text), false, &d); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	b, err := bson.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return value.ObjectOf(b)
}

// TestDescribe runs testdata/describe: two documents, and the updateDescription of the update from one to the other.
func TestDescribe(t *testing.T) {
	datadriven.RunTest(t, "testdata/describe", func(t *testing.T, d *datadriven.TestData) string {
		lines := strings.Split(strings.TrimSpace(d.Input), "\n")
		b := Describe([]byte{0, 0, 0, 0}, object(t, lines[0]), object(t, lines[1]), d.Cmd == "paths")
		b = append(b, 0)
		b[0], b[1] = byte(len(b)), byte(len(b)>>8)
		out, err := bson.MarshalExtJSON(bson.Raw(b), false, false)
		if err != nil {
			t.Fatal(err)
		}
		return string(out) + "\n"
	})
}

// Tokens sort as what they stand for, and come back from their texts.
func TestTokens(t *testing.T) {
	in := []Token{
		HighWaterOf(6), {Time: 7, N: 0, Kind: Event}, {Time: 7, N: 0, Kind: Invalidate},
		{Time: 7, N: 1, Kind: Event, Fragment: 1},
		{Time: 7, N: 1, Kind: Event, Fragment: 2}, HighWaterOf(7), {Time: 1 << 40, Kind: Event},
	}
	var texts []string
	for _, want := range in {
		texts = append(texts, want.String())
		if got, _, ok := ParseToken(want.String()); !ok || got != want {
			t.Errorf("%+v comes back as %+v (%v)", want, got, ok)
		}
	}
	if !slices.IsSorted(texts) {
		t.Errorf("the texts are not in order: %s", strings.Join(texts, " "))
	}
}

// A text that isn't a token is refused, and an accepted one is the text of its token.
func FuzzToken(f *testing.F) {
	f.Add("")
	f.Add("82")
	f.Add("826B07277C0000003E000000001000005F868759")
	f.Add(HighWaterOf(7).String())
	f.Add(strings.ToLower(Token{Time: 1, N: 2, Kind: Invalidate}.String()))
	f.Fuzz(func(t *testing.T, s string) {
		tok, hexadecimal, ok := ParseToken(s)
		if ok && (!hexadecimal || !strings.EqualFold(tok.String(), s)) {
			t.Errorf("%q is accepted as %+v, whose text is %s", s, tok, tok)
		}
		if ok && tok.Position().Time == 0 {
			t.Errorf("%q stands for nothing", s)
		}
	})
}

// An event that is too large is divided. Its fragments have all of its fields, and each is small enough.
func TestSplit(t *testing.T) {
	e := object(t, `{"_id":1,"a":"`+strings.Repeat("a", 600)+`","b":2,"c":"`+strings.Repeat("c", 600)+`","d":4}`)
	token := func(n int) value.Value { return value.Int32Of(int32(10 + n)) }
	if out := Split(e, 2000, token); len(out) != 1 || !value.Identical(out[0], e) {
		t.Errorf("a small event becomes %d fragments", len(out))
	}
	var names []string
	out := Split(e, 1000, token)
	for i, f := range out {
		if len(f.Bytes()) > 1000 || f.Get("_id").Int() != int64(11+i) || f.Get("splitEvent").Get("of").Int() != 2 {
			t.Errorf("fragment %d has %d bytes, _id %d", i, len(f.Bytes()), f.Get("_id").Int())
		}
		for it := f.Iter(); it.Next(); {
			names = append(names, string(it.Key()))
		}
	}
	if got := strings.Join(names, " "); got != "_id splitEvent a b _id splitEvent c d" {
		t.Errorf("the fragments have %s", got)
	}
	if out := Split(e, 500, token); out != nil {
		t.Error("a field above the limit is split")
	}
}
