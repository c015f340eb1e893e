package mongoapi

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/mongoapi/internal/mtest"
)

// TestCommands runs testdata/commands. "server" starts a server, with its options as arguments; "run" sends commands,
// one a line, and prints the replies without their times. "closed" stands for a connection that ends without a reply.
func TestCommands(t *testing.T) {
	datadriven.Walk(t, "testdata/commands", func(t *testing.T, path string) {
		var addr string
		var c *client
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "server" {
				_, addr = serve(t, Options{Standalone: d.HasArg("standalone"), TestCommands: d.HasArg("test-commands"),
					Advertise: "db.example:27017"}, nil)
				c = connect(t, addr)
				return ""
			}
			var b strings.Builder
			for _, l := range mtest.Lines(d.Input) {
				c.send(command1(t, l))
				raw, err := c.recv()
				if err != nil {
					b.WriteString("closed\n")
					c = connect(t, addr)
					continue
				}
				b.WriteString(shown(t, raw) + "\n")
			}
			return b.String()
		})
	})
}

// command1 returns a command. Its database is admin for what runs only there, and db otherwise.
func command1(t *testing.T, text string) bson.D {
	t.Helper()
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(text), false, &d); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	db := "db"
	if d[0].Value == oplogName {
		db = "local"
	}
	switch k := d[0].Key; {
	case k == "configureFailPoint", k == "renameCollection", k == "shardCollection", strings.HasPrefix(k, "replSet"):
		db = "admin"
	}
	return append(d, bson.E{Key: "$db", Value: db})
}

// untold are the fields of replies that differ from run to run.
var untold = map[string]bool{"operationTime": true, "lastWrite": true, "$clusterTime": true, "localTime": true,
	"connectionId": true, "date": true}

// shown returns a reply without the fields of untold.
func shown(t *testing.T, raw bson.Raw) string {
	t.Helper()
	var d, out bson.D
	if err := bson.Unmarshal(raw, &d); err != nil {
		t.Fatal(err)
	}
	for _, e := range d {
		if !untold[e.Key] {
			out = append(out, e)
		}
	}
	b, err := bson.MarshalExtJSON(out, false, false)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
