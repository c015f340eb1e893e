package store

import "github.com/orrerydb/orrery/core/kv"

// each calls f for every key of a range.
func each(snap kv.Snapshot, lo, hi []byte, f func(key, val []byte) error) error {
	it, err := snap.Iter(lo, hi)
	if err != nil {
		return translate(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if err := f(it.Key(), it.Value()); err != nil {
			return err
		}
	}
	return translate(it.Err())
}
