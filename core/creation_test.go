package core_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

// creationSpecs are containers with items in several slots and partitions.
var creationSpecs = map[string]core.ContainerSpec{
	"id":     {PartitionKey: core.PartitionKeyDef{Paths: []string{"/id"}}},
	"pk":     {},
	"v1":     {PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}, Kind: "Hash", Version: 1}},
	"levels": {PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk", "/a"}, Kind: "MultiHash", Version: 2}},
	"no index": {IndexingPolicy: []byte(`{"indexingMode":"consistent","includedPaths":[],` +
		`"excludedPaths":[{"path":"/*"}]}`)},
	"parts": {Throughput: core.Throughput{Manual: 30000}},
}

// creationDoc is item i, in version v.
func creationDoc(i, v int) string {
	return fmt.Sprintf(`{"id":"%d","pk":"p%d","a":%d,"x":%d,"tags":[%d,"t"],"v":%d}`, i, i%3, i%4, i, i%5, v)
}

func number(it *core.Item) int {
	n, _ := strconv.Atoi(it.ID().Str())
	return n
}

// creationQueries are queries, each with the items that it selects.
func creationQueries(spec core.ContainerSpec) map[string]struct {
	q     exec.Query
	wants func(i int) bool
} {
	type query = struct {
		q     exec.Query
		wants func(i int) bool
	}
	num := func(n int) value.Value { return value.Int32Of(int32(n)) }
	tags := access.NewPath("tags").Element()
	out := map[string]query{
		"all":      {exec.Query{}, func(int) bool { return true }},
		"equality": {exec.Query{Pred: access.Eq(access.NewPath("a"), num(2))}, func(i int) bool { return i%4 == 2 }},
		"filter":   {exec.Query{}, func(i int) bool { return i%7 == 3 }},
		"union": {
			exec.Query{
				Pred: access.Or(access.Eq(access.NewPath("a"), num(1)), access.Eq(access.NewPath("x"), num(40)))},
			func(i int) bool { return i%4 == 1 || i == 40 }},
		"range": {
			exec.Query{Pred: access.Range(access.NewPath("x"), &access.Bound{Value: num(93), Inclusive: true}, nil)},
			func(i int) bool { return i >= 93 }},
		"element": {exec.Query{Pred: access.Eq(tags, num(3))}, func(i int) bool { return i%5 == 3 }},
		"elements": {exec.Query{Pred: access.In(tags, num(3), num(1))}, func(i int) bool {
			return i%5 == 3 || i%5 == 1
		}},
		"intersect": {exec.Query{Pred: access.And(access.Eq(access.NewPath("a"), num(1)), access.Eq(tags, num(1)))},
			func(i int) bool { return i%20 == 1 }},
		"covered": {
			exec.Query{Pred: access.Eq(access.NewPath("a"), num(3)),
				Needs: []access.Path{access.NewPath("a"), access.ID, access.NewPath("x")}}, func(i int) bool {
				return i%4 == 3
			}},
		"every": {exec.Query{Needs: []access.Path{access.ID}}, func(int) bool { return true }},
		"ids": {
			exec.Query{Pred: access.In(access.ID, value.StringOf("30"), value.StringOf("9"), value.StringOf("12"),
				value.StringOf("400"))}, func(i int) bool { return i == 9 || i == 12 || i == 30 }},
		"key": {exec.Query{Pred: access.Eq(access.NewPath("pk"), value.StringOf("p1"))}, func(i int) bool {
			return i%3 == 1
		}},
		"keys": {exec.Query{Pred: access.In(access.NewPath("pk"), value.StringOf("p1"), value.StringOf("p0"))},
			func(i int) bool { return i%3 != 2 }},
	}
	if paths := spec.PartitionKey.Paths; len(paths) != 1 || paths[0] != "/id" {
		out["partition"] = query{exec.Query{PK: pk("p2")}, func(i int) bool { return i%3 == 2 }}
		out["in partition"] = query{exec.Query{PK: pk("p2"), Pred: access.Eq(access.NewPath("a"), num(2))},
			func(i int) bool { return i%3 == 2 && i%4 == 2 }}
		if len(paths) > 1 {
			out["whole key"] = query{exec.Query{PK: core.PartitionKey{value.StringOf("p2"), num(2)}}, func(i int) bool {
				return i%3 == 2 && i%4 == 2
			}}
		}
	}
	for name, q := range out {
		wants := q.wants
		q.q.Match = func(it *core.Item) (bool, error) { return wants(number(it)), nil }
		if name == "all" || name == "every" {
			q.q.Match = nil
		}
		out[name] = q
	}
	return out
}

