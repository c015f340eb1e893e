package core_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

// randomWrites are writes of every kind. Some fail: by their kind, by a check, by a missing id, by the limit of a
// logical partition. Items occur more than once.
func randomWrites(t *testing.T, r *rand.Rand, n int) []core.Write {
	ws := make([]core.Write, n)
	for i := range ws {
		id, key := fmt.Sprint(r.IntN(60)), fmt.Sprintf("p%d", r.IntN(12))
		d := mustDoc(t, fmt.Sprintf(`{"id":%q,"pk":%q,"n":%d,"u":%d,"v":[%d,2]}`, id, key, i, r.IntN(1000), r.IntN(5)))
		w := core.Write{Kind: core.WriteKind(r.IntN(5)), Doc: d}
		switch w.Kind {
		case core.Delete:
			w.Doc, w.PK, w.ID = nil, pk(key), value.StringOf(id)
		case core.Update:
			w.Doc, w.PK, w.ID = nil, pk(key), value.StringOf(id)
			w.Update = func(old *core.Item) (core.Change, error) {
				switch {
				case old == nil:
					return core.Change{Keep: true}, nil
				case doc.Get(old.Doc, "n").Int()%7 == 0:
					return core.Change{Delete: true}, nil
				case doc.Get(old.Doc, "n").Int()%5 == 0:
					return core.Change{}, status.New(status.BadRequest, "no")
				}
				return core.Change{
					Doc: mustDoc(t, fmt.Sprintf(`{"id":%q,"pk":%q,"n":%d,"u":%d}`, id, key, doc.Get(old.Doc, "n").Int()+
						1, 1000+i+r.IntN(1000)))}, nil
			}
			seed := r.Uint64()
			inner := w.Update
			w.Update = func(old *core.Item) (core.Change, error) { // gives the same result each time it runs
				*r = *rand.New(rand.NewPCG(seed, 1))
				return inner(old)
			}
		}
		if r.IntN(15) == 0 {
			w.Check = func(old *core.Item) error {
				if old != nil && doc.Get(old.Doc, "n").Int()%2 == 0 {
					return status.New(status.PreconditionFailed, "no")
				}
				return nil
			}
		}
		if r.IntN(40) == 0 {
			w = core.Write{Kind: core.Create, Doc: mustDoc(t, `{"pk":"x"}`)}
		}
		ws[i] = w
	}
	return ws
}

// slotID returns the id of a slot; 0 for nil.
func slotID(s *core.Slot) uint32 {
	if s == nil {
		return 0
	}
	return s.ID()
}

// WriteMany has the same result as its writes one by one: outcomes, items and feed.
func TestWriteManyIsItsWrites(t *testing.T) {
	race.Alone(t)
	t.Parallel()
	for name, spec := range map[string]core.ContainerSpec{"plain": {}, "unique": {UniqueKeys: [][]string{{"/u"}}}} {
		for _, ordered := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, ordered %v", name, ordered), func(t *testing.T) {
				e, _ := hooked(t, core.Options{MinSlots: 4, MaxLogicalPartition: 900})
				spec.ID = "a"
				a := newContainer(t, e, spec)
				spec.ID = "b"
				b := newContainer(t, e, spec)
				failed := 0
				for round := range 60 {
					n := 1 + rand.New(rand.NewPCG(uint64(round), 2)).IntN(150)
					both := [2][]core.Outcome{}
					both[0] = a.WriteMany(bg, randomWrites(t, rand.New(rand.NewPCG(uint64(round), 3)), n), ordered)
					for _, w := range randomWrites(t, rand.New(rand.NewPCG(uint64(round), 3)), n) {
						res, err := b.Write(bg, w)
						both[1] = append(both[1], core.Outcome{Result: res, Err: err})
						if err != nil && ordered {
							break
						}
					}
					if len(both[0]) != len(both[1]) {
						t.Fatalf("round %d: %d outcomes, want %d", round, len(both[0]), len(both[1]))
					}
					for i, o := range both[0] {
						w := both[1][i]
						if o.Err != nil {
							failed++
						}
						if status.CodeOf(o.Err) != status.CodeOf(w.Err) || o.Result.Created != w.Result.Created ||
							o.Result.Deleted != w.Result.Deleted ||
							o.Result.Kept != w.Result.Kept || (o.Result.Item == nil) != (w.Result.Item == nil) ||
							o.Result.Charge != w.Result.Charge || slotID(o.Result.Slot) != slotID(w.Result.Slot) {
							t.Fatalf("round %d, write %d: %+v, want %+v", round, i, o, w)
						}
						if it := o.Result.Item; it != nil && o.Err == nil &&
							(json(it) != json(w.Result.Item) || !o.Result.Kept && it.LSN != o.Result.LSN) {
							t.Fatalf("round %d, write %d: %s at %d, want %s", round, i, json(it), it.LSN,
								json(w.Result.Item))
						}
					}
				}
				if failed < 20 {
					t.Errorf("only %d writes failed", failed)
				}
				if x, y := feedOf(t, a), feedOf(t, b); !slices.Equal(x, y) || len(x) < 10 {
					t.Errorf("the feed has\n%v, want\n%v", x, y)
				}
				page, err := a.ChangeFeed(bg, "", feed.Start(), 3)
				if err != nil || len(page.Items) != 3 {
					t.Errorf("a page of 3 has %d items (%v)", len(page.Items), err)
				}
			})
		}
	}
}

