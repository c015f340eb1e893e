package core_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/access"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/value"
)

// TestQueriesAgainstOracle runs random predicates, orders and page sizes over random documents and compares with a plain
// loop; with the index and without, with 1 slot and 16.
func TestQueriesAgainstOracle(t *testing.T) {
	policies := map[string]string{"all": "", "none": `{"indexingMode":"none"}`,
		"a only": `{"indexingMode":"consistent","includedPaths":[{"path":"/a/?"}],"excludedPaths":[{"path":"/*"}]}`}
	for name, policy := range policies {
		for _, slots := range []int{1, 16} {
			t.Run(fmt.Sprintf("%s/%d slots", name, slots), func(t *testing.T) {
				e, err := core.Open(bg, kv.Checked(memkv.New()), core.Options{MinSlots: slots})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				spec := core.ContainerSpec{}
				if policy != "" {
					spec.IndexingPolicy = []byte(policy)
				}
				oracle(t, e, newContainer(t, e, spec), rand.New(rand.NewPCG(1, uint64(slots))))
				if p, err := e.Check(bg); err != nil || len(p) > 0 {
					t.Errorf("check: %v %v", err, p)
				}
			})
		}
	}
}

func oracle(t *testing.T, e *core.Engine, c *core.Container, r *rand.Rand) {
	docs := map[string]doc.Doc{}
	for i := range 400 {
		id := fmt.Sprintf("i%03d", r.IntN(300))
		d := fmt.Sprintf(`{"id":%q,"pk":"p%d"`, id, len(id)%2+int(id[3])%5)
		for _, f := range []string{"a", "b"} {
			if v := randomValue(r); v != "" {
				d += fmt.Sprintf(`,%q:%s`, f, v)
			}
		}
		d += "}"
		put(t, c, core.Upsert, d)
		docs[id] = mustDoc(t, d)
		if i%7 == 3 {
			_, err := c.Write(bg, core.Write{Kind: core.Delete, PK: core.PartitionKey{doc.Get(docs[id], "pk")}, ID: value.StringOf(id)})
			if err != nil {
				t.Fatal(err)
			}
			delete(docs, id)
		}
	}
	for n := range 200 {
		pred, match := randomPred(r, 2)
		q := exec.Query{Pred: pred, PlanHash: uint64(n), Match: func(it *core.Item) (bool, error) { return match(it.Doc), nil }}
		if r.IntN(4) == 0 {
			q.PK = pk(fmt.Sprintf("p%d", r.IntN(6)))
		}
		desc := r.IntN(2) == 0
		if r.IntN(2) == 0 {
			q.Compare = value.CompareCosmos
			q.OrderBy = []exec.Order{{Path: access.NewPath("a"), Desc: desc}}
		}
		var want []string
		for id, d := range docs {
			if match(d) && (q.PK == nil || value.EqualCosmos(doc.Get(d, "pk"), q.PK[0])) {
				want = append(want, id)
			}
		}
		for _, page := range []int{1, 3, 1000} {
			if page == 1 && n%6 != 0 {
				continue
			}
			got := paged(t, c, q, page)
			if q.OrderBy != nil {
				if !sort.SliceIsSorted(got, func(i, j int) bool {
					cmp := value.CompareCosmos(doc.Get(docs[got[i]], "a"), doc.Get(docs[got[j]], "a"))
					return cmp != 0 && (cmp < 0) != desc
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
		return fmt.Sprintf("[%d,%q,%d]", r.IntN(5), string(rune('a'+r.IntN(3))), r.IntN(5))
	case 5:
		return fmt.Sprintf("%q", string(rune('a'+r.IntN(5))))
	case 6:
		return fmt.Sprintf("%d.5", r.IntN(10)-5)
	}
	return fmt.Sprint(r.IntN(10) - 5)
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
			v := doc.Get(d, name)
			for it := v.Iter(); v.Kind() == value.Array && it.Next(); {
				if f(it.Value()) {
					return true
				}
			}
			return f(v)
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
