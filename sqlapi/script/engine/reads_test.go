package engine

import (
	"fmt"
	"testing"
)

// The properties that a function can read of its arguments, by its text. <nil> is all of them.
func TestPropertiesRead(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{`function f(d) { return d.a; }`, `[[a]]`},
		{`function f(d, n) { return d.b * n + d["a"]; }`, `[[a b] <nil>]`},
		{`function (d) { return d.a.b.c(d.e[0]); }`, `[[a e]]`},
		{`d => d.a`, `[[a]]`},
		{`async (d) => { const x = await d.a; return x; }`, `[[a]]`},
		{`function f(d) { return g(d.a); } function g(x) { return x.b; }`, `[[a]]`},
		{`function f(d) { return 1; }`, `[[]]`},
		{`function f(d) { return d?.a; }`, `[[a]]`},
		{`function f(d) { if (!d || d === null || d != undefined || typeof d !== "object") return 0; return d.a; }`,
			`[[a]]`},
		{`function f(d) { return d && d.a; }`, `[[a]]`},
		{`function f(d) { if (d) return d.a; }`, `[[a]]`},
		{`function f(d) { return d ? d.a : d.b; }`, `[[a b]]`},
		{`function f(d) { d.a = 1; d.b++; delete d.c; return d.a; }`, `[[a b c]]`},
		{`function f(d) { let s = 0; for (const x of d.list) s += x.n; return s; }`, `[[list]]`},
		{`function f(d) { return d.list.map((x) => x.n + d.m); }`, `[[list m]]`},
		{`function f(d) { return new Date(d.a).getTime() + Math.abs(d.b) + [1, 2][0] + "x"["length"]; }`, `[[a b]]`},
		{"function f(d) { return `${d.a} ${d.b}`; }", `[[a b]]`},
		{`function f({ a }, d) { return a + d.x; }`, `[<nil> [x]]`},
		{`function f(a, ...d) { return a.x; }`, `[[x]]`},
		{`function f(d) { return /constructor/.test(d.a) + "prototype"; }`, `[[a]]`},

		{`function f(d) { return d; }`, `[]`},
		{`function f(d) { return d[""]; }`, `[]`},
		{`function f(d, n) { return d["a\u0000b"] + n.a; }`, `[<nil> [a]]`},
		{`function f(d) { return g(d); } function g(d) { return d.a; }`, `[]`},
		{`function f(d) { return g(d.a); } function g(d) { return d; }`, `[]`},
		{`function f(d) { return d || {}; }`, `[]`},
		{`function f(d) { return d == true; }`, `[]`},
		{`function f(d) { return d + ""; }`, `[]`},
		{`function f(d) { return d[0]; }`, `[]`},
		{`function f(d) { return { d }; }`, `[]`},
		{`function f(d) { return { ...d }; }`, `[]`},
		{`function f(d) { return [d]; }`, `[]`},
		{`function f(d) { const { a } = d; return a; }`, `[]`},
		{`function f(d) { for (const k in d) return k; }`, `[]`},
		{`function f(d) { return "a" in d; }`, `[]`},
		{`function f(d) { return JSON.stringify(d); }`, `[]`},
		{`function f(d) { return () => d; }`, `[]`},
		{`function f(d) { d = 1; return d.a; }`, `[]`},
		{`function f(d) { return d.hasOwnProperty("a"); }`, `[]`},
		{`function f(d) { return d["toString"](); }`, `[]`},
		{`function f(d) { return d?.toString?.(); }`, `[]`},
		{"function f(d) { return d.valueOf`x`; }", `[]`},
		{`function f(d = {}) { return d.a; }`, `[]`},
		{`function f(...d) { return d.a; }`, `[]`},
		{`function f(d) { return d[d.k]; }`, `[]`},
		{`function f(d) { return d.a + arguments[0].b; }`, `[]`},
		{`function f(d) { return d.a + eval("d.b"); }`, `[]`},
		{`function f(d) { return d.constructor; }`, `[]`},
		{`function f(d) { return d.__proto__; }`, `[]`},
		{`function f(d) { Object.defineProperty(Object.prototype, "a", { get() { return this; } }); return d.a; }`,
			`[]`},
		{`function f(d) { ({}).__defineGetter__("a", Array); return d.a; }`, `[]`},
		{`function f(d) { []["con" + "structor"]; return d.a; }`, `[]`},
		{`function f(d) { const { constructor: c } = []; return d.a; }`, `[]`},
		{`function f(d) { const { ["con" + "structor"]: c } = []; return d.a; }`, `[]`},
		{`function f(d) { return [].map.call(d.a, function () { return this; }); }`, `[]`},
		{`function f(d) { class A {} return d.a; }`, `[]`},
		{`function f() { return 1; }`, `[]`},
		{`function f(d) { return d.a` + manyProperties() + `; }`, `[]`},
	} {
		p, fault := compile("f", tc.text, true)
		if fault != nil {
			t.Errorf("%s: %v", tc.text, fault)
			continue
		}
		got := []any{}
		for _, names := range p.reads {
			if names == nil {
				got = append(got, nil)
				continue
			}
			got = append(got, names)
		}
		if s := fmt.Sprint(got); s != tc.want {
			t.Errorf("%s: %s, want %s", tc.text, s, tc.want)
		}
	}
}

// manyProperties is the read of more properties than are told apart.
func manyProperties() (text string) {
	for i := range mostReads {
		text += fmt.Sprintf(" + d.x%d", i)
	}
	return text
}
