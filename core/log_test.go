package core_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/epk"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

// versions reads the feed of all versions from a position to its end, in pages of n changes.
func versions(t testing.TB, c *core.Container, sc feed.Scope, pos feed.Position, n int) (
	out []*core.LogEntry, next feed.Position) {
	t.Helper()
	for {
		page, err := c.FeedVersions(bg, sc, pos, n)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, page.Changes...)
		if pos, err = feed.Parse(page.Next.String()); err != nil {
			t.Fatal(err)
		}
		if !page.More {
			return out, pos
		}
	}
}

// told describes changes: operation, id, the field v of the previous and of the current version.
func told(changes []*core.LogEntry) string {
	var out []string
	for _, e := range changes {
		v := func(it *core.Item) string {
			if it == nil {
				return "-"
			}
			return fmt.Sprint(value.ObjectOf(it.Doc).Get("v").Int())
		}
		s := fmt.Sprintf("%s %s %s>%s", [...]string{"create", "replace", "delete"}[e.Op], e.Item().ID().Str(),
			v(e.Previous), v(e.Current))
		if e.Expired {
			s += " expired"
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

func remove(t testing.TB, c *core.Container, key, id string) {
	t.Helper()
	if _, err := c.Write(bg, core.Write{Kind: core.Delete, PK: pk(key), ID: value.StringOf(id)}); err != nil {
		t.Fatal(err)
	}
}

func TestLogHasEveryVersion(t *testing.T) {
	clk := clock.Fake(time.Unix(1_700_000_000, 0))
	onEngines(t, core.Options{Clock: clk}, func(t *testing.T, e *core.Engine) {
		never := int32(-1)
		c := newContainer(t, e, core.ContainerSpec{DefaultTTL: &never, UniqueKeys: [][]string{{"/u"}}, LogMinutes: 60})
		now, err := c.FeedVersionsNow(bg, feed.Scope{})
		if err != nil {
			t.Fatal(err)
		}
		put(t, c, core.Create, `{"id":"a","pk":"p","v":1}`)
		put(t, c, core.Replace, `{"id":"a","pk":"p","v":2}`)
		put(t, c, core.Upsert, `{"id":"a","pk":"p","v":3}`)
		remove(t, c, "p", "a")
		put(t, c, core.Create, `{"id":"b","pk":"p","u":1,"v":4,"ttl":10}`)
		put(t, c, core.Create, `{"id":"c","pk":"p","u":2,"v":5,"ttl":10}`)
		put(t, c, core.Create, `{"id":"d","pk":"p","u":3,"v":6,"ttl":10}`)
		clk.Advance(11 * time.Second)
		put(t, c, core.Upsert, `{"id":"b","pk":"p","u":1,"v":7}`) // b has expired
		put(t, c, core.Create, `{"id":"e","pk":"p","u":2,"v":8}`) // c has expired, and e takes its unique value
		if n := e.Reap(bg); n != 1 {
			t.Fatalf("%d items were removed", n)
		}
		if _, err := c.WithTx(bg, pk("p"), func(tx *core.Tx) error {
			for _, w := range []core.Write{
				{Kind: core.Create, Doc: mustDoc(t, `{"id":"f","pk":"p","u":9,"v":9}`)},
				{Kind: core.Replace, Doc: mustDoc(t, `{"id":"b","pk":"p","u":1,"v":10}`)},
				{Kind: core.Delete, ID: value.StringOf("e")},
			} {
				if _, err := tx.Write(&w); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		const want = "create a ->1, replace a 1>2, replace a 2>3, delete a 3>-, create b ->4, create c ->5, " +
			"create d ->6, delete b 4>- expired, create b ->7, delete c 5>- expired, create e ->8, " +
			"delete d 6>- expired, create f ->9, replace b 7>10, delete e 8>-"
		for _, n := range []int{1, 3, 100} {
			got, next := versions(t, c, feed.Scope{}, now, n)
			if told(got) != want {
				t.Errorf("pages of %d:\n%s\nwant\n%s", n, told(got), want)
			}
			if again, _ := versions(t, c, feed.Scope{}, next, n); len(again) != 0 {
				t.Errorf("%s after the end", told(again))
			}
			for _, ch := range got {
				if ch.Expired && ch.TS() != clk.Now().Unix() || ch.Op == core.LogReplace && ch.Previous.LSN >= ch.LSN {
					t.Errorf("%s at %d, after %d", told([]*core.LogEntry{ch}), ch.TS(), ch.Previous.LSN)
				}
			}
		}
		page, err := c.FeedVersions(bg, feed.Scope{}, feed.After(lastLSN(c)-1), 1)
		if err != nil || len(page.Changes) != 3 || page.More {
			t.Errorf("a page of one change has %d of the transaction's 3 changes (%v)", len(page.Changes), err)
		}
	})
}

func TestLogOfScopes(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{Throughput: core.Throughput{Manual: 20000}, LogMinutes: 60})
		now, err := c.FeedVersionsNow(bg, feed.Scope{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 40 {
			put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p%d","v":%d}`, i, i%8, i))
		}
		for i := range 8 {
			remove(t, c, fmt.Sprintf("p%d", i), fmt.Sprint(i))
		}
		all, _ := versions(t, c, feed.Scope{}, now, 7)
		got, _ := versions(t, c, feed.Scope{PK: pk("p3")}, now, 2)
		const want = "create 3 ->3, create 11 ->11, create 19 ->19, create 27 ->27, create 35 ->35, delete 3 3>-"
		if len(all) != 48 || told(got) != want {
			t.Errorf("%d changes, of the key: %s", len(all), told(got))
		}
		n := 0
		const middle = "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"
		for _, cut := range [][2]string{{"", middle}, {middle, "30"}, {"30", "FF"}} {
			part, _ := versions(t, c, feed.Scope{Range: epk.Range{Min: cut[0], Max: cut[1]}}, now, 5)
			n += len(part)
		}
		if n != len(all) {
			t.Errorf("the ranges have %d of %d changes", n, len(all))
		}
	})
}

// A reader never misses a change without being told: a position whose next changes were removed, or never logged, is
// refused. A position after which there was nothing stays valid for ever.
func TestLogRetention(t *testing.T) {
	clk := clock.Fake(time.Unix(1_700_000_000, 0))
	onEngines(t, core.Options{Clock: clk, MinSlots: 1}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{LogMinutes: 10})
		first, err := c.FeedVersionsNow(bg, feed.Scope{})
		if err != nil {
			t.Fatal(err)
		}
		put(t, c, core.Create, `{"id":"a","pk":"p","v":1}`)
		read := feed.After(lastLSN(c))
		clk.Advance(8 * time.Minute)
		e.Reap(bg)
		if got, _ := versions(t, c, feed.Scope{}, first, 10); told(got) != "create a ->1" {
			t.Fatalf("within the retention: %s", told(got))
		}
		clk.Advance(8 * time.Minute)
		e.Reap(bg)
		if got, _ := versions(t, c, feed.Scope{}, read, 10); len(got) != 0 {
			t.Errorf("%s after everything was removed", told(got))
		}
		_, err = c.FeedVersions(bg, feed.Scope{}, first, 10)
		wantCode(t, err, status.BadRequest, 0)
		put(t, c, core.Replace, `{"id":"a","pk":"p","v":2}`)
		if got, _ := versions(t, c, feed.Scope{}, read, 10); told(got) != "replace a 1>2" {
			t.Errorf("from the last position: %s", told(got))
		}
		_, err = c.FeedVersions(bg, feed.Scope{}, first, 10)
		wantCode(t, err, status.BadRequest, 0)

		// the clock is set back by a day: nothing is removed before its time, nor kept for a day
		clk.Advance(-24 * time.Hour)
		read = feed.After(lastLSN(c))
		put(t, c, core.Replace, `{"id":"a","pk":"p","v":3}`)
		clk.Advance(6 * time.Minute)
		put(t, c, core.Replace, `{"id":"a","pk":"p","v":4}`)
		after := feed.After(lastLSN(c) - 1)
		e.Reap(bg)
		if got, _ := versions(t, c, feed.Scope{}, read, 10); told(got) != "replace a 2>3, replace a 3>4" {
			t.Errorf("after the clock was set back: %s", told(got))
		}
		clk.Advance(6 * time.Minute)
		e.Reap(bg)
		_, err = c.FeedVersions(bg, feed.Scope{}, read, 10)
		wantCode(t, err, status.BadRequest, 0)
		if got, _ := versions(t, c, feed.Scope{}, after, 10); told(got) != "replace a 3>4" {
			t.Errorf("after the clock was set back: %s", told(got))
		}
	})
}

// A log may be switched on and off while others write. Readers of a log that was off in between are told so.
func TestLogIsSwitchedUnderWriters(t *testing.T) {
	t.Parallel()
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		_, err := c.FeedVersions(bg, feed.Scope{}, feed.After(0), 1)
		wantCode(t, err, status.BadRequest, 0)
		_, err = c.FeedVersionsNow(bg, feed.Scope{})
		wantCode(t, err, status.BadRequest, 0)
		stop, done := make(chan bool), sync.WaitGroup{}
		for w := range 3 {
			done.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
						put(t, c, core.Upsert, fmt.Sprintf(`{"id":"%d","pk":"p%d","v":%d}`, w*10+i%10, i%10, i))
					}
				}
			})
		}
		set := func(minutes int64) {
			spec := c.Spec().Clone()
			spec.LogMinutes = minutes
			if _, err := e.ReplaceContainer(bg, "db", "c", spec); err != nil {
				t.Fatal(err)
			}
		}
		var last feed.Position
		for n := range overNetwork(5, 3) {
			set(10)
			if n > 0 {
				for _, w := range []int{1, 7} {
					_, err := c.FeedVersions(bg, feed.Scope{}, last, w)
					wantCode(t, err, status.BadRequest, 0)
				}
			}
			if last, err = c.FeedVersionsNow(bg, feed.Scope{}); err != nil {
				t.Fatal(err)
			}
			from := lastLSN(c)
			for lastLSN(c) < from+50 {
				time.Sleep(time.Millisecond)
			}
			got, next := versions(t, c, feed.Scope{}, last, 20)
			if len(got) == 0 {
				t.Error("no changes")
			}
			last = next
			set(0)
			for from = lastLSN(c); lastLSN(c) < from+20; {
				time.Sleep(time.Millisecond)
			}
			_, err = c.FeedVersions(bg, feed.Scope{}, last, 1)
			wantCode(t, err, status.BadRequest, 0)
		}
		close(stop)
		done.Wait()
	})
}

