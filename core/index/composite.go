package index

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/collate"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// Limits of composite indexes, those of the service.
const (
	MaxComposites = 100
	MaxColumns    = 8
)

// Composite is a compiled composite index. Every item has exactly one entry under its id; its value is the
// concatenation of the column values, where a missing value has the class Undefined. So the entries name every item
// that the policy indexes. Their bytes are in the order of the columns, unless values of a column are Lossy, Array,
// Foreign or Mixed.
type Composite struct {
	ID      uint64
	Columns []Column
	Array   []string // of a tuple path: the path of the array in which the columns' paths begin
	// Cut is the number of bytes of a string or binary that a column keeps.
	Cut int
	// Coll is the order of strings, nil for that of their bytes. With it the columns hold sort keys: see collated.go.
	Coll *collate.Collation
}

// Column is one path of a composite index. Its ids are elements of the Bloom set Columns in the head of a slot, which
// says what values the slot has at the column. The ids depend only on the path (and Cut), so several indexes with the
// same path share them and the set stays sparse.
type Column struct {
	Segs []string // stored names; SystemTS is the time of the last write. Under a collation CollatedPath is the first
	// Field is where the value is: Segs without the name of the collation.
	Field []string
	Desc  bool
	Path  string // as in the policy

	Lossy   uint64 // some values can't be read from their entries; such entries aren't in the order of the values
	Array   uint64 // an array is at the path or on the way to it: the languages differ in what the path then returns
	Foreign uint64 // some values are of kinds that JSON lacks, which a JSON view shows as other kinds
	// Some values belong to a class that MongoDB orders differently from the bytes: null (equal to missing there),
	// booleans, UUIDs.
	Mixed uint64
}

// ColumnJSON is a path of a composite index in the policy, and its order: ascending or descending.
type ColumnJSON struct {
	Path  string `json:"path"`
	Order string `json:"order,omitempty"`
}

// Composites returns the compiled composite indexes in the policy's order. They must not be modified.
func (p *Policy) Composites() []*Composite { return p.composites }

// Columns returns the composite index or the tuple path with this path id, or nil.
func (p *Policy) Columns(id uint64) *Composite {
	for _, list := range [][]*Composite{p.composites, p.tuples} {
		for _, c := range list {
			if c.ID == id {
				return c
			}
		}
	}
	return nil
}

// Parse splits the key of one of the index's entries.
func (c *Composite) Parse(l keys.Entries, key []byte) (keys.IndexEntry, error) {
	return l.ParseColumns(key, c.Cut, c.Directions())
}

// Directions returns for each column whether it is descending.
func (c *Composite) Directions() []bool {
	desc := make([]bool, len(c.Columns))
	for i := range desc {
		desc[i] = c.Columns[i].Desc
	}
	return desc
}

// compileComposites compiles the composite indexes of a policy.
func (p *Policy) compileComposites(defs [][]ColumnJSON) error {
	if len(defs) > MaxComposites {
		return status.New(status.BadRequest, "The indexing policy has more than %d composite indexes.", MaxComposites)
	}
	for _, cols := range defs {
		if len(cols) == 0 || len(cols) > MaxColumns {
			return status.New(status.BadRequest, "A composite index has at most %d paths.", MaxColumns)
		}
		c := &Composite{Cut: keys.ColumnCut(len(cols))}
		if !c.addColumns(cols, "") {
			return status.New(status.BadRequest, "The composite path %q could not be accepted.",
				cols[len(c.Columns)].Path)
		}
		p.addComposite(c)
	}
	return nil
}

// addColumns adds the columns for these paths. under is the name of their collation, "" for none. It returns false at a
// malformed path.
func (c *Composite) addColumns(cols []ColumnJSON, under string) bool {
	for _, col := range cols {
		segs, err := catalog.ParsePath(strings.TrimSuffix(col.Path, "/?"))
		if err != nil {
			return false
		}
		if len(segs) == 1 && segs[0] == "_ts" {
			segs[0] = SystemTS
		}
		field := segs
		if under != "" {
			segs = append([]string{under}, segs...)
		}
		c.Columns = append(c.Columns,
			Column{Segs: segs, Field: field, Desc: strings.EqualFold(col.Order, "descending"), Path: col.Path})
	}
	return true
}

// addComposite adds an index, unless it is there.
func (p *Policy) addComposite(c *Composite) {
	c.identify(p.Seed)
	if !slices.ContainsFunc(p.composites, func(o *Composite) bool { return o.ID == c.ID }) {
		p.composites = append(p.composites, c)
	}
}

// identify computes the ids of a composite index from its definition: the paths and their orders. They differ from the
// path ids of all document fields, because the hashed name begins with a zero byte, which no field name contains.
func (c *Composite) identify(seed uint64) {
	d := xxhash.New()
	_, _ = d.Write(binary.BigEndian.AppendUint64(nil, seed))
	_, _ = d.WriteString("\x00composite")
	for i := range c.Columns {
		col := &c.Columns[i]
		order := byte(1)
		if col.Desc {
			order = 2
		}
		_, _ = d.Write([]byte{0, order})
		for _, s := range col.Segs {
			_, _ = d.Write(binary.BigEndian.AppendUint32(nil, uint32(len(s))))
			_, _ = d.WriteString(s)
		}
	}
	c.ID = d.Sum64()
	for i := range c.Columns {
		col := &c.Columns[i]
		id := child(seed, []byte("\x00column"))
		for _, s := range col.Segs {
			id = child(id, []byte(s))
		}
		col.Lossy = child(id, []byte{0, byte(c.Cut >> 8), byte(c.Cut)})
		col.Array, col.Foreign, col.Mixed = child(id, []byte{1}), child(id, []byte{2}), child(id, []byte{3})
	}
}

// term adds the entry of a document, and adds the ids of the columns that its values concern to Columns.
func (c *Composite) term(t *Terms, doc []byte, ts int64) {
	off := t.begin(c.ID)
	flag, form := byte(FlagSet), anyForm
	for i := range c.Columns {
		col := &c.Columns[i]
		v, array := value.IntOf(ts), false
		if len(col.Field) != 1 || col.Field[0] != SystemTS {
			v, array = col.value(doc)
		}
		var lossy bool
		if t.buf, lossy = keys.AppendColumn(t.buf, c.Stored(v), c.Cut, col.Desc); lossy {
			flag |= FlagLossy
			t.Columns.Add(col.Lossy)
		}
		form = form.with(v, lossy || array || c.Coll != nil)
		if array {
			t.Columns.Add(col.Array)
		}
		if col.foreign(v) {
			t.Columns.Add(col.Foreign)
		}
		if mixed(v) {
			t.Columns.Add(col.Mixed)
		}
	}
	t.end(c.ID, off, flag|form.bits())
}

// value returns the value at the column's path. array is true if an array is there or on the way.
func (c *Column) value(doc []byte) (v value.Value, array bool) {
	v = value.ObjectOf(doc)
	for _, s := range c.Field {
		array = array || v.Kind() == value.Array
		v = v.Get(s)
	}
	return v, array || v.Kind() == value.Array
}

// foreign reports whether a JSON view shows v as another kind: kinds that JSON lacks, and identities that aren't
// strings.
func (c *Column) foreign(v value.Value) bool {
	if len(c.Segs) == 1 && c.Segs[0] == "_id" && v.Class() != value.ClassString {
		return true
	}
	return v.Kind() == value.Decimal || v.Class() > value.ClassObject || v.Class() == value.ClassMinKey
}

func mixed(v value.Value) bool {
	switch v.Class() {
	case value.ClassNull, value.ClassBool, value.ClassUUID:
		return true
	}
	return false
}
