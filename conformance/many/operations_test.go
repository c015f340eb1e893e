package many

import (
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// at connects the official MongoDB driver to one server.
func (p *process) at(t *testing.T) *mongo.Client {
	c, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + p.addr + "/?directConnection=true"))
	ok(t, err)
	t.Cleanup(func() { ok(t, c.Disconnect(bg)) })
	return c
}

// long is a pipeline of 5000^3 steps.
func long() bson.A {
	var step any = bson.D{{Key: "$add", Value: bson.A{"$$value", "$$this"}}}
	for range 3 {
		step = bson.D{{Key: "$reduce", Value: bson.D{{Key: "initialValue", Value: 0}, {Key: "in", Value: step},
			{Key: "input", Value: bson.D{{Key: "$range", Value: bson.A{0, 5000}}}}}}}
	}
	return bson.A{bson.D{{Key: "$documents", Value: bson.A{bson.D{{Key: "a", Value: 1}}}}},
		bson.D{{Key: "$project", Value: bson.D{{Key: "x", Value: step}}}}}
}

// running waits until a server runs an aggregate, and returns the operation's id.
func running(t *testing.T, c *mongo.Client) string {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		var reply struct{ Inprog []bson.M }
		ok(t, c.Database("admin").RunCommand(bg, bson.D{{Key: "currentOp", Value: 1}}).Decode(&reply))
		for _, op := range reply.Inprog {
			if cmd, _ := op["command"].(bson.D); len(cmd) > 0 && cmd[0].Key == "aggregate" {
				return op["opid"].(string)
			}
		}
	}
	t.Fatal("no aggregate runs")
	return ""
}

// An operation's id names its server, so no other server ends an operation of its own with the same number in its
// place.
func TestKilledOperations(t *testing.T) {
	cl := start(t, 2)
	var clients []*mongo.Client
	var ops []string
	ends := []chan error{make(chan error, 1), make(chan error, 1)}
	for i, p := range cl.all {
		c := p.at(t)
		clients = append(clients, c)
		go func() {
			_, err := c.Database("admin").Aggregate(bg, long())
			ends[i] <- err
		}()
		ops = append(ops, running(t, c))
	}
	server := func(i int) string { p, _, _ := strings.Cut(ops[i], ":"); return p }
	number := func(i int) string { _, n, _ := strings.Cut(ops[i], ":"); return n }
	if server(0) == server(1) {
		t.Fatalf("the operations are %v: their servers have one name", ops)
	}
	for _, c := range []struct {
		at   int
		op   any
		code int32
	}{
		{1, ops[0], 70}, {0, ops[1], 70}, {0, "shard0:" + number(0), 70}, // ShardNotFound
		{0, server(1) + ":" + number(0), 70}, {1, server(0) + ":" + number(1), 70},
		{0, number(0), 28625}, {0, 42, 28625}, {0, ops[0][:16] + ":", 28625}, {0, ops[0][:16] + ":x", 28626},
		{0, bson.D{}, 14}, {0, ops[0][:16] + ":1", 0}, {0, ops[0], 0}, {0, ops[0], 0},
	} {
		err := clients[c.at].Database("admin").RunCommand(bg, bson.D{{Key: "killOp", Value: 1},
			{Key: "op", Value: c.op}}).Err()
		code := int32(0)
		if e, is := err.(mongo.CommandError); is {
			code = e.Code
		}
		if code != c.code {
			t.Errorf("killOp of %v at server %d: %v, want code %d", c.op, c.at, err, c.code)
		}
	}
	ended := func(i int) {
		select {
		case err := <-ends[i]:
			if e, is := err.(mongo.CommandError); !is || e.Code != 11601 {
				t.Errorf("operation %s: %v", ops[i], err)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("operation %s isn't killed", ops[i])
		}
	}
	ended(0)
	if op := running(t, clients[1]); op != ops[1] {
		t.Errorf("server 1 runs %s, and ran %s", op, ops[1])
	}
	ok(t, clients[1].Database("admin").RunCommand(bg, bson.D{{Key: "killOp", Value: 1},
		{Key: "op", Value: ops[1]}}).Err())
	ended(1)
}
