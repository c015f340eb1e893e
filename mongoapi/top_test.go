package mongoapi

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestTop: the first top begins to count, and later ones tell what was done on each collection since.
func TestTop(t *testing.T) {
	_, addr := serve(t, Options{}, nil)
	c := connect(t, addr)
	run := func(db, text string) bson.Raw {
		t.Helper()
		var d bson.D
		if err := bson.UnmarshalExtJSON([]byte(text), false, &d); err != nil {
			t.Fatal(err)
		}
		c.send(append(d, bson.E{Key: "$db", Value: db}))
		raw, err := c.recv()
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	run("db", `{"insert":"c","documents":[{"_id":1}]}`)
	if _, err := run("admin", `{"top":1}`).LookupErr("totals", "db.c"); err == nil {
		t.Error("commands before the first top are counted")
	}
	run("db", `{"find":"c"}`)
	run("db", `{"find":"c","filter":{"_id":1}}`)
	run("db", `{"update":"c","updates":[{"q":{"_id":1},"u":{"$set":{"a":1}}}]}`)
	u := run("admin", `{"top":1}`).Lookup("totals", "db.c").Document()
	for name, want := range map[string]int64{"total": 3, "queries": 2, "readLock": 2, "update": 1, "writeLock": 1,
		"insert": 0} {
		if n := u.Lookup(name, "count").Int64(); n != want {
			t.Errorf("%s: %d, want %d", name, n, want)
		}
	}
	n := run("admin", `{"serverStatus":1}`).Lookup("opcounters")
	if got := n.Document().Lookup("query").Int64(); got != 2 {
		t.Errorf("serverStatus counts %d queries", got)
	}
	if n.Document().Lookup("insert").Int64() != 1 {
		t.Errorf("serverStatus: %v", n)
	}
}
