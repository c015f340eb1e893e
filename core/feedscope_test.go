package core_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/epk"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/internal/race"
)

// Few index entries, so that large feeds are written fast.
var lean = []byte(`{"includedPaths":[],"excludedPaths":[{"path":"/*"}]}`)

// A part of a container with continuous writes doesn't keep a reader from the other parts.
func TestFeedOfAHotPartStarvesNoOther(t *testing.T) {
	for name, partitions := range map[string]int{"slots of a partition": 1, "partitions": 3} {
		t.Run(name, func(t *testing.T) {
			e, _ := hooked(t, core.Options{MinSlots: 4 * partitions})
			c := newContainer(t, e, core.ContainerSpec{
				IndexingPolicy: lean, Throughput: core.Throughput{Manual: partitions * 10000}})
			keys := inSlots(t, c, len(slotMap(t, c).Slots))
			pos := feed.Start()
			for hot := range keys {
				other := (hot + 5) % len(keys)
				id := fmt.Sprintf("%d beside %d", other, hot)
				for pages := -2; ; pages++ {
					for i := range 5 {
						put(t, c, core.Upsert, fmt.Sprintf(`{"id":"hot%d","pk":"%s"}`, i, keys[hot]))
					}
					if pages == 0 { // the hot part was read first
						put(t, c, core.Create, fmt.Sprintf(`{"id":"%s","pk":"%s"}`, id, keys[other]))
					}
					page, err := c.Feed(bg, feed.Scope{}, pos, 2)
					if err != nil {
						t.Fatal(err)
					}
					pos = page.Next
					if slices.ContainsFunc(page.Items, func(it *core.Item) bool { return it.ID().Str() == id }) {
						break
					}
					if pages > partitions+3 {
						t.Fatalf("%d pages without item %s", pages, id)
					}
				}
			}
		})
	}
}

// A feed of any scope has the items that a scan finds in the scope, each once, in the order of their last writes within
// each physical partition, for any page size. That also holds if the scope's items are read instead of the feed because
// the feed has many others.
func TestFeedOfScopes(t *testing.T) {
	for name, def := range keyDefs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clk := clock.Fake(time.Unix(1_700_000_000, 0))
			e, _ := hooked(t, core.Options{Clock: clk})
			c := newContainer(t, e, core.ContainerSpec{
				PartitionKey: def, IndexingPolicy: lean, Throughput: core.Throughput{Manual: 20000}})
			r := rand.New(rand.NewPCG(1, 2))
			const items = 6000
			doc := func(i int) string { // most have one of a few keys
				key := i % 3
				if i%100 == 0 {
					key = i
				}
				return fmt.Sprintf(`{"id":"%d","t":"t%d","pk":"p%d"}`, i, key%2, key)
			}
			for i := 0; i < items; i += 1000 {
				putMany(t, c, 1000, func(k int) string { return doc(i + k) })
				clk.Advance(10 * time.Second)
			}
			for range 200 { // written again, not in the order of creation
				put(t, c, core.Upsert, doc(r.IntN(items)))
			}
			since := clk.Now().Unix() - 25
			first := partitionsOf(c)[0]
			key := func(n int) core.PartitionKey {
				if len(def.Paths) == 1 {
					return pk(fmt.Sprintf("p%d", n))
				}
				return pk(fmt.Sprintf("t%d", n%2), fmt.Sprintf("p%d", n))
			}
			one := core.EPKRange(def, key(100))
			scopes := map[string]feed.Scope{
				"all":               {},
				"partition":         {Range: epk.Range{Min: first.Min, Max: first.Max}},
				"over partitions":   {Range: epk.Range{Min: one.Min, Max: "FF"}},
				"narrow range":      {Range: epk.Range{Min: one.Min, Max: one.Max}},
				"key of few":        {PK: key(100)},
				"key of many":       {PK: key(1)},
				"key not there":     {PK: key(7)},
				"key of others":     {PK: key(1), Range: epk.Range{Min: one.Min, Max: one.Max}},
				"nothing":           {Range: epk.Range{Min: "20", Max: "20"}},
				"time":              {Since: since},
				"time of key":       {PK: key(2), Since: since},
				"time of few":       {PK: key(5900), Since: since},
				"time before all":   {Since: 1},
				"time after all":    {Since: since + 1000},
				"range below place": {Range: epk.Range{Min: "", Max: "05C1BF"}},
			}
			if len(def.Paths) > 1 {
				scopes["prefix"] = feed.Scope{PK: key(1)[:1]}
			}
			for name, sc := range scopes {
				want := scanned(t, c, sc)
				for _, most := range []int{1, 50, 100000} {
					if most == 1 && len(want) > 300 {
						continue
					}
					got, _ := drainFeed(t, c, sc, feed.Start(), most)
					if !slices.Equal(inOrder(t, c, got), want) {
						t.Errorf("%s, pages of %d: %d items, want %d", name, most, len(got), len(want))
					}
				}
			}
		})
	}
}

// scanned lists the ids of a scope's items by a scan: by partition, in the order of their last writes.
func scanned(t *testing.T, c *core.Container, sc feed.Scope) []string {
	q := exec.Query{PK: sc.PK}
	if sc.Range != (epk.Range{}) {
		q.Ranges = []epk.Range{sc.Range}
	}
	rows, err := c.Query(bg, &q)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		if rows.Item().TS() >= sc.Since {
			out = append(out, rows.Item().ID().Str())
		}
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
	return byPartition(t, c, out, true)
}

// inOrder sorts the ids of a feed by partition and keeps their order within each.
func inOrder(t *testing.T, c *core.Container, ids []string) []string {
	return byPartition(t, c, ids, false)
}

