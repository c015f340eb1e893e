package move_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
)

// clients are what the clients of a store hold: what they were told of items, and their positions. They use the store
// at one place after the other.
type clients struct {
	t       *testing.T
	stage   int
	items   map[string]known // of container "c", by id
	session map[int]int64    // LSNs of session tokens of "c", by partition
	numbers map[uint64]bool  // all item numbers of "c" that were ever given out
	changes map[string]int   // how often each item of "log" was changed

	eager  map[string]string // what a reader of the feed has seen last of each item of "c"; it reads to the end
	at     string            // its position
	slow   map[string]string // the same of a reader that takes a few pages at each place
	slowAt string
	byPart map[string]string // what a reader of single partitions has seen
	partAt map[string]string // its positions, by the partition's id
	logged map[string]int    // what a reader of the log has seen
	logAt  string

	pages map[string]*pages // queries that are under way, by name
	rids  map[string][8]byte
}

// known is what a client was told of an item.
type known struct {
	json, etag string
	number     uint64
	lsn        int64
}

// pages is a query of which a client reads one page at each place.
type pages struct {
	query exec.Query
	ids   []string
	over  bool
}

func newClients(t *testing.T) *clients {
	return &clients{t: t, items: map[string]known{}, session: map[int]int64{}, numbers: map[uint64]bool{},
		changes: map[string]int{}, eager: map[string]string{}, slow: map[string]string{}, byPart: map[string]string{},
		partAt: map[string]string{}, logged: map[string]int{}, rids: map[string][8]byte{},
		pages: map[string]*pages{
			"scan": {query: exec.Query{}},
			"index": {query: exec.Query{Pred: access.Eq(access.NewPath("k"), value.Int32Of(1)), PlanHash: 1,
				Match: func(it *core.Item) (bool, error) {
					return value.EqualCosmos(doc.Get(it.Doc, "k"), value.Int32Of(1)), nil
				}}},
			"order": {query: exec.Query{OrderBy: []exec.Order{{Path: access.NewPath("n")}}, PlanHash: 2,
				Compare: value.CompareCosmos}},
		}}
}

const (
	still    = 60 // items of container "still", which nobody changes
	pageSize = 7
)

// prepare makes the containers and resources.
func (c *clients) prepare(e *core.Engine) {
	if _, err := e.EnsureDatabase(bg, "db"); err != nil {
		c.t.Fatal(err)
	}
	ttl := int32(-1)
	for _, s := range []core.ContainerSpec{
		{ID: "c", PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}, DefaultTTL: &ttl,
			UniqueKeys: [][]string{{"/u"}}, Throughput: core.Throughput{Manual: 20000}},
		{ID: "log", PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}, LogMinutes: 60},
		{ID: "still", PartitionKey: core.PartitionKeyDef{Paths: []string{"/id"}}},
	} {
		k, err := e.CreateContainer(bg, "db", s)
		if err != nil {
			c.t.Fatal(err)
		}
		c.rids[s.ID] = k.RID()
	}
	for i := range still {
		write(c.t, container(c.t, e, "still"), core.Create,
			fmt.Sprintf(`{"id":"s%d","k":%d,"n":%d}`, i, i%2, i*7%still))
	}
	for _, r := range []core.Resource{{Kind: core.User, ID: "ann", Body: []byte(`{"a":1}`)},
		{Kind: core.Procedure, Parent: container(c.t, e, "c").Num(), ID: "twice", Body: []byte("function(){}")}} {
		if _, err := e.CreateResource(bg, "db", r); err != nil {
			c.t.Fatal(err)
		}
	}
}

// recall checks that everything that clients were told before is still so.
func (c *clients) recall(e *core.Engine) {
	k := container(c.t, e, "c")
	for id, want := range c.items {
		it, err := k.Read(bg, core.PartitionKey{text(partOf(id))}, text(id))
		if err != nil {
			c.t.Fatalf("item %s: %v", id, err)
		}
		if got := toldOf(it); got != want {
			c.t.Errorf("item %s is %+v, was %+v", id, got, want)
		}
	}
	if n, err := k.Count(bg); err != nil || n != int64(len(c.items)) {
		c.t.Errorf("%d items, want %d, %v", n, len(c.items), err)
	}
	given, err := k.GivenLSN(bg)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, p := range partitions(c.t, k) {
		id, _ := strconv.Atoi(p.ID)
		if was := c.session[id]; p.LSN < was || given < was {
			c.t.Errorf("partition %d has LSN %d, the container %d, and a session token has %d", id, p.LSN, given, was)
		}
	}
	for id, rid := range c.rids {
		if got := container(c.t, e, id).RID(); got != rid {
			c.t.Errorf("container %s has _rid %x, had %x", id, got, rid)
		}
	}
	for kind, name := range map[core.ResourceKind]string{core.User: "ann", core.Procedure: "twice"} {
		parent := uint32(0)
		if kind == core.Procedure {
			parent = k.Num()
		}
		if r, err := e.Resource("db", kind, parent, name); err != nil || len(r.Body) == 0 {
			c.t.Error(name, r, err)
		}
	}
}