// While writers change few items all the time, each item's changes form an unbroken chain of versions, and commits come
// whole.
func TestLogUnderWriters(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) { logUnderWriters(t, e, nil) })
}

// So it is while slots are split and joined.
func TestLogWhileSlotsMove(t *testing.T) {
	t.Parallel()
	on(t, farEngines(), core.Options{}, func(t *testing.T, e *core.Engine) {
		logUnderWriters(t, e, func(c *core.Container, i int) error {
			at := epk.Split(epk.V2, 32)[i%2*8+1]
			if i/2%2 == 0 {
				return c.SplitSlot(bg, at)
			}
			return c.JoinSlots(bg, at)
		})
	})
}

// logUnderWriters is the test. It calls meanwhile (may be nil) with 0 to 7 while the writers write.
func logUnderWriters(t *testing.T, e *core.Engine, meanwhile func(c *core.Container, i int) error) {
	c := newContainer(t, e, core.ContainerSpec{Throughput: core.Throughput{Manual: 20000}, LogMinutes: 60})
	pos, err := c.FeedVersionsNow(bg, feed.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	var moved atomic.Int32
	writes := overNetwork(race.Fewer(300, 60), 40)
	for w := range 4 {
		done.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 1))
			for n := 0; n < writes || meanwhile != nil && moved.Load() < 8; n++ {
				if n > writes/4*int(moved.Load()+1) { // a move copies the log: one that grows faster is never copied
					time.Sleep(time.Millisecond)
				}
				key := fmt.Sprintf("p%d", r.IntN(4))
				_, err := c.WithTx(bg, pk(key), func(tx *core.Tx) error {
					for _, id := range r.Perm(5)[:1+r.IntN(3)] {
						text := fmt.Sprintf(`{"id":"%d","pk":"%s","v":%d}`, id, key, r.IntN(1000))
						w := core.Write{Kind: core.Upsert, Doc: mustDoc(t, text)}
						if r.IntN(3) == 0 {
							w = core.Write{Kind: core.Update, ID: value.StringOf(fmt.Sprint(id)),
								Update: func(old *core.Item) (core.Change, error) {
									return core.Change{Delete: old != nil, Keep: old == nil}, nil
								}}
						}
						if _, err := tx.Write(&w); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil && !status.Is(err, status.RetryWith) {
					t.Error(err)
				}
			}
		})
	}
	if meanwhile != nil {
		done.Go(func() {
			for i := range 8 {
				if err := meanwhile(c, i); err != nil {
					t.Error(err)
				}
				moved.Add(1)
			}
		})
	}
	ended := make(chan bool)
	go func() { done.Wait(); close(ended) }()
	latest, lsns := map[string]*core.LogEntry{}, map[string]int64{}
	for over := false; ; {
		select {
		case <-ended:
			over = true
		default:
		}
		page, err := c.FeedVersions(bg, feed.Scope{}, pos, 5)
		if err != nil {
			t.Fatal(err)
		}
		for i, ch := range page.Changes {
			it := ch.Item()
			key := it.PK()[0].Str() + "/" + it.ID().Str()
			before := latest[key]
			if was := before != nil && before.Current != nil; was != (ch.Previous != nil) ||
				was && ch.Previous.LSN != before.LSN {
				t.Fatalf("%s of %s follows %v", told(page.Changes[i:i+1]), key, before)
			}
			latest[key] = ch
			if lsns[key] >= ch.LSN {
				t.Fatalf("LSN %d after %d", ch.LSN, lsns[key])
			}
			lsns[key] = ch.LSN
		}
		if pos = page.Next; over && !page.More {
			break
		}
	}
	live := 0
	for _, ch := range latest {
		if ch.Current != nil {
			live++
		}
	}
	if n := int(counted(c)); n != live {
		t.Errorf("the log ends with %d items, there are %d", live, n)
	}
}

