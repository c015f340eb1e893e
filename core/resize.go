package core

import (
	"context"
	"time"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/lease"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/store"
)

// A container whose throughput needs more physical partitions than it has is resized in the background: its widest
// partition is split in the middle until there are enough. Nothing is recorded for that: the wanted number follows from
// the throughput, the present one from the slot map. So a start looks for containers whose resize a crash has
// interrupted, and resizes them. A throughput that is lowered merges nothing, and a merge that would leave fewer
// partitions than the throughput needs is refused: the next look would split them again.
//
// Example: a container with one partition and 400 RU/s gets 30,000 RU/s, at 10,000 for each partition. It is split at
// the half, and then its first half at the quarter.

// Resizing reports whether a container's throughput needs more physical partitions than it has yet. False when there is
// no such container. It fails if the catalog can't be read.
func (e *Engine) Resizing(ctx context.Context, db, id string) (bool, error) {
	if err := e.fresh(ctx); err != nil {
		return false, err
	}
	def, err := e.cat.Container(ctx, db, id)
	if status.Is(err, status.NotFound) {
		return false, nil
	}
	return err == nil && e.small(def), err
}

// small reports whether a container has fewer partitions than its throughput needs, and gets them. A store that takes
// no writes isn't resized. One whose limit of a partition was lowered may need more than a container can have.
func (e *Engine) small(def *catalog.Container) bool {
	return e.resizes != nil && len(def.Partitions) < e.cat.PartitionsFor(&def.Spec) && !def.Full()
}

// resizeLater resizes a container in the background if it needs that.
func (e *Engine) resizeLater(def *catalog.Container) {
	if e.small(def) {
		e.resizeSoon(def.RID())
	}
}

// resizeSoon adds a container to those that are to be resized, if it doesn't wait already.
func (e *Engine) resizeSoon(rid [8]byte) {
	if _, waits := e.waiting.LoadOrStore(rid, true); !waits {
		e.resizes.Add(rid)
	}
}

// resize resizes a container, unless another process does it. Then this one looks again in a later turn.
func (e *Engine) resize(rid [8]byte) error {
	e.resizing.Store(rid, true)
	defer e.resizing.Delete(rid)
	e.waiting.Delete(rid) // from now on it may be necessary again
	def, err := e.cat.ContainerByRID(e.work.Context(), rid)
	if status.Is(err, status.NotFound) { // dropped
		return nil
	}
	if err != nil {
		return err
	}
	l, err := e.leases().Try(e.work.Context(), lease.Name{Kind: lease.Resize, Gen: def.Gen})
	if l == nil {
		return kv.Status(err)
	}
	defer l.Release()
	return e.splitAll(l.Context(), rid)
}

// splitAll splits partitions of a container until there are as many as its throughput needs, and none has reached the
// storage limit.
func (e *Engine) splitAll(ctx context.Context, rid [8]byte) error {
	for {
		if err := e.fresh(ctx); err != nil {
			return err
		}
		def, err := e.cat.ContainerByRID(ctx, rid)
		if status.Is(err, status.NotFound) { // dropped
			return nil
		}
		if err != nil {
			return err
		}
		done := false
		c, err := e.container(ctx, def)
		switch {
		case err != nil:
		case e.small(def):
			err = c.splitWidest(ctx)
		default:
			done, err = c.splitLarge(ctx)
		}
		if done {
			return nil
		}
		if status.Is(err, status.NotFound) || status.Is(err, status.BadRequest) { // dropped, or nothing can be split
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// splitWidest splits the partition with the most hashes in the middle.
func (c *Container) splitWidest(ctx context.Context) error {
	return c.retried(ctx, func() error {
		m := c.rt.Slots().Map()
		kind := c.rt.Def().PartitionKey.EPKKind()
		p := m.Widest(kind)
		at, ok := m.Middle(kind, p)
		if !ok {
			return errOneHash(m.Partitions[p].ID)
		}
		return c.splitAt(ctx, m.Partitions[p].ID, at)
	})
}

// opened is called for each container that the store opens.
func (e *Engine) opened(c *store.Container) { e.resizeLater(c.Def()) }

// A start reads the definitions of all containers to find those that are to be resized: so many, then a pause.
const (
	resumeStep  = 64
	resumePause = 5 * time.Millisecond
)

// resumeResizes has containers resized that have fewer partitions than their throughput needs. It opens no others.
func (e *Engine) resumeResizes() {
	n := 0
	for _, d := range e.cat.Databases() {
		for def, err := range e.cat.Containers(e.work.Context(), d.ID, 0) {
			if err == nil {
				e.resizeLater(def)
			}
			if n++; n%resumeStep == 0 && !e.work.Sleep(resumePause) {
				return
			}
		}
	}
}
