package histories

import (
	"context"
	"maps"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// After returns what Do has written, after each step.
func TestStepsAreDone(t *testing.T) {
	ctx := context.Background()
	e, err := core.Open(ctx, memkv.New(), core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := e.EnsureDatabase(ctx, "db"); err != nil {
		t.Fatal(err)
	}
	c, err := e.CreateContainer(ctx, "db",
		core.ContainerSpec{ID: "c", PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}})
	if err != nil {
		t.Fatal(err)
	}
	st := []State{{}, {}}
	for n := range 40 {
		for w := range st {
			if err := Do(ctx, c, w, n, st[w]); err != nil {
				t.Fatal(err)
			}
		}
		found, err := Found(ctx, c, len(st))
		if err != nil {
			t.Fatal(err)
		}
		for w := range st {
			if !maps.Equal(found[w], st[w]) || !maps.Equal(found[w], After(w, n+1)) {
				t.Fatalf("writer %d after %d steps: %v, want %v", w, n+1, found[w], st[w])
			}
			if k, err := Steps(w, found[w], max(0, n-3), n+5); k != n+1 || err != nil {
				t.Errorf("writer %d after %d steps: taken for %d, %v", w, n+1, k, err)
			}
		}
	}
}

// Steps refuses a state that lacks a step, has an additional one, or has half of a transaction. It accepts half of an
// import.
func TestStepsTellsWhatIsWrong(t *testing.T) {
	half := func(n int, id string) State {
		st := After(0, n)
		delete(st, id)
		return st
	}
	for _, tc := range []struct {
		name     string
		got      State
		from, to int
		want     int // -1: an error
	}{
		{"as it was", After(0, 9), 9, 12, 9},
		{"all that is in flight", After(0, 12), 9, 12, 12},
		{"an acknowledged step is lost", After(0, 8), 9, 12, -1},
		{"a step that was not begun", After(0, 13), 9, 12, -1},
		{"half of a pair", half(2, "left-0-1"), 1, 2, -1},
		{"half of a large transaction", half(7, "large-0-3"), 6, 7, -1},
		{"half of an import", half(8, "import-0-3"), 7, 8, 7},
		{"half of an import that was acknowledged", half(8, "import-0-3"), 8, 9, -1},
	} {
		if n, err := Steps(0, tc.got, tc.from, tc.to); (err != nil) != (tc.want < 0) || err == nil && n != tc.want {
			t.Errorf("%s: %d, %v; want %d", tc.name, n, err, tc.want)
		}
	}
}
