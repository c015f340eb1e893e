package core_test

import (
	"fmt"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

// The planner counts index entries to choose a plan. That costs a small part of the query for any conditions: counting
// an entry costs a tenth of fetching an item.
func TestCountingIsBounded(t *testing.T) {
	race.Alone(t)
	e, _ := hooked(t, core.Options{MinSlots: 2})
	c := newContainer(t, e, core.ContainerSpec{})
	var ws []core.Write
	for i := range 12000 {
		ws = append(ws, core.Write{Kind: core.Create, Doc: mustDoc(t, fmt.Sprintf(
			`{"id":"%d","pk":"p%d","one":%d,"rare":%d,"some":%d,"common":%d,"n":%d}`, i, i%50, i, i%600, i%40, i%3,
			i))})
	}
	for _, o := range c.WriteMany(bg, ws, true) {
		if o.Err != nil {
			t.Fatal(o.Err)
		}
	}
	eq := func(field string) *access.Pred { return access.Eq(access.NewPath(field), value.Int32Of(2)) }
	above := func(n int32) *access.Pred {
		return access.Range(access.NewPath("n"), &access.Bound{Value: value.Int32Of(n)}, nil)
	}
	for name, x := range map[string]struct {
		pred *access.Pred
		most int // entries that may be counted
	}{
		"one equality":                     {eq("rare"), 0},
		"rare and common":                  {access.And(eq("rare"), eq("common")), 250},
		"two that are rare":                {access.And(eq("rare"), eq("some")), 250},
		"two that are common":              {access.And(eq("common"), eq("some")), 900},
		"three":                            {access.And(eq("one"), eq("rare"), eq("common")), 250},
		"a wide range":                     {above(1000), 2100},
		"a narrow range":                   {above(11900), 300},
		"a narrow range and what's common": {access.And(above(11900), eq("common")), 900},
		"alternatives that are too many":   {access.Or(eq("common"), above(50)), 4200},
	} {
		rows, err := c.Query(bg, &exec.Query{Pred: x.pred})
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
		}
		s := rows.Stats()
		if rows.Err() != nil || s.Counted > x.most {
			t.Errorf("%s: %d entries were counted, at most %d are wanted (%s, %v)", name, s.Counted, x.most,
				s.Plan.Explain(), rows.Err())
		}
		if cost := s.Entries - s.Counted + 10*s.Items; s.Counted > 250+cost/4 {
			t.Errorf("%s: %d entries were counted for a query that costs %d (%s)", name, s.Counted, cost,
				s.Plan.Explain())
		}
		rows.Close()
		explainIsBounded(t, c, name, x.pred)
	}
}

// explainIsBounded asserts that EXPLAIN counts a bounded part of each leaf, and tells where it stopped.
func explainIsBounded(t *testing.T, c *core.Container, name string, p *access.Pred) {
	t.Helper()
	rows, err := c.Query(bg, &exec.Query{Pred: p, Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	const perSlot, perLeaf = 2048, 2 * 2048
	e, leaves := rows.Explain(false), 1
	if p.Op == access.OpAnd || p.Op == access.OpOr {
		leaves = len(p.Kids)
	}
	if n := rows.Stats().Explained; n == 0 || n > leaves*perLeaf {
		t.Errorf("%s: %d entries were counted for EXPLAIN, at most %d are wanted", name, n, leaves*perLeaf)
	}
	for _, s := range append(e.Rejected, e.Plan) {
		if s.Rows == nil || s.Op != "Scan" && (*s.Rows < perSlot && s.AtLeast || *s.Rows >= perLeaf && !s.AtLeast) {
			t.Errorf("%s: at least is %v: %s", name, s.AtLeast, e)
		}
	}
}

// uncountable is a snapshot in which index entries can't be counted: Iter fails, or the iterator does.
type uncountable struct {
	kv.Snapshot
	breaks bool
}

func (s uncountable) Iter(lo, hi []byte) (kv.Iterator, error) {
	if !calledBy("(*builder).countEntries") {
		return s.Snapshot.Iter(lo, hi)
	}
	if !s.breaks {
		return nil, kv.ErrUnavailable
	}
	it, err := s.Snapshot.Iter(lo, hi)
	return broken{it}, err
}

// broken is an iterator that fails at its first step.
type broken struct{ kv.Iterator }

func (broken) First() bool { return false }
func (broken) Err() error  { return kv.ErrUnavailable }

// An error during counting ends the query. It isn't taken for a count of 0, which would look selective.
func TestCountingTellsErrors(t *testing.T) {
	e, h := hooked(t, core.Options{MinSlots: 2})
	c := newContainer(t, e, core.ContainerSpec{})
	for i := range 20 {
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p%d","a":%d,"b":%d}`, i, i, i%2, i%3))
	}
	one := value.Int32Of(1)
	q := exec.Query{Pred: access.And(access.Eq(access.NewPath("a"), one), access.Eq(access.NewPath("b"), one))}
	for _, breaks := range []bool{false, true} {
		h.set(func(on *hookSet) {
			on.snapshot = func(take func() kv.Snapshot) kv.Snapshot { return uncountable{take(), breaks} }
		})
		rows, err := c.Query(bg, &q)
		if err == nil {
			rows.Close()
		}
		if status.CodeOf(err) != status.Unavailable {
			t.Errorf("breaks %t: %v", breaks, err)
		}
	}
	h.set(func(on *hookSet) { on.snapshot = nil })
	if n := len(ids(t, c, &q)); n != 20 { // without Match all candidates of a scan are rows
		t.Errorf("%d rows afterwards, want 20", n)
	}
}
