package mongoapi

import (
	"context"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/mongoapi/merr"
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
		raw, e := c.ask(countAt(concern, 1))
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

// countAt is the command that counts documents in a session with a read concern.
func countAt(concern bson.D, session byte) bson.D {
	id := bson.Binary{Subtype: 4, Data: append(make([]byte, 15), session)}
	return bson.D{{Key: "aggregate", Value: "c"}, {Key: "cursor", Value: bson.D{}},
		{Key: "pipeline", Value: bson.A{bson.D{{Key: "$count", Value: "n"}}}},
		{Key: "readConcern", Value: concern}, {Key: "lsid", Value: bson.D{{Key: "id", Value: id}}}}
}

// Two processes have one store, and clocks that show the same. No time is given to two snapshots. It is read where it
// was given, by any session; elsewhere it is refused with SnapshotUnavailable.
func TestSnapshotsOfSeveralProcesses(t *testing.T) {
	store := kvtest.NewShared(memkv.New(), 1)
	var clients [2]*client
	for i := range clients {
		clk := clock.Fake(time.Unix(1_700_000_000, 0))
		e, err := core.Open(context.Background(), store.Engine(), core.Options{Clock: clk})
		if err != nil {
			t.Fatal(err)
		}
		clients[i] = connect(t, listen(t, e))
	}
	insert := bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 1}}}}}
	if _, e := clients[0].ask(insert); e.OK != 1 {
		t.Fatal(e)
	}
	snapshot := bson.D{{Key: "level", Value: "snapshot"}}
	raw, _ := clients[0].ask(countAt(snapshot, 1))
	times := map[uint64]bool{}
	for i := range 12 {
		raw, e := clients[i%2].ask(countAt(snapshot, 1))
		if e.OK != 1 {
			t.Fatal(raw)
		}
		second, n := raw.Lookup("cursor", "atClusterTime").Timestamp()
		times[uint64(second)<<32|uint64(n)] = true
	}
	if len(times) != 12 {
		t.Errorf("12 snapshots have %d times", len(times))
	}
	given := append(snapshot, bson.E{Key: "atClusterTime", Value: raw.Lookup("cursor", "atClusterTime")})
	for _, c := range []struct {
		name     string
		at       *client
		session  byte
		wantCode int32
	}{
		{"where it was given", clients[0], 1, 0},
		{"another session", clients[0], 2, 0},
		{"another process", clients[1], 1, merr.SnapshotUnavailable},
	} {
		seen := bson.E{Key: "$clusterTime", Value: raw.Lookup("$clusterTime")}
		if raw, e := c.at.ask(append(countAt(given, c.session), seen)); e.Code != c.wantCode {
			t.Errorf("%s: %s", c.name, raw)
		}
	}
}

// A restart ends snapshots, also one of what seems to be the present time.
func TestSnapshotsEndWithTheServer(t *testing.T) {
	store, clk := memkv.New(), clock.Fake(time.Unix(1_700_000_000, 0))
	snapshot := bson.D{{Key: "level", Value: "snapshot"}}
	insert := func(c *client, id int) {
		d := bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: id}}}}}
		if _, e := c.ask(d); e.OK != 1 {
			t.Fatal(e)
		}
	}
	var given bson.D
	var seen bson.E
	for life := range 2 {
		e, err := core.Open(context.Background(), stays{store}, core.Options{Clock: clk})
		if err != nil {
			t.Fatal(err)
		}
		c := connect(t, listen(t, e))
		if life == 0 {
			insert(c, 1)
			raw, _ := c.ask(countAt(snapshot, 1))
			given = append(snapshot, bson.E{Key: "atClusterTime", Value: raw.Lookup("cursor", "atClusterTime")})
			seen = bson.E{Key: "$clusterTime", Value: raw.Lookup("$clusterTime")}
			insert(c, 2)
			if raw, e := c.ask(countAt(given, 1)); e.OK != 1 {
				t.Errorf("before the restart: %s", raw)
			}
			continue
		}
		for _, d := range []bson.D{countAt(given, 1), append(countAt(given, 1), seen)} {
			if raw, e := c.ask(d); e.Code != merr.SnapshotUnavailable {
				t.Errorf("after the restart: %s", raw)
			}
		}
	}
}
