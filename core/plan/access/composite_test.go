package access

import (
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/value"
)

// composite compiles one composite index of the paths, descending ones with a minus.
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

// Every value that satisfies a condition on the second column has its entry in the scan's intervals, for all pairs of
// value and bound, up and down; and no entry with another value in front has.
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
					ivs, _, ok := comp.leaf().Intervals()
					if !ok || p.want && !Within(ivs, mine) {
						t.Fatalf("%v %s misses %s: %x, %+v", paths, text(p.pred),
							doc.AppendExtJSON(nil, v, true), mine, ivs)
					}
					if lead == 1 && Within(ivs, other) {
						t.Fatalf("%v %s takes an entry of another first value", paths, text(p.pred))
					}
					lossy := v.Class() != b.Class() || v.Kind() == value.Array || v.Kind() == value.Object ||
						len(v.Bytes()) > 250 || len(b.Bytes()) > 250
					if p.pred.Op == OpIn && c != 0 && !lossy && v.Kind() != value.Decimal && Within(ivs, mine) &&
						!value.EqualCosmos(v, value.StringOf("other")) {
						t.Errorf("%v %s takes %s", paths, text(p.pred), doc.AppendExtJSON(nil, v, true))
					}
				}
			}
		}
	}
}

// Which access path is chosen where composite indexes are there.
func TestChooseComposite(t *testing.T) {
	pol, err := index.Compile([]byte(`{"includedPaths":[{"path":"/*"}],"compositeIndexes":[
		[{"path":"/a"},{"path":"/b","order":"descending"}],
		[{"path":"/pk"},{"path":"/a"},{"path":"/t"}],
		[{"path":"/pk"},{"path":"/b"}],
		[{"path":"/x"},{"path":"/y"},{"path":"/z"}]]}`), 1)
	if err != nil {
		t.Fatal(err)
	}
	col := func(ix, n int) *index.Column { return &pol.Composites()[ix].Columns[n] }
	for _, x := range []struct {
		what, filter, order string
		share               map[string]float64 // "" is a composite index's
		marks               []uint64           // in the sets of paths with elements
		lossy               []uint64
		collation           Collation
		pk                  string
		hier                bool // the key has another path
		limit               int
		want                string
	}{
		{what: "the index's order", filter: "all", order: "a -b", want: "ordered index on composite /a, -/b"},
		{what: "backwards", filter: "all", order: "-a b", want: "ordered index on composite /a, -/b"},
		{what: "half backwards", filter: "all", order: "a b", want: "scan"},
		{what: "a part of the columns", filter: "all", order: "x y", want: "scan"},
		{what: "more than the columns", filter: "all", order: "a -b c", want: "scan"},
		{what: "the first fixed", filter: "(eq a 1)", order: "b", want: "ordered index on composite /a, -/b"},
		{what: "the first fixed and named", filter: "(eq a 1)", order: "b a", want: "ordered index on composite /a, -/b"},
		{what: "the first one of two", filter: "(eq a 1 2)", order: "b", want: "ordered index on composite /a, -/b"},
		{what: "the first one of two, in the order", filter: "(eq a 1 2)", order: "a -b", want: "index on /a"},
		{what: "the first one of more than are merged", filter: "(eq a 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33)", order: "b", want: "index on /a"},
		{what: "two of which one is of several", filter: "(and (eq x 1) (eq y 3 4))", order: "x z", want: "ordered index on composite /x, /y, /z"},
		{what: "the second fixed", filter: "(eq b 1)", order: "a", want: "index on /b"},
		{what: "a range behind", filter: "(and (eq x 1) (range y 5 -))", order: "y z", want: "ordered index on composite /x, /y, /z"},
		{what: "an order of one path", filter: "all", order: "a", want: "scan"},
		{what: "no word about the order", filter: "all", order: "a -b", collation: AnyOrder + 100, want: "scan"},

		{what: "cut values", filter: "all", order: "a -b", lossy: []uint64{col(0, 1).Lossy}, want: "scan"},
		{what: "cut values in front", filter: "(eq a 1)", order: "b", lossy: []uint64{col(0, 0).Lossy}, want: "ordered index on composite"},
		{what: "other kinds", filter: "all", order: "a -b", marks: []uint64{col(0, 0).Foreign}, want: "scan"},
		{what: "other kinds don't matter to BSON", filter: "all", order: "a -b", marks: []uint64{col(0, 0).Foreign}, collation: BSONOrder, want: "ordered index on composite"},
		{what: "null does", filter: "all", order: "a -b", marks: []uint64{col(0, 0).Mixed}, collation: BSONOrder, want: "scan"},
		{what: "and not to JSON", filter: "all", order: "a -b", marks: []uint64{col(0, 0).Mixed, col(0, 0).Array}, want: "ordered index on composite"},
		{what: "arrays", filter: "all", order: "a -b", marks: []uint64{col(0, 1).Array}, collation: BSONOrder, want: "scan"},
		{what: "elements where no arrays are", filter: "(eq a[] 1)", order: "b", want: "ordered index on composite"},
		{what: "elements where arrays are", filter: "(eq a[] 1)", order: "b", marks: []uint64{col(0, 0).Array}, want: "index on /a/[]"},
		{what: "texts of other kinds", filter: `(foreign (eq a "d"))`, order: "b", marks: []uint64{col(0, 0).Foreign}, want: "index on /a"},

		{what: "a much better condition", filter: "(and (eq a 1) (eq c 1))", order: "b", share: map[string]float64{"": 0.1, "c": 0.001, "a": 0.1}, want: "index on /c"},
		{what: "a better condition", filter: "(and (eq a 1) (eq c 1))", order: "b", share: map[string]float64{"": 0.1, "c": 0.05, "a": 0.1}, want: "ordered index on composite"},
		{what: "a condition, the order alone", filter: "(eq c 1)", order: "a -b", share: map[string]float64{"c": 0.1}, want: "index on /c"},
		{what: "a loose one, the order alone", filter: "(eq c 1)", order: "a -b", share: map[string]float64{"c": 0.5}, want: "ordered index on composite"},

		{what: "two equalities", filter: "(and (eq x 1) (eq y 1))", share: map[string]float64{"": 0.01, "x": 0.1, "y": 0.1}, want: "index on composite /x, /y, /z"},
		{what: "two equalities, one as good", filter: "(and (eq x 1) (eq y 1))", share: map[string]float64{"": 0.01, "x": 0.01, "y": 0.1}, want: "index on /x"},
		{what: "an equality and a range", filter: "(and (range y 1 5) (eq x 1 2 3))", share: map[string]float64{"": 0.01, "x": 0.1, "y": 0.1}, want: "index on composite /x, /y, /z"},
		{what: "not the first column", filter: "(and (eq y 1) (eq z 1))", share: map[string]float64{"": 0.01, "y": 0.1, "z": 0.1}, want: "index on /y"},

		{what: "in a partition", filter: "all", order: "-b", pk: "p", want: "ordered index on composite /pk, /b: a composite index gives the order inside one logical partition"},
		{what: "in a partition, an equality", filter: "(eq a 1)", order: "t", pk: "p", want: "ordered index on composite /pk, /a, /t"},
		{what: "in a partition, without the key", filter: "all", order: "a -b", pk: "p", want: "scan"},
		{what: "in a partition, a condition that isn't in the index", filter: "(eq c 1)", order: "b", pk: "p", want: "index on /c"},
		{what: "of which few are wanted", filter: "(eq c 1)", order: "b", pk: "p", limit: 10, want: "ordered index on composite /pk, /b"},
		{what: "in a partition, a range", filter: "(range b 1 5)", pk: "p", want: "index on composite /pk, /b"},
		{what: "of a hierarchical key the first value", filter: "all", order: "-b", pk: "p", hier: true, want: "ordered index on composite /pk, /b"},
		{what: "of a hierarchical key the first value, not in the index", filter: "all", order: "a -b", pk: "p", hier: true, want: "scan"},
		{what: "in a partition, its own key", filter: `(eq pk "p")`, pk: "p", want: "scan"},
	} {
		src := &fake{pol: pol, ready: true, share: x.share, keys: [][]string{{"pk"}}, marks: map[uint64]bool{}}
		for _, id := range append(x.marks, x.lossy...) {
			src.marks[id] = true
		}
		r := Request{Pred: parse(t, x.filter), Collation: JSONOrder, Limit: x.limit}
		if x.collation != AnyOrder {
			r.Collation = x.collation % (AnyOrder + 100)
		}
		if x.pk != "" {
			r.HasPK, r.PK = !x.hier, []value.Value{value.StringOf(x.pk)}
		}
		if x.hier {
			src.keys = append(src.keys, []string{"q"})
		}
		for _, f := range strings.Fields(x.order) {
			name, desc := strings.CutPrefix(f, "-")
			p := NewPath(name)
			p.Elements = r.Collation == BSONOrder
			r.OrderBy, r.Desc = append(r.OrderBy, p), append(r.Desc, desc)
		}
		p := Choose(src, r)
		if got := p.Explain(); !strings.HasPrefix(got, x.want) {
			t.Errorf("%s: %s\nwant %s", x.what, got, x.want)
		}
		if p.Leaf == nil || p.Leaf.Comp == nil || p.Kind != Index {
			continue
		}
		if again, ok := AgainComposite(src, &r, p.Signature()); !ok || again.Signature() != p.Signature() {
			t.Errorf("%s is not found again", x.what)
		}
		if _, ok := AgainComposite(src, &r, p.Signature()+1); ok {
			t.Errorf("%s: another continuation is taken for it", x.what)
		}
	}
}
