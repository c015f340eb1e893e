package cross

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/orrerydb/orrery/conformance/harness"
)

// TestEqualIdentities: 1, 1.0 and 1L are the same identity; a string and an ObjectId with the same digits are
// different.
func TestEqualIdentities(t *testing.T) {
	_, ps := places(t)
	for _, origin := range []string{"mongo", "mongo sharded", "nosql"} {
		t.Run(origin, func(t *testing.T) {
			p := ps[origin]
			one, _ := bson.ParseDecimal128("1.0")
			ok(t, p.insert(int32(1)))
			for _, id := range []any{int64(1), 1.0, one} {
				if err := p.insert(id); !mongo.IsDuplicateKeyError(err) {
					t.Errorf("_id %T %v beside 1: %v", id, id, err)
				}
				if n, err := p.mongo.CountDocuments(bg, bson.D{{Key: "_id", Value: id}}); n != 1 || err != nil {
					t.Errorf("_id %T %v finds %d %v", id, id, n, err)
				}
			}
			ok(t, p.insert("1"))
			ok(t, p.insert(oid))
			ok(t, p.insert(anOID))
			ok(t, p.insert(`{"$numberInt":"1"}`)) // the text of the first one is another string
			if n, err := p.mongo.CountDocuments(bg, bson.D{}); n != 5 || err != nil {
				t.Errorf("%d documents %v", n, err)
			}
		})
	}
}

// insert writes a document with any identity by Mongo.
func (p *place) insert(id any) error {
	d := bson.D{{Key: "_id", Value: id}, {Key: "v", Value: label(id)}}
	if p.keyField != "" {
		d = append(d, bson.E{Key: p.keyField, Value: "p"})
	}
	_, err := p.mongo.InsertOne(bg, d)
	return err
}

// label returns what insert writes to v.
func label(id any) string { return strings.Trim(fmt.Sprint(id), "<>") }

// TestOtherIdentities: the other APIs show an _id that isn't a string as its canonical Extended JSON, and find, change
// and delete the item by that text.
func TestOtherIdentities(t *testing.T) {
	ids := []struct {
		id   any
		text string
	}{
		{oid, fmt.Sprintf(`{"$oid":%q}`, anOID)},
		{int32(7), `{"$numberInt":"7"}`},
		{int64(1 << 40), `{"$numberLong":"1099511627776"}`},
		{2.5, `{"$numberDouble":"2.5"}`},
		{true, `true`},
		{nil, `null`},
		{bson.NewDateTimeFromTime(time.UnixMilli(1709528767123)), `{"$date":{"$numberLong":"1709528767123"}}`},
		{bson.Binary{Subtype: 4, Data: uuidBytes(aUUID)},
			fmt.Sprintf(`{"$binary":{"base64":%q,"subType":"04"}}`, base64Of(uuidBytes(aUUID)))},
		{bson.D{{Key: "a", Value: int32(1)}, {Key: "b", Value: "x"}}, `{"a":{"$numberInt":"1"},"b":"x"}`},
	}
	_, ps := places(t)
	for _, origin := range []string{"mongo", "mongo sharded", "nosql", "table", "graph"} {
		p := ps[origin]
		for _, x := range ids {
			t.Run(origin+"/"+x.text, func(t *testing.T) {
				ok(t, p.insert(x.id))
				want := label(x.id)
				if p.edm {
					want = fmt.Sprintf(`{"$t":2,"$v":%s}`, quoted(want))
				} else {
					want = quoted(want)
				}
				if got := p.readSQL(t, x.text); got != want {
					t.Errorf("read by NoSQL: %s, want %s", got, want)
				}
				if got := p.readTable(t, x.text); got != quoted(label(x.id)) {
					t.Errorf("read by Table: %s", got)
				}
				if got := p.readGremlin(x.text); got != "string "+label(x.id) {
					t.Errorf("read by Gremlin: %s", got)
				}
				if got := p.findSQL(t, "c.id = "+quoted(x.text)); !slices.Equal(got, []string{x.text}) {
					t.Errorf("found by NoSQL: %q", got)
				}
				if got := p.findTable(t, "RowKey eq '"+x.text+"'"); !slices.Equal(got, []string{x.text}) {
					t.Errorf("found by Table: %q", got)
				}
				pk := azcosmos.NewPartitionKeyString(p.pk(x.text))
				ops := azcosmos.PatchOperations{}
				ops.AppendSet("/w", 1)
				if _, err := p.sql.PatchItem(bg, pk, x.text, ops, nil); err != nil {
					t.Errorf("patched by NoSQL: %v", err)
				}
				if _, err := p.table.UpdateEntity(
					bg,
					[]byte(fmt.Sprintf(`{"PartitionKey":%s,"RowKey":%s,"u":2}`, quoted(p.pk(x.text)), quoted(x.text))),
					nil); err != nil {
					t.Errorf("merged by Table: %v", err)
				}
				if _, err := harness.Submit(p.gremlin, "g.V().hasId(i).property('x', 3)", "i", x.text); err != nil {
					t.Errorf("changed by Gremlin: %v", err)
				}
				if n, err := p.mongo.CountDocuments(
					bg, bson.D{{Key: "_id", Value: x.id}, {Key: "w", Value: 1}, {Key: "u", Value: 2},
						{Key: "x._value", Value: 3}}); n != 1 || err != nil {
					t.Errorf("found by Mongo after the changes: %d %v", n, err)
				}
				if _, err := p.sql.DeleteItem(bg, pk, x.text, nil); err != nil {
					t.Errorf("deleted by NoSQL: %v", err)
				}
				if n, err := p.mongo.CountDocuments(bg, bson.D{{Key: "_id", Value: x.id}}); n != 0 || err != nil {
					t.Errorf("after the delete: %d %v", n, err)
				}
			})
		}
	}
}

