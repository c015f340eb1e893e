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

// Mangle overwrites b with a recognisable byte when assertions are compiled in: call it on a buffer whose content a
// caller must not use any more, so that a caller who kept it is found.
func Mangle(b []byte) {
	if !Enabled {
		return
	}
	for i := range b {
		b[i] = 0xcc
	}
}

// CloseOnce finds a second Close of the same object. The zero value is ready.
type CloseOnce struct{ closed bool }

// Close records the close and panics at the second one when assertions are compiled in.
func (c *CloseOnce) Close() {
	if Enabled {
		Check(!c.closed, "closed twice")
		c.closed = true
	}
}
