package mongo

import (
	"encoding/json"
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
		// A text is a function, the body of one, or statements, of which the last has the value.
		{`{"count":"c","query":{"$where":"(this.n + 1) > 4"}}`, `{"$numberInt":"3"}`},
		{`{"count":"c","query":{"$where":"(this.n == 3) || (() => this.n == 9)()"}}`, `{"$numberInt":"2"}`},
		{`{"count":"c","query":{"$where":"\nvar x = sleep(1);\nx = obj.n; x == 3;\n"}}`, `{"$numberInt":"1"}`},
		{`{"count":"c","query":{"$where":"this.returned == null && this.k != 'return'"}}`, `{"$numberInt":"4"}`},
		{`{"count":"c","query":{"$where":"function is(x) { return x == 3 } is(this.n)"}}`, `{"$numberInt":"1"}`},
		{`{"count":"c","query":{"$where":"function is(x) { return x == 3 } return is(this.n)"}}`, `{"$numberInt":"1"}`},
		{`{"count":"c","query":{"$where":"function is() { return this.n == 3 };"}}`, `{"$numberInt":"1"}`},
		{`{"count":"c","query":{"$where":"(function () { return this.n == 3 })"}}`, `{"$numberInt":"1"}`},
		{`{"count":"c","query":{"$where":"(function (d) { return d.n == 3 })(this)"}}`, `{"$numberInt":"1"}`},
		{`{"count":"c","query":{"$where":"() => ObjectId() != null"}}`, `{"$numberInt":"4"}`},
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
		{`{"count":"c","query":{"$nor":[{"$where":"true"}]}}`, `{"$numberInt":"0"}`},
		{`{"count":"c","query":{"tags":{"$elemMatch":{"$where":"true"}}}}`,
			`BadValue: $elemMatch cannot contain $where expression`},
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
		{`{"mapReduce":"c","map":"function() { emit(this.k, this.n) }","reduce":"function(k, vs) { return Array.sum(vs) }",` +
			`"query":{"n":{"$lt":100}},"out":{"inline":1}}`,
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
		got := reply(t, db, x.command)
		if got != x.want && (!strings.HasSuffix(x.want, " ") || !strings.HasPrefix(got, x.want)) {
			t.Errorf("%s\n gives %s\n want  %s", x.command, got, x.want)
		}
	}
}

// TestJavaScriptHelpers: programs have the functions that the manual's page on $where lists.
func TestJavaScriptHelpers(t *testing.T) {
	db := scripted(t, true, 0)
	for _, x := range []struct{ program, want string }{
		{"[isNumber(1), isString('a'), isObject({}), isNumber('1')]", `[true,true,true,false]`},
		{"[hex_md5(''), hex_md5('orrery'), hex_md5('é'.repeat(70))]", `["d41d8cd98f00b204e9800998ecf8427e",` +
			`"4c868be82f1687c1a6154c90ee3a6ec4","1a4882ce74b2b88990002d004b290b13"]`},
		{"[Array.sum([1, 2, 4]), Array.avg([1, 2]), Array.contains([1], 1), Array.unique([1, 1]), Array.stdDev([1, 3])]",
			`[{"$numberDouble":"7.0"},{"$numberDouble":"1.5"},true,[{"$numberDouble":"1.0"}],{"$numberDouble":"1.0"}]`},
		{"[BinData(0, 'AAEC'), HexData(2, '000102'), MD5('00'.repeat(16))]",
			`[{"$binary":{"base64":"AAEC","subType":"00"}},{"$binary":{"base64":"AAEC","subType":"02"}},` +
				`{"$binary":{"base64":"AAAAAAAAAAAAAAAAAAAAAA==","subType":"05"}}]`},
		{"UUID('00112233-4455-6677-8899-aabbccddeeff')",
			`{"$binary":{"base64":"ABEiM0RVZneImaq7zN3u/w==","subType":"04"}}`},
		{"[UUID().subtype() === 4, BinData(0, 'AAECAw==').length() === 4, UUID().base64() === UUID().base64()]",
			`[true,true,false]`},
		{"[Timestamp(5, 6), MinKey, MaxKey(), DBRef('a', 'b')]",
			`[{"$timestamp":{"t":5,"i":6}},{"$minKey":1},{"$maxKey":1},{"$ref": "a","$id": "b"}]`},
		{"[ObjectId().str.length === 24, ObjectId().equals(ObjectId()), Date.now() - ObjectId().getTimestamp() < 9999]",
			`[true,false,true]`},
		{"ObjectId('x')", "JSInterpreterFailure: "},
		{"(assert(true), true)", "true"},
		{"assert(false, 'why')", "JSInterpreterFailure: "},
		{"doassert('why')", "JSInterpreterFailure: "},
		{"(print(1), printjson({}), printjsononeline({}), gc(), sleep(20), true)", "true"},
		{"tojson({b: [true, 'x'], c: ObjectId('0123456789abcdef01234567')})",
			`"{ \"b\" : [ true, \"x\" ], \"c\" : ObjectId(\"0123456789abcdef01234567\") }"`},
		{"tojson({a: new Date(0), b: {c: [1]}, long: 'x'.repeat(60)})",
			`"{\n\t\"a\" : ISODate(\"1970-01-01T00:00:00Z\"),\n\t\"b\" : {\n\t\t\"c\" : [\n\t\t\t1\n\t\t]\n\t},\n` +
				`\t\"long\" : \"` + strings.Repeat("x", 60) + `\"\n}"`},
		{"tojsononeline({b: {c: [1, 2]}, long: 'x'.repeat(80)})",
			`"{ \"b\" : { \"c\" : [ 1, 2 ] }, \"long\" : \"` + strings.Repeat("x", 80) + `\" }"`},
		{"tojson([NumberLong('5'), NumberLong('9007199254740993'), undefined, []])",
			`"[ NumberLong(5), NumberLong(\"9007199254740993\"), undefined, [ ] ]"`},
		{"tojson(MinKey)", `"{ \"$minKey\" : 1 }"`},
	} {
		program, _ := json.Marshal("function() { return (" + x.program + ") }")
		got := reply(t, db, `{"aggregate":"c","pipeline":[{"$match":{"_id":1}},{"$project":{"_id":0,"x":{"$function":`+
			`{"body":`+string(program)+`,"args":[],"lang":"js"}}}}],"cursor":{}}`)
		got = strings.TrimSuffix(strings.TrimPrefix(got, `[{"x": `), "}]")
		if got != x.want && (!strings.HasSuffix(x.want, " ") || !strings.HasPrefix(got, x.want)) {
			t.Errorf("%s\n gives %s\n want  %s", x.program, got, x.want)
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
