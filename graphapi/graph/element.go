package graph

import (
	"strconv"
	"unsafe"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// The stored form is the service's. A vertex is
//
//	{_id, label, <partition key>: scalar, <property>: [{_value, id, _meta: {..}}, ..], ..}
//
// and an edge, which is stored in its out-vertex's logical partition, is
//
//	{_id, label, <partition key>: .., _isEdge: true, _sink, _sinkLabel, _sinkPartition,
//	 _vertexId, _vertexLabel, <property>: scalar, ..}
//
// Ids are stored as strings. If an element of a plain graph was given an integer id, _idValue has the original (for the
// ends of edges _sinkIdValue and _vertexIdValue). An edge that isn't stored with its own id has it in _idValue too (see
// edgeid.go). Documents of other APIs are vertices: a scalar field is a single property, an array of plain values is a
// property with several values, and without a label the label is "vertex".
//
// Example: g.addV('person').property(id, 1).property('name', 'Ann') in a plain graph is stored as
//
//	{_id: "1", _idValue: 1, label: "person", _partitionKey: "1", name: [{_value: "Ann", id: "<GUID>"}]}
//
// The names of its fields:
const (
	fieldID            = "_id"
	fieldLabel         = "label"
	fieldKey           = "_partitionKey"
	fieldIsEdge        = "_isEdge"
	fieldSink          = "_sink"
	fieldSinkLabel     = "_sinkLabel"
	fieldSinkPartition = "_sinkPartition"
	fieldVertexID      = "_vertexId"
	fieldVertexLabel   = "_vertexLabel"
	fieldIDValue       = "_idValue"
	fieldSinkIDValue   = "_sinkIdValue"
	fieldVertexIDValue = "_vertexIdValue"
	fieldValue         = "_value"
	fieldMeta          = "_meta"
	fieldPropertyID    = "id"

	// DefaultLabel is the label of a vertex without a stored one.
	DefaultLabel = "vertex"
)

// IsReserved reports whether a stored field belongs to the graph and isn't a property.
//
//go:noinline // called from many places, see decision 41
func IsReserved(name string) bool {
	switch name {
	case fieldID, "id", fieldLabel, fieldKey, fieldIsEdge, fieldSink, fieldSinkLabel, fieldSinkPartition, fieldVertexID,
		fieldVertexLabel, fieldIDValue, fieldSinkIDValue, fieldVertexIDValue, "_rid", "_self",
		"_etag", "_ts", "_attachments", "_lsn":
		return true
	}
	return false
}

// StoredKey returns the stored name of a property.
func StoredKey(key string) string {
	if s, ok := doc.NoSQL.Stored(key); ok {
		return s
	}
	return key
}

// Vertex is a stored vertex. The field Ref of its gvalue.Vertex points back to it.
type Vertex struct {
	gvalue.Vertex
	Doc      []byte
	PK       value.Value // the partition key
	StoredID value.Value
	g        *Graph
}

// Edge is a stored edge.
type Edge struct {
	gvalue.Edge
	Doc      []byte
	PK       value.Value // the partition key
	StoredID value.Value
	g        *Graph
}

// VertexOf returns the stored vertex of v, nil if v came from outside.
func VertexOf(v *gvalue.Vertex) *Vertex {
	n, _ := v.Ref.(*Vertex)
	return n
}

// EdgeOf returns the stored edge of e, nil if e came from outside.
func EdgeOf(e *gvalue.Edge) *Edge {
	n, _ := e.Ref.(*Edge)
	return n
}

// Partition returns the partition key if vertices with the same id may be in several partitions, otherwise Undefined.
func (n *Vertex) Partition() value.Value { return n.g.partition(n.PK) }

// Partition returns the partition key if edges with the same id may be in several partitions, otherwise Undefined.
func (n *Edge) Partition() value.Value { return n.g.partition(n.PK) }

func (g *Graph) partition(pk value.Value) value.Value {
	if g.Mode != KeyProperty {
		return value.Value{}
	}
	return pk
}

// IsEdge reports whether a stored document is an edge.
func IsEdge(d []byte) bool { return value.ObjectOf(d).Get(fieldIsEdge).Bool() }

// KeyOf returns the partition key of a document, Undefined if it has none.
func (g *Graph) KeyOf(d []byte) value.Value {
	switch g.Mode {
	case KeyProperty:
		return value.ObjectOf(d).Get(g.keyField)
	case KeyID:
		return value.ObjectOf(d).Get(fieldID)
	case KeyOther:
		at, b := bson.Begin(nil)
		for i, segs := range g.paths {
			v := value.ObjectOf(d)
			for _, s := range segs {
				v = v.Get(s)
			}
			b = value.AppendElement(b, strconv.Itoa(i), v)
		}
		return value.ArrayOf(bson.End(b, at))
	}
	return value.ObjectOf(d).Get(fieldKey)
}

// Place returns the partition key and id under which a document is stored.
func (g *Graph) Place(d []byte) (pk, id value.Value) {
	return g.KeyOf(d), value.ObjectOf(d).Get(fieldID)
}

// NewVertex returns the vertex of a document. It keeps a reference to the bytes.
func (g *Graph) NewVertex(d []byte) *gvalue.Vertex {
	n := &Vertex{}
	g.FillVertex(n, d)
	return &n.Vertex
}

// FillVertex sets n to the vertex of a document.
func (g *Graph) FillVertex(n *Vertex, d []byte) {
	*n = Vertex{g: g, Doc: d, PK: g.KeyOf(d)}
	n.Label = DefaultLabel
	var idv value.Value
	for it := value.ObjectOf(d).Iter(); it.Next(); {
		switch string(it.Key()) {
		case fieldID:
			n.StoredID = it.Value()
		case fieldIDValue:
			idv = it.Value()
		case fieldLabel:
			if l := it.Value(); l.Kind() == value.String {
				n.Label = view(l.Bytes())
			}
		}
	}
	n.ID = idOf(n.StoredID, idv)
	n.Loader, n.Ref = n, n
}

// NewEdge returns the edge of a document. It keeps a reference to the bytes.
func (g *Graph) NewEdge(d []byte) *gvalue.Edge {
	n := &Edge{}
	g.FillEdge(n, d)
	return &n.Edge
}

// FillEdge sets n to the edge of a document.
func (g *Graph) FillEdge(n *Edge, d []byte) {
	*n = Edge{g: g, Doc: d, PK: g.KeyOf(d)}
	var idv, in, inv, out, outv value.Value
	for it := value.ObjectOf(d).Iter(); it.Next(); {
		switch string(it.Key()) {
		case fieldID:
			n.StoredID = it.Value()
		case fieldIDValue:
			idv = it.Value()
		case fieldLabel:
			n.Label = label(it.Value())
		case fieldSink:
			in = it.Value()
		case fieldSinkIDValue:
			inv = it.Value()
		case fieldSinkLabel:
			n.InVLabel = label(it.Value())
		case fieldVertexID:
			out = it.Value()
		case fieldVertexIDValue:
			outv = it.Value()
		case fieldVertexLabel:
			n.OutVLabel = label(it.Value())
		}
	}
	n.ID, n.InV, n.OutV = idOf(n.StoredID, idv), idOf(in, inv), idOf(out, outv)
	n.Loader, n.Ref = n, n
}

// idOf returns an id in its original form if that was kept, otherwise its text.
func idOf(id, kept value.Value) any {
	switch kept.Kind() {
	case value.Int32:
		return int32(kept.Int())
	case value.Int64:
		return kept.Int()
	case value.String: // of an edge that isn't stored with its own id
		id = kept
	}
	if id.Kind() == value.String {
		return view(id.Bytes())
	}
	if !id.IsDefined() {
		return ""
	}
	return string(doc.AppendExtJSON(nil, id, false))
}

// idKey returns the id of an element as a stored value.
func idKey(d []byte) value.Value {
	o := value.ObjectOf(d)
	id, kept := o.Get(fieldID), o.Get(fieldIDValue)
	switch kept.Kind() {
	case value.Int32, value.Int64, value.String:
		return kept
	}
	if id.Kind() == value.String {
		return id
	}
	return value.StringOf(idOf(id, kept).(string))
}

// LoadVertexProperties implements gvalue.VertexLoader.
func (n *Vertex) LoadVertexProperties() []gvalue.VertexProperty {
	out := make([]gvalue.VertexProperty, 0, 8)
	for it := value.ObjectOf(n.Doc).Iter(); it.Next(); {
		key, ok := shownKey(it.Key())
		if !ok {
			continue
		}
		EachValue(it.Value(), func(i int, val, id, meta value.Value) bool {
			out = append(out, n.Property(key, i, val, id, meta))
			return true
		})
	}
	return out
}

// VisitVertexProperties implements gvalue.VertexLoader. It writes only what differs from the property before: each
// pointer that is written costs several times more while the garbage collector runs.
func (n *Vertex) VisitVertexProperties(f func(p *gvalue.LoadedProperty)) {
	p := &gvalue.LoadedProperty{}
	for it := value.ObjectOf(n.Doc).Iter(); it.Next(); {
		key, ok := shownKey(it.Key())
		if !ok {
			continue
		}
		p.Key = key
		EachValue(it.Value(), func(i int, val, id, meta value.Value) bool {
			setScalar(&p.Value, val)
			if meta.IsDefined() || p.Properties != nil {
				p.Properties = metaProperties(meta)
			}
			if id.IsDefined() {
				setScalar(&p.ID, id)
			} else {
				p.ID = gvalue.TextScalar(n.derivedID(key, i))
			}
			f(p)
			return true
		})
	}
}

// Property returns the VertexProperty of a stored value.
func (n *Vertex) Property(key string, i int, val, id, meta value.Value) gvalue.VertexProperty {
	p := gvalue.VertexProperty{Label: key, Value: FromValue(val), Vertex: &n.Vertex, Properties: metaProperties(meta)}
	if id.IsDefined() {
		p.ID = FromValue(id)
	} else {
		p.ID = n.derivedID(key, i)
	}
	return p
}

// derivedID returns the id of the value at a position of a property. Values in documents of other APIs have none; it is
// derived from the vertex's id, the key and the position.
func (n *Vertex) derivedID(key string, i int) string {
	s := gvalue.Text(n.ID) + "|" + key
	if i > 0 {
		s += "|" + strconv.Itoa(i)
	}
	return s
}

// metaProperties returns the meta-properties in a stored _meta, which may be Undefined.
func metaProperties(meta value.Value) (ps []gvalue.Property) {
	for it := meta.Iter(); it.Next(); {
		ps = append(ps, gvalue.Property{Key: string(it.Key()), Value: FromValue(it.Value())})
	}
	return ps
}

// LoadEdgeProperties implements gvalue.EdgeLoader.
func (n *Edge) LoadEdgeProperties() []gvalue.Property {
	var out []gvalue.Property
	for it := value.ObjectOf(n.Doc).Iter(); it.Next(); {
		if key, ok := shownKey(it.Key()); ok {
			out = append(out, gvalue.Property{Key: key, Value: FromValue(it.Value()), Element: &n.Edge})
		}
	}
	return out
}

// shownKey returns the property name of a stored field. ok is false if the field isn't a property.
func shownKey(stored []byte) (key string, ok bool) {
	if len(stored) > 0 && stored[0] != '_' && stored[0] != 'i' && stored[0] != 'l' && stored[0] != 1 {
		return view(stored), true
	}
	if IsReserved(string(stored)) {
		return "", false
	}
	name, ok := doc.NoSQL.Shown(stored)
	return string(name), ok
}

// EachValue calls f with the values of a vertex's stored property: those of [{_value, id}, ..], of an array of plain
// values, or the single value of the field.
func EachValue(field value.Value, f func(i int, val, id, meta value.Value) bool) {
	if field.Kind() != value.Array {
		f(0, field, value.Value{}, value.Value{})
		return
	}
	i := 0
	for it := field.Iter(); it.Next(); i++ {
		e := it.Value()
		var v, id, meta value.Value
		for parts := e.Iter(); parts.Next() && e.Kind() == value.Object; {
			switch string(parts.Key()) {
			case fieldValue:
				v = parts.Value()
			case fieldPropertyID:
				id = parts.Value()
			case fieldMeta:
				meta = parts.Value()
			}
		}
		if !v.IsDefined() {
			v, id, meta = e, value.Value{}, value.Value{}
		}
		if !f(i, v, id, meta) {
			return
		}
	}
}

// firstValue returns the first value of an element's property, Undefined if it has none.
func firstValue(d []byte, key string) (first value.Value) {
	field := value.ObjectOf(d).Get(StoredKey(key))
	if !field.IsDefined() || IsEdge(d) {
		return field
	}
	EachValue(field, func(_ int, val, _, _ value.Value) bool {
		first = val
		return false
	})
	return first
}

// view returns a string that shares bytes of a document. This is safe because an element's document never changes (a
// write replaces it), and the garbage collector keeps it as long as the string.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// label returns a stored label, "" if it isn't text.
func label(v value.Value) string {
	if v.Kind() != value.String {
		return ""
	}
	return view(v.Bytes())
}

// LabelOf returns the label of a stored vertex or edge. It may point into the document.
func LabelOf(d []byte, vertex bool) []byte {
	switch l := value.ObjectOf(d).Get(fieldLabel); {
	case l.Kind() == value.String:
		return l.Bytes()
	case vertex:
		return []byte(DefaultLabel)
	}
	return nil
}

// ValidKey returns an error for names that BSON can't store.
func ValidKey(k string) bool {
	for i := range len(k) {
		if k[i] == 0 {
			return false
		}
	}
	return true
}

// Field returns the stored field of a property, Undefined if there is none.
func (n *Vertex) Field(key string) value.Value {
	s := StoredKey(key)
	if IsReserved(s) {
		return value.Value{}
	}
	return value.ObjectOf(n.Doc).Get(s)
}

// Renew sets the vertex's document, so that everything in the request that refers to the vertex sees the change.
func (n *Vertex) Renew(d []byte) {
	n.Doc, n.Properties, n.Loader = d, nil, n
	n.PK, n.StoredID = n.g.KeyOf(d), value.ObjectOf(d).Get(fieldID)
}

// Renew sets the edge's document.
func (n *Edge) Renew(d []byte) {
	n.Doc, n.Properties, n.Loader = d, nil, n
	n.PK, n.StoredID = n.g.KeyOf(d), value.ObjectOf(d).Get(fieldID)
}

// StartsAt reports whether the edge leaves the vertex.
func (n *Edge) StartsAt(v *Vertex) bool {
	if !SameKey(value.ObjectOf(n.Doc).Get(fieldVertexID), v.StoredID) {
		return false
	}
	return n.g.Mode != KeyProperty || SameKey(n.PK, v.PK)
}
