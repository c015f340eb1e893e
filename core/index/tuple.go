package index

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/value"
)

// A tuple path, /events/[]/{name, category}/?, indexes values that occur together in one element of an array. It is
// stored as a composite index. An item has one entry for each element with a value at the first member. Elements
// without one have no entry, so only a query with a condition on the first member can use the index.
//
//	{"events": [{"name": "a", "category": 1}, {"name": "b"}, {"category": 2}]}
//	entries: ("a", 1), ("b", undefined)

// maxTuples is the largest number of elements of an item's array with an entry each. An item with more elements also
// has an entry without a value at any member (Rest), which every scan of the tuple path reads too.
const maxTuples = 1000

// Tuples returns the compiled tuple paths. They must not be modified.
func (p *Policy) Tuples() []*Composite { return p.tuples }

// IsTuple reports whether an indexing path has the form of a tuple path.
func IsTuple(path string) bool {
	quoted := false
	for i := 1; i < len(path); i++ {
		if path[i] == '"' {
			quoted = !quoted
		} else if path[i] == '{' && path[i-1] == '/' && !quoted {
			return true
		}
	}
	return false
}

// ParseTuple splits a tuple path into the path of the array and those of the members, as written. ok is false if it
// breaks a rule of the service: there is one array mark, directly before the braces; members have no leading slash, no
// array mark and no wildcard at their end; /? follows the braces.
func ParseTuple(path string) (array string, members []string, ok bool) {
	array, rest, found := strings.Cut(path, "/[]/{")
	inner, tail, closed := strings.Cut(rest, "}")
	if !found || !closed || tail != "/?" || array == "" || strings.ContainsAny(array, "{}") ||
		strings.ContainsAny(inner, "{") {
		return "", nil, false
	}
	if segs, err := catalog.ParsePath(array); err != nil || slices.Contains(segs, "[]") {
		return "", nil, false
	}
	for _, m := range strings.Split(inner, ",") {
		m = strings.TrimSpace(m)
		segs, err := catalog.ParsePath("/x/" + m)
		if err != nil || slices.ContainsFunc(segs, func(s string) bool { return s == "[]" || s == "?" || s == "*" }) {
			return "", nil, false
		}
		members = append(members, m)
	}
	return array, members, len(members) <= MaxColumns
}

// addTuple compiles a tuple path and returns false if it is malformed. A path with positions in arrays ([1]) is
// accepted, but makes no index.
func (p *Policy) addTuple(path string) bool {
	array, members, ok := ParseTuple(path)
	if !ok {
		return false
	}
	c := &Composite{Cut: keys.ColumnCut(len(members))}
	c.Array, _ = catalog.ParsePath(array)
	position := slices.ContainsFunc(c.Array, isPosition)
	d := xxhash.New()
	_, _ = d.Write(binary.BigEndian.AppendUint64(nil, p.Seed))
	_, _ = d.WriteString("\x00tuple")
	for _, s := range c.Array {
		_, _ = d.Write(binary.BigEndian.AppendUint32(nil, uint32(len(s))))
		_, _ = d.WriteString(s)
	}
	for _, m := range members {
		segs, _ := catalog.ParsePath("/x/" + m)
		position = position || slices.ContainsFunc(segs, isPosition)
		c.Columns = append(c.Columns, Column{Segs: segs[1:], Field: segs[1:], Path: array + "/[]/" + m})
		_, _ = d.Write([]byte{0})
		for _, s := range segs[1:] {
			_, _ = d.Write(binary.BigEndian.AppendUint32(nil, uint32(len(s))))
			_, _ = d.WriteString(s)
		}
	}
	if c.ID = d.Sum64(); !position {
		p.tuples = append(p.tuples, c)
	}
	return true
}

func isPosition(seg string) bool {
	n := len(seg)
	return n > 2 && seg[0] == '[' && seg[n-1] == ']' && strings.Trim(seg[1:n-1], "0123456789") == ""
}

// Rest returns the value of the additional entry of items with too many elements.
func (c *Composite) Rest() (val []byte) {
	for range c.Columns {
		val, _ = keys.AppendColumn(val, value.Undef(), c.Cut, false)
	}
	return val
}

// tuples adds the entries of a document's array.
func (c *Composite) tuples(t *Terms, doc []byte) {
	v := lookup(value.ObjectOf(doc), c.Array)
	if v.Kind() != value.Array {
		return
	}
	n := 0
	for it := v.Iter(); it.Next(); {
		e := it.Value()
		if e.Kind() != value.Object || !lookup(e, c.Columns[0].Segs).IsDefined() {
			continue
		}
		off := t.begin(c.ID)
		if n++; n > maxTuples {
			t.buf = append(t.buf, c.Rest()...)
		} else {
			for i := range c.Columns {
				at := len(t.buf)
				t.buf, _ = keys.AppendColumn(t.buf, lookup(e, c.Columns[i].Segs), c.Cut, false)
				t.Classes |= 1 << (t.buf[at] >> 3)
			}
		}
		t.end(c.ID, off, FlagSet|FlagElement)
		if n > maxTuples {
			return
		}
	}
}
