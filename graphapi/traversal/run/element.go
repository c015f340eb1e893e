package run

import (
	"encoding/binary"
	"math/big"
	"strconv"
	"time"
	"unsafe"

	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// The stored form is the service's. A vertex is
//
//	{_id, label, <partition key>: scalar, <property>: [{_value, id, _meta: {..}}, ..], ..}
//
// and an edge, which lives in its out-vertex's logical partition,
//
//	{_id, label, <partition key>: .., <property>: scalar, .., _sink, _sinkLabel, _sinkPartition, _vertexId, _vertexLabel, _isEdge: true}
//
// Ids are stored as strings. Where a plain graph was given an integer id, _idValue (and _sinkIdValue, _vertexIdValue
// on edges) keep it as it came; an edge that is stored under another id than its own keeps that there, too (see
// edgeid.go). Documents of other APIs are vertices: a scalar field is a single property, an array of plain values a
// property with several values, and without a label it is a "vertex".
const (
	fID            = "_id"
	fLabel         = "label"
	fKey           = "_partitionKey"
	fIsEdge        = "_isEdge"
	fSink          = "_sink"
	fSinkLabel     = "_sinkLabel"
	fSinkPartition = "_sinkPartition"
	fVertexID      = "_vertexId"
	fVertexLabel   = "_vertexLabel"
	fIDValue       = "_idValue"
	fSinkIDValue   = "_sinkIdValue"
	fVertexIDValue = "_vertexIdValue"
	fValue         = "_value"
	fMeta          = "_meta"
	fPropID        = "id"

	defaultLabel = "vertex"
)

// isReserved reports whether a stored field is the graph's own and no property.
func isReserved(name string) bool {
	switch name {
	case fID, "id", fLabel, fKey, fIsEdge, fSink, fSinkLabel, fSinkPartition, fVertexID, fVertexLabel, fIDValue, fSinkIDValue,
		fVertexIDValue, "_rid", "_self", "_etag", "_ts", "_attachments", "_lsn":
		return true
	}
	return false
}

// storedKey is the stored name of a property.
func storedKey(key string) string {
	if s, ok := doc.NoSQL.Stored(key); ok {
		return s
	}
	return key
}

// vnode is a stored vertex; its gvalue.Vertex points back to it by Ref.
type vnode struct {
	gvalue.Vertex
	g   *Graph
	doc []byte
	pk  value.Value
	id  value.Value // the stored id
}

// enode is a stored edge.
type enode struct {
	gvalue.Edge
	g   *Graph
	doc []byte
	pk  value.Value
	id  value.Value
}

func nodeOf(v *gvalue.Vertex) *vnode {
	n, _ := v.Ref.(*vnode)
	return n
}

func edgeNodeOf(e *gvalue.Edge) *enode {
	n, _ := e.Ref.(*enode)
	return n
}

// isEdgeDoc reports whether a stored document is an edge.
func isEdgeDoc(d []byte) bool { return value.ObjectOf(d).Get(fIsEdge).Bool() }

// keyOf is the partition key of a document; Undefined where it has none.
func (g *Graph) keyOf(d []byte) value.Value {
	switch g.mode {
	case KeyProperty:
		return value.ObjectOf(d).Get(g.pkSto)
	case KeyID:
		return value.ObjectOf(d).Get(fID)
	case KeyOther:
		b, at := openDoc(nil)
		for i, segs := range g.paths {
			v := value.ObjectOf(d)
			for _, s := range segs {
				v = v.Get(s)
			}
			b = doc.AppendElement(b, strconv.Itoa(i), v)
		}
		return value.ArrayOf(closeDoc(b, at))
	}
	return value.ObjectOf(d).Get(fKey)
}

// newVertex makes the vertex of a document; the bytes are kept.
func (g *Graph) newVertex(d []byte) *gvalue.Vertex {
	n := &vnode{}
	g.fillVertex(n, d)
	return &n.Vertex
}

// fillVertex makes n the vertex of a document.
func (g *Graph) fillVertex(n *vnode, d []byte) {
	*n = vnode{g: g, doc: d, pk: g.keyOf(d)}
	n.Label = defaultLabel
	var idv value.Value
	for it := value.ObjectOf(d).Iter(); it.Next(); {
		switch string(it.Key()) {
		case fID:
			n.id = it.Value()
		case fIDValue:
			idv = it.Value()
		case fLabel:
			if l := it.Value(); l.Kind() == value.String {
				n.Label = view(l.Bytes())
			}
		}
	}
	n.ID = idOf(n.id, idv)
	n.Loader, n.Ref = n, n
}

// newEdge makes the edge of a document; the bytes are kept.
func (g *Graph) newEdge(d []byte) *gvalue.Edge {
	n := &enode{}
	g.fillEdge(n, d)
	return &n.Edge
}

// fillEdge makes n the edge of a document.
func (g *Graph) fillEdge(n *enode, d []byte) {
	*n = enode{g: g, doc: d, pk: g.keyOf(d)}
	var idv, in, inv, out, outv value.Value
	for it := value.ObjectOf(d).Iter(); it.Next(); {
		switch string(it.Key()) {
		case fID:
			n.id = it.Value()
		case fIDValue:
			idv = it.Value()
		case fLabel:
			n.Label = label(it.Value())
		case fSink:
			in = it.Value()
		case fSinkIDValue:
			inv = it.Value()
		case fSinkLabel:
			n.InVLabel = label(it.Value())
		case fVertexID:
			out = it.Value()
		case fVertexIDValue:
			outv = it.Value()
		case fVertexLabel:
			n.OutVLabel = label(it.Value())
		}
	}
	n.ID, n.InV, n.OutV = idOf(n.id, idv), idOf(in, inv), idOf(out, outv)
	n.Loader, n.Ref = n, n
}

// idOf shows an id: as it came where that was kept, else its text.
func idOf(id, kept value.Value) any {
	switch kept.Kind() {
	case value.Int32:
		return int32(kept.Int())
	case value.Int64:
		return kept.Int()
	case value.String: // of an edge that is stored under another id
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

// LoadVertexProperties implements gvalue.VertexLoader.
func (n *vnode) LoadVertexProperties() []gvalue.VertexProperty {
	out := make([]gvalue.VertexProperty, 0, 8)
	for it := value.ObjectOf(n.doc).Iter(); it.Next(); {
		key, ok := shownKey(it.Key())
		if !ok {
			continue
		}
		eachValue(it.Value(), func(i int, val, id, meta value.Value) bool {
			out = append(out, n.property(key, i, val, id, meta))
			return true
		})
	}
	return out
}

// property makes a VertexProperty of a stored value. Values of documents that other APIs wrote have no id of their own: it
// is made of the vertex's id, the key and the place.
func (n *vnode) property(key string, i int, val, id, meta value.Value) gvalue.VertexProperty {
	p := gvalue.VertexProperty{Label: key, Value: fromValue(val), Vertex: &n.Vertex}
	if id.IsDefined() {
		p.ID = fromValue(id)
	} else {
		s := gvalue.Text(n.ID) + "|" + key
		if i > 0 {
			s += "|" + strconv.Itoa(i)
		}
		p.ID = s
	}
	for it := meta.Iter(); it.Next(); {
		p.Properties = append(p.Properties, gvalue.Property{Key: string(it.Key()), Value: fromValue(it.Value())})
	}
	return p
}

// LoadEdgeProperties implements gvalue.EdgeLoader.
func (n *enode) LoadEdgeProperties() []gvalue.Property {
	var out []gvalue.Property
	for it := value.ObjectOf(n.doc).Iter(); it.Next(); {
		if key, ok := shownKey(it.Key()); ok {
			out = append(out, gvalue.Property{Key: key, Value: fromValue(it.Value()), Element: &n.Edge})
		}
	}
	return out
}

// shownKey is the property name of a stored field; ok is false when it is no property.
func shownKey(stored []byte) (key string, ok bool) {
	if len(stored) > 0 && stored[0] != '_' && stored[0] != 'i' && stored[0] != 'l' && stored[0] != 1 {
		return view(stored), true
	}
	if isReserved(string(stored)) {
		return "", false
	}
	name, ok := doc.NoSQL.Shown(stored)
	return string(name), ok
}

// eachValue gives the values of a vertex's stored property: of [{_value, id}, ..], of an array of plain values, or the one
// value that the field is.
func eachValue(field value.Value, f func(i int, val, id, meta value.Value) bool) {
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
			case fValue:
				v = parts.Value()
			case fPropID:
				id = parts.Value()
			case fMeta:
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

// view is a string over bytes of a document, without a copy: an element's document is its own and never changes (a write
// gives it another one), and lives as long as the string.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// label is a stored label; "" for what isn't text.
func label(v value.Value) string {
	if v.Kind() != value.String {
		return ""
	}
	return view(v.Bytes())
}

// fromValue is a stored value as a traversal sees it. Strings in it are views of the document.
func fromValue(v value.Value) any {
	switch v.Kind() {
	case value.Undefined, value.Null:
		return nil
	case value.Bool:
		return v.Bool()
	case value.Int32:
		return int32(v.Int())
	case value.Int64:
		return v.Int()
	case value.Double:
		return v.Float()
	case value.String, value.Symbol, value.Code:
		return view(v.Bytes())
	case value.Date:
		if v.Ticks() != 0 {
			return gvalue.OffsetDateTime{Time: time.UnixMilli(v.DateMS()).Add(time.Duration(v.Ticks()) * 100).UTC()}
		}
		return gvalue.Date(v.DateMS())
	case value.UUID:
		return gvalue.UUID(v.Bytes())
	case value.Decimal:
		if d, ok := gvalue.ParseBigDecimal(value.DecimalText(v)); ok {
			return d
		}
		f, err := strconv.ParseFloat(value.DecimalText(v), 64) // NaN and the infinities
		if err != nil {
			return value.DecimalText(v)
		}
		return f
	case value.Array:
		l := []any{}
		for it := v.Iter(); it.Next(); {
			l = append(l, fromValue(it.Value()))
		}
		return l
	case value.Object:
		m := &gvalue.Map{}
		for it := v.Iter(); it.Next(); {
			m.Put(string(it.Key()), fromValue(it.Value()))
		}
		return m
	case value.Binary:
		var s string
		if b := doc.AppendJSON(nil, v); len(b) >= 2 {
			s = string(b[1 : len(b)-1])
		}
		return s
	}
	return string(doc.AppendExtJSON(nil, v, false))
}

// maxStoredDepth bounds lists and maps that are stored as a property.
const maxStoredDepth = 60

// toValue is the stored form of a property value.
func toValue(v any, depth int) (value.Value, error) {
	if depth > maxStoredDepth {
		return value.Value{}, errf(Runtime, "The property value is nested too deeply")
	}
	switch x := v.(type) {
	case nil:
		return value.NullValue(), nil
	case string:
		return value.StringOf(x), nil
	case bool:
		return value.BoolOf(x), nil
	case int32:
		return value.Int32Of(x), nil
	case int64:
		return value.Int64Of(x), nil
	case float64:
		return value.DoubleOf(x), nil
	case float32:
		return value.DoubleOf(float64(x)), nil
	case int8:
		return value.Int32Of(int32(x)), nil
	case int16:
		return value.Int32Of(int32(x)), nil
	case gvalue.Char:
		return value.StringOf(string(rune(x))), nil
	case gvalue.UUID:
		return value.UUIDOf(append([]byte(nil), x[:]...)), nil
	case gvalue.Date, gvalue.Timestamp, gvalue.OffsetDateTime, gvalue.ZonedDateTime, gvalue.Instant:
		t := instant(x)
		return value.DateOf(t.UnixMilli(), uint16(t.Nanosecond()%1e6/100)), nil
	case *big.Int:
		if x.IsInt64() {
			return value.Int64Of(x.Int64()), nil
		}
		return decimalValue(x.String())
	case *gvalue.BigDecimal:
		return decimalValue(x.String())
	case []any, *gvalue.Set, *gvalue.Map:
		return toContainer(v, depth)
	}
	return value.Value{}, errf(Runtime, "Property value [%s] is of a type that is not supported", gvalue.Text(v))
}

func decimalValue(s string) (value.Value, error) {
	if v, ok := value.ParseDecimal(s); ok {
		return v, nil
	}
	return value.Value{}, errf(Runtime, "The number %.40s does not fit a stored decimal", s)
}

func toContainer(v any, depth int) (value.Value, error) {
	b, at := openDoc(nil)
	if m, ok := v.(*gvalue.Map); ok {
		for _, e := range m.Entries() {
			k, ok := e.Key.(string)
			if !ok || !validKey(k) {
				return value.Value{}, errf(Runtime, "The keys of a map that is stored as a property must be strings")
			}
			ev, err := toValue(e.Value, depth+1)
			if err != nil {
				return value.Value{}, err
			}
			b = doc.AppendElement(b, k, ev)
		}
		return value.ObjectOf(closeDoc(b, at)), nil
	}
	for i, e := range listOf(v) {
		ev, err := toValue(e, depth+1)
		if err != nil {
			return value.Value{}, err
		}
		b = doc.AppendElement(b, strconv.Itoa(i), ev)
	}
	return value.ArrayOf(closeDoc(b, at)), nil
}

// validKey refuses names that BSON can't hold.
func validKey(k string) bool {
	for i := range len(k) {
		if k[i] == 0 {
			return false
		}
	}
	return true
}

// openDoc begins a BSON document or array at the end of b; closeDoc ends it and fills in its length.
func openDoc(b []byte) ([]byte, int) { return append(b, 0, 0, 0, 0), len(b) }

func closeDoc(b []byte, at int) []byte {
	b = append(b, 0)
	binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at))
	return b
}

// sameKey reports whether two partition key values are the same.
func sameKey(a, b value.Value) bool {
	if a.IsNumber() && b.IsNumber() {
		return value.CompareNumbers(a, b) == 0
	}
	if a.Kind() != b.Kind() {
		return false
	}
	switch a.Kind() {
	case value.Bool:
		return a.Bool() == b.Bool()
	case value.Undefined, value.Null:
		return true
	case value.Date:
		return a.DateMS() == b.DateMS() && a.Ticks() == b.Ticks()
	}
	return string(a.Bytes()) == string(b.Bytes())
}

// appendKey appends bytes that tell values apart as equal() does: gvalue's, with the partition of an element.
func appendKey(dst []byte, v any) []byte {
	switch e := v.(type) {
	case *gvalue.Vertex:
		dst = gvalue.AppendKey(dst, v)
		if n := nodeOf(e); n != nil && n.g.mode == KeyProperty {
			dst = doc.AppendValue(append(dst, '|', byte(n.pk.Kind())), n.pk)
		}
		return dst
	case *gvalue.Edge:
		dst = gvalue.AppendKey(dst, v)
		if n := edgeNodeOf(e); n != nil && n.g.mode == KeyProperty {
			dst = doc.AppendValue(append(dst, '|', byte(n.pk.Kind())), n.pk)
		}
		return dst
	case *mapEntry:
		return gvalue.AppendKey(gvalue.AppendKey(append(dst, 'E'), e.k), e.v)
	case []any:
		dst = append(dst, '[')
		for _, i := range e {
			dst = append(appendKey(dst, i), ',')
		}
		return append(dst, ']')
	}
	return gvalue.AppendKey(dst, v)
}
