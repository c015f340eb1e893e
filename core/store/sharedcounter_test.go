package store

import (
	"context"
	"testing"
	"time"

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
			take(&second)
			for second.num.last < second.num.to {
				take(&second)
			}
			take(&second)
		}
	}}, gen: 7}
	for range 4*leastBlock + 1 {
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

// A block lasts about a second, between the least and the most: a process that creates many items reserves seldom.
func TestSizesOfBlocks(t *testing.T) {
	var at time.Time
	for _, tc := range []struct {
		size, next uint64
		lasted     time.Duration
	}{
		{0, leastBlock, time.Hour}, // the first one
		{leastBlock, 2 * leastBlock, 0},
		{2 * leastBlock, 4 * leastBlock, blockTime - 1},
		{4 * leastBlock, 4 * leastBlock, blockTime},
		{4 * leastBlock, 4 * leastBlock, 2 * blockTime},
		{4 * leastBlock, 2 * leastBlock, 2*blockTime + 1},
		{leastBlock, leastBlock, time.Hour},
		{mostBlock, mostBlock, 0},
	} {
		if got := (blocks{tc.size, at}).next(at.Add(tc.lasted)); got != tc.next {
			t.Errorf("a block of %d that lasted %v is followed by one of %d, want %d", tc.size, tc.lasted, got, tc.next)
		}
	}
}

// The rest of a large block isn't used when it is old: a process that has become slow would be far behind others.
func TestOldBlocks(t *testing.T) {
	ctx := context.Background()
	eng := kvtest.NewShared(memkv.New(), 1).Engine()
	alive := []byte("head")
	var b kv.Batch
	b.Put(alive, []byte{1})
	if _, err := eng.Write(ctx, &b, nil); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		size uint64
		age  time.Duration
		used bool
	}{
		{leastBlock, time.Hour, true},
		{4 * leastBlock, oldBlock / 2, true},
		{4 * leastBlock, oldBlock + time.Second, false},
	} {
		c := counter{eng: eng, gen: 7}
		first, err := c.sharedNumber(ctx, alive)
		if err != nil {
			t.Fatal(err)
		}
		c.blocks = blocks{tc.size, realTime.Now().Add(-tc.age)}
		n, err := c.sharedNumber(ctx, alive)
		if used := n == first+1; err != nil || used != tc.used {
			t.Errorf("%d follows %d in a block of %d that is %v old: %v", n, first, tc.size, tc.age, err)
		}
		if !tc.used && c.blocks.size != tc.size/2 {
			t.Errorf("a block of %d follows an old one of %d", c.blocks.size, tc.size)
		}
	}
}

// Two slots never get the same LSN, and the LSNs of each rise, also above those of a store that had no blocks. After a
// restore the rest of a block isn't used: the store may have given it out after the backup.
func TestSharedLSNs(t *testing.T) {
	ctx := context.Background()
	eng := kvtest.NewShared(memkv.New(), 1).Engine()
	process := func() *Container {
		c := &Container{st: &Store{eng: eng, others: true}, gen: 7, counter: counter{eng: eng, gen: 7}}
		c.slots.Store(&Slots{all: []*Slot{c.newSlot(0, nil, nil)}})
		if err := c.counter.load(ctx); err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := process()
	var b kv.Batch
	b.Put(c.slotList()[0].headKey[:], []byte{1})
	if _, err := eng.Write(ctx, &b, nil); err != nil {
		t.Fatal(err)
	}
	seen := map[int64]bool{}
	next := func(c *Container, h *Head) {
		lsn, err := c.nextLSN(ctx, h)
		if err != nil || lsn <= h.LSN || seen[lsn] {
			t.Fatalf("LSN %d after %d, given before: %v (%v)", lsn, h.LSN, seen[lsn], err)
		}
		seen[lsn], h.LSN = true, lsn
	}
	slots := []Head{{}, {LSN: 5 * sharedLSNs}, {}}
	for i := range 5 * sharedLSNs {
		next(c, &slots[i*i%3])
	}
	b.Reset()
	if err := Raise(ctx, eng, []uint32{7}, &b); err != nil {
		t.Fatal(err)
	}
	if _, err := eng.Write(ctx, &b, nil); err != nil {
		t.Fatal(err)
	}
	for restored := process(); len(slots) > 0; slots = slots[1:] {
		if next(restored, &slots[0]); slots[0].LSN < raisedLSNs {
			t.Errorf("LSN %d after a restore", slots[0].LSN)
		}
	}
}
