package core_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/journal"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// recorded reads the journal from a position to its end, in pages of two entries.
func recorded(t testing.TB, e *core.Engine, pos journal.Position) (out []*journal.Entry, next journal.Position) {
	t.Helper()
	if _, err := e.Journal().Now(bg); err != nil {
		t.Fatal(err)
	}
	for {
		p, err := e.Journal().Read(bg, pos, 2, func(x *journal.Entry) bool { return x.Op != journal.Mark })
		if err != nil {
			t.Fatal(err)
		}
		out, pos = append(out, p.Entries...), p.Next
		if !p.More {
			return out, pos
		}
	}
}

// story describes entries: operation, name, id and the field v of the item before and after.
func story(entries []*journal.Entry) string {
	var out []string
	for _, e := range entries {
		if e.Op == journal.Change {
			note := value.ObjectOf(e.Note)
			s := note.Get("type").Str() + " " + e.Coll
			if to := note.Get("to"); to.IsDefined() {
				s += " to " + to.Str()
			}
			out = append(out, s)
			continue
		}
		v := func(doc []byte) string {
			if doc == nil {
				return "-"
			}
			return fmt.Sprint(value.ObjectOf(doc).Get("v").Int())
		}
		op := map[journal.Op]string{journal.Create: "create", journal.Replace: "replace", journal.Update: "update",
			journal.Delete: "delete"}[e.Op]
		id := value.ObjectOf(e.Key).Get("_id").Str()
		s := fmt.Sprintf("%s %s.%s %s>%s", op, e.Coll, id, v(e.Previous), v(e.Current))
		if e.Expired {
			s += " expired"
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

func recordOf(t testing.TB, e *core.Engine, db, coll string) journal.Position {
	t.Helper()
	since, err := e.RecordChanges(bg, journal.Namespace{DB: db, Coll: coll})
	if err != nil {
		t.Fatal(err)
	}
	return journal.After(since)
}

// The journal has every change of what is recorded, in order, and the versions that readers need.
func TestJournal(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{ID: "a"})
		other := newContainer(t, e, core.ContainerSpec{ID: "b"})
		put(t, c, core.Create, `{"id":"x","pk":"p","v":0}`)
		if out, _ := recorded(t, e, journal.Position{}); len(out) > 0 {
			t.Fatalf("%s is recorded without a reason", story(out))
		}
		from := recordOf(t, e, "db", "a")
		put(t, other, core.Create, `{"id":"y","pk":"p","v":0}`)
		put(t, c, core.Create, `{"id":"z","pk":"q","v":1}`)
		if _, err := c.Write(bg, core.Write{Kind: core.Upsert, Partial: true,
			Doc: mustDoc(t, `{"id":"x","pk":"p","v":2}`)}); err != nil {
			t.Fatal(err)
		}
		put(t, c, core.Replace, `{"id":"x","pk":"p","v":3}`)
		if _, err := c.Write(bg, core.Write{Kind: core.Delete, PK: pk("q"), ID: value.StringOf("z")}); err != nil {
			t.Fatal(err)
		}
		const first = "create a.z ->1, update a.x 0>2, replace a.x ->3, delete a.z ->-"
		out, at := recorded(t, e, from)
		if story(out) != first {
			t.Fatalf("the journal has %s, want %s", story(out), first)
		}
		if k := value.ObjectOf(out[1].Key); k.Get("pk").Str() != "p" || k.Len() != 2 {
			t.Errorf("the key of a change is %v", k)
		}
		_, err := e.ChangeContainer(bg, "db", "a", func(s *core.ContainerSpec) error {
			s.Images = true
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		put(t, c, core.Replace, `{"id":"x","pk":"p","v":4}`)
		if err := e.DropContainer(bg, "db", "a"); err != nil {
			t.Fatal(err)
		}
		if out, _ := recorded(t, e, at); story(out) != "replace a.x 3>4, drop a" {
			t.Errorf("the journal goes on with %s", story(out))
		}
		if out, _ := recorded(t, e, from); len(out) != 6 {
			t.Errorf("after the drop the journal has only %s", story(out))
		}
	})
}

// The journal of a database has the changes of its containers and of its catalog, also of containers that are new.
func TestJournalOfCatalog(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		newContainer(t, e, core.ContainerSpec{ID: "a"})
		from := recordOf(t, e, "db", "")
		c := newContainer(t, e, core.ContainerSpec{ID: "b"})
		put(t, c, core.Create, `{"id":"x","pk":"p","v":1}`)
		if _, err := e.RenameContainer(bg, "db", "b", "a", true); err != nil {
			t.Fatal(err)
		}
		if c, _ = e.Container("db", "a"); c == nil {
			t.Fatal("the renamed container is missing")
		}
		put(t, c, core.Create, `{"id":"y","pk":"p","v":2}`)
		if _, err := e.CreateDatabase(bg, core.DatabaseSpec{ID: "other"}); err != nil {
			t.Fatal(err)
		}
		if _, err := e.CreateContainer(bg, "other", core.ContainerSpec{ID: "o",
			PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}}); err != nil {
			t.Fatal(err)
		}
		if err := e.DropDatabase(bg, "db"); err != nil {
			t.Fatal(err)
		}
		const want = "create b, create b.x ->1, rename b to a, create a.y ->2, drop a, dropDatabase "
		if out, _ := recorded(t, e, from); story(out) != want {
			t.Errorf("the journal has %q, want %q", story(out), want)
		}
	})
}

