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

// EdgesOf returns the look-up for the edges of a vertex in one direction, OUT or IN, with any of labels; none: all.
// They come in the order of their creation, or with anyOrder in any order.
//
// On a plain graph the logical partition of a vertex has the vertex and the edges out of it. To read it whole takes one
// seek, where the index takes one and a look-up for each edge. But its documents are in the order of their ids.
func (g *Graph) EdgesOf(n *Vertex, dir gvalue.Direction, labels []string, anyOrder bool) Find {
	if dir == gvalue.OUT {
		f := Find{}
		if g.Mode != KeyID {
			f.PK = n.PK
		}
		if alone := g.Mode == KeySystem && SameKey(n.PK, n.StoredID); !alone || !anyOrder {
			f.Pred = access.Eq(access.NewPath(fieldVertexID), n.StoredID)
		}
		f.Match = func(d []byte) (bool, error) {
			o := value.ObjectOf(d)
			return o.Get(fieldIsEdge).Bool() && SameKey(o.Get(fieldVertexID), n.StoredID) && labelIn(d, labels), nil
		}
		return f
	}
	f := Find{Pred: access.Eq(access.NewPath(fieldSink), n.StoredID)}
	f.Match = func(d []byte) (bool, error) {
		return value.ObjectOf(d).Get(fieldIsEdge).Bool() && LeadsTo(d, n) && labelIn(d, labels), nil
	}
	return f
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
	id = o.Get(fieldVertexID)
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

// labelIn reports whether the label of a document is one of labels; none: any.
func labelIn(d []byte, labels []string) bool {
	if len(labels) == 0 {
		return true
	}
	l := value.ObjectOf(d).Get(fieldLabel)
	for _, want := range labels {
		if string(l.Bytes()) == want && l.Kind() == value.String {
			return true
		}
	}
	return false
}
