package model

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/conformance/harness"
)

// These tests run the object model of programs in the real engine over the real store, member by member:
// docs/compat/sql-scripts.md lists it.

// prelude is what the procedures and triggers of these tests begin with.
const prelude = `
	const A = JSON.parse(__.request.getValue("x-ms-documentdb-partitionkey"))[0], link = __.getAltLink();
	const doc = (id) => link + "/docs/" + id, set = (v) => __.response.setBody(v);
	const ok = (err) => { if (err) throw new Error(err.number, err.body); };
	const tried = (f) => { try { return f(); } catch (e) { return e.number + " " + e.message; } };
	const ids = (list) => list.map((d) => d.id).join("");
`

// seed are the items that each procedure finds in its partition.
const seed = `[
	{"id":"1","n":3,"name":"c","tags":["a","b"],"at":{"type":"Point","coordinates":[0,0]}},
	{"id":"2","n":1,"name":"a","tags":["c",["d"]],"at":{"type":"Point","coordinates":[0,1]}},
	{"id":"3","n":2,"name":"b"}]`

// procedure is a program with what it answers: a body, or a status and sub-status with a part of the message.
type procedure struct{ name, text, want string }

var contextMembers = []procedure{
	{"ErrorCodes", `set([ErrorCodes, Object.isFrozen(ErrorCodes)]);`, `[{"BadRequest":400,"Forbidden":403,` +
		`"NotFound":404,"Conflict":409,"PreconditionFailed":412,"RequestEntityTooLarge":413,"RetryWith":449,` +
		`"InternalServerError":500},true]`},
	{"Error", `const e = new Error(417, "x"), f = new Error("y");
		set([e.number, e.message, f.number === undefined, f.message, e instanceof Error]);`, `[417,"x",true,"y",true]`},
	{"number of an error", `throw new Error(417, "mine");`, `400/417 Exception = Error: mine`},
	{"__", `const c = getContext();
		set([Object.getPrototypeOf(__) === c.getCollection(), __.request === c.getRequest(),
			__.response === c.getResponse()]);`, `[true,true,true]`},
	{"environment", `set([typeof require, typeof setTimeout, typeof process, typeof Date.now(), typeof Math.random(),
		(function () { return this === undefined; })()]);`,
		`["undefined","undefined","undefined","number","number",true]`},
	{"arguments", `set([a, b, arguments.length]);`, `[{"x":[1]},"two",2]`},
	{"return", `return 5;`, ``},

	{"abort", `__.createDocument(link, {id: "left", author: A}, () => getContext().abort(new Error(417, "stop")));`,
		`400/417 stop`},
	{"abort at once", `__.createDocument(link, {id: "left", author: A}); getContext().abort(new Error("now"));
		set("not reached");`, `400/ now`},
	{"abort in a promise", `__.createDocument(link, {id: "left", author: A});
		return Promise.resolve().then(() => getContext().abort(new Error(418, "later")));`, `400/418 later`},
	{"abort isn't caught", `__.createDocument(link, {id: "left", author: A});
		try { getContext().abort(new Error(419, "caught?")); } catch (e) {}`, `400/419 caught?`},

	{"request", `const r = __.request;
		set([r.getOperationType(), r.getValue("X-MS-DocumentDB-PartitionKey"), r.getValue("none") === undefined,
			r.getValue("constructor") === undefined, r.getValue("authorization") === undefined, typeof r.setBody,
			typeof r.appendBody]);`, `["Execute","[\"request\"]",true,true,true,"undefined","undefined"]`},
	{"request is read-only", `const r = __.request;
		set([tried(() => r.setValue("Body", 1)), tried(() => r.appendValue("OperationType", 1)),
			tried(() => r.setValue("x-ms-documentdb-PartitionKey", "[]")), tried(() => r.setValue("x-ms-none", 1))]);`,
		`["403 Not a writable property: Body","403 Not a writable property: OperationType",` +
			`"403 Not a writable property: x-ms-documentdb-PartitionKey","400 Cannot set new values: x-ms-none"]`},
	{"response", `const r = __.response, seen = [r.getBody() === undefined];
		r.appendBody("a"); r.appendBody("b"); seen.push(r.getBody());
		r.setBody(1); r.appendBody(2); seen.push(r.getBody());
		r.setValue("Body", "x"); r.appendValue("Body", "y"); seen.push(r.getValue("Body"));
		seen.push(tried(() => r.setValue("x-ms-none", 1)), tried(() => r.appendValue("x-ms-none", 1)));
		seen.push(typeof r.getOperationType, typeof r.getMaxResourceQuota, typeof r.getResourceQuotaCurrentUsage);
		r.setBody(seen);`, `[true,"ab",3,"xy","400 Cannot set new values: x-ms-none",` +
		`"400 Cannot set new values: x-ms-none","undefined","undefined","undefined"]`},
	{"large response", `for (;;) __.response.appendBody("x".repeat(1000000));`,
		`400/413 Resulting message would be too large because of`},
}

