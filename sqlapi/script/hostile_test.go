package script_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/internal/race"
	"github.com/orrerydb/orrery/sqlapi/script"
)

// Each program exceeds a limit. It must be stopped with the right error, and the pool must then run another one.
func TestHostilePrograms(t *testing.T) {
	const stop = "ran longer than"
	const memory = "Out of memory"
	const stack = "Out of stack space"
	for _, tc := range []struct {
		name, body string
		status     int
		text       string // one of these, separated by |
	}{
		{"loop without end", `for (;;) {}`, 408, stop},
		{"loop in a finally", `try { for (;;) {} } finally { for (;;) {} }`, 408, stop},
		{"loop in a promise", `(function again() { Promise.resolve().then(again); })()`, 408, stop},
		{"loop in a getter", `__.response.setBody({ get x() { for (;;) {} } })`, 408, stop},
		{"loop in toString", `throw { toString() { for (;;) {} } }`, 408, stop},
		{"loop of callbacks",
			`(function again() { __.readDocuments(__.getSelfLink(), again); })(); for (;;) {}`, 408, stop},
		{"regular expression", `/^(?=a)(a+)+$/.test("a".repeat(60) + "b")`, 408, stop},
		{"long string", `var s = "x".repeat(2 ** 31); __.response.setBody(s.length)`, 400, memory + "|Invalid"},
		{"many strings", `var a = []; for (;;) a.push("x".repeat(1 << 20))`, 400, memory},
		{"doubled string", `var s = "xé"; for (;;) s += s`, 400, memory},
		{"huge array", `var a = new Array(2 ** 32 - 1).fill(0)`, 400, memory + "|" + stop},
		{"growing array", `var a = []; for (;;) a.push(a.slice())`, 400, memory + "|" + stop},
		{"typed array", `new Uint8Array(2 ** 33).fill(1)`, 400, memory + "|Invalid|RangeError"},
		{"big integer", `var x = 3n; for (;;) x = x * x`, 408, stop + "|" + memory},
		{"join", `new Array(2 ** 30).join("abcdefgh")`, 400, memory + "|" + stop},
		{"recursion", `(function f() { f(); })()`, 400, stack},
		{"recursion in sort", `(function f() { [2, 1].sort(f); })()`, 400, stack + "|" + stop},
		{"recursion in JSON", `var a = []; for (var i = 0; i < 1e6; i++) a = [a]; JSON.stringify(a)`, 400,
			stack + "|" + memory + "|" + stop},
		{"deep parentheses", `eval("(".repeat(5e6))`, 400, stack + "|" + memory + "|SyntaxError"},
		{"deep JSON", `JSON.parse("[".repeat(5e6))`, 400, stack + "|" + memory + "|SyntaxError"},
		{"operations without end",
			`var i = 0; while (__.createDocument(__.getSelfLink(), { s: "x".repeat(1 << 16) })) i++; throw "refused"`,
			400, "refused"},
		{"deep proxy", `var p = {}; for (var i = 0; i < 1e5; i++) p = new Proxy(p, {}); p.x; throw "allowed"`, 400,
			stack + "|allowed|" + stop},
		{"recursion in toJSON", `var a = { toJSON() { return { b: a }; } }; __.response.setBody(a)`, 400,
			stack + "|" + memory + "|" + stop},
		{"JSON without end", `var a = {}; a.a = a; JSON.stringify(a, (k, v) => ({ v: {} }))`, 400,
			stack + "|" + memory + "|" + stop + "|circular"},
		{"loop in a proxy", `__.response.setBody(new Proxy({}, { ownKeys() { for (;;) {} } }))`, 408, stop},
		{"loop in a proxy of options",
			`__.readDocuments(__.getSelfLink(), new Proxy({}, { get() { for (;;) {} } }))`, 408, stop},
		{"loop in a getter of a document",
			`__.createDocument(__.getSelfLink(), { get id() { for (;;) {} } })`, 408, stop},
		{"loop in a getter of a query",
			`__.queryDocuments(__.getSelfLink(), { get query() { for (;;) {} } })`, 408, stop},
		{"huge parameters", `__.queryDocuments(__.getSelfLink(), { query: "q", parameters: new Array(2 ** 32 - 1) })`,
			400, memory + "|" + stop},
		{"sparse array", `var a = []; a[2 ** 32 - 2] = 1; JSON.stringify(a)`, 400, memory + "|" + stop},
		{"search of a sparse array", `throw "found " + Array(2 ** 32 - 2).indexOf(1)`, 400, "found -1|" + stop},
		{"native loop", `Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1)`, 408, stop},
		{"native loop with calls", `Array.from({ length: 2 ** 40 }, () => 0)`, 400, memory + "|" + stop + "|Invalid"},
		{"reverse of a sparse array", `var a = []; a[2 ** 32 - 2] = 1; a.reverse(); throw "done"`, 400,
			"done|" + memory + "|" + stop},
		{"padded string", `"x".padEnd(2 ** 31 - 1, "abc").split("")`, 400, memory + "|Invalid|" + stop},
		{"string of parts", `var s = ""; for (;;) s += "abcdefgh" + Math.random()`, 400, memory + "|" + stop},
		{"replaced string", `var s = "xx"; for (;;) s = s.replace(/x/g, "xx")`, 400, memory + "|" + stop},
		{"promises", `for (;;) Promise.resolve().then(() => {})`, 400, memory + "|" + stop},
		{"async functions", `async function g() { await null; g(); g(); } g()`, 400, memory + "|" + stop},
		{"generator", `function* g() { for (;;) yield 1; } for (const x of g()) {}`, 408, stop},
		{"spread generator", `function* g() { for (;;) yield 1; } [...g()]`, 400, memory + "|" + stop},
		{"nested generators", `function* g() { yield* g(); } [...g()]`, 400, stack + "|" + memory + "|" + stop},
		{"labels", `a: for (;;) { b: for (;;) { continue a; } }`, 408, stop},
		{"map", `var m = new Map(); for (var i = 0; ; i++) m.set(i, { i })`, 400, memory + "|" + stop},
		{"symbols", `var o = {}; for (;;) o[Symbol()] = 1`, 400, memory + "|" + stop},
		{"properties", `var o = {}; for (var i = 0; ; i++) o["p" + i] = i`, 400, memory + "|" + stop},
		{"sort without order", `var a = []; for (var i = 0; i < 1e6; i++) a.push(i);
			a.sort(() => { for (var i = 0; i < 1e5; i++); return 1; })`, 408, stop},
		{"log without end", `for (;;) console.log("x".repeat(1 << 20))`, 408, stop + "|" + memory},
		{"closures",
			`var f = () => 1; for (;;) { let g = f; f = () => g() + 1; if (Math.random() < 1e-7) f(); }`, 400,
			memory + "|" + stop + "|" + stack},
		{"regular expression that grows", `new RegExp("(" + "a|".repeat(1e6) + "b)*$").test("a".repeat(1e5));
			throw "done"`, 400, "done|" + memory + "|" + stop + "|SyntaxError|" + stack},
		{"operation of a promise after the end",
			`Promise.resolve().then(() => __.readDocument(__.getSelfLink() + "docs/0",
				(err) => { throw new Error(err.number, "late") }))`, 400, "late"},
		{"promise that is kept", `var keep = []; (function again() { keep.push(new Promise((r) => keep.push(r)));
			Promise.resolve().then(again); })()`, 400, memory + "|" + stop},
		{"throw of null", `throw null`, 400, "null"},
		{"throw of undefined", `throw undefined`, 400, "undefined"},
		{"throw of a symbol", `throw Symbol("s")`, 400, "Exception ="},
		{"throw of a proxy", `throw new Proxy({}, { get() { throw 1; } })`, 400, "Exception ="},
		{"throw of an object without prototype", `throw Object.create(null)`, 400, "Exception ="},
		{"throw of an object whose number throws", `throw { get number() { throw 1; } }`, 400, "Exception ="},
		{"throw of an object whose stack is odd",
			`var e = new Error("x"); e.stack = { toString() { throw 1; } }; throw e`, 400, "Error: x"},
		{"number that isn't one", `throw new Error(1e300, "huge")`, 400, "huge"},
		{"abort with an object that throws", `getContext().abort({ toString() { throw 1; } })`, 400, "Exception ="},
		{"rejection with nothing", `return Promise.reject()`, 400, "undefined"},
	} {
		if race.Enabled && strings.Contains(tc.text, memory) {
			continue // the detector has memory of its own, which counts
		}
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			limit := 500 * time.Millisecond
			if !strings.Contains(tc.text, stop) {
				limit = time.Minute // so that the other limit stops it
			}
			pool := newPool(t, script.Options{Workers: 1, Memory: 96 << 20, Time: limit})
			run := script.Run{Name: "hostile", Source: "function f() {" + tc.body + "}", Links: links}
			_, err := pool.Run(t.Context(), run, &items{})
			var e *script.Error
			switch {
			case !errors.As(err, &e):
				t.Fatalf("error %v", err)
			case !strings.Contains(tc.text, "|") && e.Status != tc.status:
				t.Errorf("status %d: %v", e.Status, e)
			case !containsOne(e.Body, strings.Split(tc.text, "|")):
				t.Errorf("error %v, want %q", e, tc.text)
			}
			run.Source = `function f() { __.response.setBody("alive"); }`
			result, err := pool.Run(t.Context(), run, &items{})
			if err != nil || string(result.Body) != `"alive"` {
				t.Errorf("the next run: %s, %v", result.Body, err)
			}
			if used := residentOf(pool); used > 96<<20 {
				t.Errorf("the worker holds %d MB after the next run", used>>20)
			}
		})
	}
}

