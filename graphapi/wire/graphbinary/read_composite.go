package graphbinary

import (
	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// collection reads lists, sets, maps, bags and trees. ok is false for other type codes.
func (r *reader) collection(code byte) (v any, ok bool) {
	switch code {
	case tList:
		return r.list(), true
	case tSet:
		return r.set(), true
	case tMap:
		return r.mapValue(), true
	case tBulkSet:
		n := r.count(2 + 8)
		b := &gvalue.BulkSet{}
		for i := 0; i < n && r.err == nil; i++ {
			v := r.key()
			b.Add(v, r.int64())
		}
		return b, true
	case tTree:
		return r.tree(), true
	}
	return nil, false
}

func (r *reader) list() []any {
	n := r.count(2)
	l := make([]any, 0, min(n, 64))
	for i := 0; i < n && r.err == nil; i++ {
		l = append(l, r.value())
	}
	return l
}

func (r *reader) set() *gvalue.Set {
	n := r.count(2)
	s := gvalue.SetOf()
	for i := 0; i < n && r.err == nil; i++ {
		s.Add(r.key())
	}
	return s
}

func (r *reader) mapValue() *gvalue.Map {
	n := r.count(4)
	m := gvalue.NewMap(min(n, 64))
	for i := 0; i < n && r.err == nil; i++ {
		k := r.key()
		m.Put(k, r.value())
	}
	return m
}

// key reads a value that must be comparable as a whole.
func (r *reader) key() any {
	if r.keyDepth++; r.keyDepth > maxKeyDepth {
		r.fail("more than %d levels of sets and map keys in each other", maxKeyDepth)
		return nil
	}
	v := r.value()
	r.keyDepth--
	return v
}

func (r *reader) tree() *gvalue.Tree {
	t := &gvalue.Tree{}
	if !r.enter() {
		return t
	}
	defer r.leave()
	n := r.count(2 + 4)
	for i := 0; i < n && r.err == nil; i++ {
		k := r.value()
		t.Entries = append(t.Entries, gvalue.TreeEntry{Key: k, Child: r.tree()})
	}
	return t
}

// element reads the types of the graph structure. ok is false for other type codes.
func (r *reader) element(code byte) (v any, ok bool) {
	switch code {
	case tVertex:
		x := &gvalue.Vertex{ID: r.value(), Label: r.string()}
		for _, p := range r.items() {
			if vp, ok := p.(*gvalue.VertexProperty); ok {
				x.Properties = append(x.Properties, *vp)
			}
		}
		return x, true
	case tEdge:
		x := &gvalue.Edge{ID: r.value(), Label: r.string(), InV: r.value(), InVLabel: r.string(), OutV: r.value(),
			OutVLabel: r.string()}
		r.value() // parent
		x.Properties = r.properties()
		return x, true
	case tVertexProperty:
		x := &gvalue.VertexProperty{ID: r.value(), Label: r.string(), Value: r.value()}
		x.Vertex, _ = r.value().(*gvalue.Vertex)
		x.Properties = r.properties()
		return x, true
	case tProperty:
		return &gvalue.Property{Key: r.string(), Value: r.value(), Element: r.value()}, true
	case tPath:
		return r.path(), true
	case tGraph:
		return r.graph(), true
	case tTraverser:
		bulk := r.int64()
		return gvalue.Traverser{Bulk: bulk, Value: r.value()}, true
	}
	return nil, false
}

// items reads a nullable List.
func (r *reader) items() []any {
	switch x := r.value().(type) {
	case nil:
		return nil
	case []any:
		return x
	}
	r.fail("a List expected")
	return nil
}

func (r *reader) properties() []gvalue.Property {
	var ps []gvalue.Property
	for _, v := range r.items() {
		if p, ok := v.(*gvalue.Property); ok {
			ps = append(ps, *p)
		}
	}
	return ps
}

func (r *reader) path() *gvalue.Path {
	p := &gvalue.Path{}
	for _, v := range r.items() {
		var names []string
		if s, ok := v.(*gvalue.Set); ok {
			for _, e := range s.Items() {
				if name, ok := e.(string); ok {
					names = append(names, name)
				}
			}
		}
		p.Labels = append(p.Labels, names)
	}
	p.Objects = r.items()
	return p
}

func (r *reader) graph() *gvalue.Graph {
	g := &gvalue.Graph{}
	n := r.count(10)
	for i := 0; i < n && r.err == nil; i++ {
		v := &gvalue.Vertex{ID: r.value(), Label: r.string()}
		np := r.count(12)
		for j := 0; j < np && r.err == nil; j++ {
			p := gvalue.VertexProperty{ID: r.value(), Label: r.string(), Value: r.value()}
			r.value() // parent
			p.Properties = r.properties()
			v.Properties = append(v.Properties, p)
		}
		g.Vertices = append(g.Vertices, v)
	}
	n = r.count(18)
	for i := 0; i < n && r.err == nil; i++ {
		e := &gvalue.Edge{ID: r.value(), Label: r.string(), InV: r.value()}
		r.value() // label of the in-vertex, always null
		e.OutV = r.value()
		r.value() // label of the out-vertex, always null
		r.value() // parent
		e.Properties = r.properties()
		g.Edges = append(g.Edges, e)
	}
	return g
}

// language reads predicates, bytecode and metrics.
func (r *reader) language(code byte) any {
	switch code {
	case tP, tTextP:
		p := &gvalue.P{Op: r.string(), Text: code == tTextP}
		p.Args = r.args()
		return gvalue.UnrollP(p)
	case tBytecode:
		b := &gvalue.Bytecode{}
		b.Steps = r.instructions()
		b.Source = r.instructions()
		return gvalue.ReduceBytecode(b)
	case tBinding:
		return &gvalue.Binding{Key: r.string(), Value: r.value()}
	case tLambda:
		return &gvalue.Lambda{Language: r.string(), Script: r.string(), Args: r.int32()}
	case tStrategy:
		return &gvalue.Strategy{Class: r.string(), Config: r.mapValue()}
	case tMetrics:
		return r.metrics()
	case tTraversalMetrics:
		t := &gvalue.TraversalMetrics{Duration: r.int64()}
		t.Metrics = metricsOf(r.list())
		return t
	}
	r.fail("unknown type code 0x%02x", code)
	return nil
}

func (r *reader) args() []any {
	n := r.count(2)
	args := make([]any, 0, min(n, 64))
	for i := 0; i < n && r.err == nil; i++ {
		args = append(args, r.value())
	}
	return args
}

func (r *reader) instructions() []gvalue.Instruction {
	n := r.count(8)
	ins := make([]gvalue.Instruction, 0, min(n, 64))
	for i := 0; i < n && r.err == nil; i++ {
		op := r.string()
		ins = append(ins, gvalue.Instruction{Op: op, Args: r.args()})
	}
	return ins
}

func (r *reader) metrics() *gvalue.Metrics {
	return &gvalue.Metrics{ID: r.string(), Name: r.string(), Duration: r.int64(), Counts: r.mapValue(),
		Annotations: r.mapValue(),
		Nested:      metricsOf(r.list())}
}

func metricsOf(l []any) []*gvalue.Metrics {
	var ms []*gvalue.Metrics
	for _, v := range l {
		if m, ok := v.(*gvalue.Metrics); ok {
			ms = append(ms, m)
		}
	}
	return ms
}