var operations = []procedure{
	{"links", `const self = __.getSelfLink();
		set([link === "dbs/" + a + "/colls/library", /^dbs\/[^/]+\/colls\/[^/]+\/$/.test(self),
			__.readDocuments(self), __.readDocuments(link), __.readDocuments(link + "/")]);`,
		`[true,true,true,true,true]`},
	{"createDocument", `const made = __.createDocument(link, {id: "x", author: A}, {}, (err, d, info) => {
			__.readDocument(d._self, (err2, read) => {
				set([made, err === undefined, d.id, Object.keys(info).sort(), info.statusCode, info.notModified,
					info.etag === d._etag, read._etag === d._etag]);
			});
		});`, `[true,true,"x",["currentCollectionSizeInMB","etag","maxCollectionSizeInMB","notModified",` +
		`"statusCode"],201,false,true,true]`},
	{"createDocument of a text", `__.createDocument(link, JSON.stringify({id: "x", author: A, n: 5}),
		(err, d) => set([err === undefined, d.n]));`, `[true,5]`},
	{"ids are made", `const mine = {author: A}, guid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/, seen = [];
		for (const body of [mine, {id: "", author: A}, {id: null, author: A}, JSON.stringify(mine)]) {
			__.createDocument(link, body, (err, d) => { ok(err); seen.push(guid.test(d.id)); });
		}
		__.upsertDocument(link, mine, (err, d, info) => {
			ok(err); set([seen, guid.test(d.id), info.statusCode, "id" in mine]); });`,
		`[[true,true,true,true],true,201,false]`},
	{"disableAutomaticIdGeneration", `const o = {disableAutomaticIdGeneration: true};
		__.createDocument(link, {author: A}, o, (err) =>
			__.upsertDocument(link, {author: A}, o, (err2) => set([err.number, err2.number])));`, `[400,400]`},
	{"errors", `__.createDocument(link, {id: "1", author: A}, (err, d, info) =>
		set([err instanceof Error, err.number === ErrorCodes.Conflict, typeof err.body, d === undefined]));`,
		`[true,true,"string",true]`},
	{"error without a callback", `__.createDocument(link, {id: "left", author: A});
		__.createDocument(link, {id: "1", author: A});`, `400/409 `},
	{"indexAction", `__.createDocument(link, {id: "i", author: A, m: 1}, {indexAction: "include"}, ok);
		__.upsertDocument(link, {id: "d", author: A, m: 1}, {indexAction: "default"}, ok);
		__.createDocument(link, {id: "e", author: A, m: 1}, {indexAction: "exclude"}, ok);
		__.replaceDocument(doc("3"), {id: "3", author: A, m: 1}, {indexAction: "exclude"}, ok);
		__.createDocument(link, {id: "w", author: A}, {indexAction: "never"}, (wrong) =>
			__.queryDocuments(link, "SELECT * FROM c WHERE c.m = 1", (err, list) =>
				__.readDocument(doc("e"), (err2, e) => { ok(err2); set([wrong.number, ids(list), e.m]); })));`,
		`[400,"3ide",1]`}, // queries find an item that no index has
	{"upsertDocument", `__.upsertDocument(link, {id: "x", author: A, n: 1}, (err, d, info) => {
			ok(err);
			__.upsertDocument(link, {id: "x", author: A, n: 2}, {etag: "\"other\""}, (wrong, none) =>
				__.upsertDocument(link, {id: "x", author: A, n: 3}, {etag: d._etag}, (err, d3, info3) => {
					ok(err);
					set([info.statusCode, wrong.number, none === undefined, d3.n, info3.statusCode]);
				}));
		});`, `[201,412,true,3,200]`},
	{"replaceDocument", `__.readDocument(doc("1"), (err, d) => {
			d.n = 10;
			__.replaceDocument(d._self, d, {etag: "\"other\""}, (wrong) =>
				__.replaceDocument(d._self, d, {etag: d._etag}, (err, d2, info) => {
					ok(err);
					__.replaceDocument(doc("1"), JSON.stringify({id: "1", author: A, n: 11}), (err, d3) => {
						ok(err);
						set([wrong.number, d2.n, d2._etag !== d._etag, info.statusCode, d3.n, d3._self === d._self]);
					});
				}));
		});`, `[412,10,true,200,11,true]`},
	{"replaceDocument refuses", `__.replaceDocument(doc("none"), {id: "none", author: A}, (missing) =>
		__.replaceDocument(doc("1"), {id: "2", author: A}, (other) => set([missing.number, other.number])));`,
		`[404,400]`},
	{"deleteDocument", `__.deleteDocument(doc("1"), {etag: "\"other\""}, (wrong) =>
		__.readDocument(doc("1"), (err, d) =>
			__.deleteDocument(d._self, {etag: d._etag}, function (err, info) {
				const n = arguments.length;
				__.deleteDocument(doc("1"), (gone) =>
					set([wrong.number, err === undefined, info.statusCode, n, gone.number]));
			})));`, `[412,true,204,2,404]`},
	{"deleteDocument without a callback", `__.deleteDocument(doc("3"));
		__.queryDocuments(link, "SELECT * FROM c", (err, list) => set(ids(list)));`, `"12"`},
	{"deleteDocument of nothing", `__.deleteDocument(doc("3")); __.deleteDocument(doc("3"));`, `400/404 `},
	{"readDocument", `__.readDocument(doc("1"), (err, d, info) =>
		__.readDocument(doc("1"), {ifNoneMatch: d._etag}, (err2, none, same) =>
			__.readDocument(doc("1") + "/", {ifNoneMatch: "\"other\""}, (err3, again) =>
				set([d.n, info.statusCode, err2 === undefined, none === undefined, same.notModified, same.statusCode,
					again.n]))));`, `[3,200,true,true,true,304,3]`},
	{"readDocuments", `__.readDocuments(link, {pageSize: 2}, (err, list, info) =>
		__.readDocuments(__.getSelfLink(), {pageSize: 2, continuation: info.continuation}, (err2, rest, last) =>
			__.readDocuments(link, (err3, all) =>
				set([ids(list), typeof info.continuation, ids(rest), last.continuation === undefined, ids(all)]))));`,
		`["12","string","3",true,"123"]`},
	{"queryDocuments", `const q = {query: "SELECT * FROM c WHERE c.n < @n ORDER BY c.n",
			parameters: [{name: "@n", value: 10}]};
		__.queryDocuments(link, q, {pageSize: 2, enableScan: true, enableLowPrecisionOrderBy: true},
			(err, list, info) => {
				ok(err);
				__.queryDocuments(link, q, {continuation: info.continuation}, (err, rest, last) => {
					ok(err);
					__.queryDocuments(link, "SELECT VALUE COUNT(1) FROM c", (err, n) =>
						__.queryDocuments(link, "SELEC", (wrong) =>
							set([ids(list), ids(rest), last.continuation === undefined, n, wrong.number])));
				});
			});`, `["23","1",true,[3],400]`},
	{"ids are no URLs", `__.createDocument(link, {id: "a b", author: A}, ok);
		__.createDocument(link, {id: "a%20b", author: A}, ok);
		__.createDocument(link, {id: "100%", author: A}, ok);
		__.deleteDocument(doc("a%20b"), ok);
		__.readDocument(doc("100%"), ok);
		__.readDocument(doc("%31"), (wrong) =>
			__.queryDocuments(link, "SELECT * FROM c", (err, list) => set([wrong.number, ids(list)])));`,
		`[404,"123a b100%"]`},
	{"wrong calls", `set([() => __.createDocument(link), () => __.readDocument(), () => __.queryDocuments(link),
			() => __.readDocuments("dbs/x"), () => __.readDocument(link), () => __.readDocuments("dbs/x/colls/y"),
			() => __.readDocument("dbs/x/colls/y/docs/1"), () => __.createDocument(link, 5),
			() => __.readDocuments(link, 5), () => __.readDocuments(link, {}, 5)].map(tried));`,
		`["400 The function \"createDocument\" requires at least 2 argument(s) but was called with 1 argument(s).",` +
			`"400 The function \"readDocument\" requires at least 1 argument(s) but was called with 0 argument(s).",` +
			`"400 The function \"queryDocuments\" requires at least 2 argument(s) but was called with 1 ` +
			`argument(s).",` +
			`"400 Invalid collection link: \"dbs/x\".","400 Invalid document link: \"$LINK\".",` +
			`"400 Function is not allowed to operate on resources outside current collection. Make sure that the ` +
			`link provided, \"dbs/x/colls/y\", belongs to current collection.",` +
			`"400 Function is not allowed to operate on resources outside current collection. Make sure that the ` +
			`link provided, \"dbs/x/colls/y/docs/1\", belongs to current collection.",` +
			`"400 The document body must be an object or a string representing a JSON-serialized object.",` +
			`"400 The \"options\" parameter must be of type \"object\". Actual type is: \"number\".",` +
			`"400 The \"callback\" parameter must be of type \"function\". Actual type is: \"number\"."]`},
	{"another key", `__.createDocument(link, {id: "x", author: "another"}, (err) => set([err.number, err.body]));`,
		`[400,"Requests originating from scripts cannot reference partition keys other than the one for which client ` +
			`request was submitted."]`},
	{"attachments", `set(["readAttachment", "readAttachments", "queryAttachments", "createAttachment",
			"upsertAttachment", "replaceAttachment", "deleteAttachment"].map((name) =>
			tried(() => __[name](doc("1"), {})) === "400 The function \"" + name + "\" is not supported."));`,
		`[true,true,true,true,true,true,true]`},
	{"back-pressure", `const big = {id: "none", author: A, text: "x".repeat(1 << 20)};
		let n = 0;
		while (__.replaceDocument(doc("none"), big, () => {})) n++;
		const f = __.filter(() => true, () => {}), v = __.chain().filter(() => true).value(() => {});
		const further = ["filter", "map", "pluck", "flatten", "unwind", "sortBy", "sortByDescending", "value"];
		set([n > 10, __.createDocument(link, {author: A}), __.upsertDocument(link, {author: A}),
			__.readDocument(doc("1")), __.readDocuments(link), __.queryDocuments(link, "SELECT * FROM c"),
			__.deleteDocument(doc("1")), f.isAccepted, v.isAccepted, further.every((name) => v[name]() === v)]);`,
		`[true,false,false,false,false,false,false,false,false,true]`},
	{"back-pressure ends", `let n = 0;
		const big = {id: "none", author: A, text: "x".repeat(1 << 20)};
		while (__.replaceDocument(doc("none"), big, () => { if (--n === 0) set(__.readDocuments(link)); })) n++;`,
		`true`},
	{"promises", `async function all(list) {
			return Promise.all(list.map((id) => new Promise((resolve, reject) => {
				if (!__.readDocument(doc(id), (err, d) => err ? reject(err) : resolve(d))) reject(new Error("late"));
			})));
		}
		return all(["1", "2"]).then((list) => all(["none"]).catch((e) => set([ids(list), e.number])));`, `["12",404]`},
	{"rejected promise", `__.createDocument(link, {id: "left", author: A});
		return Promise.reject(new Error(417, "no"));`, `400/417 no`},
}

