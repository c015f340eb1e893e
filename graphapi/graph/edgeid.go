package graph

import (
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/core/value"
)

// The ids of edges. In a graph without a partition key property an edge's id is unique among all edges, but a vertex
// may have the same id (decision 0016). If the store would take the edge and a vertex for the same item, the edge is
// stored with another id and keeps its own in _idValue.
//
// Example: in vertex a's logical partition, the edge with id "a" is stored with the id "a|edge" and _idValue "a".

// edgeMark is the suffix of the stored id of an edge that can't be stored with its own id.
const edgeMark = "|edge"

// FreeEdgeIDs reports whether edge ids are independent of vertex ids. With a partition key property the service's rule
// applies: an id is used once in a logical partition, by a vertex or an edge.
func (g *Graph) FreeEdgeIDs() bool { return g.Mode == KeySystem || g.Mode == KeyID }

// StoredEdgeID returns the stored id of an edge with the given id, whose out-vertex has the stored id out.
func (g *Graph) StoredEdgeID(id string, out value.Value) string {
	switch {
	case g.Mode == KeyID, g.Mode == KeySystem && (id == out.Str() || strings.HasSuffix(id, edgeMark)):
		return id + edgeMark
	}
	return id
}

// EdgeCandidates returns all stored ids that an edge with one of these ids may have.
func (g *Graph) EdgeCandidates(ids []value.Value) []value.Value {
	if !g.FreeEdgeIDs() {
		return ids
	}
	return append(ids[:len(ids):len(ids)], value.StringOf(ids[0].Str()+edgeMark))
}

// HasID reports whether the element in a document has one of ids, the first of which is text.
func HasID(d []byte, ids []value.Value) bool {
	o := value.ObjectOf(d)
	switch kept := o.Get(fieldIDValue); kept.Kind() {
	case value.String:
		return string(kept.Bytes()) == ids[0].Str()
	case value.Int32, value.Int64:
		return strconv.FormatInt(kept.Int(), 10) == ids[0].Str()
	}
	have := o.Get(fieldID)
	for _, id := range ids {
		if SameKey(have, id) {
			return true
		}
	}
	return false
}
