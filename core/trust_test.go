package core_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/epk"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// aware is the store of a process whose next look comes after a change by another process, if change is set.
type aware struct {
	*kvtest.Process
	change  atomic.Pointer[func()]
	trusted atomic.Bool  // the first look after the change didn't read the version of the catalog
	reads   atomic.Int32 // of that version
	fails   atomic.Bool  // reads of that version alone
	asks    chan bool    // not nil: gets what asks for other processes
}

func (p *aware) Get(ctx context.Context, dst, key []byte) ([]byte, error) {
	if p.count(key) && p.fails.Load() {
		return dst, kv.ErrUnavailable
	}
	return p.Process.Get(ctx, dst, key)
}

func (p *aware) GetNewest(ctx context.Context, v *kv.Values, names [][]byte) error {
	p.count(names...)
	return kv.GetNewest(ctx, p.Process, v, names)
}

// count counts a read of the version, and reports whether it is one.
func (p *aware) count(names ...[]byte) bool {
	is := slices.ContainsFunc(names, func(name []byte) bool { return bytes.Equal(name, catalog.VersionKey()) })
	if is {
		p.reads.Add(1)
	}
	return is
}

func (p *aware) Snapshot(ctx context.Context) (kv.Snapshot, error) {
	change := p.change.Swap(nil)
	if change != nil {
		(*change)()
	}
	s, err := p.Process.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	snap := &awareSnap{Snapshot: s, of: p, first: new(atomic.Bool)}
	snap.first.Store(change != nil)
	return snap, nil
}

// awareSnap is a snapshot of an aware store.
type awareSnap struct {
	kv.Snapshot
	of    *aware
	first *atomic.Bool // its next read is the first one after the change
}

func (s *awareSnap) With(ctx context.Context) kv.Snapshot {
	return &awareSnap{kv.With(ctx, s.Snapshot), s.of, s.first}
}

func (s *awareSnap) GetMany(v *kv.Values, names [][]byte) error {
	if is := s.of.count(names...); s.first.Swap(false) && !is {
		s.of.trusted.Store(true)
	}
	return s.Snapshot.GetMany(v, names)
}

func (s *awareSnap) Iter(lo, hi []byte) (kv.Iterator, error) {
	if first, _ := keys.ProcessBounds(); s.of.asks != nil && bytes.Equal(lo, first) {
		select {
		case s.of.asks <- true:
		default:
		}
	}
	return s.Snapshot.Iter(lo, hi)
}

// pair is two processes with a container. The first one trusts the version of the catalog.
type pair struct {
	clk         *clock.Clock
	mine, other *core.Engine
	of, others  *aware // their stores
	c           *core.Container
	begun       feed.Position // of the container's log, if it has one, after a change
}

func newPair(t *testing.T, spec core.ContainerSpec) *pair {
	t.Helper()
	store := kvtest.NewShared(memkv.New(), 1)
	p := &pair{clk: clock.Fake(time.Unix(1_700_000_000, 0)), of: &aware{Process: store.Engine()},
		others: &aware{Process: store.Engine(), asks: make(chan bool, 1)}}
	o := core.Options{Clock: p.clk, Lease: time.Hour} // the fake clock passes it never
	p.other, p.mine = opened(t, p.others, o), opened(t, p.of, o)
	newContainer(t, p.other, spec)
	if err := p.mine.Announce(core.Announcement{Name: "mine"}); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		list, err := p.other.Processes(bg)
		if err != nil || time.Since(begun) > 10*time.Second {
			t.Fatalf("processes %v, %v", list, err)
		}
		if slices.ContainsFunc(list, func(o core.Process) bool { return o.Name == "mine" }) {
			break
		}
	}
	var err error
	if p.c, err = p.mine.Container("db", "c"); err != nil {
		t.Fatal(err)
	}
	return p
}

// respec replaces the definition of the container.
func (p *pair) respec(f func(*core.ContainerSpec)) error {
	c, err := p.other.Container("db", "c")
	if err != nil {
		return err
	}
	spec := c.Spec().Clone()
	f(&spec)
	_, err = p.other.ReplaceContainer(bg, "db", "c", spec)
	return err
}

func (p *pair) relive(ttl *int32) error {
	return p.respec(func(s *core.ContainerSpec) { s.DefaultTTL = ttl })
}

// changed is called when a change was made.
func (p *pair) changed() {
	p.clk.Advance(time.Minute)
	if c, err := p.other.Container("db", "c"); err == nil && c.Spec().LogMinutes > 0 {
		p.begun, _ = c.FeedVersionsNow(bg, feed.Scope{})
	}
}

