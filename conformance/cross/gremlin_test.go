package cross

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/conformance/harness"
)

// TestGremlinKinds writes values of every kind of a traversal into a vertex. The other APIs see the property as the
// service stores it: an array of {_value, id}, with the value in its native kind.
func TestGremlinKinds(t *testing.T) {
	_, ps := places(t)
	for _, origin := range origins {
		p := ps[origin]
		for i := range kinds {
			k := &kinds[i]
			if k.gremlin == nil {
				continue
			}
			id := fmt.Sprint("v", i)
			err := p.writeGremlin(id, k.gremlin)
			t.Run(origin+"/"+k.name, func(t *testing.T) {
				ok(t, err)
				k.checkVertex(t, p, id)
			})
		}
	}
}

func (k *kind) checkVertex(t *testing.T, p *place, id string) {
	if got := p.readGremlin(id); got != k.traverse {
		t.Errorf("read by Gremlin: %s, want %s", got, k.traverse)
	}
	if ids := p.findGremlin(t, k.gremlin); !slices.Contains(ids, id) {
		t.Errorf("found by Gremlin: %q", ids)
	}
	var vs []map[string]json.RawMessage
	if err := json.Unmarshal([]byte(p.readSQL(t, id)), &vs); err != nil || len(vs) != 1 {
		t.Fatalf("read by NoSQL: %s", p.readSQL(t, id))
	}
	want := k.nosql
	if (p.extended || p.edm) && k.relaxed != "" {
		want = k.relaxed
	}
	if got := compact(t, vs[0]["_value"]); got != want || len(vs[0]["id"]) < 3 {
		t.Errorf("read by NoSQL: %s, want %s", got, want)
	}
	raw, err := p.mongo.FindOne(bg, bson.D{{Key: "v._value", Value: k.bson}, {Key: "_id", Value: id}}).Raw()
	if err != nil {
		t.Fatalf("found by Mongo: %v", err)
	}
	if got := compact(t, []byte(raw.Lookup("v", "0", "_value").String())); got != k.mongo {
		t.Errorf("read by Mongo: %s, want %s", got, k.mongo)
	}
	if got := p.readTable(t, id); !strings.HasPrefix(got, `"[{\"_value\":`) {
		t.Errorf("read by Table: %s", got)
	}
	if where := k.where; where != "" {
		where = strings.ReplaceAll(where, "c.v", "c.v[0]._value")
		if ids := p.findSQL(t, where); !slices.Contains(ids, id) {
			t.Errorf("found by NoSQL %s: %q", where, ids)
		}
	}
}

// TestPlainDocumentsAreVertices: a document of another API is a vertex, its fields are properties, and an array is a
// property with several values.
func TestPlainDocumentsAreVertices(t *testing.T) {
	_, ps := places(t)
	p := ps["nosql"]
	_, err := p.sql.CreateItem(bg, azcosmos.NewPartitionKeyString("p"), []byte(`{"id":"ben","pk":"p","name":"Ben",`+
		`"age":7,"nick":["b","benny"]}`), nil)
	ok(t, err)
	_, err = p.mongo.InsertOne(bg, bson.D{{Key: "_id", Value: "ann"}, {Key: "pk", Value: "p"}, {Key: "name", Value: "Ann"}, {Key: "label", Value: "person"}})
	ok(t, err)
	_, err = p.table.AddEntity(bg, []byte(`{"PartitionKey":"p","RowKey":"kim","name":"Kim"}`), nil)
	ok(t, err)
	for _, x := range [][2]string{
		{"g.V().has('name', 'Ben').id()", "string ben"},
		{"g.V().has('name', 'Kim').id()", "string kim"},
		{"g.V().hasLabel('person').values('name')", "string Ann"},
		{"g.V(['p', 'ben']).label()", "string vertex"},
		{"g.V(['p', 'ben']).values('nick')", "string b, string benny"},
		{"g.V().has('nick', 'benny').values('age')", "int32 7"},
		{"g.V().has('age', gt(6)).values('name')", "string Ben"},
		{"g.V().count()", "int64 3"},
		{"g.V(['p','ben']).addE('knows').to(g.V(['p','ann'])).property('id', 'e1').property('since', 2019).label()",
			"string knows"},
		{"g.V(['p','ben']).out('knows').values('name')", "string Ann"},
		{"g.V(['p','ann']).in('knows').values('name')", "string Ben"},
		{"g.V().count()", "int64 3"},
		{"g.V(['p','ben']).property('age', 8).values('age')", "int32 8"},
	} {
		if vs, err := harness.Submit(p.gremlin, x[0]); err != nil || shown(vs) != x[1] {
			t.Errorf("%s: %s %v, want %s", x[0], shown(vs), err, x[1])
		}
	}
	// The rest of the document is unchanged.
	r, err := p.sql.ReadItem(bg, azcosmos.NewPartitionKeyString("p"), "ben", nil)
	ok(t, err)
	m := fields(t, r.Value)
	if string(m["name"]) != `"Ben"` || compact(t, m["nick"]) != `["b","benny"]` {
		t.Errorf("%s", r.Value)
	}
}

