package main

import (
	"encoding/json"
	"fmt"

	gremlingo "github.com/apache/tinkerpop/gremlin-go/v3/driver"

	"github.com/orrerydb/orrery/cmd/orrery/transfer"
)

// element is a vertex or an edge as Gremlin shows it. The ids of the properties of vertices aren't kept: no traversal
// sets them.
type element struct {
	id      any
	label   string
	props   []property // a key may be in several of them
	out, in *end       // of an edge
}

// property is a property, and its own properties.
type property struct {
	key   string
	value any
	meta  []property
}

// end is where an edge begins or ends.
type end struct{ id, key any }

// read sets an element to a vertex or edge of the driver.
func (e *element) read(v any) error {
	switch v := v.(type) {
	case *gremlingo.Vertex:
		e.id, e.label = v.Id, v.Label
		return e.properties(v.Properties)
	case *gremlingo.Edge:
		e.id, e.label = v.Id, v.Label
		e.out, e.in = &end{id: v.OutV.Id}, &end{id: v.InV.Id}
		return e.properties(v.Properties)
	}
	return fmt.Errorf("the source gives a %T, which is neither a vertex nor an edge", v)
}

func (e *element) properties(list any) (err error) {
	e.props, err = propertiesOf(list)
	return err
}

func propertiesOf(list any) ([]property, error) {
	some, _ := list.([]any) // nil: there are none
	out := make([]property, 0, len(some))
	for _, p := range some {
		switch p := p.(type) {
		case *gremlingo.VertexProperty:
			meta, err := propertiesOf(p.Properties)
			if err != nil {
				return nil, err
			}
			out = append(out, property{p.Label, p.Value, meta})
		case *gremlingo.Property:
			out = append(out, property{key: p.Key, value: p.Value})
		default:
			return nil, fmt.Errorf("the source gives a %T, which is no property", p)
		}
	}
	return out, nil
}

// rename gives the properties their new names.
func (e *element) rename(names *transfer.Names) {
	for i := range e.props {
		e.props[i].key = names.Field(e.props[i].key)
	}
}

// value returns the value of the property that is the partition key; nil = the element has none.
func (e *element) value(key string) any {
	for _, p := range e.props {
		if p.key == key {
			return p.value
		}
	}
	return nil
}

// text shows an element as JSON.
func (e *element) text() []byte {
	shown := map[string]any{"id": e.id, "label": e.label}
	if e.out != nil {
		shown["outV"], shown["inV"] = e.out.id, e.in.id
	}
	values := map[string][]any{}
	for _, p := range e.props {
		v := any(map[string]any{"value": p.value})
		if len(p.meta) > 0 {
			meta := map[string]any{}
			for _, m := range p.meta {
				meta[m.key] = m.value
			}
			v = map[string]any{"value": p.value, "properties": meta}
		}
		values[p.key] = append(values[p.key], v)
	}
	if len(values) > 0 {
		shown["properties"] = values
	}
	text, err := json.Marshal(shown)
	if err != nil { // a value that JSON has no form for
		return fmt.Appendf(nil, "%v %s", e.id, e.label)
	}
	return text
}