var queries = []procedure{
	{"filter", `const r = __.filter((d) => d.n > 1, (err, list, info) =>
		set([err === undefined, ids(list), info.continuation === undefined, r.isAccepted]));`, `[true,"13",true,true]`},
	{"filter without a callback", `__.filter((d) => d.id === "3").isAccepted || set("refused");`,
		`[{"id":"3","n":2,"name":"b",$SYSTEM}]`},
	{"map", `__.map((d) => d.tags && {t: d.tags.length}, {pageSize: 1}, (err, list, info) =>
		__.map((d) => d.n, {continuation: info.continuation}, (err2, rest) => set([list, rest])));`,
		`[[{"t":2}],[1,2]]`},
	{"pluck", `__.pluck("name", (err, list) => set([list, tried(() => __.pluck(5))]));`, `[["c","a","b"],` +
		`"400 The \"propertyName\" parameter of \"pluck\" must be of type \"string\". Actual type is: \"number\"."]`},
	{"flatten", `const c = __.chain().pluck("tags"), seen = [];
		c.flatten().value((err, list) => seen.push(list));
		c.flatten(false).value((err, list) => seen.push(list));
		c.flatten(true).value((err, list) => seen.push(list));
		__.flatten({pageSize: 1}, (err, list) => seen.push(ids(list)));
		__.flatten(undefined, {pageSize: 2}, (err, list) => seen.push(ids(list)));
		__.flatten(true, {pageSize: 1}, (err, list) => seen.push(ids(list)));
		__.flatten((err, list) => set(seen.concat(ids(list))));`,
		`[["a","b","c","d"],["a","b","c","d"],["a","b","c",["d"]],"1","12","1","123"]`},
	{"unwind", `const tags = (d) => d.tags, both = (d, t) => d.id + t, seen = [];
		__.unwind(tags, {}, (err, list) => seen.push(list));
		__.unwind(tags, undefined, {pageSize: 1}, (err, list) => seen.push(list));
		__.unwind(tags, both, (err, list) => seen.push(list));
		__.unwind(tags, both, {pageSize: 2}, (err, list) => seen.push(list));
		__.chain().unwind(tags, (d, t) => ({id: d.id, t: [t, t]})).unwind((p) => p.t, (p, t) => p.id + t)
			.value({pageSize: 4}, (err, list) => set(seen.concat([list])));`,
		`[["a","b","c",["d"]],["a"],["1a","1b","2c","2d"],["1a","1b"],["1a","1a","1b","1b"]]`},
	// As in the service, a callback can only follow options.
	{"unwind takes a second function as the selector", `__.unwind((d) => d.tags, (d, t, more) => d.id + t);`,
		`["1a","1b","2c","2d"]`},
	{"unwind refuses", `set([() => __.unwind(), () => __.unwind((d, e) => d), () => __.unwind((d) => d, (e) => e)]
		.map(tried));`, `["400 The \"innerCollectionSelector\" parameter of \"unwind\" must be of type \"function\". ` +
		`Actual type is: \"undefined\".","400 \"collectionSelector\" requires one argument.",` +
		`"400 \"resultSelector\" requires two arguments."]`},
	{"sortBy", `__.sortBy((d) => d.name, {pageSize: 2}, (err, list, info) =>
		__.sortBy((d) => d.name, {pageSize: 2, continuation: info.continuation}, (err2, rest, last) =>
			set([ids(list), ids(rest), last.continuation === undefined])));`, `["23","1",true]`},
	{"sortByDescending", `__.chain().sortByDescending((d) => d.n).value((err, list) =>
		__.chain().pluck("n").sortByDescending().value((err2, ns) => set([ids(list), ns])));`, `["132",[3,2,1]]`},
	{"chain", `const c = __.chain(), f = c.filter((d) => d.n > 1);
		const r = f.sortBy((d) => d.n).map((d) => d.name).value({pageSize: 1}, (err, list, info) =>
			f.sortBy((d) => d.n).map((d) => d.name).value((err2, rest) =>
				set([c.isAccepted, f.isAccepted, r.isAccepted, list, rest]),
			{continuation: info.continuation}));`, `[true,true,true,["b"],["c"]]`},
	{"chain refuses", `const t = 'When using "chain", ', c = __.chain(), p = (d) => d.tags;
		const o = {pageSize: 1}, cb = () => {};
		const callback = [() => c.filter(p, cb), () => c.flatten(cb), () => c.unwind(p, (d, e) => e, cb)];
		const options = [() => c.filter(p, o), () => c.sortBy(p, o), () => c.pluck("n", o), () => c.unwind(p, o)];
		set([callback.every((f) => tried(f) ===
				"400 " + t + 'the callback parameter can only be provided on the "value" function.'),
			options.every((f) => tried(f) ===
				"400 " + t + 'options can only be provided on the call to the "value" function.')]);`, `[true,true]`},
	{"value without a callback", `__.response.setBody("n: "); __.chain().pluck("n").value();`, `"n: [3,1,2]"`},
	{"proxy", `const least = 2, p = __.proxy({least: least});
		p.filter((d) => d.n >= least, (err, list) =>
			p.chain().filter((d) => d.n < least).value((err, rest) => {
				const made = p.createDocument(p.getSelfLink(), {id: "x", author: A});
				set([ids(list), ids(rest), made, p.captures, p.response === __.response, "captures" in __]);
			}));`, `["13","2",true,{"least":2},true,false]`},
	{"on the collection", `const c = getContext().getCollection(), n = 2;
		c.proxy({n: n}).filter((d) => d.n === n, (err, list) => c.chain().pluck("id").value((err2, rest) =>
			set([ids(list), rest, c.spatial.isValid({type: "Point", coordinates: [0, 0]})])));`,
		`["3",["1","2","3"],true]`},
	{"an exception reaches the callback", `__.filter((d) => d.none.x, (err, list) =>
		__.chain().map((d) => { throw new Error(417, "mine"); }).value((err2) =>
			set([err instanceof TypeError, list === undefined, err2.number])));`, `[true,true,417]`},
	{"an exception without a callback", `__.filter((d) => { throw new Error(417, "mine"); });`, `400/417 mine`},
	{"spatial", `const s = __.spatial, origin = {type: "Point", coordinates: [0, 0]};
		const beyond = {type: "Point", coordinates: [0, 91]};
		const area = {type: "Polygon", coordinates: [[[-1, -1], [1, -1], [1, 0.5], [-1, 0.5], [-1, -1]]]};
		__.filter((d) => d.at && s.distance(d.at, origin) > 100000, (err, far) =>
			__.filter((d) => d.at && s.within(d.at, area), (err, inside) =>
				__.filter((d) => d.at && s.intersects(area, d.at), (err, crossing) =>
					set([ids(far), ids(inside), ids(crossing), s.isValid(beyond), s.isValidDetailed(origin),
						s.isValidDetailed(beyond).valid, typeof s.isValidDetailed(beyond).reason]))));`,
		`["2","1","1",false,{"valid":true},false,"string"]`},
}

