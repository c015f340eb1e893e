package mongo

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	main "github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/conformance/harness"
)

// scripted starts a server that runs JavaScript, and returns a database with some documents.
func scripted(t *testing.T, on bool, limit time.Duration) *mongo.Database {
	t.Helper()
	cfg := main.Ephemeral()
	cfg.MongoDoor.JavaScript, cfg.ScriptMemory = on, 64
	if limit > 0 {
		cfg.ScriptTime = limit
	}
	cfg.Strict, cfg.Logger = nil, slog.New(slog.DiscardHandler)
	s := harness.StartWith(t, cfg)
	db := s.Mongo.Database("db")
	_, err := db.Collection("c").InsertMany(bg, []any{
		bson.D{{Key: "_id", Value: 1}, {Key: "k", Value: "a"}, {Key: "n", Value: 5},
			{Key: "tags", Value: bson.A{"x", "y"}}},
		bson.D{{Key: "_id", Value: 2}, {Key: "k", Value: "b"}, {Key: "n", Value: 3}, {Key: "tags", Value: bson.A{"x"}}},
		bson.D{{Key: "_id", Value: 3}, {Key: "k", Value: "a"}, {Key: "n", Value: 9}, {Key: "tags", Value: bson.A{}}},
		bson.D{{Key: "_id", Value: 4}, {Key: "k", Value: "c"}, {Key: "n", Value: int64(1) << 60},
			{Key: "at", Value: bson.NewDateTimeFromTime(time.UnixMilli(86400000))}},
	})
	must(t, err)
	return db
}

// reply runs a command and returns the field of its reply that has the result, or its error.
func reply(t *testing.T, db *mongo.Database, command string) string {
	t.Helper()
	var d bson.D
	must(t, bson.UnmarshalExtJSON([]byte(command), false, &d))
	raw, err := db.RunCommand(bg, d).Raw()
	var failed mongo.CommandError
	if errors.As(err, &failed) {
		return failed.Name + ": " + failed.Message
	}
	must(t, err)
	for _, path := range [][]string{{"cursor", "firstBatch"}, {"results"}, {"n"}, {"result"}} {
		if v, err := raw.LookupErr(path...); err == nil {
			return v.String()
		}
	}
	return raw.String()
}

