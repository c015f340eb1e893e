package mongoapi

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// A find by `_id` asks a shared store once, not for the collection's name first. It is right nevertheless when another
// server has changed what the name means.
func TestFindsByIDOfASharedStore(t *testing.T) {
	store := kvtest.NewShared(memkv.New(), 1)
	eng := &kvtest.Counting{Process: store.Engine()}
	var doors []*client
	for _, of := range []*kvtest.Counting{eng, {Process: store.Engine()}} {
		e, err := core.Open(t.Context(), of, core.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Announce(core.Announcement{Name: "test"}); err != nil { // it trusts its catalog from now on
			t.Fatal(err)
		}
		doors = append(doors, connect(t, listen(t, e)))
	}
	other := func(cmd bson.D) {
		t.Helper()
		if raw, e := doors[1].ask(cmd); e.OK != 1 {
			t.Fatalf("%v: %s", cmd, raw)
		}
	}
	insert := func(in string, n int) {
		t.Helper()
		other(bson.D{{Key: "insert", Value: in}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 1},
			{Key: "n", Value: n}}}}})
	}
	insert("c", 1)
	rename := func(from, to string) {
		t.Helper()
		other(bson.D{{Key: "renameCollection", Value: "db." + from}, {Key: "to", Value: "db." + to},
			{Key: "$db", Value: "admin"}})
	}
	for _, x := range []struct {
		name   string
		change func() // by the other server, before the find
		id     int
		has    string // "": it finds nothing
		once   bool
	}{
		{"a document", nil, 1, `"n": {"$numberInt":"1"}`, true},
		{"a document that is absent", nil, 2, "", true},
		{"of a new collection with the name", func() { insert("d", 2); rename("c", "old"); rename("d", "c") }, 1,
			`"n": {"$numberInt":"2"}`, true},
		{"of a dropped one", func() { other(bson.D{{Key: "drop", Value: "c"}}) }, 1, "", false},
		{"of a view", func() {
			other(bson.D{{Key: "create", Value: "c"}, {Key: "viewOn", Value: "old"},
				{Key: "pipeline", Value: bson.A{}}})
		}, 1, `"n": {"$numberInt":"1"}`, false},
	} {
		if x.change != nil {
			x.change()
		}
		find := bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "_id", Value: x.id}}}}
		raw, e := doors[0].ask(find)
		text := strings.ReplaceAll(raw.String(), `": `, `":`)
		found := x.has != "" && strings.Contains(text, strings.ReplaceAll(x.has, `": `, `":`))
		if e.OK != 1 || found != (x.has != "") || x.has == "" && strings.Contains(text, `"n":`) {
			t.Errorf("%s: %s", x.name, raw)
		}
		if x.once && !eng.ReadsOnce(func() { doors[0].ask(find) }) {
			t.Errorf("%s: the store isn't asked just once", x.name)
		}
	}
}
