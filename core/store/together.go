package store

import (
	"sync"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
)

// A query reads the heads of all slots in sequence, and the facts of a path in all slots. On an engine over a network
// that would take one round trip for each. So the first read gets the values of all slots together. On a local engine
// each value is read when it is needed.

// together holds values of a view's slots that were read in one round trip.
type together struct {
	mu    sync.Mutex
	heads *kv.Values            // by ViewSlot.Number; nil: not read yet
	facts map[uint64]*kv.Values // by path
}

// head returns the stored head of a slot. The result must not be changed.
func (v *View) head(slot *ViewSlot) ([]byte, error) {
	if !v.Remote() {
		return v.snap.Get(nil, slot.headKey[:])
	}
	v.all.mu.Lock()
	defer v.all.mu.Unlock()
	if v.all.heads == nil {
		all := &kv.Values{}
		if err := v.readAll(all, func(sl *ViewSlot) []byte { return sl.headKey[:] }); err != nil {
			return nil, err
		}
		v.all.heads = all
	}
	return orAbsent(v.all.heads.At(slot.n))
}

// fact appends a slot's stored fact of a path to dst.
func (v *View) fact(dst []byte, slot *ViewSlot, path uint64) ([]byte, error) {
	if !v.Remote() {
		var mem [keys.PrefixLen + 8]byte
		return v.snap.Get(dst, keys.AppendFact(mem[:0], slot.key, path))
	}
	v.all.mu.Lock()
	defer v.all.mu.Unlock()
	all := v.all.facts[path]
	if all == nil {
		all = &kv.Values{}
		if err := v.readAll(all, func(sl *ViewSlot) []byte { return keys.AppendFact(nil, sl.key, path) }); err != nil {
			return dst, err
		}
		if v.all.facts == nil {
			v.all.facts = map[uint64]*kv.Values{}
		}
		v.all.facts[path] = all
	}
	b, err := orAbsent(all.At(slot.n))
	return append(dst, b...), err
}

// readAll reads one key of each slot.
func (v *View) readAll(all *kv.Values, key func(sl *ViewSlot) []byte) error {
	ks := make([][]byte, len(v.slots))
	for i := range v.slots {
		ks[i] = key(&v.slots[i])
	}
	return v.snap.GetMany(all, ks)
}

// orAbsent converts a value of Values into the result of Get.
func orAbsent(b []byte) ([]byte, error) {
	if b == nil {
		return nil, kv.ErrNotFound
	}
	return b, nil
}
