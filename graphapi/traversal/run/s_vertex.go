package run

import (
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/graphapi/graph"
	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/traversal/compile"
)

// stepDirections are the directions of the steps that follow edges.
var stepDirections = map[string]gvalue.Direction{
	"out": gvalue.OUT, "in": gvalue.IN, "both": gvalue.BOTH, "outE": gvalue.OUT, "inE": gvalue.IN, "bothE": gvalue.BOTH,
	"outV": gvalue.OUT, "inV": gvalue.IN, "bothV": gvalue.BOTH,
}

// walk says which edges of a vertex are followed.
type walk struct {
	dir    gvalue.Direction
	labels []string // none: any
	order  compile.Order
	far    []value.Value // where the vertices at the other ends may be stored; nil: anywhere
}

// storedIDs returns the forms in which ids may be stored. The result isn't nil.
func storedIDs(ids []any) []value.Value {
	out := []value.Value{}
	for _, id := range ids {
		if el, ok := idOfElement(id); ok {
			id = el
		}
		if s, ok := idText(id); ok {
			out = append(out, core.IdentityFromText(s)...)
		}
	}
	return out
}

// buildWalk makes out, in, both, outE, inE, bothE, and to(direction, ..), toE(direction, ..).
func buildWalk(c *compiler, in *inst) (step, error) {
	dir, args, edges := stepDirections[in.op], in.args, len(in.op) > 2 && in.op[len(in.op)-1] == 'E'
	if in.op == "to" || in.op == "toE" {
		d, ok := directionArg(args)
		if !ok {
			return nil, in.argErr("a direction is expected")
		}
		dir, args = d, args[1:]
	}
	labels, err := stringsOf(args, in.op)
	if err != nil {
		return nil, err
	}
	if len(args) > 0 && len(labels) == 0 { // out(null) follows no edge
		return &filterStep{f: func(*exec, *trav) (bool, error) { return false, nil }}, nil
	}
	name, w := in.op, &walk{dir: dir, labels: labels, order: in.order}
	if ids, ok := compile.FarIDs(in.op, in.rest); ok {
		w.far = storedIDs(ids)
	}
	s := &walkStep{}
	if w.order == compile.Ignored && !c.x.paths {
		s.meet = &meeting{}
	}
	s.f = func(x *exec, t *trav) (iter, error) {
		v, ok := t.v.(*gvalue.Vertex)
		if !ok {
			return nil, errf(Runtime, "The step %s() can only be applied to a Vertex, not to a %s", name, typeName(t.v))
		}
		if edges {
			return x.edgesOf(v, w)
		}
		return x.neighbours(v, w)
	}
	return s, nil
}

func directionArg(args []any) (gvalue.Direction, bool) {
	if len(args) == 0 {
		return "", false
	}
	d, ok := args[0].(gvalue.Direction)
	return d, ok
}

// buildEnds makes outV, inV, bothV and toV(direction).
func buildEnds(c *compiler, in *inst) (step, error) {
	dir := stepDirections[in.op]
	if in.op == "toV" {
		d, ok := directionArg(in.args)
		if !ok {
			return nil, in.argErr("a direction is expected")
		}
		dir = d
	}
	name := in.op
	return &flatStep{f: func(x *exec, t *trav) (iter, error) {
		e, ok := t.v.(*gvalue.Edge)
		if !ok {
			return nil, errf(Runtime, "The step %s() can only be applied to an Edge, not to a %s", name, typeName(t.v))
		}
		var vs []any
		for _, end := range []gvalue.Direction{gvalue.OUT, gvalue.IN} {
			if dir != end && dir != gvalue.BOTH {
				continue
			}
			v, err := x.edgeEnd(e, end)
			if err != nil {
				return nil, err
			}
			if v != nil {
				vs = append(vs, v)
			}
		}
		return &sliceIter{vs: vs}, nil
	}}, nil
}

// edgeEnd reads the vertex at one end of an edge: OUT is its start.
func (x *exec) edgeEnd(e *gvalue.Edge, end gvalue.Direction) (*gvalue.Vertex, error) {
	n := graph.EdgeOf(e)
	if n == nil {
		it, err := x.byID(false, e.ID)
		if it == nil || err != nil {
			return nil, err
		}
		defer it.close()
		v, ok, err := it.next(x)
		if !ok || err != nil {
			return nil, err
		}
		n = graph.EdgeOf(v.(*gvalue.Edge))
	}
	if end == gvalue.OUT {
		return x.endOf(n.Doc, gvalue.IN) // against its direction the edge leads to its start
	}
	return x.endOf(n.Doc, gvalue.OUT)
}