// trusts returns when the first process has looked the container up without reading the version.
func (p *pair) trusts(t *testing.T) {
	t.Helper()
	for range 100 {
		p.of.reads.Store(0)
		if _, err := p.mine.Container("db", "c"); err != nil {
			t.Fatal(err)
		}
		if p.of.reads.Load() == 0 {
			return
		}
	}
	t.Fatal("the version is read again and again")
}

// catalogChange is a change that the second process makes.
type catalogChange struct {
	name   string
	spec   core.ContainerSpec
	change func(*pair) error
	write  string // what the first process creates after it, and after a minute. There is item x, with u = 1
	code   status.Code
	then   func(*testing.T, *pair, *core.Container) // the second process's
}

func catalogChanges() []catalogChange {
	const x, y = `{"id":"x","pk":"p","u":1}`, `{"id":"y","pk":"p","u":1}`
	ten := int32(10)
	return []catalogChange{
		{"items begin to expire", core.ContainerSpec{}, func(p *pair) error { return p.relive(&ten) }, x, 0, nil},
		{"items don't expire any more", core.ContainerSpec{DefaultTTL: &ten},
			func(p *pair) error { return p.relive(nil) }, x, status.Conflict, nil},
		{"a unique index is declared", core.ContainerSpec{},
			func(p *pair) error { return declare(p.other, uniqueIn("u", "u")) }, y, status.Conflict, nil},
		{"a unique index is dropped", core.ContainerSpec{Declared: []core.Declared{uniqueIn("u", "u")}},
			func(p *pair) error { return declare(p.other) }, y, 0, nil},
		{"the indexing policy is replaced", core.ContainerSpec{IndexingPolicy: []byte(noIndex)},
			func(p *pair) error {
				return p.respec(func(s *core.ContainerSpec) { s.IndexingPolicy = nil })
			}, y, 0, func(t *testing.T, _ *pair, c *core.Container) {
				if err := c.WaitIndex(bg); err != nil {
					t.Fatal(err)
				}
				if got := ids(t, c, eqQuery("u", 1)); len(got) != 2 {
					t.Errorf("the query finds %v", got)
				}
			}},
		{"a log begins", core.ContainerSpec{}, func(p *pair) error {
			return p.respec(func(s *core.ContainerSpec) { s.LogMinutes = 10 })
		}, y, 0, func(t *testing.T, p *pair, c *core.Container) {
			if got, _ := versions(t, c, feed.Scope{}, p.begun, 10); len(got) != 1 {
				t.Errorf("the log has %d changes", len(got))
			}
		}},
		{"the slot is split", core.ContainerSpec{}, func(p *pair) error {
			c, err := p.other.Container("db", "c")
			if err != nil {
				return err
			}
			return c.SplitSlot(bg, epk.Split(epk.V2, 32)[3])
		}, y, 0, nil},
		{"the container is dropped", core.ContainerSpec{},
			func(p *pair) error { return p.other.DropContainer(bg, "db", "c") }, y, status.NotFound, nil},
	}
}

// What a commit must know of the catalog it knows also when it trusts a version, and another process changes the
// catalog while the commit is made.
func TestChangeMeetsTrust(t *testing.T) {
	for _, tc := range catalogChanges() {
		t.Run(tc.name, func(t *testing.T) {
			for range 50 { // a version is trusted for a short time only
				if tc.meets(t) {
					return
				}
			}
			t.Error("no commit has trusted a version")
		})
	}
}

// meets reports whether the commit after the change has trusted. Otherwise it has checked nothing: the change may have
// come later, in a look of another request.
func (tc *catalogChange) meets(t *testing.T) bool {
	p := newPair(t, tc.spec)
	put(t, p.c, core.Create, `{"id":"x","pk":"p","u":1}`)
	made := make(chan error, 1)
	change := func() {
		select {
		case <-p.others.asks:
		default:
		}
		go func() { made <- tc.change(p) }()
		select {
		case <-p.others.asks: // it is made, and not answered
		case err := <-made: // there was no need to wait
			made <- err
		}
		p.changed()
	}
	put(t, p.c, core.Create, `{"id":"other","pk":"p"}`)
	p.of.change.Store(&change)
	_, err := p.c.Write(bg, core.Write{Kind: core.Create, Doc: mustDoc(t, tc.write)})
	if p.of.change.Swap(nil) != nil {
		return false
	}
	if failed := <-made; !p.of.trusted.Load() {
		return false
	} else if failed != nil {
		t.Fatal(failed)
	}
	tc.check(t, p, err)
	return true
}

// check checks the outcome of the write.
func (tc *catalogChange) check(t *testing.T, p *pair, err error) {
	t.Helper()
	if err == nil && tc.code != 0 || err != nil && !status.Is(err, tc.code) {
		t.Fatalf("the write: %v, want code %d", err, tc.code)
	}
	if tc.then != nil && err == nil {
		c, err := p.other.Container("db", "c")
		if err != nil {
			t.Fatal(err)
		}
		tc.then(t, p, c)
	}
}