// The log is there after a restart, and its trimmed part is still refused.
func TestLogAfterRestart(t *testing.T) {
	clk := clock.Fake(time.Unix(1_700_000_000, 0))
	eng := ownEngines["mem"](t)
	open := func() (*core.Engine, *core.Container) {
		e, err := core.Open(bg, keptOpen{eng}, core.Options{Clock: clk, MinSlots: 1})
		if err != nil {
			t.Fatal(err)
		}
		c, err := e.Container("db", "c")
		if err != nil && !status.Is(err, status.NotFound) {
			t.Fatal(err)
		}
		return e, c
	}
	e, _ := open()
	c := newContainer(t, e, core.ContainerSpec{LogMinutes: 10})
	first, _ := c.FeedVersionsNow(bg, feed.Scope{})
	put(t, c, core.Create, `{"id":"a","pk":"p","v":1}`)
	clk.Advance(20 * time.Minute)
	e.Reap(bg)
	put(t, c, core.Replace, `{"id":"a","pk":"p","v":2}`)
	second := feed.After(lastLSN(c) - 1)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e, c = open()
	defer e.Close()
	_, err := c.FeedVersions(bg, feed.Scope{}, first, 10)
	wantCode(t, err, status.BadRequest, 0)
	put(t, c, core.Replace, `{"id":"a","pk":"p","v":3}`)
	if got, _ := versions(t, c, feed.Scope{}, second, 10); told(got) != "replace a 1>2, replace a 2>3" {
		t.Errorf("after a restart: %s", told(got))
	}
	clean(t, e)
}

