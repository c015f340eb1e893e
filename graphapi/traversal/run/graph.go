package run

import (
	"strconv"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/graphapi/graph"
	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/traversal/compile"
)

// get reads one document.
func (x *exec) get(pk, id value.Value) (graph.Doc, error) {
	d, err := x.g.Store.Get(x.ctx, pk, id)
	if err != nil {
		return graph.Doc{}, x.cause(err)
	}
	x.stats.Charge += d.Charge
	x.ops.count++
	if d.Bytes != nil {
		x.stats.Items++
		x.ops.items++
		x.ops.bytes += int64(len(d.Bytes))
	}
	return d, nil
}

// cause returns our own timeout instead of the error of a look-up that it cancelled.
func (x *exec) cause(err error) error {
	if x.ctx.Err() != nil {
		return x.timeout()
	}
	return err
}

// rowIter returns the elements of a look-up. make may return nil to skip a document.
type rowIter struct {
	x     *exec
	rows  graph.Rows
	edges *graph.Edges // skips the documents that aren't edges of a vertex; nil: skips none
	make  func(d []byte) (any, error)
	keeps bool   // what make returns refers to the document
	by    *probe // of the step that looks up, in a profiled traversal
}

// find opens a look-up.
func (x *exec) find(f graph.Find, mk func(d []byte) (any, error)) (*rowIter, error) {
	f.Explain = x.probe != nil
	rows, err := x.g.Store.Find(x.ctx, f)
	if err != nil {
		return nil, x.cause(err)
	}
	x.ops.count++
	it := &rowIter{x: x, rows: rows, make: mk, by: x.probe}
	x.open = append(x.open, it)
	return it, nil
}

// seen counts a document that a look-up has read.
func (x *exec) seen(d []byte) error {
	x.stats.Items++
	x.ops.items++
	x.ops.bytes += int64(len(d))
	return x.tick()
}

// document returns the next document. It is valid until the following call.
func (it *rowIter) document(x *exec) (d []byte, ok bool, err error) {
	if it.rows == nil {
		return nil, false, nil
	}
	for it.rows.Next() {
		if d = it.rows.Doc(); it.edges == nil || it.edges.Accept(d) {
			return d, true, x.seen(d)
		}
	}
	err = it.rows.Err()
	it.close()
	if err != nil {
		return nil, false, x.cause(err)
	}
	return nil, false, nil
}

func (it *rowIter) next(x *exec) (any, bool, error) {
	for {
		d, ok, err := it.document(x)
		if !ok || err != nil {
			return nil, false, err
		}
		if it.keeps {
			d = it.rows.Take()
		}
		v, err := it.make(d)
		if err != nil {
			return nil, false, err
		}
		if v != nil {
			return v, true, nil
		}
	}
}

func (it *rowIter) close() {
	if it.rows == nil {
		return
	}
	it.by.saw(it.rows)
	it.x.stats.Charge += it.rows.Close()
	it.rows = nil
	for i := len(it.x.open) - 1; i >= 0; i-- {
		if it.x.open[i] == it {
			it.x.open = append(it.x.open[:i], it.x.open[i+1:]...)
			return
		}
	}
}

// multiIter concatenates iters.
type multiIter struct {
	list []func() (iter, error)
	cur  iter
}

func (m *multiIter) next(x *exec) (any, bool, error) {
	for {
		if m.cur != nil {
			v, ok, err := m.cur.next(x)
			if ok || err != nil {
				return v, ok, err
			}
			m.cur = nil
		}
		if len(m.list) == 0 {
			return nil, false, nil
		}
		var err error
		if m.cur, err = m.list[0](); err != nil {
			return nil, false, err
		}
		m.list = m.list[1:]
	}
}

func (m *multiIter) close() {
	if m.cur != nil {
		m.cur.close()
		m.cur = nil
	}
	m.list = nil
}

// node returns the stored vertex of v. It reads it if v came from outside.
func (x *exec) node(v *gvalue.Vertex) (*graph.Vertex, error) {
	if n := graph.VertexOf(v); n != nil {
		return n, nil
	}
	vs, err := x.byIDs(true, []any{v.ID})
	if err != nil {
		return nil, err
	}
	defer vs.close()
	got, ok, err := vs.next(x)
	if err != nil || !ok {
		return nil, err
	}
	return graph.VertexOf(got.(*gvalue.Vertex)), nil
}

func copyOf(b []byte) []byte { return append(make([]byte, 0, len(b)), b...) }

// adjacent returns the edges of n in one direction (OUT or IN), each converted by mk.
func (x *exec) adjacent(n *graph.Vertex, dir gvalue.Direction, w *walk, mk func(d []byte) (any, error)) (
	*rowIter, error) {
	edges := x.g.EdgesOf(n, dir, w.labels, w.order == compile.Ignored)
	if w.far != nil {
		edges.Far(w.far)
	}
	it, err := x.find(edges.Find, mk)
	if err != nil {
		return nil, err
	}
	it.edges = edges
	return it, nil
}

// edgesOf returns the edges of v. With BOTH the outgoing edges are first.
func (x *exec) edgesOf(v *gvalue.Vertex, w *walk) (iter, error) {
	return x.around(v, w, func(n *graph.Vertex, dir gvalue.Direction) (iter, error) {
		it, err := x.adjacent(n, dir, w, func(d []byte) (any, error) { return x.edge(copyOf(d)) })
		switch {
		case err != nil:
			return nil, err
		case w.order != compile.Counts:
			return it, nil
		}
		return &inOrder{edges: it, make: it.make, own: x.edge}, nil
	})
}

