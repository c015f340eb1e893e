package engine

import (
	"testing"
	"time"

	"github.com/orrerydb/orrery/sqlapi/script/wire"
)

// BenchmarkRun is the engine's part of a procedure that only sets a body.
func BenchmarkRun(b *testing.B) {
	w := &worker{programs: newPrograms()}
	run := &wire.Run{Name: "s", Source: `function f(a) { getContext().getResponse().setBody("Hello, " + a); }`,
		Args: []byte(`["World"]`)}
	b.ReportAllocs()
	for range b.N {
		if _, err := runProgram(w, wire.Setting{Time: time.Second}, run); err != nil {
			b.Fatal(err)
		}
	}
}
