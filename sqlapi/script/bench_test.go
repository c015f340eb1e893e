package script_test

import (
	"fmt"
	"testing"

	"github.com/orrerydb/orrery/sqlapi/script"
)

// BenchmarkProcedure is a procedure that only sets a body. cpu-us/op is the CPU time of the server and its workers.
func BenchmarkProcedure(b *testing.B) {
	pool := newPool(b, script.Options{})
	run := script.Run{Name: "s", Source: `function f(a) { getContext().getResponse().setBody("Hello, " + a); }`,
		Args: []byte(`["World"]`), Links: links}
	measure(b, pool, 1, func() error {
		_, err := pool.Run(b.Context(), run, &items{})
		return err
	})
}

// BenchmarkCreate is a procedure that creates one document.
func BenchmarkCreate(b *testing.B) {
	pool := newPool(b, script.Options{})
	run := script.Run{Name: "s", Source: `function f() { __.createDocument(__.getSelfLink(), {id: "1"}, function (e, d) {
		if (e) throw e; __.response.setBody(d.id); }); }`, Links: links}
	measure(b, pool, 1, func() error {
		_, err := pool.Run(b.Context(), run, &items{})
		return err
	})
}

// BenchmarkFunction is a function over batches of 256 items: of a number, of the part of a document that
// it reads, and of all of a document of 1 KB.
func BenchmarkFunction(b *testing.B) {
	const batch = 256
	document := `{"id":"1"`
	for i := range 20 {
		document += fmt.Sprintf(`,"property%d":"some text of a document %d"`, i, i)
	}
	for _, tc := range []struct{ name, source, args string }{
		{"Scalar", `function f(n) { return n * 2; }`, `[21]`},
		{"Two", `function f(n, s) { return s + n; }`, `[21.5,"some text"]`},
		{"Part", `function f(d) { return d.property7; }`, `[{"property7":"some text of a document 7"}]`},
		{"Document", `function f(d) { return Object.keys(d).length; }`, "[" + document + "}]"},
		{"Values", `function f(d) { let n = 0; for (const k in d) n += d[k].length; return n; }`,
			"[" + document + "}]"},
	} {
		b.Run(tc.name, func(b *testing.B) {
			pool := newPool(b, script.Options{})
			f := pool.Functions(map[string]string{"f": tc.source})
			args := make([][]byte, batch)
			for i := range args {
				args[i] = []byte(tc.args)
			}
			measure(b, pool, batch, func() error {
				_, err := f.Call(b.Context(), "f", args)
				return err
			})
		})
	}
}

// measure runs f b.N times and reports the CPU time of all processes for each of f's items.
func measure(b *testing.B, pool *script.Pool, items int, f func() error) {
	if err := f(); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	before := cpu(b, pool)
	for range b.N {
		if err := f(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((cpu(b, pool)-before).Nanoseconds())/1e3/float64(b.N*items), "cpu-us/item")
}
