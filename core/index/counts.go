package index

import "github.com/orrerydb/orrery/core/value"

// Counts counts the index entries at a path, of one item or of many.
type Counts struct {
	Values int64 // of values at the path itself: one for each item with a value, unless a field name occurs twice
	// additional entries of an item: of elements of arrays, of arrays, of duplicate names
	Elements int64
	Lossy    int64 // of entries that don't determine their value: cut or hashed
}

// Add adds n entries with a flag and a class.
func (c *Counts) Add(flag, class byte, n int64) {
	if flag&FlagElement == 0 && class != value.ClassUndefined {
		c.Values += n
	}
	if flag&(FlagElement|FlagMany) != 0 || class == value.ClassArray {
		c.Elements += n
	}
	if flag&FlagLossy != 0 {
		c.Lossy += n
	}
}

// Count adds n times the terms at paths[i] to sums[i]. The paths ascend.
func (t *Terms) Count(paths []uint64, sums []Counts, n int64) {
	k := 0
	for i := range t.list {
		e := &t.list[i]
		for k < len(paths) && paths[k] < e.path {
			k++
		}
		if k == len(paths) {
			return
		}
		if paths[k] == e.path {
			sums[k].Add(e.flag, t.buf[e.off+8], n)
		}
	}
}
