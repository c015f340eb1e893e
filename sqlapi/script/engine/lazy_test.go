package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/dop251/goja"
	"github.com/dop251/goja/parser"

	"github.com/orrerydb/orrery/sqlapi/script/wire"
)

// The text of the documents of TestLazyObjectsLookPlain.
const lazyDocument = `{"id":"1","n":5,"none":null,"yes":true,"text":"a\n\"b\"","tags":["x","y"],` +
	`"at":{"lat":1.5,"lon":2,"deep":{"er":[{"k":1},{"k":2}]}},` +
	`"lines":[{"sku":"b","qty":2},{"sku":"a","qty":1}],"length":2,"sort":1}`

// A function gives the same value for a lazy object as for a plain one. Each of these functions gets lazy objects.
func TestLazyObjectsLookPlain(t *testing.T) {
	for _, body := range []string{
		// reads
		`return d[n];`, `return d["n"] + d.at[n];`, `return d.lines[1].qty;`,
		`return g(d); function g(x) { return x.id; }`, `return d.missing;`, `return d[n + "x"];`,
		`return d?.at?.deep?.er?.[1]?.k;`, `return d.lines === d.lines;`,
		`const { id, at: { lat }, ...rest } = d; return [id, lat, rest];`, `return [...d.tags, ...d.lines];`,
		// names
		`return Object.keys(d);`, `const k = []; for (const x in d) k.push(x); return k;`,
		`return Object.entries(d.at);`, `return Object.values(d);`, `return Object.getOwnPropertyNames(d);`,
		`return n in d;`, `return "toString" in d;`,
		`return d.hasOwnProperty(n) && !d.hasOwnProperty("x") && !d.hasOwnProperty("toString");`,
		`return Object.prototype.hasOwnProperty.call(d, n);`, `return d.propertyIsEnumerable("id");`,
		// as a whole
		`return d;`, `return d.at;`, `return JSON.stringify(d);`, `return JSON.stringify(d, ["id", "n"], 2);`,
		`return JSON.stringify(d, (k, v) => typeof v === "number" ? v + 1 : v);`,
		`return JSON.parse(JSON.stringify(d));`, `return { ...d, id: 2 };`, `return Object.assign({}, d, { z: 1 });`,
		`return [d, d.at];`, `return String(d);`, `return d + "";`, `return typeof d;`,
		`return d == d && d !== {} && !!d;`, `return Array.isArray(d.tags);`,
		`return new Map([[d, 1]]).get(d) + new Set([d, d]).size;`, `return [1].concat(d).length;`,
		`return d.valueOf() === d;`, `return d.toString() + d.toLocaleString();`, `return isNaN(d);`,
		`return Array.from(d).length;`, `return +d;`,
		// changes
		`d.id = 2; return d;`, `d.extra = 1; d.extra++; return d;`, `d[7] = "seven"; d[3] = "three"; return d;`,
		`delete d.id; return d;`, `return [delete d.id, delete d.id, d.id, "id" in d, Object.keys(d)];`,
		`delete d.n; d.n = 1; return d;`, `d.at.lat = 3; d.at.alt = 4; return d;`,
		`for (const k in d) delete d[k]; return d;`, `for (const k in d) { d[k + "2"] = 1; } return d;`,
		`Object.assign(d, { id: 7, more: [1] }); return d;`, `d.self = d.at; d.at.lat = 9; return d.self.lat;`,
		`d.id = undefined; return d;`, `d.n += 2; return d.n;`, `d.toString = () => "own"; return d + "";`,
		`d.lines.push({ sku: "c" }); return d.lines;`, `[d.id, d.n] = [d.n, d.id]; return d;`,
		`d.x ??= 1; d.id ??= 2; return d;`,
		// with functions of arrays
		`return d.lines.sort((a, b) => a.sku < b.sku ? -1 : 1);`,
		`return d.lines.map((l) => l.qty).reduce((a, b) => a + b, 0);`,
		`return d.lines.filter((l) => l.qty > 1).concat(d.at);`,
		`return d.tags.indexOf("y") + d.lines.indexOf(d.lines[1]);`,
		`return Object.keys(d).filter((k) => typeof d[k] === "string").sort();`,
		// errors
		`return d.missing.x;`, `try { d.missing.x; } catch (e) { return e instanceof TypeError; }`, `throw d;`,
		`throw new Error(JSON.stringify(d.at));`, `async function g() { return (await d).id; } return g();`,
	} {
		source := "function f(d, n) { " + body + " }"
		tree, err := parser.ParseFile(nil, "", source, 0)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if !takesLazy(tree) {
			t.Errorf("%s: gets plain objects", body)
		}
		for _, document := range []string{lazyDocument, `{}`} {
			call := wire.Call{Name: "f", Source: source, Args: [][]byte{[]byte(`[` + document + `,"n"]`)}}
			if got, want := called(call, newShapes()), called(call, nil); got != want {
				t.Errorf("%s: %s\n%s\nplain:\n%s", body, document, got, want)
			}
		}
	}
}

