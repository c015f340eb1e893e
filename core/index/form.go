package index

import (
	"cmp"
	"math"
	"slices"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/value"
)

// The form of a value is two bits of an entry's flag. It says which kind of its class the value has, so that the value
// can be read from the entry alone. No form means that this isn't possible: the value is cut or hashed; its kind or
// spelling shares an encoding with another one (a decimal, -0, a symbol); the document has several values at the path;
// or the entry was written before forms existed.
//
//	Int32 5   class Number, number 5, formOwn     ->  Int32 5
//	Int64 5   class Number, number 5, formInt64   ->  Int64 5
//	5.0       class Number, number 5, formDouble  ->  Double 5
//	dec. 5    class Number, number 5, no form     ->  the item must be read
const (
	formShift = 2
	FormMask  = 3 << formShift
	// the first kind of the class: Null, Bool, Int32, String, UUID, ObjectID, Date, Timestamp
	formOwn    = 1 << formShift
	formInt64  = 2 << formShift
	formDouble = 3 << formShift
)

// Bits of Classes that aren't classes.
const (
	// Bit 22 is set in some stores and has no meaning.

	// Odd says that entries of one value may be mixed with those of another: entries of decimals and symbols, which
	// share a class (and maybe an encoding) with numbers and strings, and of duplicate field names.
	Odd = 1 << 23
)

// formOf returns the form bits of a value with a lossless index encoding.
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

// FormKind returns the kind of an entry's value, or Undefined if the entry doesn't determine it.
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

// A composite index's entry has one form for all columns. It says what kind numbers have. formOwn: whole numbers are
// Int32, or Int64 if they don't fit; others are Double. formInt64: whole numbers are Int64. formDouble: all numbers are
// Double. Other values have the first kind of their class. An entry has no form if no form is right for all its
// columns, or if the value of a column can't be read from it.
//
// Examples with two columns: Int32 5 and Double 2.5 are formOwn, Int64 5 and Double 2.5 are formInt64, Double 5 and
// Double 2.5 are formDouble. Int32 5 and Double 2 have no form: formOwn would read the 2 as an Int32, formDouble the 5
// as a Double.

// forms is a set of forms, with one bit for each: those that are right for the columns so far.
type forms byte

const anyForm = forms(1<<(formOwn>>formShift) | 1<<(formInt64>>formShift) | 1<<(formDouble>>formShift))

// with returns the forms that are also right for one more column. untold means that the column's value can't be read
// from the entry.
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

// numberKind returns the kind of a number in a given form. The number is f, or if exact is false, an integer above f
// that isn't a double.
func numberKind(form byte, f float64, exact bool) value.Kind {
	switch {
	case form == formDouble, exact && f != math.Trunc(f), f < -1<<63, f >= 1<<63:
		return value.Double
	case form == formOwn && exact && f >= math.MinInt32 && f <= math.MaxInt32:
		return value.Int32
	}
	return value.Int64
}

// ColumnValue returns the value of a column of a composite entry with this flag, or Undefined if the item has none. b
// is the column's ascending encoding. ok is false if the entry doesn't determine the value.
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

// fieldTerms are the terms of one field of an object: list[from:to] of the walk.
type fieldTerms struct {
	id       uint64
	from, to int
}

// object detects duplicate field names of an object. Only the first field counts as the value at its path, but both
// have entries. So the entries below both get no form. Example: in {"a": 1, "a": 2} the value at /a is 1, and there are
// entries for 1 and for 2.
type object struct {
	t     *Terms
	id    uint64 // the path of the current field
	from  int
	base  int // where the object's names begin
	seen  Bloom
	off   bool
	empty bool
}

// fewNames is the largest number of names of an object that are compared pairwise.
const fewNames = 64

func (w *walker) begin(elem bool) object {
	return object{t: w.t, base: len(w.t.names), off: elem, empty: true}
}

// field begins the next field, whose path id is id.
func (o *object) field(id uint64) {
	if o.off {
		o.id = id
		return
	}
	o.close()
	o.id, o.from, o.empty = id, len(o.t.list), false
}

// close records the terms of the current field.
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

// twice removes the form from the terms of two fields with the same name.
func (t *Terms) twice(a, b fieldTerms) {
	t.Classes |= Odd
	for _, f := range [...]fieldTerms{a, b} {
		for i := f.from; i < f.to; i++ {
			t.list[i].flag &^= FormMask
		}
	}
}

// markMany removes the form from all values at a path with several values in this document, array elements not counted.
// A duplicate field name causes this. The path is added to Elements too. An "any value" entry counts as one value.
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
