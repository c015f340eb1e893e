package store

import (
	"math/bits"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// idFilter is the set of a slot's ids in memory, with false positives and no false negatives. A query for an id without
// a partition key asks all slots, and nearly all of them can exclude the id without a seek. A create learns from it
// that its item doesn't exist. Three facts keep it correct:
//
//  1. A commit adds its ids before it is visible, under the latch.
//  2. A new filter is registered and its snapshot is taken under the latch. So every id is in the snapshot or is added
//     later.
//  3. Nothing is ever removed. A deleted id stays as a false positive until the filter is made again.
//  4. A slot that another process has written to loses its filter: see overtaken.
//
// Example: id "a" sets four bits at positions from its hash. A look-up of "b" finds one of its four bits clear: "b"
// isn't in the slot.
type idFilter struct {
	words []atomic.Uint64 // a power of two of them
	added atomic.Int64
	limit int64 // the number of ids that it was sized for
}

// Sizing: with 16 bits and four probes for each id, false positives stay below one in 400 up to the limit.
const (
	filterBits    = 16
	filterProbes  = 4
	filterMinIDs  = 1024
	filterMaxWord = 1 << 20 // 8 MiB a slot; beyond it the slot has no filter
)

func newIDFilter(ids int64) *idFilter {
	ids = max(filterMinIDs, ids*2)
	words := int64(1) << bits.Len64(uint64(ids*filterBits/64-1))
	if words > filterMaxWord {
		return nil
	}
	return &idFilter{words: make([]atomic.Uint64, words), limit: ids}
}

// probe returns word and bit of a hash's n-th probe.
func (f *idFilter) probe(h uint64, n int) (int, uint64) {
	h = bits.RotateLeft64(h*0x9E3779B97F4A7C15, n*16)
	return int(h >> 6 & uint64(len(f.words)-1)), 1 << (h & 63)
}

func (f *idFilter) add(h uint64) {
	for n := range filterProbes {
		w, b := f.probe(h, n)
		f.words[w].Or(b)
	}
	f.added.Add(1)
}

func (f *idFilter) has(h uint64) bool {
	for n := range filterProbes {
		if w, b := f.probe(h, n); f.words[w].Load()&b == 0 {
			return false
		}
	}
	return true
}

// IDHash returns the hash of an id that id filters use.
func IDHash(id value.Value) uint64 { return xxhash.Sum64(keys.AppendExact(nil, id)) }

// remember adds the ids that the changes bring to the slot's filters. The caller holds the latch, before the commit is
// visible.
func (s *Slot) remember(chs []change) {
	if len(s.sets) > 0 {
		s.rememberValues(chs)
	}
	f, g := s.ids.Load(), s.idsNext
	if f == nil && g == nil {
		return
	}
	for i := range chs {
		if chs[i].item == nil || chs[i].old != nil && chs[i].old.Number == chs[i].item.Number {
			continue
		}
		h := xxhash.Sum64(chs[i].id.ident[len(chs[i].id.tuple):])
		if f != nil {
			f.add(h)
		}
		if g != nil {
			g.add(h)
		}
	}
	if f != nil && f.added.Load() > f.limit {
		s.ids.Store(nil) // too full to exclude ids; the next reader that needs it has it made again
	}
}

// overtaken drops what is known of a slot only from the commits of this process, because another process has committed
// to the slot: its id filters, and the floors that are being raised. The caller holds the latch.
func (s *Slot) overtaken() {
	s.ids.Store(nil)
	s.idsNext, s.leastNew = nil, 0
	s.dropSets()
}

// lacks reports that a slot doesn't hold an item. The answer is as old as the slot's LSN before the call: a filter that
// is dropped in between only misses later commits. With wanted, a missing filter is made in the background.
func (c *Container) lacks(id *identity, wanted bool) bool {
	s := id.slot
	f := s.ids.Load()
	if f == nil {
		if c.st.others { // others add items that no filter would have
			return false
		}
		if wanted && !s.noFilter.Load() {
			c.makeIDFilters()
		}
		return false
	}
	return !f.has(xxhash.Sum64(id.ident[len(id.tuple):]))
}

// MayHoldID reports whether a slot may hold an item with this id in any logical partition. A slot without a filter may.
// The call has missing filters made in the background.
func (v *View) MayHoldID(slot *ViewSlot, hash uint64) bool {
	f := slot.ids.Load()
	if f == nil {
		if !slot.noFilter.Load() {
			v.c.makeIDFilters()
		}
		return true
	}
	return f.has(hash)
}

// makeIDFilters makes the missing filters in the background, one run at a time.
func (c *Container) makeIDFilters() {
	if c.st.others || c.dropped.Load() || !c.Numbered() || !c.filtering.CompareAndSwap(false, true) {
		return
	}
	if !c.st.work.Go("id filters of container "+c.Name(), func() {
		defer c.filtering.Store(false)
		for _, s := range c.slotList() {
			if s.ids.Load() == nil && !s.noFilter.Load() && c.makeIDFilter(s) != nil {
				return // a filter only saves seeks: the next query tries again
			}
		}
	}) {
		c.filtering.Store(false)
	}
}

// beginIDFilter makes an empty filter and a snapshot. Ids that are written from now on go into the filter; the snapshot
// has all others. For a slot with too many items it returns neither.
func (c *Container) beginIDFilter(s *Slot) (*idFilter, kv.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock() // even if the engine panics
	f := newIDFilter(s.head.Items)
	s.noFilter.Store(f == nil)
	if f == nil {
		return nil, nil, nil
	}
	snap, err := c.st.eng.Snapshot(c.st.work.Context())
	if err != nil {
		return nil, nil, translate(err)
	}
	s.idsNext = f
	return f, snap, nil
}

func (c *Container) makeIDFilter(s *Slot) error {
	kind := keys.KindNumber
	if !c.Numbered() { // checked before the snapshot is taken
		kind = keys.KindItem
	}
	f, snap, err := c.beginIDFilter(s)
	if f == nil {
		return err
	}
	defer snap.Close()
	paths := len(c.keyPaths())
	lo, hi := keys.KindBounds(s.key, kind)
	err = each(snap, lo, hi, func(key, suffix []byte) error {
		if kind == keys.KindItem {
			suffix = key[keys.PrefixLen:]
		}
		if len(suffix) < c.placeLen() {
			return status.New(status.Corruption, "an item number stands for no item")
		}
		rest := suffix[c.placeLen():]
		for range paths {
			var err error
			if rest, err = keys.SkipExact(rest); err != nil {
				return err
			}
		}
		f.add(xxhash.Sum64(rest))
		return nil
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.idsNext
	s.idsNext = nil
	if err == nil && was == f {
		s.ids.Store(f)
	} else if err != nil && status.CodeOf(translate(err)) == status.Corruption {
		s.noFilter.Store(true)
	}
	return err
}