// neighbours returns the vertices at the other ends of v's edges.
func (x *exec) neighbours(v *gvalue.Vertex, w *walk) (iter, error) {
	return x.around(v, w, func(n *graph.Vertex, dir gvalue.Direction) (iter, error) {
		it, err := x.adjacent(n, dir, w, nil)
		if err != nil {
			return nil, err
		}
		it.make = func(d []byte) (any, error) { return x.end(it.edges.End(d)) }
		if w.order != compile.Counts {
			return it, nil
		}
		return &inOrder{edges: it, make: func(d []byte) (any, error) { return x.end(x.g.End(d, dir)) }}, nil
	})
}

// end reads the vertex (pk, id) at an end of an edge. The result is nil, not a nil vertex, if it doesn't exist.
func (x *exec) end(pk, id value.Value) (any, error) {
	v, err := x.vertexAt(pk, id)
	if v == nil || err != nil {
		return nil, err
	}
	return v, nil
}

// around returns what one returns for the directions of a walk.
func (x *exec) around(v *gvalue.Vertex, w *walk,
	one func(n *graph.Vertex, dir gvalue.Direction) (iter, error)) (iter, error) {
	n, err := x.node(v)
	if n == nil || err != nil {
		return nil, err
	}
	if w.dir != gvalue.BOTH {
		return one(n, w.dir)
	}
	return &multiIter{list: []func() (iter, error){
		func() (iter, error) { return one(n, gvalue.OUT) },
		func() (iter, error) { return one(n, gvalue.IN) },
	}}, nil
}

// endOf reads the vertex to which an edge leads in direction dir: OUT leads to the sink.
func (x *exec) endOf(d []byte, dir gvalue.Direction) (*gvalue.Vertex, error) {
	return x.vertexAt(x.g.End(d, dir))
}

// byIDs returns the elements with the given ids in the order of the ids.
func (x *exec) byIDs(vertices bool, ids []any) (iter, error) {
	m := &multiIter{}
	for _, id := range ids {
		m.list = append(m.list, func() (iter, error) { return x.byID(vertices, id) })
	}
	return m, nil
}

// byID finds one element: by a point read if the partition is known, otherwise by an equality condition over all
// partitions.
func (x *exec) byID(vertices bool, id any) (iter, error) {
	switch e := id.(type) {
	case *gvalue.Vertex:
		if n := graph.VertexOf(e); n != nil {
			return x.read(vertices, n.PK, n.StoredID)
		}
		id = e.ID
	case *gvalue.Edge:
		if n := graph.EdgeOf(e); n != nil {
			return x.read(vertices, n.PK, n.StoredID)
		}
		id = e.ID
	case *gvalue.VertexProperty:
		id = e.ID
	case keyed:
		return x.read(vertices, e.pk, e.id)
	}
	s, ok := idText(id)
	if !ok {
		return nil, nil
	}
	cands := core.IdentityFromText(s)
	stored := cands
	if !vertices {
		stored = x.g.EdgeCandidates(cands)
	}
	if x.g.Mode == graph.KeyID || x.g.Mode == graph.KeySystem && vertices {
		for _, v := range stored {
			it, err := x.readAs(vertices, v, v, cands)
			if it != nil || err != nil {
				return it, err
			}
		}
		if x.g.Mode == graph.KeyID {
			return nil, nil
		} // a document written by another API may be in another partition
	}
	return x.findElements(graph.ByID(vertices, cands, stored), vertices)
}

// read returns the element (pk, id) if it exists.
func (x *exec) read(vertices bool, pk, id value.Value) (iter, error) {
	return x.readAs(vertices, pk, id, nil)
}

// readAs returns the element stored as (pk, id) if it has one of the ids; nil: any.
func (x *exec) readAs(vertices bool, pk, id value.Value, shown []value.Value) (iter, error) {
	d, err := x.get(pk, id)
	if err != nil || d.Bytes == nil || graph.IsEdge(d.Bytes) == vertices || shown != nil &&
		!graph.HasID(d.Bytes, shown) {
		return nil, err // a nil iter, not an empty one
	}
	var v any
	if vertices {
		v = x.g.NewVertex(d.Bytes)
	} else {
		v = x.g.NewEdge(d.Bytes)
	}
	return &sliceIter{vs: []any{v}}, nil
}

// findElements opens a look-up whose results are vertices or edges.
func (x *exec) findElements(f graph.Find, vertices bool) (iter, error) {
	it, err := x.elements(f, vertices)
	if err != nil {
		return nil, err // a nil iter
	}
	return it, nil
}

func (x *exec) elements(f graph.Find, vertices bool) (*rowIter, error) {
	it, err := x.find(f, x.edge)
	if err != nil {
		return nil, err
	}
	if it.keeps = true; vertices {
		it.make = x.vertex
	}
	return it, nil
}

// vertex and edge make elements of documents that never change.
func (x *exec) vertex(d []byte) (any, error) { return x.g.NewVertex(d), nil }
func (x *exec) edge(d []byte) (any, error)   { return x.g.NewEdge(d), nil }

// keyed is an id with a partition key: g.V(['pk', 'id']).
type keyed struct{ pk, id value.Value }

// idText returns the stored form of an id. ok is false if the value can't be an id.
func idText(id any) (string, bool) {
	switch n := id.(type) {
	case string:
		return n, true
	case int32:
		return strconv.FormatInt(int64(n), 10), true
	case int64:
		return strconv.FormatInt(n, 10), true
	case nil, bool, []any, *gvalue.Map, *gvalue.Set:
		return "", false
	}
	return gvalue.Text(id), true
}