func partOf(id string) string { return "p" + id[len(id)-1:] }

func toldOf(it *core.Item) known {
	return known{string(doc.AppendJSON(nil, value.ObjectOf(it.Doc))), it.ETag(), it.Number, it.LSN}
}

// change creates, replaces and deletes items.
func (c *clients) change(e *core.Engine) {
	k, log := container(c.t, e, "c"), container(c.t, e, "log")
	c.stage++
	for i := range 30 {
		id, kind := fmt.Sprint("i", c.stage, "-", i), core.Create
		if olds := slices.Sorted(maps.Keys(c.items)); i%3 == 1 && len(olds) > 0 {
			id, kind = olds[i*7%len(olds)], core.Replace
		}
		r := write(c.t, k, kind, fmt.Sprintf(`{"id":%q,"pk":%q,"u":%q,"v":"%d.%d"}`, id, partOf(id), id, c.stage, i))
		if kind == core.Create && c.numbers[r.Item.Number] {
			c.t.Errorf("number %d is given out again", r.Item.Number)
		}
		c.numbers[r.Item.Number] = true
		c.items[id] = toldOf(r.Item)
		part, lsn := k.SessionOf(r.Slot)
		c.session[part] = max(c.session[part], lsn)
		lid := fmt.Sprint("l", i%5)
		write(c.t, log, core.Upsert, fmt.Sprintf(`{"id":%q,"pk":%q,"v":%d}`, lid, partOf(lid), i))
		c.changes[lid]++
	}
	for _, id := range slices.Sorted(maps.Keys(c.items))[:3] {
		if _, err := k.Write(bg, core.Write{Kind: core.Delete, PK: core.PartitionKey{text(partOf(id))},
			ID: text(id)}); err != nil {
			c.t.Fatal(err)
		}
		delete(c.items, id)
	}
}

// read has all readers go on: the eager ones to the end, the others by a page or two.
func (c *clients) read(e *core.Engine, last bool) {
	k := container(c.t, e, "c")
	all := func(p feed.Position) (feed.Page, error) { return k.Feed(bg, feed.Scope{}, p, pageSize) }
	c.at = c.drain(c.at, 1000, all, c.eager)
	c.same("an eager reader", c.eager)
	n := 2
	if last {
		n = 1000
	}
	if c.slowAt = c.drain(c.slowAt, n, all, c.slow); last {
		c.same("a slow reader", c.slow)
	}
	for _, p := range partitions(c.t, k) {
		c.partAt[p.ID] = c.drain(c.partAt[p.ID], 1000, func(at feed.Position) (feed.Page, error) {
			return k.ChangeFeed(bg, p.ID, at, pageSize)
		}, c.byPart)
	}
	c.same("a reader of partitions", c.byPart)
	c.readLog(e)
	for name, p := range c.pages {
		for !p.over {
			c.page(container(c.t, e, "still"), p)
			if !last {
				break
			}
		}
		want := still
		if name == "index" {
			want = still / 2
		}
		if last && len(p.ids) != want || len(slices.Compact(slices.Sorted(slices.Values(p.ids)))) != len(p.ids) {
			c.t.Errorf("the pages of %s have %d items: %v", name, len(p.ids), p.ids)
		}
	}
}