// TestGraphElementsAreDocuments: the document APIs see vertices and edges in the service's stored form.
func TestGraphElementsAreDocuments(t *testing.T) {
	_, ps := places(t)
	for _, origin := range []string{"graph", "graph without key"} {
		t.Run(origin, func(t *testing.T) {
			p := ps[origin]
			key := ""
			if origin == "graph" {
				key = ".property('pk', 'p')"
			}
			for _, s := range []string{
				"g.addV('city').property('id', 'sea').property('name', 'Seattle').property(list, 'tag', " +
					"'rain').property(list, 'tag', 'coffee')" + key,
				"g.addV('city').property('id', 'pdx').property('name', 'Portland')" + key,
				"g.V('sea').addE('road').to(g.V('pdx')).property('id', 'I5').property('km', 280)",
			} {
				if origin == "graph without key" {
					s = strings.ReplaceAll(s, "property('id', ", "property(id, ")
				}
				if _, err := harness.Submit(p.gremlin, s); err != nil {
					t.Fatalf("%s: %v", s, err)
				}
			}
			r, err := p.sql.ReadItem(bg, azcosmos.NewPartitionKeyString(p.pk("sea")), "sea", nil)
			ok(t, err)
			var v struct {
				Label string
				Tag   []struct {
					Value string `json:"_value"`
					ID    string `json:"id"`
				}
			}
			ok(t, json.Unmarshal(r.Value, &v))
			if v.Label != "city" || len(v.Tag) != 2 || v.Tag[0].Value != "rain" || v.Tag[1].Value != "coffee" ||
				v.Tag[0].ID == "" || v.Tag[0].ID == v.Tag[1].ID {
				t.Errorf("the vertex is %s", r.Value)
			}
			const query = `SELECT VALUE c.id FROM c WHERE c._isEdge = true AND c._sink = "pdx" ` +
				`AND c._vertexId = "sea" AND c.km = 280 AND c.label = "road"`
			if rows := harness.Query(t, p.sql, azcosmos.NewPartitionKey(), query); !slices.Equal(
				rows, []string{`"I5"`}) {
				t.Errorf("edges: %s", rows)
			}
			// The edge is in its out-vertex's logical partition.
			e, err := p.sql.ReadItem(bg, azcosmos.NewPartitionKeyString(p.pk("sea")), "I5", nil)
			ok(t, err)
			for name, want := range map[string]string{"_isEdge": "true", "_sink": `"pdx"`, "_sinkLabel": `"city"`, "_vertexId": `"sea"`, "_vertexLabel": `"city"`, "km": "280"} {
				if got := string(fields(t, e.Value)[name]); got != want {
					t.Errorf("%s of the edge is %s, want %s", name, got, want)
				}
			}
			var d bson.M
			ok(t, p.mongo.FindOne(bg, bson.D{{Key: "_isEdge", Value: true}}).Decode(&d))
			if d["_id"] != "I5" || d["_sink"] != "pdx" || d["km"] != int32(280) {
				t.Errorf("the edge is %v", d)
			}
			if ids := p.findTable(t, "km eq 280 and _isEdge eq true"); !slices.Equal(ids, []string{"I5"}) {
				t.Errorf("the edge by Table: %q", ids)
			}
			// Traversals see an edge that another API changes or deletes.
			_, err = p.mongo.UpdateOne(bg, bson.D{{Key: "_id", Value: "I5"}},
				bson.D{{Key: "$set", Value: bson.D{{Key: "km", Value: 281}}}})
			ok(t, err)
			if vs, err := harness.Submit(
				p.gremlin, "g.V('sea').outE('road').has('km', 281).inV().values('name')"); err != nil ||
				shown(vs) != "string Portland" {
				t.Errorf("%v %v", vs, err)
			}
			_, err = p.sql.DeleteItem(bg, azcosmos.NewPartitionKeyString(p.pk("sea")), "I5", nil)
			ok(t, err)
			if vs, err := harness.Submit(p.gremlin, "g.V('pdx').in().count()"); err != nil || shown(vs) != "int64 0" {
				t.Errorf("%v %v", vs, err)
			}
		})
	}
}
