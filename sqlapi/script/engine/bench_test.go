package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/orrerydb/orrery/sqlapi/script/wire"
)

// BenchmarkRun is the engine's part of a procedure that only sets a body.
func BenchmarkRun(b *testing.B) {
	w := &worker{programs: newPrograms(), watch: &watch{}}
	run := &wire.Run{Name: "s", Source: `function f(a) { getContext().getResponse().setBody("Hello, " + a); }`,
		Args: []byte(`["World"]`)}
	b.ReportAllocs()
	for range b.N {
		if _, err := runProgram(w, wire.Setting{Time: time.Second}, run); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDocument is the engine's part of a call of a function that gets all of a document of 1 KB.
func BenchmarkDocument(b *testing.B) {
	w := &worker{programs: newPrograms(), watch: &watch{}, shapes: newShapes()}
	document := `[{"id":"1"`
	for i := range 20 {
		document += fmt.Sprintf(`,"property%d":"some text of a document %d"`, i, i)
	}
	call := wire.Call{Name: "f", Source: `function f(d) { return Object.keys(d).length; }`}
	for range 256 {
		call.Args = append(call.Args, []byte(document+"}]"))
	}
	b.ReportAllocs()
	for range b.N {
		if _, _, err := callFunction(w, wire.Setting{Time: time.Minute}, call); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(call.Args)), "ns/item")
}