// drain reads up to n pages of a feed from a position, and returns the next one.
func (c *clients) drain(at string, n int, read func(feed.Position) (feed.Page, error), into map[string]string) string {
	pos, err := feed.Start(), error(nil)
	if at != "" {
		pos, err = feed.Parse(at)
	}
	for ; n > 0 && err == nil; n-- {
		var page feed.Page
		if page, err = read(pos); err != nil {
			break
		}
		for _, it := range page.Items {
			into[it.ID().Str()] = it.ETag()
		}
		pos = page.Next
		if !page.More && len(page.Items) == 0 {
			break
		}
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return pos.String()
}

// same checks that a reader has seen the newest version of each item.
func (c *clients) same(who string, seen map[string]string) {
	for id, want := range c.items {
		if seen[id] != want.etag {
			c.t.Errorf("place %d: %s has seen version %q of item %s, which is %q", c.stage, who, seen[id], id,
				want.etag)
		}
	}
}

// readLog reads the log to its end. It must have each change once.
func (c *clients) readLog(e *core.Engine) {
	k := container(c.t, e, "log")
	pos, err := feed.Start(), error(nil)
	if c.logAt != "" {
		pos, err = feed.Parse(c.logAt)
	}
	for err == nil {
		var page feed.Page
		if page, err = k.FeedVersions(bg, feed.Scope{}, pos, pageSize); err != nil {
			break
		}
		for _, ch := range page.Changes {
			c.logged[ch.Item().ID().Str()]++
		}
		if pos = page.Next; !page.More && len(page.Changes) == 0 {
			break
		}
	}
	if err != nil {
		c.t.Fatal(err)
	}
	if c.logAt = pos.String(); !maps.Equal(c.logged, c.changes) {
		c.t.Errorf("the log has %v, want %v", c.logged, c.changes)
	}
}

// page reads the next page of a query.
func (c *clients) page(k *core.Container, p *pages) {
	p.query.Page = pageSize
	r, err := k.Query(bg, &p.query)
	if err != nil {
		c.t.Fatal(err)
	}
	defer r.Close()
	for range pageSize {
		if !r.Next() {
			break
		}
		p.ids = append(p.ids, r.Item().ID().Str())
	}
	if r.Err() != nil {
		c.t.Fatal(r.Err())
	}
	p.query.Continuation = r.Continuation()
	p.over = r.Exhausted() || p.query.Continuation == ""
}

// What clients were told and hold at one place is good at the next one: items with etags, numbers and LSNs, _rids,
// session tokens, positions in feeds and logs, continuations, users and procedures. It may be moved there and back any
// number of times.
func TestClientsGoOn(t *testing.T) {
	for _, way := range [][]string{
		{"directory", "cluster", "directory", "cluster"},
		{"cluster", "memory", "cluster", "cluster"},
		{"directory", "directory"},
	} {
		t.Run(fmt.Sprint(way), func(t *testing.T) {
			c := newClients(t)
			var here place
			for i, kind := range way {
				next := places[kind](t)
				if i > 0 {
					if r := moved(t, here, next); r.Items < int64(len(c.items)) {
						t.Errorf("%d items were moved, want %d", r.Items, len(c.items))
					}
					here.refuses(t)
				}
				here = next
				e := here.serve(t, 4)
				if i == 0 {
					c.prepare(e)
				}
				c.recall(e)
				c.read(e, false)
				c.change(e)
				c.read(e, i == len(way)-1)
				clean(t, e)
			}
		})
	}
}

// A reader that has read everything in a directory, where all slots count on one scale, misses nothing that slots of a
// cluster write later, even if a slot had an unused block of LSNs from an earlier time in a cluster.
func TestPositionsThereAndBack(t *testing.T) {
	here, keysOf := places["cluster"](t), map[string]string{}
	e := here.serve(t, 0)
	newClients(t).prepare(e)
	c := container(t, e, "c")
	parts := partitions(t, c)
	for i := 0; len(keysOf) < len(parts); i++ {
		key := fmt.Sprint("p", i)
		p, err := c.PartitionOf(core.PartitionKey{text(key)})
		if err != nil {
			t.Fatal(err)
		}
		keysOf[p.ID] = key
	}
	first, second := keysOf[parts[0].ID], keysOf[parts[1].ID]
	n, at := 0, ""
	put := func(c *core.Container, pk string) {
		n++
		write(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":%q,"u":%d}`, n, pk, n))
	}
	drain := func(c *core.Container) (seen int) {
		got := map[string]string{}
		at = newClients(t).drain(at, 100, func(p feed.Position) (feed.Page, error) {
			return c.Feed(bg, feed.Scope{}, p, pageSize)
		}, got)
		return len(got)
	}
	put(c, first)
	put(c, second)
	if seen := drain(c); seen != 2 {
		t.Errorf("%d items in the cluster", seen)
	}
	clean(t, e)

	for i, kind := range []string{"memory", "cluster"} {
		next := places[kind](t)
		moved(t, here, next)
		here = next
		e := here.serve(t, 0)
		c := container(t, e, "c")
		put(c, []string{second, first}[i]) // the first slot is written to only in the cluster
		if seen := drain(c); seen != 1 {
			t.Errorf("%s: %d items", kind, seen)
		}
		clean(t, e)
	}
}
