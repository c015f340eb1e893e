package agg

import (
	"strings"

	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/filter"
)

// A $group, $sortByCount or $count makes new documents of a few values of each old one. If index entries have those
// values, the store needn't read the documents.
//
// Example: [{$match: {v: {$gt: 0}}}, {$group: {_id: "$k", n: {$sum: "$v"}}}] reads k and v. With an index on both, its
// entries are enough.

// needs returns the paths that the lead and the stage behind it read, nil if they may read others.
func (l *Lead) needs(name string, arg value.Value) []access.Path {
	if l.Filter.Near() != nil || l.Filter.Text() != nil || l.Nearest != nil || l.Sort.NeedsScore() {
		return nil
	}
	paths, ok := l.Filter.Reads()
	if !ok {
		return nil
	}
	for _, c := range l.Sort {
		paths = filter.AddPath(paths, c.Path)
	}
	add := func(path string) bool {
		segs, plain := filter.PathOf(path)
		if plain {
			paths = filter.AddPath(paths, segs)
		}
		return plain
	}
	switch name {
	case "$count":
	case "$sortByCount":
		ok = reads(arg, add)
	case "$group":
		for it := arg.Iter(); ok && it.Next(); {
			ok = reads(it.Value(), add)
		}
	default:
		return nil
	}
	if !ok || len(paths) == 0 {
		return nil
	}
	return paths
}

// reads calls add with each path that an expression, or an accumulator, reads. It returns false if it may read others.
func reads(v value.Value, add func(path string) bool) bool {
	switch v.Kind() {
	case value.String:
		s := v.Str()
		switch {
		case s == "" || s[0] != '$':
			return true
		case !strings.HasPrefix(s, "$$"):
			return add(s[1:])
		}
		name, rest, dotted := strings.Cut(s[2:], ".")
		if name != "ROOT" && name != "CURRENT" {
			return true // a variable was made of something that is read elsewhere
		}
		return dotted && add(rest)
	case value.Array:
		for it := v.Iter(); it.Next(); {
			if !reads(it.Value(), add) {
				return false
			}
		}
	case value.Object:
		for it := v.Iter(); it.Next(); {
			switch string(it.Key()) {
			case "$literal", "$const":
				continue
			case "$getField", "$setField", "$unsetField", "$meta", "$function", "$accumulator", // of the whole document
				"$top", "$topN", "$bottom", "$bottomN": // paths in the order
				return false
			}
			if !reads(it.Value(), add) {
				return false
			}
		}
	}
	return true
}
