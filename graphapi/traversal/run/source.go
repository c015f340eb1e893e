package run

import (
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/graphapi/graph"
	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/traversal/compile"
)

// source compiles V() or E() together with the filters directly after it.
func (c *compiler) source(tr *traversal, ins []gvalue.Instruction, first bool) (int, error) {
	vertices := ins[0].Op == "V"
	g := c.x.g
	env := c.foldEnv(vertices)
	env.Begins = first
	a := compile.Fold(ins[1:], env)
	ids, given, err := c.idArgs(ins[0])
	if err != nil {
		return 0, err
	}
	sel := selection{vertices: vertices}
	for _, f := range a.Filters {
		t, err := c.elementTest(&inst{op: f.Op, args: f.Args})
		if err != nil {
			return 0, err
		}
		sel.tests = append(sel.tests, t)
	}
	sel.pred = a.Pred
	if !vertices {
		sel.pred = access.And(sel.pred, graph.EdgesOnly())
	}
	sel.limit = compile.Taken(ins[1+a.N:], c.atEnd())
	f, ok := compile.FirstBy(ins[1+a.N:], maxTop)
	if ok = ok && !c.config.Productive(nil); !ok {
		f, ok = compile.EndOf(ins[1+a.N:])
	}
	if ok && !a.Loose && (f.Key == "" || !graph.IsReserved(graph.StoredKey(f.Key))) {
		sel.first = &graph.First{Key: f.Key, Edges: !vertices, Desc: f.Desc, Values: compareStored, Outer: f.Outer}
		sel.most = f.N
	}
	if !c.x.paths && c.probes == nil && len(a.Labels) == 0 {
		sel.counted, sel.labels = compile.OnlyCounted(ins[1+a.N:]), compile.OnlyLabels(ins[1+a.N:])
	}
	open := func(x *exec) (iter, error) {
		switch {
		case given:
			return x.selected(&sel, withKeys(g, ids, a.PKs, a.HasPKs))
		case a.HasIDs:
			return x.selected(&sel, withKeys(g, a.IDs, a.PKs, a.HasPKs))
		case a.HasPKs:
			m := &multiIter{}
			for _, pk := range a.PKs {
				m.list = append(m.list, func() (iter, error) { return x.scan(&sel, pk) })
			}
			return m, nil
		}
		return x.scan(&sel, value.Value{})
	}
	flat := flatStep{f: func(x *exec, _ *trav) (iter, error) { return open(x) }}
	if all := !given && !a.HasIDs && !a.HasPKs && len(a.Filters) == 0; all && sel.counted {
		tr.add(&totalStep{flatStep: flat, vertices: vertices})
	} else {
		tr.add(&flat)
	}
	for _, l := range a.Labels {
		if err := c.addLabels(tr, l); err != nil {
			return 0, err
		}
	}
	return 1 + a.N, nil
}

// foldEnv returns the information about the graph that folding needs.
func (c *compiler) foldEnv(vertices bool) compile.Env {
	g := c.x.g
	env := compile.Env{
		Label:      graph.LabelPath,
		Unlabelled: graph.DefaultLabel,
		Paths:      graph.EdgePaths,
		Value: func(v any) (value.Value, bool) {
			switch v.(type) {
			case string, bool, int32, int64, float64, int16, int8:
			default:
				return value.Value{}, false
			}
			sv, err := toValue(v)
			return sv, err == nil
		},
	}
	if vertices {
		env.Paths = graph.VertexPaths
	}
	if g.Mode == graph.KeyProperty {
		env.Key = g.Key
	}
	return env
}

// idArgs reads the arguments of V() and E(). On a plain graph a single list is replaced by its elements. On a
// partitioned graph each list is [partition key, id].
func (c *compiler) idArgs(in gvalue.Instruction) (ids []any, given bool, err error) {
	args := in.Args
	if len(args) == 0 {
		return nil, false, nil
	}
	g := c.x.g
	if g.Mode != graph.KeyProperty {
		if len(args) == 1 && isCollection(args[0]) {
			args = listOf(args[0])
		}
		for _, a := range args {
			if isCollection(a) {
				return nil, false, errf(Runtime, "Expected an id that is convertible to a string, not a %s",
					typeName(a))
			}
		}
		return args, true, nil
	}
	for _, a := range args {
		l, ok := a.([]any)
		if !ok {
			ids = append(ids, a)
			continue
		}
		if k, ok := g.composite(l); ok {
			ids = append(ids, k)
			continue
		}
		if len(args) > 1 {
			return nil, false, errf(Runtime, "An id with its partition key is a list of two: [partition key, id]")
		}
		for _, e := range l { // V([v1, v2, ..]): elements or pairs
			if pair, isList := e.([]any); isList {
				k, ok := g.composite(pair)
				if !ok {
					return nil, false, errf(Runtime, "An id with its partition key is a list of two: [partition "+
						"key, id]")
				}
				e = k
			}
			ids = append(ids, e)
		}
	}
	return ids, true, nil
}

// composite reads [partition key, id].
func (g *Graph) composite(l []any) (keyed, bool) {
	if len(l) != 2 {
		return keyed{}, false
	}
	id, ok := l[1].(string)
	if !ok {
		return keyed{}, false
	}
	switch l[0].(type) {
	case string, bool, int8, int16, int32, int64, float32, float64:
	default:
		return keyed{}, false
	}
	pk, err := toValue(l[0])
	return keyed{pk, value.StringOf(id)}, err == nil
}

