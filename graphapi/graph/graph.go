// Package graph maps vertices and edges to items of the core: their stored form, ids and partition keys, and the store.
// It doesn't depend on traversals.
package graph

// Graph is a graph of a Store. It is safe for concurrent use.
type Graph struct {
	Store Store
	Mode  KeyMode
	Key   string // name of the partition key property with KeyProperty
	// keyField is its stored name.
	keyField string
	paths    [][]string // of the partition key, with KeyOther
}

// New makes a Graph.
func New(s Store) *Graph {
	g := &Graph{Store: s}
	g.Mode, g.Key = s.Key()
	g.keyField = StoredKey(g.Key)
	if p, ok := s.(interface{ KeyPaths() [][]string }); ok {
		g.paths = p.KeyPaths()
	}
	return g
}
