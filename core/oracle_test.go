package core_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/epk"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

// TestQueriesAgainstOracle runs random predicates, orders and page sizes over random documents and compares the rows
// with those of a plain loop; with the index and without, with 1 slot and with 16.
func TestQueriesAgainstOracle(t *testing.T) {
	policies := map[string]string{"all": "", "none": `{"indexingMode":"none"}`,
		"a only": `{"indexingMode":"consistent","includedPaths":[{"path":"/a/?"}],"excludedPaths":[{"path":"/*"}]}`}
	for n, name := range slices.Sorted(maps.Keys(policies)) {
		policy := policies[name]
		for m, slots := range []int{1, 16} {
			kind := []string{"V2", "V1", "MultiHash"}[(n+m)%3]
			for kind, def := range map[string]core.PartitionKeyDef{kind: keyDefs[kind], "key is id": keyIsID} {
				t.Run(fmt.Sprintf("%s/%d slots/%s", name, slots, kind), func(t *testing.T) {
					t.Parallel()
					e, err := core.Open(bg, kv.Checked(memkv.New()), core.Options{MinSlots: slots})
					if err != nil {
						t.Fatal(err)
					}
					defer e.Close()
					spec := core.ContainerSpec{PartitionKey: def}
					if policy != "" {
						spec.IndexingPolicy = []byte(policy)
					}
					oracle(t, e, newContainer(t, e, spec), rand.New(rand.NewPCG(2, uint64(slots))))
					if p, err := e.Check(bg); err != nil || len(p) > 0 {
						t.Errorf("check: %v %v", err, p)
					}
				})
			}
		}
	}
}

