package mongoapi

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	bsonx "github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
)

// running returns what currentOp or $currentOp lists.
func (c *client) running(cmd string) (out []bson.Raw) {
	c.t.Helper()
	reply := c.inDatabase("admin", cmd)
	list, err := reply.LookupErr("inprog")
	if err != nil {
		list = reply.Lookup("cursor", "firstBatch")
	}
	ops, err := list.Array().Values()
	if err != nil {
		c.t.Fatal(err)
	}
	for _, op := range ops {
		out = append(out, op.Document())
	}
	return out
}

// TestCurrentOp tests what is shown of a running command, of idle connections and of idle cursors.
func TestCurrentOp(t *testing.T) {
	_, addr := serve(t, Options{}, nil)
	watcher, busy := connect(t, addr), connect(t, addr)
	busy.inDatabase("db", `{"hello":1,"client":{"application":{"name":"tests"},"driver":{"name":"d","version":"1"},`+
		`"os":{"type":"o"}}}`)
	busy.inDatabase("db", `{"insert":"c","documents":[{"_id":1},{"_id":2},{"_id":3}]}`)
	opened := busy.inDatabase("db", `{"find":"c","batchSize":1,"noCursorTimeout":true}`)
	id := opened.Lookup("cursor", "id").Int64()

	lsid := `{"id":{"$uuid":"00000000-0000-4000-8000-000000000007"}}`
	var long bson.D
	if err := bson.UnmarshalExtJSON([]byte(`{"aggregate":"c","pipeline":[{"$match":{"x":{"$nin":["`+
		strings.Repeat("y", 2000)+`"]}}}],"comment":"why","cursor":{},"lsid":`+lsid+`,"$db":"db"}`), false,
		&long); err != nil {
		t.Fatal(err)
	}
	long[1].Value = append(long[1].Value.(bson.A), endless[1])
	busy.send(long)
	waitOp(t, watcher, "$truncated")
	mine := `{"$match":{"ns":"db.c"}}`
	op := watcher.running(`{"aggregate":1,"pipeline":[{"$currentOp":{}},` + mine + `],"cursor":{}}`)[0]
	for path, want := range map[string]string{"type": "op", "appName": "tests",
		"clientMetadata.driver.name": "d", "clientMetadata.os.type": "o", "op": "command", "ns": "db.c",
		"command.aggregate": "c", "command.comment": "why", "command.$db": "db"} {
		if got, ok := op.Lookup(strings.Split(path, ".")...).StringValueOK(); !ok || got != want {
			t.Errorf("%s is %q, not %q", path, got, want)
		}
	}
	if !op.Lookup("active").Boolean() || op.Lookup("lsid", "id").Type != bson.TypeBinary ||
		op.Lookup("lsid", "uid").Type != bson.TypeBinary || len(op.Lookup("command").Document()) < 2000 {
		t.Errorf("the operation is %s", op)
	}
	if plan, _ := op.Lookup("planSummary").StringValueOK(); plan != "COLLSCAN" {
		t.Errorf("the plan is %q", plan)
	}
	for _, cmd := range []string{`{"currentOp":1,"ns":"db.c","active":true}`,
		`{"aggregate":1,"pipeline":[{"$currentOp":{"truncateOps":true}},` + mine + `],"cursor":{}}`} {
		op := watcher.running(cmd)[0]
		text := op.Lookup("command", "$truncated").StringValue()
		if len(text) != maxShownOp || !strings.HasPrefix(text, `{ aggregate: "c", pipeline: [ { $match: { x: `) ||
			!strings.HasSuffix(text, "...") || op.Lookup("command", "comment").StringValue() != "why" {
			t.Errorf("%s shows %s", cmd, op)
		}
	}
	if ops := watcher.running(`{"currentOp":1,"ns":"db.none"}`); len(ops) != 0 {
		t.Errorf("a filter that nothing fits: %v", ops)
	}
	connect(t, addr).inDatabase("db", `{"ping":1}`)
	for cmd, want := range map[string]int{`{"currentOp":1}`: 2, `{"currentOp":1,"$all":true}`: 3,
		`{"currentOp":1,"$ownOps":true}`: 2} {
		if ops := watcher.running(cmd); len(ops) != want {
			t.Errorf("%s lists %v", cmd, ops)
		}
	}
	ops := watcher.running(`{"aggregate":1,"pipeline":[{"$currentOp":{"idleCursors":true}},` +
		`{"$match":{"type":"idleCursor"}}],"cursor":{}}`)
	if len(ops) != 1 || ops[0].Lookup("cursor", "cursorId").Int64() != id ||
		!ops[0].Lookup("cursor", "noCursorTimeout").Boolean() || ops[0].Lookup("ns").StringValue() != "db.c" ||
		ops[0].Lookup("cursor", "originatingCommand", "find").StringValue() != "c" {
		t.Errorf("the idle cursors are %v", ops)
	}
}

// TestCurrentOpOfUsers tests that a user without the right to see all operations sees its own, and no secrets.
func TestCurrentOpOfUsers(t *testing.T) {
	_, addr := serve(t, Options{Auth: true}, nil)
	root := connect(t, addr)
	root.login()
	root.inDatabase("db", `{"createUser":"u","pwd":"secret","roles":["readWrite"]}`)
	mine, busy := connect(t, addr), connect(t, addr)
	for _, c := range []*client{mine, busy} {
		if e := c.loginAs("db", "u", "secret", ""); e.OK != 1 {
			t.Fatal(e)
		}
	}
	busy.inDatabase("db", `{"ping":1}`)
	for _, cmd := range []string{`{"currentOp":1,"$all":true,"$ownOps":true}`,
		`{"aggregate":1,"pipeline":[{"$currentOp":{"idleConnections":true}}],"cursor":{}}`} {
		ops := mine.running(cmd)
		if len(ops) != 2 {
			t.Errorf("%s lists %v", cmd, ops)
		}
		for _, op := range ops {
			if u := op.Lookup("effectiveUsers", "0", "user").StringValue(); u != "u" {
				t.Errorf("operations of %q", u)
			}
		}
	}
	for _, cmd := range []string{`{"currentOp":1}`,
		`{"aggregate":1,"pipeline":[{"$currentOp":{"allUsers":true}}],"cursor":{}}`} {
		if raw := mine.inDatabase("admin", cmd); raw.Lookup("code").Int32() != 13 {
			t.Errorf("%s: %v", cmd, raw)
		}
	}
	if ops := root.running(`{"currentOp":1,"$all":true}`); len(ops) != 3 {
		t.Errorf("the account sees %v", ops)
	}
	at, b := bsonx.Begin(nil)
	b = bsonx.End(bsonx.AppendString(bsonx.AppendString(b, "createUser", "v"), "pwd", "secret"), at)
	if shown := appendCommand(nil, "command", value.ObjectOf(b), true); strings.Contains(string(shown), "secret") {
		t.Errorf("a password is shown: %q", shown)
	}
	at, b = bsonx.Begin(nil)
	b = bsonx.End(bsonx.AppendString(bsonx.AppendString(b, "distinct", "c"), "key", "colour"), at)
	if shown := appendCommand(nil, "command", value.ObjectOf(b), true); !strings.Contains(string(shown), "colour") {
		t.Errorf("the field of distinct isn't shown: %q", shown)
	}
}