func containsOne(s string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(s, part) {
			return true
		}
	}
	return false
}

// A program that ends before its time must not leave anything that a later program could see or be hurt by.
func TestRunsAreSeparate(t *testing.T) {
	pool := newPool(t, script.Options{Workers: 1})
	run := func(body string) string {
		result, err := pool.Run(t.Context(), script.Run{Name: "s", Source: "function f() {" + body + "}", Links: links},
			&items{})
		if err != nil {
			return err.Error()
		}
		return string(result.Body)
	}
	run(`globalThis.left = 1; Array.prototype.map = null; JSON.stringify = null; Object.prototype.x = 1;
		Promise.prototype.then = null; delete globalThis.Date; Object.freeze(Object.prototype)`)
	got := run(`var seen = [typeof left, typeof [].map, typeof JSON.stringify, {}.x === undefined, typeof Date];
		__.response.setBody(seen)`)
	if want := `["undefined","function","function",true,"function"]`; got != want {
		t.Errorf("after another program: %s, want %s", got, want)
	}
}

// A host that answers slowly uses up the time of the run, and is told when it is over.
func TestSlowHost(t *testing.T) {
	pool := newPool(t, script.Options{Time: time.Second})
	var told atomic.Bool
	host := hostFunc(func(ctx context.Context, _ script.Op) (script.Reply, *script.Error) {
		<-ctx.Done()
		told.Store(true)
		return script.Reply{}, nil
	})
	_, err := pool.Run(t.Context(), script.Run{Source: `function f() { __.readDocuments(__.getSelfLink()); }`,
		Links: links}, host)
	var e *script.Error
	if !errors.As(err, &e) || e.Status != 408 || !told.Load() {
		t.Errorf("error %v, host told: %v", err, told.Load())
	}
}

