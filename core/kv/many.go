package kv

import "errors"

// Values is what Snapshot.GetMany has read: one value for each key, in the order of the keys. Its memory is used again
// by the next GetMany, so values are valid until then. The zero value is empty. Not safe for concurrent use.
//
// Example, of the items that two index entries name, of which one has been deleted:
//
//	err := snap.GetMany(&vals, [][]byte{key1, key2})
//	vals.At(0) // nil: there is no key1
//	vals.At(1) // key2's value
type Values struct {
	// Most bounds the bytes that one GetMany reads: it stops behind the value that reaches Most. 0 = no bound.
	Most int

	mem  []byte
	ends []int // of the values in mem; an absent key has none
}

// Len returns how many keys were read, from the first one on. It is less than was asked for when Most was reached, but
// at least one.
func (v *Values) Len() int { return len(v.ends) }

// At returns the value of the i-th key; nil when the key is absent.
func (v *Values) At(i int) []byte {
	from := 0
	if i > 0 {
		from = v.ends[i-1]
	}
	if to := v.ends[i]; to > from { // no value is empty
		return v.mem[from:to:to]
	}
	return nil
}

// Bytes returns how many bytes all values have.
func (v *Values) Bytes() int { return len(v.mem) }

// Cap returns how much memory is kept for the next GetMany.
func (v *Values) Cap() int { return cap(v.mem) }

// Reset forgets the values and keeps their memory.
func (v *Values) Reset() { v.mem, v.ends = v.mem[:0], v.ends[:0] }

// Fill reads keys one by one with a Snapshot's Get, or what works as that does. Engines use it which have no cheaper
// way to read several.
func (v *Values) Fill(keys [][]byte, get func(dst, key []byte) ([]byte, error)) error {
	v.Reset()
	for _, key := range keys {
		mem, err := get(v.mem, key)
		if err != nil && !errors.Is(err, ErrNotFound) {
			v.Reset()
			return err
		}
		v.mem = mem
		if v.ends = append(v.ends, len(v.mem)); v.Most > 0 && len(v.mem) >= v.Most {
			break
		}
	}
	return nil
}
