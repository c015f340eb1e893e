package status

import "testing"

// Hot paths call Is with a nil error.
func TestIsOfNoErrorAllocatesNothing(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() {
		if Is(nil, NotFound) {
			t.Fatal("no error has a code")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
