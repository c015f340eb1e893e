package agg

import (
	"math"
	"strings"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
	"github.com/orrerydb/orrery/mongoapi/order"
	"github.com/orrerydb/orrery/mongoapi/project"
)

// stageDef is one entry of the registry.
type stageDef struct {
	compile     func(c *compiler, arg value.Value) (stage, error)
	lead        func(c *compiler, arg value.Value) (done bool, err error) // moves the stage into Lead when possible
	first, last bool
	order       orderUse
}

// orderUse tells whether a stage's result depends on the order of its documents.
type orderUse uint8

const (
	shows       orderUse = iota // the result depends on the order
	perDocument                 // each document is processed separately, and the order is kept
	orderless                   // the result is the same for each order
	// tied: the stage gives an order of its own, in which equal documents keep the order that they had. MongoDB
	// promises nothing about them, but its sorts are stable, and programs are written with that.
	tied
)

var stages map[string]stageDef

// transforms are the stages that transform one document into one document.
var transforms map[string]func(arg value.Value, s *expr.Scope) (
	func(*expr.Env, value.Value) (value.Value, error), error)

// Unsupported lists stages of MongoDB that this server doesn't support.
var Unsupported = map[string]bool{
	"$listSampledQueries": true, "$shardedDataDistribution": true,
}

func init() {
	transforms = map[string]func(arg value.Value, s *expr.Scope) (
		func(*expr.Env, value.Value) (value.Value, error), error){
		"$addFields":   addFields("$addFields"),
		"$project":     projectStage,
		"$replaceRoot": replaceRoot,
		"$replaceWith": replaceWith,
		"$set":         addFields("$set"),
		"$unset":       unset,
	}
	stages = map[string]stageDef{
		"$changeStream":                {compile: streamStage("$changeStream"), first: true},
		"$changeStreamSplitLargeEvent": {compile: streamStage("$changeStreamSplitLargeEvent"), last: true},
		"$bucket":                      {compile: bucket},
		"$bucketAuto":                  {compile: bucketAuto},
		"$collStats":                   {compile: collStats, first: true},
		"$count":                       {compile: count, order: orderless},
		"$currentOp":                   {compile: currentOp, first: true},
		"$densify":                     {compile: densify},
		"$documents":                   {compile: documents, first: true},
		"$facet":                       {compile: facet},
		"$fill":                        {compile: fillStage},
		"$geoNear":                     {compile: geoNear, lead: leadGeoNear, first: true},
		"$graphLookup":                 {compile: graphLookup, order: perDocument},
		"$group":                       {compile: group},
		"$indexStats":                  {compile: indexStats, first: true},
		"$limit":                       {compile: limit, lead: leadLimit},
		"$lookup":                      {compile: lookup, order: perDocument},
		"$match":                       {compile: match, lead: leadMatch, order: perDocument},
		"$merge":                       {compile: merge, last: true},
		"$out":                         {compile: out, last: true},
		"$redact":                      {compile: redact, order: perDocument},
		"$sample":                      {compile: sample, order: orderless},
		"$skip":                        {compile: skip, lead: leadSkip},
		"$sort":                        {compile: sortStage, lead: leadSort, order: tied},
		"$sortByCount":                 {compile: sortByCount, order: orderless},
		"$unionWith":                   {compile: unionWith},
		"$unwind":                      {compile: unwind, order: perDocument},

		"$setWindowFields": {compile: setWindowFields},

		"$listCatalog":       {compile: listCatalog, first: true},
		"$listLocalSessions": {compile: listSessions(true), first: true},
		"$listSessions":      {compile: listSessions(false), first: true},
		"$planCacheStats":    {compile: planCacheStats, first: true},

		"$listSearchIndexes": {compile: listSearchIndexes, first: true},
		"$search":            {compile: search, lead: leadSearch},
		"$searchMeta":        {compile: atlasOnly("$searchMeta")},
		"$vectorSearch":      {compile: notFirst("$vectorSearch"), lead: leadVectorSearch, first: true},
	}
	for name, mk := range transforms {
		stages[name] = stageDef{order: perDocument, compile: func(c *compiler, arg value.Value) (stage, error) {
			fn, err := mk(arg, c.o.Scope)
			if err != nil {
				return nil, err
			}
			return func(x *Exec, src Iter) (Iter, error) {
				return &mapIter{src, x.Env.Run, func(d value.Value) (value.Value, error) { return fn(x.Env, d) }}, nil
			}, nil
		}}
	}
	for name := range stages {
		if Unsupported[name] {
			panic("agg: " + name + " is both supported and not")
		}
	}
}

