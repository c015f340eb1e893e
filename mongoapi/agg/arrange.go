package agg

import (
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/filter"
)

// Before a pipeline is compiled its stages are arranged, so that the store finds fewer documents and later stages see
// fewer. The result is the same:
//
//   - A condition of a $match goes before each stage that leaves the paths of the condition as they are, or has their
//     values from other paths, which the condition then names. What then stands behind another $match becomes a part of
//     it.
//   - $skip and $limit go before stages that make one document of one.
//
// Conditions that read more than their path stay where they are: $expr, $where, $text and their like.
//
// Example: [{$lookup: {.., as: "owner"}}, {$unwind: "$owner"}, {$match: {city: "Rome", "owner.age": 20}}] becomes
// [{$match: {city: "Rome"}}, {$lookup: ..}, {$unwind: ..}, {$match: {"owner.age": 20}}]. An index on city is used, and
// owners are looked up in Rome only.

// arrange returns the stages in another order; the same ones if there is nothing to arrange. Stages without a name are
// for the compiler to refuse. A search for text stays with what follows it: only the store knows the scores, and a
// condition between the search and its $sort would keep the store from sorting.
func arrange(specs []value.Value) []value.Value {
	out, moved := make([]spec, 0, len(specs)), false
	for _, v := range specs {
		s, ok := specOf(v)
		if !ok {
			return specs
		}
		at := len(out)
		if at == 0 && s.name == "$match" && s.arg.Get("$text").IsDefined() {
			return specs
		}
		switch s.name {
		case "$match":
			var changed bool
			out, changed = placeMatch(out, s)
			moved = moved || changed
			continue
		case "$limit", "$skip":
			for at > 0 && oneToOne[out[at-1].name] {
				at--
			}
		}
		moved = moved || at < len(out)
		out = slices.Insert(out, at, s)
	}
	if !moved {
		return specs
	}
	vals := make([]value.Value, len(out))
	for i, s := range out {
		vals[i] = s.v
	}
	return vals
}

// spec is one stage as it is written.
type spec struct {
	name string
	arg  value.Value
	v    value.Value // {name: arg}
}

func specOf(v value.Value) (s spec, ok bool) {
	if v.Kind() != value.Object {
		return s, false
	}
	it := v.Iter()
	if !it.Next() {
		return s, false
	}
	s = spec{string(it.Key()), it.Value(), v}
	return s, !it.Next()
}

// oneToOne are the stages that make one document of one, so that the first n of them are made of the first n.
var oneToOne = map[string]bool{
	"$addFields": true, "$graphLookup": true, "$lookup": true, "$project": true, "$replaceRoot": true,
	"$replaceWith": true, "$set": true, "$unset": true,
}

// placeMatch adds a $match to the stages, each of its conditions as far at the front as it can be.
func placeMatch(out []spec, s spec) (_ []spec, moved bool) {
	if len(out) == 0 || s.arg.Kind() != value.Object {
		return append(out, s), false
	}
	last := len(out)
	parts := map[int][]condition{} // by the number of the stage that they go before
	for _, cond := range conditions(s.arg, nil) {
		at := last
		for ok := at > 0; ok; {
			if cond, ok = before(out[at-1], cond); ok {
				at--
				ok = at > 0
			}
		}
		parts[at] = append(parts[at], cond)
	}
	joins := func(at int) bool { // the conditions there can become a part of the $match before them
		return at > 0 && out[at-1].name == "$match" && out[at-1].arg.Kind() == value.Object &&
			!slices.ContainsFunc(parts[at], func(c condition) bool { return c.paths == nil })
	}
	if len(parts) == 0 || len(parts) == 1 && parts[last] != nil && !joins(last) {
		return append(out, s), false
	}
	for at := last; at >= 0; at-- { // from the back, so that the numbers in front stay
		switch conds := parts[at]; {
		case conds == nil:
		case joins(at):
			out[at-1] = matchOf(append([]condition{{filter: out[at-1].arg}}, conds...))
		default:
			out = slices.Insert(out, at, matchOf(conds))
		}
	}
	return out, true
}

// condition is a part of a $match, all parts of which must hold.
type condition struct {
	filter value.Value
	paths  [][]string // of the values that it reads; nil: it may read others
	equal  bool       // equal values satisfy it alike, such as 1 and 1.0, and so do null and none
}

// conditions appends the parts of a filter.
func conditions(f value.Value, to []condition) []condition {
	for it := f.Iter(); it.Next(); {
		key, v := string(it.Key()), it.Value()
		if key == "$and" && v.Kind() == value.Array && allObjects(v) {
			for all := v.Iter(); all.Next(); {
				to = conditions(all.Value(), to)
			}
			continue
		}
		to = append(to, condition{object(key, v), pathsOf(key, v), equals(key, v)})
	}
	return to
}

