package index

import (
	"cmp"
	"math"
	"slices"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/value"
)

// The form of a value, in two bits of an entry's flag, tells the kind that its encoding leaves open, so that the value
// can be read from the entry alone. No form means that it can't: the value is cut or hashed, is of a kind or spelling
// that its encoding merges with another (a decimal, -0, a symbol), is one of several of its document at the path, or
// the entry is of a store that was written before there were forms.
const (
	formShift = 2
	FormMask  = 3 << formShift
	// the first kind of the class: Null, Bool, Int32, String, UUID, ObjectID, Date, Timestamp
	formOwn    = 1 << formShift
	formInt64  = 2 << formShift
	formDouble = 3 << formShift
)

// Bits of Classes that stand for no class.
const (
	// Bit 22 is set in some stores and says nothing.

	// Odd says that entries were met which may stand among those of another value: of decimals and symbols, which share
	// a class, and perhaps an encoding, with numbers and strings, and of field names that are there twice.
	Odd = 1 << 23
)

// formOf returns the form bits of a value whose index encoding isn't lossy.
func formOf(v value.Value) byte {
	switch v.Kind() {
	case value.Null, value.Bool, value.Int32, value.String, value.UUID, value.ObjectID, value.Date, value.Timestamp:
		return formOwn
	case value.Int64:
		return formInt64
	case value.Double:
		if f := v.Float(); f == f && (f != 0 || !math.Signbit(f)) {
			return formDouble
		}
	}
	return 0
}

// FormKind returns the kind of the value of an entry, Undefined when the entry doesn't tell it.
func FormKind(flag, class byte) value.Kind {
	if flag&(FlagElement|FlagLossy) != 0 {
		return value.Undefined
	}
	switch flag & FormMask {
	case formInt64:
		return value.Int64
	case formDouble:
		return value.Double
	case formOwn:
		switch class {
		case value.ClassNull:
			return value.Null
		case value.ClassBool:
			return value.Bool
		case value.ClassNumber:
			return value.Int32
		case value.ClassString:
			return value.String
		case value.ClassUUID:
			return value.UUID
		case value.ClassObjectID:
			return value.ObjectID
		case value.ClassDate:
			return value.Date
		case value.ClassTimestamp:
			return value.Timestamp
		}
	}
	return value.Undefined
}

// The form of a composite index's entry is one for all columns. It tells what numbers are: with formOwn whole ones are
// Int32, or Int64 where they don't fit, and others Double; with formInt64 whole ones are Int64; with formDouble all are
// Double. Values of other kinds are the first kind of their class. An entry has no form when no form is that of all its
// columns, or one of them can't be told.

// forms is a set of forms, a bit for each, that a composite entry may have after some of its columns.
type forms byte

const anyForm = forms(1<<(formOwn>>formShift) | 1<<(formInt64>>formShift) | 1<<(formDouble>>formShift))

// with returns the forms that suit one more column, too.
func (f forms) with(v value.Value, untold bool) forms {
	switch {
	case untold:
		return 0
	case !v.IsDefined():
		return f
	case formOf(v) == 0:
		return 0
	case !v.IsNumber():
		return f
	}
	n := value.KeyOfNumber(v)
	for _, form := range [...]byte{formOwn, formInt64, formDouble} {
		if numberKind(form, n.Floor, n.Exact) != v.Kind() {
			f &^= 1 << (form >> formShift)
		}
	}
	return f
}

// bits returns the first of the forms.
func (f forms) bits() byte {
	for _, form := range [...]byte{formOwn, formInt64, formDouble} {
		if f&(1<<(form>>formShift)) != 0 {
			return form
		}
	}
	return 0
}

// numberKind returns the kind that a form gives a number: f, or when exact is false one above it that no double is.
func numberKind(form byte, f float64, exact bool) value.Kind {
	switch {
	case form == formDouble, exact && f != math.Trunc(f), f < -1<<63, f >= 1<<63:
		return value.Double
	case form == formOwn && exact && f >= math.MinInt32 && f <= math.MaxInt32:
		return value.Int32
	}
	return value.Int64
}