// world is a container and its items, in the order of creation.
type world struct {
	c    *core.Container
	made []int
}

func (w *world) put(t *testing.T, i int) {
	put(t, w.c, core.Create, creationDoc(i, 0))
	w.made = append(w.made, i)
}

func (w *world) remove(t *testing.T, i int) {
	d := mustDoc(t, creationDoc(i, 0))
	key, id, err := w.c.KeyOf(d)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.c.Write(bg, core.Write{Kind: core.Delete, PK: key, ID: id}); err != nil {
		t.Fatal(err)
	}
	w.made = slices.DeleteFunc(w.made, func(n int) bool { return n == i })
}

// ordered returns the ids that a query must return, in order.
func (w *world) ordered(t *testing.T, shown exec.Shown, wants func(int) bool) (out []string) {
	is := slices.DeleteFunc(slices.Clone(w.made), func(i int) bool { return !wants(i) })
	switch shown {
	case exec.Newest:
		slices.Reverse(is)
	case exec.CreationByPartition:
		part := map[int]string{}
		for _, i := range is {
			key, _, err := w.c.KeyOf(mustDoc(t, creationDoc(i, 0)))
			if err != nil {
				t.Fatal(err)
			}
			p, err := w.c.PartitionOf(key)
			if err != nil {
				t.Fatal(err)
			}
			part[i] = p.Min
		}
		slices.SortStableFunc(is, func(a, b int) int { return cmp.Compare(part[a], part[b]) })
	}
	for _, i := range is {
		out = append(out, strconv.Itoa(i))
	}
	return out
}

var allShown = map[string]exec.Shown{"by partition": exec.CreationByPartition, "creation": exec.Creation,
	"oldest": exec.Oldest, "newest": exec.Newest}

// Without ORDER BY, rows come in creation order: by every access path, at once and in pages, after deletes, replaces,
// items that were deleted and created again, and a restart.
func TestCreationOrder(t *testing.T) {
	for name, spec := range creationSpecs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw := memkv.New()
			open := func() *core.Engine {
				e, err := core.Open(bg, kv.Checked(&unowned{raw}), core.Options{MinSlots: 4})
				if err != nil {
					t.Fatal(err)
				}
				return e
			}
			e := open()
			defer func() { e.Close() }()
			w := &world{c: newContainer(t, e, spec)}
			for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(100) {
				w.put(t, i)
			}
			w.check(t, spec, "as made")
			for i := 0; i < 100; i += 9 {
				w.remove(t, i)
			}
			for i := range 100 {
				if slices.Contains(w.made, i) && i%4 == 1 {
					put(t, w.c, core.Replace, creationDoc(i, 1))
				}
			}
			w.put(t, 27) // created again
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			e = open()
			var err error
			if w.c, err = e.Container("db", "c"); err != nil {
				t.Fatal(err)
			}
			w.put(t, 100)
			w.check(t, spec, "after changes and a new start")
		})
	}
}

func (w *world) check(t *testing.T, spec core.ContainerSpec, when string) {
	t.Helper()
	for qname, c := range creationQueries(spec) {
		for sname, shown := range allShown {
			q := c.q
			q.Shown = shown
			want := w.ordered(t, shown, c.wants)
			if got := ids(t, w.c, &q); !slices.Equal(got, want) {
				t.Errorf("%s: %s, %s:\n got %v\nwant %v", when, qname, sname, got, want)
				continue
			}
			for _, n := range []int{1, 7, 40} {
				if got := paged(t, w.c, q, n); !slices.Equal(got, want) {
					t.Errorf("%s: %s, %s, pages of %d:\n got %v\nwant %v", when, qname, sname, n, got, want)
				}
			}
			q.Limit = 5
			if got := ids(t, w.c, &q); !slices.Equal(got[:min(5, len(got))], want[:min(5, len(want))]) {
				t.Errorf("%s: %s, %s, limit 5:\n got %v\nwant %v", when, qname, sname, got, want)
			}
		}
	}
}

