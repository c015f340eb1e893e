// Package invariants holds assertions that cost nothing in production: with the build tag `invariants` they are checked
// and a broken one panics, without it the compiler removes them.
//
// Guard anything that costs time to compute with `if invariants.Enabled`.
package invariants

import "fmt"

// Check panics with the formatted message when cond is false and assertions are compiled in.
func Check(cond bool, format string, args ...any) {
	if Enabled && !cond {
		panic("invariant broken: " + fmt.Sprintf(format, args...))
	}
}
