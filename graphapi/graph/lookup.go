package graph

import (
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// EdgesOnly returns the index condition for edges.
func EdgesOnly() *access.Pred { return access.Eq(access.NewPath(fieldIsEdge), value.BoolOf(true)) }

// LabelPath is the path of labels.
var LabelPath = access.NewPath(fieldLabel)

// VertexPaths returns the paths of the values of a vertex's property: in [{_value: ..}, ..], or as the field itself,
// written by other APIs. It returns none for a key that no property can have.
func VertexPaths(key string) []access.Path {
	name := StoredKey(key)
	if IsReserved(name) {
		return nil
	}
	return []access.Path{access.NewPath(name, fieldValue).Element(), access.NewPath(name).Element()}
}

// EdgePaths returns the paths of the value of an edge's property, none for a key that no property can have.
func EdgePaths(key string) []access.Path {
	name := StoredKey(key)
	if IsReserved(name) {
		return nil
	}
	return []access.Path{access.NewPath(name)}
}

// Labelled returns the index condition for elements with a label. A vertex with DefaultLabel may have no stored label.
func Labelled(label string) *access.Pred {
	return access.Eq(LabelPath, value.StringOf(label))
}

// Edges is the look-up for the edges of a vertex in one direction. It selects a superset: Accept tells which documents
// are such edges.
type Edges struct {
	Find
	g      *Graph
	n      *Vertex
	dir    gvalue.Direction // OUT or IN
	labels []string         // none: any
	ends   [len(endFields)]value.Value
}

// endFields are the fields of an edge that tell what it connects, in the order in which new edges have them, and its
// label.
var endFields = [...]string{fieldLabel, fieldIsEdge, fieldVertexID, fieldSink, fieldSinkPartition}

// EdgesOf returns the look-up for the edges of a vertex in one direction, OUT or IN, with any of labels; none: all.
// They come in the order of their creation, or with anyOrder in any order.
//
// On a plain graph the logical partition of a vertex has the vertex and the edges out of it. To read it whole takes one
// seek, where the index takes one and a look-up for each edge. But its documents are in the order of their ids.
func (g *Graph) EdgesOf(n *Vertex, dir gvalue.Direction, labels []string, anyOrder bool) *Edges {
	e := &Edges{g: g, n: n, dir: dir, labels: labels}
	if dir == gvalue.IN {
		e.Pred = access.Eq(access.NewPath(fieldSink), n.StoredID)
		return e
	}
	if g.Mode != KeyID {
		e.PK = n.PK
	}
	if alone := g.Mode == KeySystem && SameKey(n.PK, n.StoredID); !alone || !anyOrder {
		e.Pred = access.Eq(access.NewPath(fieldVertexID), n.StoredID)
	}
	return e
}

// Far restricts the look-up to edges whose other end is stored with one of ids, in some partition.
func (e *Edges) Far(ids []value.Value) {
	field := fieldVertexID
	if e.dir == gvalue.OUT {
		field = fieldSink
	}
	e.Pred = access.And(e.Pred, access.In(access.NewPath(field), ids...))
}

// Accept reports whether a document is one of the edges. Until the next call, End tells where its edge leads.
func (e *Edges) Accept(d []byte) bool {
	value.LookupEach(d, endFields[:], e.ends[:])
	label, isEdge, from, to, toKey := e.ends[0], e.ends[1], e.ends[2], e.ends[3], e.ends[4]
	switch {
	case !isEdge.Bool() || !labelIn(label, e.labels):
		return false
	case e.dir == gvalue.OUT:
		return SameKey(from, e.n.StoredID)
	}
	return SameKey(to, e.n.StoredID) && SameKey(toKey, e.n.PK)
}

// End returns the place of the vertex at the other end of the edge in d, for which Accept was called last.
func (e *Edges) End(d []byte) (pk, id value.Value) {
	if e.dir == gvalue.OUT {
		return e.ends[4], e.ends[3]
	}
	return e.g.start(d, e.ends[2])
}

// LeadsTo reports whether the edge of a document ends at a vertex.
func LeadsTo(d []byte, n *Vertex) bool {
	o := value.ObjectOf(d)
	return SameKey(o.Get(fieldSink), n.StoredID) && SameKey(o.Get(fieldSinkPartition), n.PK)
}

// End returns the place of the vertex to which the edge of a document leads in direction dir: OUT leads to the sink.
func (g *Graph) End(d []byte, dir gvalue.Direction) (pk, id value.Value) {
	o := value.ObjectOf(d)
	if dir == gvalue.OUT {
		return o.Get(fieldSinkPartition), o.Get(fieldSink)
	}
	return g.start(d, o.Get(fieldVertexID))
}

// start returns the place of the vertex at which the edge in d starts. id is its stored id.
func (g *Graph) start(d []byte, id value.Value) (pk, _ value.Value) {
	if g.Mode == KeyID {
		return id, id
	}
	return g.KeyOf(d), id
}

// ByID returns the look-up, over all partitions, for the vertices or edges that have one of ids and are stored with one
// of stored.
func ByID(vertices bool, ids, stored []value.Value) Find {
	return Find{Pred: access.In(access.ID, stored...), Match: func(d []byte) (bool, error) {
		return IsEdge(d) != vertices && HasID(d, ids), nil
	}}
}

// labelIn reports whether a label is one of labels; none: any.
func labelIn(l value.Value, labels []string) bool {
	if len(labels) == 0 {
		return true
	}
	for _, want := range labels {
		if string(l.Bytes()) == want && l.Kind() == value.String {
			return true
		}
	}
	return false
}