func byPartition(t *testing.T, c *core.Container, ids []string, sort bool) []string {
	t.Helper()
	type at struct {
		partition string
		lsn       int64
	}
	all := map[string]at{}
	rows, err := c.Query(bg, &exec.Query{})
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		p, err := c.PartitionOf(rows.Item().PK())
		if err != nil {
			t.Fatal(err)
		}
		all[rows.Item().ID().Str()] = at{p.ID, rows.Item().LSN}
	}
	out := slices.Clone(ids)
	slices.SortStableFunc(out, func(a, b string) int {
		x, y := all[a], all[b]
		if n := strings.Compare(x.partition, y.partition); n != 0 || !sort {
			return n
		}
		return cmp.Compare(x.lsn, y.lsn)
	})
	return out
}

// The first page of a feed of one key, of a small range or from a time has its items, however many other items come
// before them. The number of reads doesn't grow with those.
func TestFeedFindsFewAmongMany(t *testing.T) {
	race.Alone(t)
	t.Parallel()
	clk := clock.Fake(time.Unix(1_700_000_000, 0))
	e, h := hooked(t, core.Options{Clock: clk})
	c := newContainer(t, e, core.ContainerSpec{
		IndexingPolicy: lean, PartitionKey: core.PartitionKeyDef{
			Paths: []string{"/a", "/b"}, Kind: "MultiHash", Version: 2}})
	const items = 30000
	slot, _ := c.SlotOf(pk("many", "0"))
	few := "x" // in the same slot
	for s := (*core.Slot)(nil); s != slot; few += "x" {
		s, _ = c.SlotOf(pk(few+"x", "y"))
	}
	putMany(t, c, items, func(i int) string {
		if i == 2*items/3 {
			return fmt.Sprintf(`{"id":"few","a":"%s","b":"y"}`, few)
		}
		return fmt.Sprintf(`{"id":"%d","a":"many","b":"%d"}`, i, i%2)
	})
	clk.Advance(time.Hour)
	put(t, c, core.Create, `{"id":"late","a":"many","b":"0"}`)
	one := core.EPKRange(c.Spec().PartitionKey, pk(few, "y"))
	for name, tt := range map[string]struct {
		sc   feed.Scope
		want string
	}{
		"key":    {feed.Scope{PK: pk(few, "y")}, "[few]"},
		"prefix": {feed.Scope{PK: pk(few)}, "[few]"},
		"range":  {feed.Scope{Range: one}, "[few]"},
		"time":   {feed.Scope{Since: clk.Now().Unix()}, "[late]"},
		"both":   {feed.Scope{PK: pk("many", "0"), Since: clk.Now().Unix()}, "[late]"},
	} {
		var gets, steps atomic.Int64
		h.set(func(s *hookSet) {
			s.snapshot = func(take func() kv.Snapshot) kv.Snapshot { return counting{take(), &gets, &steps} }
		})
		page, err := c.Feed(bg, tt.sc, feed.Start(), 10)
		h.set(func(s *hookSet) { s.snapshot = nil })
		var ids []string
		for _, it := range page.Items {
			ids = append(ids, it.ID().Str())
		}
		if err != nil || fmt.Sprint(ids) != tt.want || page.More {
			t.Errorf("%s: %v, more %v (%v)", name, ids, page.More, err)
		}
		if gets.Load() > 100 || steps.Load() > 1200 {
			t.Errorf("%s: %d gets and %d steps", name, gets.Load(), steps.Load())
		}
	}
}

// counting counts the reads of a snapshot.
type counting struct {
	kv.Snapshot
	gets, steps *atomic.Int64
}

func (s counting) Get(dst, key []byte) ([]byte, error) {
	s.gets.Add(1)
	return s.Snapshot.Get(dst, key)
}

func (s counting) GetMany(v *kv.Values, keys [][]byte) error {
	err := s.Snapshot.GetMany(v, keys)
	s.gets.Add(int64(v.Len()))
	return err
}

func (s counting) Iter(lo, hi []byte) (kv.Iterator, error) {
	it, err := s.Snapshot.Iter(lo, hi)
	return countingIter{it, s.steps}, err
}

type countingIter struct {
	kv.Iterator
	steps *atomic.Int64
}

func (it countingIter) Next() bool {
	it.steps.Add(1)
	return it.Iterator.Next()
}

// A page that has skipped too many items outside of its scope ends without items, at a later position, and says that
// there may be more.
func TestFeedPageIsBoundedInWork(t *testing.T) {
	race.Alone(t)
	t.Parallel()
	clk := clock.Fake(time.Unix(1_700_000_000, 0))
	e, _ := hooked(t, core.Options{Clock: clk})
	ttl := int32(60)
	c := newContainer(t, e, core.ContainerSpec{IndexingPolicy: lean, DefaultTTL: &ttl})
	putMany(t, c, 25000, func(i int) string { return fmt.Sprintf(`{"id":"%d","pk":"%d"}`, i, i%10) })
	clk.Advance(time.Hour) // all of them expire, and none is removed yet
	put(t, c, core.Create, `{"id":"alive","pk":"a"}`)
	pos, empty := feed.Start(), 0
	for {
		page, err := c.Feed(bg, feed.Scope{}, pos, 10)
		if err != nil {
			t.Fatal(err)
		}
		if !page.More {
			if len(page.Items) != 1 || page.Items[0].ID().Str() != "alive" {
				t.Errorf("the last page has %d items", len(page.Items))
			}
			break
		}
		if empty++; len(page.Items) != 0 || page.Next.String() == pos.String() || empty > 10 {
			t.Fatalf("page %d has %d items, ends at %s", empty, len(page.Items), page.Next)
		}
		pos = page.Next
	}
	if empty != 2 {
		t.Errorf("%d empty pages", empty)
	}
}