func compileMatch(c *compiler, arg value.Value, later bool) (*filter.Filter, error) {
	if arg.Kind() != value.Object {
		return nil, merr.New(15959, "the match filter must be an expression in an object")
	}
	return filter.Compile(arg, filter.Options{Scope: c.o.Scope, Run: c.o.Run, NoNear: true, NoText: later})
}

func leadMatch(c *compiler, arg value.Value) (bool, error) {
	if l := &c.out.Lead; l.Filter != nil || l.Sort != nil || l.Skip != 0 || l.Limit != 0 {
		return false, nil
	}
	var err error
	c.out.Lead.Filter, err = compileMatch(c, arg, c.o.Facet)
	return true, err
}

func match(c *compiler, arg value.Value) (stage, error) {
	f, err := compileMatch(c, arg, true)
	if err != nil {
		return nil, err
	}
	return func(x *Exec, src Iter) (Iter, error) {
		return &mapIter{src, x.Env.Run, func(d value.Value) (value.Value, error) {
			ok, err := f.Match(x.Env, d)
			if !ok {
				return value.Undef(), err
			}
			return d, err
		}}, nil
	}, nil
}

func compileSort(arg value.Value) (order.Order, error) {
	if arg.Kind() != value.Object {
		return nil, merr.New(15973, "the $sort key specification must be an object")
	}
	if arg.Len() == 0 {
		return nil, merr.New(15976, "$sort stage must have at least one sort key")
	}
	return order.Compile(arg)
}

func leadSort(c *compiler, arg value.Value) (bool, error) {
	l := &c.out.Lead
	if l.Sort != nil || l.Skip != 0 || l.Limit != 0 || l.Filter != nil && l.Filter.Near() != nil {
		return false, nil
	}
	o, err := compileSort(arg)
	c.out.Lead.Sort = o
	return o != nil, err
}

func sortStage(c *compiler, arg value.Value) (stage, error) {
	o, err := compileSort(arg)
	if err != nil {
		return nil, err
	}
	top := new(topOf)
	c.top = top
	return func(x *Exec, src Iter) (Iter, error) {
		o, err := o.Bind(x.Env)
		if err != nil {
			return nil, err
		}
		return firstSorted(x, src, "$sort", o, first(top.skip, top.limit)), nil
	}, nil
}

// count64 returns the argument of $limit or $skip, a whole number that isn't negative.
func count64(stage string, code int32, arg value.Value) (int64, error) {
	n, whole := num.ToInt64(arg, false)
	want := ""
	switch {
	case !arg.IsNumber():
		want = "Expected a number in"
	case !whole:
		want = "Expected an integer"
	case n < 0:
		want = "Expected a non-negative number in"
	default:
		return n, nil
	}
	return 0, merr.New(code, "invalid argument to %s stage: %s: %s: %s", stage, want, stage, merr.Show(arg))
}

func compileLimit(arg value.Value) (int64, error) {
	n, err := count64("$limit", 5107201, arg)
	if err == nil && n == 0 {
		err = merr.New(15958, "the limit must be positive")
	}
	return n, err
}

func leadLimit(c *compiler, arg value.Value) (bool, error) {
	if c.out.Lead.Limit != 0 {
		return false, nil
	}
	n, err := compileLimit(arg)
	c.out.Lead.Limit = n
	return true, err
}

type limitIter struct {
	src  Iter
	left int64
}

func (l *limitIter) Next() (value.Value, bool, error) {
	if l.left == 0 {
		return value.Undef(), false, nil
	}
	l.left--
	return l.src.Next()
}

func (l *limitIter) Close() { l.src.Close() }

func limit(c *compiler, arg value.Value) (stage, error) {
	n, err := compileLimit(arg)
	if c.top != nil {
		c.top.limit, c.top = n, nil
	}
	return func(_ *Exec, src Iter) (Iter, error) { return &limitIter{src, n}, nil }, err
}

func compileSkip(arg value.Value) (int64, error) { return count64("$skip", 5107200, arg) }

func leadSkip(c *compiler, arg value.Value) (bool, error) {
	if c.out.Lead.Limit != 0 || c.out.Lead.Skip != 0 {
		return false, nil
	}
	n, err := compileSkip(arg)
	c.out.Lead.Skip = n
	return true, err
}

func skip(c *compiler, arg value.Value) (stage, error) {
	n, err := compileSkip(arg)
	if c.top != nil {
		c.top.skip += min(n, math.MaxInt64-c.top.skip)
	}
	return func(x *Exec, src Iter) (Iter, error) {
		left := n
		return &mapIter{src, x.Env.Run, func(d value.Value) (value.Value, error) {
			if left > 0 {
				left--
				return value.Undef(), nil
			}
			return d, nil
		}}, nil
	}, err
}

