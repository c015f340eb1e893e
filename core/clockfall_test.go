package core_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/internal/testlog"
)

const day = 24 * time.Hour

// fallStore is a store whose clock a test sets.
type fallStore struct {
	t    *testing.T
	eng  kv.Engine
	clk  *clock.Clock
	log  *testlog.Lines
	e    *core.Engine
	c    *core.Container
	want []string // ids, in the order of their last writes
	ts   map[string]int64
	any  bool // ignore the times
}

func newFallStore(t *testing.T, spec core.ContainerSpec) *fallStore {
	s := &fallStore{t: t, eng: kv.Checked(memkv.New()), clk: clock.Fake(time.Unix(1_700_000_000, 0)),
		log: &testlog.Lines{}, ts: map[string]int64{}}
	s.open()
	s.c = newContainer(t, s.e, spec)
	t.Cleanup(func() {
		clean(t, s.e)
		_ = s.e.Close()
	})
	return s
}

func (s *fallStore) open() {
	var err error
	s.e, err = core.Open(bg, notClosed{s.eng}, core.Options{Clock: s.clk, MinSlots: 1, Logger: s.log.Logger()})
	if err == nil && s.c != nil {
		s.c, err = s.e.Container("db", "c")
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *fallStore) reopen() {
	_ = s.e.Close()
	s.open()
}

// put writes an item at the clock's time plus off.
func (s *fallStore) put(id string, off time.Duration) {
	s.t.Helper()
	it := put(s.t, s.c, core.Upsert, fmt.Sprintf(`{"id":%q,"pk":"p"}`, id)).Item
	if want := s.clk.Now().Add(off).Unix(); it.TS() != want && !s.any {
		s.t.Errorf("item %s has the time %d, want %d", id, it.TS(), want)
	}
	s.want = append(slices.DeleteFunc(s.want, func(w string) bool { return w == id }), id)
	s.ts[id] = it.TS()
}

// since checks that the feed from a time has exactly the items that were written then or later, in the order of writes.
func (s *fallStore) since(at int64) {
	s.t.Helper()
	var want, got []string
	for _, id := range s.want {
		if s.ts[id] >= at {
			want = append(want, id)
		}
	}
	pos := feed.Start()
	for more := true; more; {
		p, err := s.c.Feed(bg, feed.Scope{Since: at}, pos, 3)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, it := range p.Items {
			got = append(got, it.ID().Str())
		}
		pos, more = p.Next, p.More
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("the feed from %d has %v, want %v", at, got, want)
	}
}

// everySince checks the feed from every time at which something was written, and from times near those.
func (s *fallStore) everySince() {
	s.t.Helper()
	for _, at := range s.ts {
		for d := int64(-1); d <= 1; d++ {
			s.since(at + d)
		}
	}
}

// A clock that was a day ahead is corrected: from then on everything that depends on times uses the correct ones.
func TestClockFalls(t *testing.T) {
	s := newFallStore(t, core.ContainerSpec{})
	for i := range 10 {
		s.put(fmt.Sprint("before", i), 0)
		s.clk.Advance(time.Second)
	}
	s.clk.Advance(day)
	for i := range 10 {
		s.put(fmt.Sprint("ahead", i), 0)
		s.clk.Advance(time.Second)
	}
	s.put("changed", 0)
	first, err := s.c.Read(bg, pk("p"), put(t, s.c, core.Upsert, `{"id":"changed","pk":"p"}`).Item.ID())
	if err != nil {
		t.Fatal(err)
	}
	s.reopen()
	s.clk.Advance(-day)
	for i := range 10 {
		s.put(fmt.Sprint("after", i), 0)
		s.clk.Advance(time.Second)
	}
	s.put("ahead3", 0) // an item with a time in the future is returned too
	s.put("changed", 0)
	again, err := s.c.Read(bg, pk("p"), first.ID())
	if err != nil {
		t.Fatal(err)
	}
	if again.ETag() == first.ETag() || again.LSN <= first.LSN {
		t.Errorf("etags %v and %v, LSNs %d and %d", first.ETag(), again.ETag(), first.LSN, again.LSN)
	}
	s.everySince()
	s.reopen()
	s.everySince()
	if n := s.log.Count("The clock is before"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, s.log)
	}
	s.clk.Advance(-day)
	s.put("and once more", 0)
	s.everySince()
	if n := s.log.Count("The clock is before"); n != 2 {
		t.Errorf("%d warnings after another fall:\n%s", n, s.log)
	}
}

