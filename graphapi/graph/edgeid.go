package graph

import (
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/core/value"
)

// The ids of edges. On a graph without a partition key of its own an edge's id is the only one among all edges, and a
// vertex may have the same one (decision 0016). Where the store would take the two for one item, the edge is stored
// under another id and keeps its own in _idValue.

// edgeMark ends the stored id of an edge that can't be stored under its own.
const edgeMark = "|edge"

// FreeEdgeIDs reports whether edges have ids apart from vertices. With a partition key property the service's rule
// holds: an id is taken once in a logical partition, be it by a vertex or an edge.
func (g *Graph) FreeEdgeIDs() bool { return g.Mode == KeySystem || g.Mode == KeyID }

// StoredEdgeID is the id under which an edge is stored whose own id was given, and that leaves the vertex with the
// stored id out.
func (g *Graph) StoredEdgeID(id string, out value.Value) string {
	switch {
	case g.Mode == KeyID, g.Mode == KeySystem && (id == out.Str() || strings.HasSuffix(id, edgeMark)):
		return id + edgeMark
	}
	return id
}

// EdgeCandidates are the stored ids that an edge with one of these ids can have.
func (g *Graph) EdgeCandidates(ids []value.Value) []value.Value {
	if !g.FreeEdgeIDs() {
		return ids
	}
	return append(ids[:len(ids):len(ids)], value.StringOf(ids[0].Str()+edgeMark))
}

// HasID reports whether the element of a document shows one of ids, the first of which is text.
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
