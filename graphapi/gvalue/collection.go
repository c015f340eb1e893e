package gvalue

// Map is a map with keys of any kind, in the order of insertion. AppendKey defines the equality of keys. The zero Map
// is empty and ready to use. Not safe for concurrent use.
type Map struct {
	entries []Entry
	index   map[string]int // key bytes -> position; built when the map grows beyond smallMap
}

// Entry is one pair of a Map.
type Entry struct{ Key, Value any }

// smallMap is the size up to which a Map or Set is searched linearly.
const smallMap = 8

// NewMap makes a map with capacity for n entries.
func NewMap(n int) *Map { return &Map{entries: make([]Entry, 0, n)} }

// MapOf makes a map from alternating keys and values.
func MapOf(kv ...any) *Map {
	m := NewMap(len(kv) / 2)
	for i := 0; i+1 < len(kv); i += 2 {
		m.Put(kv[i], kv[i+1])
	}
	return m
}

// Len returns the number of entries, 0 for a nil map.
func (m *Map) Len() int {
	if m == nil {
		return 0
	}
	return len(m.entries)
}

// Entries returns the pairs in order. The slice belongs to the map: only values may be changed in it.
func (m *Map) Entries() []Entry {
	if m == nil {
		return nil
	}
	return m.entries
}

// Get returns the value of a key.
func (m *Map) Get(key any) (v any, ok bool) {
	if i := m.find(key); i >= 0 {
		return m.entries[i].Value, true
	}
	return nil, false
}

// GetString returns the value of a string key.
func (m *Map) GetString(key string) (v any, ok bool) {
	if m == nil {
		return nil, false
	}
	if m.index == nil {
		for i := range m.entries {
			if s, isString := m.entries[i].Key.(string); isString && s == key {
				return m.entries[i].Value, true
			}
		}
		return nil, false
	}
	return m.Get(key)
}

// Put sets the value of a key. An existing key keeps its position.
func (m *Map) Put(key, v any) {
	if i := m.find(key); i >= 0 {
		m.entries[i].Value = v
		return
	}
	m.Append(key, v)
}

// Append adds a pair whose key isn't in the map.
func (m *Map) Append(key, v any) {
	m.entries = append(m.entries, Entry{key, v})
	if m.index != nil {
		m.index[string(AppendKey(nil, key))] = len(m.entries) - 1
	}
}

// Delete removes a key and reports whether it was there.
func (m *Map) Delete(key any) bool {
	i := m.find(key)
	if i < 0 {
		return false
	}
	m.entries = append(m.entries[:i], m.entries[i+1:]...)
	m.index = nil
	return true
}

// find returns the position of key, or -1.
func (m *Map) find(key any) int {
	if m == nil {
		return -1
	}
	if m.index == nil && len(m.entries) > smallMap {
		m.index = make(map[string]int, 2*len(m.entries))
		for i := range m.entries {
			m.index[string(AppendKey(nil, m.entries[i].Key))] = i
		}
	}
	if m.index != nil {
		if i, ok := m.index[string(AppendKey(nil, key))]; ok {
			return i
		}
		return -1
	}
	for i := range m.entries {
		if Equal(m.entries[i].Key, key) {
			return i
		}
	}
	return -1
}

// Set contains each value once, in the order of insertion. The zero Set is empty and ready to use. Not safe for
// concurrent use.
type Set struct {
	items []any
	index map[string]struct{}
}

// SetOf makes a set from the values.
func SetOf(vs ...any) *Set {
	s := &Set{items: make([]any, 0, len(vs))}
	for _, v := range vs {
		s.Add(v)
	}
	return s
}

// Len returns the number of values, 0 for a nil set.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return len(s.items)
}

// Items returns the values in order. The slice belongs to the set.
func (s *Set) Items() []any {
	if s == nil {
		return nil
	}
	return s.items
}

// Add adds a value and reports whether it is new.
func (s *Set) Add(v any) bool {
	if s.Has(v) {
		return false
	}
	s.items = append(s.items, v)
	if s.index != nil {
		s.index[string(AppendKey(nil, v))] = struct{}{}
	}
	return true
}

// Has reports whether the set contains v.
func (s *Set) Has(v any) bool {
	if s == nil {
		return false
	}
	if s.index == nil && len(s.items) > smallMap {
		s.index = make(map[string]struct{}, 2*len(s.items))
		for _, x := range s.items {
			s.index[string(AppendKey(nil, x))] = struct{}{}
		}
	}
	if s.index != nil {
		_, ok := s.index[string(AppendKey(nil, v))]
		return ok
	}
	for _, x := range s.items {
		if Equal(x, v) {
			return true
		}
	}
	return false
}

// BulkSet is a multiset: each value with its count, in the order of first insertion.
type BulkSet struct {
	items []BulkItem
	index map[string]int
}

// BulkItem is one value of a BulkSet.
type BulkItem struct {
	Value any
	Bulk  int64
}

// Len returns the number of different values.
func (b *BulkSet) Len() int {
	if b == nil {
		return 0
	}
	return len(b.items)
}

// Items returns the values in order. The slice belongs to the BulkSet.
func (b *BulkSet) Items() []BulkItem {
	if b == nil {
		return nil
	}
	return b.items
}

// Add adds n occurrences of v.
func (b *BulkSet) Add(v any, n int64) {
	if b.index == nil {
		b.index = map[string]int{}
	}
	k := AppendKey(nil, v)
	if i, ok := b.index[string(k)]; ok {
		b.items[i].Bulk += n
		return
	}
	b.index[string(k)] = len(b.items)
	b.items = append(b.items, BulkItem{v, n})
}

// Append adds n occurrences of a value that isn't in the BulkSet yet, and that only Append adds to.
func (b *BulkSet) Append(v any, n int64) { b.items = append(b.items, BulkItem{v, n}) }

// LazyMap is a map that is a result of a traversal, and too large to be held. Its entries are read while it is written
// to a client.
type LazyMap struct {
	Len int
	// Each calls f with each entry, in order, and returns the first error of f or of its own. It may be called once.
	Each func(f func(e Entry) error) error
	// Written, if not nil, is called after each entry with the number of bytes that the map has taken so far. An error
	// of it ends the writing.
	Written func(bytes int) error
}
