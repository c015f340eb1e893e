package exec

import (
	"container/heap"
	"math"
	"runtime"

	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/work"
)

// A merge over slots begins with the first entry of each slot.
//
// On an engine over a network each slot's stream has its own iterator from the beginning. All iterators are opened at
// the same time, because waiting for all takes as long as waiting for one.
//
// On a local engine an iterator costs more than a seek, and a page of ten rows needs a second entry from ten slots at
// most. So one iterator finds the first entries of all slots, and the streams copy them (copied). Many slots are read
// by as many goroutines as there are processors, with an iterator each.
//
// Example: the ten least entries of 400 slots on two processors. Each of two goroutines seeks in 200 slots with one
// iterator and copies two entries of each. The heap gives ten of these, and no stream needs an iterator of its own.

const (
	fewStreams   = 16  // up to so many streams are begun in sequence on a local engine
	remoteAtOnce = 512 // concurrent reads of one query on an engine over a network
	keyMem       = 64  // initial memory for a copied entry: enough for most
	mostCopied   = 32  // entries of a stream that are copied; for more, an iterator costs little in comparison
)

// beginAll finds the first entry of every stream and makes the heap of the streams that have one. The spans and
// positions of the streams must be set.
func (h *mergeHeap) beginAll(b *builder, all []entries) error {
	workers := 1
	switch {
	case b.view.Remote():
		workers = remoteAtOnce
	case len(all) > fewStreams:
		workers = runtime.GOMAXPROCS(0)
	}
	found := make([]bool, len(all))
	vias := h.share(b, all, workers)
	begin := func(own *builder, i, worker int) (err error) {
		e := &all[i]
		e.b, e.beside = own, len(all)
		if c, ok := e.it.(*copied); ok {
			c.via = &vias[worker]
			defer func() { c.via = nil }()
		}
		e.start(e.sps, e.after)
		found[i], err = e.next()
		e.b = b
		return err
	}
	var err error
	if workers == 1 {
		for i := 0; i < len(all) && err == nil; i++ {
			err = begin(b, i, 0)
		}
	} else {
		err = b.beside(workers, len(all), begin)
	}
	for i := range vias {
		if it := vias[i].it; it != nil {
			b.rest(it)
		}
	}
	if err != nil {
		return err
	}
	h.list = room(&h.room.heap, len(all))
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

// share lets streams copy their first entries with one iterator for each worker, if that costs less than an iterator
// for each stream.
func (h *mergeHeap) share(b *builder, all []entries, workers int) []via {
	most := b.copies(len(all))
	if most == 0 {
		return nil
	}
	vias := make([]via, workers)
	streams := room(&h.room.streams, len(all))[:len(all)]
	list, mem := room(&h.room.copies, len(all)*most), room(&h.room.copied, len(all)*most*keyMem)
	for i := range all {
		if e := &all[i]; !e.flip && e.leaf.pred.Op != access.OpSpatial {
			from, to := i*most, (i+1)*most
			streams[i] = copied{e: e, most: most, list: list[from:from:to]}
			streams[i].mem = mem[from*keyMem : from*keyMem : to*keyMem]
			e.it = &streams[i]
		}
	}
	return vias
}

// copies is the number of entries that each of several streams copies, so that few of them need more; 0 = none. The
// rows that the reader takes are assumed to be distributed over the streams at random: m on average, with a deviation
// of the root of m.
//
// Example: 20 rows from 16 streams are 1.25 of each. 5 are copied: a stream gives more in one page of six.
func (b *builder) copies(streams int) int {
	want := b.firstChunk()
	if streams == 1 || b.view.Remote() || streams <= fewStreams && (b.q.Whole || b.q.Page == 0 && b.q.Limit == 0) {
		return 0
	}
	m := float64(want) / float64(streams)
	return min(mostCopied, int(2+m+2*math.Sqrt(m)))
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
		own.rows.closeUnused()
		st.Entries += own.rows.stats.Entries
		st.Items += own.rows.stats.Items
		st.Bytes += own.rows.stats.Bytes
		for i := range b.rows.walked {
			b.rows.walked[i] += own.rows.walked[i]
		}
	}
	return err
}
