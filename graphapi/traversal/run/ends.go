package run

import (
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/graphapi/graph"
	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// Walks over a dense graph reach the same vertices again and again. So a request that has read many vertices at the
// ends of edges keeps those that it reads from then on, up to endBytes of them. Traversers then share a vertex. A
// request that may write keeps none: a change of one element must not be visible in another one.
//
// Example: g.V('1').repeat(out()).times(3).count() on a graph of 800 vertices with ten edges each follows thousands of
// edges in its last round, and reads no vertex twice.

const (
	// endsAfter is the number of vertices that a request reads before it keeps any. A walk over fewer edges rarely
	// reaches a vertex twice.
	endsAfter = 32
	// endBytes bounds the approximate size of the vertices that are kept.
	endBytes = 1 << 20
)

// ends are the vertices at the ends of edges that a request has read and keeps.
type ends struct {
	off   bool                      // the request has a step that writes, or several statements
	reads int                       // vertices that the request has asked for
	known map[string]*gvalue.Vertex // by key; nil: there is no such vertex
	key   []byte
	held  holder
}

// vertexAt returns the vertex (pk, id), nil if it doesn't exist.
func (x *exec) vertexAt(pk, id value.Value) (*gvalue.Vertex, error) {
	e := &x.ends
	if e.reads++; e.off || e.reads <= endsAfter {
		return x.readVertex(pk, id)
	}
	e.key = appendPlace(e.key[:0], pk, id)
	if v, ok := e.known[string(e.key)]; ok {
		return v, nil
	}
	v, err := x.readVertex(pk, id)
	if err == nil {
		e.keep(x, v)
	}
	return v, err
}

func (x *exec) readVertex(pk, id value.Value) (*gvalue.Vertex, error) {
	d, err := x.get(pk, id)
	if err != nil || d.Bytes == nil || graph.IsEdge(d.Bytes) {
		return nil, err
	}
	return x.g.NewVertex(d.Bytes), nil
}

// appendPlace appends a key that differs for different partition keys and ids.
func appendPlace(dst []byte, pk, id value.Value) []byte {
	dst = doc.AppendValue(append(dst, byte(pk.Kind())), pk) // BSON of one kind tells where it ends
	return doc.AppendValue(append(dst, byte(id.Kind())), id)
}

// keep keeps what the store has at e.key, if there is room for it.
func (e *ends) keep(x *exec, v *gvalue.Vertex) {
	size := entrySize + int64(len(e.key))
	if v != nil {
		size += sizeOf(v)
	}
	if e.held.bytes+size > endBytes || e.held.hold(x, 1, size) != nil {
		return
	}
	if e.known == nil {
		e.known = map[string]*gvalue.Vertex{}
	}
	e.known[string(e.key)] = v
}
