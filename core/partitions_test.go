package core_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/epk"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

// shaker changes the partitions of a container at random.
type shaker struct {
	c     *core.Container
	rnd   *rand.Rand
	most  int      // partitions
	slots bool     // slots are split and joined too
	ends  [][]byte // boundaries that it has made
}

func shake(c *core.Container, seed uint64, most int) *shaker {
	return &shaker{c: c, rnd: rand.New(rand.NewPCG(seed, 1)), most: most, slots: true}
}

// change makes one change.
func (s *shaker) change(t testing.TB) {
	t.Helper()
	parts := partitionsOf(s.c)
	i := s.rnd.IntN(len(parts))
	var err error
	switch n := s.rnd.IntN(4); {
	case n == 0 && s.slots:
		at := make([]byte, 16)
		binary.BigEndian.PutUint64(at, s.rnd.Uint64()>>2)
		if s.c.Spec().PartitionKey.Version == 1 {
			at = at[:4]
		}
		err = s.c.SplitSlot(bg, at)
		s.ends = append(s.ends, at)
	case n == 1 && len(s.ends) > 0:
		k := s.rnd.IntN(len(s.ends))
		err = s.c.JoinSlots(bg, s.ends[k]) // a bad request where a partition begins there
	case i+1 < len(parts) && (n == 2 || len(parts) >= s.most):
		err = s.c.MergePartitions(bg, parts[i].ID)
	default:
		err = s.c.SplitPartition(bg, parts[i].ID)
	}
	if err != nil && !status.Is(err, status.BadRequest) {
		t.Fatal(err)
	}
}

// partition returns the partition with an id.
func partition(t testing.TB, c *core.Container, id string) core.Partition {
	t.Helper()
	parts := partitionsOf(c)
	i := slices.IndexFunc(parts, func(p core.Partition) bool { return p.ID == id })
	if i < 0 {
		t.Fatalf("no partition %s in %v", id, parts)
	}
	return parts[i]
}