// What is recorded, and positions, outlast the process. Times never fall.
func TestJournalAfterRestart(t *testing.T) {
	eng := keptOpen{memkv.New()}
	e, err := core.Open(bg, eng, core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := newContainer(t, e, core.ContainerSpec{})
	from := recordOf(t, e, "", "")
	put(t, c, core.Create, `{"id":"x","pk":"p","v":1}`)
	before, at := recorded(t, e, from)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	// The clock is behind: the journal's isn't.
	past := clock.Fake(time.Unix(1000, 0))
	if e, err = core.Open(bg, eng, core.Options{Clock: past}); err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if c, err = e.Container("db", "c"); err != nil {
		t.Fatal(err)
	}
	put(t, c, core.Create, `{"id":"y","pk":"p","v":2}`)
	after, _ := recorded(t, e, at)
	if story(before) != "create c.x ->1" || story(after) != "create c.y ->2" {
		t.Errorf("the journal has %s and, after the restart, %s", story(before), story(after))
	}
	if since := e.Journal().Since(journal.Namespace{DB: "db"}); journal.After(since) != from {
		t.Errorf("after the restart the journal begins at %d, want %v", since, from)
	}
}

// A reader has read to the end, and the store is opened again in the same second. What is written then has times behind
// the reader's position, although no entry has the time of that position.
func TestJournalAfterRestartInASecond(t *testing.T) {
	eng := keptOpen{memkv.New()}
	clk := clock.Fake(time.Unix(1_700_000_000, 0))
	e, err := core.Open(bg, eng, core.Options{Clock: clk})
	if err != nil {
		t.Fatal(err)
	}
	newContainer(t, e, core.ContainerSpec{})
	pos := recordOf(t, e, "db", "c")
	clk.Advance(time.Second)
	_, pos = recorded(t, e, pos)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if e, err = core.Open(bg, eng, core.Options{Clock: clk}); err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	c, err := e.Container("db", "c")
	if err != nil {
		t.Fatal(err)
	}
	put(t, c, core.Create, `{"id":"x","pk":"p","v":1}`)
	if got, _ := recorded(t, e, pos); story(got) != "create c.x ->1" {
		t.Errorf("%q", story(got))
	}
}

// The outcome of the commit that begins a record is unknown: the disk didn't answer for a moment. If a restart finds
// that the record has begun, it has everything since then.
func TestJournalWhoseBeginIsUnknown(t *testing.T) {
	for name, unknown := range map[string]func(*hookSet){
		"of the write": func(on *hookSet) { on.unsure = func() error { return kv.ErrUnknownOutcome } },
		"of the wait":  func(on *hookSet) { on.wait = func() error { return kv.ErrUnknownOutcome } },
	} {
		t.Run(name, func(t *testing.T) {
			h := &hooks{Engine: keptOpen{memkv.New()}}
			e, err := core.Open(bg, h, core.Options{})
			if err != nil {
				t.Fatal(err)
			}
			c := newContainer(t, e, core.ContainerSpec{})
			ns := journal.Namespace{DB: "db", Coll: "c"}
			h.set(unknown)
			if _, err := e.RecordChanges(bg, ns); !status.Is(err, status.UnknownOutcome) {
				t.Errorf("the record begins: %v", err)
			}
			h.set(func(on *hookSet) { *on = hookSet{} })
			put(t, c, core.Create, `{"id":"x","pk":"p","v":1}`)
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			if e, err = core.Open(bg, h, core.Options{}); err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			if since := e.Journal().Since(ns); since != 0 {
				if got, _ := recorded(t, e, journal.After(since)); story(got) != "create c.x ->1" {
					t.Errorf("the journal has %q since %d", story(got), since)
				}
			}
		})
	}
}

// failing is an engine whose writes fail while broken is set.
type failing struct {
	keptOpen
	broken *bool
}

func (e failing) Write(ctx context.Context, b *kv.Batch, pre []kv.Precondition) (kv.Commit, error) {
	if *e.broken {
		return nil, kv.ErrUnavailable
	}
	return e.keptOpen.Write(ctx, b, pre)
}

// A position that no entry has stays right over restarts with clocks that were set back, whether the process was closed
// or has just ended. Nothing is written for it most of the time, and a position that can't be kept is no position.
func TestJournalKeepsPositions(t *testing.T) {
	broken := false
	eng := failing{keptOpen{memkv.New()}, &broken}
	now := time.Unix(1_700_000_000, 0)
	pos := journal.Position{}
	for i, closed := range []bool{true, false, true, true} {
		clk := clock.Fake(now)
		e, err := core.Open(bg, eng, core.Options{Clock: clk})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		var c *core.Container
		if i == 0 {
			newContainer(t, e, core.ContainerSpec{})
			pos = recordOf(t, e, "db", "c")
		}
		if c, err = e.Container("db", "c"); err != nil {
			t.Fatal(err)
		}
		put(t, c, core.Create, fmt.Sprintf(`{"id":"x%d","pk":"p","v":%d}`, i, i))
		got, next := recorded(t, e, pos)
		if want := fmt.Sprintf("create c.x%d ->%d", i, i); story(got) != want {
			t.Fatalf("start %d: behind %v the journal has %q, want %q", i, pos, story(got), want)
		}
		clk.Advance(3 * time.Second)
		for range 1000 {
			clk.Advance(time.Millisecond)
			_, pos = recorded(t, e, next)
			if err := e.Journal().Keep(bg, pos.Time); err != nil {
				t.Fatal(err)
			}
			broken = true // what is kept lasts for a while
		}
		clk.Advance(time.Hour)
		if err := e.Journal().Keep(bg, e.Journal().Mark()); i == 0 && !status.Is(err, status.Unavailable) {
			t.Errorf("a position that isn't stored is kept: %v", err)
		}
		if err := e.Journal().Keep(bg, e.Journal().Mark()+1<<40); err != nil {
			t.Errorf("a time to come: %v", err)
		}
		if broken = false; closed {
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
		}
		now = now.Add(-time.Hour)
	}
}

// Readers that run beside writers get each commit exactly once, in an order in which each item's versions rise. No
// entry becomes visible behind a reader.
func TestJournalBesideWriters(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		from := recordOf(t, e, "db", "c")
		const writers, each = 8, 150
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := range each {
					d := mustDoc(t, fmt.Sprintf(`{"id":"i%d","pk":"p%d","v":%d}`, w, w, i))
					if _, err := c.Write(bg, core.Write{Kind: core.Upsert, Doc: d}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		seen := map[string]int64{}
		topic := e.Journal().Watch(journal.Namespace{DB: "db", Coll: "c"})
		defer topic.Leave()
		ctx, cancel := context.WithTimeout(bg, time.Minute)
		defer cancel()
		for n, pos := 0, from; n < writers*each; {
			if !topic.Wait(ctx, pos.Time) {
				t.Fatalf("nobody tells of entries after %d of %d", n, writers*each)
			}
			p, err := e.Journal().Read(bg, pos, 10, func(x *journal.Entry) bool { return x.Op != journal.Mark })
			if err != nil {
				t.Fatal(err)
			}
			if p.Next.Before(pos) {
				t.Fatalf("from %v to %v", pos, p.Next)
			}
			// A page that ends within a commit's time is continued by position.
			if pos = p.Next; !pos.Whole() {
				pos = journal.Position{Time: pos.Time, N: pos.N}
			}
			for _, x := range p.Entries {
				id, v := value.ObjectOf(x.Key).Get("_id").Str(), value.ObjectOf(x.Current).Get("v").Int()
				if last, ok := seen[id]; v != 0 && last != v-1 || ok == (v == 0) {
					t.Fatalf("%s: version %d follows %d", id, v, last)
				}
				seen[id], n = v, n+1
			}
		}
		wg.Wait()
		if out, _ := recorded(t, e, from); len(out) != writers*each {
			t.Errorf("the journal has %d entries, want %d", len(out), writers*each)
		}
	})
}

// Old entries are removed, as is what nobody reads. Positions in front of them are refused and don't skip anything.
func TestJournalTrim(t *testing.T) {
	clk := clock.Fake(time.Unix(1_000_000, 0))
	e, err := core.Open(bg, memkv.New(), core.Options{Clock: clk, JournalAge: time.Hour, JournalBytes: 16 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	c := newContainer(t, e, core.ContainerSpec{})
	from := recordOf(t, e, "db", "c")
	trim := func(want bool) {
		t.Helper()
		if did, err := e.Journal().Trim(bg); err != nil || did != want {
			t.Fatalf("Trim removes something: %v, error %v", did, err)
		}
	}
	put(t, c, core.Create, `{"id":"a","pk":"p","v":1}`)
	_, at := recorded(t, e, from)
	trim(false)
	clk.Advance(50 * time.Minute)
	put(t, c, core.Create, `{"id":"b","pk":"p","v":2}`)
	trim(false)
	was, err := e.Journal().Used(bg)
	if err != nil || was <= 0 || was >= 16<<10 {
		t.Errorf("%d bytes are used, error %v", was, err)
	}
	e.Journal().Since(journal.Namespace{DB: "db", Coll: "c"}) // somebody reads
	clk.Advance(20 * time.Minute)
	trim(true)
	if now, err := e.Journal().Used(bg); err != nil || now >= was {
		t.Errorf("%d bytes are used after the removal, %d before, error %v", now, was, err)
	}
	_, err = e.Journal().Read(bg, from, 10, func(*journal.Entry) bool { return true })
	wantCode(t, err, status.Gone, 0)
	if since := e.Journal().Since(journal.Namespace{DB: "db", Coll: "c"}); since <= at.Time-60 {
		t.Errorf("the journal still begins at %d", since)
	}
	var all []*journal.Entry
	if all, at = recorded(t, e, journal.After(e.Journal().Since(journal.Namespace{DB: "db", Coll: "c"}))); story(all) !=
		"create c.b ->2" {
		t.Errorf("the journal keeps %s", story(all))
	}
	// Too many bytes.
	for i := range 200 {
		put(t, c, core.Create, fmt.Sprintf(`{"id":"n%d","pk":"p","v":%d,"text":%q}`, i, i, strings.Repeat("x", 100)))
		clk.Advance(time.Second)
	}
	trim(true)
	all, _ = recorded(t, e, journal.After(e.Journal().Since(journal.Namespace{DB: "db", Coll: "c"})))
	if n := len(all); n < 20 || n > 90 || !strings.HasPrefix(story(all[n-1:]), "create c.n199") {
		t.Errorf("the journal keeps %d entries of about 250 bytes", n)
	}
	_, err = e.Journal().Read(bg, at, 10, func(*journal.Entry) bool { return true })
	wantCode(t, err, status.Gone, 0)
	// Nobody has read for longer than entries are kept.
	clk.Advance(2 * time.Hour)
	trim(true)
	if e.Journal().Active() {
		t.Error("changes are recorded though nobody reads them")
	}
	put(t, c, core.Create, `{"id":"last","pk":"p","v":9}`)
	again := recordOf(t, e, "db", "c")
	if all, _ := recorded(t, e, again); len(all) > 0 {
		t.Errorf("a new reader gets %s", story(all))
	}
}

// A reader waits for its own namespace only, and its position moves on without reads.
func TestJournalTopics(t *testing.T) {
	e, err := core.Open(bg, memkv.New(), core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	a, b := newContainer(t, e, core.ContainerSpec{ID: "a"}), newContainer(t, e, core.ContainerSpec{ID: "b"})
	recordOf(t, e, "", "")
	var topics []*journal.Topic
	for _, ns := range []journal.Namespace{{DB: "db", Coll: "a"}, {DB: "db", Coll: "b"}, {DB: "db"}, {}, {DB: "x"}} {
		tp := e.Journal().Watch(ns)
		defer tp.Leave()
		topics = append(topics, tp)
	}
	news := func() (out []bool) {
		at := e.Journal().Clock.Last()
		put(t, a, core.Upsert, `{"id":"x","pk":"p","v":1}`)
		for _, tp := range topics {
			_, ok := tp.News(at)
			out = append(out, ok)
		}
		return out
	}
	if got := news(); !slices.Equal(got, []bool{true, false, true, true, false}) {
		t.Errorf("news of a, b, the database, the store, another database: %v", got)
	}
	woken := make(chan bool)
	at := e.Journal().Clock.Last()
	ctx, cancel := context.WithTimeout(bg, time.Minute)
	defer cancel()
	go func() { woken <- topics[1].Wait(ctx, at) }()
	put(t, b, core.Upsert, `{"id":"x","pk":"p","v":1}`)
	if !<-woken {
		t.Error("a reader isn't woken")
	}
	short, stop := context.WithTimeout(bg, 20*time.Millisecond)
	defer stop()
	if topics[4].Wait(short, e.Journal().Clock.Last()) {
		t.Error("a reader is woken without news")
	}
}
