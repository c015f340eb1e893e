package budget

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/orrerydb/orrery/core/status"
)

func TestGrow(t *testing.T) {
	b := New(1<<20, 512<<10)
	a := b.Open("sort")
	for range 512 {
		if err := a.Grow(1 << 10); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Grow(1); !status.Is(err, status.MemoryLimit) {
		t.Errorf("above its share: %v", err)
	}
	c, d := b.Open("group"), b.Open("distinct")
	if err := c.Grow(512 << 10); err != nil {
		t.Fatal(err)
	}
	err := d.Grow(1)
	if !status.Is(err, status.TooManyRequests) || status.From(err).RetryAfter == 0 {
		t.Errorf("a spent budget: %v", err)
	}
	a.Close()
	if err := d.Grow(1); err != nil {
		t.Errorf("with room again: %v", err)
	}
	c.Close()
	d.Close()
	if b.Used() != 0 {
		t.Errorf("%d bytes are left over", b.Used())
	}
}

func TestGrowTakesTheLastBytes(t *testing.T) {
	b := New(100<<10, 0)
	a, c := b.Open("sort"), b.Open("sort")
	if err := a.Grow(60 << 10); err != nil { // takes a chunk of 64 KiB
		t.Fatal(err)
	}
	if err := c.Grow(36 << 10); err != nil {
		t.Errorf("36 KiB of 36 that are free: %v", err)
	}
}

func TestSpill(t *testing.T) {
	b := New(1<<20, 0)
	a := b.Open("sort")
	spilled := 0
	a.OnSpill(func() { spilled++; a.Shrink(a.Used()) })
	for range 5000 {
		if err := a.Grow(1 << 10); err != nil {
			t.Fatal(err)
		}
	}
	if spilled != 4 {
		t.Errorf("5,000 KiB in a budget of 1,024 were written out %d times, want 4", spilled)
	}
}

func TestWait(t *testing.T) {
	b := New(1000, 0)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			a := b.Open("request body")
			for range 50 {
				if err := a.Wait(context.Background(), 300); err != nil {
					t.Error(err)
				}
				if b.Used() > 1000 {
					t.Errorf("%d bytes of 1000 are held", b.Used())
				}
				a.Close()
			}
		})
	}
	wg.Wait()
	if b.Used() != 0 {
		t.Fatalf("%d bytes are left over", b.Used())
	}
	a, c := b.Open("request body"), b.Open("request body")
	if err := a.Wait(context.Background(), 1000); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if err := c.Wait(ctx, 1); err != context.DeadlineExceeded {
		t.Errorf("a wait that its context ends: %v", err)
	}
	a.Close()
	if err := c.Wait(context.Background(), 1000); err != nil || b.Used() != 1000 {
		t.Errorf("who gave up still holds something: %v, %d", err, b.Used())
	}
}

// A waiter for less than is free continues when the waiter before it gives up.
func TestWaitGoesOnBehindOneThatGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(1000, 0)
		holder, large, small := b.Open("request body"), b.Open("request body"), b.Open("request body")
		if err := holder.Wait(context.Background(), 900); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			if err := large.Wait(ctx, 500); err != context.Canceled {
				t.Errorf("the wait of the first: %v", err)
			}
		}()
		synctest.Wait()
		got := false
		go func() { got = small.Wait(t.Context(), 50) == nil }()
		synctest.Wait()
		if got {
			t.Error("the second went past the first")
		}
		cancel()
		synctest.Wait()
		if !got {
			t.Error("the second waits although there is room")
		}
	})
}

func TestNone(t *testing.T) {
	var b *Budget
	a := b.Open("sort")
	if err := a.Grow(1 << 40); err != nil {
		t.Error(err)
	}
	if err := a.Wait(context.Background(), 1<<40); err != nil {
		t.Error(err)
	}
	a.Shrink(1)
	a.Close()
}

func BenchmarkGrow(b *testing.B) {
	bud := New(1<<40, 0)
	b.RunParallel(func(pb *testing.PB) {
		a := bud.Open("sort")
		for pb.Next() {
			_ = a.Grow(64)
		}
	})
}
