package mongoapi

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// A reply that depends on the number of documents is sent when the documents are durable. This includes statistics, and
// a refusal because there are documents.
func TestCountsWaitForDurability(t *testing.T) {
	disk := &kvtest.Slow{Engine: memkv.New()}
	e, err := core.Open(context.Background(), disk, core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	addr := listen(t, e)
	commands := map[string]bson.D{
		"count":     {{Key: "count", Value: "c"}},
		"collStats": {{Key: "collStats", Value: "c"}},
		"dbStats":   {{Key: "dbStats", Value: 1}},
		"dataSize":  {{Key: "dataSize", Value: "db.c"}},
		"$collStats": {{Key: "aggregate", Value: "c"}, {Key: "cursor", Value: bson.D{}},
			{Key: "pipeline", Value: bson.A{
				bson.D{{Key: "$collStats", Value: bson.D{{Key: "count", Value: bson.D{}}}}}}}},
		"shardCollection": {{Key: "shardCollection", Value: "db.c"}, {Key: "key", Value: bson.D{{Key: "k", Value: "hashed"}}},
			{Key: "$db", Value: "admin"}},
	}
	insert := func(id int) bson.D {
		return bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: id}}}}}
	}
	c, writer := connect(t, addr), connect(t, addr)
	if _, e := c.ask(insert(0)); e.OK != 1 {
		t.Fatal(e)
	}
	coll, err := e.Container("db", "c")
	if err != nil {
		t.Fatal(err)
	}
	n := int64(1)
	for name, command := range commands {
		sync := make(chan bool)
		disk.Sync.Store(&sync)
		n++
		writer.send(insert(int(n)))
		for n0 := int64(0); n0 < n; n0, err = coll.Count(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		var durable atomic.Bool
		go func() {
			time.Sleep(10 * time.Millisecond)
			durable.Store(true)
			close(sync)
		}()
		if _, e := c.ask(command); e.OK != 1 && name != "shardCollection" {
			t.Errorf("%s: %+v", name, e)
		}
		if !durable.Load() {
			t.Errorf("%s was answered by a commit that is not durable", name)
		}
		disk.Sync.Store(nil)
		if _, err := writer.recv(); err != nil {
			t.Fatal(err)
		}
	}
}
