package exec

import (
	"bytes"

	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/store"
)

// nextHop does what next does, for a leaf of many narrow intervals most of which are empty: the cells of a place. One
// iterator serves all intervals. The key that a seek finds also shows which of the following intervals are empty, so
// these need no seek of their own.
//
// Example: intervals 10-11, 20-21, 30-31 and 40-41, entries 5 and 30. The seek to 10 finds 30: the first two intervals
// are empty, and 30 is given.
func (e *entries) nextHop() (bool, error) {
	ivs := e.leaf.ivs
	for len(ivs) > 0 && !ivs[len(ivs)-1].Touches(e.classes) {
		ivs = ivs[:len(ivs)-1]
	}
	for {
		ok, err := e.hop(len(ivs))
		for ok {
			at := e.it.Key()[len(e.prefix):]
			for e.i < len(ivs) && bytes.Compare(at, ivs[e.i].Hi) >= 0 {
				e.i++
			}
			if ok = e.i < len(ivs); !ok || bytes.Compare(at, ivs[e.i].Lo) >= 0 {
				break
			}
			e.lo = append(append(e.lo[:0], e.prefix...), ivs[e.i].Lo...)
			if ok = e.it.SeekGE(e.lo); !ok {
				err = e.it.Err()
			}
		}
		if err != nil || !ok {
			e.i = len(e.leaf.ivs)
			return false, err
		}
		if ok, err = e.accept(); err != nil || ok {
			return ok, err
		}
	}
}

// hop moves to the next entry. At the beginning of a slot it moves to the first entry at or after the beginning of the
// first of n intervals.
func (e *entries) hop(n int) (ok bool, err error) {
	switch {
	case e.i >= n:
		return false, nil
	case e.open:
		ok = e.it.Next()
	default:
		e.open = true
		e.lo = append(append(e.lo[:0], e.prefix...), e.leaf.ivs[0].Lo...)
		e.hi = append(append(e.hi[:0], e.prefix...), e.leaf.ivs[n-1].Hi...)
		if e.it == nil {
			if e.it, err = e.b.iter(e.lo, e.hi); err != nil {
				return false, err
			}
		} else {
			e.it.Reset(e.lo, e.hi)
		}
		ok = e.it.First()
	}
	if !ok {
		err = e.it.Err()
	}
	return ok, err
}

// countPlaces counts the entries of a spatial leaf in a slot, up to a limit.
func (b *builder) countPlaces(slot *store.ViewSlot, p *access.Pred, limit int) (n int) {
	l, _ := newLeaf(b, p)
	l.at = 0
	e := entries{b: b, leaf: &l}
	defer e.close()
	e.use(make([]byte, entryMem))
	e.start([]span{{slot: slot}}, nil)
	for ; n < limit; n++ {
		ok, err := e.next()
		if b.failed(err); err != nil || !ok {
			break
		}
	}
	b.rows.counted(n)
	return n
}
