package store

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
)

// A query for a value at a path over all partitions asks the index of each slot, though few slots have the value. A
// seek costs more than all else that such a query does in a slot. So if a container has several slots, and queries ask
// for values at a path again and again, each slot keeps the set of the values of its index entries there, in memory,
// with false positives and no false negatives (bits of idFilter). Five facts keep it correct:
//
//  1. A commit adds its values before it is visible, under the latch.
//  2. A new set is registered and its snapshot is taken under the latch. So every value is in the snapshot or is added
//     later. The set is shown only when it has the snapshot's values.
//  3. Nothing is ever removed from a set.
//  4. A view takes the sets that are shown before it takes its snapshot. So no entry that the view has was removed
//     before a set's own snapshot.
//  5. A set to which values aren't added any more is marked as dead before the next commit is visible. That happens
//     when it is full, and when the slot's entries follow another policy: then a rebuild adds entries.
//
// Example: 16 slots, and WHERE c.mail = "a@b.c". After 16 such queries the slots' sets of /mail are made in the
// background. From then on the query seeks in the slot that has the address, and in another one in 400.

// valueSet is the set of the values at a path in a slot.
type valueSet struct {
	bits *idFilter
	path uint64
	of   *pathSets
	dead atomic.Bool
}

// pathSets are the sets of a path, by the number of the slot in the map.
type pathSets struct {
	path  uint64
	sets  []*valueSet
	stale atomic.Bool // one of them is dead
}

// valueSets are the sets of a container that are shown. A value is never changed.
type valueSets struct {
	of   *Slots // the map whose slots have them
	list []*pathSets
}

// setsAsked counts the queries that would have used sets, by path.
type setsAsked struct {
	mu     sync.Mutex
	count  map[uint64]int
	making bool
}

// Bounds of the sets of a container.
const (
	leastSetSlots = 4       // with fewer slots they save little
	queriesForSet = 16      // queries at a path before its sets are made
	queriesToTry  = 1 << 14 // the same, if they couldn't be made before
	maxPathSets   = 4       // paths
	maxSetWords   = 1 << 18 // 2 MiB for all slots of a path
	maxSetPaths   = 256     // paths that are counted
)

var errSetFull = errors.New("a slot has too many values for a set")

// Values are the sets of the values at a path in the slots of a view.
type Values struct{ p *pathSets }

// Values returns the sets of a path, if there are any. The call counts as a query that can use them.
func (v *View) Values(path uint64) (s Values, ok bool) {
	if len(v.slots) < leastSetSlots || v.c.st.others || v.c.unborn {
		return s, false
	}
	if v.sets != nil && v.sets.of == v.of {
		for _, p := range v.sets.list {
			if p.path == path {
				if p.stale.Load() {
					v.c.askForSets(path)
				}
				return Values{p}, true
			}
		}
	}
	v.c.askForSets(path)
	return s, false
}

// Lacks reports whether a slot has no entries with an encoded value.
func (s Values) Lacks(slot *ViewSlot, val []byte) bool {
	set := s.p.sets[slot.n]
	return !set.bits.has(xxhash.Sum64(val)) && !set.dead.Load()
}

// askForSets counts a query, and has the sets made in the background when there were enough.
func (c *Container) askForSets(path uint64) {
	a := &c.asked
	if !a.mu.TryLock() { // another query is counted
		return
	}
	defer a.mu.Unlock()
	if a.count == nil || len(a.count) >= maxSetPaths {
		a.count = map[uint64]int{}
	}
	a.count[path]++
	if a.count[path] < queriesForSet || a.making {
		return
	}
	a.count[path] = 0
	a.making = c.st.work.Go("value sets of container "+c.Name(), func() {
		made := c.makeSets(path)
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.making = false; !made {
			a.count[path] = queriesForSet - queriesToTry
		}
	})
}

