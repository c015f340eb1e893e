package index

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/collate"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// Declared is a compiled declared index. It is immutable.
//
// An item has one key for each combination of values at the paths. Arrays are expanded: each element counts. The
// elements of one array are taken together, so [{x: 1, y: 2}, {x: 3, y: 4}] at a has the keys (1, 2) and (3, 4) at the
// paths a.x and a.y. Two different arrays in one item are refused.
//
//	{a: 1, b: "x"}        paths a, b    (1, "x")
//	{a: [1, 2], b: "x"}   paths a, b    (1, "x") (2, "x")
//	{b: "x"}              paths a, b    (null, "x")
//	{a: []}               path a        (undefined)
type Declared struct {
	catalog.Declared
	only  *condition
	names []string // the paths with dots, for messages
	coll  *collate.Collation
}

// CompileDeclared compiles a declared index; BadRequest if it is malformed.
func CompileDeclared(of catalog.Declared) (*Declared, error) {
	d := &Declared{Declared: of}
	if len(of.Paths) == 0 || of.After != nil && len(of.Paths) != 1 {
		return nil, status.New(status.BadRequest, "The index %q has a wrong number of paths.", of.Name)
	}
	for _, p := range of.Paths {
		if len(p) == 0 {
			return nil, status.New(status.BadRequest, "The index %q has an empty path.", of.Name)
		}
		d.names = append(d.names, strings.Join(p, "."))
	}
	if of.Collation != nil {
		if d.coll = collate.New(*of.Collation); d.coll == nil {
			return nil, status.New(status.BadRequest, "The index %q has the unknown collation %q.", of.Name,
				of.Collation.Locale)
		}
	}
	if of.Only != nil {
		var coll *collate.Collation
		if of.CollatedOnly {
			coll = d.coll
		}
		only, err := compileCondition(of.Only, coll)
		if err != nil {
			return nil, err
		}
		d.only = only
	}
	return d, nil
}

// ParallelArrays is the cause of the refusal of an item with two arrays at the paths of one index.
type ParallelArrays struct{ A, B string } // paths, with dots

// Error implements error.
func (p *ParallelArrays) Error() string {
	return fmt.Sprintf("cannot index parallel arrays [%s] [%s]", p.A, p.B)
}

// DeclaredKey is a key of an item.
type DeclaredKey struct {
	Bytes  []byte        // equal if and only if the values are
	Values []value.Value // one for each path; they point into the document
}

// Keys returns the different keys of a document, sorted; none if the index isn't for it. It fails with BadRequest if
// the document can't have keys.
func (d *Declared) Keys(doc []byte) ([]DeclaredKey, error) {
	if d.only != nil && !d.only.holds(doc) {
		return nil, nil
	}
	x := expansion{d: d}
	fields := make([]pathValue, len(d.Paths))
	for i, p := range d.Paths {
		fields[i] = pathValue{v: value.ObjectOf(doc), path: p}
	}
	if err := x.expand(fields); err != nil {
		return nil, err
	}
	if len(x.out) > 1 {
		slices.SortFunc(x.out, func(a, b DeclaredKey) int { return bytes.Compare(a.Bytes, b.Bytes) })
		x.out = slices.CompactFunc(x.out, func(a, b DeclaredKey) bool { return bytes.Equal(a.Bytes, b.Bytes) })
	}
	return x.out, nil
}

// pathValue is how far the look-up of a path has come.
type pathValue struct {
	v     value.Value
	path  []string
	at    int  // segments that are done
	ended bool // v is the value: an array isn't expanded any more
	empty bool // v is that of an empty array
}

// walk follows objects up to the first array, or to the end.
func (f *pathValue) walk() {
	for !f.ended && f.at < len(f.path) {
		switch f.v.Kind() {
		case value.Object:
			f.v = f.v.Get(f.path[f.at])
		case value.Array:
			n, ok := position(f.path[f.at])
			if !ok || n >= f.v.Len() {
				return
			}
			f.v = f.v.At(n)
		default:
			f.v, f.ended = value.Undef(), true
			return
		}
		f.at++
	}
	f.ended = f.ended || f.v.Kind() != value.Array
}

