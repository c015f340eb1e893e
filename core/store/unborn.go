package store

import (
	"context"
	"math"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/status"
)

// unbornGen is the generation of containers that aren't stored. No stored container has it.
const unbornGen = math.MaxUint32

// Unborn returns the run-time state of a container that a transaction creates, until its commit: its items are only in
// the transaction, and nothing is stored under its keys. Only the transaction may use it.
func (s *Store) Unborn(def *catalog.Container) (*Container, error) {
	c := &Container{st: s, gen: unbornGen, unborn: true, counter: counter{eng: s.eng, gen: unbornGen, work: s.work}}
	slots := &Slots{m: def.SlotMap, all: make([]*Slot, len(def.Slots))}
	for i := range slots.all {
		min, max := def.SlotMap.Bounds(i, i+1)
		sl := c.newSlot(def.Slots[i].ID, min, max)
		sl.headBytes = firstHeadOf(&def.Spec)
		if err := sl.head.decode(sl.headBytes); err != nil {
			return nil, err
		}
		slots.all[i] = sl
	}
	c.slots.Store(slots)
	if err := c.Redraw(def); err != nil {
		return nil, err
	}
	for _, sl := range slots.all {
		sl.publish()
	}
	return c, nil
}

// Redraw gives an unborn container another definition with the same partition key and slot map.
func (c *Container) Redraw(def *catalog.Container) error {
	d := *def
	d.Gen = unbornGen
	known, err := compilePolicies(&d)
	if err != nil {
		return err
	}
	set, err := compileDeclared(&d)
	if err != nil {
		return err
	}
	if c.uniques, err = compileUniques(d.UniqueKeys); err != nil {
		return err
	}
	c.def.Store(&d)
	c.known.Store(&known)
	c.declared.Store(set)
	return c.survey(context.Background())
}

// Born gives what a transaction has written in an unborn container to the stored one that has been created for it.
func (t *Transaction) Born(ctx context.Context, was, is *Container) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.over(); err != nil {
		return err
	}
	in := t.in[was]
	if in == nil {
		return nil
	}
	if was.Def().PartitionKey.EPKKind() != is.Def().PartitionKey.EPKKind() {
		return status.New(status.Internal, "a container was created with another partition key")
	}
	in.c, in.of, in.heads = is, is.Slots(), nil
	delete(t.in, was)
	t.in[is] = in
	for _, p := range in.order {
		p.c, p.of, p.basis, p.seen = is, in.of, nil, beforeAll
		is.relocate(&p.at)
		for _, it := range p.order {
			is.relocate(&it.id)
		}
	}
	return nil
}