// A repair drops the log. The repaired store tells readers so, and begins a new log.
func TestLogAfterRepair(t *testing.T) {
	raw, fresh := memkv.New(), memkv.New()
	e, err := core.Open(bg, raw, core.Options{MinSlots: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	c := newContainer(t, e, core.ContainerSpec{LogMinutes: 10})
	first, _ := c.FeedVersionsNow(bg, feed.Scope{})
	put(t, c, core.Create, `{"id":"a","pk":"p","v":1}`)
	if _, err := core.Restore(bg, fresh, wholeStore{t, raw}, func(l core.Lost) { t.Error(l) }); err != nil {
		t.Fatal(err)
	}
	r, err := core.Open(bg, fresh, core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if c, err = r.Container("db", "c"); err != nil {
		t.Fatal(err)
	}
	_, err = c.FeedVersions(bg, feed.Scope{}, first, 10)
	wantCode(t, err, status.BadRequest, 0)
	now, err := c.FeedVersionsNow(bg, feed.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	put(t, c, core.Replace, `{"id":"a","pk":"p","v":2}`)
	if got, _ := versions(t, c, feed.Scope{}, now, 10); told(got) != "replace a 1>2" {
		t.Errorf("after a repair: %s", told(got))
	}
	clean(t, r)
}

// Writes that share a commit have LSNs of their own, and so have their changes.
func TestLogOfManyWrites(t *testing.T) {
	clk := clock.Fake(time.Unix(1_700_000_000, 0))
	e, _ := hooked(t, core.Options{Clock: clk})
	never := int32(-1)
	c := newContainer(t, e, core.ContainerSpec{DefaultTTL: &never, LogMinutes: 60})
	put(t, c, core.Create, `{"id":"0","pk":"p","v":1,"ttl":5}`)
	clk.Advance(6 * time.Second)
	now, _ := c.FeedVersionsNow(bg, feed.Scope{})
	for n, want := range []string{
		"delete 0 1>- expired, create 0 ->10, create 1 ->11, create 2 ->12",
		"replace 0 10>20, replace 1 11>21, replace 2 12>22",
	} {
		var ws []core.Write
		for i := range 3 {
			ws = append(ws, core.Write{Kind: core.Upsert,
				Doc: mustDoc(t, fmt.Sprintf(`{"id":"%d","pk":"p","v":%d}`, i, 10*(n+1)+i))})
		}
		for _, o := range c.WriteMany(bg, ws, n == 1) {
			if o.Err != nil {
				t.Fatal(o.Err)
			}
		}
		got, next := versions(t, c, feed.Scope{}, now, 1)
		if now = next; told(got) != want {
			t.Errorf("%s, want %s", told(got), want)
		}
	}
}
