package order

import (
	"bytes"
	"slices"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// Check returns an error for a document that can't be sorted: two columns lead through different arrays, so that there
// would be a key for each pair of elements.
//
//	{a: [1, 2], b: [3]}             by a, b       error
//	{a: [{x: 1, y: 2}, {x: 3}]}     by a.x, a.y   one array, no error
//	{a: [{x: [1], y: [2]}]}         by a.x, a.y   error, in the element
func (o Order) Check(doc value.Value) error {
	if len(o) < 2 {
		return nil
	}
	for _, c := range o {
		if through(doc, c.Path) >= 0 { // most documents have no array
			paths := make([][]string, len(o))
			for i, c := range o {
				paths[i] = c.Path
			}
			if _, _, bad := Parallel(doc, paths); bad {
				return merr.New(merr.BadValue, "cannot sort with keys that are parallel arrays")
			}
			break
		}
	}
	return nil
}

// through returns how many names of a path lead to the first array, -1 if there is none.
func through(v value.Value, path []string) int {
	for i, name := range path {
		if v.Kind() == value.Array {
			return i
		}
		v = v.Get(name)
	}
	if v.Kind() == value.Array {
		return len(path)
	}
	return -1
}

// Parallel reports whether two of the paths lead through different arrays of a document, and the names of these arrays.
func Parallel(v value.Value, paths [][]string) (a, b string, bad bool) {
	var array []string
	var rest [][]string
	for _, p := range paths {
		n := through(v, p)
		switch {
		case n < 0:
		case array == nil || slices.Equal(array, p[:n]):
			array, rest = p[:n:n], append(rest, p[n:])
		default:
			return last(array), last(p[:n]), true
		}
	}
	if len(rest) < 2 {
		return "", "", false
	}
	for _, name := range array {
		v = v.Get(name)
	}
	for it := v.Iter(); it.Next(); {
		if e := it.Value(); e.Kind() == value.Object {
			if a, b, bad = Parallel(e, rest); bad {
				return a, b, true
			}
		}
	}
	return "", "", false
}

// last returns the last name of a path; "" for an array in an array.
func last(path []string) string {
	if len(path) == 0 {
		return ""
	}
	return path[len(path)-1]
}

// ThroughArray reports whether a path with dots leads through an array, or to one.
func ThroughArray(v value.Value, path []byte) bool {
	for v.Kind() == value.Object {
		if len(path) == 0 {
			return false
		}
		name, rest, _ := bytes.Cut(path, []byte{'.'})
		v, path = v.Get(string(name)), rest
	}
	return v.Kind() == value.Array
}
