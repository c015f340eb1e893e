package core_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

// crossDoc has fields of which each value is rare, and two values together are rarer. Some values are in arrays, some
// are missing, and some are too long for the index.
func crossDoc(r *rand.Rand, id string) string {
	d := fmt.Sprintf(`{"id":%q,"pk":"p%d","a":%d,"n":%d`, id, id[len(id)-1]%8, r.IntN(25), r.IntN(200))
	switch r.IntN(4) {
	case 0:
	case 1:
		d += fmt.Sprintf(`,"s":%q`, strings.Repeat("y", 300)+fmt.Sprint(r.IntN(9)))
	default:
		d += fmt.Sprintf(`,"s":"s%d"`, r.IntN(20))
	}
	return d + fmt.Sprintf(`,"tags":[%d,%d,"t%d"]}`, r.IntN(30), r.IntN(30), r.IntN(20))
}

// crossPred returns a condition on fields of crossDoc.
func crossPred(r *rand.Rand) (*access.Pred, func(doc.Doc) bool) {
	num := func(n int) value.Value { return value.Int32Of(int32(n)) }
	switch r.IntN(5) {
	case 0:
		n := r.IntN(25)
		return access.Eq(access.NewPath("a"), num(n)), func(d doc.Doc) bool { return doc.Get(d, "a").Int() == int64(n) }
	case 1:
		lo := r.IntN(190)
		return access.Range(access.NewPath("n"), &access.Bound{Value: num(lo), Inclusive: true},
				&access.Bound{Value: num(lo + 8)}), func(d doc.Doc) bool {
				n := doc.Get(d, "n").Int()
				return n >= int64(lo) && n < int64(lo+8)
			}
	case 2:
		s := fmt.Sprintf("s%d", r.IntN(20))
		if r.IntN(3) == 0 {
			s = strings.Repeat("y", 300) + fmt.Sprint(r.IntN(9))
		}
		return access.Eq(access.NewPath("s"), value.StringOf(s)), func(d doc.Doc) bool {
			return doc.Get(d, "s").IsDefined() && doc.Get(d, "s").Str() == s
		}
	case 3:
		s := fmt.Sprintf("s%d", 1+r.IntN(9))
		return access.Prefix(access.NewPath("s"), s), func(d doc.Doc) bool {
			return doc.Get(d, "s").IsDefined() && strings.HasPrefix(doc.Get(d, "s").Str(), s)
		}
	}
	n := r.IntN(30)
	return access.Eq(access.NewPath("tags").Element(), num(n)), func(d doc.Doc) bool {
		for it := doc.Get(d, "tags").Iter(); it.Next(); {
			if it.Value().IsNumber() && it.Value().Int() == int64(n) {
				return true
			}
		}
		return false
	}
}

// TestIntersectionsAgainstOracle runs conjunctions, in pages and in order, and compares the rows with those of a plain
// loop.
func TestIntersectionsAgainstOracle(t *testing.T) {
	race.Alone(t)
	t.Parallel()
	for n, slots := range []int{1, 4, 4} {
		e, _ := hooked(t, core.Options{MinSlots: slots})
		c := newContainer(t, e, core.ContainerSpec{
			PartitionKey: []core.PartitionKeyDef{keyDefs["V2"], keyDefs["V2"], keyIsID}[n]})
		r := rand.New(rand.NewPCG(uint64(slots), 1))
		docs := map[string]doc.Doc{}
		for i := range 2500 {
			id := fmt.Sprintf("i%04d", i)
			d := crossDoc(r, id)
			put(t, c, core.Create, d)
			docs[id] = mustDoc(t, d)
		}
		taken := map[int]int{}
		for n := range 300 {
			var preds []*access.Pred
			var fs []func(doc.Doc) bool
			for range 2 + r.IntN(3) {
				p, f := crossPred(r)
				preds, fs = append(preds, p), append(fs, f)
			}
			match := func(d doc.Doc) bool {
				return !slices.ContainsFunc(fs, func(f func(doc.Doc) bool) bool { return !f(d) })
			}
			q := exec.Query{Pred: access.And(preds...), PlanHash: uint64(n), Match: func(it *core.Item) (bool, error) {
				return match(it.Doc), nil
			}}
			if n%4 == 3 {
				q.OrderBy, q.Compare = orderBy(n%8 == 3, "tags", "n"), value.CompareCosmos
			}
			var want []string
			for id, d := range docs {
				if match(d) {
					want = append(want, id)
				}
			}
			plan, err := c.Explain(bg, &q)
			if err != nil {
				t.Fatal(err)
			}
			taken[len(plan.Both)]++
			whole := ids(t, c, &q)
			for _, size := range []int{1, 2, 1000} {
				if got := paged(t, c, q, size); !slices.Equal(got, whole) {
					t.Fatalf("query %d (%s), pages of %d: %v, want %v", n, plan.Explain(), size, got, whole)
				}
			}
			slices.Sort(want)
			slices.Sort(whole)
			if !slices.Equal(whole, want) {
				t.Fatalf("query %d (%s): %v, want %v", n, plan.Explain(), whole, want)
			}
		}
		if taken[2] < 100 {
			t.Errorf("%d slots: intersections by their leaves: %v", slots, taken)
		}
	}
}

