package run

import (
	"context"

	"github.com/google/uuid"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/graphapi/graph"
	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// propertyIDs generates ids for property values, and draws the random bytes for several ids at once.
type propertyIDs struct {
	x   *exec
	buf []byte
}

func (p *propertyIDs) next(want int) value.Value {
	if len(p.buf) < 16 {
		p.buf = make([]byte, 16*max(want, 1))
		p.x.g.clock.Random(p.buf)
	}
	var u uuid.UUID
	copy(u[:], p.buf)
	p.buf = p.buf[16:]
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	b, _ := u.MarshalText()
	return value.StringBytes(b)
}

func (p *propertyIDs) one() value.Value { return p.next(1) }

// metaOf sets meta-properties.
func metaOf(old value.Value, metas []gvalue.Property) (value.Value, error) {
	m, err := graph.Metas(old, metas)
	if err != nil {
		return m, errf(Runtime, "%s", err.Error())
	}
	return m, nil
}

// apply changes the values of one key, in their memory, as property(cardinality, key, value) requires.
func (s *propSet) apply(vals []graph.Value, ids *propertyIDs, want int) ([]graph.Value, error) {
	if s.val == nil { // null removes a single property and adds nothing to a list
		if s.card == gvalue.ListCard || s.card == gvalue.SetCard {
			return vals, nil
		}
		return nil, nil
	}
	v, err := toValue(s.val)
	if err != nil {
		return nil, err
	}
	n := graph.Value{Val: v}
	if len(s.metas) > 0 {
		if n.Meta, err = metaOf(value.Value{}, s.metas); err != nil {
			return nil, err
		}
	}
	switch s.card {
	case gvalue.ListCard:
		n.ID = ids.next(want)
		return append(vals, n), nil
	case gvalue.SetCard:
		for i := range vals {
			if equal(graph.FromValue(vals[i].Val), s.val) {
				if len(s.metas) > 0 {
					vals[i].Meta, err = metaOf(vals[i].Meta, s.metas)
				}
				return vals, err
			}
		}
		n.ID = ids.next(want)
		return append(vals, n), nil
	}
	n.ID = ids.next(want)
	return append(vals[:0], n), nil
}

// toValue returns the stored form of a property value.
func toValue(v any) (value.Value, error) {
	sv, err := graph.ToValue(v)
	if err != nil {
		return sv, errf(Runtime, "%s", err.Error())
	}
	return sv, nil
}

// keyOfDraft returns the value of the partition key property of a draft vertex.
func (x *exec) keyOfDraft(d *draft) (value.Value, error) {
	var pk value.Value
	for i := range d.props {
		if d.props[i].key != x.g.Key {
			continue
		}
		v, err := toValue(d.props[i].val)
		if err != nil {
			return pk, err
		}
		pk = v
	}
	switch pk.Kind() {
	case value.Undefined, value.Null:
		return pk, errf(Runtime, "Cannot add a vertex where the partition key property has value 'null'.")
	case value.String, value.Bool, value.Int32, value.Int64, value.Double:
		return pk, nil
	}
	return pk, errf(Runtime, "The partition key property must be a string, a number or a boolean")
}

// createVertex writes a new vertex.
func (x *exec) createVertex(d *draft) (*gvalue.Vertex, error) {
	id, kept, err := x.newID(d, "Vertex")
	if err != nil {
		return nil, err
	}
	if x.g.Mode == graph.KeyOther {
		return nil, errf(Unsupported, "Vertices can't be added to a container with a hierarchical partition key")
	}
	pk, keyed := id, x.g.Mode == graph.KeyProperty
	if keyed {
		if pk, err = x.keyOfDraft(d); err != nil {
			return nil, err
		}
	}
	b, at := x.g.OpenElement(d.vertexSize(), id, kept, d.label, pk)
	ids := &propertyIDs{x: x}
	var vals []graph.Value
	for i := range d.props {
		if keyed && d.props[i].key == x.g.Key || earlier(d.props[:i], d.props[i].key) {
			continue
		}
		vals = vals[:0]
		for j := i; j < len(d.props); j++ {
			if d.props[j].key != d.props[i].key {
				continue
			}
			if vals, err = d.props[j].apply(vals, ids, len(d.props)); err != nil {
				return nil, err
			}
		}
		b = graph.AppendProperty(b, graph.StoredKey(d.props[i].key), vals)
	}
	b = graph.CloseElement(b, at)
	if err := x.create(pk, id, b); err != nil {
		return nil, taken(err, "Vertex", d)
	}
	return x.g.NewVertex(b), nil
}

func earlier(ps []propSet, key string) bool {
	for i := range ps {
		if ps[i].key == key {
			return true
		}
	}
	return false
}

func (x *exec) create(pk, id value.Value, b []byte) error { return x.createWith(pk, id, b, nil) }

// recording is a store whose writes can change records.
type recording interface {
	CreateWith(ctx context.Context, pk, id value.Value, doc []byte, with *core.Attached) (float64, error)
}

// createWith writes a new document, and changes a record in the same commit; nil: none.
func (x *exec) createWith(pk, id value.Value, b []byte, with *core.Attached) error {
	if err := x.tick(); err != nil {
		return err
	}
	var charge float64
	var err error
	if with == nil {
		charge, err = x.g.Store.Create(x.ctx, pk, id, b)
	} else {
		charge, err = x.g.Store.(recording).CreateWith(x.ctx, pk, id, b, with)
	}
	if err != nil {
		return x.cause(err)
	}
	x.stats.Charge += charge
	x.stats.Writes++
	return nil
}

// createEdge writes a new edge into the logical partition of its out-vertex.
func (x *exec) createEdge(d *draft, out, in *graph.Vertex) (*gvalue.Edge, error) {
	id, kept, err := x.newID(d, "Edge")
	if err != nil {
		return nil, err
	}
	if x.g.Mode == graph.KeyOther {
		return nil, errf(Unsupported, "Edges can't be added to a container with a hierarchical partition key")
	}
	pk, own, named := out.PK, "", d.hasID && d.id != nil && x.g.FreeEdgeIDs()
	if named {
		own = id.Str()
		if s := x.g.StoredEdgeID(own, out.StoredID); s != own {
			if !kept.IsDefined() {
				kept = id
			}
			id = value.StringOf(s)
		}
	}
	if x.g.Mode == graph.KeyID {
		pk = id
	}
	b, at := x.g.OpenElement(256+48*len(d.props), id, kept, d.label, pk)
	b = graph.AppendEnds(b, out, in)
	for i, p := range d.props {
		if x.g.Mode == graph.KeyProperty && p.key == x.g.Key {
			if v, err := toValue(p.val); err != nil || !graph.SameKey(v, pk) {
				return nil, errf(Runtime, "The inserted edge has a partition property, "+
					"but the property value is different from that of the source vertex.")
			}
			continue
		}
		if p.card == gvalue.ListCard || p.card == gvalue.SetCard || len(p.metas) > 0 {
			return nil, errf(Runtime, "Edge properties have one value and no meta-properties")
		}
		last := true
		for _, q := range d.props[i+1:] {
			last = last && q.key != p.key
		}
		if p.val == nil || !last {
			continue
		}
		v, err := toValue(p.val)
		if err != nil {
			return nil, err
		}
		b = doc.AppendElement(b, graph.StoredKey(p.key), v)
	}
	b = graph.CloseElement(b, at)
	if named {
		err = x.createNamedEdge(own, pk, id, b)
	} else {
		err = x.create(pk, id, b)
	}
	if err != nil {
		return nil, taken(err, "Edge", d)
	}
	return x.g.NewEdge(b), nil
}

// update rewrites one document. f gets the current bytes.
func (x *exec) update(pk, id value.Value,
	f func(old []byte) (doc []byte, drop bool, err error)) (found bool, err error) {
	if err := x.tick(); err != nil {
		return false, err
	}
	found, charge, err := x.g.Store.Update(x.ctx, pk, id, f)
	if err != nil {
		return false, x.cause(err)
	}
	x.stats.Charge += charge
	if found {
		x.stats.Writes++
	}
	return found, nil
}

// setProperties applies property() steps to an existing element.
func (x *exec) setProperties(el any, sets []propSet) error {
	switch e := el.(type) {
	case *gvalue.Vertex:
		n, err := x.node(e)
		if err != nil {
			return err
		}
		if n == nil {
			return errf(Runtime, "The vertex %s does not exist", gvalue.Text(e.ID))
		}
		return x.setVertex(n, sets)
	case *gvalue.Edge:
		n := graph.EdgeOf(e)
		if n == nil {
			return errf(Runtime, "The edge %s is only a reference", gvalue.Text(e.ID))
		}
		return x.setEdge(n, sets)
	case *gvalue.VertexProperty:
		if e.Vertex == nil || graph.VertexOf(e.Vertex) == nil {
			return errf(Runtime, "The property %s is only a reference", e.Label)
		}
		return x.setMeta(e, sets)
	}
	return errf(Runtime, "The step property() can only be applied to an Element, not to a %s", typeName(el))
}

func (x *exec) setVertex(n *graph.Vertex, sets []propSet) error {
	fields := map[string]graph.Edit{}
	var order []string
	ids := &propertyIDs{x: x}
	for _, s := range sets {
		if x.g.Mode == graph.KeyProperty && s.key == x.g.Key {
			if v, err := toValue(s.val); err != nil || !graph.SameKey(v, n.PK) {
				return errf(Runtime, "The partition key property of a vertex can't be changed")
			}
			continue
		}
		name := graph.StoredKey(s.key)
		if fields[name] != nil {
			continue
		}
		order = append(order, name)
		fields[name] = func(dst []byte, cur value.Value) ([]byte, error) {
			vals := graph.Values(cur, ids.one)
			var err error
			for i := range sets {
				if graph.StoredKey(sets[i].key) != name {
					continue
				}
				if vals, err = sets[i].apply(vals, ids, len(sets)); err != nil {
					return nil, err
				}
			}
			return graph.AppendProperty(dst, name, vals), nil
		}
	}
	fresh, err := x.rewrite(n.PK, n.StoredID, fields, order)
	if err != nil || len(order) == 0 {
		return err
	}
	if fresh == nil {
		return errf(Runtime, "The vertex %s does not exist any more", gvalue.Text(n.ID))
	}
	n.Renew(fresh)
	return nil
}

// rewrite edits fields of a stored element, adds new ones in the given order, and returns the new document. It returns
// nil if the element doesn't exist any more, or if no field is edited.
func (x *exec) rewrite(pk, id value.Value, fields map[string]graph.Edit, order []string) (fresh []byte, err error) {
	if len(order) == 0 {
		return nil, nil
	}
	found, err := x.update(pk, id, func(old []byte) ([]byte, bool, error) {
		var err error
		fresh, err = graph.Rewrite(old, fields, order)
		return fresh, false, err
	})
	if err != nil || !found {
		return nil, err
	}
	return fresh, nil
}

func (x *exec) setEdge(n *graph.Edge, sets []propSet) error {
	fields := map[string]graph.Edit{}
	var order []string
	for _, s := range sets {
		if s.card == gvalue.ListCard || s.card == gvalue.SetCard || len(s.metas) > 0 {
			return errf(Runtime, "Edge properties have one value and no meta-properties")
		}
		v, err := toValue(s.val)
		if err != nil {
			return err
		}
		if x.g.Mode == graph.KeyProperty && s.key == x.g.Key {
			if !graph.SameKey(v, n.PK) {
				return errf(Runtime, "The partition key property of an edge is that of its source vertex and can't "+
					"be changed")
			}
			continue
		}
		name := graph.StoredKey(s.key)
		if fields[name] == nil {
			order = append(order, name)
		}
		fields[name] = func(dst []byte, _ value.Value) ([]byte, error) {
			if v.Kind() == value.Null {
				return dst, nil
			}
			return doc.AppendElement(dst, name, v), nil
		}
	}
	fresh, err := x.rewrite(n.PK, n.StoredID, fields, order)
	if err != nil || len(order) == 0 {
		return err
	}
	if fresh == nil {
		return errf(Runtime, "The edge %s does not exist any more", gvalue.Text(n.ID))
	}
	n.Renew(fresh)
	return nil
}

// editValue rewrites the stored value of a VertexProperty. edit returns false to remove it.
func (x *exec) editValue(p *gvalue.VertexProperty, edit func(s *graph.Value) (keep bool, err error)) error {
	n := graph.VertexOf(p.Vertex)
	if x.g.Mode == graph.KeyProperty && p.Label == x.g.Key {
		return errf(Runtime, "The partition key property of a vertex can't be changed")
	}
	name := graph.StoredKey(p.Label)
	var fresh []byte
	found, err := x.update(n.PK, n.StoredID, func(old []byte) ([]byte, bool, error) {
		var err error
		fresh, err = graph.Rewrite(old, map[string]graph.Edit{name: func(dst []byte, cur value.Value) ([]byte, error) {
			if !cur.IsDefined() {
				return dst, nil
			}
			var out []graph.Value
			ids := &propertyIDs{x: x}
			var fail error
			graph.EachValue(cur, func(i int, val, id, meta value.Value) bool {
				s := graph.Value{Val: val, ID: id, Meta: meta}
				keep := true
				if q := n.Property(p.Label, i, val, id, meta); equal(q.ID, p.ID) {
					keep, fail = edit(&s)
				}
				if !s.ID.IsDefined() {
					s.ID = ids.next(1)
				}
				if keep {
					out = append(out, s)
				}
				return fail == nil
			})
			if fail != nil {
				return nil, fail
			}
			return graph.AppendProperty(dst, name, out), nil
		}}, nil)
		return fresh, false, err
	})
	if err != nil || !found {
		return err
	}
	n.Renew(fresh)
	return nil
}

func (x *exec) setMeta(p *gvalue.VertexProperty, sets []propSet) error {
	var metas []gvalue.Property
	for _, s := range sets {
		metas = append(metas, gvalue.Property{Key: s.key, Value: s.val})
	}
	err := x.editValue(p, func(s *graph.Value) (bool, error) {
		m, err := metaOf(s.Meta, metas)
		s.Meta = m
		return true, err
	})
	if err != nil {
		return err
	}
	for _, m := range metas {
		p.Properties = withMeta(p.Properties, m)
	}
	return nil
}

func withMeta(ps []gvalue.Property, m gvalue.Property) []gvalue.Property {
	var out []gvalue.Property
	for _, p := range ps {
		if p.Key != m.Key {
			out = append(out, p)
		}
	}
	if m.Value == nil {
		return out
	}
	return append(out, m)
}
