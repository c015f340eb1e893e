package pebblekv

import (
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// throttle slows writers down while flushes lag behind them. Without it they fill all memtables at full speed, and then stop, all at
// once, for as long as the disk takes. With it the last memtables fill so slowly that a disk which is busy for a second
// makes many requests longer, and none of them as long as that. A flush that keeps pace with what is let through ends it: writers and
// flushes meet at some number of memtables, whatever the disk can do.
type throttle struct {
	size int64        // of a memtable
	open int64        // of the one that is written to, about: the first ones are smaller
	full atomic.Int64 // bytes of memtables that wait for their flush or are in it
	next atomic.Int64 // when the next batch may go, in ns since start
}

var start = time.Now()

// prices is what a byte of a batch costs a writer, in ns, by the number of full memtables. With the last price, before writers stop, 8 MB/s come
// through, about a second for a memtable; eight clients with batches of 100 items then wait a fifth of a second each. The one in its flush is free.
var prices = [memTables]int64{2: 4, 3: 15, 4: 50, 5: 120}

const (
	// memTables may exist: one that is written to, and full ones.
	memTables = 6
	// maxDelay is how long a batch waits at most.
	maxDelay = 100 * time.Millisecond
	// minDelay is less than what a sleep takes longer than it should: it stays owed.
	minDelay = 200 * time.Microsecond
)

// smallest is the size of a store's first memtable; each is twice as large as the one before, up to what the options say.
const smallest = 256 << 10

// listen has the store report its memtables. A flush takes all that are full, so each sets full right; the next one after a failed
// flush does, too. An error may also say that there was nothing in them.
func (t *throttle) listen(l *pebble.EventListener, memTable int) {
	t.size = int64(memTable)
	begun, ended := l.FlushBegin, l.FlushEnd
	l.WALCreated = func(pebble.WALCreateInfo) { // the memtable before is full; Pebble makes one log at a time
		t.full.Add(t.open)
		t.open = min(max(2*t.open, smallest), t.size)
	}
	l.FlushBegin = func(i pebble.FlushInfo) {
		t.full.Store(int64(i.InputBytes))
		begun(i)
	}
	l.FlushEnd = func(i pebble.FlushInfo) {
		t.full.Add(-int64(i.InputBytes))
		ended(i)
	}
}

// waiting is the number of full memtables; the small ones of a new store count by their size.
func (t *throttle) waiting() int64 { return max(t.full.Load()+t.size/2, 0) / t.size }

// wait is called before a batch of n bytes takes any lock.
func (t *throttle) wait(n int) {
	if t.waiting() > 1 {
		if d := t.delay(n, time.Since(start)); d > 0 {
			time.Sleep(d)
		}
	}
}

// delay is how long a batch of n bytes must wait that comes now.
func (t *throttle) delay(n int, now time.Duration) time.Duration {
	price := prices[min(t.waiting(), memTables-1)]
	for {
		next := t.next.Load()
		wait := max(next-int64(now), 0)
		if wait > int64(maxDelay) {
			return maxDelay
		}
		if t.next.CompareAndSwap(next, int64(now)+min(wait+price*int64(n), 2*int64(maxDelay))) { // nobody pays for one large batch for long
			if wait < int64(minDelay) {
				return 0
			}
			return time.Duration(wait)
		}
	}
}
