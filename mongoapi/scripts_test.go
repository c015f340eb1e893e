package mongoapi

import (
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/mongoapi/internal/mtest"
)

// TestCommands runs testdata/commands. "server" starts a server, with its options as arguments; "as" connects as a user
// of a database, whose password is "secret", or as the account; "run" sends commands, one a line, and prints the
// replies without their times. "closed" stands for a connection that ends without a reply.
func TestCommands(t *testing.T) {
	datadriven.Walk(t, "testdata/commands", func(t *testing.T, path string) {
		var addr string
		var c *client
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "server" {
				_, addr = serve(t, Options{Standalone: d.HasArg("standalone"), TestCommands: d.HasArg("test-commands"),
					Auth: d.HasArg("auth"), Strict: d.HasArg("strict"), Advertise: "db.example:27017",
					Release: value1(t, d, "version")}, nil)
				c = connect(t, addr)
				if d.HasArg("auth") {
					c.login()
				}
				return ""
			}
			if d.Cmd == "as" {
				c = connect(t, addr)
				u := value1(t, d, "user")
				if u == "" {
					c.login()
					return ""
				}
				if e := c.loginAs(value1(t, d, "db"), u, "secret", value1(t, d, "mechanism")); e.OK != 1 {
					return e.Errmsg + "\n"
				}
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

// value1 returns the value of an argument; "" if there is none.
func value1(t *testing.T, d *datadriven.TestData, name string) (v string) {
	d.MaybeScanArgs(t, name, &v)
	return v
}

// command1 returns a command. Its database is the one that it names, admin for what runs only there, and db otherwise.
func command1(t *testing.T, text string) bson.D {
	t.Helper()
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(text), false, &d); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	for _, e := range d {
		if e.Key == "$db" {
			return d
		}
	}
	db := "db"
	if d[0].Value == oplogName {
		db = "local"
	}
	switch k := d[0].Key; {
	case k == "bulkWrite", k == "configureFailPoint", k == "renameCollection", k == "shardCollection",
		strings.HasPrefix(k, "replSet"):
		db = "admin"
	}
	return append(d, bson.E{Key: "$db", Value: db})
}

// untold are the fields of replies that differ from run to run.
var untold = map[string]bool{"operationTime": true, "lastWrite": true, "$clusterTime": true, "localTime": true,
	"buildEnvironment": true,
	"connectionId":     true, "localUpdateWallClockTime": true, "updateWallClockTime": true, "updateOpTime": true,
	"date": true, "host": true, "timeMillis": true, "topologyVersion": true}

// userID is the identifier of a user, which is random.
var userID = regexp.MustCompile(`"userId":\{[^}]*\}\},`)

// searchID is the identifier of a search index, and the time of its definition.
var searchID = regexp.MustCompile(`("id":)"[0-9a-f]{24}"|("createdAt":)\{[^}]*\}`)

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
	return searchID.ReplaceAllString(userID.ReplaceAllString(string(b), ""), `$1$2".."`)
}
