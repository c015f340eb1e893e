package mongoapi

import (
	"strconv"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/core/clock"
)

// inDatabase runs a command, given as Extended JSON, in a database.
func (c *client) inDatabase(db, text string) bson.Raw {
	c.t.Helper()
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(text), false, &d); err != nil {
		c.t.Fatal(err)
	}
	c.send(append(d, bson.E{Key: "$db", Value: db}))
	raw, err := c.recv()
	if err != nil {
		c.t.Fatal(err)
	}
	return raw
}

// TestTop: the first top begins to count, and later ones tell what was done on each collection since.
func TestTop(t *testing.T) {
	_, addr := serve(t, Options{}, nil)
	c := connect(t, addr)
	run := c.inDatabase
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

// TestServerStatus: what monitors read of the server.
func TestServerStatus(t *testing.T) {
	_, addr := serve(t, Options{}, nil)
	gone := connect(t, addr)
	gone.inDatabase("db", `{"insert":"c","documents":[{"_id":1}]}`)
	_ = gone.Close()
	c := connect(t, addr)
	status := func() bson.Raw { return c.inDatabase("admin", `{"serverStatus":1}`) }
	for end := time.Now().Add(soon); status().Lookup("connections", "current").Int32() > 1; {
		if time.Now().After(end) {
			t.Fatal("a connection that has ended is counted")
		}
	}
	var was bson.Raw
	for _, cmd := range []string{`{"ping":1}`, `{"find":"c"}`} {
		c.inDatabase("db", cmd)
		now := status()
		if n := now.Lookup("globalLock", "activeClients", "total").Int32(); n != 1 {
			t.Errorf("%d commands run", n)
		}
		for _, name := range []string{"bytesIn", "bytesOut", "numRequests"} {
			n := now.Lookup("network", name).Int64()
			if n <= 0 || was != nil && n <= was.Lookup("network", name).Int64() {
				t.Errorf("%s is %d, and was %v", name, n, was)
			}
		}
		was = now
	}
	if at := was.Lookup("repl", "me").StringValue(); at != addr {
		t.Errorf("the member is %s, not %s", at, addr)
	}
}

// TestLatency: the first $collStats begins to count, and later ones tell how long the commands on the collection took.
func TestLatency(t *testing.T) {
	_, addr := serve(t, Options{}, nil)
	c := connect(t, addr)
	c.inDatabase("db", `{"insert":"c","documents":[{"_id":1}]}`)
	stats := func(arg string) bson.Raw {
		t.Helper()
		r := c.inDatabase("db", `{"aggregate":"c","pipeline":[{"$collStats":{"latencyStats":`+arg+`}}],"cursor":{}}`)
		return r.Lookup("cursor", "firstBatch", "0", "latencyStats").Document()
	}
	if n := stats(`{}`).Lookup("writes", "ops").Int64(); n != 0 {
		t.Errorf("%d writes before the first one are counted", n)
	}
	c.inDatabase("db", `{"find":"c"}`)
	c.inDatabase("db", `{"update":"c","updates":[{"q":{"_id":1},"u":{"$set":{"a":1}}}]}`)
	c.inDatabase("db", `{"delete":"c","deletes":[{"q":{"_id":1},"limit":1}]}`)
	l := stats(`{"histograms":true}`)
	// $collStats itself is a read.
	for name, want := range map[string]int64{"reads": 2, "writes": 2, "commands": 0, "transactions": 0} {
		got := l.Lookup(name, "ops").Int64()
		if got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
		sum := int64(0)
		buckets, err := l.Lookup(name, "histogram").Array().Values()
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range buckets {
			sum += b.Document().Lookup("count").Int64()
		}
		if sum != got {
			t.Errorf("%s: the histogram has %d of %d", name, sum, got)
		}
	}
	if _, err := stats(`{}`).LookupErr("reads", "histogram"); err == nil {
		t.Error("a histogram that nobody asked for")
	}
}

// TestWatchers tests what programs that watch servers read: all of their figures by one command, and operations by
// numbers of 32 bits.
func TestWatchers(t *testing.T) {
	_, addr := serve(t, Options{}, nil)
	c := connect(t, addr)
	d := c.inDatabase("admin", `{"getDiagnosticData":1}`).Lookup("data").Document()
	for _, path := range [][]string{{"start"}, {"end"}, {"serverStatus", "start"}, {"serverStatus", "end"},
		{"serverStatus", "connections", "current"}, {"replSetGetStatus", "members"}} {
		if _, err := d.LookupErr(path...); err != nil {
			t.Errorf("%v: %v", path, err)
		}
	}
	if _, e := c.ask(bson.D{{Key: "getDiagnosticData", Value: 1}, {Key: "$db", Value: "db"}}); e.Code != 13 {
		t.Errorf("on another database: %+v", e)
	}
	ops := []bson.Raw{}
	for range 2 {
		op := c.inDatabase("admin", `{"currentOp":1}`).Lookup("inprog", "0").Document()
		ops = append(ops, op)
		desc := "conn" + strconv.Itoa(int(op.Lookup("connectionId").Int32()))
		if op.Lookup("desc").StringValue() != desc || op.Lookup("op").StringValue() != "command" {
			t.Errorf("the operation is %v", op)
		}
	}
	if a, b := ops[0].Lookup("opid").Int32(), ops[1].Lookup("opid").Int32(); a == b || a == 0 {
		t.Errorf("two commands have the numbers %d and %d", a, b)
	}
}

// TestUptime tests the three figures of how long the server runs, which have a type of their own each.
func TestUptime(t *testing.T) {
	clk := clock.Fake(time.Unix(1_700_000_000, 0))
	_, addr := serve(t, Options{Clock: clk}, nil)
	c := connect(t, addr)
	clk.Advance(3723*time.Second + 900*time.Millisecond)
	d := c.inDatabase("admin", `{"serverStatus":1}`)
	if s := d.Lookup("uptime").Double(); s != 3723 {
		t.Errorf("uptime %v", s)
	}
	if ms := d.Lookup("uptimeMillis").Int64(); ms != 3723900 {
		t.Errorf("uptimeMillis %v", ms)
	}
	if s := d.Lookup("uptimeEstimate").Int64(); s != 3723 {
		t.Errorf("uptimeEstimate %v", s)
	}
	if at := d.Lookup("localTime").Time().Unix(); at != 1_700_003_723 {
		t.Errorf("localTime %v", at)
	}
}
