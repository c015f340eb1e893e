package core_test

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

// splitModel has the items that a container must have, by id, and changes them.
type splitModel struct {
	t     *testing.T
	c     *core.Container
	items map[string]string // JSON
	n     int
}

const modelItems = 150

func newSplitModel(t *testing.T, c *core.Container) *splitModel {
	m := &splitModel{t: t, c: c, items: map[string]string{}}
	for i := range modelItems {
		m.items[fmt.Sprint(i)] = splitDoc(i, 0)
		put(t, c, core.Create, splitDoc(i, 0))
	}
	return m
}

// change makes the next change: of one item, of two items that exchange their unique values, or to a value that another
// item has just had. A change that fails isn't applied.
func (m *splitModel) change() {
	m.n++
	i := m.n * 11 % 40
	id, other := fmt.Sprint(i), fmt.Sprint(i+40) // of one logical partition
	with := func(id int, u string) string {
		return fmt.Sprintf(`{"id":"%d","pk":"p%d","n":%d,"u":%q}`, id, id%40, m.n, u)
	}
	set := map[string]string{} // "": deleted
	switch m.n % 4 {
	case 0:
		set[id] = splitDoc(i, m.n)
	case 1:
		set[id], set[other] = with(i, other), with(i+40, id)
	case 2:
		set[id], set[other] = "", with(i+40, fmt.Sprintf("u%d.0", i))
	case 3:
		set[id], set[other] = with(i, fmt.Sprint("new", m.n)), ""
	}
	_, err := m.c.WithTx(bg, pk(fmt.Sprint("p", i%40)), func(tx *core.Tx) error {
		for id, text := range set {
			w := core.Write{Kind: core.Update, ID: value.StringOf(id)}
			w.Update = func(old *core.Item) (core.Change, error) {
				if text == "" {
					return core.Change{Delete: old != nil, Keep: old == nil}, nil
				}
				return core.Change{Doc: mustDoc(m.t, text)}, nil
			}
			if _, err := tx.Write(&w); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return
	}
	for id, text := range set {
		if m.items[id] = text; text == "" {
			delete(m.items, id)
		}
	}
}

// during makes changes beside a copy: before each of its commits that others can run beside, before it ingests, and
// while it adds keys to its tables: before one of so many of them.
func (m *splitModel) during(h *hooks, of int) {
	var inside atomic.Bool
	change := func() {
		if inside.CompareAndSwap(false, true) {
			m.change()
			inside.Store(false)
		}
	}
	added := 0
	h.set(func(s *hookSet) {
		s.pre = func(*kv.Batch) {
			if (calledBy("(*move).write") || calledBy("(*move).ingest")) && !calledBy("(*move).replace") {
				change()
			}
		}
		s.added = func() {
			if added++; added%of == 0 {
				change()
			}
		}
	})
}

// compare checks that the container has exactly the model's items.
func (m *splitModel) compare(when string) {
	m.t.Helper()
	got := map[string]string{}
	r, err := m.c.Query(bg, &exec.Query{})
	if err != nil {
		m.t.Fatal(err)
	}
	defer r.Close()
	for r.Next() {
		got[r.Item().ID().Str()] = json(r.Item())
	}
	want := map[string]string{}
	for id, text := range m.items {
		want[id] = json(&core.Item{Doc: mustDoc(m.t, text)})
	}
	if r.Err() != nil || !maps.Equal(got, want) || counted(m.c) != int64(len(want)) {
		m.t.Fatalf("%s: %v, %d items, counted %d, want %d", when, r.Err(), len(got), counted(m.c), len(want))
	}
}

// moves splits the container's two slots, and joins two of the four.
func moves(t *testing.T, c *core.Container) (done int) {
	at, middle := nested(4), slotMap(t, c).Slots
	for i, move := range []func() error{
		func() error { return c.SplitSlot(bg, at[0]) }, func() error { return c.SplitSlot(bg, at[2]) },
		func() error { return c.JoinSlots(bg, middle[len(middle)-1].Min) },
	} {
		if move() != nil {
			return i
		}
		done = i + 1
	}
	return done
}

// Wherever a process ends during splits and joins, the next one has all items and nothing else: nothing of a copy that
// was cut off, and nothing of a slot that was replaced. It can split slots itself.
func TestSplitCutAnywhere(t *testing.T) {
	race.Alone(t)
	t.Parallel()
	cuts := [4]int{}
	for stop, whole := int64(0), false; !whole; stop++ {
		mem := kv.Checked(memkv.New())
		e, err := core.Open(bg, notClosed{mem}, core.Options{MinSlots: 2})
		if err != nil {
			t.Fatal(err)
		}
		m := newSplitModel(t, newContainer(t, e, splitSpec()))
		_ = e.Close()
		d := &dying{Engine: mem, over: make(chan bool)}
		d.left.Store(stop)
		h := &hooks{Engine: d}
		if e, err = core.Open(bg, h, core.Options{}); err != nil {
			t.Fatal(err)
		}
		if m.c, err = e.Container("db", "c"); err != nil {
			t.Fatal(err)
		}
		m.during(h, 97)
		done := moves(t, m.c)
		for end := time.Now().Add(10 * time.Second); done == 3 && e.DropsLeft() > 0 && time.Now().Before(end); {
			select {
			case <-d.over:
				end = time.Time{}
			case <-time.After(100 * time.Microsecond):
			}
		}
		_ = e.Close()
		cuts[done]++
		whole = d.left.Load() > 0
		if e, err = core.Open(bg, notClosed{mem}, core.Options{}); err != nil {
			t.Fatal(err)
		}
		if m.c, err = e.Container("db", "c"); err != nil {
			t.Fatal(err)
		}
		when := fmt.Sprintf("change %d, %d moves", stop, done)
		m.compare(when)
		clean(t, e)
		onlySlots(t, mem, m.c)
		if err := m.c.SplitSlot(bg, []byte{0x07}); err != nil {
			t.Error(err)
		}
		m.compare(when + ", split again")
		clean(t, e)
		_ = e.Close()
		if t.Failed() {
			t.Fatal(when)
		}
	}
	if t.Logf("cuts after so many moves: %v", cuts); slices.Min(cuts[:]) < 3 {
		t.Errorf("too few cuts: %v", cuts)
	}
}

// Items change again and again while they are copied: between the copies of an item and of its entries too.
func TestSplitBesideManyChanges(t *testing.T) {
	for name, open := range map[string]func(t testing.TB) kv.Engine{
		"mem": func(testing.TB) kv.Engine { return kv.Checked(memkv.New()) }, "pebble": ownEngines["pebble"],
		"by commits": ownEngines["mem"],
	} {
		t.Run(name, func(t *testing.T) {
			h := &hooks{Engine: open(t)}
			e, err := core.Open(bg, h, core.Options{MinSlots: 2})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			m := newSplitModel(t, newContainer(t, e, splitSpec()))
			m.during(h, 13)
			before := m.n
			if done := moves(t, m.c); done != 3 {
				t.Fatalf("%d moves", done)
			}
			if m.n-before < 200 && name != "by commits" {
				t.Errorf("only %d changes", m.n-before)
			}
			m.compare("after the moves")
			clean(t, e)
			onlySlots(t, h.Engine, m.c)
		})
	}
}

// If the outcome of the commit that replaces slots is unknown, the store finds out whether it was applied, also if it
// can't be read at once.
func TestSplitOfUnknownOutcome(t *testing.T) {
	for _, applied := range []bool{false, true} {
		for _, readable := range []bool{false, true} {
			t.Run(fmt.Sprintf("applied %v, readable %v", applied, readable), func(t *testing.T) {
				e, h := hooked(t, core.Options{MinSlots: 2})
				m := newSplitModel(t, newContainer(t, e, splitSpec()))
				m.during(h, 97)
				unknown := func() error {
					if !calledBy("(*Catalog).ReplaceMap") {
						return nil
					}
					if !readable {
						h.set(func(s *hookSet) { s.refuse = func() error { return kv.ErrUnavailable } })
					}
					return kv.ErrUnknownOutcome
				}
				h.set(func(s *hookSet) {
					if applied {
						s.unsure = unknown
					} else {
						s.fail = unknown
					}
				})
				err := m.c.SplitSlot(bg, nested(4)[0])
				if ok := err == nil; ok != (applied && readable) {
					t.Errorf("the split: %v", err)
				}
				if !readable {
					wantCode(t, err, status.UnknownOutcome, 0)
				}
				h.set(func(s *hookSet) { s.fail, s.unsure, s.refuse, s.pre, s.added = nil, nil, nil, nil, nil })
				for range 50 {
					m.change()
				}
				m.compare("afterwards")
				if n := len(slotMap(t, m.c).Slots); n != 2 && !applied || n != 3 && applied {
					t.Errorf("%d slots", n)
				}
				if done := moves(t, m.c); done != 3 {
					t.Errorf("%d of 3 moves", done)
				}
				m.compare("after more moves")
			})
		}
	}
}

// A split whose context ends, or that a drop of the container overtakes, leaves nothing behind.
func TestSplitEndsEarly(t *testing.T) {
	e, h := hooked(t, core.Options{MinSlots: 1})
	m := newSplitModel(t, newContainer(t, e, splitSpec()))
	for _, during := range []string{"mark", "ingest", "round", "replace"} {
		failed := false
		h.set(func(s *hookSet) {
			s.fail = func() error {
				if !failed && calledBy("(*move)."+during) {
					failed = true
					return kv.ErrUnavailable
				}
				return nil
			}
		})
		m.change()
		err := m.c.SplitSlot(bg, []byte{0x20})
		h.set(func(s *hookSet) { s.fail = nil })
		if during == "round" && !failed { // there were no changes to write
			m.during(h, 97)
			err = m.c.JoinSlots(bg, []byte{0x20})
			h.set(func(s *hookSet) { s.pre, s.added = nil, nil })
			if err != nil {
				t.Fatal(err)
			}
			continue
		}
		wantCode(t, err, status.Unavailable, 0)
		m.compare(during)
		clean(t, e)
		onlySlots(t, h.Engine, m.c)
		if n := len(slotMap(t, m.c).Slots); n != 1 {
			t.Fatalf("%d slots after an error in %s", n, during)
		}
	}
	dropped := false
	h.set(func(s *hookSet) {
		s.pre = func(*kv.Batch) {
			if calledBy("(*move).ingest") && !dropped {
				dropped = true
				if err := e.DropContainer(bg, "db", "c"); err != nil {
					t.Error(err)
				}
			}
		}
	})
	h.set(func(s *hookSet) {
		s.visible = func() {
			if dropped && calledBy("hookTables.Ingest") && !calledBy("DropContainer") {
				t.Error("a container that was dropped gets keys")
			}
		}
	})
	wantCode(t, m.c.SplitSlot(bg, []byte{0x20}), status.NotFound, status.SubOwnerNotFound)
	for end := time.Now().Add(10 * time.Second); e.DropsLeft() > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if ks, _ := every(t, h.Engine); len(ks) > 0 || slotNotes(t, h.Engine) > 0 {
		t.Errorf("%d keys are left of a container that was dropped during a split, and %d notes", len(ks),
			slotNotes(t, h.Engine))
	}
}

// Slots of two physical partitions aren't joined, and calls that have nothing to do change nothing.
func TestSplitsThatDoNothing(t *testing.T) {
	e, _ := hooked(t, core.Options{MinSlots: 2})
	c := newContainer(t, e, core.ContainerSpec{Throughput: core.Throughput{Manual: 20000}})
	before := slotMap(t, c)
	if len(before.Partitions) != 2 || len(before.Slots) != 2 {
		t.Fatalf("%d partitions of %d slots", len(before.Partitions), len(before.Slots))
	}
	wantCode(t, c.JoinSlots(bg, before.Slots[1].Min), status.BadRequest, 0)
	wantCode(t, c.SplitSlot(bg, nil), status.BadRequest, 0)
	wantCode(t, c.SplitSlot(bg, make([]byte, 17)), status.BadRequest, 0)
	for _, err := range []error{
		c.SplitSlot(bg, before.Slots[1].Min), c.JoinSlots(bg, []byte{1}), c.JoinSlots(bg, nil),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if slotMap(t, c) != before {
		t.Error("the map has changed")
	}
	// A boundary that a split makes is in the slot's partition, and the boundary between partitions stays.
	if err := c.SplitSlot(bg, []byte{0x10}); err != nil {
		t.Fatal(err)
	}
	after := slotMap(t, c)
	if len(after.Slots) != 3 || after.Partitions[1].First != 2 || after.Partitions[1].ID != before.Partitions[1].ID {
		t.Errorf("the map is %+v", after)
	}
	if _, ok := after.Former(before.MapVersion, []byte{0x10}); ok {
		t.Error("the former map had the new boundary")
	}
	if max, ok := after.Former(before.MapVersion, nil); !ok || !slices.Equal(max, before.Slots[1].Min) {
		t.Errorf("the first slot ended at %x, %v", max, ok)
	}
	// Two changes of the map at once: both are made.
	if err := c.ChangeMap(bg, func(m *catalog.SlotMap) (*catalog.SlotMap, error) {
		next := *m
		next.MapVersion++
		next.NextPartition++
		return &next, nil
	}); err != nil {
		t.Fatal(err)
	}
	if m := slotMap(t, c); m.NextPartition != after.NextPartition+1 || m.MapVersion != after.MapVersion+1 {
		t.Errorf("the map is %+v", m)
	}
}