// makeSets makes the sets of a path and shows them. It returns false if a slot can't have one now. Nobody else makes
// sets at the same time.
func (c *Container) makeSets(path uint64) bool {
	of := c.Slots()
	p := &pathSets{path: path}
	room := int64(maxSetWords)
	for _, sl := range of.all {
		set, err := c.makeSet(sl, p, room)
		if set != nil {
			p.sets = append(p.sets, set)
			room -= int64(len(set.bits.words))
		}
		if set == nil || err != nil {
			p.forget(of.all)
			return false
		}
	}
	next := &valueSets{of: of, list: []*pathSets{p}}
	if was := c.sets.Load(); was != nil {
		for _, q := range was.list {
			if was.of == of && q.path != path && len(next.list) < maxPathSets {
				next.list = append(next.list, q)
			} else {
				q.forget(was.of.all)
			}
		}
	}
	c.sets.Store(next)
	return true
}

// makeSet makes the set of a slot, with at most room words; nil if it would be larger, or the slot is being rebuilt.
// With an error the set is dead.
func (c *Container) makeSet(sl *Slot, p *pathSets, room int64) (*valueSet, error) {
	set, snap, err := c.beginSet(sl, p, room)
	if set == nil || err != nil {
		return nil, err
	}
	defer snap.Close()
	lo := keys.AppendIndexPath(nil, sl.key, p.path)
	layout, last := c.Entries(), uint64(0)
	err = each(snap, lo, keys.After(lo), func(key, _ []byte) error {
		e, err := layout.Parse(key)
		if err != nil {
			return err
		}
		if h := xxhash.Sum64(e.Value); h != last {
			last = h
			set.bits.add(h)
		}
		switch {
		case set.dead.Load(), set.bits.added.Load() > set.bits.limit:
			return errSetFull
		case c.dropped.Load():
			return errDropped()
		}
		return c.st.work.Context().Err()
	})
	return set, err
}

// beginSet makes an empty set and a snapshot.
func (c *Container) beginSet(sl *Slot, p *pathSets, room int64) (*valueSet, kv.Snapshot, error) {
	sl.mu.Lock()
	defer sl.mu.Unlock() // even if the engine panics
	if sl.head.Items*filterBits/64 > room || sl.head.Phase != Settled || sl.head.bare() {
		return nil, nil, nil
	}
	bits := newIDFilter(sl.head.Items)
	if bits == nil || int64(len(bits.words)) > room {
		return nil, nil, nil
	}
	snap, err := c.st.eng.Snapshot(c.st.work.Context())
	if err != nil {
		return nil, nil, translate(err)
	}
	set := &valueSet{bits: bits, path: p.path, of: p}
	sl.sets = append(sl.sets, set)
	return set, snap, nil
}

// forget removes the sets of a path from their slots.
func (p *pathSets) forget(slots []*Slot) {
	for i, set := range p.sets {
		sl := slots[i]
		sl.mu.Lock()
		set.end()
		sl.sets = slices.DeleteFunc(sl.sets, func(s *valueSet) bool { return s == set })
		sl.mu.Unlock()
	}
}

// end marks a set as dead. The caller holds the latch of its slot.
func (s *valueSet) end() {
	s.dead.Store(true)
	s.of.stale.Store(true)
}

// dropSets drops the sets of a slot. The caller holds the latch.
func (s *Slot) dropSets() {
	for _, set := range s.sets {
		set.end()
	}
	s.sets = nil
}

// rememberValues adds the values that the changes bring to the slot's sets. The caller holds the latch, before the
// commit is visible.
func (s *Slot) rememberValues(chs []change) {
	full := false
	for _, set := range s.sets {
		for i := range chs {
			if t := chs[i].newTerms; t != nil {
				t.Path(set.path, func(val []byte, _ byte) bool {
					if h := xxhash.Sum64(val); !set.bits.has(h) {
						set.bits.add(h)
					}
					return true
				})
			}
		}
		full = full || set.bits.added.Load() > set.bits.limit
	}
	if !full {
		return
	}
	s.sets = slices.DeleteFunc(s.sets, func(set *valueSet) bool {
		over := set.bits.added.Load() > set.bits.limit
		if over {
			set.end()
		}
		return over
	})
}
