package invariants

import "testing"

// The tests run with and without the tag: `go test -tags invariants ./core/invariants`.

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

func TestCheckPanicsOnlyWhenEnabled(t *testing.T) {
	if got := panics(func() { Check(false, "x is %d", 1) }); got != Enabled {
		t.Fatalf("broken invariant panicked = %v, want %v", got, Enabled)
	}
	if panics(func() { Check(true, "never") }) {
		t.Fatal("a true condition panicked")
	}
}