// A split replaces a partition by two with new ids, which have its ancestry. A merge replaces two by one. All items
// stay where they were found before. Shown LSNs don't fall. Everything is as before after a restart.
func TestPartitionsSplitAndMerge(t *testing.T) {
	raw := memkv.New()
	e, err := core.Open(bg, notClosed{raw}, core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := newContainer(t, e, core.ContainerSpec{})
	putMany(t, c, 100, func(i int) string { return fmt.Sprintf(`{"id":"%d","pk":"p%d"}`, i, i) })
	before, etag := partitionsOf(c)[0], c.ETag()
	steps := []struct {
		merge   bool
		id      string
		ids     []string
		parents map[string][]string
	}{
		{false, "0", []string{"1", "2"}, map[string][]string{"1": {"0"}, "2": {"0"}}},
		{false, "2", []string{"1", "3", "4"}, map[string][]string{"3": {"0", "2"}, "4": {"0", "2"}}},
		{true, "1", []string{"5", "4"}, map[string][]string{"5": {"0", "1", "2", "3"}, "4": {"0", "2"}}},
		{true, "5", []string{"6"}, map[string][]string{"6": {"0", "1", "2", "3", "4", "5"}}},
	}
	for _, s := range steps {
		was, lsn := partition(t, c, s.id), lastLSN(c)
		if s.merge {
			err = c.MergePartitions(bg, s.id)
		} else {
			err = c.SplitPartition(bg, s.id)
		}
		if err != nil {
			t.Fatal(err)
		}
		if newest := c.Newest(); newest.LSN != lastLSN(c) || !slices.Contains(s.ids, newest.ID) {
			t.Errorf("the newest partition is %+v, the last LSN is %d", newest, lastLSN(c))
		}
		var ids []string
		items, end := int64(0), ""
		for _, p := range partitionsOf(c) {
			ids, items = append(ids, p.ID), items+p.Items
			if p.Min != end {
				t.Errorf("partition %s begins at %s, the one before ends at %s", p.ID, p.Min, end)
			}
			end = p.Max
			if want, ok := s.parents[p.ID]; ok && !slices.Equal(p.Parents, want) {
				t.Errorf("the parents of %s are %v, want %v", p.ID, p.Parents, want)
			}
			if slices.Contains(p.Parents, s.id) && p.LSN < was.LSN || p.LSN > lsn {
				t.Errorf("partition %s has LSN %d, its parent had %d, the container has %d", p.ID, p.LSN, was.LSN, lsn)
			}
		}
		if !slices.Equal(ids, s.ids) || items != 100 || end != "FF" {
			t.Errorf("partitions %v with %d items up to %s, want %v", ids, items, end, s.ids)
		}
		if c.ETag() != etag {
			t.Error("the container has another etag")
		}
		if err := c.SplitPartition(bg, s.id); !status.Is(err, status.NotFound) {
			t.Errorf("partition %s was split again: %v", s.id, err)
		}
		if _, err := c.ChangeFeed(bg, s.id, feed.Start(), 1); true {
			wantCode(t, err, status.Gone, status.SubPartitionKeyRangeGone)
		}
	}
	after := partitionsOf(c)
	if after[0].Min != before.Min || after[0].Max != before.Max || len(ids(t, c, &exec.Query{})) != 100 {
		t.Errorf("%+v, want %+v", after[0], before)
	}
	if err := c.MergePartitions(bg, "6"); !status.Is(err, status.BadRequest) {
		t.Errorf("the last partition was merged: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if e, err = core.Open(bg, raw, core.Options{}); err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if c, err = e.Container("db", "c"); err != nil {
		t.Fatal(err)
	}
	if got := partitionsOf(c); fmt.Sprint(got) != fmt.Sprint(after) {
		t.Errorf("after a restart the partitions are %v, not %v", got, after)
	}
	clean(t, e)
}

// The partitions of a new container have the service's boundaries, whatever the number of their slots.
func TestPartitionBoundaries(t *testing.T) {
	for _, slots := range []int{0, 1, 7, 64} {
		e, _ := hooked(t, core.Options{MinSlots: slots, PartitionRU: 6000})
		for _, ru := range []int{0, 6000, 12000, 18000, 30000} {
			c := newContainer(t, e, core.ContainerSpec{ID: strconv.Itoa(ru), Throughput: core.Throughput{Manual: ru}})
			parts := partitionsOf(c)
			n := max(1, ru/6000)
			if len(parts) != n {
				t.Errorf("%d RU/s: %d partitions", ru, len(parts))
			}
			for i, at := range epk.Split(epk.V2, n) {
				if text := epk.BoundaryText(epk.V2, at); parts[i].Max != text || parts[i+1].Min != text {
					t.Errorf("%d RU/s, %d slots: boundary %d is %s, want %s", ru, slots, i, parts[i].Max, text)
				}
			}
		}
	}
}

// Pages of queries of all kinds, in all orders, go on while partitions split and merge between them: each row comes
// once, and in the wanted order if there is one.
func TestPagesOverPartitions(t *testing.T) {
	for name, spec := range creationSpecs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, _ := hooked(t, core.Options{MinSlots: 8})
			w := &world{c: newContainer(t, e, spec)}
			for i := range 120 {
				w.put(t, i)
			}
			s := shake(w.c, 1, 12)
			queries := creationQueries(spec)
			for n, qname := range slices.Sorted(maps.Keys(queries)) {
				x := queries[qname]
				want := w.ordered(t, exec.Creation, x.wants)
				slices.Sort(want)
				for _, shown := range []exec.Shown{exec.CreationByPartition, exec.Creation, exec.Newest,
					exec.AnyOrder} {
					q := x.q
					q.Shown, q.PlanHash = shown, uint64(n)
					got := shakenPages(t, s, q, 2+s.rnd.IntN(15))
					if shown == exec.Creation || shown == exec.Newest {
						if o := w.ordered(t, shown, x.wants); !slices.Equal(got, o) {
							t.Errorf("%s, shown %d: %v, want %v", qname, shown, got, o)
						}
					}
					if slices.Sort(got); !slices.Equal(got, want) {
						t.Errorf("%s, shown %d:\n got %v\nwant %v", qname, shown, got, want)
					}
				}
			}
			for qname, q := range orderedQueries(len(spec.PartitionKey.Paths) > 1) {
				want := ids(t, w.c, &q)
				if got := shakenPages(t, s, q, 2+s.rnd.IntN(15)); !slices.Equal(got, want) {
					t.Errorf("%s:\n got %v\nwant %v", qname, got, want)
				}
			}
			clean(t, e)
		})
	}
}