// run stores a procedure, executes it and removes it.
func (l *library) run(text, args, author string, headers ...string) answer {
	l.t.Helper()
	l.program("sprocs", "p", "function p(a, b) {"+prelude+text+"\n}", "")
	r := l.send("POST", "sprocs/p", args, author, headers...)
	if d := l.send("DELETE", "sprocs/p", "", ""); d.code != 204 {
		l.t.Errorf("%d %s", d.code, d.body)
	}
	return r
}

func (l *library) database() string { return strings.Split(l.url, "/")[4] }

// A procedure that fails leaves nothing.
func TestProgramObjects(t *testing.T) {
	l := newLibrary(t)
	whole := map[string][]procedure{"context": contextMembers, "operations": operations, "queries": queries}
	for part, list := range whole {
		for _, p := range list {
			t.Run(part+"/"+p.name, func(t *testing.T) {
				l := &library{l.ContainerClient, t, l.url}
				key := p.name
				made := l.run(`for (const d of a) __.createDocument(link, Object.assign(d, {author: A}), ok);`,
					"["+seed+"]", key)
				if made.code != 200 {
					t.Fatalf("%d %s", made.code, made.body)
				}
				args := `[` + string(marshal(t, l.database())) + `]`
				if p.name == "arguments" {
					args = `[{"x":[1]},"two"]`
				}
				r := l.run(p.text, args, key)
				if status, text, failing := strings.Cut(p.want, " "); failing && strings.HasPrefix(status, "400/") {
					var e struct{ Message string }
					ok(t, json.Unmarshal([]byte(r.body), &e))
					if got := fmt.Sprintf("%d/%s", r.code, r.h.Get("x-ms-substatus")); got != status ||
						!strings.Contains(e.Message, text) {
						t.Errorf("%s %s, want %s", got, e.Message, p.want)
					}
					same(t, harness.Query(t, l.ContainerClient, str(key), "SELECT VALUE COUNT(1) FROM c"), "[3]")
					return
				}
				want := strings.ReplaceAll(p.want, "$LINK", "dbs/"+l.database()+"/colls/library")
				before, after, members := strings.Cut(want, "$SYSTEM")
				fits := r.body == want
				if members {
					fits = strings.HasPrefix(r.body, before) && strings.HasSuffix(r.body, after)
				}
				if r.code != 200 || !fits {
					t.Errorf("%d/%s %s, want %s", r.code, r.h.Get("x-ms-substatus"), r.body, want)
				}
			})
		}
	}
}

