package mongoapi

import (
	"context"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/mongoapi/internal/mtest"
)

// TestExplainStages runs testdata/explain.txt. "run" runs commands, one a line, and waits until the index is built.
// "explain" explains a command, and shows the stages of the winning plan, with the whole stage of each index.
func TestExplainStages(t *testing.T) {
	s := newTestServer(t, Options{})
	c := newConn(t, s, true)
	command := func(text string) bson.D {
		var d bson.D
		if err := bson.UnmarshalExtJSON([]byte(text), false, &d); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return d
	}
	datadriven.RunTest(t, "testdata/explain.txt", func(t *testing.T, d *datadriven.TestData) string {
		if d.Cmd == "run" {
			for _, l := range mtest.Lines(d.Input) {
				must(t, c, command(l))
			}
			coll, err := s.eng.Container("db", "c")
			if err == nil {
				err = coll.WaitIndex(context.Background())
			}
			if err != nil {
				t.Fatal(err)
			}
			return ""
		}
		r := must(t, c, bson.D{{Key: "explain", Value: command(d.Input)}, {Key: "verbosity", Value: "queryPlanner"}})
		var out strings.Builder
		writeStages(&out, r.Lookup("queryPlanner", "winningPlan").Document())
		return out.String()
	})
}

// writeStages writes a line for a stage and each stage below it.
func writeStages(out *strings.Builder, stage bson.Raw) {
	name := stage.Lookup("stage").StringValue()
	out.WriteString(name)
	if name == "IXSCAN" {
		var fields []string
		if l, err := stage.LookupErr("collation", "locale"); err == nil {
			fields = append(fields, "under "+l.StringValue())
		}
		for _, f := range []string{"keyPattern", "indexName", "isMultiKey", "direction", "indexBounds"} {
			fields = append(fields, stage.Lookup(f).String())
		}
		out.WriteString(" " + strings.Join(fields, " "))
	} else if v := stage.Lookup("direction"); v.Type == bson.TypeString {
		out.WriteString(" " + v.StringValue())
	}
	out.WriteByte('\n')
	if in, ok := stage.Lookup("inputStage").DocumentOK(); ok {
		writeStages(out, in)
	}
	if ins, ok := stage.Lookup("inputStages").ArrayOK(); ok {
		vs, _ := ins.Values()
		for _, v := range vs {
			writeStages(out, v.Document())
		}
	}
}

// TestExplainRuns: without a verbosity the query runs, as with the greatest one.
func TestExplainRuns(t *testing.T) {
	c := newConn(t, newTestServer(t, Options{}), true)
	must(t, c, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 1}}}}})
	for verbosity, want := range map[string]bool{"": true, "allPlansExecution": true, "queryPlanner": false} {
		cmd := bson.D{{Key: "explain", Value: bson.D{{Key: "find", Value: "c"}}}}
		if verbosity != "" {
			cmd = append(cmd, bson.E{Key: "verbosity", Value: verbosity})
		}
		if _, err := must(t, c, cmd).LookupErr("executionStats"); (err == nil) != want {
			t.Errorf("verbosity %q: the statistics are there: %v", verbosity, err == nil)
		}
	}
}