// withKeys combines ids with the partitions that a filter selects.
func withKeys(g *Graph, ids []any, pks []value.Value, has bool) []any {
	if !has || g.Mode != graph.KeyProperty {
		return ids
	}
	var out []any
	for _, id := range ids {
		s, ok := idText(id)
		switch id.(type) {
		case *gvalue.Vertex, *gvalue.Edge, *gvalue.VertexProperty, keyed:
			ok = false
		}
		if !ok {
			out = append(out, id)
			continue
		}
		for _, pk := range pks {
			out = append(out, keyed{pk, value.StringOf(s)})
		}
	}
	return out
}

// atEnd returns how many results of the traversal being compiled are needed; 0: all, or the parent decides.
func (c *compiler) atEnd() int {
	if c.depth > 1 {
		return 0
	}
	return c.want
}

// selection describes which elements V() or E() with its filters returns.
type selection struct {
	vertices bool
	pred     *access.Pred
	tests    []func(x *exec, v any) (bool, error)
	counted  bool         // the elements are only counted
	labels   bool         // only their labels are looked at
	limit    int          // how many elements are needed; 0: all
	first    *graph.First // the order in which they are the first ones; nil: any
	most     int          // with first, how many are needed in that order
}

func (s *selection) holds(x *exec, v any) (bool, error) {
	for _, t := range s.tests {
		if ok, err := t(x, v); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// selected returns the elements with the ids that pass the filters.
func (x *exec) selected(s *selection, ids []any) (iter, error) {
	it, err := x.byIDs(s.vertices, ids)
	if it == nil || err != nil || len(s.tests) == 0 {
		return it, err
	}
	return &filterIter{it: it, sel: s}, nil
}

// scan looks up all elements of one kind that pass the filters, in one partition or in all.
func (x *exec) scan(s *selection, pk value.Value) (iter, error) {
	f := graph.Find{PK: pk, Pred: s.pred, Match: x.matcher(s), Limit: s.limit, First: s.first,
		Shown: !s.counted}
	if s.counted {
		return x.find(f, func([]byte) (any, error) { return true, nil })
	}
	if s.labels {
		return x.find(f, labelled(s.vertices))
	}
	if s.first == nil {
		return x.findElements(f, s.vertices)
	}
	f.Limit = s.most
	it, err := x.elements(f, s.vertices)
	if err != nil {
		return nil, err
	}
	if s.first.Outer && !it.rows.Walked() {
		it.by = nil // a profile shows the look-up that gives the elements
		it.close()
		f.First, f.Limit = nil, s.limit
		return x.findElements(f, s.vertices)
	}
	return &firstIter{it: it, left: s.most}, nil
}

// firstIter returns the first elements of a look-up.
type firstIter struct {
	it   iter
	left int
}

func (f *firstIter) next(x *exec) (any, bool, error) {
	if f.left == 0 {
		f.it.close()
		return nil, false, nil
	}
	f.left--
	return f.it.next(x)
}

func (f *firstIter) close() { f.it.close() }

// maxLabels bounds the elements that labelled keeps.
const maxLabels = 1000

// labelled returns a function that makes an element with nothing but the label of a document. Documents with the same
// label give the same element.
func labelled(vertices bool) func(d []byte) (any, error) {
	known := map[string]any{}
	return func(d []byte) (any, error) {
		l := graph.LabelOf(d, vertices)
		if el, ok := known[string(l)]; ok {
			return el, nil
		}
		var el any
		if text := string(l); vertices {
			el = &gvalue.Vertex{Label: text}
		} else {
			el = &gvalue.Edge{Label: text}
		}
		if len(known) < maxLabels {
			known[string(l)] = el
		}
		return el, nil
	}
}

// matcher returns the exact filter of a scan. The tests get an element whose bytes belong to the look-up; only elements
// that pass are copied.
func (x *exec) matcher(s *selection) func(d []byte) (bool, error) {
	if len(s.tests) == 0 {
		return func(d []byte) (bool, error) { return graph.IsEdge(d) != s.vertices, nil }
	}
	var v graph.Vertex
	var e graph.Edge
	return func(d []byte) (bool, error) {
		if graph.IsEdge(d) == s.vertices {
			return false, nil
		}
		var el any
		if s.vertices {
			x.g.FillVertex(&v, d)
			el = &v.Vertex
		} else {
			x.g.FillEdge(&e, d)
			el = &e.Edge
		}
		ok, err := s.holds(x, el)
		if ok || err != nil {
			return ok, err
		}
		return false, x.seen(d)
	}
}

// filterIter skips elements that don't pass.
type filterIter struct {
	it  iter
	sel *selection
}

func (f *filterIter) next(x *exec) (any, bool, error) {
	for {
		v, ok, err := f.it.next(x)
		if !ok || err != nil {
			return nil, false, err
		}
		pass, err := f.sel.holds(x, v)
		if err != nil {
			return nil, false, err
		}
		if pass {
			return v, true, nil
		}
	}
}

func (f *filterIter) close() { f.it.close() }