// The log is in the reply only if the request asks for it, and also when the program fails.
func TestProgramLog(t *testing.T) {
	l := newLibrary(t)
	const results = "x-ms-documentdb-script-log-results"
	const text = `console.log("one"); console.log("%s of %s: 100%%", 1, "two"); console.log(3);`
	for _, c := range []struct{ text, asks, want string }{
		{text, "true", "one\n1 of two: 100%\n3"},
		{text, "false", ""},
		{text + `throw new Error("x");`, "true", "one\n1 of two: 100%\n3"},
		{`console.log("é"); try { console.log(1, 2); } catch (e) { console.log(e.number + " " + e.message); }`, "true",
			"é\n400 First argument to console.log should be a string containing zero or more substitution strings."},
	} {
		r := l.run(c.text, "", "k", "x-ms-documentdb-script-enable-logging", c.asks)
		if got, err := url.PathUnescape(r.h.Get(results)); err != nil || got != c.want {
			t.Errorf("%s: %d %q %v, want %q", c.text, r.code, got, err, c.want)
		}
	}
}

// trigger is a trigger with a write that it runs with: what the reply is, and the item's member seen afterwards.
type trigger struct {
	name, typ, text string
	method, path    string
	body            string // of the write
	want            string // a part of the reply; a status and sub-status first if it is none of 200 to 204
	seen            string
}

