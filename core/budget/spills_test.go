package budget

import (
	"testing"

	"github.com/orrerydb/orrery/core/status"
)

// spiller is an account whose holder writes its whole state to files when it has to.
func spiller(b *Budget, spilled *int) *Account {
	a := b.Open("sort")
	a.Spills()
	a.OnSpill(func() {
		*spilled++
		a.Shrink(a.Used())
	})
	return a
}

// Accounts that can spill share half of the budget. They are never refused, even if other accounts hold all of it, or
// if one element is larger than their share.
func TestSpillersShareHalf(t *testing.T) {
	const limit, step = 16 << 20, 10 << 10
	b := New(limit, 0)
	n := make([]int, 4)
	first := spiller(b, &n[0])
	for first.Used() < limit/2-step {
		if err := first.Grow(step); err != nil {
			t.Fatal(err)
		}
	}
	if n[0] != 0 {
		t.Fatalf("the first one spilled at %d of %d bytes", first.Used(), limit)
	}
	accts := []*Account{first}
	for i := 1; i < len(n); i++ {
		accts = append(accts, spiller(b, &n[i]))
	}
	for i := range 2000 {
		for _, a := range accts {
			if err := a.Grow(step); err != nil {
				t.Fatal(err)
			}
		}
		if used := b.Used(); used > limit/2+int64(len(n))*2*chunk {
			t.Fatalf("%d bytes are held after %d steps", used, i)
		}
	}
	for i, n := range n {
		if n == 0 || n > 100 {
			t.Errorf("%d spilled %d times", i, n)
		}
	}
	others := b.Open("others")
	for others.Grow(64) == nil {
	}
	before := n[1]
	for range 100 {
		if err := accts[1].Grow(step); err != nil {
			t.Fatal(err)
		}
	}
	if accts[1].Used() > limit/2/4+2*chunk || n[1] == before {
		t.Errorf("%d bytes are held beside others, %d times spilled", accts[1].Used(), n[1]-before)
	}
	if err := accts[2].Grow(limit); err != nil {
		t.Errorf("one large thing: %v", err)
	}
	for _, a := range append(accts, others) {
		a.Close()
	}
	if b.Used() != 0 {
		t.Errorf("%d bytes are left over", b.Used())
	}
}

// Buffers don't take the place of what an account may always hold, and count in the budget until they are returned.
func TestBuffersAreBesideTheFloor(t *testing.T) {
	b := New(2*Floor, 0)
	n := 0
	a := b.Open("sort")
	a.Spills()
	held := int64(0)
	a.OnSpill(func() {
		n++
		a.Shrink(held)
		held = 0
	})
	a.TakeBuffer(3 * Floor)
	for range 3 * Floor >> 10 {
		if err := a.Grow(1 << 10); err != nil {
			t.Fatal(err)
		}
		held += 1 << 10
	}
	if n < 2 || n > 4 || b.Used() < 3*Floor+held {
		t.Errorf("%d times spilled, %d bytes are held", n, b.Used())
	}
	a.Shrink(held)
	if a.GiveBuffer(3 * Floor); a.Used() != 0 {
		t.Errorf("%d bytes are left", a.Used())
	}
	if a.Close(); b.Used() != 0 {
		t.Errorf("%d bytes are left over", b.Used())
	}
}

// An idle account takes nothing from the others' share until it grows again.
func TestAnAccountThatRests(t *testing.T) {
	b := New(16<<20, 0)
	n := 0
	resting, other := spiller(b, &n), spiller(b, &n)
	for _, a := range []*Account{resting, other} {
		if err := a.Grow(1 << 20); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.spill.Load(); got != 2 {
		t.Fatalf("%d share", got)
	}
	resting.Rest()
	if got := b.spill.Load(); got != 1 {
		t.Errorf("%d share while one rests", got)
	}
	if err := resting.Grow(1 << 20); err != nil || b.spill.Load() != 2 {
		t.Errorf("%d share when it grows: %v", b.spill.Load(), err)
	}
	resting.Close()
	other.Close()
	if b.spill.Load() != 0 || b.Used() != 0 {
		t.Errorf("%d share, %d bytes are held", b.spill.Load(), b.Used())
	}
}

// An account with memory that can't be spilled is refused, whatever else it spills.
func TestWhatCantBeSpilledIsRefused(t *testing.T) {
	b := New(4<<20, 0)
	a := b.Open("group")
	a.Spills()
	a.OnSpill(func() {})
	var err error
	for i := 0; i < 1000 && err == nil; i++ {
		err = a.Grow(10 << 10)
	}
	if !status.Is(err, status.MemoryLimit) {
		t.Errorf("the error is %v", err)
	}
	a.Close()
}