func allObjects(array value.Value) bool {
	n := 0
	for it := array.Iter(); it.Next(); n++ {
		if it.Value().Kind() != value.Object {
			return false
		}
	}
	return n > 0
}

// pathsOf returns the paths that a field of a filter reads; nil: it may read others.
func pathsOf(key string, v value.Value) (paths [][]string) {
	switch {
	case key == "$or" || key == "$nor" || key == "$and":
		if v.Kind() != value.Array || !allObjects(v) {
			return nil
		}
		for all := v.Iter(); all.Next(); {
			for it := all.Value().Iter(); it.Next(); {
				more := pathsOf(string(it.Key()), it.Value())
				if more == nil {
					return nil
				}
				paths = append(paths, more...)
			}
		}
		return paths
	case key == "" || key[0] == '$' || v.Get("$near").IsDefined() || v.Get("$nearSphere").IsDefined():
		return nil
	}
	segs, plain := filter.PathOf(key)
	if !plain {
		return nil
	}
	return [][]string{segs}
}

// object returns {key: v}.
func object(key string, v value.Value) value.Value {
	at, b := bson.Begin(nil)
	return value.ObjectOf(bson.End(value.AppendElement(b, key, v), at))
}

// matchOf returns the $match of conditions.
func matchOf(conds []condition) spec {
	all := make([]value.Value, len(conds))
	for i, c := range conds {
		all[i] = c.filter
	}
	arg := all[0]
	if len(all) > 1 {
		arg = object("$and", value.MakeArray(all))
	}
	return spec{"$match", arg, object("$match", arg)}
}

// equals reports whether a field of a filter compares with scalars only.
func equals(key string, v value.Value) bool {
	switch {
	case key == "$or" || key == "$nor" || key == "$and":
		for all := v.Iter(); all.Next(); {
			for it := all.Value().Iter(); it.Next(); {
				if !equals(string(it.Key()), it.Value()) {
					return false
				}
			}
		}
		return true
	case v.Kind() != value.Object:
		return scalar(v)
	}
	for it := v.Iter(); it.Next(); {
		switch arg := it.Value(); string(it.Key()) {
		case "$eq", "$gt", "$gte", "$lt", "$lte", "$ne":
			if !scalar(arg) {
				return false
			}
		case "$in", "$nin":
			if slices.ContainsFunc(value.Elements(arg), func(v value.Value) bool { return !scalar(v) }) {
				return false
			}
		default:
			return false
		}
	}
	return v.Len() > 0
}

func scalar(v value.Value) bool {
	switch v.Kind() {
	case value.Bool, value.Int32, value.Int64, value.Double, value.Decimal, value.String, value.ObjectID, value.Date:
		return true
	}
	return false
}

// renamed returns a filter with other paths.
func renamed(f value.Value, to func(path []string) []string) value.Value {
	at, b := bson.Begin(nil)
	for it := f.Iter(); it.Next(); {
		key, v := string(it.Key()), it.Value()
		if key[0] != '$' {
			segs, _ := filter.PathOf(key)
			b = value.AppendElement(b, strings.Join(to(segs), "."), v)
			continue
		}
		var kids []value.Value
		for all := v.Iter(); all.Next(); {
			kids = append(kids, renamed(all.Value(), to))
		}
		b = value.AppendElement(b, key, value.MakeArray(kids))
	}
	return value.ObjectOf(bson.End(b, at))
}

// origin is where a stage has values from.
type origin struct {
	// of returns the path in the documents that go into the stage at which they have the values that those which come
	// out have at a path; nil: there is none.
	of func(arg value.Value, path []string) []string
	// groups says that a document that comes out stands for several, whose values there are equal.
	groups bool
}

// origins are the stages that conditions can go before. They drop or repeat documents without regard to the values.
var origins map[string]origin

func init() {
	origins = map[string]origin{
		"$addFields":   {of: set},
		"$graphLookup": {of: where(othersAreMade)},
		"$group":       {of: grouped, groups: true},
		"$lookup":      {of: where(othersAreMade)},
		"$project":     {of: projected},
		"$set":         {of: set},
		"$sort":        {of: func(_ value.Value, path []string) []string { return path }},
		"$sortByCount": {of: sortedByCount, groups: true},
		"$unset":       {of: where(othersAreUnset)},
		"$unwind":      {of: where(othersAreUnwound)},
	}
}

// where is for stages that leave the values at some paths as they are.
func where(stay func(arg value.Value, path []string) bool) func(value.Value, []string) []string {
	return func(arg value.Value, path []string) []string {
		if stay(arg, path) {
			return path
		}
		return nil
	}
}

