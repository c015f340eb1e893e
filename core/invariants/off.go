//go:build !invariants

package invariants

// Enabled reports whether assertions are compiled in.
const Enabled = false
