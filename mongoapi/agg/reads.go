package agg

import (
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
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

// names are names of top-level fields; nil stands for all.
type names []string

// of returns a document with the fields that are named.
func (n names) of(d value.Value) value.Value {
	if n == nil {
		return d
	}
	at, b := bson.Begin(nil)
	for it := d.Iter(); it.Next(); {
		if slices.Contains(n, string(it.Key())) {
			b = append(b, it.Element()...)
		}
	}
	return value.ObjectOf(bson.End(b, at))
}

func (n *names) add(path string) bool {
	first, _, _ := strings.Cut(path, ".")
	if !slices.Contains(*n, first) {
		*n = append(*n, first)
	}
	return true
}

// readBehind returns the fields of its input that a pipeline reads, nil if it may read others, or returns its
// documents.
//
// Example: [{$match: {"a.b": 1}}, {$group: {_id: "$c", n: {$sum: 1}}}] reads a and c, and what behind it is reads
// groups.
func readBehind(specs []value.Value) names {
	n := names{}
	for _, s := range specs {
		it := s.Iter()
		if s.Kind() != value.Object || !it.Next() {
			return nil
		}
		ok, last := n.stage(string(it.Key()), it.Value())
		switch {
		case !ok:
			return nil
		case last:
			return n
		}
	}
	return nil
}

// stage adds the fields that a stage reads, and those that it changes in part. ok is false if it may read others. last
// says that its output has nothing else of its input.
func (n *names) stage(name string, arg value.Value) (ok, last bool) {
	switch name {
	case "$count":
		return true, true
	case "$group", "$bucket", "$bucketAuto", "$sortByCount", "$replaceRoot", "$replaceWith":
		return reads(arg, n.add), true
	case "$limit", "$skip":
		return true, false
	case "$match":
		return n.condition(arg), false
	case "$sort":
		for it := arg.Iter(); it.Next(); {
			if n.add(string(it.Key())); it.Value().Kind() == value.Object { // $meta
				return false, false
			}
		}
		return true, false
	case "$unwind":
		path := arg
		if arg.Kind() == value.Object {
			path = arg.Get("path")
			n.add(arg.Get("includeArrayIndex").Str())
		}
		return reads(path, n.add), false
	case "$addFields", "$set":
		for it := arg.Iter(); it.Next(); {
			n.add(string(it.Key()))
		}
		return reads(arg, n.add), false
	case "$project":
		return n.project(arg)
	}
	return false, false
}

// condition adds the fields that a query reads. It returns false if it may read others.
func (n *names) condition(q value.Value) bool {
	for it := q.Iter(); it.Next(); {
		switch name := string(it.Key()); {
		case !strings.HasPrefix(name, "$"):
			n.add(name)
		case name == "$expr":
			if !reads(it.Value(), n.add) {
				return false
			}
		case name == "$and" || name == "$or" || name == "$nor":
			for of := it.Value().Iter(); of.Next(); {
				if !n.condition(of.Value()) {
					return false
				}
			}
		default:
			return false
		}
	}
	return true
}

// project adds the fields that a $project reads which includes fields. It returns false for others.
func (n *names) project(arg value.Value) (ok, last bool) {
	n.add("_id")
	for it := arg.Iter(); it.Next(); {
		v, name := it.Value(), string(it.Key())
		n.add(name)
		computed := v.Kind() == value.String
		if v.Kind() == value.Object {
			of := v.Iter()
			computed = of.Next() && strings.HasPrefix(string(of.Key()), "$")
		}
		switch {
		case computed:
			if !reads(v, n.add) {
				return false, false
			}
			last = true
		case v.IsNumber() || v.Kind() == value.Bool:
			if expr.Truthy(v) {
				last = true
			} else if name != "_id" {
				return false, false
			}
		default:
			return false, false
		}
	}
	return last, last
}