func oracle(t *testing.T, e *core.Engine, c *core.Container, r *rand.Rand) {
	docs := map[string]doc.Doc{}
	for i := range 400 {
		id := fmt.Sprintf("i%03d", r.IntN(300))
		d := fmt.Sprintf(`{"id":%q,"pk":"p%d","t":"t%d"`, id, len(id)%2+int(id[3])%5, int(id[2])%3)
		for _, f := range []string{"a", "b"} {
			if v := randomValue(r); v != "" {
				d += fmt.Sprintf(`,%q:%s`, f, v)
			}
		}
		d += "}"
		put(t, c, core.Upsert, d)
		docs[id] = mustDoc(t, d)
		if i%7 == 3 {
			_, err := c.Write(bg, core.Write{Kind: core.Delete, PK: keyIn(c, docs[id]), ID: value.StringOf(id)})
			if err != nil {
				t.Fatal(err)
			}
			delete(docs, id)
		}
	}
	covered := 0
	for n := range race.Fewer(120, 40) {
		pred, match := randomPred(r, 2)
		q := exec.Query{Pred: pred, PlanHash: uint64(n), Match: func(it *core.Item) (bool, error) {
			return match(it.Doc), nil
		}}
		if r.IntN(4) == 0 { // sometimes only the first value of a hierarchical key
			q.PK = keyIn(c, mustDoc(t, fmt.Sprintf(`{"id":"i%03d","t":"t%d","pk":"p%d"}`, n, r.IntN(3), r.IntN(6))))
			q.PK = q.PK[:1+r.IntN(len(q.PK))]
		}
		if r.IntN(5) == 0 {
			cut := fmt.Sprintf("%02X", r.IntN(0x3F))
			q.Ranges = []epk.Range{{Min: "", Max: cut}}
			if r.IntN(2) == 0 {
				q.Ranges = []epk.Range{{Min: cut, Max: "FF"}}
			}
		}
		desc := r.IntN(2) == 0
		if r.IntN(2) == 0 {
			q.Compare = value.CompareCosmos
			q.OrderBy = orderBy(desc, "a")
			if r.IntN(3) == 0 {
				q.OrderBy = append(q.OrderBy, exec.Order{Path: access.NewPath("b"), Desc: r.IntN(2) == 0})
			}
		}
		if n%3 > 0 { // rows from index entries, if the predicate has one path
			q.Needs = pathsOf([]access.Path{access.ID}, pred)
			for _, o := range q.OrderBy {
				q.Needs = pathsOf(q.Needs, access.Exists(o.Path))
			}
			if p, err := c.Explain(bg, &q); err == nil && p.Covered {
				covered++
			}
		}
		var want []string
		for id, d := range docs {
			if match(d) && under(q.PK, keyIn(c, d)) &&
				(q.Ranges == nil || q.Ranges[0].Contains(core.EPKText(c.Spec().PartitionKey, keyIn(c, d)))) {
				want = append(want, id)
			}
		}
		if q.OrderBy != nil && n%4 == 0 { // a limit only ends the rows earlier
			top, all := q, ids(t, c, &q)
			top.Limit = 1 + r.IntN(20)
			all = all[:min(len(all), top.Limit)]
			for _, page := range []int{3, 1000} {
				got := paged(t, c, top, page)
				if got = got[:min(len(got), top.Limit)]; !slices.Equal(got, all) {
					t.Fatalf("query %d, limit %d, page %d:\n got %v\nwant %v", n, top.Limit, page, got, all)
				}
			}
		}
		for _, page := range []int{1, 3, 1000} {
			if page == 1 && n%20 != 0 {
				continue
			}
			got := paged(t, c, q, page)
			if q.OrderBy != nil {
				if !sort.SliceIsSorted(got, func(i, j int) bool {
					for _, o := range q.OrderBy {
						if c := value.CompareCosmos(doc.Get(docs[got[i]], o.Path.Segs[0]),
							doc.Get(docs[got[j]], o.Path.Segs[0])); c != 0 {
							return (c < 0) != o.Desc
						}
					}
					return false
				}) {
					t.Fatalf("query %d, page %d: not in order: %v", n, page, got)
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				p, _ := c.Explain(bg, &q)
				t.Fatalf("query %d (%s), page %d:\n got %v\nwant %v", n, p.Explain(), page, got, want)
			}
		}
	}
	if covered < race.Fewer(2, 1) { // without an index, only the queries on ids
		t.Errorf("only %d queries were covered", covered)
	}
}

// pathsOf adds the paths of a predicate to a list.
func pathsOf(list []access.Path, p *access.Pred) []access.Path {
	if p == nil {
		return list
	}
	if len(p.Path.Segs) > 0 && !slices.ContainsFunc(list, func(o access.Path) bool {
		return slices.Equal(o.Segs, p.Path.Segs)
	}) {
		list = append(list, access.NewPath(p.Path.Segs...))
	}
	for _, k := range p.Kids {
		list = pathsOf(list, k)
	}
	return list
}

// keyIn returns the partition key of a document.
func keyIn(c *core.Container, d doc.Doc) core.PartitionKey {
	k, _, _ := c.KeyOf(d)
	return k
}

// under reports whether a key begins with the values of prefix.
func under(prefix, key core.PartitionKey) bool {
	for i, v := range prefix {
		if !value.EqualCosmos(v, key[i]) {
			return false
		}
	}
	return true
}

func randomValue(r *rand.Rand) string {
	switch r.IntN(9) {
	case 0:
		return ""
	case 1:
		return "null"
	case 2:
		return "true"
	case 3:
		return fmt.Sprintf("%q", strings.Repeat("x", 255+r.IntN(4))+string(rune('a'+r.IntN(3))))
	case 4:
		if r.IntN(2) == 0 {
			return fmt.Sprintf(`[{"k":%d},%q,{"k":%d},[{"k":%d}]]`, r.IntN(5), string(rune('a'+r.IntN(3))),
				r.IntN(5), r.IntN(5))
		}
		return fmt.Sprintf("[%d,%q,%d]", r.IntN(5), string(rune('a'+r.IntN(3))), r.IntN(5))
	case 5:
		return fmt.Sprintf("%q", string(rune('a'+r.IntN(5))))
	case 6:
		return fmt.Sprintf("%d.5", r.IntN(10)-5)
	}
	return fmt.Sprint(r.IntN(10) - 5)
}

// anyElement reports whether f holds for a value or, if it is an array, for something in it.
func anyElement(v value.Value, f func(value.Value) bool) bool {
	for it := v.Iter(); v.Kind() == value.Array && it.Next(); {
		if anyElement(it.Value(), f) {
			return true
		}
	}
	return f(v)
}

// randomPred returns a predicate and its exact meaning on a document.
func randomPred(r *rand.Rand, depth int) (*access.Pred, func(doc.Doc) bool) {
	if depth > 0 && r.IntN(3) == 0 {
		p, f := randomPred(r, depth-1)
		q, g := randomPred(r, depth-1)
		if r.IntN(2) == 0 {
			return access.And(p, q), func(d doc.Doc) bool { return f(d) && g(d) }
		}
		return access.Or(p, q), func(d doc.Doc) bool { return f(d) || g(d) }
	}
	name := []string{"a", "b", "pk", "_id"}[r.IntN(4)]
	path := access.NewPath(name)
	each := func(d doc.Doc, f func(value.Value) bool) bool { return f(doc.Get(d, name)) }
	if r.IntN(3) == 0 {
		path = path.Element()
		each = func(d doc.Doc, f func(value.Value) bool) bool {
			return anyElement(doc.Get(d, name), f)
		}
	}
	random := func() value.Value {
		switch name {
		case "pk":
			return value.StringOf(fmt.Sprintf("p%d", r.IntN(6)))
		case "_id":
			return value.StringOf(fmt.Sprintf("i%03d", r.IntN(300)))
		}
		for {
			if r.IntN(12) == 0 {
				v, _ := doc.ValueFromJSON(fmt.Appendf(nil, `{"k":%d}`, r.IntN(5)))
				return v
			}
			if s := randomValue(r); s != "" && s[0] != '[' {
				v, _ := doc.ValueFromJSON([]byte(s))
				return v
			}
		}
	}
	switch r.IntN(4) {
	case 0:
		v := random()
		return access.Eq(path, v), func(d doc.Doc) bool {
			return each(d, func(x value.Value) bool { return x.IsDefined() && value.EqualCosmos(x, v) })
		}
	case 1:
		v, w := random(), random()
		return access.In(path, v, w), func(d doc.Doc) bool {
			return each(d, func(x value.Value) bool {
				return x.IsDefined() && (value.EqualCosmos(x, v) || value.EqualCosmos(x, w))
			})
		}
	case 2:
		return access.Exists(path), func(d doc.Doc) bool { return doc.Get(d, name).IsDefined() }
	}
	v, incl, up := random(), r.IntN(2) == 0, r.IntN(2) == 0
	b := &access.Bound{Value: v, Inclusive: incl}
	p := access.Range(path, b, nil)
	if up {
		p = access.Range(path, nil, b)
	}
	return p, func(d doc.Doc) bool {
		return each(d, func(x value.Value) bool {
			if x.Class() != v.Class() {
				return false
			}
			c := value.CompareCosmos(x, v)
			return c == 0 && incl || c != 0 && (c < 0) == up
		})
	}
}
