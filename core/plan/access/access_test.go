package access

import (
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/value"
)

// values are values of every kind, including those that are hard to encode.
func values(t *testing.T) []value.Value {
	long := strings.Repeat("x", 256)
	vs := []value.Value{value.NullValue(), value.BoolOf(false), value.BoolOf(true), value.MinKeyValue(),
		value.MaxKeyValue(),
		value.Int32Of(0), value.Int32Of(-1), value.Int32Of(5), value.Int64Of(1<<53 + 1), value.Int64Of(1<<53 + 2),
		value.DoubleOf(1 << 53),
		value.DoubleOf(0), value.DoubleOf(1.5), value.DateOf(5, 0), value.DateOf(5, 1), value.TimestampOf(7),
		value.ObjectIDOf(make([]byte, 12)), value.UUIDOf(make([]byte, 16)), value.BinaryOf(0, nil),
		value.BinaryOf(0, make([]byte, 300))}
	vs = append(vs, value.DoubleOf(-1*vs[11].Float())) // -0
	for _, s := range []string{"", "a", "a\x00", "a\x00b", "ab", "b", long, long + "a", long + "b", long[:255] + "y"} {
		vs = append(vs, value.StringOf(s))
	}
	for _, text := range []string{"9007199254740993.000000000000000001", "9007199254740993.5", "0.1", "1E-30"} {
		v, err := doc.ValueFromExtJSON([]byte(`{"$numberDecimal":"` + text + `"}`))
		if err != nil {
			t.Fatal(err)
		}
		vs = append(vs, v)
	}
	for _, text := range []string{"[]", "[1]", "[[1]]", "{}", `{"a":1}`} {
		v, err := doc.ValueFromJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		vs = append(vs, v)
	}
	return vs
}

// For all pairs of value and bound: a value that satisfies a leaf has its entry in the leaf's intervals.
func TestIntervalsHoldEverything(t *testing.T) {
	vs := values(t)
	at := NewPath("p")
	for _, v := range vs {
		e, _ := keys.AppendIndex(nil, v)
		holds := func(p *Pred) bool {
			ivs, _, ok := p.Intervals()
			if !ok {
				t.Fatalf("%s has no intervals", p)
			}
			for i := 1; i < len(ivs); i++ {
				if string(ivs[i-1].Hi) > string(ivs[i].Lo) {
					t.Fatalf("%s: intervals overlap", p)
				}
			}
			return Within(ivs, e)
		}
		if !holds(Exists(at)) {
			t.Errorf("%s doesn't exist", doc.AppendJSON(nil, v))
		}
		if !holds(&Pred{Op: opEvery, Path: at}) {
			t.Errorf("%s is not among all", doc.AppendJSON(nil, v))
		}
		for _, b := range vs {
			c, same := value.CompareCosmos(v, b), v.Class() == b.Class()
			for _, p := range []struct {
				pred *Pred
				want bool
			}{
				{Eq(at, b), c == 0},
				{In(at, value.StringOf("other"), b, b), c == 0},
				{Range(at, &Bound{b, true}, nil), c >= 0 && same},
				{Range(at, &Bound{b, false}, nil), c > 0 && same},
				{Range(at, nil, &Bound{b, true}), c <= 0 && same},
				{Range(at, nil, &Bound{b, false}), c < 0 && same},
				{&Pred{Op: OpRange, Path: at, Lo: &Bound{b, false}, Any: true}, c > 0},
				{&Pred{Op: OpRange, Path: at, Hi: &Bound{b, false}, Any: true}, c < 0},
			} {
				if p.want && !holds(p.pred) {
					t.Errorf("%s misses %s", p.pred, doc.AppendExtJSON(nil, v, true))
				}
				if p.want && !holds(WithForeign(p.pred)) {
					t.Errorf("foreign %s misses %s", p.pred, doc.AppendExtJSON(nil, v, true))
				}
			}
			if b.Kind() == value.String && v.Kind() == value.String && strings.HasPrefix(v.Str(), b.Str()) &&
				!holds(Prefix(at, b.Str())) {
				t.Errorf("prefix %.10q misses %.10q", b.Str(), v.Str())
			}
		}
		// A language that reads other kinds as strings finds them with Foreign.
		switch v.Kind() {
		case value.Date, value.UUID, value.Binary, value.ObjectID, value.Timestamp:
			for _, p := range []*Pred{Eq(at, value.StringOf("a")), Prefix(at, "a"),
				Range(at, &Bound{value.StringOf("a"), true}, nil)} {
				if !holds(WithForeign(p)) {
					t.Errorf("foreign %s misses %s", p, doc.AppendExtJSON(nil, v, true))
				}
			}
		}
	}
	if _, _, ok := Eq(at, value.Undef()).Intervals(); ok {
		t.Error("the index answers for items without the path")
	}
}
