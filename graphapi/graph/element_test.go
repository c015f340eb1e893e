package graph_test

import (
	"reflect"
	"testing"

	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/graphapi/graph"
	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// plain is the store of a plain graph, of which only the kind of its keys is used.
type plain struct{ graph.Store }

func (plain) Key() (graph.KeyMode, string) { return graph.KeySystem, "" }

// TestVisitedProperties compares the two ways to read the properties of a vertex: as a list, and one by one.
func TestVisitedProperties(t *testing.T) {
	g := graph.New(plain{})
	for text, want := range map[string]int{
		`{"id":"a"}`: 0,
		`{"id":"a","label":"x","_partitionKey":"a","name":[{"_value":"Ann","id":"p1"}]}`:                        1,
		`{"id":"a","name":[{"_value":"Ann","id":"p1","_meta":{"since":2020,"by":"x"}},{"_value":7,"id":"p2"}]}`: 2,
		`{"id":"a","plain":"text","list":["x",2.5,true,null],"object":{"a":[1]},"empty":[]}`:                    6,
	} {
		d, err := doc.FromJSON(nil, []byte(text), doc.JSONOptions{Names: doc.NoSQL})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		list := g.NewVertex(d).Props()
		var visited []gvalue.VertexProperty
		v := g.NewVertex(d)
		v.Visit(func(p *gvalue.LoadedProperty) {
			visited = append(visited, gvalue.VertexProperty{Label: p.Key, ID: of(p.ID), Value: of(p.Value),
				Properties: p.Properties})
		})
		for i := range list {
			list[i].Vertex = nil
		}
		if len(list) != want || want > 0 && !reflect.DeepEqual(list, visited) || want == 0 && len(visited) > 0 {
			t.Errorf("%s: the list has\n%v, one by one they are\n%v", text, list, visited)
		}
		given := &gvalue.Vertex{ID: v.ID, Properties: list} // of a client, without a document
		n := 0
		given.Visit(func(p *gvalue.LoadedProperty) {
			if p.Key != list[n].Label || !reflect.DeepEqual(of(p.Value), list[n].Value) {
				t.Errorf("%s: property %d of a list is %v", text, n, p)
			}
			n++
		})
		if n != want {
			t.Errorf("%s: %d properties of a list, want %d", text, n, want)
		}
	}
}

// of returns the value of a Scalar.
func of(s gvalue.Scalar) any {
	if s.IsText {
		return s.Text
	}
	return s.Other
}