// before returns a condition as it is in front of a stage, if it can go there.
func before(s spec, c condition) (condition, bool) {
	o, ok := origins[s.name]
	if !ok || c.paths == nil || o.groups && !c.equal {
		return c, false
	}
	same, paths := true, make([][]string, len(c.paths))
	for i, p := range c.paths {
		if paths[i] = o.of(s.arg, p); paths[i] == nil {
			return c, false
		}
		same = same && slices.Equal(p, paths[i])
	}
	if !same {
		c.filter = renamed(c.filter, func(p []string) []string { return o.of(s.arg, p) })
	}
	c.paths = paths
	return c, true
}

// copied returns the path at which a document has the value of an expression; nil if it isn't the value of a field. One
// such as "$a.b" isn't: of arrays it makes others.
func copied(x value.Value) []string {
	if x.Kind() != value.String || len(x.Str()) < 2 || x.Str()[0] != '$' {
		return nil
	}
	if segs, plain := filter.PathOf(x.Str()[1:]); plain && len(segs) == 1 && segs[0][0] != '$' {
		return segs
	}
	return nil
}

// under returns the path of what is at rest in the value of an expression.
func under(x value.Value, rest []string) []string {
	if from := copied(x); from != nil {
		return append(from, rest...)
	}
	return nil
}

// grouped is for the key of a $group.
//
// Example: {_id: {x: "$a"}} has at _id.x what documents have at a.
func grouped(arg value.Value, path []string) []string {
	id := arg.Get("_id")
	switch {
	case path[0] != "_id":
		return nil
	case id.Kind() == value.Object && len(path) > 1 && path[1][0] != '$':
		return under(id.Get(path[1]), path[2:])
	}
	return under(id, path[1:])
}

func sortedByCount(arg value.Value, path []string) []string {
	if path[0] != "_id" {
		return nil
	}
	return under(arg, path[1:])
}

// apart reports whether neither of two paths is a part of the other.
func apart(dotted string, path []string) bool {
	segs, _ := filter.PathOf(dotted)
	n := min(len(segs), len(path))
	return !slices.Equal(segs[:n], path[:n])
}

// elsewhere reports whether to set a value at a path leaves another one as it is. To set a.b makes an object of a.
func elsewhere(dotted string, path []string) bool {
	segs, _ := filter.PathOf(dotted)
	return segs[0] != path[0]
}

func set(arg value.Value, path []string) []string {
	if arg.Kind() != value.Object {
		return nil
	}
	from := path
	for it := arg.Iter(); it.Next(); {
		switch key := string(it.Key()); {
		case elsewhere(key, path):
		case key == path[0]:
			if from = under(it.Value(), path[1:]); from == nil {
				return nil
			}
		default:
			return nil
		}
	}
	return from
}

func othersAreUnset(arg value.Value, path []string) bool {
	if arg.Kind() == value.String {
		return apart(arg.Str(), path)
	}
	for _, v := range value.Elements(arg) {
		if v.Kind() != value.String || !apart(v.Str(), path) {
			return false
		}
	}
	return arg.Kind() == value.Array
}

// othersAreMade is for stages that add a field with the results of a search.
func othersAreMade(arg value.Value, path []string) bool {
	as := arg.Get("as")
	return as.Kind() == value.String && elsewhere(as.Str(), path)
}

func othersAreUnwound(arg value.Value, path []string) bool {
	if arg.Kind() == value.Object {
		index := arg.Get("includeArrayIndex")
		if index.IsDefined() && (index.Kind() != value.String || !elsewhere(index.Str(), path)) {
			return false
		}
		arg = arg.Get("path")
	}
	return arg.Kind() == value.String && len(arg.Str()) > 1 && arg.Str()[0] == '$' && apart(arg.Str()[1:], path)
}

// projected is for a $project. It is one that includes fields if any but _id is included or computed, or if there is
// only an included _id.
func projected(arg value.Value, path []string) []string {
	if arg.Kind() != value.Object {
		return nil
	}
	var from []string
	includes, id := false, true
	for it := arg.Iter(); it.Next(); {
		key, v := string(it.Key()), it.Value()
		plain := v.Kind() == value.Bool || v.IsNumber()
		if key == "_id" && plain {
			id = expr.Truthy(v)
			includes = includes || id && arg.Len() == 1
			continue
		}
		yes := !plain || expr.Truthy(v)
		includes = includes || yes
		switch {
		case plain && yes && key == path[0]:
			from = path
		case !plain && key == path[0]:
			if from = under(v, path[1:]); from == nil {
				return nil
			}
		case yes && !elsewhere(key, path), !apart(key, path):
			return nil
		}
	}
	if from == nil && (path[0] == "_id" && id || path[0] != "_id" && !includes) {
		return path
	}
	return from
}
