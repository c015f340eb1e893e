package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// openSnapshots counts the open snapshots of an engine, and all that were opened.
type openSnapshots struct {
	kv.Engine
	open, most, all atomic.Int64
}

type countedSnapshot struct {
	kv.Snapshot
	e *openSnapshots
}

func (e *openSnapshots) Snapshot(ctx context.Context) (kv.Snapshot, error) {
	e.all.Add(1)
	e.most.Store(max(e.most.Load(), e.open.Add(1)))
	s, err := e.Engine.Snapshot(ctx)
	return countedSnapshot{s, e}, err
}

func (s countedSnapshot) Close() error {
	s.e.open.Add(-1)
	return s.Snapshot.Close()
}

func (e *openSnapshots) reset() {
	e.most.Store(0)
	e.all.Store(0)
}

// idle waits until no snapshot is open. Work that follows the first writes opens one too.
func (e *openSnapshots) idle(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(time.Minute); e.open.Load() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d snapshots are open", e.open.Load())
		}
	}
}

// longQueries are queries by all access paths whose rows have positions.
func longQueries() map[string]*exec.Query {
	field := func(name string) func(*core.Item) int64 {
		return func(it *core.Item) int64 { return doc.Get(it.Doc, name).Int() }
	}
	a, b := field("a"), field("b")
	one, two := value.Int32Of(1), value.Int32Of(2)
	from := access.Range(access.NewPath("b"), &access.Bound{Value: value.Int32Of(100), Inclusive: true}, nil)
	return map[string]*exec.Query{
		"scan": {},
		"scan with a filter that refuses nearly all": {Match: func(it *core.Item) (bool, error) {
			return b(it)%251 == 0, nil
		}},
		"equality": {Pred: access.Eq(access.NewPath("a"), one), Match: func(it *core.Item) (bool, error) {
			return a(it) == 1, nil
		}},
		"range": {Pred: from, Match: func(it *core.Item) (bool, error) { return b(it) >= 100, nil }},
		"union": {Pred: access.Or(access.Eq(access.NewPath("a"), one), access.Eq(access.NewPath("c"), two)),
			Match: func(it *core.Item) (bool, error) { return a(it) == 1 || field("c")(it) == 2, nil }},
		"partition": {PK: pk("1")},
		"ordered": {Pred: from, OrderBy: []exec.Order{{Path: access.NewPath("b")}}, Compare: value.CompareCosmos,
			Collation: access.JSONOrder},
	}
}

// A long query closes its view and continues by position in a new one. It never has two views, and the rows are the
// same.
func TestLongQueriesRenewTheirView(t *testing.T) {
	const items = 2000
	for _, age := range []time.Duration{0, 1} {
		s := &openSnapshots{Engine: kv.Checked(memkv.New())}
		e, err := core.Open(bg, s, core.Options{MinSlots: 2, ViewAge: age})
		if err != nil {
			t.Fatal(err)
		}
		c := newContainer(t, e, core.ContainerSpec{})
		putMany(t, c, items, func(i int) string {
			return fmt.Sprintf(`{"id":"%d","pk":"%d","a":%d,"b":%d,"c":%d}`, i, i%2, i%3, i, i%5)
		})
		for name, q := range longQueries() {
			s.idle(t)
			s.reset()
			got := ids(t, c, q)
			s.idle(t)
			if s.most.Load() > 2 { // a count of a path opens one for a moment
				t.Errorf("%s: at once there were %d snapshots", name, s.most.Load())
			}
			if age == 1 && s.all.Load() < 5 {
				t.Errorf("%s: its state was renewed %d times", name, s.all.Load()-1)
			}
			if want := paged(t, c, *q, 300); !slices.Equal(got, want) {
				t.Errorf("%s, age %v: %d rows, in pages %d", name, age, len(got), len(want))
			}
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A slow reader of a sort's rows continues in a new view too.
func TestASlowReaderOfASortRenewsItsView(t *testing.T) {
	s := &openSnapshots{Engine: kv.Checked(memkv.New())}
	e, err := core.Open(bg, s, core.Options{MinSlots: 2, ViewAge: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	c := newContainer(t, e, core.ContainerSpec{})
	putMany(t, c, 300, func(i int) string { return fmt.Sprintf(`{"id":"%d","pk":"%d","a":%d}`, i, i%2, i%3) })
	q := &exec.Query{OrderBy: []exec.Order{{Path: access.NewPath("a"), Desc: true}}, Compare: value.CompareCosmos}
	want := ids(t, c, q)
	s.reset()
	r, err := c.Query(bg, q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var got []string
	for r.Next() {
		if got = append(got, r.Item().ID().Str()); len(got)%64 == 60 {
			time.Sleep(60 * time.Millisecond)
		}
	}
	if r.Err() != nil || !slices.Equal(got, want) || s.all.Load() < 4 {
		t.Errorf("%d rows of %d, in %d states: %v", len(got), len(want), s.all.Load(), r.Err())
	}
}

// Rows that combine several items can't continue by position: such a query is ended when its view is far too old.
func TestAViewThatCantBeRenewedIsGivenUp(t *testing.T) {
	s := &openSnapshots{Engine: kv.Checked(memkv.New())}
	e, err := core.Open(bg, s, core.Options{MinSlots: 2, ViewAge: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	c := newContainer(t, e, core.ContainerSpec{})
	putMany(t, c, 500, func(i int) string { return fmt.Sprintf(`{"id":"%d","pk":"%d","a":%d}`, i, i%2, i%7) })
	a := access.NewPath("a")
	r, err :=
		c.Query(bg, &exec.Query{Pred: access.Range(a, &access.Bound{Value: value.Int32Of(0), Inclusive: true}, nil),
			Needs: []access.Path{a}, Whole: true})
	if err != nil {
		t.Fatal(err)
	}
	for r.Next() {
		time.Sleep(10 * time.Nanosecond)
	}
	if err := r.Err(); !status.Is(err, status.Unavailable) || !errors.Is(err, kv.ErrSnapshotTooOld) {
		t.Errorf("a query of a state that is too old: %v", err)
	}
	r.Close()
	s.idle(t)
}

// A query that continues after its container was dropped ends with an error.
func TestALongQueryMeetsADrop(t *testing.T) {
	e, _ := hooked(t, core.Options{MinSlots: 1, ViewAge: 1})
	c := newContainer(t, e, core.ContainerSpec{})
	putMany(t, c, 500, func(i int) string { return fmt.Sprintf(`{"id":"%d","pk":"a"}`, i) })
	r, err := c.Query(bg, &exec.Query{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	r.Next()
	if err := e.DropContainer(bg, "db", "c"); err != nil {
		t.Fatal(err)
	}
	for r.Next() {
	}
	wantCode(t, r.Err(), status.NotFound, status.SubOwnerNotFound)
}