func addFields(name string) func(value.Value, *expr.Scope) (func(*expr.Env, value.Value) (value.Value, error), error) {
	return func(arg value.Value, s *expr.Scope) (func(*expr.Env, value.Value) (value.Value, error), error) {
		if arg.Kind() != value.Object {
			return nil, merr.New(40272, "%s specification stage must be an object, got %s", name, expr.TypeName(arg))
		}
		p, err := project.AddFields(arg, s)
		if err != nil {
			return nil, invalid(name, err)
		}
		return p.Apply, nil
	}
}

// invalid adds the name of the stage to the error of a projection.
func invalid(stage string, err error) error {
	e := *merr.From(err)
	e.Msg = "Invalid " + stage + " :: caused by :: " + e.Msg
	return &e
}

func projectStage(arg value.Value, s *expr.Scope) (func(*expr.Env, value.Value) (value.Value, error), error) {
	if arg.Kind() != value.Object {
		return nil, merr.New(15969, "$project specification must be an object")
	}
	if arg.Len() == 0 {
		return nil, merr.New(51272, "Invalid $project :: caused by :: projection specification must have at least "+
			"one field")
	}
	p, err := project.Compile(arg, project.Options{Scope: s})
	if err != nil {
		return nil, invalid("$project", err)
	}
	return p.Apply, nil
}

func unset(arg value.Value, _ *expr.Scope) (func(*expr.Env, value.Value) (value.Value, error), error) {
	var paths []string
	switch arg.Kind() {
	case value.String:
		paths = []string{arg.Str()}
	case value.Array:
		for _, v := range value.Elements(arg) {
			if v.Kind() != value.String {
				return nil, merr.New(31120, "$unset specification must be a string or an array containing only "+
					"string values")
			}
			paths = append(paths, v.Str())
		}
	}
	if len(paths) == 0 {
		return nil, merr.New(31002, "$unset specification must be a string or an array")
	}
	p, err := project.Unset(paths)
	if err != nil {
		return nil, invalid("$unset", err)
	}
	return p.Apply, nil
}

func replaceRoot(arg value.Value, s *expr.Scope) (func(*expr.Env, value.Value) (value.Value, error), error) {
	if arg.Kind() != value.Object {
		return nil, merr.New(40229, "expected an object as specification for $replaceRoot stage, got %s",
			expr.TypeName(arg))
	}
	n := arg.Get("newRoot")
	if !n.IsDefined() {
		return nil, merr.New(40231, "no newRoot specified for the $replaceRoot stage")
	}
	if arg.Len() != 1 {
		return nil, merr.New(40415, "BSON field '$replaceRoot' has an unknown field; the only one is newRoot")
	}
	return replaceWith(n, s)
}

func replaceWith(arg value.Value, s *expr.Scope) (func(*expr.Env, value.Value) (value.Value, error), error) {
	x, err := expr.Compile(arg, s)
	if err != nil {
		return nil, err
	}
	return func(e *expr.Env, d value.Value) (value.Value, error) {
		v, err := x(e.With(d))
		if err == nil && v.Kind() != value.Object {
			err = merr.New(40228, "'newRoot' expression  must evaluate to an object, but resulting value was of "+
				"type: %s", expr.TypeName(v))
		}
		return v, err
	}, nil
}

func count(c *compiler, arg value.Value) (stage, error) {
	name := arg.Str()
	if arg.Kind() != value.String || name == "" {
		return nil, merr.New(40156, "the count field must be a non-empty string")
	}
	if name[0] == '$' {
		return nil, merr.New(40158, "the count field cannot be a $-prefixed path")
	}
	if strings.IndexByte(name, 0) >= 0 {
		return nil, merr.New(40159, "the count field cannot contain a null byte")
	}
	if strings.IndexByte(name, '.') >= 0 {
		return nil, merr.New(40160, "the count field cannot contain '.'")
	}
	if name == "_id" {
		return nil, merr.New(15948, "a group's _id may only be specified once")
	}
	return func(x *Exec, src Iter) (Iter, error) {
		return lazy(x, src, "$count", func(src Iter, _ *hold) ([]value.Value, error) {
			n := int64(0)
			for {
				_, ok, err := src.Next()
				if err != nil {
					return nil, err
				}
				if !ok {
					break
				}
				n++
			}
			if n == 0 {
				return nil, nil
			}
			at, b := bson.Begin(nil)
			b = value.AppendElement(b, name, value.IntOf(n))
			return []value.Value{value.ObjectOf(bson.End(b, at))}, nil
		}), nil
	}, nil
}
