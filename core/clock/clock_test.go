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

// A clock that is set, frozen and run again goes on from where it stands. Elapsed never falls.
func TestSetAndRun(t *testing.T) {
	c := New()
	last := time.Duration(0)
	near := func(when string, want time.Time) {
		t.Helper()
		if d := c.Now().Sub(want); d < 0 || d > time.Minute {
			t.Errorf("%s: the time is %v, want %v", when, c.Now(), want)
		}
		if e := c.Elapsed(); e < last {
			t.Errorf("%s: Elapsed fell from %v to %v", when, last, e)
		} else {
			last = e
		}
	}
	past, future := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	c.Set(future)
	near("set to the future", future)
	c.Freeze()
	stands := c.Now()
	time.Sleep(time.Millisecond)
	if !c.Frozen() || c.Now() != stands {
		t.Error("a frozen clock moves")
	}
	c.Set(past)
	near("set to the past while it stands", past)
	c.Run()
	near("running again", past)
	if time.Sleep(time.Millisecond); c.Frozen() || !c.Now().After(past) {
		t.Error("a clock that runs again stands")
	}
	c.Set(future)
	near("set while it runs", future)
}