// The answers to a burst of large reads are not all in memory at a time, neither here nor in the worker. A program that
// fails among them leaves none to the next one.
func TestBurstOfLargeReads(t *testing.T) {
	memory := int64(128 << 20)
	if race.Enabled {
		memory *= 8 // the detector's counts too
	}
	pool := newPool(t, script.Options{Workers: 1, Memory: memory, Time: time.Minute})
	body := fmt.Appendf(nil, `{"s":%q}`, strings.Repeat("x", 1<<20))
	host := hostFunc(func(context.Context, script.Op) (script.Reply, *script.Error) {
		return script.Reply{Body: body}, nil
	})
	run := func(callback string) (script.Result, error) {
		return pool.Run(t.Context(), script.Run{Name: "s", Links: links, Source: `function f() {
			var n = 0;
			function next(err, doc) {` + callback + `}
			for (var i = 0; i < 200; i++) __.readDocument(__.getSelfLink() + "docs/1", next);
		}`}, host)
	}
	for range 3 {
		result, err := run(`if (err) throw err; n += doc.s.length; __.response.setBody(n);`)
		if err != nil || string(result.Body) != fmt.Sprint(200<<20) {
			t.Errorf("%s, %v", result.Body, err)
		}
		var e *script.Error
		if _, err = run(`if (++n == 50) throw new Error(77, "enough");`); !errors.As(err, &e) || e.Sub != 77 {
			t.Errorf("a failure among the answers: %v", err)
		}
	}
}

