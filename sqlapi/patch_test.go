package sqlapi

import (
	"strings"
	"testing"
)

func TestPatchOperations(t *testing.T) {
	const start = `{"id":"1","pk":"a","n":1,"f":0.5,"s":"x","list":[1,2,3],"o":{"a":{"b":1}},"a/b":1,"~":2}`
	for _, x := range []struct{ ops, want string }{
		{`[{"op":"add","path":"/new","value":{"x":null}}]`, `"new":{"x":null}`},
		{`[{"op":"add","path":"/list/1","value":9}]`, `"list":[1,9,2,3]`},
		{`[{"op":"add","path":"/list/3","value":9}]`, `"list":[1,2,3,9]`},
		{`[{"op":"add","path":"/list/-","value":9}]`, `"list":[1,2,3,9]`},
		{`[{"op":"set","path":"/list/1","value":9}]`, `"list":[1,9,3]`},
		{`[{"op":"set","path":"/o/a/c","value":[]}]`, `"a":{"b":1,"c":[]}`},
		{`[{"op":"set","path":"/s","value":"y"}]`, `"s":"y"`},
		{`[{"op":"replace","path":"/s","value":null}]`, `"s":null`},
		{`[{"op":"remove","path":"/list/0"}]`, `"list":[2,3]`},
		{`[{"op":"remove","path":"/o"}]`, `"list":[1,2,3],"a/b"`},
		{`[{"op":"incr","path":"/n","value":2}]`, `"n":3`},
		{`[{"op":"incr","path":"/n","value":-1.5}]`, `"n":-0.5`},
		{`[{"op":"incr","path":"/fresh","value":5}]`, `"fresh":5`},
		{`[{"op":"move","from":"/s","path":"/t"}]`, `"t":"x"`},
		{`[{"op":"move","from":"/list/0","path":"/list/2"}]`, `"list":[2,3,1]`},
		{`[{"op":"set","path":"/a~1b","value":7},{"op":"set","path":"/~0","value":8}]`, `"a/b":7,"~":8`},
		{`{"operations":[{"op":"set","path":"/s","value":1}],"condition":"from c where c.n = 1"}`, `"s":1`},
		{`[{"op":"add","path":"/ttl","value":60}]`, `"ttl":60`},
	} {
		a := withContainer(t)
		a.do("POST", docs, start, key("a")).is(201)
		a.do("PATCH", docs+"/1", x.ops, key("a")).is(200).has(x.want)
		a.do("GET", docs+"/1", "", key("a")).is(200).has(x.want)
	}
}

func TestPatchRefused(t *testing.T) {
	a := withContainer(t)
	before := a.do("POST", docs, `{"id":"1","pk":"a","n":1,"s":"x","list":[1]}`, key("a")).is(201)
	for _, ops := range []string{``, `{}`, `[]`, `[1]`, `7`, `{"operations":7}`,
		`[{"op":"test","path":"/n","value":1}]`, `[{"path":"/n","value":1}]`, `[{"op":"set","value":1}]`,
		`[{"op":"set","path":"/n"}]`,
		`[{"op":"set","path":"n","value":1}]`, `[{"op":"set","path":"/","value":1}]`,
		`[{"op":"set","path":"/id","value":"2"}]`, `[{"op":"set","path":"/pk","value":"b"}]`,
		`[{"op":"remove","path":"/pk"}]`,
		`[{"op":"set","path":"/_ts","value":1}]`, `[{"op":"replace","path":"/none","value":1}]`,
		`[{"op":"remove","path":"/none"}]`, `[{"op":"add","path":"/none/x","value":1}]`,
		`[{"op":"set","path":"/s/x","value":1}]`, `[{"op":"set","path":"/list/5","value":1}]`,
		`[{"op":"add","path":"/list/x","value":1}]`, `[{"op":"incr","path":"/s","value":1}]`,
		`[{"op":"incr","path":"/n","value":"1"}]`,
		`[{"op":"move","path":"/x"}]`, `[{"op":"move","from":"/none","path":"/x"}]`,
		`[{"op":"move","from":"/list","path":"/list/0"}]`, `[{"op":"add","path":"/ttl","value":0}]`,
		`[` + strings.Repeat(`{"op":"incr","path":"/n","value":1},`, 10) + `{"op":"incr","path":"/n","value":1}]`,
		`[{"op":"set","path":"/s","value":2},{"op":"remove","path":"/none"}]`,
		`{"operations":[{"op":"set","path":"/s","value":1}],"condition":"where"}`,
		`{"operations":[{"op":"set","path":"/s","value":1}],"condition":5}`,
		`{"operations":[{"op":"set","path":"/s","value":1}],"condition":"from c join x in c.list where x = 1"}`} {
		a.do("PATCH", docs+"/1", ops, key("a")).is(400)
	}
	a.do("PATCH", docs+"/1", `{"operations":[{"op":"set","path":"/s","value":1}],"condition":"from c where c.n = 2"}`,
		key("a")).is(412).sub("1110")
	a.do("PATCH", docs+"/1", `[{"op":"set","path":"/s","value":1}]`, key("a"), `If-Match: "stale"`).is(412)
	a.do("PATCH", docs+"/none", `[{"op":"set","path":"/s","value":1}]`, key("a")).is(404)
	if after := a.do("GET", docs+"/1", "", key("a")).is(200); after.body != before.body {
		t.Errorf("a refused patch changed the item: %s", after.body)
	}
}