// TestJavaScript runs programs of clients. Sources: the pages of $where, $function, $accumulator and mapReduce in the
// MongoDB 7.0 manual.
func TestJavaScript(t *testing.T) {
	db := scripted(t, true, 0)
	for _, x := range []struct{ command, want string }{
		{`{"count":"c","query":{"$where":"this.n > 4"}}`, `{"$numberInt":"3"}`},
		{`{"count":"c","query":{"$where":"function() { return obj.k === 'a' }"}}`, `{"$numberInt":"2"}`},
		{`{"count":"c","query":{"$where":"var x = this.n; return x == 3"}}`, `{"$numberInt":"1"}`},
		{`{"count":"c","query":{"k":"a","$where":{"$code":"this.tags.length == 0"}}}`, `{"$numberInt":"1"}`},
		// Programs aren't in strict mode: a variable needs no declaration, with and octal numbers are allowed.
		{`{"count":"c","query":{"$where":"s = 0; for (p in this) { s++ } return s == 4"}}`, `{"$numberInt":"4"}`},
		{`{"count":"c","query":{"$where":"with (this) { return n == 05 }"}}`, `{"$numberInt":"1"}`},
		{`{"count":"c","query":{"$where":"return typeof s == 'undefined'"}}`, `{"$numberInt":"4"}`},
		{`{"count":"c","query":{"$where":"'use strict'; s = 1; return true"}}`, `JSInterpreterFailure: `},
		{`{"count":"c","query":{"$where":{"$code":"this.n == limit","$scope":{"limit":9}}}}`,
			`Location4649201: $where no `},
		{`{"count":"c","query":{"$where":"this.at instanceof Date && this.at.getTime() == 86400000"}}`,
			`{"$numberInt":"1"}`},
		{`{"count":"c","query":{"$where":"this.n instanceof NumberLong"}}`, `{"$numberInt":"1"}`},
		{`{"count":"c","query":{"$where":"this.none.x == 1"}}`, `JSInterpreterFailure: `},
		{`{"count":"c","query":{"$where":"var t = Date.now(); sleep(20); return Date.now() - t >= 20"}}`,
			`{"$numberInt":"4"}`},
		{`{"count":"c","query":{"$where":"isNumber(this._id) && isString(this.k) && isObject(this.tags)"}}`,
			`{"$numberInt":"3"}`},
		{`{"count":"c","query":{"$where":"assert(this.n < 3, 'three'); return true"}}`, `JSInterpreterFailure: `},
		{`{"count":"c","query":{"$where":"this is no program"}}`, `JSInterpreterFailure: `},
		{`{"count":"c","query":{"$where":5}}`, `BadValue: $where got bad type`},
		{`{"count":"c","query":{"$nor":[{"$where":"true"}]}}`, `BadValue: $where can only be applied`},
		{`{"aggregate":"c","pipeline":[{"$match":{"_id":1}},{"$project":{"x":{"$function":{"body":"function(n, t) { return n * ` +
			`t.length }","args":["$n","$tags"],"lang":"js"}}}}],"cursor":{}}`,
			`[{"_id": {"$numberInt":"1"},"x": {"$numberDouble":"10.0"}}]`},
		{`{"aggregate":"c","pipeline":[{"$match":{"_id":4}},{"$project":{"_id":0,"x":{"$function":{"body":"(n, d) => [n, d, ` +
			`null, undefined, NaN, /a/i, {a: ObjectId('0123456789abcdef01234567')}]","args":["$n","$at"],"lang":"js"}}}}],` +
			`"cursor":{}}`, `[{"x": [{"$numberLong":"1152921504606846976"},{"$date":{"$numberLong":"86400000"}},null,` +
			`null,{"$numberDouble":"NaN"},{"$regularExpression":{"pattern":"a","options":"i"}},` +
			`{"a": {"$oid":"0123456789abcdef01234567"}}]}]`},
		{`{"aggregate":"c","pipeline":[{"$project":{"x":{"$function":{"args":[],"lang":"js"}}}}],"cursor":{}}`,
			`Location31260: `},
		{`{"aggregate":"c","pipeline":[{"$project":{"x":{"$function":{"body":"f","args":[],"lang":"lua"}}}}],"cursor":{}}`,
			`Location31419: `},
		{`{"aggregate":"c","pipeline":[{"$group":{"_id":"$k","s":{"$accumulator":{"init":"function(from) { return {n: 0, sum: ` +
			`from} }","initArgs":[100],"accumulate":"function(s, n) { return {n: s.n + 1, sum: s.sum + n} }",` +
			`"accumulateArgs":["$n"],"merge":"function(a, b) { return {n: a.n + b.n, sum: a.sum + b.sum} }",` +
			`"finalize":"function(s) { return s.sum / s.n }","lang":"js"}}}},{"$match":{"_id":"a"}}],"cursor":{}}`,
			`[{"_id": "a","s": {"$numberDouble":"57.0"}}]`},
		{`{"aggregate":"c","pipeline":[{"$group":{"_id":"$k","s":{"$accumulator":{"init":"f"}}}}],"cursor":{}}`,
			`Location4544707: `},
		{`{"mapReduce":"c","map":"function() { emit(this.k, this.n) }","reduce":"function(k, vs) { return Array.sum ? 0 : ` +
			`vs.reduce((a, b) => a + b) }","query":{"n":{"$lt":100}},"out":{"inline":1}}`,
			`[{"_id": "a","value": {"$numberDouble":"14.0"}},{"_id": "b","value": {"$numberDouble":"3.0"}}]`},
		{`{"mapReduce":"c","map":"function() { emit(1, {n: this.n * by}) }","reduce":"function(k, vs) { return {n: vs.reduce(` +
			`(a, b) => a + b.n, 0)} }","finalize":"function(k, v) { v.k = k; return v }","scope":{"by":2},"sort":{"n":-1},` +
			`"query":{"n":{"$lt":100}},"limit":2,"out":"totals"}`, `"totals"`},
		{`{"find":"totals"}`, `[{"_id": {"$numberDouble":"1.0"},"value": {"n": {"$numberDouble":"28.0"},` +
			`"k": {"$numberDouble":"1.0"}}}]`},
		{`{"mapReduce":"c","map":"function() { emit(1, {n: 1}) }","reduce":"function(k, vs) { return {n: vs.reduce((a, b) => ` +
			`a + b.n, 0)} }","out":{"reduce":"totals"}}`, `"totals"`},
		{`{"find":"totals"}`, `[{"_id": {"$numberDouble":"1.0"},"value": {"n": {"$numberDouble":"32.0"}}}]`},
		{`{"mapReduce":"c","map":"f","out":{"inline":1}}`, `Location40414: `},
		{`{"mapReduce":"c","map":"f","reduce":"f","out":{"x":1}}`, `Location40415: `},
		{`{"mapReduce":"none","map":"f","reduce":"f","out":{"inline":1}}`, `NamespaceNotFound: `},
	} {
		if got := reply(t, db, x.command); got != x.want && (!strings.HasSuffix(x.want, " ") &&
			!strings.HasSuffix(x.want, "applied") || !strings.HasPrefix(got, x.want)) {
			t.Errorf("%s\n gives %s\n want  %s", x.command, got, x.want)
		}
	}
}

// TestHostileJavaScript: a program that takes too much time or memory ends, and the server goes on.
func TestHostileJavaScript(t *testing.T) {
	db := scripted(t, true, time.Second)
	for program, want := range map[string]string{
		`for (;;) {}`:                             "MaxTimeMSExpired: ",
		`'x'.repeat(2**31).length`:                "JSInterpreterFailure: ",
		`/^(?=a)(a+)+$/.test('a'.repeat(60)+'b')`: "MaxTimeMSExpired: ",
		`(function f() { f() })()`:                "JSInterpreterFailure: ",
	} {
		began := time.Now()
		got := reply(t, db, `{"count":"c","query":{"$where":"return (function() { `+program+` })()"}}`)
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", program, got)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%s took %v", program, took)
		}
		if got := reply(t, db, `{"count":"c","query":{"$where":"this.n == 3"}}`); got != `{"$numberInt":"1"}` {
			t.Errorf("after %s: %s", program, got)
		}
	}
}

// TestNoJavaScript: without the flag programs are refused.
func TestNoJavaScript(t *testing.T) {
	db := scripted(t, false, 0)
	const off = "Location31264: Cannot run server-side javascript without the javascript engine enabled"
	for command, want := range map[string]string{
		`{"count":"c","query":{"$where":"true"}}`:                     "BadValue: no globalScriptEngine in $where parsing",
		`{"mapReduce":"c","map":"f","reduce":"f","out":{"inline":1}}`: off,
		`{"aggregate":"c","pipeline":[{"$project":{"x":{"$function":{"body":"f","args":[],"lang":"js"}}}}],"cursor":{}}`: "Loca" +
			"tion31264: PlanExecutor error during aggregation :: caused by :: " + off[len("Location31264: "):],
	} {
		if got := reply(t, db, command); got != want {
			t.Errorf("%s\n gives %s\n want  %s", command, got, want)
		}
	}
}