// TestOwnIDField: only Mongo sees a Mongo document's own field id, and changes by the other APIs keep it.
func TestOwnIDField(t *testing.T) {
	_, ps := places(t)
	for _, origin := range []string{"mongo", "mongo sharded", "nosql", "graph"} {
		t.Run(origin, func(t *testing.T) {
			p := ps[origin]
			d := bson.D{{Key: "_id", Value: "x"}, {Key: "id", Value: "own"}, {Key: "v", Value: "1"}}
			if p.keyField != "" {
				d = append(d, bson.E{Key: p.keyField, Value: "p"})
			}
			_, err := p.mongo.InsertOne(bg, d)
			ok(t, err)
			pk := azcosmos.NewPartitionKeyString(p.pk("x"))
			r, err := p.sql.ReadItem(bg, pk, "x", nil)
			ok(t, err)
			if got := string(fields(t, r.Value)["id"]); got != `"x"` {
				t.Errorf("id by NoSQL: %s", got)
			}
			if got := p.findSQL(t, `c.id = "own"`); len(got) != 0 {
				t.Errorf("found by NoSQL: %q", got)
			}
			e, err := p.table.GetEntity(bg, p.pk("x"), "x", nil)
			ok(t, err)
			if v, there := fields(t, e.Value)["id"]; there {
				t.Errorf("a property id by Table: %s", v)
			}
			if vs, err := harness.Submit(p.gremlin, "g.V().hasId('x').properties().key().dedup().fold()"); err != nil ||
				slices.Contains(vs[0].([]any), any("id")) {
				t.Errorf("properties by Gremlin: %v %v", vs, err)
			}
			if vs, err := harness.Submit(p.gremlin, "g.V().hasId('own').count()"); err != nil ||
				shown(vs) != "int64 0" {
				t.Errorf("by Gremlin: %v %v", vs, err)
			}
			ops := azcosmos.PatchOperations{}
			ops.AppendSet("/w", 1)
			_, err = p.sql.PatchItem(bg, pk, "x", ops, nil)
			ok(t, err)
			_, err = p.table.UpdateEntity(
				bg, []byte(fmt.Sprintf(`{"PartitionKey":%q,"RowKey":"x","u":2}`, p.pk("x"))), nil)
			ok(t, err)
			_, err = harness.Submit(p.gremlin, "g.V().hasId('x').property('y', 3)")
			ok(t, err)
			var got bson.M
			ok(t, p.mongo.FindOne(bg, bson.D{{Key: "id", Value: "own"}}).Decode(&got))
			if got["_id"] != "x" || got["id"] != "own" || got["w"] != int32(1) || got["u"] != int32(2) {
				t.Errorf("by Mongo: %v", got)
			}
		})
	}
}

// TestUnderscoreIDField: a NoSQL item's own field _id isn't its identity.
func TestUnderscoreIDField(t *testing.T) {
	_, ps := places(t)
	p := ps["nosql"]
	pk := azcosmos.NewPartitionKeyString("p")
	_, err := p.sql.CreateItem(bg, pk, []byte(`{"id":"x","_id":"own","pk":"p","v":"1"}`), nil)
	ok(t, err)
	r, err := p.sql.ReadItem(bg, pk, "x", nil)
	ok(t, err)
	if m := fields(t, r.Value); string(m["_id"]) != `"own"` || string(m["id"]) != `"x"` {
		t.Errorf("%s", r.Value)
	}
	if got := p.findSQL(t, `c._id = "own"`); !slices.Equal(got, []string{"x"}) {
		t.Errorf("found by NoSQL: %q", got)
	}
	var d bson.M
	ok(t, p.mongo.FindOne(bg, bson.D{{Key: "_id", Value: "x"}}).Decode(&d))
	if d["\x01_id"] != "own" {
		t.Errorf("by Mongo: %v", d)
	}
	if got := p.findMongo(t, bson.D{{Key: "_id", Value: "own"}}); len(got) != 0 {
		t.Errorf("found by Mongo: %q", got)
	}
	if got := p.findTable(t, "_id eq 'own'"); !slices.Equal(got, []string{"x"}) {
		t.Errorf("found by Table: %q", got)
	}
	if vs, err := harness.Submit(p.gremlin, "g.V().has('_id', 'own').id()"); err != nil || shown(vs) != "string x" {
		t.Errorf("found by Gremlin: %v %v", vs, err)
	}
}
