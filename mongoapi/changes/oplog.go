package changes

import (
	"strconv"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
)

// OplogDiff appends the field diff of an update's entry in the oplog: what makes the document after the update of the
// one before it. A diff of an object has the fields d (names of removed fields), u (new values), i (new fields), and
// for a field that is an object or array in both s with its name: the diff of that. A diff of an array has a, l (its
// new length) if it has become shorter, and u or s with the index.
//
// Example: {a: {b: 1, c: 2}, d: [1, 2, 3]} becomes {a: {b: 5}, d: [7]}:
// {sa: {d: {c: false}, u: {b: 5}}, sd: {a: true, l: 1, u0: 7}}.
func OplogDiff(dst []byte, before, after value.Value) []byte {
	at, dst := bson.BeginObject(dst, "diff")
	return bson.End(appendObjectDiff(dst, before, after), at)
}

func appendObjectDiff(dst []byte, before, after value.Value) []byte {
	var gone, changed, fresh, inner []byte
	for it := before.Iter(); it.Next(); {
		if name := string(it.Key()); !after.Get(name).IsDefined() {
			gone = bson.AppendBool(gone, name, false)
		}
	}
	for it := after.Iter(); it.Next(); {
		name, now := string(it.Key()), it.Value()
		switch was := before.Get(name); {
		case !was.IsDefined():
			fresh = value.AppendElement(fresh, name, now)
		case same(was, now):
		case nested(was, now):
			inner = appendNested(inner, "s"+name, was, now)
		default:
			changed = value.AppendElement(changed, name, now)
		}
	}
	for _, part := range []struct {
		name  string
		elems []byte
	}{{"d", gone}, {"u", changed}, {"i", fresh}} {
		if len(part.elems) > 0 {
			at, b := bson.BeginObject(dst, part.name)
			dst = bson.End(append(b, part.elems...), at)
		}
	}
	return append(dst, inner...)
}

// nested reports whether a change between two values is described by a diff of its own.
func nested(was, now value.Value) bool {
	return was.Kind() == value.Object && now.Kind() == value.Object && sameOrder(was, now) ||
		was.Kind() == value.Array && now.Kind() == value.Array && now.Len() > 0
}

func appendNested(dst []byte, name string, was, now value.Value) []byte {
	at, dst := bson.BeginObject(dst, name)
	if now.Kind() == value.Object {
		return bson.End(appendObjectDiff(dst, was, now), at)
	}
	dst = bson.AppendBool(dst, "a", true)
	old, elems := value.Elements(was), value.Elements(now)
	if len(elems) < len(old) {
		dst = bson.AppendInt32(dst, "l", int32(len(elems)))
	}
	for i, v := range elems {
		switch n := strconv.Itoa(i); {
		case i >= len(old):
			dst = value.AppendElement(dst, "u"+n, v)
		case same(old[i], v):
		case nested(old[i], v):
			dst = appendNested(dst, "s"+n, old[i], v)
		default:
			dst = value.AppendElement(dst, "u"+n, v)
		}
	}
	return bson.End(dst, at)
}
