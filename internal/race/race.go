// Package race tells whether this is a build with the race detector. A test of one goroutine does less there: the
// detector makes it ten times as slow and finds nothing in it. The plain build runs all of it.
package race

import "testing"

// Fewer returns n, or few in a build with the race detector.
func Fewer(n, few int) int {
	if Enabled {
		return few
	}
	return n
}

// Alone skips a long test in which nothing runs beside anything else in a build with the race detector.
func Alone(t testing.TB) {
	t.Helper()
	if Enabled {
		t.Skip("the build without the race detector runs it")
	}
}
