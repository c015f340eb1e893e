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

func TestMangleAndCloseOnce(t *testing.T) {
	b := []byte("abc")
	Mangle(b)
	if changed := string(b) != "abc"; changed != Enabled {
		t.Fatalf("mangled = %v, want %v", changed, Enabled)
	}
	var c CloseOnce
	c.Close()
	if got := panics(c.Close); got != Enabled {
		t.Fatalf("second close panicked = %v, want %v", got, Enabled)
	}
}
