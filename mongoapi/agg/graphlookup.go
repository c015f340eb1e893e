package agg

import (
	"strings"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// graphSpec is a compiled $graphLookup: a breadth-first search, with one read of the collection for each depth.
//
// Example: startWith "$boss", connectFromField boss, connectToField name. For {boss: "b"} depth 0 reads the documents
// with name "b". If one of them has the boss "c", depth 1 reads those with name "c". It ends when a depth finds nothing
// that wasn't found before.
type graphSpec struct {
	from, to    string
	connect, as []string
	start       expr.Expr
	depth       []string    // nil: not shown
	maxDepth    int64       // -1: none
	restrict    value.Value // Undefined: none
	scope       *expr.Scope
	run         *expr.Run
}

func graphLookup(c *compiler, arg value.Value) (stage, error) {
	if arg.Kind() != value.Object {
		return nil, merr.New(40327, "the $graphLookup stage specification must be an object, but found %s",
			expr.TypeName(arg))
	}
	g := &graphSpec{maxDepth: -1, scope: c.o.Scope, run: c.o.Run}
	for it := arg.Iter(); it.Next(); {
		if err := g.set(string(it.Key()), it.Value()); err != nil {
			return nil, err
		}
	}
	if err := onlyOnce("$graphLookup", arg); err != nil {
		return nil, err
	}
	if g.from == "" || g.to == "" || g.connect == nil || g.as == nil || g.start == nil {
		return nil, merr.New(40105, "$graphLookup requires 'from', 'as', 'startWith', 'connectFromField', and "+
			"'connectToField' to be specified.")
	}
	return func(x *Exec, src Iter) (Iter, error) {
		h := x.hold("$graphLookup")
		return &mapIter{src, x.Env.Run, func(d value.Value) (value.Value, error) {
			defer h.release()
			v, err := g.start(x.Env.With(d))
			if err != nil {
				return d, err
			}
			found, err := g.search(x, v, h)
			if err != nil {
				return d, err
			}
			return setPath(d, g.as, value.MakeArray(found)), nil
		}}, nil
	}, nil
}

// set compiles one argument.
func (g *graphSpec) set(name string, v value.Value) (err error) {
	switch name {
	case "startWith":
		g.start, err = expr.Compile(v, g.scope)
		return err
	case "maxDepth":
		if !v.IsNumber() {
			return merr.New(40100, "maxDepth requires numeric argument, found type: %s", expr.TypeName(v))
		}
		n, whole := num.ToInt64(v, false)
		if !whole {
			return merr.New(40102, "maxDepth could not be represented as a long long: %s", merr.Show(v))
		}
		if n < 0 {
			return merr.New(40101, "maxDepth requires a nonnegative argument, found: %d", n)
		}
		g.maxDepth = n
		return nil
	case "restrictSearchWithMatch":
		if v.Kind() != value.Object {
			return merr.New(40185, "restrictSearchWithMatch must be an object, found type: %s", expr.TypeName(v))
		}
		g.restrict = v
		_, err = filter.Compile(v, filter.Options{Scope: g.scope, Run: g.run})
		return err
	case "from", "as", "connectFromField", "connectToField", "depthField":
	default:
		return merr.New(40104, "Unknown argument to $graphLookup: %s", name)
	}
	if v.Kind() != value.String {
		return merr.New(40103, "expected string as argument for %s, found: %s", name, expr.TypeName(v))
	}
	text := v.Str()
	if name == "from" {
		g.from = text
		return nil
	}
	path, err := expr.FieldPath(text)
	if err != nil {
		return err
	}
	switch name {
	case "as":
		g.as = path
	case "connectFromField":
		g.connect = path
	case "connectToField":
		g.to = strings.Join(path, ".")
	case "depthField":
		g.depth = path
	}
	return nil
}

// search returns the documents that are reached from a value.
func (g *graphSpec) search(x *Exec, start value.Value, h *hold) ([]value.Value, error) {
	var out []value.Value
	seen := expr.NewSet(x.Env.Run.Collation())
	frontier := expr.NewSet(x.Env.Run.Collation())
	addAll(frontier, start)
	if frontier.Len() == 0 && start.Kind() != value.Array {
		frontier.Add(value.NullValue())
	}
	for depth := int64(0); frontier.Len() > 0 && (g.maxDepth < 0 || depth <= g.maxDepth); depth++ {
		next := expr.NewSet(x.Env.Run.Collation())
		docs, err := g.read(x, frontier)
		if err != nil {
			return nil, err
		}
		for {
			d, ok, err := docs.Next()
			if err != nil {
				docs.Close()
				return nil, err
			}
			if !ok {
				break
			}
			id := d.Get("_id")
			if seen.Has(id) {
				continue
			}
			if err := h.add(2*docSize(d) + 96); err != nil {
				docs.Close()
				return nil, err
			}
			d = d.Clone()
			seen.Add(d.Get("_id"))
			addAll(next, expr.Path(d, g.connect))
			if g.depth != nil {
				d = setPath(d, g.depth, value.Int64Of(depth))
			}
			out = append(out, d)
		}
		docs.Close()
		frontier = next
	}
	return out, nil
}

// addAll adds a value, or the elements of an array, to a set.
func addAll(s *expr.Set, v value.Value) {
	vs := []value.Value{v}
	if v.Kind() == value.Array {
		vs = value.Elements(v)
	}
	for _, v := range vs {
		if v.IsDefined() && !s.Has(v) {
			s.Add(v)
		}
	}
}

// read returns the documents whose connectToField has one of the values.
func (g *graphSpec) read(x *Exec, frontier *expr.Set) (Iter, error) {
	at, b := bson.Begin(nil)
	all, b := bson.BeginArray(b, "$and")
	b = value.AppendIndexed(b, 0, in(g.to, frontier.Values()))
	if g.restrict.IsDefined() {
		b = value.AppendIndexed(b, 1, g.restrict)
	}
	cond := value.ObjectOf(bson.End(bson.End(b, all), at))
	f, err := filter.Compile(cond, filter.Options{Scope: g.scope, Run: g.run})
	if err != nil {
		return nil, err
	}
	return x.Host.Find(g.from, Lead{Filter: f}, x.Env.Fork())
}

// in returns the filter {field: {$in: vs}}.
func in(field string, vs []value.Value) value.Value {
	at, b := bson.Begin(nil)
	ca, b := bson.BeginObject(b, field)
	aa, b := bson.BeginArray(b, "$in")
	for i, v := range vs {
		b = value.AppendIndexed(b, i, v)
	}
	return value.ObjectOf(bson.End(bson.End(bson.End(b, aa), ca), at))
}
