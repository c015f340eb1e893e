package agg

import (
	"slices"
	"strconv"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// lookupSpec is a compiled $lookup.
type lookupSpec struct {
	from, foreign string
	local, as     []string
	lets          []letVar
	pipe          *Pipeline
}

type letVar struct {
	slot int
	x    expr.Expr
}

func lookup(c *compiler, arg value.Value) (stage, error) {
	l, scope, err := c.lookupSpec(arg)
	if err != nil {
		return nil, err
	}
	p := arg.Get("pipeline")
	piped := p.IsDefined()
	if l.as == nil || l.from == "" && !piped || (l.local == nil) != (l.foreign == "") || l.local == nil && !piped {
		return nil, merr.New(merr.FailedToParse, "$lookup requires 'as', 'from' and either 'pipeline' or both "+
			"'localField' and 'foreignField' to be specified")
	}
	if !piped {
		p = value.ArrayOf(bson.Empty)
	}
	if l.pipe, err = Compile(p, c.sub(l.from, scope)); err != nil {
		return nil, err
	}
	return func(x *Exec, src Iter) (Iter, error) {
		h := x.hold("$lookup")
		if l.local != nil && len(l.lets) == 0 && !piped {
			return &joinIter{l: l, x: x, src: src, h: h}, nil
		}
		return &mapIter{src, x.Env.Run, func(d value.Value) (value.Value, error) {
			defer h.release()
			res, err := l.join(x, d, h)
			if err != nil {
				return d, err
			}
			return setPath(d, l.as, value.MakeArray(res)), nil
		}}, nil
	}, nil
}

// lookupSpec reads the fields of $lookup except its pipeline. scope has the variables of let, for that.
func (c *compiler) lookupSpec(arg value.Value) (l *lookupSpec, scope *expr.Scope, err error) {
	if arg.Kind() != value.Object {
		return nil, nil, merr.New(merr.FailedToParse, "the $lookup specification must be an Object")
	}
	l, scope = &lookupSpec{}, c.o.Scope
	for it := arg.Iter(); it.Next(); {
		v := it.Value()
		switch key := string(it.Key()); key {
		case "from", "localField", "foreignField", "as":
			if v.Kind() != value.String {
				return nil, nil, merr.New(merr.FailedToParse, "$lookup argument '%s' must be a string, is type %s", key,
					expr.TypeName(v))
			}
			if key == "from" {
				l.from = v.Str()
				continue
			}
			path, err := expr.FieldPath(v.Str())
			if err != nil {
				return nil, nil, err
			}
			switch key {
			case "localField":
				l.local = path
			case "foreignField":
				l.foreign = v.Str()
			case "as":
				l.as = path
			}
		case "let":
			for lt := v.Iter(); lt.Next(); {
				x, err := expr.Compile(lt.Value(), c.o.Scope)
				if err != nil {
					return nil, nil, err
				}
				var slot int
				if scope, slot, err = expr.BindUser(scope, string(lt.Key())); err != nil {
					return nil, nil, err
				}
				l.lets = append(l.lets, letVar{slot, x})
			}
		case "pipeline":
		default:
			return nil, nil, merr.New(merr.FailedToParse, "unknown argument to $lookup: %s", key)
		}
	}
	return l, scope, onlyOnce("$lookup", arg)
}

// onlyOnce refuses an argument that a stage is given twice: who checks the rights of a user would look at the one, and
// the stage at the other. All arguments must be known, so that there are few.
func onlyOnce(stage string, arg value.Value) error {
	var few [args.Few][]byte
	seen := few[:0]
	for it := arg.Iter(); it.Next(); {
		if args.Contains(seen, it.Key()) {
			return args.Duplicate(stage, it.Key())
		}
		seen = append(seen, it.Key())
	}
	return nil
}

// sub returns the options of a pipeline inside a stage.
func (c *compiler) sub(coll string, s *expr.Scope) Options {
	return Options{Scope: s, Run: c.o.Run, Sub: true, Coll: coll, Places: c.o.Places,
		Vectors: c.o.Vectors}
}

// join returns the foreign documents of one document.
func (l *lookupSpec) join(x *Exec, d value.Value, h *hold) ([]value.Value, error) {
	sub := &Exec{Env: x.Env.Fork(), Host: x.Host}
	for _, v := range l.lets {
		val, err := v.x(x.Env.With(d))
		if err != nil {
			return nil, err
		}
		sub.Env.Set(v.slot, val)
	}
	if l.local == nil {
		return l.run(sub, nil, h)
	}
	f, err := filter.Compile(l.equals(l.values(d)), filter.Options{Run: x.Env.Run})
	if err != nil {
		return nil, err
	}
	return l.run(sub, f, h)
}

// values returns the local values of a document: those at the path, and the elements of arrays there. A number in the
// path is the position in an array. Where there are none, null stands for them, also for an empty array.
func (l *lookupSpec) values(d value.Value) []value.Value {
	vs := valuesAt(nil, d, l.local)
	if len(vs) == 0 {
		return []value.Value{value.NullValue()}
	}
	return vs
}

func valuesAt(vs []value.Value, d value.Value, path []string) []value.Value {
	v := d.Get(path[0])
	for path = path[1:]; len(path) > 0 && v.Kind() == value.Array; path = path[1:] {
		i, err := strconv.ParseUint(path[0], 10, 31)
		if err != nil {
			break
		}
		v = v.At(int(i))
	}
	switch {
	case v.Kind() == value.Array:
		for it := v.Iter(); it.Next(); {
			if e := it.Value(); len(path) == 0 {
				vs = append(vs, e)
			} else if e.Kind() == value.Object {
				vs = valuesAt(vs, e, path)
			}
		}
	case len(path) > 0:
		if v.Kind() == value.Object {
			vs = valuesAt(vs, v, path)
		}
	case v.IsDefined():
		vs = append(vs, v)
	}
	return vs
}

// equals returns the filter that the foreign field equals one of some values. A regular expression is a value, too.
func (l *lookupSpec) equals(vs []value.Value) value.Value {
	var patterns []value.Value
	for _, v := range vs {
		if v.Kind() == value.Regex {
			patterns = append(patterns, field(l.foreign, field("$eq", v)))
		}
	}
	if patterns == nil {
		return in(l.foreign, vs)
	}
	others := slices.DeleteFunc(slices.Clone(vs), func(v value.Value) bool { return v.Kind() == value.Regex })
	return field("$or", value.MakeArray(append(patterns, in(l.foreign, others))))
}

func (l *lookupSpec) run(x *Exec, f *filter.Filter, h *hold) ([]value.Value, error) {
	src, err := openSub(x, l.from, l.pipe, f)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	return all(src, h)
}

// openSub executes a nested pipeline on a collection. If a filter is given, it is applied first.
func openSub(x *Exec, coll string, p *Pipeline, f *filter.Filter) (Iter, error) {
	if !p.ReadsCollection() {
		return p.Run(x, NewSlice(nil))
	}
	if f == nil {
		src, err := x.Host.Find(coll, p.Lead, x.Env)
		if err != nil {
			return nil, err
		}
		return p.Run(x, src)
	}
	src, err := x.Host.Find(coll, Lead{Filter: f}, x.Env)
	if err != nil {
		return nil, err
	}
	return p.RunAll(x, src)
}

var unionArguments = args.Set{"coll": args.String, "pipeline": args.Array}

func unionWith(c *compiler, arg value.Value) (stage, error) {
	coll, p := arg.Str(), value.ArrayOf(bson.Empty)
	if arg.Kind() == value.Object {
		if err := unionArguments.Check("$unionWith", arg); err != nil {
			return nil, err
		}
		coll = arg.Get("coll").Str()
		if v := arg.Get("pipeline"); v.IsDefined() {
			p = v
		}
	}
	if coll == "" && !arg.Get("pipeline").IsDefined() {
		return nil, merr.New(merr.FailedToParse, "$unionWith needs a collection")
	}
	o := c.sub(coll, c.o.Scope)
	o.Union = true
	pipe, err := Compile(p, o)
	if err != nil {
		return nil, err
	}
	return func(x *Exec, src Iter) (Iter, error) {
		return &chainIter{cur: src, next: func() (Iter, error) {
			return openSub(&Exec{Env: x.Env.Fork(), Host: x.Host}, coll, pipe, nil)
		}}, nil
	}, nil
}

// chainIter returns the documents of one Iter, then those of another.
type chainIter struct {
	cur  Iter
	next func() (Iter, error)
}

func (c *chainIter) Next() (value.Value, bool, error) {
	for {
		d, ok, err := c.cur.Next()
		if ok || err != nil || c.next == nil {
			return d, ok, err
		}
		c.cur.Close()
		open := c.next
		c.next = nil
		if c.cur, err = open(); err != nil {
			c.cur = NewSlice(nil)
			return d, false, err
		}
	}
}

func (c *chainIter) Close() { c.cur.Close() }
