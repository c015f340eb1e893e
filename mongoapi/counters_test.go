package mongoapi

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestCounters: serverStatus counts statements, documents, commands and errors, not just messages.
func TestCounters(t *testing.T) {
	_, addr := serve(t, Options{MaxConnections: 7}, nil)
	c := connect(t, addr)
	for _, text := range []string{
		`{"insert":"c","documents":[{"_id":1,"a":1},{"_id":2,"a":1},{"_id":3}]}`,
		`{"insert":"c","documents":[{"_id":1},{"_id":4},{"_id":5}],"ordered":false}`, // one exists
		`{"update":"c","updates":[{"q":{"a":1},"u":{"$set":{"b":1}},"multi":true},` +
			`{"q":{"_id":9},"u":{"$set":{"b":1}},"upsert":true},{"q":{"_id":10},"u":{"$set":{"b":1}}}]}`,
		`{"update":"c","updates":[{"q":{"_id":1},"u":{"$nope":1}}]}`,
		`{"delete":"c","deletes":[{"q":{"_id":5},"limit":1},{"q":{"_id":6},"limit":1}]}`,
		`{"delete":"none","deletes":[{"q":{},"limit":0}]}`,
		`{"findAndModify":"c","query":{"_id":4},"remove":true}`,
		`{"findandmodify":"c","query":{"_id":3},"update":{"$set":{"b":2}}}`,
		`{"find":"c","batchSize":2}`,
		`{"find":"c","filter":{"_id":1}}`,
		`{"find":"c","filter":{"$nope":1}}`,
		`{"aggregate":"c","pipeline":[{"$match":{"a":1}}],"cursor":{}}`,
		`{"nope":1}`,
		`{"insert":"c","documents":[{"_id":20}],"lsid":{"id":{"$binary":{"base64":"AAAAAAAAAAAAAAAAAAAAAA==",` +
			`"subType":"04"}}},"txnNumber":{"$numberLong":"1"}}`,
		`{"insert":"c","documents":[{"_id":20}],"lsid":{"id":{"$binary":{"base64":"AAAAAAAAAAAAAAAAAAAAAA==",` +
			`"subType":"04"}}},"txnNumber":{"$numberLong":"1"}}`, // repeated
	} {
		c.inDatabase("db", text)
	}
	now := c.inDatabase("admin", `{"serverStatus":1}`)
	for path, want := range map[string]int64{
		"opcounters.insert":                             7, // the repeated command isn't executed
		"opcounters.update":                             5,
		"opcounters.delete":                             4,
		"opcounters.query":                              4,
		"opcountersRepl.insert":                         0,
		"metrics.document.inserted":                     7,
		"metrics.document.updated":                      3,
		"metrics.document.deleted":                      2,
		"metrics.document.returned":                     5,
		"metrics.queryExecutor.scanned":                 -1,
		"metrics.queryExecutor.scannedObjects":          -1,
		"metrics.commands.insert.total":                 4,
		"metrics.commands.insert.failed":                1,
		"metrics.commands.findAndModify.total":          2,
		"metrics.commands.find.total":                   3,
		"metrics.commands.find.failed":                  1,
		"metrics.commands.serverStatus.total":           0,
		"metrics.commands.<UNKNOWN>":                    1,
		"metrics.cursor.totalOpened":                    1,
		"metrics.cursor.open.total":                     1,
		"metrics.cursor.open.pinned":                    0,
		"asserts.user":                                  4,
		"asserts.regular":                               0,
		"transactions.retriedCommandsCount":             1,
		"transactions.retriedStatementsCount":           1,
		"logicalSessionRecordCache.activeSessionsCount": 1,
		"connections.current":                           1,
		"connections.available":                         6,
	} {
		v, err := now.LookupErr(strings.Split(path, ".")...)
		if err != nil {
			t.Errorf("%s: %v", path, err)
		} else if got := v.AsInt64(); got != want && (want >= 0 || got < 5) { // below 0: the plans decide

			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
	if n := now.Lookup("opLatencies", "writes", "ops").Int64(); n != 10 {
		t.Errorf("%d writes in opLatencies", n)
	}
	less := c.inDatabase("admin", `{"serverStatus":1,"metrics":0,"opcounters":false,"repl":1}`)
	for name, there := range map[string]bool{"metrics": false, "opcounters": false, "repl": true, "mem": true} {
		if _, err := less.LookupErr(name); (err == nil) != there {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTransactionCounters: transactions by how they have ended.
func TestTransactionCounters(t *testing.T) {
	_, addr := serve(t, Options{}, nil)
	c := connect(t, addr)
	inside := func(id int, n int, text string) bson.Raw {
		var d bson.D
		if err := bson.UnmarshalExtJSON([]byte(text), false, &d); err != nil {
			t.Fatal(err)
		}
		d = append(d, bson.E{Key: "lsid", Value: bson.D{{Key: "id", Value: bson.Binary{Subtype: 4,
			Data: append(make([]byte, 15), byte(id))}}}}, bson.E{Key: "txnNumber", Value: int64(n)},
			bson.E{Key: "autocommit", Value: false})
		db := "db"
		if strings.Contains(text, "Transaction\":1") {
			db = "admin"
		}
		c.send(append(d, bson.E{Key: "$db", Value: db}))
		raw, err := c.recv()
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	c.inDatabase("db", `{"create":"c"}`)
	insert := `{"insert":"c","documents":[{"_id":1}],"startTransaction":true}`
	inside(1, 1, insert)
	inside(1, 1, `{"commitTransaction":1}`)
	inside(2, 1, insert) // aborted by its error: the document exists
	inside(3, 1, strings.Replace(insert, `:1}`, `:3}`, 1))
	inside(3, 1, `{"abortTransaction":1}`)
	inside(4, 1, strings.Replace(insert, `:1}`, `:4}`, 1))
	now := c.inDatabase("admin", `{"serverStatus":1}`).Lookup("transactions").Document()
	for name, want := range map[string]int64{"totalStarted": 4, "totalCommitted": 1, "totalAborted": 2,
		"currentOpen": 1, "currentActive": 0, "currentInactive": 1} {
		if got := now.Lookup(name).Int64(); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}
