// Package project compiles projections: those of find and findAndModify, and the stages $project, $addFields and
// $unset.
//
// Example: {a: 1, "b.c": 1} is a tree with the leaf a and the node b, which has the leaf c. For {_id: 7, a: 1, b: {c:
// 2, d: 3}, e: 4} it returns {_id: 7, a: 1, b: {c: 2}}.
package project

import (
	"strings"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

type mode uint8

const (
	undecided mode = iota
	include
	exclude
	add // $addFields: all fields stay, the named ones are set
)

// Projection is a compiled projection.
type Projection struct {
	mode  mode
	root  *node
	plain bool // no change
	query *filter.Filter
}

// node is one name in the tree of paths.
type node struct {
	name   string
	kids   []*node
	byName map[string]*node
	leaf   bool
	hide   bool                                                         // leaf: exclude the field
	x      expr.Expr                                                    // leaf: a computed value
	fn     func(p *Projection, doc, v value.Value) (value.Value, error) // leaf: changes the stored value
	sets   bool                                                         // a leaf below is computed
}

// Options describe where the projection is used.
type Options struct {
	Scope *expr.Scope
	// Find enables the operators of find: $slice, $elemMatch and the positional $.
	Find bool
	// Run is that of the Env with which the projection will be applied; nil = it is never ended.
	Run *expr.Run
	// Query is the filter for the positional $.
	Query *filter.Filter
}

// Compile compiles a projection document.
func Compile(spec value.Value, o Options) (*Projection, error) {
	p := &Projection{root: &node{}, query: o.Query}
	if !spec.IsDefined() || spec.Kind() == value.Null {
		p.plain = true
		return p, nil
	}
	if spec.Kind() != value.Object {
		return nil, merr.New(merr.TypeMismatch, "projection must be an object")
	}
	if spec.Len() == 0 {
		p.plain = true
		return p, nil
	}
	c := &compiler{p: p, o: o}
	if err := c.object("", spec, 0); err != nil {
		return nil, err
	}
	return p, c.finish()
}

// AddFields compiles the stages $addFields and $set.
func AddFields(spec value.Value, s *expr.Scope) (*Projection, error) {
	p := &Projection{root: &node{}, mode: add}
	c := &compiler{p: p, o: Options{Scope: s}}
	return p, c.object("", spec, 0)
}

// Unset compiles an exclusion of paths.
func Unset(paths []string) (*Projection, error) {
	p := &Projection{root: &node{}, mode: exclude}
	c := &compiler{p: p}
	for _, path := range paths {
		n, err := c.at(path)
		if err != nil {
			return nil, err
		}
		n.hide = true
	}
	return p, nil
}

type compiler struct {
	p     *Projection
	o     Options
	id    int // _id: 1 included, -1 excluded by name
	slice bool
	one   bool // there is a positional projection
	match bool // there is an $elemMatch
}

// at returns the leaf of a path, and creates it if necessary.
func (c *compiler) at(path string) (*node, error) {
	n := c.p.root
	segs := strings.Split(path, ".")
	for i, s := range segs {
		if s == "" {
			return nil, merr.New(15998, "FieldPath field names may not be empty strings.")
		}
		if strings.IndexByte(s, 0) >= 0 {
			return nil, merr.New(16411, "FieldPath field names may not contain '\\0'.")
		}
		if s[0] == '$' && !expr.DBRefName(s) {
			return nil, merr.New(16410, "FieldPath field names may not start with '$'. Consider using $getField or "+
				"$setField.")
		}
		if n.leaf {
			return nil, merr.New(merr.PathCollision, "Path collision at %s remaining portion %s", path,
				strings.Join(segs[i:], "."))
		}
		k := n.byName[s]
		if k == nil {
			k = &node{name: s}
			if n.byName == nil {
				n.byName = map[string]*node{}
			}
			n.byName[s] = k
			n.kids = append(n.kids, k)
		} else if i == len(segs)-1 {
			return nil, merr.New(31250, "Path collision at %s", path)
		}
		n = k
	}
	n.leaf = true
	return n, nil
}

func (c *compiler) object(prefix string, spec value.Value, depth int) error {
	if depth > 100 {
		return merr.New(merr.BadValue, "projection exceeds the depth limit")
	}
	for it := spec.Iter(); it.Next(); {
		if err := c.field(prefix+string(it.Key()), it.Value(), depth); err != nil {
			return err
		}
	}
	return nil
}

func (c *compiler) want(m mode, path string) error {
	if path == "_id" && m == exclude && c.p.mode != add {
		return nil
	}
	if c.p.mode == undecided || c.p.mode == m {
		c.p.mode = m
		return nil
	}
	if m == exclude {
		return merr.New(31254, "Cannot do exclusion on field %s in inclusion projection", path)
	}
	return merr.New(31253, "Cannot do inclusion on field %s in exclusion projection", path)
}

func (c *compiler) field(path string, v value.Value, depth int) error {
	if c.p.mode == add {
		return c.computed(path, v, depth)
	}
	if strings.HasSuffix(path, ".$") {
		if err := c.checkPositional(path, v); err != nil {
			return err
		}
	}
	switch v.Kind() {
	case value.Bool, value.Int32, value.Int64, value.Double, value.Decimal:
		return c.flag(path, expr.Truthy(v))
	case value.Object:
		it := v.Iter()
		if !it.Next() {
			if c.o.Find {
				return c.computed(path, v, depth)
			}
			return merr.New(51270, "An empty sub-projection is not a valid value. Found empty object at path")
		}
		op := string(it.Key())
		if c.o.Find && (op == "$slice" || op == "$elemMatch") && v.Len() == 1 {
			return c.findOperator(path, op, it.Value())
		}
		if c.o.Find && op == "$meta" {
			return c.meta(path, v)
		}
		if op != "" && op[0] != '$' {
			return c.object(path+".", v, depth+1)
		}
	}
	return c.computed(path, v, depth)
}

func (c *compiler) flag(path string, on bool) error {
	if c.o.Find && (strings.HasSuffix(path, ".$") || path == "$") {
		return c.positional(strings.TrimSuffix(path, ".$"), on)
	}
	m := include
	if !on {
		m = exclude
	}
	if path == "_id" {
		c.id = map[bool]int{true: 1, false: -1}[on]
	} else if err := c.want(m, path); err != nil {
		return err
	}
	n, err := c.at(path)
	if err != nil {
		return err
	}
	n.hide = !on
	return nil
}

func (c *compiler) computed(path string, v value.Value, depth int) error {
	if c.p.mode == add && v.Kind() == value.Object && v.Len() > 0 {
		it := v.Iter()
		it.Next()
		if k := it.Key(); len(k) == 0 || k[0] != '$' {
			return c.object(path+".", v, depth+1)
		}
	}
	if c.p.mode == exclude && v.Kind() == value.Object {
		return merr.New(31252, "Cannot use expression other than $meta in exclusion projection")
	} else if c.p.mode == exclude {
		return merr.New(31310, "Cannot use an expression %s: %s in an exclusion projection", path, merr.Show(v))
	}
	if c.p.mode != add {
		c.p.mode = include
	}
	x, err := expr.Compile(v, c.o.Scope)
	if err != nil {
		return err
	}
	return c.compute(path, x)
}

// compute makes x the value at a path.
func (c *compiler) compute(path string, x expr.Expr) error {
	n, err := c.at(path)
	if err != nil {
		return err
	}
	n.x = x
	for k, segs := c.p.root, strings.Split(path, "."); ; segs = segs[1:] {
		k.sets = true
		if len(segs) == 0 {
			return nil
		}
		k = k.byName[segs[0]]
	}
}

// meta compiles {$meta: ..} of find. It decides nothing about the other fields.
func (c *compiler) meta(path string, v value.Value) error {
	x, err := expr.Compile(v, c.o.Scope)
	if err != nil {
		return err
	}
	c.slice = true
	return c.compute(path, x)
}

// finish handles projections of only _id, and includes _id unless it is excluded.
func (c *compiler) finish() error {
	p := c.p
	if p.mode == undecided {
		p.mode = include
		if (c.id < 0 || c.slice) && !c.match {
			p.mode = exclude
		}
	}
	if p.mode == exclude && c.id > 0 && len(p.root.kids) > 1 {
		id := p.root.byName["_id"] // {a: 0, _id: 1}: it stays anyway
		for i, k := range p.root.kids {
			if k == id {
				p.root.kids = append(p.root.kids[:i:i], p.root.kids[i+1:]...)
			}
		}
		delete(p.root.byName, "_id")
	}
	if p.mode == include && p.root.byName["_id"] == nil {
		n, err := c.at("_id")
		if err != nil {
			return err
		}
		p.root.kids = p.root.kids[:len(p.root.kids)-1]
		p.root.kids = append([]*node{n}, p.root.kids...)
	}
	return nil
}

// findOperator compiles $slice and $elemMatch of find.
func (c *compiler) findOperator(path, op string, arg value.Value) error {
	n, err := c.at(path)
	if err != nil {
		return err
	}
	if op == "$slice" {
		c.slice = true
		n.fn, err = sliceFn(arg)
		return err
	}
	if arg.Kind() != value.Object {
		return merr.New(31274, "elemMatch: Invalid argument, object required, but got %s", expr.TypeName(arg))
	}
	if strings.Contains(path, ".") {
		return merr.New(31275, "Cannot use $elemMatch projection on a nested field.")
	}
	if c.one {
		return merr.New(31255, "Cannot specify positional operator and $elemMatch.")
	}
	c.match = true // without another field it is an inclusion; among exclusions the array has that one element
	wrapped := wrap("e", wrap("$elemMatch", arg))
	f, err := filter.Compile(wrapped, filter.Options{Scope: c.o.Scope, Run: c.o.Run})
	if err != nil {
		return err
	}
	n.fn = func(_ *Projection, _, v value.Value) (value.Value, error) {
		if v.Kind() != value.Array {
			return value.Undef(), nil
		}
		for it := v.Iter(); it.Next(); {
			one := value.MakeArray([]value.Value{it.Value()})
			if ok, err := f.Match(nil, wrap("e", one)); ok || err != nil {
				return one, err
			}
		}
		return value.Undef(), nil
	}
	return nil
}

func wrap(name string, v value.Value) value.Value {
	at, b := bson.Begin(nil)
	b = value.AppendElement(b, name, v)
	return value.ObjectOf(bson.End(b, at))
}

func sliceFn(arg value.Value) (func(*Projection, value.Value, value.Value) (value.Value, error), error) {
	first, n, hasSkip := int64(0), int64(0), false
	ok := false
	switch {
	case arg.IsNumber():
		first, ok = num.ToInt64(arg, true)
	case arg.Kind() == value.Array && arg.Len() == 2:
		hasSkip = true
		var ok2 bool
		first, ok = num.ToInt64(arg.At(0), true)
		n, ok2 = num.ToInt64(arg.At(1), true)
		if ok = ok && ok2; ok && n <= 0 {
			return nil, merr.New(28724, "First argument to $slice must be an array, but is of type: int")
		}
	}
	if !ok {
		return nil, merr.New(28667, "Invalid $slice syntax. The given syntax did not match the find() syntax or the "+
			"aggregation syntax")
	}
	clamp := func(x int64) int { return int(max(-1<<31, min(x, 1<<31))) }
	return func(_ *Projection, _, v value.Value) (value.Value, error) {
		if v.Kind() != value.Array {
			return v, nil
		}
		return value.MakeArray(expr.Slice(value.Elements(v), hasSkip, clamp(first), clamp(n))), nil
	}, nil
}

// checkPositional checks what stands at a path that ends with the positional operator.
func (c *compiler) checkPositional(path string, v value.Value) error {
	switch {
	case !c.o.Find:
		return merr.New(31324, "Cannot use positional projection in aggregation projection")
	case path == ".$":
		return merr.New(5392900, "Projection on field .$ is invalid")
	case v.Kind() == value.Object:
		return merr.New(31271, "positional projection cannot be used with an expression or sub object")
	case v.Kind() != value.Bool && !v.IsNumber():
		return merr.New(31308, "positional projection cannot be used with a literal")
	}
	return nil
}

func (c *compiler) positional(path string, on bool) error {
	if !on {
		return merr.New(31395, "positional projection cannot be used with exclusion")
	}
	if c.one {
		return merr.New(31276, "Cannot specify more than one positional projection per query.")
	}
	if c.match {
		return merr.New(31256, "Cannot specify positional operator and $elemMatch.")
	}
	c.one = true
	if c.o.Query == nil {
		return merr.New(51246, "positional operator '.$' couldn't find a matching element in the array")
	}
	if err := c.want(include, path); err != nil {
		return err
	}
	n, err := c.at(path)
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(path, ".")
	n.fn = func(p *Projection, doc, v value.Value) (value.Value, error) {
		if v.Kind() != value.Array {
			return v, nil
		}
		i, ok := p.query.Position(doc, first)
		if !ok || i >= v.Len() {
			return v, merr.New(51246, "Executor error during find command :: caused by :: positional operator '.$' "+
				"couldn't find a matching element in the array")
		}
		return value.MakeArray([]value.Value{v.At(i)}), nil
	}
	return nil
}