var triggers = []trigger{
	{"pre create", "Pre", `const r = getContext().getRequest(), d = r.getBody();
		d.seen = [r.getOperationType(), typeof d, typeof getContext().getResponse, "response" in __, r === __.request,
			r.getValue("Body") === d, r.getValue("OperationType")];
		r.setBody(d);`, "POST", "docs", `{"id":"9","author":"t"}`, `"id":"9"`,
		`["Create","object","undefined",false,true,true,"Create"]`},
	{"pre upsert", "Pre", `const r = __.request, d = r.getBody();
		d.seen = r.getOperationType(); r.setValue("Body", d);`,
		"UPSERT", "docs", `{"id":"1","author":"t"}`, `"seen":"Upsert"`, `"Upsert"`},
	{"pre replace", "Pre", `const r = __.request, d = r.getBody(); d.seen = r.getOperationType(); r.setBody(d);`,
		"PUT", "docs/1", `{"id":"1","author":"t"}`, `"seen":"Replace"`, `"Replace"`},
	{"pre delete", "Pre", `__.upsertDocument(link, {id: "seen", author: A, seen: __.request.getOperationType()}, ok);`,
		"DELETE", "docs/1", "", "", ""},
	{"pre changes only with setBody", "Pre", `__.request.getBody().seen = 1;`, "POST", "docs",
		`{"id":"9","author":"t","seen":0}`, `"seen":0`, `0`},
	{"pre writable", "Pre", `const r = __.request, d = r.getBody(), seen = [];
		r.setBody("a"); r.appendBody("b"); r.appendValue("Body", "c"); seen.push(r.getBody());
		seen.push(tried(() => r.setValue("OperationType", "x")), tried(() => r.setValue("x-ms-none", "x")));
		d.seen = seen; r.setBody(d);`, "POST", "docs", `{"id":"9","author":"t"}`, `"id":"9"`,
		`["abc","403 Not a writable property: OperationType","400 Cannot set new values: x-ms-none"]`},
	{"pre reads", "Pre", `__.readDocument(doc("1"), (err, d) => {
			ok(err); const b = __.request.getBody(); b.seen = d.n; __.request.setBody(b); });`,
		"POST", "docs", `{"id":"9","author":"t"}`, `"seen":3`, `3`},
	{"pre throws", "Pre", `__.createDocument(link, {id: "left", author: A}); throw new Error(417, "no");`, "POST",
		"docs", `{"id":"9","author":"t"}`, `400/417 no`, ""},
	{"pre aborts", "Pre", `getContext().abort(new Error(417, "no"));`, "POST", "docs", `{"id":"9","author":"t"}`,
		`400/417 no`, ""},
	{"pre query without a callback", "Pre", `__.filter((d) => true);`, "POST", "docs", `{"id":"9","author":"t"}`,
		`400/400 The callback function must be provided`, ""},
	{"post create", "Post", `const r = getContext().getResponse(), d = r.getBody(), q = getContext().getRequest();
		r.setBody([d.id, typeof d._etag, r.getOperationType(), q.getOperationType(), q.getBody().id, typeof q.setBody,
			r === __.response, r.getValue("Body") === d]);`, "POST", "docs", `{"id":"9","author":"t","seen":0}`,
		`["9","string","Create","Create","9","undefined",true,true]`, `0`},
	{"post quota", "Post", `const r = __.response, quota = r.getMaxResourceQuota(),
			usage = r.getResourceQuotaCurrentUsage();
		r.setBody([/^functions=50;storedProcedures=100;.*collectionSize=\d+;$/.test(quota),
			/^functions=\d+;storedProcedures=\d+;.*collectionSize=\d+;$/.test(usage), quota !== usage,
			r.getValue("MaxResourceQuota") === quota, r.getValue("ResourceQuotaCurrentUsage") === usage,
			r.getValue("x-ms-resource-quota") === quota, r.getValue("x-ms-resource-usage") === usage,
			tried(() => r.setValue("MaxResourceQuota", "x")), tried(() => r.setValue("X-MS-Resource-Usage", "x"))]);`,
		"POST", "docs", `{"id":"9","author":"t","seen":0}`, `[true,true,true,true,true,true,true,` +
			`"403 Not a writable property: MaxResourceQuota","403 Not a writable property: X-MS-Resource-Usage"]`, `0`},
	{"post appends", "Post", `set("a"); __.response.appendBody("b"); __.response.appendValue("Body", "c");`,
		"POST", "docs", `{"id":"9","author":"t","seen":0}`, `"abc"`, `0`},
	{"post upsert", "Post", `__.response.setBody(__.response.getOperationType());`, "UPSERT", "docs",
		`{"id":"1","author":"t"}`, `"Upsert"`, ""},
	{"post replace", "Post", `__.response.setBody(__.response.getOperationType());`, "PUT", "docs/1",
		`{"id":"1","author":"t"}`, `"Replace"`, ""},
	{"post delete", "Post", `const seen = __.response.getOperationType();
		__.upsertDocument(link, {id: "seen", author: A, seen: seen}, ok);`, "DELETE", "docs/1", "", "", ""},
	{"post writes", "Post", `const d = __.response.getBody(); d.seen = 7;
		__.replaceDocument(d._self, d, {etag: d._etag}, ok);`,
		"POST", "docs", `{"id":"9","author":"t"}`, `"id":"9"`, `7`},
	{"post throws", "Post", `throw new Error(417, "no");`, "POST", "docs", `{"id":"9","author":"t"}`, `400/417 no`, ""},
}