// Pages of index scans go on while slots are split and joined, with the index: the rows of what was a slot keep their
// order, and none comes twice.
func TestIndexPagesOverSlots(t *testing.T) {
	race.Alone(t)
	t.Parallel()
	onEngines(t, core.Options{MinSlots: 4}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		items := 800
		putMany(t, c, items, func(i int) string {
			return fmt.Sprintf(`{"id":"%03d","pk":"p%d","n":%d,"m":%d,"tags":[%d,%d,"t"]}`, i, i, i%40, i%16, i%40, i%7)
		})
		n, m, tags := access.NewPath("n"), access.NewPath("m"), access.NewPath("tags").Element()
		less := func(p access.Path, n int32) *access.Pred {
			return access.Range(p, &access.Bound{Value: value.Int32Of(0), Inclusive: true},
				&access.Bound{Value: value.Int32Of(n)})
		}
		s := shake(c, 5, 12)
		for name, x := range map[string]struct {
			q     exec.Query
			takes func(i int) bool
		}{
			"range": {exec.Query{Pred: less(n, 3)}, func(i int) bool { return i%40 < 3 }},
			"covered": {exec.Query{Pred: less(n, 3), Needs: []access.Path{n, access.ID}},
				func(i int) bool { return i%40 < 3 }},
			"elements": {exec.Query{Pred: access.Eq(tags, value.Int32Of(33))}, func(i int) bool { return i%40 == 33 }},
			"union": {exec.Query{Pred: access.Or(access.Eq(n, value.Int32Of(7)), access.Eq(m, value.Int32Of(3)))},
				func(i int) bool { return i%40 == 7 || i%16 == 3 }},
			"intersection": {exec.Query{Pred: access.And(less(n, 3), access.Eq(tags, value.Int32Of(2)))},
				func(i int) bool { return i%40 < 3 && (i%40 == 2 || i%7 == 2) }},
		} {
			x.q.PlanHash = uint64(len(name))
			x.q.Match = func(it *core.Item) (bool, error) { return x.takes(number(it)), nil }
			waitPlan(t, c, &x.q, func(p *access.Plan) bool { return p.Kind == access.Index })
			var want []string
			for i := range items {
				if x.takes(i) {
					want = append(want, fmt.Sprintf("%03d", i))
				}
			}
			for _, size := range []int{1, 4, 9} {
				got := shakenPages(t, s, x.q, size)
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Errorf("%s in pages of %d: %d rows, want %d\n%v\n%v", name, size, len(got), len(want), got, want)
				}
			}
		}
	})
}

