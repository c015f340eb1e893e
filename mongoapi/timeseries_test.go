package mongoapi

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestChangedLifetimes tests that the store ends the lives of documents by what collMod says last.
func TestChangedLifetimes(t *testing.T) {
	s, addr := serve(t, Options{}, nil)
	c := connect(t, addr)
	c.inDatabase("db", `{"create":"t","timeseries":{"timeField":"at"}}`)
	c.inDatabase("db", `{"createIndexes":"t","indexes":[{"key":{"m":1},"name":"m_1","unique":true}]}`)
	for _, x := range []struct {
		mod  string
		want int32 // -1: none
	}{{`3600`, 3600}, {`{"$numberLong":"60"}`, 60}, {`"off"`, -1}, {`0`, 0}} {
		if e := c.inDatabase("db", `{"collMod":"t","expireAfterSeconds":`+x.mod+`}`); e.Lookup("ok").Double() != 1 {
			t.Fatal(e)
		}
		k, err := s.eng.Container("db", "t")
		if err != nil {
			t.Fatal(err)
		}
		got, unique := int32(-1), false
		for _, d := range k.Spec().Declared {
			if d.After != nil && d.Paths[0][0] == "at" {
				got = *d.After
			}
			unique = unique || d.Unique
		}
		if got != x.want || !unique {
			t.Errorf("%s: documents live %d seconds, the index is there: %v", x.mod, got, unique)
		}
	}
	if _, e := c.ask(bson.D{{Key: "drop", Value: "t"}, {Key: "$db", Value: "db"}}); e.OK != 1 {
		t.Error(e)
	}
}