func TestTriggerObjects(t *testing.T) {
	l := newLibrary(t)
	for _, c := range triggers {
		t.Run(c.name, func(t *testing.T) {
			l := &library{l.ContainerClient, t, l.url}
			l.run(`__.readDocuments(link, (err, list) => list.forEach((d) => __.deleteDocument(d._self)));`, "", "t")
			create(t, l.ContainerClient, "author", `{"id":"1","author":"t","n":3}`)
			l.program("triggers", "p", "function p() {"+prelude+c.text+"\n}",
				fmt.Sprintf(`,"triggerType":%q,"triggerOperation":"All"`, c.typ))
			headers := []string{"x-ms-documentdb-" + strings.ToLower(c.typ) + "-trigger-include", "p"}
			method := c.method
			if method == "UPSERT" {
				method, headers = "POST", append(headers, "x-ms-documentdb-is-upsert", "true")
			}
			r := l.send(method, c.path, c.body, "t", headers...)
			if d := l.send("DELETE", "triggers/p", "", ""); d.code != 204 {
				t.Errorf("%d %s", d.code, d.body)
			}
			status, text, failing := strings.Cut(c.want, " ")
			if failing = failing && strings.HasPrefix(status, "400/"); failing {
				if got := fmt.Sprintf("%d/%s", r.code, r.h.Get("x-ms-substatus")); got != status ||
					!strings.Contains(r.body, text) {
					t.Errorf("%s %s, want %s", got, r.body, c.want)
				}
				same(t, harness.Query(t, l.ContainerClient, str("t"), "SELECT VALUE c.id FROM c"), `["1"]`)
				return
			}
			if r.code < 200 || r.code > 204 || !strings.Contains(r.body, c.want) {
				t.Fatalf("%d %s, want %s", r.code, r.body, c.want)
			}
			seen := "[" + c.seen + "]"
			if method == "DELETE" {
				seen = `["Delete"]`
			}
			same(t, harness.Query(t, l.ContainerClient, str("t"), "SELECT VALUE c.seen FROM c"), seen)
		})
	}
}