// called calls a function, and returns its values or its failure.
func called(call wire.Call, s *shapes) string {
	w := &worker{programs: newPrograms(), watch: &watch{}, shapes: s}
	values, _, fault := callFunction(w, wire.Setting{Time: time.Minute}, call)
	if fault != nil {
		return "failure: " + fault.Body
	}
	return fmt.Sprintf("%s", values)
}

// Functions whose text could tell lazy objects from plain ones get plain objects.
func TestWhoGetsPlainObjects(t *testing.T) {
	for _, body := range []string{
		`return Object.freeze(d);`, `Object["seal"](d);`, `const { freeze } = Object; return freeze(d);`,
		`return Object;`, `return Object.defineProperty(d, "x", { value: 1 });`, `return Object.create(d);`,
		`return d.constructor;`, `return d.__proto__;`, `return d["__pro" + "to__"][n](d);`, `return d[n](1);`,
		`return new d[n]();`, `return d?.[n]?.();`, "return d[n]`x`;", `return Reflect.ownKeys(d);`,
		`d[Symbol.iterator] = 1;`, `return eval("d");`, `return new Function("d", "return d")(d);`, `return this;`,
		`class A { #x = 1; } return new A();`, `return [].sort.call(d);`, `d.s = [].sort; return d.s();`,
		`return [].slice.call(d);`, `return (() => d).bind(d)();`, `return new Proxy(d, {});`,
		`return globalThis.Object;`, `return ({ __proto__: d }).id;`, `return Array.prototype.map;`,
		`return Object.prototype.toString.call(d);`, `return d instanceof Object;`, `var o = { "freeze": 1 };`,
	} {
		tree, err := parser.ParseFile(nil, "", "function f(d, n) { "+body+" }", 0)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if takesLazy(tree) {
			t.Errorf("%s: gets lazy objects", body)
		}
	}
}

// Texts whose objects can't be lazy give plain ones, with the same properties in the same order.
func TestTextsOfLazyObjects(t *testing.T) {
	for _, tc := range []struct {
		text string
		lazy bool
	}{
		{`{}`, true}, {`{"a":1}`, true}, {`{ "a" : { "1" : 2 } , "b" : [ ] } `, true}, {`{"":1}`, true},
		{`{"2":"two","1":"one"}`, false}, {`{"a":1,"a":2}`, false}, {`{"__proto__":{"x":1},"y":2}`, false},
		{`{"é":1}`, false}, {`{"\u0061":1}`, false}, {`{"a":"é"}`, true}, {`{"a":{"__proto__":null}}`, true},
		{`{"a":`, false}, {`{"a":1,}`, false}, {`{"a" 1}`, false}, {`{a:1}`, false}, {`{"a":1]`, false},
	} {
		w := &worker{programs: newPrograms(), watch: &watch{}}
		texts := w.newMachine(wire.Setting{Time: time.Minute}, &source{}).newTexts()
		parsed, wrong := texts.parse(goja.Undefined(), texts.m.rt.ToValue(tc.text))
		texts.shapes = newShapes()
		for range 2 {
			v, err := texts.value([]byte(tc.text))
			if (err == nil) != (wrong == nil) {
				t.Fatalf("%s: %v, JSON.parse: %v", tc.text, err, wrong)
			}
			if err != nil {
				continue
			}
			if _, lazy := v.Export().(*lazyObject); lazy != tc.lazy {
				t.Errorf("%s: lazy is %t", tc.text, lazy)
			}
			got, _ := texts.stringify(goja.Undefined(), v)
			want, _ := texts.stringify(goja.Undefined(), parsed)
			if !got.SameAs(want) {
				t.Errorf("%s: %v, JSON.parse: %v", tc.text, got, want)
			}
		}
	}
}

// The names that are kept are bounded.
func TestShapesAreBounded(t *testing.T) {
	w := &worker{programs: newPrograms(), watch: &watch{}}
	texts := w.newMachine(wire.Setting{Time: time.Minute}, &source{}).newTexts()
	texts.shapes = newShapes()
	for i := range 3 * mostNames {
		v, err := texts.value(fmt.Appendf(nil, `{"a%d":%d,"b":2}`, i, i))
		if err != nil {
			t.Fatal(err)
		}
		if n := v.(*goja.Object).Get(fmt.Sprintf("a%d", i)).ToInteger(); n != int64(i) {
			t.Fatalf("a%d is %d", i, n)
		}
		if s := texts.shapes; len(s.list) > mostNames+2 || s.size > mostNames+3 {
			t.Fatalf("%d names, %d in shapes", len(s.list), s.size)
		}
	}
}