// A change that was answered is obeyed by the next request to another process.
func TestAnsweredChanges(t *testing.T) {
	for _, tc := range catalogChanges() {
		t.Run(tc.name, func(t *testing.T) {
			p := newPair(t, tc.spec)
			put(t, p.c, core.Create, `{"id":"x","pk":"p","u":1}`)
			p.trusts(t)
			if err := tc.change(p); err != nil {
				t.Fatal(err)
			}
			p.changed()
			c, err := p.mine.Container("db", "c")
			if err == nil {
				_, err = c.Write(bg, core.Write{Kind: core.Create, Doc: mustDoc(t, tc.write)})
			}
			tc.check(t, p, err)
		})
	}
}

// So are changes of what is only looked up.
func TestAnsweredChangesOfNames(t *testing.T) {
	throughput := core.Throughput{Manual: 700}
	function := core.Resource{Kind: core.Function, ID: "f", Body: []byte("1")}
	newer := function
	newer.Body = []byte("2")
	gone := func(err error) error {
		if status.Is(err, status.NotFound) {
			return nil
		}
		return fmt.Errorf("not gone: %v", err)
	}
	for _, tc := range []struct {
		name   string
		change func(p *pair, parent uint32) error
		shown  func(p *pair, parent uint32) error // by the first process
	}{
		{"a container is renamed", func(p *pair, _ uint32) error {
			_, err := p.other.RenameContainer(bg, "db", "c", "d", false)
			return err
		}, func(p *pair, _ uint32) error {
			if _, err := p.mine.Container("db", "c"); gone(err) != nil {
				return gone(err)
			}
			_, err := p.mine.Container("db", "d")
			return err
		}},
		{"the definition of a container is replaced", func(p *pair, _ uint32) error {
			return p.respec(func(s *core.ContainerSpec) { s.LogMinutes = 10 })
		}, func(p *pair, _ uint32) error {
			c, err := p.mine.Container("db", "c")
			if err == nil && c.Spec().LogMinutes != 10 {
				err = fmt.Errorf("it is the former one")
			}
			return err
		}},
		{"an index is declared", func(p *pair, _ uint32) error { return declare(p.other, uniqueIn("u", "u")) },
			func(p *pair, _ uint32) error {
				c, err := p.mine.Container("db", "c")
				if err == nil && len(c.Spec().Declared) != 1 {
					err = fmt.Errorf("the definition has no index")
				}
				return err
			}},
		{"a database is dropped", func(p *pair, _ uint32) error { return p.other.DropDatabase(bg, "db") },
			func(p *pair, _ uint32) error {
				_, err := p.mine.Container("db", "c")
				return gone(err)
			}},
		{"a container is dropped, and its item is read", func(p *pair, _ uint32) error {
			return p.other.DropContainer(bg, "db", "c")
		}, func(p *pair, _ uint32) error {
			c, err := p.mine.Container("db", "c")
			if err == nil {
				_, err = c.Read(bg, pk("p"), value.StringOf("x"))
			}
			return gone(err)
		}},
		{"a container is created in place of one", func(p *pair, _ uint32) error {
			if err := p.other.DropContainer(bg, "db", "c"); err != nil {
				return err
			}
			_, err := p.other.CreateContainer(bg, "db", core.ContainerSpec{ID: "c",
				PartitionKey: core.PartitionKeyDef{Paths: []string{"/other"}}})
			return err
		}, func(p *pair, _ uint32) error {
			c, err := p.mine.Container("db", "c")
			if err == nil && c.Spec().PartitionKey.Paths[0] != "/other" {
				err = fmt.Errorf("it is the former one")
			}
			return err
		}},
		{"a container is created", func(p *pair, _ uint32) error {
			_, err := p.other.CreateContainer(bg, "db", core.ContainerSpec{ID: "new",
				PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}})
			return err
		}, func(p *pair, _ uint32) error {
			_, err := p.mine.Container("db", "new")
			return err
		}},
		{"the throughput of a database is replaced", func(p *pair, _ uint32) error {
			_, err := p.other.ReplaceDatabase(bg, core.DatabaseSpec{ID: "db", Throughput: throughput})
			return err
		}, func(p *pair, _ uint32) error {
			d, err := p.mine.Database("db")
			if err == nil && d.Throughput != throughput {
				err = fmt.Errorf("the throughput is %v", d.Throughput)
			}
			return err
		}},
		{"a function is replaced", func(p *pair, parent uint32) error {
			newer.Parent = parent
			_, err := p.other.ReplaceResource(bg, "db", "f", newer, nil)
			return err
		}, func(p *pair, parent uint32) error {
			r, err := p.mine.Resource("db", core.Function, parent, "f")
			if err == nil && string(r.Body) != "2" {
				err = fmt.Errorf("the body is %s", r.Body)
			}
			return err
		}},
		{"a function is dropped", func(p *pair, parent uint32) error {
			return p.other.DropResource(bg, "db", core.Function, parent, "f", nil)
		}, func(p *pair, parent uint32) error {
			_, err := p.mine.Resource("db", core.Function, parent, "f")
			return gone(err)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newPair(t, core.ContainerSpec{})
			put(t, p.c, core.Create, `{"id":"x","pk":"p"}`)
			f := function
			f.Parent = p.c.Num()
			if _, err := p.other.CreateResource(bg, "db", f); err != nil {
				t.Fatal(err)
			}
			if _, err := p.mine.Resource("db", core.Function, f.Parent, "f"); err != nil {
				t.Fatal(err)
			}
			p.trusts(t)
			if err := tc.change(p, f.Parent); err != nil {
				t.Fatal(err)
			}
			if err := tc.shown(p, f.Parent); err != nil {
				t.Error(err)
			}
		})
	}
}

