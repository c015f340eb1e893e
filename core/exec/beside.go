package exec

import (
	"bytes"
	"container/heap"
	"runtime"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/work"
)

// A merge over many slots begins with the first entry of each slot. These entries are found in parallel.
//
// On an engine over a network each slot's stream has its own iterator from the beginning. All iterators are opened at
// the same time, because waiting for all takes as long as waiting for one.
//
// A local engine is read by as many goroutines as there are processors, or by one for few slots. There an iterator
// costs more than a seek, and a page of ten rows from 400 slots needs a second entry from ten slots at most. So a
// goroutine finds the first entries of its slots with one iterator. A stream gets its own iterator when it moves on.
//
// Example: the ten least entries of 400 slots on two processors. Each of two goroutines seeks in 200 slots with one
// iterator. The heap gives ten entries, and at most ten streams seek again.

const (
	fewStreams   = 16  // up to so many streams are begun in sequence on a local engine, each with its iterator
	remoteAtOnce = 512 // concurrent reads of one query on an engine over a network
	keyMem       = 96  // initial memory for the key of an entry: enough for most
)

// beginAll finds the first entry of every stream and makes the heap of the streams that have one. The spans and
// positions of the streams must be set.
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

// lends reports whether the stream can continue with another iterator than the one that found its first entry.
func (e *entries) lends() bool { return !e.flip && e.leaf.pred.Op != access.OpSpatial }

// lent takes back the iterator that found the current entry. The stream keeps a copy of that entry.
func (e *entries) lent(found bool) kv.Iterator {
	it := e.it
	if e.it = nil; found {
		e.key = append(e.key[:0], it.Key()...)
		e.cur, _ = e.parse(e.key) // it parsed before
	}
	return it
}

// resume gives the stream an iterator that is positioned on its current entry.
func (e *entries) resume() (err error) {
	if e.it, err = e.b.view.Iter(e.lo, e.hi); err != nil {
		return err
	}
	if e.it.SeekGE(e.key) && bytes.Equal(e.it.Key(), e.key) {
		return nil
	}
	return e.it.Err()
}

// beside calls f for 0 to n-1 on several goroutines. Each goroutine passes its own builder to f, which counts there
// what it reads.
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
