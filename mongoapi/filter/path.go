package filter

import (
	"strings"

	"github.com/orrerydb/orrery/core/value"
)

// visit calls fn for every value that the path reaches in v, with MongoDB's implicit array traversal, until fn returns
// true; it reports whether fn did.
//
//   - A path that ends in nothing gives Undefined once, unless it ran through an array: then only its objects count.
//   - In the middle of a path an array stands for each of its objects, and, when the next name is a number, for the
//     element at that index as well.
//   - At the end of a path an array stands for each of its elements and for itself (leaf true), or only for itself.
//
// index is the position of the array element through which fn was reached in the outermost array, -1 without one.
func visit(v value.Value, path []string, leaf bool, fn func(v value.Value, index int) bool) bool {
	for len(path) > 0 && v.Kind() == value.Object {
		v, path = v.Get(path[0]), path[1:]
	}
	if v.Kind() != value.Array {
		if len(path) > 0 {
			return fn(value.Undef(), -1)
		}
		return fn(v, -1)
	}
	if len(path) == 0 {
		if leaf {
			i := 0
			for it := v.Iter(); it.Next(); i++ {
				if fn(it.Value(), i) {
					return true
				}
			}
		}
		return fn(v, -1)
	}
	at := arrayIndex(path[0])
	i := 0
	for it := v.Iter(); it.Next(); i++ {
		e := it.Value()
		if e.Kind() == value.Object && visit(e, path, leaf, func(v value.Value, _ int) bool { return fn(v, i) }) {
			return true
		}
		if i != at {
			continue
		}
		if len(path) == 1 {
			if visitIndexed(e, leaf, i, fn) {
				return true
			}
		} else if e.Kind() == value.Object || e.Kind() == value.Array {
			if visit(e, path[1:], leaf, func(v value.Value, _ int) bool { return fn(v, i) }) {
				return true
			}
		}
	}
	return false
}

// visitIndexed is the end of a path that named an index: an array there is traversed like any other leaf.
func visitIndexed(e value.Value, leaf bool, i int, fn func(v value.Value, index int) bool) bool {
	if leaf && e.Kind() == value.Array {
		for it := e.Iter(); it.Next(); {
			if fn(it.Value(), i) {
				return true
			}
		}
	}
	return fn(e, i)
}

// arrayIndex reads a path component as an array index, -1 when it is none.
func arrayIndex(s string) int {
	if s == "" || len(s) > 9 || len(s) > 1 && s[0] == '0' {
		return -1
	}
	n := 0
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return -1
		}
		n = n*10 + int(s[i]-'0')
	}
	return n
}

// splitPath cuts a dotted path. An empty component is a name like any other.
func splitPath(p string) []string { return strings.Split(p, ".") }

// Visit calls fn for every value that a dotted path reaches in doc, as conditions see it: elements of arrays, and the
// arrays themselves when whole is set.
func Visit(doc value.Value, path string, whole bool, fn func(v value.Value)) {
	visit(doc, splitPath(path), true, func(v value.Value, _ int) bool {
		if v.IsDefined() && (whole || v.Kind() != value.Array) {
			fn(v)
		}
		return false
	})
}