// The texts of refused patches are those that the service documents.
func TestPatchTexts(t *testing.T) {
	a := withContainer(t)
	a.do("POST", docs, `{"id":"1","pk":"a","n":1,"s":"x","list":[1,[2]],"o":{"a":{}}}`, key("a")).is(201)
	const noPath = " Operation can only create a child object of an existing node(array or object) and cannot create " +
		"path recursively, no path found beyond: "
	for _, x := range []struct{ op, want string }{
		{`{"op":"add","path":"/none/x","value":1}`, "For Operation(1): Add" + noPath + "'none'."},
		{`{"op":"set","path":"/o/none/x/y","value":1}`, "For Operation(1): Given" + noPath + "'none'."},
		{`{"op":"replace","path":"/o/a/no~1ne/x","value":1}`, "For Operation(1): Given" + noPath + "'no~1ne'."},
		{`{"op":"set","path":"/s/x","value":1}`, "For Operation(1): Given" + noPath + "'s'."},
		{`{"op":"incr","path":"/none/x","value":1}`, "For Operation(1): Given" + noPath + "'none'."},
		{`{"op":"set","path":"/n","value":2},{"op":"replace","path":"/o/b","value":1}`,
			"For Operation(2): Node(/o/b) to be replaced is absent."},
		{`{"op":"remove","path":"/none"}`,
			"For Operation(1): Node(/none) to be removed is absent. Note: it may also have been removed earlier in " +
				"the transaction."},
		{`{"op":"remove","path":"/list/2"}`, "For Operation(1): Index(2) to operate on is out of array bounds"},
		{`{"op":"replace","path":"/list/2","value":1}`, "For Operation(1): Node(/list/2) to be replaced is absent."},
		{`{"op":"add","path":"/list/3","value":1}`, "For Operation(1): Index(3) to operate on is out of array bounds"},
		{`{"op":"add","path":"/list/x","value":1}`, "For Operation(1): Index(x) to operate on is out of array bounds"},
		{`{"op":"set","path":"/list/1/5","value":1}`,
			"For Operation(1): Index(5) to operate on is out of array bounds"},
		{`{"op":"incr","path":"/s","value":1}`, "For Operation(1): Node(/s) is not a number."},
		{`{"op":"set","path":"/_ts","value":1}`, "Invalid patch request: Cannot patch system property _ts."},
		{`{"op":"set","path":"/id","value":"1"}`, "Invalid patch request: Cannot patch system property id."},
		{`{"op":"test","path":"/n","value":1}`, "Invalid patch request: check syntax of patch specification."},
		{`{"op":"set","path":"n","value":1}`, "Invalid patch request: check syntax of patch specification."},
		{strings.Repeat(`{"op":"incr","path":"/n","value":1},`, 10) + `{"op":"incr","path":"/n","value":1}`,
			"The number of patch operations cannot exceed 10"},
	} {
		a.do("PATCH", docs+"/1", "["+x.op+"]", key("a")).is(400).has(`\"` + x.want)
	}
	// A name of 20 digits is refused by strictness, one of 19 isn't.
	for _, strict := range []bool{false, true} {
		b := strictAPI(t, strict)
		b.do("PATCH", docs+"/1", `[{"op":"set","path":"/1234567890123456789","value":1}]`, key("a")).is(200)
		const long = `[{"op":"set","path":"/12345678901234567890","value":1}]`
		if r := b.do("PATCH", docs+"/1", long, key("a")); !strict {
			r.is(200)
		} else {
			r.is(400).has("Token('12345678901234567890') has length longer than expected")
		}
	}
}

func TestPatchInBatch(t *testing.T) {
	a := withContainer(t)
	a.do("POST", docs, `[{"operationType":"Create","resourceBody":{"id":"1","pk":"a","n":1}},`+
		`{"operationType":"Patch","id":"1","resourceBody":{"operations":[{"op":"incr","path":"/n","value":4}],"condition":"from c where c.n = 1"}}]`,
		isBatch, isAtomic, key("a")).is(200).has(`"n":5`)
	a.do("POST", docs, `[{"operationType":"Patch","id":"1","resourceBody":[{"op":"incr","path":"/n","value":1}]},`+
		`{"operationType":"Patch","id":"1","resourceBody":{"operations":[{"op":"incr","path":"/n","value":1}],"condition":"from c where c.n = 1"}}]`,
		isBatch, isAtomic, key("a")).is(207).has(`"statusCode":424`).has(`"statusCode":412`).has(`"subStatusCode":1110`)
	a.do("GET", docs+"/1", "", key("a")).is(200).has(`"n":5`)
}

func FuzzPatch(f *testing.F) {
	for _, s := range []string{`[{"op":"set","path":"/s","value":1}]`, `{"operations":[{"op":"move",` +
		`"from":"/list/0","path":"/list/-"}],"condition":"from c where c.n > 0"}`,
		`[{"op":"add","path":"/list/99999999999","value":1}]`,
		`[{"op":"add","path":"/_id","value":[]},{"op":"remove","path":"/~01"}]`} {
		f.Add(s)
	}
	a := withContainer(f)
	f.Fuzz(func(t *testing.T, ops string) {
		b := &api{t, a.srv}
		b.do("POST", docs, `{"id":"1","pk":"a","n":1,"s":"x","list":[1,{"a":2}],"o":{"a":{"b":1}}}`, key("a"),
			"x-ms-documentdb-is-upsert: true")
		if r := b.do("PATCH", docs+"/1", ops, key("a")); r.code >= 500 {
			t.Fatalf("%d %s", r.code, r.body)
		}
		if m := b.do("GET", docs+"/1", "", key("a")).is(200).json(); m["id"] != "1" || m["pk"] != "a" {
			t.Fatalf("%q changed the identity: %v", ops, m)
		}
	})
}
