package mongoapi

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestTimeOfGetMores: what a command hasn't used of its maxTimeMS limits the getMores of its cursor, which say nothing
// about it themselves.
func TestTimeOfGetMores(t *testing.T) {
	_, addr := serve(t, Options{TestCommands: true}, nil)
	c := connect(t, addr)
	more := func(raw bson.Raw, coll string) int32 {
		_, e := c.ask(bson.D{{Key: "getMore", Value: raw.Lookup("cursor", "id").Int64()},
			{Key: "collection", Value: coll}, {Key: "$db", Value: "admin"}})
		return e.Code
	}

	open := pipe(endless)
	open[2].Value = bson.D{{Key: "batchSize", Value: 0}}
	raw, _ := c.ask(append(open, bson.E{Key: "maxTimeMS", Value: 100}))
	if code := more(raw, noCollection); code != 50 {
		t.Errorf("a getMore without an end: %d", code)
	}
	if code := more(raw, noCollection); code != 43 {
		t.Errorf("the cursor afterwards: %d", code)
	}

	c.ask(bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{}, bson.D{}, bson.D{}}},
		{Key: "$db", Value: "admin"}})
	find := bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: 1}, {Key: "$db", Value: "admin"}}
	unlimited, _ := c.ask(find)
	limited, _ := c.ask(append(find, bson.E{Key: "maxTimeMS", Value: 3_600_000}))
	c.ask(bson.D{{Key: "configureFailPoint", Value: "maxTimeAlwaysTimeOut"}, {Key: "mode", Value: "alwaysOn"},
		{Key: "$db", Value: "admin"}})
	if a, b := more(unlimited, "c"), more(limited, "c"); a != 0 || b != 50 {
		t.Errorf("when every limit is over: %d without one, %d with one", a, b)
	}
}