// A container with several slots begins an epoch in each slot, and logs one warning.
func TestClockFallsOnceForAllSlots(t *testing.T) {
	clk, log := clock.Fake(time.Unix(1_700_000_000, 0)), &testlog.Lines{}
	e, err := core.Open(bg, memkv.New(), core.Options{Clock: clk, MinSlots: 4, Logger: log.Logger()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	c := newContainer(t, e, core.ContainerSpec{})
	for n := range 2 {
		for i := range 50 {
			if ts := put(t, c, core.Upsert, fmt.Sprintf(`{"id":"%d","pk":"p%d"}`, i, i)).Item.TS(); ts !=
				clk.Now().Unix() {
				t.Errorf("round %d: the time is %d, the clock's %d", n, ts, clk.Now().Unix())
			}
		}
		clk.Advance(-day)
	}
	if n := log.Count("The clock is before"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, log)
	}
	clean(t, e)
}

// Two processes whose clocks are a day apart write in turn. The one that is behind doesn't warn with each of its
// writes.
func TestClocksApartAreToldOnce(t *testing.T) {
	store, log := kvtest.NewShared(memkv.New(), 1), &testlog.Lines{}
	var cs []*core.Container
	for i := range 2 {
		clk := clock.Fake(time.Unix(1_700_000_000, 0).Add(time.Duration(i) * day))
		e, err := core.Open(bg, store.Engine(), core.Options{Clock: clk, Logger: log.Logger()})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		if i == 0 {
			newContainer(t, e, core.ContainerSpec{})
		}
		c, err := e.Container("db", "c")
		if err != nil {
			t.Fatal(err)
		}
		cs = append(cs, c)
	}
	for i := range 20 {
		put(t, cs[(i+1)%2], core.Create, fmt.Sprintf(`{"id":"%d","pk":"p"}`, i))
	}
	if n := log.Count("The clock is before"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, log)
	}
}

// A clock is set back a little: times don't grow until the clock has caught up.
func TestClockFallsALittle(t *testing.T) {
	s := newFallStore(t, core.ContainerSpec{})
	s.put("a", 0)
	s.clk.Advance(-3 * time.Second)
	s.put("b", 3*time.Second)
	s.clk.Advance(2 * time.Second)
	s.put("a", time.Second)
	s.everySince()
	if n := s.log.Count("The clock is before"); n != 0 {
		t.Errorf("it warns:\n%s", s.log)
	}
}

// All items of a commit have one time, also if one of them replaces a version of the time before the clock was set
// back: a reader from a time finds each of them.
func TestCommitHasOneTime(t *testing.T) {
	s := newFallStore(t, core.ContainerSpec{})
	begin := s.clk.Now()
	s.clk.Set(begin.Add(10 * time.Second))
	s.put("a", 0)
	s.clk.Set(begin.Add(3 * time.Second)) // an epoch begins
	s.put("b", 0)
	s.clk.Set(begin.Add(7 * time.Second))
	_, err := s.c.WithTx(bg, pk("p"), func(tx *core.Tx) error {
		for _, id := range []string{"c", "a"} {
			w := core.Write{Kind: core.Upsert, Doc: mustDoc(t, fmt.Sprintf(`{"id":%q,"pk":"p"}`, id))}
			if _, err := tx.Write(&w); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.c.Feed(bg, feed.Scope{}, feed.Start(), 10)
	if err != nil || len(p.Items) != 3 || p.Items[1].TS() != p.Items[2].TS() {
		t.Fatalf("the feed has %d items, %v", len(p.Items), err)
	}
	last := p.Items[2]
	p, err = s.c.Feed(bg, feed.Scope{Since: last.TS()}, feed.Start(), 10)
	if err != nil || len(p.Items) != 2 {
		t.Errorf("since the time of the commit the feed has %d items, want 2, %v", len(p.Items), err)
	}
}

// A clock is set back again and again: the head keeps a bounded number of epochs, and no change is missed.
func TestClockFallsOften(t *testing.T) {
	ttl := int32(1000)
	s := newFallStore(t, core.ContainerSpec{DefaultTTL: &ttl})
	s.any = true // some steps are small
	for n := range 60 {
		s.clk.Advance(time.Duration(7*n%50) * time.Second)
		s.put(fmt.Sprint("x", n), 0)
		s.clk.Advance(2 * time.Second)
		s.put(fmt.Sprint("y", n), 0)
		s.clk.Advance(-time.Duration(11*n%60+6) * time.Second)
		if n%20 == 19 {
			s.reopen()
		}
	}
	s.everySince()
	clean(t, s.e)
	all := len(s.want)
	s.clk.Advance(2 * day)
	if n := s.e.Reap(bg); n != all {
		t.Errorf("%d items of %d expired ones were removed", n, all)
	}
	if n := counted(s.c); n != 0 {
		t.Errorf("%d items are left", n)
	}
}

// Items expire by their own times: items that were written while the clock was ahead stay, and don't keep others.
func TestExpiryOverEpochs(t *testing.T) {
	ttl := int32(100)
	s := newFallStore(t, core.ContainerSpec{DefaultTTL: &ttl})
	for i := range 3 {
		s.put(fmt.Sprint("before", i), 0)
	}
	s.clk.Advance(day)
	for i := range 3 {
		s.put(fmt.Sprint("ahead", i), 0)
	}
	s.clk.Advance(-day)
	for i := range 3 {
		s.put(fmt.Sprint("after", i), 0)
	}
	put(t, s.c, core.Create, `{"id":"own","pk":"p","ttl":50}`)
	s.clk.Advance(60 * time.Second)
	if n := s.e.Reap(bg); n != 1 {
		t.Errorf("%d items are removed after 60 seconds", n)
	}
	s.clk.Advance(60 * time.Second)
	if n := s.e.Reap(bg); n != 6 {
		t.Errorf("%d items are removed after 120 seconds", n)
	}
	if n := counted(s.c); n != 3 {
		t.Errorf("%d items are left", n)
	}
	s.clk.Advance(day)
	if n := s.e.Reap(bg); n != 3 {
		t.Errorf("%d items are removed after a day", n)
	}
}
