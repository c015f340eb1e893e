package catalog

import (
	"cmp"
	"iter"

	"github.com/tidwall/btree"
)

// table is a sorted map that is never changed. A change returns another table, which shares all nodes with it except
// those on the path to the change. The zero value is empty. Any number of goroutines may read a table. Changes of
// tables that descend from one another are made one at a time (Catalog.mu).
//
// It holds two handles of one B-tree, which share all nodes: read is never touched again, and own is copied by the next
// change.
type table[K cmp.Ordered, V any] struct {
	read, own *btree.Map[K, V]
}

// changed returns the table after f has changed it.
func (t table[K, V]) changed(f func(m *btree.Map[K, V])) table[K, V] {
	m := new(btree.Map[K, V])
	if t.own != nil {
		m = t.own.Copy()
	}
	f(m)
	return table[K, V]{read: m.Copy(), own: m}
}

// with returns the table with another value at a key.
func (t table[K, V]) with(k K, v V) table[K, V] {
	return t.changed(func(m *btree.Map[K, V]) { m.Set(k, v) })
}

// without returns the table without a key.
func (t table[K, V]) without(k K) table[K, V] {
	if _, ok := t.get(k); !ok {
		return t
	}
	return t.changed(func(m *btree.Map[K, V]) { m.Delete(k) })
}

func (t table[K, V]) get(k K) (v V, ok bool) {
	if t.read == nil {
		return v, false
	}
	return t.read.Get(k)
}

func (t table[K, V]) len() int {
	if t.read == nil {
		return 0
	}
	return t.read.Len()
}

// all gives the values in the order of keys.
func (t table[K, V]) all() iter.Seq[V] {
	return func(yield func(V) bool) {
		if t.read != nil {
			t.read.Scan(func(_ K, v V) bool { return yield(v) })
		}
	}
}

// from gives the values in the order of keys, from a key on.
func (t table[K, V]) from(k K) iter.Seq[V] {
	return func(yield func(V) bool) {
		if t.read != nil {
			t.read.Ascend(k, func(_ K, v V) bool { return yield(v) })
		}
	}
}

// frozen makes a table of a map. The map must not be used afterwards.
func frozen[K cmp.Ordered, V any](m *btree.Map[K, V]) table[K, V] {
	return table[K, V]{read: m.Copy(), own: m}
}
