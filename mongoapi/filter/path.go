package filter

import (
	"strings"

	"github.com/orrerydb/orrery/core/value"
)

// visit calls fn with every value at a path in v, with MongoDB's implicit array traversal, until fn returns true. It
// reports whether fn returned true.
//
//   - If the path doesn't exist, fn gets Undefined once. After an array on the path, only the array's objects count.
//   - In the middle of the path, an array represents each of its objects. If the next name is a number, it also
//     represents the element with that index.
//   - At the end of the path, an array represents each of its elements and itself (leaf true), or only itself.
//
// index is the position of the element through which the value was reached in the outermost array, or -1.
//
//	a.b   in {a: [{b: 1}, {b: [2, 3]}, 4]}, leaf  ->  1, 2, 3, [2, 3]
//	a.0   in {a: [5, {"0": 6}]}                   ->  5, 6
//	a.c   in {a: {b: 1}}                          ->  Undefined
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

// visitIndexed visits the end of a path whose last name was an index. An array there is traversed like any other leaf.
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

// ThroughArray reports whether an array is at a dotted path in doc, or on the way to it.
func ThroughArray(doc value.Value, path string) bool {
	v := doc
	for _, s := range splitPath(path) {
		if v.Kind() == value.Array {
			return true
		}
		v = v.Get(s)
	}
	return v.Kind() == value.Array
}

// arrayIndex returns a path component as an array index, -1 if it isn't one.
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

// splitPath splits a dotted path. An empty component is a valid name.
func splitPath(p string) []string { return strings.Split(p, ".") }

// Visit calls fn with every value at a dotted path in doc as conditions see it: elements of arrays and, with whole, the
// arrays themselves. An array in an array is an element.
func Visit(doc value.Value, path string, whole bool, fn func(v value.Value)) {
	visit(doc, splitPath(path), false, func(v value.Value, _ int) bool {
		if v.Kind() == value.Array {
			for it := v.Iter(); it.Next(); {
				fn(it.Value())
			}
		}
		if v.IsDefined() && (whole || v.Kind() != value.Array) {
			fn(v)
		}
		return false
	})
}
