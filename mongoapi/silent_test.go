package mongoapi

import (
	"context"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// While a shared store doesn't answer a command ends with its maxTimeMS, though it has only looked for names.
func TestLookUpsEndWithTheirCommands(t *testing.T) {
	store := &kvtest.Mute{Engine: kvtest.NewShared(memkv.New(), 1).Engine()}
	e, err := core.Open(context.Background(), store, core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	addr := listen(t, e)
	c := connect(t, addr)
	insert := bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 1}}}}}
	if _, e := c.ask(insert); e.OK != 1 {
		t.Fatal(e)
	}
	first := connect(t, addr)
	session := bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: make([]byte, 16)}}}
	retryable := append(insert[:2:2], bson.E{Key: "lsid", Value: session}, bson.E{Key: "txnNumber", Value: int64(1)})
	store.Now.Store(true)
	first.send(retryable)
	time.Sleep(100 * time.Millisecond)
	one := func(name string, value any, more ...bson.E) bson.D {
		return append(bson.D{{Key: name, Value: value}}, more...)
	}
	admin := bson.E{Key: "$db", Value: "admin"}
	none := bson.E{Key: "roles", Value: bson.A{}}
	for _, x := range []struct {
		name string
		cmd  bson.D
	}{
		{"a repeated write", retryable},
		{"find", one("find", "c")},
		{"insert", insert},
		{"a new database", append(insert[:2:2], bson.E{Key: "$db", Value: "new"})},
		{"listCollections", one("listCollections", 1)},
		{"listDatabases", one("listDatabases", 1, admin)},
		{"dbHash", one("dbHash", 1)},
		{"dbStats", one("dbStats", 1)},
		{"collMod", one("collMod", "c")},
		{"listIndexes", one("listIndexes", "c")},
		{"usersInfo", one("usersInfo", 1)},
		{"usersInfo of a user", one("usersInfo", "ann")},
		{"rolesInfo", one("rolesInfo", 1)},
		{"dropAllUsers", one("dropAllUsersFromDatabase", 1)},
		{"dropRole", one("dropRole", "clerk")},
		{"updateUser", one("updateUser", "ann", none)},
		{"$listCatalog", one("aggregate", 1, bson.E{Key: "pipeline", Value: bson.A{one("$listCatalog", bson.D{})}},
			bson.E{Key: "cursor", Value: bson.D{}}, admin)},
		{"GetDatabase", one("customAction", "GetDatabase")},
	} {
		begun := time.Now()
		raw, got := c.ask(append(x.cmd[:len(x.cmd):len(x.cmd)], bson.E{Key: "maxTimeMS", Value: 200}))
		if took := time.Since(begun); got.Code != merr.MaxTimeMSExpired || took > 2*time.Second {
			t.Errorf("%s: after %v: %s", x.name, took, raw)
		}
	}
	store.Now.Store(false)
}