// orderedQueries are queries with an order.
func orderedQueries(levels bool) map[string]exec.Query {
	out := map[string]exec.Query{
		"by number": {OrderBy: orderBy(false, "x")},
		"down":      {OrderBy: orderBy(true, "a", "x")},
		"equal":     {OrderBy: orderBy(false, "a")},
		"filtered":  {OrderBy: orderBy(false, "x"), Pred: access.Eq(access.NewPath("a"), value.Int32Of(3))},
	}
	if !levels {
		out["by keys"] = exec.Query{OrderBy: orderBy(false, "pk", "_id")}
		out["named by keys"] = exec.Query{OrderBy: orderBy(false, "pk", "_id"),
			Pred: access.Eq(access.NewPath("a"), value.Int32Of(3))}
	}
	for name, q := range out {
		q.Compare, q.PlanHash = value.CompareCosmos, uint64(len(name))
		if q.Pred != nil {
			q.Match = func(it *core.Item) (bool, error) { return value.ObjectOf(it.Doc).Get("a").Int() == 3, nil }
		}
		out[name] = q
	}
	return out
}

// shakenPages reads a query in pages, with changes of the partitions between them.
func shakenPages(t testing.TB, s *shaker, q exec.Query, size int) (got []string) {
	t.Helper()
	for pages := 0; pages < 1000; pages++ {
		var some []string
		some, q.Continuation = page(t, s.c, q, size)
		if got = append(got, some...); q.Continuation == "" {
			return got
		}
		if pages == 0 || s.rnd.IntN(4) == 0 {
			s.change(t)
		}
	}
	t.Fatal("the query does not end")
	return nil
}

// A reader of the feed goes on while partitions split and merge: from a position of the container, of a partition that
// is no more, and of a key. Each item comes once after its last write.
func TestFeedsOverPartitions(t *testing.T) {
	e, _ := hooked(t, core.Options{MinSlots: 8})
	c := newContainer(t, e, core.ContainerSpec{})
	s := shake(c, 3, 12)
	made := 0
	write := func() {
		for range 5 {
			put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p%d"}`, made, made%17))
			made++
		}
	}
	type reader struct {
		sc  feed.Scope
		pos feed.Position
		got []string
	}
	whole := &reader{pos: feed.Start()}
	key := &reader{sc: feed.Scope{PK: pk("p3")}, pos: feed.Start()}
	// as an SDK has them: one for each partition
	ranges := []*reader{{sc: feed.Scope{Range: epk.Full}, pos: feed.Start()}}
	for round := range race.Fewer(120, 30) {
		if round < 80 {
			write()
		}
		s.change(t)
		var next []*reader
		for _, r := range ranges { // a reader of a partition that is gone continues in its children
			for _, p := range partitionsOf(c) {
				both, ok := epk.Range{Min: p.Min, Max: p.Max}.Intersect(r.sc.Range)
				if ok {
					next = append(next, &reader{sc: feed.Scope{Range: both}, pos: r.pos})
				}
			}
			next[len(next)-1].got = r.got
		}
		ranges = next
		for _, r := range append([]*reader{whole, key}, ranges...) {
			page, err := c.Feed(bg, r.sc, r.pos, 4)
			if err != nil {
				t.Fatal(err)
			}
			for _, it := range page.Items {
				r.got = append(r.got, it.ID().Str())
			}
			if r.pos, err = feed.Parse(page.Next.String()); err != nil {
				t.Fatal(err)
			}
		}
	}
	var apart []string
	for _, r := range append([]*reader{whole, key}, ranges...) {
		more, _ := drainFeed(t, c, r.sc, r.pos, 10)
		r.got = append(r.got, more...)
		if r != whole && r != key {
			apart = append(apart, r.got...)
		}
	}
	of := func(takes func(i int) bool) (want []string) {
		for i := range made {
			if takes(i) {
				want = append(want, strconv.Itoa(i))
			}
		}
		slices.Sort(want)
		return want
	}
	for name, x := range map[string]struct{ got, want []string }{
		"the container": {whole.got, of(func(int) bool { return true })},
		"a key":         {key.got, of(func(i int) bool { return i%17 == 3 })},
		"partitions":    {apart, of(func(int) bool { return true })},
	} {
		if slices.Sort(x.got); !slices.Equal(x.got, x.want) {
			t.Errorf("the feed of %s has\n%v, want\n%v", name, x.got, x.want)
		}
	}
}
