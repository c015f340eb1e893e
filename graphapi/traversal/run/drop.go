package run

import (
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/graphapi/graph"
	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/traversal/compile"
)

// drop removes an element or property. A vertex is removed with its edges.
func (x *exec) drop(el any) error {
	remove := func([]byte) ([]byte, bool, error) { return nil, true, nil }
	switch e := el.(type) {
	case *gvalue.Vertex:
		n, err := x.node(e)
		if n == nil || err != nil {
			return err
		}
		for _, dir := range []gvalue.Direction{gvalue.OUT, gvalue.IN} {
			if err := x.dropEdges(n, dir); err != nil {
				return err
			}
		}
		_, err = x.update(n.PK, n.StoredID, remove)
		return err
	case *gvalue.Edge:
		n := graph.EdgeOf(e)
		if n == nil {
			return errf(Runtime, "The edge %s is only a reference", gvalue.Text(e.ID))
		}
		_, err := x.update(n.PK, n.StoredID, remove)
		return err
	case *gvalue.VertexProperty:
		if e.Vertex == nil || graph.VertexOf(e.Vertex) == nil {
			return nil
		}
		return x.editValue(e, func(*graph.Value) (bool, error) { return false, nil })
	case *gvalue.Property:
		switch owner := e.Element.(type) {
		case *gvalue.Edge:
			if n := graph.EdgeOf(owner); n != nil {
				return x.setEdge(n, []propSet{{key: e.Key}})
			}
		case *gvalue.VertexProperty:
			if owner.Vertex != nil && graph.VertexOf(owner.Vertex) != nil {
				return x.setMeta(owner, []propSet{{key: e.Key}})
			}
		}
		return nil
	}
	return errf(Runtime, "The incoming object is not removable: %s", typeName(el))
}

// dropEdges removes the edges of a vertex in one direction. It lists the edges first, because data must not change
// while it is read.
func (x *exec) dropEdges(n *graph.Vertex, dir gvalue.Direction) error {
	type key struct{ pk, id value.Value }
	var keys []key
	var held holder
	it, err := x.adjacent(n, dir, &walk{order: compile.Ignored}, func(d []byte) (any, error) {
		c := copyOf(d)
		pk, id := x.g.Place(c)
		keys = append(keys, key{pk, id})
		return nil, held.hold(x, 1, int64(len(c)))
	})
	if err != nil {
		return err
	}
	if _, _, err := it.next(x); err != nil {
		return err
	}
	defer held.release()
	for _, k := range keys {
		if _, err := x.update(k.pk, k.id, func([]byte) ([]byte, bool, error) { return nil, true, nil }); err != nil {
			return err
		}
	}
	return nil
}
