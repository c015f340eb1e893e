package filter

import (
	"slices"

	"github.com/orrerydb/orrery/core/plan/access"
)

// Reads returns the paths of all values that the filter uses. No path is below another. ok is false if it may use
// others: with $expr, or if a name may be an array index.
func (f *Filter) Reads() (paths []access.Path, ok bool) {
	var list [][]string
	if ok = reads(f.root, &list); !ok {
		return nil, false
	}
	for _, segs := range list {
		paths = AddPath(paths, segs)
	}
	return paths, true
}

func reads(n node, list *[][]string) bool {
	switch n := n.(type) {
	case andNode:
		for _, k := range n {
			if !reads(k, list) {
				return false
			}
		}
		return true
	case orNode:
		return reads(andNode(n), list)
	case notNode:
		return reads(n.node, list)
	case constNode:
		return true
	case *pathNode:
		*list = append(*list, n.segs)
		return n.path != "" && !namesIndex(n.segs) && n.sarg.kind != sargPlace
	}
	return false
}

func namesIndex(segs []string) bool {
	return slices.ContainsFunc(segs, func(s string) bool { return arrayIndex(s) >= 0 })
}

// PathOf splits a dotted path. ok is false if a name may be an array index.
func PathOf(dotted string) (segs []string, ok bool) {
	segs = splitPath(dotted)
	return segs, !namesIndex(segs)
}

// AddPath adds a path to a list in which no path is below another.
func AddPath(paths []access.Path, segs []string) []access.Path {
	below := func(a, b []string) bool { return len(a) <= len(b) && slices.Equal(a, b[:len(a)]) }
	if slices.ContainsFunc(paths, func(p access.Path) bool { return below(p.Segs, segs) }) {
		return paths
	}
	paths = slices.DeleteFunc(paths, func(p access.Path) bool { return below(segs, p.Segs) })
	return append(paths, access.NewPath(segs...))
}