// buildOtherV returns the end of an edge from which the traverser didn't come.
func buildOtherV(c *compiler, in *inst) (step, error) {
	return &mapStep{f: func(x *exec, t *trav) (any, bool, error) {
		e, ok := t.v.(*gvalue.Edge)
		if !ok {
			return nil, false, errf(Runtime, "The step otherV() can only be applied to an Edge, not to a %s",
				typeName(t.v))
		}
		end := gvalue.OUT
		p := t.path
		for p != nil {
			if v, ok := p.v.(*gvalue.Vertex); ok {
				if n, en := graph.VertexOf(v), graph.EdgeOf(e); n != nil && en != nil && en.StartsAt(n) {
					end = gvalue.IN
				}
				break
			}
			p = p.prev
		}
		if p == nil {
			return nil, false, errf(Runtime, "The path history of the traverser does not contain a previous vertex "+
				"for otherV()")
		}
		v, err := x.edgeEnd(e, end)
		if v == nil || err != nil {
			return nil, false, err
		}
		return v, true, nil
	}}, nil
}

// buildProperties makes properties(..) and values(..).
func buildProperties(c *compiler, in *inst) (step, error) {
	keys, err := stringsOf(in.args, in.op)
	if err != nil {
		return nil, err
	}
	values := in.op == "values"
	return &flatStep{f: func(x *exec, t *trav) (iter, error) {
		if !isElement(t.v) {
			return nil, errf(Runtime, "The step %s() can only be applied to an Element, not to a %s", in.op,
				typeName(t.v))
		}
		if values && len(keys) == 1 {
			var vs []any
			eachProperty(t.v, keys[0], func(v any) bool { vs = append(vs, v); return true })
			return &sliceIter{vs: vs}, nil
		}
		return &sliceIter{vs: propertiesOf(t.v, keys, values)}, nil
	}}, nil
}

// propertiesOf returns the properties of an element (or only their values) with one of the keys, in stored order.
func propertiesOf(el any, keys []string, values bool) []any {
	var out []any
	switch e := el.(type) {
	case *gvalue.Vertex:
		ps := e.Props()
		for i := range ps {
			if !wanted(ps[i].Label, keys) {
				continue
			}
			if values {
				out = append(out, ps[i].Value)
				continue
			}
			ps[i].Vertex = e
			out = append(out, &ps[i])
		}
	case *gvalue.Edge:
		ps := e.Props()
		for i := range ps {
			if !wanted(ps[i].Key, keys) {
				continue
			}
			if values {
				out = append(out, ps[i].Value)
				continue
			}
			ps[i].Element = e
			out = append(out, &ps[i])
		}
	case *gvalue.VertexProperty:
		for i := range e.Properties {
			if !wanted(e.Properties[i].Key, keys) {
				continue
			}
			if values {
				out = append(out, e.Properties[i].Value)
				continue
			}
			e.Properties[i].Element = e
			out = append(out, &e.Properties[i])
		}
	}
	return out
}

func wanted(key string, keys []string) bool {
	if len(keys) == 0 {
		return true
	}
	for _, k := range keys {
		if k == key {
			return true
		}
	}
	return false
}

// buildElement returns the owner of a property.
func buildElement(c *compiler, in *inst) (step, error) {
	return &mapStep{f: func(_ *exec, t *trav) (any, bool, error) {
		switch p := t.v.(type) {
		case *gvalue.VertexProperty:
			return p.Vertex, p.Vertex != nil, nil
		case *gvalue.Property:
			return p.Element, p.Element != nil, nil
		}
		return nil, false, errf(Runtime, "The step element() can only be applied to a Property, not to a %s",
			typeName(t.v))
	}}, nil
}

// The tokens that valueMap() adds, numbered as in WithOptions.
const (
	optIDs    = 1
	optLabels = 2
	optKeys   = 4
	optValues = 8
)

