package core_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

// TestCompositePagingOverChanges takes a page from a composite index, changes the container, and continues. Rows that
// were not changed come exactly once and in order, even if the index has been removed.
func TestCompositePagingOverChanges(t *testing.T) {
	by := func(fields ...string) (out []exec.Order) {
		for _, f := range fields {
			name, desc := strings.CutPrefix(f, "-")
			out = append(out, exec.Order{Path: access.NewPath(name), Desc: desc})
		}
		return out
	}
	m1, n16 := access.Eq(access.NewPath("m"), value.Int32Of(1)),
		access.Range(access.NewPath("n"), &access.Bound{Value: value.Int32Of(16)}, nil)
	m02 := access.In(access.NewPath("m"), value.Int32Of(2), value.Int32Of(0), value.Int32Of(7))
	queries := map[string]struct {
		q    exec.Query
		kind access.Kind
	}{
		"order":            {exec.Query{OrderBy: by("m", "-n")}, access.Ordered},
		"order reversed":   {exec.Query{OrderBy: by("-m", "n")}, access.Ordered},
		"order flipped":    {exec.Query{Pred: m1, OrderBy: by("-n")}, access.Ordered},
		"order of a range": {exec.Query{Pred: access.And(m1, n16), OrderBy: by("m", "-n")}, access.Ordered},
		"merged":           {exec.Query{Pred: m02, OrderBy: by("n")}, access.Ordered},
		"merged flipped":   {exec.Query{Pred: access.And(m02, n16), OrderBy: by("-n")}, access.Ordered},
		"partition":        {exec.Query{PK: pk("p1"), OrderBy: by("-n")}, access.Ordered},
		"filter":           {exec.Query{Pred: access.And(m1, n16)}, access.Index},
		"partition filter": {
			exec.Query{
				PK: pk("p1"), Pred: access.Range(
					access.NewPath("n"), nil, &access.Bound{Value: value.Int32Of(2), Inclusive: true})}, access.Index},
	}
	for _, name := range []string{"order", "order flipped", "order of a range", "merged", "partition", "filter"} {
		// rows of the columns
		x := queries[name]
		x.q.Needs = []access.Path{access.NewPath("n"), access.ID, access.NewPath("m")}
		if x.q.PK != nil {
			x.q.Needs = []access.Path{access.NewPath("n"), access.NewPath("pk")}
		}
		queries["covered "+name] = x
	}
	x := queries["filter"]
	x.q.Pred, x.q.Needs = m1, []access.Path{access.NewPath("n"), access.NewPath("m")}
	queries["covered column"] = x
	changes := map[string]func(t *testing.T, e *core.Engine, c *core.Container, id, key string){
		"nothing": func(*testing.T, *core.Engine, *core.Container, string, string) {},
		"the last row is deleted": func(t *testing.T, _ *core.Engine, c *core.Container, id, key string) {
			del(t, c, key, id)
		},
		"the last row moves": func(t *testing.T, _ *core.Engine, c *core.Container, id, key string) {
			put(t, c, core.Replace, fmt.Sprintf(`{"id":%q,"pk":%q,"m":1,"n":6}`, id, key))
		},
		"the index goes": func(t *testing.T, e *core.Engine, c *core.Container, _, _ string) {
			setPolicy(t, e, c, noIndex)
		},
		"the composite goes": func(t *testing.T, e *core.Engine, c *core.Container, _, _ string) {
			setPolicy(t, e, c, `{"includedPaths":[{"path":"/*"}]}`)
		},
		"the composite changes": func(t *testing.T, e *core.Engine, c *core.Container, _, _ string) {
			setPolicy(t, e, c, string(compositePolicy([]string{"m", "n"}, []string{"pk", "n"})))
		},
		"arrays come": func(t *testing.T, _ *core.Engine, c *core.Container, _, _ string) {
			for i := range 20 {
				put(t, c, core.Create, fmt.Sprintf(`{"id":"x%d","pk":"p1","m":1,"n":[100,4,5,6]}`, i))
			}
		},
		"other classes come": func(t *testing.T, _ *core.Engine, c *core.Container, _, _ string) {
			for i, v := range []string{"null", "true", `"s"`, "-1"} {
				put(t, c, core.Create, fmt.Sprintf(`{"id":"x%d","pk":"p1","m":1,"n":%s}`, i, v))
			}
			put(t, c, core.Create, `{"id":"x","pk":"p1"}`)
		},
		"long values come": func(t *testing.T, _ *core.Engine, c *core.Container, _, _ string) {
			put(t, c, core.Create, fmt.Sprintf(`{"id":"x","pk":"p1","m":%q,"n":%[1]q}`, strings.Repeat("z", 2000)))
		},
		"an item that isn't indexed comes": func(t *testing.T, _ *core.Engine, c *core.Container, _, _ string) {
			if _, err := c.Write(bg, core.Write{Kind: core.Create, Doc: mustDoc(t, `{"id":"x","pk":"p1","m":1,"n":5}`),
				NoIndex: true}); err != nil {
				t.Fatal(err)
			}
		},
	}
	all := slices.Sorted(maps.Keys(changes))
	for n, qname := range slices.Sorted(maps.Keys(queries)) {
		x := queries[qname]
		for m, cname := range all {
			change := changes[cname]
			if (n+m)%race.Fewer(1, 4) != 0 {
				continue
			}
			t.Run(qname+"/"+cname, func(t *testing.T) {
				t.Parallel()
				e, _ := hooked(t, core.Options{MinSlots: 4})
				c := newContainer(t, e, core.ContainerSpec{
					IndexingPolicy: compositePolicy([]string{"m", "-n"}, []string{"pk", "n"})})
				q := x.q
				q.Compare, q.Collation = value.CompareCosmos, access.JSONOrder
				q.Match = func(it *core.Item) (bool, error) { return satisfies(q.Pred, it.Doc), nil }
				for i := range 260 {
					put(t, c, core.Create, fmt.Sprintf(`{"id":"%03d","pk":"p%d","m":%d,"n":%d}`, i, i%4, i%3, i*7%23))
				}
				plan, err := c.Explain(bg, &q)
				if err != nil || plan.Kind != x.kind || plan.Leaf == nil || plan.Leaf.Comp == nil ||
					plan.Covered != (q.Needs != nil) {
					t.Fatalf("the plan is %s (%v)", plan.Explain(), err)
				}
				changedBetweenPages(t, c, q, func(last string) {
					n, err := strconv.Atoi(last)
					if err != nil {
						t.Fatal(err)
					}
					change(t, e, c, last, fmt.Sprintf("p%d", n%4))
				})
			})
		}
	}
}

