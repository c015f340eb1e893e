package gvalue

// Vertex is a vertex of a request or a result.
type Vertex struct {
	ID         any
	Label      string
	Properties []VertexProperty // in the order of the stored document; all values of one key are neighbours

	// Loader decodes the properties at the first call of Props; nil if Properties has them already. A traversal that
	// doesn't use the properties saves the decoding.
	Loader VertexLoader

	// Ref is the engine's reference to the stored element. Serializers ignore it.
	Ref any
}

// VertexLoader decodes the properties of a vertex on demand.
type VertexLoader interface {
	LoadVertexProperties() []VertexProperty
	// VisitVertexProperties calls f with the same properties, one by one, without making a list of them. A property is
	// valid during the call.
	VisitVertexProperties(f func(p *LoadedProperty))
}

// LoadedProperty is one value of one property key of a vertex, for a reader that doesn't keep it.
type LoadedProperty struct {
	Key        string
	ID, Value  Scalar
	Properties []Property // meta-properties
}

// Scalar is a value whose text needs no memory of its own: a string in an any is allocated. Nearly all ids and most
// values of properties are text.
type Scalar struct {
	IsText bool
	Text   string
	Other  any // the value if it isn't text
}

// TextScalar returns the Scalar of a text.
func TextScalar(s string) Scalar { return Scalar{IsText: true, Text: s} }

// Props returns the properties, and decodes them at the first call. Not safe for concurrent use.
func (v *Vertex) Props() []VertexProperty {
	if v.Loader != nil {
		v.Properties, v.Loader = v.Loader.LoadVertexProperties(), nil
	}
	return v.Properties
}

// Visit calls f with the properties in order. Unlike Props it keeps nothing: it is for those that read them once.
func (v *Vertex) Visit(f func(p *LoadedProperty)) {
	if v.Loader != nil {
		v.Loader.VisitVertexProperties(f)
		return
	}
	for i := range v.Properties {
		p := &v.Properties[i]
		f(&LoadedProperty{p.Label, Scalar{Other: p.ID}, Scalar{Other: p.Value}, p.Properties})
	}
}

// VertexProperty is one value of one property key of a vertex.
type VertexProperty struct {
	ID         any
	Label      string // the property's key
	Value      any
	Properties []Property // meta-properties
	Vertex     *Vertex    // the owner, nil if unknown
}

// Edge is an edge with its two ends by reference.
type Edge struct {
	ID         any
	Label      string
	InV        any // id of the vertex that the edge points to
	InVLabel   string
	OutV       any // id of the vertex that the edge leaves
	OutVLabel  string
	Properties []Property

	Loader EdgeLoader // as Vertex.Loader
	Ref    any        // as Vertex.Ref
}

// EdgeLoader decodes the properties of an edge on demand.
type EdgeLoader interface {
	LoadEdgeProperties() []Property
}

// Props returns the properties, and decodes them at the first call. Not safe for concurrent use.
func (e *Edge) Props() []Property {
	if e.Loader != nil {
		e.Properties, e.Loader = e.Loader.LoadEdgeProperties(), nil
	}
	return e.Properties
}

// Property is a property of an edge or a meta-property of a vertex property.
type Property struct {
	Key     string
	Value   any
	Element any // the owner (*Edge or *VertexProperty), nil if unknown
}

// Path is the history of one traverser. Labels[i] are the step labels of Objects[i].
type Path struct {
	Labels  [][]string
	Objects []any
}

// Graph is a whole (sub)graph as a value.
type Graph struct {
	Vertices []*Vertex
	Edges    []*Edge
}

// Traverser is a result of a bytecode request: Value occurs Bulk times.
type Traverser struct {
	Bulk  int64
	Value any
}

// Tree is a tree of values. Branches are in the order of insertion.
type Tree struct {
	Entries []TreeEntry
}

// TreeEntry is one branch of a Tree. Child is never nil.
type TreeEntry struct {
	Key   any
	Child *Tree
}

// Metrics are the figures of one step of a profile. Duration is in nanoseconds.
type Metrics struct {
	ID, Name    string
	Duration    int64
	Counts      *Map // String -> int64
	Annotations *Map // String -> any
	Nested      []*Metrics
}

// TraversalMetrics are the figures of a whole profile. Duration is in nanoseconds.
type TraversalMetrics struct {
	Duration int64
	Metrics  []*Metrics
}
