package store

import (
	"context"
	"testing"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
)

// afterGet is an engine that calls f after each Get.
type afterGet struct {
	kv.Engine
	f func()
}

func (e *afterGet) Get(ctx context.Context, dst, key []byte) ([]byte, error) {
	v, err := e.Engine.Get(ctx, dst, key)
	e.f()
	return v, err
}

// Two processes that read the counter at the same time reserve different blocks, also at the first time. A container
// that was dropped gets no counter again.
func TestSharedBlocks(t *testing.T) {
	ctx := context.Background()
	eng := kvtest.NewShared(memkv.New(), 1).Engine()
	alive := []byte("head")
	var b kv.Batch
	b.Put(alive, []byte{1})
	if _, err := eng.Write(ctx, &b, nil); err != nil {
		t.Fatal(err)
	}
	second := counter{eng: eng, gen: 7}
	seen := map[uint64]bool{}
	take := func(c *counter) {
		n, err := c.sharedNumber(ctx, alive)
		if err != nil || seen[n] {
			t.Errorf("number %d, given before: %v (%v)", n, seen[n], err)
		}
		seen[n] = true
	}
	reserves := 0
	first := counter{eng: &afterGet{eng, func() {
		if reserves++; reserves%2 == 1 { // the second process uses up its block, and reserves the next
			for range sharedBlock {
				take(&second)
			}
		}
	}}, gen: 7}
	for range 2*sharedBlock + 1 {
		take(&first)
	}
	b.Reset()
	b.Delete(alive)
	if _, err := eng.Write(ctx, &b, nil); err != nil {
		t.Fatal(err)
	}
	third := counter{eng: eng, gen: 7}
	if n, err := third.sharedNumber(ctx, alive); !status.Is(err, status.NotFound) {
		t.Errorf("after the drop: number %d, %v", n, err)
	}
}
