package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

// frontOf returns how many numbers and LSNs a reader of the first slot skips if it begins at the floors. Each of them
// belonged to a removed entry.
func frontOf(t *testing.T, c *Container) (numbers uint64, lsns int64) {
	t.Helper()
	v, err := c.View(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	slot := &v.Slots()[0]
	h, err := v.Head(slot)
	if err != nil {
		t.Fatal(err)
	}
	lowest, err := v.Lowest(slot)
	if err != nil || lowest != h.Lowest {
		t.Fatal(lowest, h.Lowest, err)
	}
	number, lsn := c.counter.numbered(), h.LSN
	sl := slot.Slot
	if key, err := first(v.snap, keys.AppendNumber(nil, sl.key, 0), sl.key, keys.KindNumber); err != nil {
		t.Fatal(err)
	} else if n, ok := keys.NumberCounter(key); ok {
		number = n
	}
	if key, err := first(v.snap, keys.AppendFeed(nil, sl.key, 0, 0), sl.key, keys.KindFeed); err != nil {
		t.Fatal(err)
	} else if n, _, ok := keys.Feed(key); ok {
		lsn = int64(n)
	}
	if number < h.Lowest || lsn < h.FeedFloor {
		t.Fatalf("the first item has number %d and LSN %d, below the floors %d and %d", number, lsn, h.Lowest,
			h.FeedFloor)
	}
	return number - h.Lowest, lsn - h.FeedFloor
}

func queueItem(t *testing.T, i int) []byte {
	t.Helper()
	d, err := doc.FromJSON(nil, fmt.Appendf(nil, `{"id":"%d","pk":"p","a":%[1]d}`, i),
		doc.JSONOptions{Names: doc.NoSQL})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// In a queue, with items added at the end and removed at the front, a reader from the front skips a bounded number of
// removed items.
func TestFloorsOfAQueue(t *testing.T) {
	race.Alone(t)
	ctx := context.Background()
	for _, keep := range []int{0, 50} {
		t.Run(fmt.Sprint(keep, " stay"), func(t *testing.T) {
			c, _ := checkedContainer(t, 0)
			items := 20_000
			write := func(w *Write) {
				t.Helper()
				if _, err := c.Write(ctx, w); err != nil {
					t.Fatal(err)
				}
			}
			for i := range items {
				write(&Write{Kind: Create, Doc: queueItem(t, i)})
				if i >= keep {
					write(
						&Write{Kind: Delete, PK: PartitionKey{value.StringOf("p")},
							ID: value.StringOf(fmt.Sprint(i - keep))})
				}
				if i%5000 == 4999 {
					settleFloors(t, c)
					write(&Write{Kind: Create, Doc: queueItem(t, items+i)}) // its head has the floors
					write(
						&Write{Kind: Delete, PK: PartitionKey{value.StringOf("p")},
							ID: value.StringOf(fmt.Sprint(items + i))})
					numbers, lsns := frontOf(t, c)
					if numbers > 2*raiseAfter || lsns > 4*raiseAfter {
						t.Errorf("after %d items a reader passes %d numbers and %d LSNs", i+1, numbers, lsns)
					}
				}
			}
			if err := c.Check(ctx, Watch{Problem: func(p string) { t.Error(p) }}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// settleFloors waits until no floors are being raised.
func settleFloors(t *testing.T, c *Container) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); c.raising.Load(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the floors are still looked for")
		}
	}
}

// The commit of an item whose number was assigned before the floor was raised lowers the floor, also while floors are
// being raised.
func TestFloorsMeetOldNumbers(t *testing.T) {
	ctx := context.Background()
	for _, meanwhile := range []bool{false, true} {
		c, _ := checkedContainer(t, 10)
		sl := c.slotList()[0]
		n, err := c.counter.nextNumber(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			_, err := c.Write(ctx, &Write{Kind: Delete, PK: PartitionKey{value.StringOf(fmt.Sprint("p", i))},
				ID: value.StringOf(fmt.Sprint(i))})
			if err != nil {
				t.Fatal(err)
			}
		}
		late := func() { // a write that was prepared before
			ch := change{}
			w := Write{Kind: Create, Doc: queueItem(t, 99)}
			if ch.id, err = c.identify(&w); err != nil {
				t.Fatal(err)
			}
			if err := c.prepare(ctx, &ch, w.Doc, false, true); err != nil {
				t.Fatal(err)
			}
			ch.item.Number = ch.item.Number&^(1<<counterBits-1) | n
			d, err := c.plan([]change{ch})
			if err != nil {
				t.Fatal(err)
			}
			sl.mu.Lock()
			defer sl.mu.Unlock()
			if p, raced, err := d.commit(ctx); err != nil || raced {
				t.Fatal(p, raced, err)
			}
		}
		if meanwhile {
			snap, was, next, err := c.beginRaise(sl)
			if err != nil {
				t.Fatal(err)
			}
			late()
			if err := c.endRaise(sl, snap, was, next); err != nil {
				t.Fatal(err)
			}
		} else {
			if err := c.raiseFloors(sl); err != nil {
				t.Fatal(err)
			}
			if sl.head.Lowest <= n {
				t.Fatalf("the floor is %d", sl.head.Lowest)
			}
			late()
		}
		if _, err := c.Write(ctx, &Write{Kind: Create, Doc: queueItem(t, 100)}); err != nil {
			t.Fatal(err)
		}
		if sl.head.Lowest > n {
			t.Errorf("meanwhile %v: the floor is %d, an item has number %d", meanwhile, sl.head.Lowest, n)
		}
		if err := c.Check(ctx, Watch{Problem: func(p string) { t.Error(p) }}); err != nil {
			t.Fatal(err)
		}
	}
}