// position reads a segment that is the position of an array's element.
func position(seg string) (int, bool) {
	if seg == "" || len(seg) > 1 && seg[0] == '0' || strings.Trim(seg, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(seg)
	return n, err == nil
}

// element returns the look-up for an element of the array that it has come to.
func (f pathValue) element(e value.Value) pathValue {
	switch {
	case f.at == len(f.path):
		f.v, f.ended = e, true
	case e.Kind() == value.Object:
		f.v = e
	default:
		f.v, f.ended = value.Undef(), true
	}
	return f
}

// expansion makes the keys of a document.
type expansion struct {
	d   *Declared
	out []DeclaredKey
}

func (x *expansion) expand(fields []pathValue) error {
	array := -1
	for i := range fields {
		f := &fields[i]
		if f.walk(); f.ended {
			continue
		}
		if array < 0 {
			array = i
			continue
		}
		if o := &fields[array]; !slices.Equal(f.path[:f.at], o.path[:o.at]) {
			return status.Wrap(status.BadRequest, &ParallelArrays{x.d.names[i], x.d.names[array]},
				"cannot index parallel arrays [%s] [%s]", x.d.names[i], x.d.names[array])
		}
	}
	if array < 0 {
		x.add(fields)
		return nil
	}
	over := fields[array].v
	next := make([]pathValue, len(fields))
	if over.Len() == 0 {
		for i, f := range fields {
			if next[i] = f; !f.ended {
				next[i].empty = f.at == len(f.path)
				next[i].v, next[i].ended = value.Undef(), true
			}
		}
		return x.expand(next)
	}
	for it := over.Iter(); it.Next(); {
		for i, f := range fields {
			if next[i] = f; !f.ended {
				next[i] = f.element(it.Value())
			}
		}
		if err := x.expand(next); err != nil {
			return err
		}
	}
	return nil
}

// Keys of up to longest bytes hold the values themselves. Longer ones hold a digest.
const (
	longest     = 64
	keyOfValues = 1
	keyOfDigest = 2
)

// add adds the key of one combination of values.
func (x *expansion) add(fields []pathValue) {
	if x.d.Sparse && !slices.ContainsFunc(fields, func(f pathValue) bool { return f.v.IsDefined() || f.empty }) {
		return
	}
	k := DeclaredKey{Bytes: append(make([]byte, 0, longest+1), keyOfValues),
		Values: make([]value.Value, 0, len(fields))}
	for _, f := range fields {
		v := f.v
		if !v.IsDefined() && !f.empty {
			v = value.NullValue()
		}
		k.Bytes = keys.AppendExact(k.Bytes, x.d.coll.Key(v))
		k.Values = append(k.Values, v)
	}
	if len(k.Bytes) > longest {
		sum := sha256.Sum256(k.Bytes)
		k.Bytes = append(append(k.Bytes[:0], keyOfDigest), sum[:]...)
	}
	x.out = append(x.out, k)
}

// Due reports whether a document's life ends at or before a time in milliseconds since 1970.
func (d *Declared) Due(doc []byte, now int64) bool {
	first := int64(math.MaxInt64)
	eachAt(value.ObjectOf(doc), d.Paths[0], func(v value.Value) bool {
		if v.Kind() == value.Date {
			first = min(first, v.DateMS())
		}
		return true
	})
	return first <= d.DueBefore(now) && (d.only == nil || d.only.holds(doc))
}

// DueBefore returns the latest date that ends the life of an item at a time; both in milliseconds since 1970.
func (d *Declared) DueBefore(now int64) int64 { return now - 1000*int64(*d.After) }

// DatesUntil returns the bounds of the encodings of dates up to a time in milliseconds since 1970, in the entries of a
// path.
func DatesUntil(ms int64) (lo, hi []byte) {
	lo, _ = keys.ClassRange(value.ClassDate)
	hi, _ = keys.AppendIndex(nil, value.DateOf(ms, 0))
	return lo, keys.After(hi)
}

// condition is a compiled catalog.Condition.
type condition struct {
	all, any []*condition
	path     []string
	op       string
	v        value.Value
	types    []byte
	coll     *collate.Collation // nil: strings are compared by their bytes
}

func compileCondition(of *catalog.Condition, coll *collate.Collation) (*condition, error) {
	c := &condition{path: of.Path, op: of.Op, types: of.Types, coll: coll}
	for _, list := range []struct {
		from []catalog.Condition
		to   *[]*condition
	}{{of.All, &c.all}, {of.Any, &c.any}} {
		for i := range list.from {
			part, err := compileCondition(&list.from[i], coll)
			if err != nil {
				return nil, err
			}
			*list.to = append(*list.to, part)
		}
	}
	if of.Op == "" {
		return c, nil
	}
	ok := len(of.Path) > 0
	switch of.Op {
	case catalog.OpExists, catalog.OpType:
	case catalog.OpEqual, catalog.OpLess, catalog.OpLessOrEqual, catalog.OpGreater, catalog.OpGreaterOrEqual:
		var read bool
		c.v, _, read = value.ReadTyped(of.Value)
		ok = ok && read
	default:
		ok = false
	}
	if !ok {
		return nil, status.New(status.BadRequest, "The condition of an index is malformed.")
	}
	return c, nil
}

// holds reports whether a document fulfils the condition.
func (c *condition) holds(doc []byte) bool {
	for _, p := range c.all {
		if !p.holds(doc) {
			return false
		}
	}
	if len(c.any) > 0 && !slices.ContainsFunc(c.any, func(p *condition) bool { return p.holds(doc) }) {
		return false
	}
	if c.op == "" {
		return true
	}
	found := false
	eachAt(value.ObjectOf(doc), c.path, func(v value.Value) bool {
		found = c.matches(v)
		return !found
	})
	return found
}

// matches reports whether a value fulfils a condition without parts.
func (c *condition) matches(v value.Value) bool {
	switch c.op {
	case catalog.OpExists:
		return v.IsDefined()
	case catalog.OpType:
		return v.IsDefined() && bytes.IndexByte(c.types, value.BSONType(v)) >= 0
	}
	if v.Class() != c.v.Class() && !(c.v.Kind() == value.Null && !v.IsDefined()) {
		return false
	}
	n := c.coll.Compare(v, c.v)
	switch c.op {
	case catalog.OpEqual:
		return n == 0
	case catalog.OpLess:
		return n < 0
	case catalog.OpLessOrEqual:
		return n <= 0
	case catalog.OpGreater:
		return n > 0
	}
	return n >= 0
}

// eachAt calls f for the values at a path until it returns false: an array and each of its elements, and Undefined
// where the path ends early. It returns false if f did.
func eachAt(v value.Value, path []string, f func(value.Value) bool) bool {
	for i, seg := range path {
		if v.Kind() != value.Array {
			v = v.Get(seg)
			continue
		}
		some := false
		for it := v.Iter(); it.Next(); {
			if e := it.Value(); e.Kind() == value.Object {
				if some = true; !eachAt(e, path[i:], f) {
					return false
				}
			}
		}
		if n, ok := position(seg); ok && n < v.Len() {
			return eachAt(v.At(n), path[i+1:], f)
		}
		return some || f(value.Undef())
	}
	if v.Kind() == value.Array {
		for it := v.Iter(); it.Next(); {
			if !f(it.Value()) {
				return false
			}
		}
	}
	return f(v)
}
