package changes

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
)

// Describe appends the fields of updateDescription: what an update has changed, computed from the document before and
// after it. Applied to the document before, it gives the document after, up to the order of fields.
//
//   - A field of an object that has another value is in updatedFields under its path. An object in both is compared
//     field by field, unless its common fields have changed their order: then it is one value.
//   - An array that has become shorter is in truncatedArrays with its new size. Elements that differ, or are new, are
//     in updatedFields. Objects in arrays are compared too.
//   - If the parts of an object or array would take more bytes than the whole, it is one value.
//
// With paths it also appends disambiguatedPaths: of each path that could be read in two ways, because a name has a dot
// or is a number, the list of its names and (as integers) array indexes.
//
// Example: {a: {b: 1, c: 2}, d: [1, 2, 3]} becomes {a: {b: 5}, d: [1]}: updatedFields {"a.b": 5}, removedFields
// ["a.c"], truncatedArrays [{field: "d", newSize: 1}].
func Describe(dst []byte, before, after value.Value, paths bool) []byte {
	d := diff{}
	d.object(nil, before, after)
	at, dst := bson.BeginObject(dst, "updatedFields")
	for _, c := range d.set {
		dst = value.AppendElement(dst, c.path.String(), c.to)
	}
	dst = bson.End(dst, at)
	at, dst = bson.BeginArray(dst, "removedFields")
	for i, p := range d.gone {
		dst = bson.AppendString(dst, strconv.Itoa(i), p.String())
	}
	dst = bson.End(dst, at)
	at, dst = bson.BeginArray(dst, "truncatedArrays")
	for i, c := range d.cut {
		var ca int
		ca, dst = bson.Begin(bson.AppendIndexHead(dst, bson.TypeDocument, i))
		dst = bson.AppendString(dst, "field", c.path.String())
		dst = bson.End(bson.AppendInt32(dst, "newSize", int32(c.size)), ca)
	}
	dst = bson.End(dst, at)
	if !paths {
		return dst
	}
	at, dst = bson.BeginObject(dst, "disambiguatedPaths")
	for _, p := range d.all() {
		if !p.ambiguous() {
			continue
		}
		var pa int
		pa, dst = bson.BeginArray(dst, p.String())
		for i, s := range p {
			if s.index {
				n, _ := strconv.Atoi(s.name)
				dst = bson.AppendInt32(dst, strconv.Itoa(i), int32(n))
			} else {
				dst = bson.AppendString(dst, strconv.Itoa(i), s.name)
			}
		}
		dst = bson.End(dst, pa)
	}
	return bson.End(dst, at)
}

// step is a part of a path: a field's name, or the index of an array's element.
type step struct {
	name  string
	index bool
}

type path []step

func (p path) String() string {
	names := make([]string, len(p))
	for i, s := range p {
		names[i] = s.name
	}
	return strings.Join(names, ".")
}

// with returns the path with one more step. It shares no memory that another path may append to.
func (p path) with(s step) path { return append(p[:len(p):len(p)], s) }

// ambiguous reports whether the path's text could stand for other names or indexes.
func (p path) ambiguous() bool {
	for _, s := range p {
		if !s.index && (strings.Contains(s.name, ".") || number(s.name)) {
			return true
		}
	}
	return false
}

// number reports whether a name could be an array's index.
func number(s string) bool {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return s != "" && (len(s) == 1 || s[0] != '0')
}

type setField struct {
	path path
	to   value.Value
}

type cutArray struct {
	path path
	size int
}

// diff is what changes one document into another.
type diff struct {
	set  []setField
	gone []path
	cut  []cutArray
	size int // about the number of bytes of its description
}

// all returns the paths of all changes.
func (d *diff) all() (out []path) {
	for _, c := range d.set {
		out = append(out, c.path)
	}
	for _, c := range d.cut {
		out = append(out, c.path)
	}
	return append(out, d.gone...)
}

func (d *diff) put(p path, v value.Value) {
	d.set = append(d.set, setField{p, v})
	d.size += len(v.Bytes()) + 16 + len(p.String())
}

// object compares the fields of two objects. The order of fields isn't compared.
func (d *diff) object(at path, before, after value.Value) {
	for it := before.Iter(); it.Next(); {
		if name := string(it.Key()); !after.Get(name).IsDefined() {
			d.gone = append(d.gone, at.with(step{name: name}))
			d.size += 16 + len(name)
		}
	}
	for it := after.Iter(); it.Next(); {
		name := string(it.Key())
		d.value(at.with(step{name: name}), before.Get(name), it.Value())
	}
}

// value compares two values at a path; before may be absent.
func (d *diff) value(at path, before, after value.Value) {
	if same(before, after) {
		return
	}
	inner := diff{}
	switch {
	case before.Kind() == value.Object && after.Kind() == value.Object && sameOrder(before, after):
		inner.object(at, before, after)
	case before.Kind() == value.Array && after.Kind() == value.Array && after.Len() > 0:
		inner.array(at, before, after)
	default:
		d.put(at, after)
		return
	}
	if inner.size > len(after.Bytes())+16+len(at.String()) {
		d.put(at, after)
		return
	}
	d.set, d.gone, d.cut, d.size = append(d.set, inner.set...), append(d.gone, inner.gone...),
		append(d.cut, inner.cut...), d.size+inner.size
}

// array compares two arrays.
func (d *diff) array(at path, before, after value.Value) {
	old, now := value.Elements(before), value.Elements(after)
	if len(now) < len(old) {
		d.cut = append(d.cut, cutArray{at, len(now)})
		d.size += 8
	}
	for i, v := range now {
		was := value.Undef()
		if i < len(old) {
			was = old[i]
		}
		d.value(at.with(step{strconv.Itoa(i), true}), was, v)
	}
}

// same reports whether two values have the same type and bytes.
func same(a, b value.Value) bool {
	if !a.IsDefined() || !b.IsDefined() {
		return a.IsDefined() == b.IsDefined()
	}
	return bytes.Equal(value.AppendElement(nil, "", a), value.AppendElement(nil, "", b))
}

// sameOrder reports whether fields that both objects have come in the same order, and in front of all new ones. Only
// then single fields make one of the other.
func sameOrder(before, after value.Value) bool {
	old := before.Iter()
	fresh := false
	for it := after.Iter(); it.Next(); {
		if !before.Get(string(it.Key())).IsDefined() {
			fresh = true
			continue
		}
		if fresh {
			return false
		}
		for {
			if !old.Next() {
				return false
			}
			if bytes.Equal(old.Key(), it.Key()) {
				break
			}
			if after.Get(string(old.Key())).IsDefined() {
				return false
			}
		}
	}
	return true
}