// The functions of a container in queries: what they get, what they give, and that they have no context.
func TestFunctionObjects(t *testing.T) {
	l := newLibrary(t)
	create(t, l.ContainerClient, "author", `{"id":"1","author":"f","n":3,"tags":["a","b"],"o":{"p":1}}`)
	for _, c := range []struct{ text, call, want string }{
		{`function f(n) { return n * 2; }`, `udf.f(c.n)`, `[6]`},
		{`function f(d) { return [d.id, d.tags.length, d.o.p, d.none === undefined]; }`, `udf.f(c)`,
			`[["1",2,1,true]]`},
		{`function f(a, b) { return [a === undefined, b === null, arguments.length]; }`, `udf.f(c.none, null)`,
			`[[true,true,2]]`},
		{`function f() { return [typeof getContext, typeof __, typeof console, typeof ErrorCodes]; }`, `udf.f()`,
			`[["undefined","undefined","undefined","object"]]`},
		{`function f() { }`, `udf.f()`, `[]`},
		{`async (list) => (await list).join("")`, `udf.f(c.tags)`, `["ab"]`},
		{`function f() { throw new Error(417, "no"); }`, `udf.f()`, `400`},
		{`function f(`, ``, `400`},
	} {
		body := string(marshal(t, map[string]string{"id": "f", "body": c.text}))
		if r := l.send("POST", "udfs", body, ""); r.code != 201 {
			t.Fatalf("%s: %d %s", c.text, r.code, r.body)
		}
		call := c.call
		if call == "" {
			call = "udf.f()"
		}
		if c.want == "400" {
			_, err := l.NewQueryItemsPager("SELECT VALUE "+call+" FROM c", str("f"), nil).NextPage(bg)
			refused(t, err, 400)
		} else {
			same(t, harness.Query(t, l.ContainerClient, str("f"), "SELECT VALUE "+call+" FROM c"), c.want)
		}
		if r := l.send("DELETE", "udfs/f", "", ""); r.code != 204 {
			t.Fatalf("%d %s", r.code, r.body)
		}
	}
}
