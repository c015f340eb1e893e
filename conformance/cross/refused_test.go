package cross

import (
	"fmt"
	"testing"

	gremlingo "github.com/apache/tinkerpop/gremlin-go/v3/driver"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestRefused: a value that an API can't write is refused with the API's own error, and nothing is stored.
func TestRefused(t *testing.T) {
	_, ps := places(t)
	for _, origin := range origins {
		t.Run(origin, func(t *testing.T) {
			p := ps[origin]
			before, err := p.mongo.CountDocuments(bg, bson.D{})
			ok(t, err)
			for _, v := range []string{`[1]`, `{"a":1}`} {
				if err := p.writeTable("x", "", v); statusOf(err) != 400 {
					t.Errorf("Table takes %s: %v", v, err)
				}
			}
			if err := p.writeTable("x", "Edm.Decimal", `"1.10"`); statusOf(err) != 400 {
				t.Errorf("Table takes a decimal: %v", err)
			}
			if err := p.writeGremlin("x", &gremlingo.ByteBuffer{Data: []byte{1, 2}}); err == nil {
				t.Error("Gremlin takes a binary")
			}
			// A read-only property may be sent back unchanged, but not changed.
			ok(t, p.writeMongo("ro", bson.A{int32(1)}))
			body := func(v string) []byte {
				return []byte(fmt.Sprintf(`{"PartitionKey":%q,"RowKey":"ro","v":%s}`, p.pk("ro"), v))
			}
			if _, err := p.table.UpdateEntity(bg, body(`"[2]"`), nil); statusOf(err) != 400 {
				t.Errorf("Table changes an array: %v", err)
			}
			if _, err := p.table.UpdateEntity(bg, body(`"[1]"`), nil); err != nil {
				t.Errorf("Table sends an array back: %v", err)
			}
			if got := p.readMongo(t, "ro"); got != `[{"$numberInt":"1"}]` {
				t.Errorf("the array is %s", got)
			}
			if n, err := p.mongo.CountDocuments(bg, bson.D{}); n != before+1 || err != nil {
				t.Errorf("%d documents %v, want %d", n, err, before+1)
			}
		})
	}
}

// TestExtendedJSONOff: in a NoSQL container without Extended JSON, an object that looks like Extended JSON is an object
// for all APIs.
func TestExtendedJSONOff(t *testing.T) {
	_, ps := places(t)
	p := ps["nosql"]
	text := fmt.Sprintf(`{"$oid":%q}`, anOID)
	ok(t, p.writeSQL("x", text))
	if got := p.readSQL(t, "x"); got != text {
		t.Errorf("by NoSQL: %s", got)
	}
	raw, err := p.mongo.FindOne(bg, bson.D{{Key: "_id", Value: "x"}}).Raw()
	ok(t, err)
	if v := raw.Lookup("v"); v.Type != bson.TypeEmbeddedDocument || v.Document().Lookup("$oid").StringValue() != anOID {
		t.Errorf("by Mongo: %s", v)
	}
	if got := p.findSQL(t, fmt.Sprintf(`c.v["$oid"] = %q`, anOID)); len(got) != 1 {
		t.Errorf("found by NoSQL: %q", got)
	}
}
