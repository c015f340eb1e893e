package mongoapi

import (
	"context"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// busy is a store into which somebody writes behind each snapshot.
type busy struct {
	kv.Engine
	write func() // nil: nobody
}

// Snapshot implements kv.Engine.
func (e *busy) Snapshot(ctx context.Context) (kv.Snapshot, error) {
	s, err := e.Engine.Snapshot(ctx)
	if write := e.write; write != nil {
		write()
	}
	return s, err
}

// A snapshot shows everything that was answered before the first read began, whatever snapshots others have taken.
func TestSnapshotsAreNotOlderThanTheirReaders(t *testing.T) {
	store := &busy{Engine: memkv.New()}
	e, err := core.Open(context.Background(), store, core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	addr := listen(t, e)
	first, second, writer := connect(t, addr), connect(t, addr), connect(t, addr)
	n := int32(0)
	write := func() {
		n++
		d := bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: n}}}}}
		if _, e := writer.ask(d); e.OK != 1 {
			t.Fatal(e)
		}
	}
	count := func(c *client, concern bson.D) (documents int32, at bson.RawValue) {
		raw, e := c.ask(bson.D{{Key: "aggregate", Value: "c"}, {Key: "cursor", Value: bson.D{}},
			{Key: "pipeline", Value: bson.A{bson.D{{Key: "$count", Value: "n"}}}}, {Key: "readConcern", Value: concern}})
		if e.OK != 1 {
			t.Fatal(e)
		}
		return raw.Lookup("cursor", "firstBatch", "0", "n").Int32(), raw.Lookup("cursor", "atClusterTime")
	}
	snapshot := bson.D{{Key: "level", Value: "snapshot"}}
	write()
	for range 3 {
		store.write = write
		before, at := count(first, snapshot)
		store.write = nil
		if before == n {
			t.Fatal("nobody has written behind the snapshot")
		}
		if got, _ := count(second, snapshot); got != n {
			t.Errorf("a new snapshot has %d documents of %d", got, n)
		}
		if got, _ := count(second, append(snapshot, bson.E{Key: "atClusterTime", Value: at})); got != before {
			t.Errorf("the snapshot had %d documents, and has %d", before, got)
		}
	}
}