// When the time is nearly over no operation is accepted, so that a program can end in order.
func TestOperationsAreRefusedLate(t *testing.T) {
	pool := newPool(t, script.Options{Time: 2 * time.Second})
	const source = `function f() {
		var n = 0;
		(function next() {
			if (__.readDocuments(__.getSelfLink(), next)) n++; else __.response.setBody("refused");
		})();
	}`
	result, err := pool.Run(t.Context(), script.Run{Source: source, Links: links}, &items{})
	if err != nil || string(result.Body) != `"refused"` {
		t.Errorf("%s, %v", result.Body, err)
	}
}

func TestCancelledRun(t *testing.T) {
	pool := newPool(t, script.Options{Workers: 1})
	ctx, cancel := context.WithCancel(t.Context())
	host := hostFunc(func(context.Context, script.Op) (script.Reply, *script.Error) {
		cancel()
		return script.Reply{}, nil
	})
	_, err := pool.Run(ctx, script.Run{Source: `function f() { __.readDocuments(__.getSelfLink(), function () { for (;;) {} }); }`,
		Links: links}, host)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	_, err = pool.Run(ctx, script.Run{Source: `function f() {}`}, host)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error of a run that begins cancelled: %v", err)
	}
}

// A procedure that waits for a function must get it, even when procedures have all workers.
func TestFunctionInsideProcedure(t *testing.T) {
	pool := newPool(t, script.Options{Workers: 1})
	host := hostFunc(func(ctx context.Context, _ script.Op) (script.Reply, *script.Error) {
		f := pool.Functions(map[string]string{"double": `function (x) { return 2 * x; }`})
		values, err := f.Call(ctx, "double", [][]byte{[]byte("[21]")})
		if err != nil {
			return script.Reply{}, &script.Error{Status: 400, Body: err.Error()}
		}
		return script.Reply{Body: fmt.Appendf(nil, "[%s]", values[0])}, nil
	})
	const source = `function f() {
		__.queryDocuments(__.getSelfLink(), "q", function (err, docs) { __.response.setBody([err, docs]); });
	}`
	result, err := pool.Run(t.Context(), script.Run{Source: source, Links: links}, host)
	if err != nil || string(result.Body) != `[null,[42]]` {
		t.Errorf("%s, %v", result.Body, err)
	}
}

// hostFunc is a Host of one function.
type hostFunc func(context.Context, script.Op) (script.Reply, *script.Error)

// Do implements script.Host.
func (f hostFunc) Do(ctx context.Context, op script.Op) (script.Reply, *script.Error) {
	return f(ctx, op)
}
