package run

import (
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/graphapi/graph"
	"github.com/orrerydb/orrery/graphapi/gvalue"
)

type byKind uint8

const (
	byIdentity byKind = iota
	byProperty
	byToken
	byColumn
	byTraversal
)

// by is a compiled by() modulator.
type by struct {
	kind  byKind
	key   string
	tok   gvalue.T
	col   gvalue.Column
	tr    *traversal
	order gvalue.Order
	null  bool // ProductiveByStrategy: the value is null where there is none
}

// apply returns the value that by() selects for t. ok is false if by() is unproductive.
func (b *by) apply(x *exec, t *trav) (v any, ok bool, err error) {
	if v, ok, err = b.value(x, t); !ok && b.null && err == nil {
		return nil, true, nil
	}
	return v, ok, err
}

func (b *by) value(x *exec, t *trav) (v any, ok bool, err error) {
	switch b.kind {
	case byIdentity:
		return t.v, true, nil
	case byProperty:
		return byKey(t.v, b.key)
	case byToken:
		return tokenOf(t.v, b.tok)
	case byColumn:
		return columnOf(t.v, b.col)
	}
	return b.tr.first(x, t)
}

// applyTo is apply for a value other than the traverser's.
func (b *by) applyTo(x *exec, t *trav, v any) (any, bool, error) {
	if b.kind == byIdentity {
		return v, true, nil
	}
	n := *t
	n.v = v
	return b.apply(x, &n)
}

// byKey is by('name'): a property of an element, or the value of a key in a map.
func byKey(v any, key string) (any, bool, error) {
	switch e := v.(type) {
	case *gvalue.Map:
		r, ok := e.Get(key)
		return r, ok, nil
	case *mapEntry:
		return nil, false, nil
	case *gvalue.Vertex, *gvalue.Edge, *gvalue.VertexProperty:
		var out any
		found := false
		eachProperty(v, key, func(val any) bool {
			out, found = val, true
			return false
		})
		return out, found, nil
	case *gvalue.Property:
		return nil, false, nil
	}
	return nil, false, errf(Runtime, "The by(\"%s\") modulator can only be applied to a traverser that is "+
		"an Element or Map - it is being applied to [%s] a %s class instead",
		key, gvalue.Text(v), typeName(v))
}

// typeName is the Java name of a value's type, for messages.
func typeName(v any) string {
	switch v.(type) {
	case int32:
		return "Integer"
	case int64:
		return "Long"
	case float64:
		return "Double"
	case float32:
		return "Float"
	case string:
		return "String"
	case bool:
		return "Boolean"
	case nil:
		return "null"
	}
	return [...]string{"null", "Boolean", "Number", "Date", "String", "UUID", "Vertex", "Edge", "VertexProperty",
		"Property", "Path",
		"Set", "List", "Map", "Object"}[family(v)]
}

// tokenOf implements by(T.id), and id(), label(), key(), value().
func tokenOf(v any, tok gvalue.T) (any, bool, error) {
	switch tok {
	case gvalue.TID:
		if id, ok := idOfElement(v); ok {
			return id, true, nil
		}
	case gvalue.TLabel:
		switch e := v.(type) {
		case *gvalue.Vertex:
			return e.Label, true, nil
		case *gvalue.Edge:
			return e.Label, true, nil
		case *gvalue.VertexProperty:
			return e.Label, true, nil
		}
	case gvalue.TKey:
		switch e := v.(type) {
		case *gvalue.VertexProperty:
			return e.Label, true, nil
		case *gvalue.Property:
			return e.Key, true, nil
		}
	case gvalue.TValue:
		switch e := v.(type) {
		case *gvalue.VertexProperty:
			return e.Value, true, nil
		case *gvalue.Property:
			return e.Value, true, nil
		}
	}
	if m, ok := v.(*gvalue.Map); ok {
		r, ok := m.Get(tok)
		return r, ok, nil
	}
	return nil, false, errf(Runtime, "%s() can not be applied to %s", tok, typeName(v))
}

func idOfElement(v any) (any, bool) {
	switch e := v.(type) {
	case *gvalue.Vertex:
		return e.ID, true
	case *gvalue.Edge:
		return e.ID, true
	case *gvalue.VertexProperty:
		return e.ID, true
	}
	return nil, false
}

