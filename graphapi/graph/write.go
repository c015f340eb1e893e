package graph

import (
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// OpenElement begins the document of a vertex or edge, with capacity for size bytes: its id, its original id if that
// has another form (kept), its label and its partition key. For an edge the caller then calls AppendEnds. Then it
// appends properties, and ends the document with CloseElement.
func (g *Graph) OpenElement(size int, id, kept value.Value, label string, pk value.Value) (b []byte, at int) {
	at, b = bson.Begin(make([]byte, 0, size))
	b = doc.AppendElement(b, fieldID, id)
	b = doc.AppendElement(b, fieldIDValue, kept)
	b = doc.AppendElement(b, fieldLabel, value.StringOf(label))
	switch g.Mode {
	case KeyProperty:
		b = doc.AppendElement(b, g.keyField, pk)
	case KeySystem:
		b = doc.AppendElement(b, fieldKey, pk)
	}
	return b, at
}

// CloseElement ends the document of a vertex or edge.
func CloseElement(b []byte, at int) []byte { return bson.End(b, at) }

// AppendEnds appends what makes a document an edge from out to in. Walks look at nothing else of most edges, so it is
// in front of the properties.
func AppendEnds(b []byte, out, in *Vertex) []byte {
	b = doc.AppendElement(b, fieldIsEdge, value.BoolOf(true))
	b = doc.AppendElement(b, fieldSink, in.StoredID)
	b = doc.AppendElement(b, fieldSinkIDValue, value.ObjectOf(in.Doc).Get(fieldIDValue))
	b = doc.AppendElement(b, fieldSinkLabel, value.StringOf(in.Label))
	b = doc.AppendElement(b, fieldSinkPartition, in.PK)
	b = doc.AppendElement(b, fieldVertexID, out.StoredID)
	b = doc.AppendElement(b, fieldVertexIDValue, value.ObjectOf(out.Doc).Get(fieldIDValue))
	return doc.AppendElement(b, fieldVertexLabel, value.StringOf(out.Label))
}

// Value is one value of a vertex property in the stored form.
type Value struct {
	Val  value.Value
	ID   value.Value
	Meta value.Value // meta-properties; Undefined: none
}

// Metas sets meta-properties in a _meta object.
func Metas(old value.Value, metas []gvalue.Property) (value.Value, error) {
	at, b := bson.Begin(nil)
	for it := old.Iter(); it.Next(); {
		keep := true
		for _, m := range metas {
			keep = keep && m.Key != string(it.Key())
		}
		if keep {
			b = append(b, it.Element()...)
		}
	}
	for i, m := range metas {
		last := true
		for _, later := range metas[i+1:] {
			last = last && later.Key != m.Key
		}
		if m.Value == nil || !last {
			continue
		}
		v, err := ToValue(m.Value)
		if err != nil {
			return value.Value{}, err
		}
		b = doc.AppendElement(b, m.Key, v)
	}
	return value.ObjectOf(bson.End(b, at)), nil
}

// AppendProperty appends the field of a vertex property: [{_value, id, _meta}, ..].
func AppendProperty(dst []byte, name string, vals []Value) []byte {
	if len(vals) == 0 {
		return dst
	}
	if k := vals[0].Val.Kind(); name == "ttl" && len(vals) == 1 && (k == value.Int32 || k == value.Int64) {
		return doc.AppendElement(dst, name, vals[0].Val) // the time to live is read from the document itself
	}
	arr, dst := bson.BeginArray(dst, name)
	for i, s := range vals {
		var at int
		at, dst = bson.Begin(bson.AppendIndexHead(dst, bson.TypeDocument, i))
		dst = doc.AppendElement(dst, fieldValue, s.Val)
		dst = doc.AppendElement(dst, fieldPropertyID, s.ID)
		if s.Meta.Kind() == value.Object && len(s.Meta.Bytes()) > 5 {
			dst = doc.AppendElement(dst, fieldMeta, s.Meta)
		}
		dst = bson.End(dst, at)
	}
	return bson.End(dst, arr)
}

// Values reads the values of a vertex's stored field. Values from other APIs get an id, because they are about to be
// rewritten.
func Values(field value.Value, newID func() value.Value) []Value {
	if !field.IsDefined() {
		return nil
	}
	var out []Value
	EachValue(field, func(_ int, val, id, meta value.Value) bool {
		if !id.IsDefined() {
			id = newID()
		}
		out = append(out, Value{val, id, meta})
		return true
	})
	return out
}

// Edit appends the new field, given the current value; Undefined: there is none.
type Edit = func(dst []byte, cur value.Value) ([]byte, error)

// Rewrite copies a document and replaces some fields (at their position) or adds them (at the end). A field for which
// Edit appends nothing is removed.
func Rewrite(old []byte, fields map[string]Edit, order []string) ([]byte, error) {
	at, b := bson.Begin(make([]byte, 0, len(old)+128))
	seen := map[string]bool{}
	var err error
	for it := value.ObjectOf(old).Iter(); it.Next(); {
		f, ok := fields[string(it.Key())]
		if !ok {
			b = append(b, it.Element()...)
			continue
		}
		if seen[string(it.Key())] {
			continue
		}
		seen[string(it.Key())] = true
		if b, err = f(b, it.Value()); err != nil {
			return nil, err
		}
	}
	for _, k := range order {
		if !seen[k] {
			seen[k] = true
			if b, err = fields[k](b, value.Value{}); err != nil {
				return nil, err
			}
		}
	}
	return bson.End(b, at), nil
}
