package spill

import (
	"testing"
	"time"
)

// held is a State for tests.
type held struct {
	bytes  int64
	closed int
}

func (h *held) Held() int64 { return h.bytes }
func (h *held) Close()      { h.closed++ }

// A state is found once, by its owner, within KeptFor. However it ends, it is closed once.
func TestKept(t *testing.T) {
	now := time.Unix(1000, 0)
	n := uint64(0)
	k := NewKept(1000, func() time.Time { return now }, func() uint64 { n++; return n })
	put := func(bytes int64) (*held, uint64) {
		h := &held{bytes: bytes}
		return h, k.Put(7, h)
	}
	a, id := put(10)
	if k.Take(8, id) != nil || k.Take(7, id+1) != nil {
		t.Error("found by another owner or number")
	}
	if k.Take(7, id) != State(a) || k.Take(7, id) != nil || a.closed != 0 {
		t.Error("not found, or twice")
	}
	b, id := put(10)
	now = now.Add(KeptFor + time.Second)
	if k.Take(7, id) != nil || b.closed != 1 {
		t.Error("found after its time")
	}
	if c, id := put(251); id != 0 || c.closed != 1 {
		t.Error("a state that holds a quarter of all was kept")
	}
	first, _ := put(250)
	for range 4 {
		now = now.Add(time.Second)
		put(250)
	}
	if first.closed != 1 || k.Len() != 4 {
		t.Errorf("%d are kept", k.Len())
	}
	k.Drop()
	if k.Len() != 0 {
		t.Error("some are left")
	}
	var all []*held
	for range maxKept + 10 {
		now = now.Add(time.Millisecond)
		h, _ := put(0)
		all = append(all, h)
	}
	if k.Len() != maxKept || all[9].closed != 1 || all[10].closed != 0 {
		t.Errorf("%d are kept", k.Len())
	}
	k.Close()
	if d, id := put(1); id != 0 || d.closed != 1 || all[10].closed != 1 {
		t.Error("one is kept after the end")
	}
}