// satisfies evaluates a conjunction of equalities and ranges. If a path includes elements, one of them has to match.
func satisfies(p *access.Pred, d doc.Doc) bool {
	if p == nil {
		return true
	}
	if p.Op == access.OpOr {
		return slices.ContainsFunc(p.Kids, func(k *access.Pred) bool { return satisfies(k, d) })
	}
	for _, k := range p.Kids {
		if !satisfies(k, d) {
			return false
		}
	}
	vs := []value.Value{doc.Get(d, p.Path.Segs...)}
	if p.Path.Elements {
		vs = reach(value.ObjectOf(d), p.Path.Segs, nil)
	}
	switch p.Op {
	case access.OpIn:
		return slices.ContainsFunc(vs, func(v value.Value) bool {
			return slices.ContainsFunc(p.Vals, func(w value.Value) bool { return value.EqualCosmos(v, w) })
		})
	case access.OpRange:
		return above(vs, p.Lo, 1) && above(vs, p.Hi, -1)
	case access.OpPrefix:
		return slices.ContainsFunc(vs, func(v value.Value) bool {
			return v.Kind() == value.String && strings.HasPrefix(v.Str(), p.Str)
		})
	}
	return true
}

// above reports whether one of the values is beyond a bound: above it for sign 1, else below.
func above(vs []value.Value, b *access.Bound, sign int) bool {
	return b == nil || slices.ContainsFunc(vs, func(v value.Value) bool {
		c := value.CompareCosmos(v, b.Value) * sign
		return v.Class() == b.Value.Class() && (c > 0 || c == 0 && b.Inclusive)
	})
}

// reach appends the values that MongoDB finds at a path, including elements of arrays on the way and at the end.
func reach(v value.Value, segs []string, out []value.Value) []value.Value {
	if len(segs) == 0 {
		if v.IsDefined() {
			out = append(out, v)
		}
	} else if v.Kind() == value.Object {
		out = reach(v.Get(segs[0]), segs[1:], out)
	}
	if v.Kind() == value.Array {
		for it := v.Iter(); it.Next(); {
			out = reach(it.Value(), segs, out)
		}
	}
	return out
}
