package doc

import (
	"math"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// maxPad is the largest number of nulls that Set adds to an array to reach an index beyond its end.
const maxPad = 10000

// Get looks up a path in d without decoding the fields on its way. A segment is the stored name of a field of an
// object, or the decimal index of an element of an array. Get returns Undefined if the path doesn't exist.
func Get(d Doc, path ...string) value.Value { return getIn(value.ObjectOf(d), path...) }

// getIn is Get, starting at any value.
func getIn(v value.Value, path ...string) value.Value {
	for _, seg := range path {
		switch v.Kind() {
		case value.Object:
			v = value.Lookup(v.Bytes(), seg)
		case value.Array:
			i, ok := Index(seg)
			if !ok {
				return value.Value{}
			}
			v = v.At(i)
		default:
			return value.Value{}
		}
	}
	return v
}

// Index reads a path segment as an array index: decimal digits without a leading zero, below 2^31.
func Index(seg string) (int, bool) {
	if seg == "" || len(seg) > 10 || seg[0] == '0' && len(seg) > 1 {
		return 0, false
	}
	n := uint64(0)
	for i := range len(seg) {
		if seg[i] < '0' || seg[i] > '9' {
			return 0, false
		}
		n = n*10 + uint64(seg[i]-'0')
	}
	return int(n), n <= math.MaxInt32
}

// Set returns a copy of d in which path has the value v.
//
//   - An existing field keeps its position. A new field is appended. Missing objects on the path are created.
//   - In an array the segment replaces an element or appends one, after nulls that fill a gap of up to 10,000.
//   - Undefined removes the field or element.
//
// The error is BadRequest if path is empty, leads through a scalar, or names a field of an array.
func Set(d Doc, v value.Value, path ...string) (Doc, error) {
	if !v.IsDefined() {
		return Remove(d, path...)
	}
	return edit(d, v, opSet, path)
}

// Insert is Set, except in an array: there an index inserts before that element, "-" appends, and an index beyond the
// end is refused.
func Insert(d Doc, v value.Value, path ...string) (Doc, error) { return edit(d, v, opInsert, path) }

// Remove returns a copy of d without the field or array element at path. Later elements of the array move up. If path
// doesn't exist, the copy is equal to d.
func Remove(d Doc, path ...string) (Doc, error) { return edit(d, value.Value{}, opRemove, path) }

type editOp uint8

const (
	opSet editOp = iota
	opInsert
	opRemove
)

func edit(d Doc, v value.Value, op editOp, path []string) (Doc, error) {
	if len(path) == 0 {
		return nil, status.New(status.BadRequest, "an edit needs a path")
	}
	for _, seg := range path {
		if hasNUL([]byte(seg)) {
			return nil, status.New(status.BadRequest, "a path contains the character U+0000, which names can't hold")
		}
	}
	e := editor{v: v, op: op}
	if err := e.object(d, path); err != nil {
		return nil, err
	}
	return e.out, nil
}

type editor struct {
	out []byte
	v   value.Value
	op  editOp
}

func (e *editor) begin() (at int) {
	at, e.out = bson.Begin(e.out)
	return at
}

func (e *editor) end(at int) { e.out = bson.End(e.out, at) }

// object copies the object b with the edit at path. If a name occurs twice, only its first field is edited.
func (e *editor) object(b []byte, path []string) error {
	at := e.begin()
	done := false
	for it := value.ObjectOf(b).Iter(); it.Next(); {
		if done || string(it.Key()) != path[0] {
			e.out = append(e.out, it.Element()...)
			continue
		}
		done = true
		mark := len(e.out)
		e.out = bson.AppendHead(e.out, 0, path[0])
		if err := e.child(mark, it.Value(), path[1:]); err != nil {
			return err
		}
	}
	if !done && e.op != opRemove {
		mark := len(e.out)
		e.out = bson.AppendHead(e.out, 0, path[0])
		if err := e.child(mark, value.Value{}, path[1:]); err != nil {
			return err
		}
	}
	e.end(at)
	return nil
}

// child writes the edited form of old. The name of its element, which begins at mark, is already written. rest is the
// remaining path below it.
func (e *editor) child(mark int, old value.Value, rest []string) error {
	if len(rest) == 0 {
		if e.op == opRemove {
			e.out = e.out[:mark]
			return nil
		}
		e.out[mark] = value.BSONType(e.v)
		e.out = value.AppendBSON(e.out, e.v)
		return nil
	}
	switch old.Kind() {
	case value.Object:
		e.out[mark] = bson.TypeDocument
		return e.object(old.Bytes(), rest)
	case value.Array:
		e.out[mark] = bson.TypeArray
		return e.array(old, rest)
	case value.Undefined:
		e.out[mark] = bson.TypeDocument
		return e.object(Empty(), rest)
	}
	if e.op == opRemove {
		e.out[mark] = value.BSONType(old)
		e.out = value.AppendBSON(e.out, old)
		return nil
	}
	return status.New(status.BadRequest,
		"the path leads through a value that is no object or array, before %q", rest[0])
}

func (e *editor) array(a value.Value, path []string) error {
	n := a.Len()
	target, ok := Index(path[0])
	last := len(path) == 1
	if path[0] == "-" && e.op == opInsert && last {
		target, ok = n, true
	}
	switch {
	case e.op == opRemove && !ok:
		target = -1
	case !ok:
		return status.New(status.BadRequest, "%q is no index of an array", path[0])
	case e.op == opInsert && target > n, e.op == opSet && target > n+maxPad:
		return status.New(status.BadRequest, "index %d is beyond the end of the array", target)
	}
	at, i := e.begin(), 0
	put := func(v value.Value) {
		e.out = value.AppendIndexed(e.out, i, v)
		i++
	}
	pos := 0
	for it := a.Iter(); it.Next(); pos++ {
		if pos != target {
			put(it.Value())
			continue
		}
		if e.op == opInsert && last {
			put(e.v)
			put(it.Value())
			continue
		}
		mark := len(e.out)
		e.out = bson.AppendIndexHead(e.out, 0, i)
		if err := e.child(mark, it.Value(), path[1:]); err != nil {
			return err
		}
		if len(e.out) > mark {
			i++
		}
	}
	if target >= pos && e.op != opRemove {
		for i < target {
			put(value.NullValue())
		}
		mark := len(e.out)
		e.out = bson.AppendIndexHead(e.out, 0, i)
		if err := e.child(mark, value.Value{}, path[1:]); err != nil {
			return err
		}
	}
	e.end(at)
	return nil
}