func elementID(v any) any {
	id, _ := idOfElement(v)
	return id
}

// columnOf implements select(keys), select(values), and by() with keys or values.
func columnOf(v any, col gvalue.Column) (any, bool, error) {
	switch m := v.(type) {
	case *mapEntry:
		if col == gvalue.Keys {
			return m.k, true, nil
		}
		return m.v, true, nil
	case *gvalue.Map:
		if col == gvalue.Keys {
			s := &gvalue.Set{}
			for _, e := range m.Entries() {
				s.Add(e.Key)
			}
			return s, true, nil
		}
		l := make([]any, 0, m.Len())
		for _, e := range m.Entries() {
			l = append(l, e.Value)
		}
		return l, true, nil
	case *gvalue.Path:
		if col == gvalue.Values {
			return append([]any{}, m.Objects...), true, nil
		}
		l := make([]any, 0, len(m.Labels))
		for _, ls := range m.Labels {
			s := &gvalue.Set{}
			for _, e := range ls {
				s.Add(e)
			}
			l = append(l, s)
		}
		return l, true, nil
	}
	return nil, false, errf(Runtime, "The provided object does not have accessible %s: %s", col, typeName(v))
}

// eachProperty calls f with the values of an element's property until f returns false. key "" means all properties.
func eachProperty(el any, key string, f func(v any) bool) {
	switch e := el.(type) {
	case *gvalue.Vertex:
		if v, ok := tokenKey(key, e.ID, e.Label); ok {
			f(v)
			return
		}
		if n := graph.VertexOf(e); n != nil && key != "" {
			if field := n.Field(key); field.IsDefined() {
				graph.EachValue(field, func(_ int, v, _, _ value.Value) bool { return f(graph.FromValue(v)) })
			}
			return
		}
		for _, p := range e.Props() {
			if (key == "" || p.Label == key) && !f(p.Value) {
				return
			}
		}
	case *gvalue.Edge:
		if v, ok := tokenKey(key, e.ID, e.Label); ok {
			f(v)
			return
		}
		if n := graph.EdgeOf(e); n != nil && key != "" {
			if s := graph.StoredKey(key); !graph.IsReserved(s) {
				if field := value.ObjectOf(n.Doc).Get(s); field.IsDefined() {
					f(graph.FromValue(field))
				}
			}
			return
		}
		for _, p := range e.Props() {
			if (key == "" || p.Key == key) && !f(p.Value) {
				return
			}
		}
	case *gvalue.VertexProperty:
		for _, p := range e.Properties {
			if (key == "" || p.Key == key) && !f(p.Value) {
				return
			}
		}
	}
}

// tokenKey returns the id and the label of an element as properties "id" and "label", like the service. No stored
// property can have these names.
func tokenKey(key string, id any, label string) (any, bool) {
	switch key {
	case "id":
		return id, true
	case "label":
		return label, true
	}
	return nil, false
}

// isElement reports whether v can have properties.
func isElement(v any) bool {
	switch v.(type) {
	case *gvalue.Vertex, *gvalue.Edge, *gvalue.VertexProperty:
		return true
	}
	return false
}

// mapEntry is one pair of a map, as unfold() returns it. Clients get it as a map with one pair.
type mapEntry struct{ k, v any }

// listOf returns the elements of a collection. For another value it returns a list with that value.
//
//go:noinline // called from many places, see decision 41
func listOf(v any) []any {
	switch c := v.(type) {
	case []any:
		return c
	case *gvalue.Set:
		return c.Items()
	case *gvalue.BulkSet:
		var out []any
		for _, i := range c.Items() {
			for range min(i.Bulk, maxHeld-int64(len(out))) {
				out = append(out, i.Value)
			}
		}
		return out
	case *gvalue.Path:
		return c.Objects
	}
	return []any{v}
}

func isList(v any) bool {
	_, ok := v.([]any)
	return ok
}

func isCollection(v any) bool {
	switch v.(type) {
	case []any, *gvalue.Set, *gvalue.BulkSet, *gvalue.Path:
		return true
	}
	return false
}