// buildValueMap makes valueMap, propertyMap and elementMap.
func buildValueMap(c *compiler, in *inst) (step, error) {
	args, opts := in.args, 0
	if len(args) > 0 {
		if b, ok := args[0].(bool); ok && in.op == "valueMap" {
			args = args[1:]
			if b {
				opts = 15
			}
		}
	}
	keys, err := stringsOf(args, in.op)
	if err != nil {
		return nil, err
	}
	for _, m := range in.mods {
		if m.Op != "with" {
			continue
		}
		if len(m.Args) == 0 || m.Args[0] != "~tinkerpop.valueMap.tokens" {
			return nil, errf(Compile, "valueMap() does not know this option")
		}
		opts = 15
		if len(m.Args) == 2 {
			n, ok := gvalue.Integer(m.Args[1])
			if !ok {
				return nil, errf(Compile, "valueMap() does not know this option")
			}
			opts = int(n)
		}
	}
	b, err := c.oneBy(in)
	if err != nil {
		return nil, err
	}
	op := in.op
	return &mapStep{f: func(x *exec, t *trav) (any, bool, error) {
		if !isElement(t.v) {
			return nil, false, errf(Runtime, "The step %s() can only be applied to an Element, not to a %s", op,
				typeName(t.v))
		}
		if op == "elementMap" {
			return elementMap(t.v, keys), true, nil
		}
		m, err := x.valueMap(t, keys, opts, op == "propertyMap", b)
		return m, true, err
	}}, nil
}

func (x *exec) valueMap(t *trav, keys []string, opts int, whole bool, b *by) (*gvalue.Map, error) {
	m := &gvalue.Map{}
	if vp, ok := t.v.(*gvalue.VertexProperty); ok && opts != 0 {
		if opts&optIDs != 0 {
			m.Append(gvalue.TID, vp.ID)
		}
		if opts&optKeys != 0 {
			m.Append(gvalue.TKey, vp.Label)
		}
		if opts&optValues != 0 {
			m.Append(gvalue.TValue, vp.Value)
		}
	} else {
		addTokens(m, t.v, opts)
	}
	tokens := m.Len()
	_, isVertex := t.v.(*gvalue.Vertex)
	for _, p := range propertiesOf(t.v, keys, false) {
		var key string
		var val any
		switch q := p.(type) {
		case *gvalue.VertexProperty:
			key, val = q.Label, q.Value
		case *gvalue.Property:
			key, val = q.Key, q.Value
		}
		if whole {
			val = p
		}
		if !isVertex {
			m.Put(key, val)
			continue
		}
		old, _ := m.GetString(key)
		l, _ := old.([]any)
		m.Put(key, append(l, val))
	}
	if b.kind == byIdentity {
		return m, nil
	}
	out := gvalue.NewMap(m.Len())
	for i, e := range m.Entries() {
		if i < tokens {
			out.Append(e.Key, e.Value)
			continue
		}
		v, ok, err := b.applyTo(x, t, e.Value)
		if err != nil {
			return nil, err
		}
		if ok {
			out.Append(e.Key, v)
		}
	}
	return out, nil
}

func addTokens(m *gvalue.Map, el any, opts int) {
	if opts&optIDs != 0 {
		m.Append(gvalue.TID, elementID(el))
	}
	if opts&optLabels != 0 {
		if l, ok, _ := tokenOf(el, gvalue.TLabel); ok {
			m.Append(gvalue.TLabel, l)
		}
	}
}

// elementMap returns a flat map: tokens, the ends of an edge, and the last value of each property.
func elementMap(el any, keys []string) *gvalue.Map {
	m := &gvalue.Map{}
	if vp, ok := el.(*gvalue.VertexProperty); ok {
		m.Append(gvalue.TID, vp.ID)
		m.Append(gvalue.TKey, vp.Label)
		m.Append(gvalue.TValue, vp.Value)
	} else {
		addTokens(m, el, optIDs|optLabels)
	}
	if e, ok := el.(*gvalue.Edge); ok {
		m.Append(gvalue.IN, gvalue.MapOf(gvalue.TID, e.InV, gvalue.TLabel, e.InVLabel))
		m.Append(gvalue.OUT, gvalue.MapOf(gvalue.TID, e.OutV, gvalue.TLabel, e.OutVLabel))
	}
	for _, p := range propertiesOf(el, keys, false) {
		switch q := p.(type) {
		case *gvalue.VertexProperty:
			m.Put(q.Label, q.Value)
		case *gvalue.Property:
			m.Put(q.Key, q.Value)
		}
	}
	return m
}

// buildToken makes id, label, key and value.
func buildToken(c *compiler, in *inst) (step, error) {
	tok := gvalue.T(in.op)
	return &mapStep{f: func(_ *exec, t *trav) (any, bool, error) { return tokenOf(t.v, tok) }}, nil
}