// A continuation of an intersection stays valid after any change of the index and the items.
func TestIntersectionOverChanges(t *testing.T) {
	changes := map[string]func(t *testing.T, e *core.Engine, c *core.Container, r *rand.Rand, last string){
		"nothing": func(*testing.T, *core.Engine, *core.Container, *rand.Rand, string) {},
		"no index": func(t *testing.T, e *core.Engine, c *core.Container, _ *rand.Rand, _ string) {
			setPolicy(t, e, c, noIndex)
		},
		"one path": func(t *testing.T, e *core.Engine, c *core.Container, _ *rand.Rand, _ string) {
			setPolicy(t, e, c, onlyA)
		},
		"last deleted": func(t *testing.T, _ *core.Engine, c *core.Container, _ *rand.Rand, last string) {
			del(t, c, fmt.Sprintf("p%d", last[len(last)-1]%8), last)
		},
		"many more": func(t *testing.T, _ *core.Engine, c *core.Container, r *rand.Rand, _ string) {
			for i := range race.Fewer(3000, 600) { // the conditions become unselective
				put(t, c, core.Create, fmt.Sprintf(`{"id":"x%d","pk":"p%d","a":3,"tags":[7]}`, i, i%8))
			}
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, _ := hooked(t, core.Options{MinSlots: 2})
			c := newContainer(t, e, core.ContainerSpec{})
			r := rand.New(rand.NewPCG(1, 1))
			for i := range 1500 {
				a := r.IntN(12)
				put(t, c, core.Create, fmt.Sprintf(`{"id":"i%04d","pk":"p%d","a":%d,"tags":[%d,%d]}`, i,
					fmt.Sprint(i)[len(fmt.Sprint(i))-1]%8, a, r.IntN(12), a+4))
			}
			q := exec.Query{
				Pred: access.And(access.Eq(access.NewPath("a"), value.Int32Of(3)),
					access.Eq(access.NewPath("tags").Element(), value.Int32Of(7))),
				Match: func(it *core.Item) (bool, error) {
					d := json(it)
					return strings.Contains(d, `"a":3,`) &&
						(strings.Contains(d, "[7") || strings.Contains(d, ",7]")), nil
				}}
			plan, err := c.Explain(bg, &q)
			if err != nil || len(plan.Both) != 2 || !strings.Contains(plan.Explain(), "intersection of 2") {
				t.Fatalf("the plan is %s (%v)", plan.Explain(), err)
			}
			want := ids(t, c, &q)
			k := len(want) / 3
			got, token := page(t, c, q, k)
			if !slices.Equal(got, want[:k]) || k < 5 {
				t.Fatalf("the first page is %v, want %v", got, want[:k])
			}
			change(t, e, c, r, got[k-1])
			for _, n := range []int{race.Fewer(1, 5), 7, 1000} {
				more := slices.DeleteFunc(rest(t, c, q, token, n), func(id string) bool { return id[0] == 'x' })
				slices.Sort(more)
				left := slices.Sorted(slices.Values(want[k:]))
				if !slices.Equal(more, left) {
					t.Fatalf("pages of %d: %v, want %v", n, more, left)
				}
			}
		})
	}
}

// BenchmarkIntersection finds the one of 10,000 items that satisfies two conditions of 1 % each. "x-single" is the
// ratio to the same query if the index has only one of the paths.
func BenchmarkIntersection(b *testing.B) {
	e, _ := benchEngine(b, true)
	c := newContainer(b, e, core.ContainerSpec{PartitionKey: core.PartitionKeyDef{Paths: []string{"/tenant"}}})
	for i := range 10000 {
		s := order(i)
		put(b, c, core.Create, fmt.Sprintf(`{"x":%d,"y":%d,%s`, i%100, (7*i+i/100)%100, s[1:]))
	}
	both := access.And(access.Eq(access.NewPath("x"), value.Int32Of(17)),
		access.Eq(access.NewPath("y"), value.Int32Of(42)))
	run := func(p *access.Pred, want int) {
		q := &exec.Query{Pred: p, Match: func(it *core.Item) (bool, error) {
			return doc.Get(it.Doc, "x").Int() == 17 && doc.Get(it.Doc, "y").Int() == 42, nil
		}}
		r, err := c.Query(bg, q)
		if err != nil {
			b.Fatal(err)
		}
		defer r.Close()
		n := 0
		for r.Next() {
			n++
		}
		if n != 1 || len(r.Stats().Plan.Both) != want {
			b.Fatalf("%d rows by %s (%v)", n, r.Stats().Plan.Explain(), r.Err())
		}
	}
	var two, one float64
	b.ResetTimer()
	for range b.N {
		before := b.Elapsed()
		run(both, 2)
		middle := b.Elapsed()
		run(both.Kids[0], 0)
		two, one = two+float64(middle-before), one+float64(b.Elapsed()-middle)
	}
	b.ReportMetric(two/float64(b.N)/1e3, "µs-both")
	b.ReportMetric(two/one, "x-single")
}