// feedOf lists the items of a container in the order of their last writes, slot by slot.
func feedOf(t *testing.T, c *core.Container) (out []string) {
	t.Helper()
	for _, p := range partitionsOf(c) {
		page, err := c.ChangeFeed(bg, p.ID, feed.Start(), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		bySlot := map[uint32][]string{} // by id; ids are 1, 2, .. in the order of placements
		for _, it := range page.Items {
			k, _, _ := c.KeyOf(it.Doc)
			s, _ := c.SlotOf(k)
			bySlot[s.ID()] = append(bySlot[s.ID()], json(it))
		}
		for s := range uint32(65) {
			out = append(out, bySlot[s]...)
		}
	}
	return out
}

// Writes that share a commit run concurrently with other writers of the same items.
func TestWriteManyMeetsWriters(t *testing.T) {
	e, _ := hooked(t, core.Options{MinSlots: 4})
	c := newContainer(t, e, core.ContainerSpec{})
	const items, rounds, writers = 40, 30, 4
	inc := func(old *core.Item) (core.Change, error) {
		return core.Change{
			Doc: mustDoc(t, fmt.Sprintf(`{"id":%q,"pk":%q,"n":%d}`, old.ID().Str(), doc.Get(old.Doc, "pk").Str(),
				doc.Get(old.Doc, "n").Int()+1))}, nil
	}
	for i := range items {
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p%d","n":0}`, i, i%7))
	}
	var wg waiter
	for w := range writers {
		wg.Go(func() {
			for range rounds {
				ws := make([]core.Write, items)
				for i := range ws {
					ws[i] = core.Write{Kind: core.Update, PK: pk(fmt.Sprintf("p%d", i%7)),
						ID: value.StringOf(fmt.Sprint(i)), Update: inc}
				}
				for i, o := range c.WriteMany(bg, ws, w%2 == 0) {
					if o.Err != nil {
						t.Errorf("write %d: %v", i, o.Err)
					}
				}
			}
		})
	}
	wg.Wait()
	for i := range items {
		it, err := c.Read(bg, pk(fmt.Sprintf("p%d", i%7)), value.StringOf(fmt.Sprint(i)))
		if err != nil || doc.Get(it.Doc, "n").Int() != rounds*writers {
			t.Fatalf("item %d: %v", i, err)
		}
	}
}

// If the engine refuses a commit of several writes, each of them gets the error. After an unknown outcome the slots
// continue.
func TestWriteManyFails(t *testing.T) {
	for name, set := range map[string]func(*hookSet){
		"unavailable":          func(h *hookSet) { h.fail = func() error { return kv.ErrUnavailable } },
		"unknown, not applied": func(h *hookSet) { h.fail = func() error { return kv.ErrUnknownOutcome } },
		"unknown, applied":     func(h *hookSet) { h.unsure = func() error { return kv.ErrUnknownOutcome } },
	} {
		for _, ordered := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, ordered %v", name, ordered), func(t *testing.T) {
				e, h := hooked(t, core.Options{MinSlots: 4})
				c := newContainer(t, e, core.ContainerSpec{})
				put(t, c, core.Create, `{"id":"first","pk":"a"}`)
				ws := func() (ws []core.Write) {
					for i := range 20 {
						ws = append(ws, core.Write{
							Kind: core.Upsert, Doc: mustDoc(t, fmt.Sprintf(`{"id":"%d","pk":"p%d"}`, i, i))})
					}
					return ws
				}
				h.set(set)
				out := c.WriteMany(bg, ws(), ordered)
				for i, o := range out {
					if o.Err == nil {
						t.Errorf("write %d has no error", i)
					}
				}
				if ordered && len(out) != 1 || !ordered && len(out) != 20 {
					t.Errorf("%d outcomes", len(out))
				}
				h.set(func(h *hookSet) { *h = hookSet{} })
				for i, o := range c.WriteMany(bg, ws(), ordered) {
					if o.Err != nil {
						t.Errorf("write %d afterwards: %v", i, o.Err)
					}
				}
				if counted(c) != 21 {
					t.Errorf("%d items", counted(c))
				}
			})
		}
	}
}
