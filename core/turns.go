package core

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/lease"
)

// If several processes share a store, each of them looks periodically for background work that the end of another one
// has left, and the notes of drops are a queue that they share. A lease decides which process does something.
//
// DropRange isn't part of snapshots on such an engine: a reader with an older snapshot would find a part of a
// container. So a process removes a range only after it has seen the note for longer than a view lives, by its own
// monotonic clock. Each process measures that itself, so it doesn't matter which one gets the lease.
//
// Example: process A drops a container at 0 s and ends. B sees the note at 5 s, and has the lease. A query of C still
// reads the container in a snapshot of -10 s. It takes a new one at 50 s at the latest, and ends with NotFound. B
// removes the data at 125 s.

// dropNotes says which notes of drops this process has seen.
type dropNotes struct {
	wait time.Duration // from the first sight of a note to the removal

	mu   sync.Mutex
	seen map[dropNote]time.Duration // by Clock.Elapsed
}

// dropNote is a generation, or a slot of one.
type dropNote struct {
	slot keys.Slot
	all  bool // the whole generation
}

// viewAge returns the age at which a long query takes a new view.
func (o *Options) viewAge() time.Duration {
	if o.ViewAge > 0 {
		return o.ViewAge
	}
	return time.Minute
}

// see records the notes that exist.
func (d *dropNotes) see(now time.Duration, left catalog.Left) {
	d.mu.Lock()
	defer d.mu.Unlock()
	seen := make(map[dropNote]time.Duration, len(left.Generations)+len(left.Slots))
	add := func(n dropNote) {
		if was, ok := d.seen[n]; ok {
			seen[n] = was
		} else {
			seen[n] = now
		}
	}
	for _, gen := range left.Generations {
		add(dropNote{keys.Slot{Gen: gen}, true})
	}
	for _, s := range left.Slots {
		add(dropNote{s, false})
	}
	d.seen = seen
}

// ripe reports whether nobody reads any more what a note names.
func (d *dropNotes) ripe(now time.Duration, n dropNote) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	was, ok := d.seen[n]
	return ok && now-was >= d.wait
}

// leases returns the leases of this process.
func (e *Engine) leases() *lease.Leases { return e.store.Leases() }

// Lease is a piece of background work that a process is doing.
type Lease struct {
	Work      string  `json:"work"`                         // what it does
	Container string  `json:"container,omitempty"`          // database/container
	Process   string  `json:"process"`                      // id of the process
	Mine      bool    `json:"mine,omitempty"`               // this process does it
	Silent    float64 `json:"secondsWithoutSign,omitempty"` // since when this process has seen no sign of life of it
}

// Leases returns what the processes over a shared store are doing; nothing if the store isn't shared.
func (e *Engine) Leases(ctx context.Context) ([]Lease, error) {
	held, err := e.leases().List(ctx)
	if len(held) == 0 || err != nil {
		return nil, kv.Status(err)
	}
	gens := map[uint32]bool{}
	for i := range held {
		gens[held[i].Name.Gen] = true
	}
	names := e.cat.Called(gens)
	out := make([]Lease, len(held))
	for i := range held {
		out[i] = leaseOf(&held[i], names[held[i].Name.Gen])
	}
	return out, nil
}

func leaseOf(h *lease.Held, container string) Lease {
	return Lease{Work: h.Name.Kind.String(), Container: container, Process: h.ProcessID(), Mine: h.Mine,
		Silent: h.Silent.Seconds()}
}

// Leases returns what the processes over a shared store are doing for a container; nothing if the store isn't shared.
func (c *Container) Leases(ctx context.Context) (out []Lease, err error) {
	held, err := c.e.leases().List(ctx)
	if err != nil {
		return nil, kv.Status(err)
	}
	for i := range held {
		if held[i].Name.Gen == c.rt.Def().Gen {
			out = append(out, leaseOf(&held[i], c.Database()+"/"+c.ID()))
		}
	}
	return out, nil
}

// takeTurns looks for work until the engine is closed. A turn that fails is logged once, until one succeeds.
func (e *Engine) takeTurns() {
	for failed := false; e.work.Sleep(e.leases().Duration() / 2); {
		err := e.takeTurn()
		if err != nil && !failed && e.work.Context().Err() == nil {
			e.log.Warn("Background work on a shared store failed; it is tried again", "error", err)
		}
		failed = err != nil
	}
}