// Of many requests few read the version. A process that has no requests for some seconds doesn't read it.
func TestTrustIsRenewed(t *testing.T) {
	for _, tc := range []struct {
		name    string
		request func(*core.Container) error
	}{
		{"reads", func(c *core.Container) error {
			_, err := c.Read(bg, pk("p"), value.StringOf("x"))
			return err
		}},
		{"writes", func(c *core.Container) error {
			_, err := c.Write(bg, core.Write{Kind: core.Upsert, Doc: mustDoc(t, `{"id":"x","pk":"p"}`)})
			return err
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := newPair(t, core.ContainerSpec{})
			put(t, p.c, core.Create, `{"id":"x","pk":"p"}`)
			p.trusts(t)
			p.of.reads.Store(0)
			requests := int32(0)
			for begun := time.Now(); time.Since(begun) < 3*catalog.TrustTime; requests++ {
				c, err := p.mine.Container("db", "c")
				if err == nil {
					err = tc.request(c)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if n := p.of.reads.Load(); n < 3 || n > max(20, requests/10) {
				t.Errorf("with %d requests the version was read %d times", requests, n)
			}
			for begun, n := time.Now(), int32(-1); n != p.of.reads.Load(); time.Sleep(5 * catalog.RenewTime) {
				if n = p.of.reads.Load(); time.Since(begun) > 30*time.Second {
					t.Fatal("the version is read for nobody")
				}
			}
		})
	}
}

// A version that can't be read again is trusted until its time is over, and no longer.
func TestTrustEnds(t *testing.T) {
	p := newPair(t, core.ContainerSpec{})
	lookUp := func() error {
		_, err := p.mine.Container("db", "c")
		return err
	}
	begun := time.Now()
	p.trusts(t)
	p.of.fails.Store(true)
	for ; time.Since(begun) < catalog.TrustTime/2; time.Sleep(time.Millisecond) {
		if err := lookUp(); err != nil && time.Since(begun) < catalog.TrustTime {
			t.Fatal(err)
		}
	}
	time.Sleep(catalog.TrustTime)
	if err := lookUp(); !status.Is(err, status.Unavailable) {
		t.Errorf("a look-up without a version: %v", err)
	}
	p.of.fails.Store(false)
	if err := lookUp(); err != nil {
		t.Error(err)
	}
}

// A process whose sign of life others may remove trusts nothing.
func TestNoTrustWithoutASignOfLife(t *testing.T) {
	p := newPair(t, core.ContainerSpec{})
	p.trusts(t)
	p.clk.Advance(50 * time.Minute)
	for range 5 {
		p.of.reads.Store(0)
		if _, err := p.mine.Container("db", "c"); err != nil || p.of.reads.Load() == 0 {
			t.Errorf("a look-up has read the version %d times, %v", p.of.reads.Load(), err)
		}
	}
}

// Where there are no other processes a change doesn't wait.
func TestChangesOfASingleProcess(t *testing.T) {
	e := opened(t, kvtest.NewShared(memkv.New(), 1).Engine(), core.Options{})
	if err := e.Announce(core.Announcement{Name: "the only one"}); err != nil {
		t.Fatal(err)
	}
	newContainer(t, e, core.ContainerSpec{})
	begun := time.Now()
	const changes = 20
	for i := range changes {
		if _, err := e.ReplaceDatabase(bg, core.DatabaseSpec{ID: "db",
			Throughput: core.Throughput{Manual: 400 + 100*(i%2)}}); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(begun); took > changes*catalog.AnswerTime/2 {
		t.Errorf("%d changes have taken %v", changes, took)
	}
}
