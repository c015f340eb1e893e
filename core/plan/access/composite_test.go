package access

import (
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/value"
)

// composite compiles one composite index of the paths; a minus marks descending ones.
func composite(t *testing.T, paths ...string) *index.Composite {
	t.Helper()
	var cols []string
	for _, p := range paths {
		name, desc := strings.CutPrefix(p, "-")
		cols = append(cols, `{"path":"/`+name+`","order":"`+map[bool]string{true: "descending"}[desc]+`"}`)
	}
	pol, err := index.Compile([]byte(`{"compositeIndexes":[[`+strings.Join(cols, ",")+`]]}`), 1)
	if err != nil {
		t.Fatal(err)
	}
	return pol.Composites()[0]
}

// For all pairs of value and bound, in both directions: a value that satisfies a condition on the second column has its
// entry in the scan's intervals, and no entry with another first value is in them.
func TestCompositeIntervalsHoldEverything(t *testing.T) {
	vs := values(t)
	at, front := NewPath("b"), value.StringOf("f\xff")
	for _, paths := range [][]string{{"a", "b", "c"}, {"-a", "-b", "c"}, {"a", "-b"}, {"b"}, {"-b", "a"}} {
		ix := composite(t, paths...)
		lead := 0
		if ix.Columns[0].Segs[0] == "a" {
			lead = 1
		}
		entry := func(first, v value.Value) (e []byte) {
			for i := range ix.Columns {
				x := value.Int32Of(7)
				switch {
				case i < lead:
					x = first
				case i == lead:
					x = v
				}
				e, _ = keys.AppendColumn(e, x, ix.Cut, ix.Columns[i].Desc)
			}
			return e
		}
		for _, v := range vs {
			mine, other := entry(front, v), entry(value.StringOf("f"), v)
			for _, b := range vs {
				c, same := value.CompareCosmos(v, b), v.Class() == b.Class()
				for _, p := range []struct {
					pred *Pred
					want bool
				}{
					{Eq(at, b), c == 0},
					{In(at, value.StringOf("other"), b), c == 0},
					{Range(at, &Bound{b, true}, nil), c >= 0 && same},
					{Range(at, &Bound{b, false}, nil), c > 0 && same},
					{Range(at, nil, &Bound{b, true}), c <= 0 && same},
					{Range(at, nil, &Bound{b, false}), c < 0 && same},
					{Range(at, &Bound{b, true}, &Bound{b, true}), c == 0},
					{Prefix(at, b.Str()), b.Kind() == value.String && v.Kind() == value.String &&
						strings.HasPrefix(v.Str(), b.Str())},
				} {
					comp := &Composite{Index: ix}
					if lead == 1 {
						comp.Front = []*Pred{Eq(NewPath("a"), front)}
					}
					if p.pred.Op == OpIn {
						comp.Front = append(comp.Front, p.pred)
					} else {
						comp.Range = p.pred
					}
					ivs, _, ok := comp.Leaf().Intervals()
					if !ok || p.want && !Within(ivs, mine) {
						t.Fatalf("%v %s misses %s: %x, %+v", paths, p.pred,
							doc.AppendExtJSON(nil, v, true), mine, ivs)
					}
					if lead == 1 && Within(ivs, other) {
						t.Fatalf("%v %s takes an entry of another first value", paths, p.pred)
					}
					lossy := v.Class() != b.Class() || v.Kind() == value.Array || v.Kind() == value.Object ||
						len(v.Bytes()) > 250 || len(b.Bytes()) > 250
					if p.pred.Op == OpIn && c != 0 && !lossy && v.Kind() != value.Decimal && Within(ivs, mine) &&
						!value.EqualCosmos(v, value.StringOf("other")) {
						t.Errorf("%v %s takes %s", paths, p.pred, doc.AppendExtJSON(nil, v, true))
					}
				}
			}
		}
	}
}
