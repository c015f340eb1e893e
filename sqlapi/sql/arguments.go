package sql

import (
	"encoding/binary"

	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/shape"
)

// Of an object only those properties are sent to a function that it can read. Items are often large, and most functions
// read few of their properties.
//
// Example: SELECT udf.total(c) FROM c, where total reads the properties price and n, sends [{"price":9.5,"n":2}] for
// each item. No value of the whole item is made.

// part is a property that a function can read.
type part struct {
	name  string
	label []byte // `"name":`
}

// partsFor returns the parts with these names; nil for nil.
func partsFor(names []string) []part {
	if names == nil {
		return nil
	}
	parts := make([]part, len(names))
	for i, name := range names {
		parts[i] = part{name, json.AppendName(nil, []byte(name))}
	}
	return parts
}

// partsOf returns what is sent of an object that is an argument of a function; nil: all of it.
func (u *calls) partsOf(function, argument int) []part {
	if parts := u.parts[function]; argument < len(parts) {
		return parts[argument]
	}
	return nil
}

// onItem reports whether the current row is an item as the core has it.
func (f *frame) onItem() bool { return f.root.item != nil && f.root.doc != nil && f.root.row == nil }

// appendArguments appends a list of arguments for Functions.Call, or the key of such a list: there the item itself is
// its number. An argument that is the item itself has no value.
func (u *calls) appendArguments(dst []byte, f *frame, function int, exprs []cexpr, args []value.Value,
	key bool) []byte {
	dst = append(dst, '[')
	for i, v := range args {
		if i > 0 {
			dst = append(dst, ',')
		}
		parts := u.partsOf(function, i)
		switch {
		case exprs[i].whole && f.onItem():
			if key {
				dst = binary.BigEndian.AppendUint64(append(dst, 0), f.root.item.Number)
			} else {
				dst = f.appendItem(dst, parts)
			}
		case parts != nil && v.Kind() == value.Object:
			dst = appendParts(dst, parts, v.Get)
		case v.IsDefined():
			dst = doc.AppendJSON(dst, v)
		default:
			dst = append(dst, "undefined"...)
		}
	}
	return append(dst, ']')
}

// appendItem appends the current item, or parts of it.
func (f *frame) appendItem(dst []byte, parts []part) []byte {
	switch {
	case parts != nil:
		return appendParts(dst, parts, f.property)
	case f.env.ItemJSON != nil && f.env.Form == nil:
		return f.env.ItemJSON(dst, f.root.item)
	}
	return doc.AppendJSON(dst, f.wholeItem())
}

func appendParts(dst []byte, parts []part, get func(name string) value.Value) []byte {
	dst = append(dst, '{')
	some := false
	for _, p := range parts {
		v := get(p.name)
		if !v.IsDefined() {
			continue
		}
		if some {
			dst = append(dst, ',')
		}
		some = true
		dst = doc.AppendJSON(append(dst, p.label...), v)
	}
	return append(dst, '}')
}

// property returns a property of the current item as wholeItem has it.
func (f *frame) property(name string) value.Value {
	if shape.IsSystem(name) {
		return f.system(name)
	}
	stored, ok := doc.NoSQL.Stored(name)
	if !ok {
		return value.Value{}
	}
	v := value.ObjectOf(f.root.doc).Get(stored)
	if stored == "_id" {
		return identity(v)
	}
	return v
}
