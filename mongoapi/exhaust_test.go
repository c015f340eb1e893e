package mongoapi

import (
	"encoding/binary"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/mongoapi/agg"
	"github.com/orrerydb/orrery/mongoapi/peer"
	"github.com/orrerydb/orrery/mongoapi/wire"
)

// exhaust sends a command that may have several replies.
func (c *client) exhaust(d bson.D) {
	c.t.Helper()
	m := rawMsg(c.t, d)
	binary.LittleEndian.PutUint32(m[wire.HeaderSize:], wire.FlagExhaust)
	if _, err := c.Write(m); err != nil {
		c.t.Fatal(err)
	}
}

// TestExhaustCursor: the batches of a getMore with exhaustAllowed follow each other. Each answers the one before it,
// and only the last one has no moreToCome.
func TestExhaustCursor(t *testing.T) {
	s, addr := serve(t, Options{}, nil)
	c := connect(t, addr)
	someDocs(c, "c", 10, "")
	raw, _ := c.ask(bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: 2}})
	id := raw.Lookup("cursor", "id").Int64()
	more := bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "c"}, {Key: "batchSize", Value: 3}}
	c.exhaust(more)
	sizes, answers := []int{}, int32(1)
	for {
		h, msg := c.frame()
		if h.ResponseTo != answers {
			t.Errorf("batch %d answers %d, want %d", len(sizes), h.ResponseTo, answers)
		}
		answers = h.RequestID
		reply := bson.Raw(msg[wire.HeaderSize+5:])
		batch, err := reply.Lookup("cursor", "nextBatch").Array().Values()
		if err != nil {
			t.Fatal(reply)
		}
		sizes = append(sizes, len(batch))
		last := reply.Lookup("cursor", "id").Int64() == 0
		if last == (wire.Flags(msg)&wire.FlagMore != 0) {
			t.Errorf("batch %d: flags %x, the cursor %s", len(sizes), wire.Flags(msg), reply)
		}
		if last {
			break
		}
	}
	if len(sizes) != 3 || sizes[0] != 3 || sizes[1] != 3 || sizes[2] != 2 || s.cursors.open() != 0 {
		t.Errorf("batches of %v, %d cursors are left", sizes, s.cursors.open())
	}
	c.exhaust(more) // there is no such cursor any more: one reply
	if raw, err := c.recv(); err != nil || raw.Lookup("code").AsInt64() != 43 {
		t.Errorf("%s, %v", raw, err)
	}
	raw, _ = c.ask(bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: 2}})
	more[0].Value = raw.Lookup("cursor", "id").Int64()
	if raw, e := c.ask(more); e.OK != 1 || raw.Lookup("cursor", "id").Int64() == 0 { // not allowed: one reply
		t.Error(raw)
	}
	c.exhaust(bson.D{{Key: "ping", Value: 1}}) // nothing follows
	if _, err := c.recv(); err != nil {
		t.Error(err)
	}
	if _, e := c.ask(bson.D{{Key: "ping", Value: 1}}); e.OK != 1 {
		t.Error(e)
	}
}

// An error that says that the server is no primary has the version of its description, so that a driver which knows it
// goes on at once. An error that says that it shuts down has none, so that a driver leaves it.
func TestStateChangeHasVersion(t *testing.T) {
	_, addr := serve(t, Options{TestCommands: true}, nil)
	c := connect(t, addr)
	hello, _ := c.ask(greeting())
	for code, versioned := range map[int32]bool{91: false, 11600: false, 10107: true, 13436: true, 6: false} {
		c.ask(bson.D{{Key: "configureFailPoint", Value: "failCommand"},
			{Key: "mode", Value: bson.D{{Key: "times", Value: 1}}},
			{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{"ping"}}, {Key: "errorCode", Value: code}}},
			{Key: "$db", Value: "admin"}})
		raw, e := c.ask(bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "db"}})
		if e.Code != code {
			t.Fatalf("the error is %v", raw)
		}
		v, err := raw.LookupErr("topologyVersion")
		if has := err == nil; has != versioned || has && !v.Equal(hello.Lookup("topologyVersion")) {
			t.Errorf("the error %d has the version %v", code, v)
		}
	}
}

