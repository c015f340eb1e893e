package mongoapi

import (
	"context"
	"errors"
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
			colls, err := s.eng.Containers("db")
			for _, coll := range colls {
				err = errors.Join(err, coll.WaitIndex(context.Background()))
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
	if name == "IXSCAN" || name == "DISTINCT_SCAN" {
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

// TestExplainVerbosity tests that the command explain runs the query unless it is told not to, and that aggregate with
// explain doesn't.
func TestExplainVerbosity(t *testing.T) {
	c := newConn(t, newTestServer(t, Options{}), true)
	must(t, c, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "a", Value: 1}}}}})
	find := bson.D{{Key: "find", Value: "c"}}
	for i, x := range []struct {
		cmd bson.D
		ran bool
	}{
		{bson.D{{Key: "explain", Value: find}}, true},
		{bson.D{{Key: "explain", Value: find}, {Key: "verbosity", Value: nil}}, true},
		{bson.D{{Key: "explain", Value: find}, {Key: "verbosity", Value: "executionStats"}}, true},
		{bson.D{{Key: "explain", Value: find}, {Key: "verbosity", Value: "queryPlanner"}}, false},
		{bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{}}, {Key: "explain", Value: true}},
			false},
	} {
		n, ok := must(t, c, x.cmd).Lookup("executionStats", "nReturned").AsInt64OK()
		if ok != x.ran || ok && n != 1 {
			t.Errorf("%d: %v: nReturned %d, %v; want it: %v", i, x.cmd, n, ok, x.ran)
		}
	}
}

// TestExplainOthers tests the parts of explain for aggregate and distinct, without and with a run.
func TestExplainOthers(t *testing.T) {
	c := newConn(t, newTestServer(t, Options{}), true)
	docs := bson.A{}
	for i := range 100 {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "a", Value: i % 5}})
	}
	must(t, c, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: docs}})
	must(t, c, bson.D{{Key: "createIndexes", Value: "c"}, {Key: "indexes", Value: bson.A{bson.D{
		{Key: "key", Value: bson.D{{Key: "a", Value: 1}}}, {Key: "name", Value: "a_1"}}}}})
	for text, want := range map[string]struct {
		stages   string
		returned int64
		docs     int64
	}{
		`{"aggregate":"c","pipeline":[{"$match":{"a":3}},{"$count":"n"}],"cursor":{}}`: {
			"PROJECTION_COVERED IXSCAN", 20, 0},
		`{"aggregate":"c","pipeline":[{"$match":{"a":{"$gt":0}}},{"$group":{"_id":"$a"}}],"cursor":{}}`: {
			"PROJECTION_COVERED IXSCAN", 80, 0},
		`{"aggregate":"c","pipeline":[{"$match":{"a":3}},{"$skip":2},{"$limit":7}],"cursor":{}}`: {
			"LIMIT FETCH IXSCAN", 9, 9},
		`{"aggregate":"c","pipeline":[{"$match":{"a":3}},{"$limit":7}],"cursor":{}}`: {"LIMIT FETCH IXSCAN", 7, 7},
		`{"aggregate":"c","pipeline":[],"cursor":{}}`:                                {"COLLSCAN", 100, 100},
		// the condition that a $lookup with variables has on its collection
		`{"aggregate":"c","pipeline":[{"$match":{"$expr":{"$and":[{"$eq":[3,"$a"]}]}}}],"cursor":{}}`: {
			"FETCH IXSCAN", 20, 20},
		`{"aggregate":"c","pipeline":[{"$match":{"$expr":{"$in":["$a",[3,4,9]]}}}],"cursor":{}}`: {
			"FETCH IXSCAN", 40, 40},
		// three values in each of four partitions
		`{"distinct":"c","key":"a","query":{"a":{"$gt":1}}}`: {"PROJECTION_COVERED DISTINCT_SCAN", 12, 0},
		`{"distinct":"c","key":"a","query":{"_id":7}}`:       {"IDHACK", 1, 1},
	} {
		var d bson.D
		if err := bson.UnmarshalExtJSON([]byte(text), false, &d); err != nil {
			t.Fatal(err)
		}
		for _, verbosity := range []string{"queryPlanner", "executionStats"} {
			r := must(t, c, bson.D{{Key: "explain", Value: d}, {Key: "verbosity", Value: verbosity}})
			var got []string
			for at := r.Lookup("queryPlanner", "winningPlan").Document(); at != nil; {
				got = append(got, at.Lookup("stage").StringValue())
				at, _ = at.Lookup("inputStage").DocumentOK()
			}
			if strings.Join(got, " ") != want.stages || r.Lookup("explainVersion").StringValue() != "1" ||
				r.Lookup("queryPlanner", "namespace").StringValue() != "db.c" ||
				r.Lookup("queryPlanner", "parsedQuery").Type != bson.TypeEmbeddedDocument ||
				r.Lookup("queryPlanner", "rejectedPlans").Type != bson.TypeArray ||
				r.Lookup("command", d[0].Key).StringValue() != "c" ||
				r.Lookup("serverInfo", "version").StringValue() != "7.0.0" {
				t.Errorf("%s has the stages %s: %s", text, got, r)
			}
			stats, ran := r.Lookup("executionStats").DocumentOK()
			if ran != (verbosity == "executionStats") {
				t.Errorf("%s, %s: executionStats: %v", text, verbosity, ran)
			}
			if ran && (!stats.Lookup("executionSuccess").Boolean() ||
				stats.Lookup("nReturned").Int64() != want.returned ||
				stats.Lookup("totalDocsExamined").Int64() != want.docs ||
				stats.Lookup("executionStages", "stage").StringValue() != got[0]) {
				t.Errorf("%s has the figures %s", text, stats)
			}
		}
	}
}
