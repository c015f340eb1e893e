package kv

import "errors"

// Values is the result of Snapshot.GetMany: one value for each key, in the order of the keys. The values are valid
// until the next GetMany, which uses the same memory. The zero value is empty. Not safe for concurrent use.
//
// Example: two index entries name two items, and the first item has been deleted.
//
//	err := snap.GetMany(&vals, [][]byte{key1, key2})
//	vals.At(0) // nil: there is no key1
//	vals.At(1) // key2's value
type Values struct {
	// Most limits the bytes that one GetMany reads: it stops after the value with which Most is reached. 0 = no limit.
	Most int

	mem  []byte
	ends []int // of the values in mem; an absent key has none
}

// Len returns how many keys were read, beginning with the first. It is less than the number of keys when Most was
// reached, but at least one.
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

// Bytes returns the total length of the values.
func (v *Values) Bytes() int { return len(v.mem) }

// Cap returns the size of the memory that the next GetMany can use.
func (v *Values) Cap() int { return cap(v.mem) }

// Reset removes the values and keeps their memory.
func (v *Values) Reset() { v.mem, v.ends = v.mem[:0], v.ends[:0] }

// Fill reads keys one by one with get, a Snapshot's Get. It is for engines that have no faster way to read several
// keys.
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