// Whatever changes between two pages, rows that existed all the time come exactly once and in order.
func TestCreationOrderWhileDataChanges(t *testing.T) {
	for name, spec := range creationSpecs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(3, 4))
			e, err := core.Open(bg, kv.Checked(memkv.New()), core.Options{MinSlots: 4})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			w := &world{c: newContainer(t, e, spec)}
			next := 0
			for ; next < 200; next++ {
				w.put(t, next)
			}
			for qname, c := range creationQueries(spec) {
				for sname, shown := range allShown {
					q := c.q
					q.Shown, q.Page = shown, 3
					before := w.ordered(t, shown, c.wants)
					var got []string
					for token, pages := "", 0; ; pages++ {
						q.Continuation = token
						var rows []string
						rows, token = page(t, w.c, q, 3)
						if got = append(got, rows...); token == "" || pages > 200 {
							break
						}
						w.put(t, next)
						next++
						w.remove(t, w.made[rnd.IntN(len(w.made))])
					}
					after := w.ordered(t, shown, c.wants)
					stayed := func(ids []string) []string {
						return slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
							return !slices.Contains(before, id) || !slices.Contains(after, id)
						})
					}
					if have := stayed(got); !slices.Equal(have, stayed(before)) {
						t.Errorf("%s, %s:\n got %v\nwant %v", qname, sname, have, stayed(before))
					}
				}
			}
		})
	}
}

// A query keeps the order with which it began: creation order if its range grows, storage order if it shrinks, and
// creation order if its access path is removed.
func TestCreationOrderIsKept(t *testing.T) {
	race.Alone(t)
	onEngines(t, core.Options{MinSlots: 2}, func(t *testing.T, e *core.Engine) {
		w := &world{c: newContainer(t, e, core.ContainerSpec{})}
		var ws []core.Write
		fill := func(from, to int) {
			for ws = ws[:0]; from < to; from++ {
				ws = append(ws, core.Write{
					Kind: core.Upsert, Doc: mustDoc(
						t, fmt.Sprintf(`{"id":"%d","pk":"p%d","a":%d}`, from, from%50, from%4))})
				w.made = append(w.made, from)
			}
			for _, o := range w.c.WriteMany(bg, ws, true) {
				if o.Err != nil {
					t.Fatal(o.Err)
				}
			}
		}
		fill(0, 600)
		queries := []exec.Query{
			{}, {Pred: access.Eq(access.NewPath("a"), value.Int32Of(1)), Match: func(it *core.Item) (bool, error) {
				return number(it)%4 == 1, nil
			}},
			{PK: pk("p1")}}
		wants := []func(int) bool{func(int) bool { return true }, func(i int) bool {
			return i%4 == 1
		}, func(i int) bool { return i%50 == 1 }}
		var firsts [][]string
		var tokens []string
		for i := range queries {
			queries[i].Shown, queries[i].Page = exec.Creation, 10
			rows, token := page(t, w.c, queries[i], 10)
			firsts, tokens = append(firsts, rows), append(tokens, token)
		}
		fill(600, 10_200) // more than the limit for creation order
		for i, q := range queries {
			got := append(firsts[i], rest(t, w.c, q, tokens[i], 3000)...)
			if want := w.ordered(t, exec.Creation, wants[i]); !slices.Equal(got, want) {
				t.Errorf("query %d gave %d rows of %d, or in another order", i, len(got), len(want))
			}
		}
		if got := ids(t, w.c, &exec.Query{Shown: exec.Creation}); slices.IsSortedFunc(got, func(a, b string) int {
			return cmp.Compare(len(a), len(b))
		}) {
			t.Error("10,200 items came in creation order, at a cost that nobody has asked for")
		}
		for shown, name := range map[exec.Shown]string{exec.Oldest: "oldest", exec.Newest: "newest"} {
			if got := ids(t, w.c, &exec.Query{Shown: shown}); !slices.Equal(got, w.ordered(t, shown, wants[0])) {
				t.Errorf("%s first isn't exact", name)
			}
		}
		if got, want := ids(t, w.c, &exec.Query{Shown: exec.Creation, PK: pk("p7")}),
			w.ordered(t, exec.Creation, func(i int) bool { return i%50 == 7 }); !slices.Equal(got, want) {
			t.Errorf("a logical partition gave %v, not %v", got, want)
		}
	})
}

