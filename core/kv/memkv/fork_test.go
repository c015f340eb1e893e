package memkv

import (
	"context"
	"testing"

	"github.com/orrerydb/orrery/core/kv"
)

// Writes to an engine and to its fork don't show in the other one.
func TestFork(t *testing.T) {
	ctx := context.Background()
	put := func(e *Engine, key, value string) {
		t.Helper()
		var b kv.Batch
		b.Put([]byte(key), []byte(value))
		if _, err := e.Write(ctx, &b, nil); err != nil {
			t.Fatal(err)
		}
	}
	e := New()
	for i := range 1000 {
		put(e, "k"+string(rune('a'+i%26))+string(rune(i)), "old")
	}
	put(e, "shared", "old")
	f := e.Fork()
	put(e, "shared", "of the first")
	put(f, "shared", "of the fork")
	put(f, "new", "of the fork")
	for _, c := range []struct {
		e         *Engine
		key, want string
	}{{e, "shared", "of the first"}, {f, "shared", "of the fork"}, {e, "new", ""}, {f, "new", "of the fork"}} {
		got, _ := c.e.Get(ctx, nil, []byte(c.key))
		if string(got) != c.want {
			t.Errorf("%s is %q, want %q", c.key, got, c.want)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Get(ctx, nil, []byte("shared")); err != nil {
		t.Errorf("a fork after its origin was closed: %v", err)
	}
}