func (e *Engine) takeTurn() (err error) {
	for _, f := range []func(context.Context) error{e.leases().Stay, e.leases().Sweep, e.resumeOthers, e.endMoves,
		e.dropTurn} {
		err = errors.Join(err, e.work.Try("a turn of work on a shared store", func() error {
			return f(e.work.Context())
		}))
	}
	return err
}

// resumeOthers continues index rebuilds and splits of other processes that have ended. If one has not, the work waits
// for its lease.
func (e *Engine) resumeOthers(ctx context.Context) error {
	if _, err := e.cat.Refresh(ctx); err != nil {
		return err
	}
	e.resume(ctx)
	for _, c := range e.store.Opened() {
		if def, err := e.cat.ContainerByRID(ctx, c.Def().RID()); err == nil {
			e.resizeLater(def)
		}
	}
	return nil
}

// endMoves ends the copies of slots that other processes have left, in the containers that this one uses.
func (e *Engine) endMoves(ctx context.Context) (err error) {
	for _, c := range e.store.Opened() {
		err = errors.Join(err, c.EndMoves(ctx))
	}
	return err
}

// dropTurn removes what may be removed now, if no other process does it.
func (e *Engine) dropTurn(ctx context.Context) error {
	left, err := e.cat.Left(ctx)
	if err != nil {
		return err
	}
	e.notes.see(e.clk.Elapsed(), left)
	if len(left.Databases)+len(left.Generations)+len(left.Slots) == 0 {
		return nil
	}
	l, err := e.leases().Try(ctx, lease.Name{Kind: lease.Drops})
	if l == nil {
		return kv.Status(err)
	}
	defer l.Release()
	return e.removeRipe(l.Context(), left)
}

// removeRipe removes the entries of dropped databases, and the data that nobody reads any more. Entries are deleted by
// commits, so they needn't wait.
func (e *Engine) removeRipe(ctx context.Context, left catalog.Left) error {
	for _, num := range left.Databases {
		for {
			gens, err := e.cat.ClearDropped(ctx, num)
			if err != nil {
				return err
			}
			if len(gens) == 0 {
				break
			}
		}
		e.store.Cleared(num)
	}
	now := e.clk.Elapsed()
	gens := slices.DeleteFunc(left.Generations, func(gen uint32) bool {
		return !e.notes.ripe(now, dropNote{keys.Slot{Gen: gen}, true})
	})
	for part := range slices.Chunk(gens, dropAtOnce) {
		if err := e.store.DropGenerations(ctx, part); err != nil {
			return err
		}
		if err := e.cat.Removed(ctx, part); err != nil {
			return err
		}
	}
	slots := slices.DeleteFunc(left.Slots, func(s keys.Slot) bool { return !e.notes.ripe(now, dropNote{s, false}) })
	for len(slots) > 0 {
		gen, n := slots[0].Gen, 1
		for n < len(slots) && slots[n].Gen == gen {
			n++
		}
		if err := e.removeSlots(ctx, gen, slots[:n]); err != nil {
			return err
		}
		slots = slots[n:]
	}
	return nil
}

// removeSlots removes slots of one generation. A copy that is in progress may show them later, so it needs the lease of
// the copy. With the lease it looks for the notes again: a slot that was shown meanwhile has none.
func (e *Engine) removeSlots(ctx context.Context, gen uint32, slots []keys.Slot) error {
	l, err := e.leases().Try(ctx, lease.Name{Kind: lease.Layout, Gen: gen})
	if l == nil {
		return kv.Status(err)
	}
	defer l.Release()
	left, err := e.cat.Left(l.Context())
	if err != nil {
		return err
	}
	slots = slices.DeleteFunc(slices.Clone(slots), func(s keys.Slot) bool { return !slices.Contains(left.Slots, s) })
	if len(slots) == 0 {
		return nil
	}
	if err := e.store.DropSlots(l.Context(), slots); err != nil {
		return err
	}
	return e.cat.RemovedSlots(l.Context(), slots)
}
