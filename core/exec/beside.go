package exec

import (
	"bytes"
	"container/heap"
	"runtime"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/work"
)

// A merge over many slots begins with the first entry of each. These are found side by side.
//
// Where reads go over a network each slot's stream has its iterator from the begin, all of them at once: to wait for
// one costs as much as to wait for all.
//
// A local engine is asked by as many goroutines as there are processors, and by one for few slots. There an iterator
// costs more than a seek, and of 400 slots a page of ten needs a second entry of ten at most. So a goroutine finds the
// first entries of its slots with one iterator, and a stream gets its own when it moves on.
//
// Example: the ten least of 400 slots on two processors. Each of two goroutines seeks in 200 slots with one iterator;
// the heap gives ten entries, and at most ten streams seek again.

const (
	fewStreams   = 16  // streams that are begun one after the other on a local engine, each with its iterator
	remoteAtOnce = 512 // reads of one query that are under way at once on an engine over a network
	keyMem       = 96  // memory for the key of an entry, mostly; it grows beyond it
)

// beginAll finds the first entry of all streams, whose parts of a slot and positions are set, and makes the heap of
// those that have one.
func (h *mergeHeap) beginAll(b *builder, all []entries) error {
	h.list = make([]*entries, 0, len(all))
	remote := b.view.Remote()
	if len(all) <= fewStreams && !remote {
		for i := range all {
			if err := h.begin(&all[i], all[i].sps, all[i].after); err != nil {
				return err
			}
		}
		heap.Init(h)
		return nil
	}
	workers := runtime.GOMAXPROCS(0)
	if remote {
		workers = remoteAtOnce
	}
	found := make([]bool, len(all))
	keys := make([]byte, len(all)*keyMem)
	probes := make([]kv.Iterator, workers) // local: one for each goroutine
	err := b.beside(workers, len(all), func(own *builder, i, worker int) (err error) {
		e := &all[i]
		e.b, e.beside = own, len(all)
		defer func() { e.b = b }()
		lend := !remote && e.lends()
		if lend {
			e.it, e.key = probes[worker], keys[i*keyMem:i*keyMem:(i+1)*keyMem]
		}
		e.start(e.sps, e.after)
		found[i], err = e.next()
		if lend {
			probes[worker] = e.lent(found[i])
		}
		return err
	})
	for _, it := range probes {
		if it != nil {
			_ = it.Close()
		}
	}
	if err != nil {
		return err
	}
	for i := range all {
		if found[i] {
			h.list = append(h.list, &all[i])
		} else {
			all[i].close()
		}
	}
	heap.Init(h)
	return nil
}

// lends reports whether the stream can go on with another iterator than that which has found its first entry.
func (e *entries) lends() bool { return !e.flip && e.leaf.pred.Op != access.OpSpatial }

// lent takes the iterator back that has found the present entry, of which the stream keeps a copy.
func (e *entries) lent(found bool) kv.Iterator {
	it := e.it
	if e.it = nil; found {
		e.key = append(e.key[:0], it.Key()...)
		e.cur, _ = e.parse(e.key) // as it was parsed before
	}
	return it
}

// resume gives the stream an iterator that stands on its present entry.
func (e *entries) resume() (err error) {
	if e.it, err = e.b.view.Iter(e.lo, e.hi); err != nil {
		return err
	}
	if e.it.SeekGE(e.key) && bytes.Equal(e.it.Key(), e.key) {
		return nil
	}
	return e.it.Err()
}

// beside calls f for 0 to n-1 on several goroutines. What f reads it counts in the builder that it is given, which no
// other goroutine has.
func (b *builder) beside(workers, n int, f func(own *builder, i, worker int) error) error {
	workers = min(workers, n)
	owns := make([]*builder, workers)
	for i := range owns {
		own := *b
		own.rows, own.ident = &Rows{ctx: b.rows.ctx, q: b.rows.q, view: b.rows.view, former: b.rows.former,
			walked: make([]int64, len(b.rows.walked))}, nil
		owns[i] = &own
	}
	err := work.Each(workers, n, func(i, worker int) error { return f(owns[worker], i, worker) })
	st := &b.rows.stats
	for _, own := range owns {
		st.Entries += own.rows.stats.Entries
		st.Items += own.rows.stats.Items
		st.Bytes += own.rows.stats.Bytes
		for i := range b.rows.walked {
			b.rows.walked[i] += own.rows.walked[i]
		}
	}
	return err
}
