package core_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/epk"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/status"
)

// changed is the store of a process whose next look comes after a change by another process, if change is set.
type changed struct {
	*kvtest.Process
	change  atomic.Pointer[func()]
	trusted atomic.Bool  // the first look after the change didn't read the version of the catalog
	looks   atomic.Int32 // reads of that version with other keys
}

func (p *changed) Snapshot(ctx context.Context) (kv.Snapshot, error) {
	change := p.change.Swap(nil)
	if change != nil {
		(*change)()
	}
	s, err := p.Process.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	snap := &changedSnap{Snapshot: s, of: p, first: new(atomic.Bool)}
	snap.first.Store(change != nil)
	return snap, nil
}

// changedSnap is a snapshot of a changed store.
type changedSnap struct {
	kv.Snapshot
	of    *changed
	first *atomic.Bool // its next read is the first one after the change
}

func (s *changedSnap) With(ctx context.Context) kv.Snapshot {
	return &changedSnap{kv.With(ctx, s.Snapshot), s.of, s.first}
}

func (s *changedSnap) GetMany(v *kv.Values, names [][]byte) error {
	reads := slices.ContainsFunc(names, func(name []byte) bool { return string(name) == string(catalog.VersionKey()) })
	if s.first.Swap(false) && !reads {
		s.of.trusted.Store(true)
	}
	if reads {
		s.of.looks.Add(1)
	}
	return s.Snapshot.GetMany(v, names)
}

// catalogChange is a change that another process makes between two commits.
type catalogChange struct {
	name   string
	spec   core.ContainerSpec
	change func(*processes) error // by the second process
	write  string                 // what the first process creates after it. There is item x, with u = 1
	code   status.Code            // of that
	then   func(*testing.T, *core.Container)
}

// respec replaces the definition of the container.
func respec(ps *processes, f func(*core.ContainerSpec)) error {
	spec := ps.container(1).Spec().Clone()
	f(&spec)
	_, err := ps.all[1].ReplaceContainer(bg, "db", "c", spec)
	return err
}

// relive replaces the life of items, and lets a minute pass.
func relive(ps *processes, ttl *int32) error {
	err := respec(ps, func(s *core.ContainerSpec) { s.DefaultTTL = ttl })
	for _, clk := range ps.clks {
		clk.Advance(time.Minute)
	}
	return err
}

func catalogChanges() []catalogChange {
	const x, y = `{"id":"x","pk":"p","u":1}`, `{"id":"y","pk":"p","u":1}`
	ten := int32(10)
	var begun feed.Position
	return []catalogChange{
		{"items begin to expire", core.ContainerSpec{},
			func(ps *processes) error { return relive(ps, &ten) }, x, 0, nil},
		{"items don't expire any more", core.ContainerSpec{DefaultTTL: &ten},
			func(ps *processes) error { return relive(ps, nil) }, x, status.Conflict, nil},
		{"a unique index is declared", core.ContainerSpec{},
			func(ps *processes) error { return declare(ps.all[1], uniqueIn("u", "u")) }, y, status.Conflict, nil},
		{"a unique index is dropped", core.ContainerSpec{Declared: []core.Declared{uniqueIn("u", "u")}},
			func(ps *processes) error { return declare(ps.all[1]) }, y, 0, nil},
		{"the slot is split", core.ContainerSpec{},
			func(ps *processes) error { return ps.container(1).SplitSlot(bg, epk.Split(epk.V2, 32)[3]) }, y, 0, nil},
		{"the indexing policy is replaced", core.ContainerSpec{IndexingPolicy: []byte(noIndex)},
			func(ps *processes) error {
				return respec(ps, func(s *core.ContainerSpec) { s.IndexingPolicy = nil })
			}, y, 0, func(t *testing.T, c *core.Container) {
				if err := c.WaitIndex(bg); err != nil {
					t.Fatal(err)
				}
				if got := ids(t, c, eqQuery("u", 1)); len(got) != 2 {
					t.Errorf("the query finds %v", got)
				}
			}},
		{"a log begins", core.ContainerSpec{}, func(ps *processes) error {
			err := respec(ps, func(s *core.ContainerSpec) { s.LogMinutes = 10 })
			if err == nil {
				begun, err = ps.container(1).FeedVersionsNow(bg, feed.Scope{})
			}
			return err
		}, y, 0, func(t *testing.T, c *core.Container) {
			if got, _ := versions(t, c, feed.Scope{}, begun, 10); len(got) != 1 {
				t.Errorf("the log has %d changes", len(got))
			}
		}},
		{"the container is dropped", core.ContainerSpec{},
			func(ps *processes) error { return ps.all[1].DropContainer(bg, "db", "c") }, y, status.NotFound, nil},
	}
}

// What a commit must know of the catalog it knows also when it trusts the version that the commit before was shown, and
// another process has changed the catalog in between.
func TestTrustedVersionIsOld(t *testing.T) {
	for _, tc := range catalogChanges() {
		t.Run(tc.name, func(t *testing.T) {
			for range 50 { // a version is trusted for a short time only
				if tc.run(t) {
					return
				}
			}
			t.Error("no commit has trusted a version")
		})
	}
}

// run reports whether the commit after the change has trusted. Otherwise it has checked nothing: the change may have
// come later, in a look of another request.
func (tc *catalogChange) run(t *testing.T) bool {
	ps := startProcesses(t, 2, kvtest.Faults{})
	newContainer(t, ps.all[1], tc.spec)
	of := &changed{Process: ps.store.Engine()}
	c, err := opened(t, of, ps.options(0)).Container("db", "c")
	if err != nil {
		t.Fatal(err)
	}
	put(t, c, core.Create, `{"id":"x","pk":"p","u":1}`)
	other := ps.container(1)
	made := make(chan error, 1)
	change := func() { made <- tc.change(ps) }
	put(t, c, core.Create, `{"id":"other","pk":"p"}`)
	of.change.Store(&change)
	_, err = c.Write(bg, core.Write{Kind: core.Create, Doc: mustDoc(t, tc.write)})
	if of.change.Swap(nil) != nil {
		return false
	}
	if failed := <-made; !of.trusted.Load() {
		return false
	} else if failed != nil {
		t.Fatal(failed)
	}
	if err == nil && tc.code != 0 || err != nil && !status.Is(err, tc.code) {
		t.Fatalf("the write: %v, want code %d", err, tc.code)
	}
	if tc.then != nil {
		tc.then(t, other)
	}
	return true
}

// A version is trusted for a short time, and then read again.
func TestTrustEnds(t *testing.T) {
	ps := startProcesses(t, 1, kvtest.Faults{})
	newContainer(t, ps.all[0], core.ContainerSpec{})
	of := &changed{Process: ps.store.Engine()}
	c, err := opened(t, of, ps.options(0)).Container("db", "c")
	if err != nil {
		t.Fatal(err)
	}
	write := func() { put(t, c, core.Upsert, `{"id":"x","pk":"p"}`) }
	write()
	of.looks.Store(0)
	const writes = 200
	for range writes {
		write()
	}
	if n := of.looks.Load(); n > writes/2 {
		t.Errorf("%d of %d commits have read the version", n, writes)
	}
	time.Sleep(150 * time.Millisecond)
	of.looks.Store(0)
	if write(); of.looks.Load() == 0 {
		t.Error("after a pause no commit has read the version")
	}
}
