package exec

import (
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/store"
	"github.com/orrerydb/orrery/core/value"
)

// cover makes rows of index entries: items that hold only what the entries tell. Such an item has its identity and
// number, but no LSN. Since rows have no LSN to wait for, the query waits once for all commits that its slots show.
type cover struct {
	b     *builder
	path  []string // of the leaf
	names []string // of path in the rows' documents: without the U+0000 of a path that no field has
	ts    bool     // the leaf's values are times of last writes
	comp  *index.Composite
	cols  []column
	parts []part
	doc   []byte
	ident []byte
	asc   []byte // memory for the ascending form of a descending column
	vals  []value.Value
}

// part is a needed value of the identity.
type part struct {
	segs []string
	at   int // its number among the values of the identity
}

// column is a column of a composite index. segs is nil if its value isn't needed.
type column struct {
	segs []string
	ts   bool // the time of the last write
	desc bool
}

// newCover prepares the rows of a leaf's entries.
func newCover(b *builder, leaf *access.Pred) *cover {
	c := &cover{b: b, path: leaf.Path.Segs, names: leaf.Path.Segs,
		ts: len(leaf.Path.Segs) == 1 && leaf.Path.Segs[0] == index.SystemTS}
	if len(c.path) > 0 && strings.HasPrefix(c.path[0], "\x00") {
		c.names = append([]string{c.path[0][1:]}, c.path[1:]...)
	}
	ks := b.KeyPaths()
	if leaf.Comp != nil {
		c.comp, c.cols = leaf.Comp.Index, make([]column, len(leaf.Comp.Index.Columns))
		for i := range c.cols {
			c.cols[i].desc = c.comp.Columns[i].Desc
		}
	}
	for _, n := range b.q.Needs {
		if leaf.Comp != nil {
			if i := leaf.Comp.Column(n.Segs); i >= 0 {
				c.cols[i].segs, c.cols[i].ts = n.Segs, isAlways(n) && !isID(n)
				continue
			}
		}
		switch at := slices.IndexFunc(ks, func(k []string) bool { return slices.Equal(k, n.Segs) }); {
		case slices.Equal(n.Segs, c.path):
		case at >= 0:
			c.parts = append(c.parts, part{n.Segs, at})
		default: // the id
			c.parts = append(c.parts, part{n.Segs, len(ks)})
		}
	}
	c.vals = make([]value.Value, len(c.parts))
	return c
}

// row makes a row of an entry with this flag. It returns false when the entry doesn't tell the row.
func (c *cover) row(r *row, e *keys.IndexEntry, flag byte) bool {
	if c.b.rows.former != nil { // only the item tells its whole number
		return false
	}
	at, doc := bson.Begin(c.doc[:0])
	c.doc = doc
	var ts int64
	var ok bool
	if c.comp != nil {
		ts, ok = c.columns(e.Value, flag)
	} else {
		ts, ok = c.value(e.Value, flag)
	}
	c.ident = c.b.layout.AppendIdentity(c.ident[:0], e.Name)
	if !ok || !c.identity(c.ident) {
		return false
	}
	for i := range c.parts {
		c.doc = appendNested(c.doc, c.parts[i].segs, c.vals[i])
	}
	c.doc = bson.End(c.doc, at)
	c.b.view.FromEntry(&r.item, c.ident, e.Number, c.doc, ts)
	r.covered = true
	return true
}

// value adds the value of a path's entry to the document. If the path is the time of the last write, it returns that
// time.
func (c *cover) value(enc []byte, flag byte) (ts int64, ok bool) {
	kind := index.FormKind(flag, enc[0])
	if c.ts {
		kind = value.Int64
	}
	if kind == value.Undefined {
		return 0, false
	}
	v, ok := keys.DecodeIndex(enc, kind)
	switch {
	case !ok:
		return 0, false
	case c.ts:
		return v.Int(), true
	}
	c.doc = appendNested(c.doc, c.names, v)
	return 0, true
}

// columns adds the needed values of a composite index's entry to the document, except the time of the last write, which
// it returns.
func (c *cover) columns(enc []byte, flag byte) (ts int64, ok bool) {
	if flag&index.FormMask == 0 {
		return 0, false
	}
	for i := range c.cols {
		col := &c.cols[i]
		rest, err := keys.SkipColumn(enc, c.comp.Cut, col.desc)
		if err != nil {
			return 0, false
		}
		b := enc[:len(enc)-len(rest)]
		if enc = rest; col.segs == nil {
			continue
		}
		if col.desc {
			c.asc = append(c.asc[:0], b...)
			keys.Invert(c.asc)
			b = c.asc
		}
		v, ok := index.ColumnValue(flag, b)
		switch {
		case !ok:
			return 0, false
		case col.ts:
			ts = v.Int()
		case v.IsDefined():
			c.doc = appendNested(c.doc, col.segs, v)
		}
	}
	return ts, true
}

// identity reads the needed values of an identity. It returns false when one isn't a string, because the identity
// doesn't tell the exact kind of other values.
func (c *cover) identity(ident []byte) bool {
	if len(c.parts) == 0 {
		return true
	}
	for at := 0; len(ident) > 0; at++ {
		rest, err := keys.SkipExact(ident)
		if err != nil {
			return false
		}
		for i := range c.parts {
			if c.parts[i].at != at {
				continue
			}
			v, _, err := keys.DecodeExact(ident)
			if err != nil || v.Kind() != value.String {
				return false
			}
			c.vals[i] = v
		}
		ident = rest
	}
	return true
}

// appendNested appends the BSON element of a value, nested in one object for each further segment.
func appendNested(dst []byte, segs []string, v value.Value) []byte {
	if len(segs) == 1 {
		return value.AppendElement(dst, segs[0], v)
	}
	at, dst := bson.BeginObject(dst, segs[0])
	return bson.End(appendNested(dst, segs[1:], v), at)
}

// entryRow makes the row of e's current entry. It uses the entry alone if c allows that, else it fetches the item.
// r.covered says which. It returns false when there is no such item.
func (b *builder) entryRow(r *row, e *entries, c *cover, m *store.Mem) (bool, error) {
	r.covered = false
	if c != nil && c.row(r, &e.cur, e.flag) {
		return true, nil
	}
	return b.fetchNamed(r, e.cur.Name, m)
}

// Times returns how many rows the current row stands for. With WantTally it is 0 for a row that another row counts.
func (r *Rows) Times() int { return 1 + r.row.more }

// sharp reports whether the entries at the paths are exact in a slot: equal entries have equal values, and the entries
// are in the order of all values.
func (b *builder) sharp(slot *store.ViewSlot) bool {
	return slot.Classes()&index.Odd == 0
}
