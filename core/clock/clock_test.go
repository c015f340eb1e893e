package clock

import (
	"testing"
	"time"
)

// Elapsed goes on with a frozen clock's Advance. It doesn't fall when the clock is set back or frozen.
func TestElapsed(t *testing.T) {
	c := Fake(time.Unix(1_700_000_000, 0))
	for _, step := range []struct{ advance, elapsed time.Duration }{
		{0, 0}, {time.Second, time.Second}, {-24 * time.Hour, time.Second}, {time.Minute, time.Minute + time.Second},
	} {
		c.Advance(step.advance)
		if got := c.Elapsed(); got != step.elapsed {
			t.Errorf("after %v: %v, want %v", step.advance, got, step.elapsed)
		}
	}
	if now := c.Now().Unix(); now != 1_700_000_000+61-24*3600 {
		t.Errorf("the time is %d", now)
	}
	r := New()
	time.Sleep(2 * time.Millisecond)
	before := r.Elapsed()
	r.Advance(time.Hour)
	if after := r.Elapsed(); before < 2*time.Millisecond || after < before+time.Hour || after > before+2*time.Hour {
		t.Errorf("%v before it was frozen, %v after an hour", before, after)
	}
}