// The memory for creation order is charged to the budget: if there is none, a sort reads its items again.
func TestCreationOrderReleasesMemory(t *testing.T) {
	e, err := core.Open(bg, memkv.New(), core.Options{MinSlots: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	w := &world{c: newContainer(t, e, creationSpecs["parts"])}
	for i := range 300 {
		w.put(t, i)
	}
	r, err := w.c.Query(bg, &exec.Query{Shown: exec.CreationByPartition})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for ; r.Next(); n++ {
		if n%50 == 0 {
			r.Spill()
		}
		if it := r.Item(); doc.Get(it.Doc, "x").Int() != int64(number(it)) {
			t.Fatalf("item %s holds %s", it.ID().Str(), json(it))
		}
	}
	r.Close()
	if n != 300 || r.Err() != nil || w.c.Budget().Used() != 0 {
		t.Errorf("%d rows, %v, %d bytes are held", n, r.Err(), w.c.Budget().Used())
	}
}

// A query continues an older version's continuation in storage order.
func TestContinuationsOfOtherOrders(t *testing.T) {
	e, err := core.Open(bg, kv.Checked(memkv.New()), core.Options{MinSlots: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	w := &world{c: newContainer(t, e, core.ContainerSpec{})}
	for i := range 100 {
		w.put(t, i)
	}
	for name, c := range creationQueries(core.ContainerSpec{}) {
		q := c.q
		want := ids(t, w.c, &q)
		q.Page = 4
		got, token := page(t, w.c, q, 4)
		q.Shown = exec.CreationByPartition
		if got = append(got, rest(t, w.c, q, token, 3)...); !slices.Equal(got, want) {
			t.Errorf("%s:\n got %v\nwant %v", name, got, want)
		}
	}
}

// If the partition key is the id, items with one value come in creation order for any number of items, and the first of
// them costs one entry of each slot.
func TestCreationOrderOfOneValue(t *testing.T) {
	race.Alone(t)
	e, err := core.Open(bg, kv.Checked(memkv.New()), core.Options{MinSlots: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	c := newContainer(t, e, core.ContainerSpec{PartitionKey: core.PartitionKeyDef{Paths: []string{"/id"}},
		IndexingPolicy: []byte(`{"includedPaths":[{"path":"/state/?"}],"excludedPaths":[{"path":"/*"}]}`)})
	const items, done = 12_000, 9 // more than creation order is limited to when items are gathered or sorted
	perm := rand.New(rand.NewPCG(5, 6)).Perm(items)
	var ws []core.Write
	var want []string
	for n, i := range perm {
		ws =
			append(
				ws,
				core.Write{Kind: core.Create,
					Doc: mustDoc(
						t, fmt.Sprintf(`{"id":"%d","state":"%s"}`, i, []string{"waiting", "done"}[min(1, n%10/done)]))})
		if n%10 < done {
			want = append(want, strconv.Itoa(i))
		}
	}
	for _, o := range c.WriteMany(bg, ws, true) {
		if o.Err != nil {
			t.Fatal(o.Err)
		}
	}
	q := exec.Query{Pred: access.Eq(access.NewPath("state"), value.StringOf("waiting")), Shown: exec.Creation}
	if got := ids(t, c, &q); !slices.Equal(got, want) {
		t.Errorf("%d rows that aren't the %d in creation order", len(got), len(want))
	}
	if got := paged(t, c, q, 1000); !slices.Equal(got, want) {
		t.Errorf("in pages %d rows that aren't the %d in creation order", len(got), len(want))
	}
	for name, x := range map[string]struct {
		shown exec.Shown
		want  string
	}{"oldest": {exec.Creation, want[0]}, "newest": {exec.Newest, want[len(want)-1]}} {
		q.Shown, q.Limit = x.shown, 1
		rows, err := c.Query(bg, &q)
		if err != nil {
			t.Fatal(err)
		}
		if !rows.Next() || rows.Item().ID().Str() != x.want {
			t.Errorf("the %s is %v, want %s", name, rows.Item().ID().Str(), x.want)
		}
		if s := rows.Stats(); s.Entries > 5 || s.Items != 1 {
			t.Errorf("the %s costs %d entries and %d items", name, s.Entries, s.Items)
		}
		rows.Close()
	}
}
