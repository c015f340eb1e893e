package graphson

import (
	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// field appends ,"name": (without the comma after an opening brace).
//
//go:noinline // called from many places, see decision 41
func (w *writer) field(name string) {
	if w.b[len(w.b)-1] != '{' {
		w.b = append(w.b, ',')
	}
	w.b = append(w.b, '"')
	w.raw(name)
	w.raw(`":`)
}

func (w *writer) stringField(name, s string) {
	w.field(name)
	w.string(s)
}

func (w *writer) valueField(name string, v any) {
	w.field(name)
	w.value(v)
}

func (w *writer) element(v any) bool {
	switch x := v.(type) {
	case *gvalue.Vertex:
		w.vertex(x)
	case *gvalue.Edge:
		w.edge(x)
	case *gvalue.VertexProperty:
		w.vertexProperty(&gvalue.LoadedProperty{Key: x.Label, ID: gvalue.Scalar{Other: x.ID},
			Value: gvalue.Scalar{Other: x.Value}, Properties: x.Properties}, true)
	case *gvalue.Property:
		w.property(x)
	case *gvalue.Path:
		w.path(x)
	case gvalue.Traverser:
		w.open("g:Traverser")
		w.raw("{")
		w.field("bulk")
		w.integer("g:Int64", x.Bulk)
		w.valueField("value", x.Value)
		w.raw("}")
		w.close()
	case *gvalue.Graph:
		w.graph(x)
	default:
		return false
	}
	return true
}

func (w *writer) vertex(v *gvalue.Vertex) {
	w.open("g:Vertex")
	w.raw("{")
	w.valueField("id", v.ID)
	w.stringField("label", v.Label)
	if w.version == 1 {
		w.raw(`,"type":"vertex"`)
	}
	if !w.tokens {
		w.vertexProperties(v)
	}
	w.raw("}")
	w.close()
}

// vertexProperties appends the member "properties" if there are any. The values of one key are neighbours.
func (w *writer) vertexProperties(v *gvalue.Vertex) {
	last, any := "", false
	v.Visit(func(p *gvalue.LoadedProperty) {
		switch {
		case any && p.Key == last:
			w.raw(",")
		case any:
			w.raw("],")
		default:
			w.field("properties")
			w.raw("{")
		}
		if !any || p.Key != last {
			w.string(p.Key)
			w.raw(":[")
		}
		last, any = p.Key, true
		w.vertexProperty(p, w.version > 1)
	})
	if any {
		w.raw("]}")
	}
}

func (w *writer) vertexProperty(p *gvalue.LoadedProperty, label bool) {
	w.open("g:VertexProperty")
	w.raw("{")
	w.field("id")
	w.scalar(&p.ID)
	w.field("value")
	w.scalar(&p.Value)
	if label {
		w.stringField("label", p.Key)
	}
	if len(p.Properties) > 0 && !w.tokens {
		w.field("properties")
		w.raw("{")
		for i := range p.Properties {
			if i > 0 {
				w.raw(",")
			}
			w.string(p.Properties[i].Key)
			w.raw(":")
			w.value(p.Properties[i].Value)
		}
		w.raw("}")
	}
	w.raw("}")
	w.close()
}

func (w *writer) edge(e *gvalue.Edge) {
	w.open("g:Edge")
	w.raw("{")
	w.valueField("id", e.ID)
	w.stringField("label", e.Label)
	if w.version == 1 {
		w.raw(`,"type":"edge"`)
	}
	w.stringField("inVLabel", e.InVLabel)
	w.stringField("outVLabel", e.OutVLabel)
	w.valueField("inV", e.InV)
	w.valueField("outV", e.OutV)
	if !w.tokens {
		w.edgeProperties(e.Props())
	}
	w.raw("}")
	w.close()
}

// edgeProperties appends the member "properties": bare values in version 1, otherwise a property object each.
func (w *writer) edgeProperties(ps []gvalue.Property) {
	if len(ps) == 0 {
		return
	}
	w.field("properties")
	w.raw("{")
	for i := range ps {
		if i > 0 {
			w.raw(",")
		}
		w.string(ps[i].Key)
		w.raw(":")
		if w.version == 1 {
			w.value(ps[i].Value)
		} else {
			w.property(&ps[i])
		}
	}
	w.raw("}")
}

func (w *writer) property(p *gvalue.Property) {
	w.open("g:Property")
	w.raw("{")
	w.stringField("key", p.Key)
	w.valueField("value", p.Value)
	w.raw("}")
	w.close()
}

func (w *writer) path(p *gvalue.Path) {
	w.open("g:Path")
	w.raw("{")
	w.field("labels")
	w.open3("g:List")
	w.raw("[")
	for i, names := range p.Labels {
		if i > 0 {
			w.raw(",")
		}
		w.open3("g:Set")
		w.raw("[")
		for j, n := range names {
			if j > 0 {
				w.raw(",")
			}
			w.string(n)
		}
		w.raw("]")
		w.close3()
	}
	w.raw("]")
	w.close3()
	w.valueField("objects", p.Objects)
	w.raw("}")
	w.close()
}

func (w *writer) graph(g *gvalue.Graph) {
	w.open("tinker:graph")
	w.raw("{")
	w.field("vertices")
	w.raw("[")
	for i, v := range g.Vertices {
		if i > 0 {
			w.raw(",")
		}
		w.vertex(v)
	}
	w.raw("]")
	w.field("edges")
	w.raw("[")
	for i, e := range g.Edges {
		if i > 0 {
			w.raw(",")
		}
		w.edge(e)
	}
	w.raw("]}")
	w.close()
}

func (w *writer) collection(v any) bool {
	switch x := v.(type) {
	case []any:
		w.open3("g:List")
		w.array(x)
		w.close3()
	case *gvalue.Set:
		w.open3("g:Set")
		w.array(x.Items())
		w.close3()
	case *gvalue.Map:
		w.mapValue(x)
	case *gvalue.LazyMap:
		w.lazyMap(x)
	case *gvalue.BulkSet:
		w.bulkSet(x)
	case *gvalue.Tree:
		w.tree(x)
	default:
		return false
	}
	return true
}

func (w *writer) array(l []any) {
	w.raw("[")
	for i, e := range l {
		if i > 0 {
			w.raw(",")
		}
		w.value(e)
	}
	w.raw("]")
}

// mapValue appends a g:Map as a flat list in version 3, otherwise as an object whose names are the texts of the keys.
func (w *writer) mapValue(m *gvalue.Map) {
	w.openMap()
	for i, e := range m.Entries() {
		w.entry(i, e)
	}
	w.closeMap()
}

// lazyMap appends a map whose entries are read meanwhile.
func (w *writer) lazyMap(m *gvalue.LazyMap) {
	w.openMap()
	i, at := 0, len(w.b)
	err := m.Each(func(e gvalue.Entry) error {
		w.entry(i, e)
		if i++; w.err != nil || m.Written == nil {
			return w.err
		}
		return m.Written(len(w.b) - at)
	})
	if w.err == nil {
		w.err = err
	}
	w.closeMap()
}

// flatMaps reports whether maps are flat lists.
func (w *writer) flatMaps() bool { return w.version == 3 && w.typed }

func (w *writer) openMap() {
	if !w.flatMaps() {
		w.raw("{")
		return
	}
	w.open("g:Map")
	w.raw("[")
}

// entry appends the entry of a map with the number i.
func (w *writer) entry(i int, e gvalue.Entry) {
	if i > 0 {
		w.raw(",")
	}
	if w.flatMaps() {
		w.value(e.Key)
		w.raw(",")
	} else {
		if s, ok := e.Key.(string); ok {
			w.string(s)
		} else {
			w.string(gvalue.Text(e.Key))
		}
		w.raw(":")
	}
	w.value(e.Value)
}

func (w *writer) closeMap() {
	if !w.flatMaps() {
		w.raw("}")
		return
	}
	w.raw("]")
	w.close()
}

// bulkSet appends values and counts in version 3, otherwise each value as often as its count says.
func (w *writer) bulkSet(b *gvalue.BulkSet) {
	counted := w.version == 3 && w.typed
	if counted {
		w.open("g:BulkSet")
	}
	w.raw("[")
	total := int64(0)
	for i, e := range b.Items() {
		if counted {
			if i > 0 {
				w.raw(",")
			}
			w.value(e.Value)
			w.raw(",")
			w.value(e.Bulk)
			continue
		}
		if total += e.Bulk; total > maxExpand || e.Bulk > maxExpand {
			w.err = errTooMany
			break
		}
		for j := range e.Bulk {
			if int64(i)+j > 0 {
				w.raw(",")
			}
			w.value(e.Value)
		}
	}
	w.raw("]")
	if counted {
		w.close()
	}
}

// tree appends [{"key", "value"}, ..]. In version 1 it is an object with the texts of the keys as names.
func (w *writer) tree(t *gvalue.Tree) {
	if w.depth++; w.depth > message.MaxDepth {
		w.err = errTooDeep
		w.raw("null")
		return
	}
	defer func() { w.depth-- }()
	if w.version == 1 {
		w.raw("{")
		for i, e := range t.Entries {
			if i > 0 {
				w.raw(",")
			}
			w.string(treeName(e.Key))
			w.raw(":{")
			w.valueField("key", e.Key)
			w.field("value")
			w.tree(e.Child)
			w.raw("}")
		}
		w.raw("}")
		return
	}
	w.open("g:Tree")
	w.raw("[")
	for i, e := range t.Entries {
		if i > 0 {
			w.raw(",")
		}
		w.raw("{")
		w.valueField("key", e.Key)
		w.field("value")
		w.tree(e.Child)
		w.raw("}")
	}
	w.raw("]")
	w.close()
}

// treeName returns the name of a branch in version 1: an element's id, otherwise the value's text.
func treeName(v any) string {
	switch x := v.(type) {
	case *gvalue.Vertex:
		return gvalue.Text(x.ID)
	case *gvalue.Edge:
		return gvalue.Text(x.ID)
	}
	return gvalue.Text(v)
}

// language appends predicates, bytecode and metrics.
func (w *writer) language(v any) bool {
	switch x := v.(type) {
	case *gvalue.P:
		w.predicate(x)
	case *gvalue.Bytecode:
		w.open("g:Bytecode")
		w.raw("{")
		w.instructions("source", x.Source)
		w.instructions("step", x.Steps)
		w.raw("}")
		w.close()
	case gvalue.CardinalityValue:
		w.value(
			&gvalue.Bytecode{
				Source: []gvalue.Instruction{{Op: "CardinalityValueTraversal", Args: []any{x.Cardinality, x.Value}}}})
	case *gvalue.Binding:
		w.open("g:Binding")
		w.raw("{")
		w.stringField("key", x.Key)
		w.valueField("value", x.Value)
		w.raw("}")
		w.close()
	case *gvalue.Lambda:
		w.open("g:Lambda")
		w.raw("{")
		w.stringField("script", x.Script)
		w.stringField("language", x.Language)
		w.field("arguments")
		w.raw(gvalue.Text(x.Args))
		w.raw("}")
		w.close()
	case *gvalue.Strategy:
		if !isClassName(x.Name()) {
			return false
		}
		w.open("g:" + x.Name())
		w.raw("{")
		w.stringField("fqcn", x.Class)
		w.valueField("conf", x.Config)
		w.raw("}")
		w.close()
	case *gvalue.Metrics:
		w.metrics(x)
	case *gvalue.TraversalMetrics:
		list := make([]any, len(x.Metrics))
		for i, m := range x.Metrics {
			list[i] = m
		}
		w.open("g:TraversalMetrics")
		w.value(gvalue.MapOf("dur", float64(x.Duration)/1e6, "metrics", list))
		w.close()
	default:
		return false
	}
	return true
}

func (w *writer) predicate(p *gvalue.P) {
	if p.Text {
		w.open("g:TextP")
	} else {
		w.open("g:P")
	}
	w.raw("{")
	w.stringField("predicate", p.Op)
	w.field("value")
	switch p.Op {
	case "within", "without":
		w.value(p.Args)
	default:
		if len(p.Args) == 1 {
			w.value(p.Args[0])
		} else {
			w.array(p.Args)
		}
	}
	w.raw("}")
	w.close()
}

func (w *writer) instructions(name string, ins []gvalue.Instruction) {
	if len(ins) == 0 {
		return
	}
	w.field(name)
	w.raw("[")
	for i, in := range ins {
		if i > 0 {
			w.raw(",")
		}
		w.raw("[")
		w.string(in.Op)
		for _, a := range in.Args {
			w.raw(",")
			w.value(a)
		}
		w.raw("]")
	}
	w.raw("]")
}

func (w *writer) metrics(m *gvalue.Metrics) {
	f := gvalue.MapOf("dur", float64(m.Duration)/1e6, "counts", m.Counts, "name", m.Name, "annotations", m.Annotations,
		"id", m.ID)
	if len(m.Nested) > 0 {
		list := make([]any, len(m.Nested))
		for i, n := range m.Nested {
			list[i] = n
		}
		f.Put("metrics", list)
	}
	w.open("g:Metrics")
	w.value(f)
	w.close()
}