// version is the topologyVersion of a reply.
func version(t *testing.T, raw bson.Raw) bson.D {
	t.Helper()
	v := raw.Lookup("topologyVersion")
	return bson.D{{Key: "processId", Value: v.Document().Lookup("processId").ObjectID()},
		{Key: "counter", Value: v.Document().Lookup("counter").Int64()}}
}

// TestAwaitedHello: a hello that knows the version of the description waits, unless the version is another process's.
// With exhaustAllowed it is answered again and again.
func TestAwaitedHello(t *testing.T) {
	s, addr := serve(t, Options{Auth: true}, nil)
	c := connect(t, addr)
	raw, _ := c.ask(greeting())
	known := version(t, raw)
	ask := func(v bson.D, ms int64) bson.D {
		return append(greeting(), bson.E{Key: "topologyVersion", Value: v}, bson.E{Key: "maxAwaitTimeMS", Value: ms})
	}
	began := time.Now()
	if _, e := c.ask(ask(known, 60)); e.OK != 1 || time.Since(began) < 60*time.Millisecond {
		t.Errorf("%+v after %v", e, time.Since(began))
	}
	other := bson.D{{Key: "processId", Value: bson.NewObjectID()}, {Key: "counter", Value: int64(7)}}
	if _, e := c.ask(ask(other, 1<<40)); e.OK != 1 {
		t.Error(e)
	}
	began = time.Now()
	c.exhaust(ask(other, 20)) // the first reply is immediate, the others take their time
	for i := range 5 {
		_, msg := c.frame()
		if wire.Flags(msg)&wire.FlagMore == 0 {
			t.Errorf("reply %d: flags %x", i, wire.Flags(msg))
		}
	}
	if d := time.Since(began); d < 4*20*time.Millisecond {
		t.Errorf("five replies after %v", d)
	}
	_ = c.Close()
	waiting := connect(t, addr)
	waiting.exhaust(ask(known, 1<<40))
	for began := time.Now(); ; time.Sleep(time.Millisecond) { // nothing looks at a connection that waits
		if !s.awake.Load() && s.connections() == 1 {
			break
		}
		if time.Since(began) > soon {
			t.Fatalf("the watcher is active, %d connections", s.connections())
		}
	}
	if ops := s.operations(agg.Ops{}, func(string) bool { return true }, nil); len(ops) != 0 {
		t.Errorf("operations while a client waits: %v", ops)
	}
	_ = waiting.Close()
	for began := time.Now(); s.connections() > 0; time.Sleep(time.Millisecond) {
		if time.Since(began) > soon {
			t.Fatal("a client that waited and left is still there")
		}
	}
}

// TestAwaitedHelloEnds: the server answers early, within the limits of a connection without a login, and a shutdown
// doesn't wait for clients that wait.
func TestAwaitedHelloEnds(t *testing.T) {
	_, addr := serve(t, Options{Auth: true, Limits: peer.Limits{Login: soon, Idle: 2 * time.Second, Stall: soon,
		Small: 32 << 10}}, nil)
	c := connect(t, addr)
	raw, _ := c.ask(greeting())
	wait := append(greeting(), bson.E{Key: "topologyVersion", Value: version(t, raw)},
		bson.E{Key: "maxAwaitTimeMS", Value: int64(1 << 40)})
	if _, e := c.ask(wait); e.OK != 1 {
		t.Error(e)
	}
	s, addr := serve(t, Options{Auth: true}, nil)
	c = connect(t, addr)
	raw, _ = c.ask(greeting())
	wait[2].Value = version(t, raw)
	c.send(wait)
	time.Sleep(20 * time.Millisecond)
	began := time.Now()
	if err := s.Shutdown(t.Context()); err != nil || time.Since(began) > soon/2 {
		t.Errorf("a shutdown beside a client that waits: %v after %v", err, time.Since(began))
	}
}