// ColumnValue returns the value of a column of a composite entry with this flag, Undefined where the item has none; b
// is the column's encoding, ascending. ok is false when the entry doesn't tell it.
func ColumnValue(flag byte, b []byte) (v value.Value, ok bool) {
	form := flag & FormMask
	if form == 0 || flag&(FlagElement|FlagLossy) != 0 || len(b) == 0 {
		return v, false
	}
	kind := FormKind(formOwn, b[0])
	switch b[0] {
	case value.ClassUndefined:
		return v, true
	case value.ClassNumber:
		d, exact := keys.DecodeIndex(b, value.Double)
		kind = numberKind(form, d.Float(), exact)
	}
	return keys.DecodeIndex(b, kind)
}

// fieldTerms are the terms that a field of an object brought: list[from:to] of the walk.
type fieldTerms struct {
	id       uint64
	from, to int
}

// object tells whether an object has a field name twice. What the second of them holds isn't at its path (the first one
// counts), but its entries are: so the entries below either get no form.
type object struct {
	t     *Terms
	id    uint64 // the path of the present field
	from  int
	base  int // where the object's names begin
	seen  Bloom
	off   bool
	empty bool
}

// fewNames is how many names of an object are compared one by one.
const fewNames = 64

func (w *walker) begin(elem bool) object {
	return object{t: w.t, base: len(w.t.names), off: elem, empty: true}
}

// field begins the next field, which has the path id.
func (o *object) field(id uint64) {
	if o.off {
		o.id = id
		return
	}
	o.close()
	o.id, o.from, o.empty = id, len(o.t.list), false
}

// close records the terms of the present field.
func (o *object) close() {
	if o.empty {
		return
	}
	f := fieldTerms{o.id, o.from, len(o.t.list)}
	if ns := o.t.names[o.base:]; o.seen.Has(f.id) && len(ns) < fewNames {
		for _, n := range ns {
			if n.id == f.id {
				o.t.twice(n, f)
			}
		}
	}
	o.seen.Add(f.id)
	o.t.names = append(o.t.names, f)
}

// end ends the object.
func (o *object) end() {
	if o.off {
		return
	}
	o.close()
	if ns := o.t.names[o.base:]; len(ns) > fewNames {
		slices.SortFunc(ns, func(a, b fieldTerms) int { return cmp.Compare(a.id, b.id) })
		for i := 1; i < len(ns); i++ {
			if ns[i-1].id == ns[i].id {
				o.t.twice(ns[i-1], ns[i])
			}
		}
	}
	o.t.names = o.t.names[:o.base]
}

// twice takes the form from the terms of two fields with one name.
func (t *Terms) twice(a, b fieldTerms) {
	t.Classes |= Odd
	for _, f := range [...]fieldTerms{a, b} {
		for i := f.from; i < f.to; i++ {
			t.list[i].flag &^= FormMask
		}
	}
}

// markMany takes the form from the values at a path that has several in this document, elements apart: a field name
// that is there twice. The path joins Elements, too. An "any value" entry counts as one.
func (t *Terms) markMany() {
	for i := 0; i < len(t.list); {
		path := t.list[i].path
		j, n, plain := i, 0, 0
		for ; j < len(t.list) && t.list[j].path == path; j++ {
			switch {
			case t.buf[t.list[j].off+8] >= value.ClassLeafCell: // one of the cells of a shape
			case t.list[j].flag&FlagElement == 0:
				n++
				plain++
			case t.buf[t.list[j].off+8] == value.ClassAny:
				n++
			}
		}
		if n > 1 {
			for k := i; k < j; k++ {
				t.list[k].flag &^= FormMask
				if plain > 1 && t.list[k].flag&FlagElement == 0 {
					t.list[k].flag |= FlagMany
				}
			}
			t.Classes |= Odd
			if plain > 1 {
				t.Elements.Add(path)
			}
		}
		i = j
	}
}
