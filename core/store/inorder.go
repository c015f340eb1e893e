package store

import (
	"bytes"
	"context"
	"math"
	"slices"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
)

// With a shared engine processes take item numbers in blocks, so an item with a lower number may become visible after
// one with a higher number, and nobody knows those that are on their way. In a capped container the order of numbers is
// the order of insertion. So there the commit itself takes the numbers of its new items: it reads the stored counter,
// numbers its items from there on, and replaces the counter, under the precondition that it is what was read. A
// snapshot that shows a number therefore shows all lower ones. Inserts of one container follow one another, whatever
// the slot.
//
// The commit also takes blocks of LSNs from that counter. A reservation of its own would change the counter that the
// commit has read.
//
// Example: the counter is 7. A and B insert. Both read 7, and number their items 8. A's commit is the first one. B's
// is refused, as if it had lost a race for its slot. It reads 8, and its item gets the number 9.

// numbering is what a commit takes from the counter of a container.
type numbering struct {
	c        *Container
	was      []byte // the stored counter; nil: there is none
	lsn, num uint64 // what the commit makes of it
}

// inOrder reports whether commits take the numbers of new items themselves.
func (c *Container) inOrder() bool { return c.st.others && !c.unborn && c.def.Load().Capped != nil }

// counterKey returns the key of the container's counter.
func (c *Container) counterKey() []byte { return keys.AppendMeta(nil, keys.MetaCounter, c.gen, "") }

// heldKeys returns the keys that a writer holds in the store if it has lost a race for a slot.
func (c *Container) heldKeys(sl *Slot) [][]byte {
	if c.inOrder() {
		return [][]byte{sl.headKey[:], c.counterKey()}
	}
	return [][]byte{sl.headKey[:]}
}

// takes returns what a draft takes from a container's counter.
func (d *draft) takes(ctx context.Context, c *Container) (*numbering, error) {
	if i := slices.IndexFunc(d.numbers, func(t numbering) bool { return t.c == c }); i >= 0 {
		return &d.numbers[i], nil
	}
	t := numbering{c: c}
	var err error
	if t.lsn, t.num, t.was, err = c.counter.stored(ctx); err != nil {
		return nil, err
	}
	d.numbers = append(d.numbers, t)
	return &d.numbers[len(d.numbers)-1], nil
}

// knows has a draft take from a counter as it is in the snapshot that the draft is based on.
func (d *draft) knows(c *Container, counter []byte) error {
	t := numbering{c: c, was: bytes.Clone(counter)}
	var err error
	t.lsn, t.num, err = decodeCounter(t.was)
	d.numbers = append(d.numbers, t)
	return err
}

// seenCounter is where a look has the stored counter of a container that is in order.
type seenCounter struct {
	counted bool // it has one
	counter int  // its place among the keys that were read with the slots
}

// wantCounter adds the counter to the keys that are to be read.
func (s *seenCounter) wantCounter(c *Container, more [][]byte) [][]byte {
	if s.counted = c.inOrder(); s.counted {
		s.counter = len(more)
		more = append(more, c.counterKey())
	}
	return more
}

// knownTo has a draft that is based on the look take from the counter as it was read.
func (s *seenCounter) knownTo(d *draft, c *Container, l *look) error {
	if !s.counted || d.on != l.snap {
		return nil
	}
	return d.knows(c, l.more(s.counter))
}

// number numbers the new items of a draft in containers that are in order, in the order of its request. It reports
// whether there are any: then the batch has to be made again.
func (d *draft) number(ctx context.Context) (any bool, err error) {
	var news []*change
	for i := range d.parts {
		if !d.parts[i].sl.c.inOrder() {
			continue
		}
		for k := range d.parts[i].chs {
			if ch := &d.parts[i].chs[k]; ch.item != nil && ch.live() == nil {
				news = append(news, ch)
			}
		}
	}
	slices.SortStableFunc(news, func(a, b *change) int { return a.order - b.order })
	for _, ch := range news {
		t, err := d.takes(ctx, ch.id.slot.c)
		if err != nil {
			return false, err
		}
		if t.num++; t.num > maxNumber {
			return false, errNumbersEnd()
		}
		ch.item.Number = t.c.number(ch.id.place, t.num)
	}
	return len(news) > 0, nil
}

// nextLSN returns the LSN of the draft's next commit into a slot with the head h. It may change h.Block.
func (d *draft) nextLSN(ctx context.Context, c *Container, h *Head) (int64, error) {
	if c.inOrder() && c.blockEnds(h) {
		t, err := d.takes(ctx, c)
		if err != nil {
			return 0, err
		}
		first := max(t.lsn, uint64(h.LSN))
		if first+sharedLSNs > maxLSN {
			return 0, errNumbersEnd()
		}
		t.lsn = first + sharedLSNs
		h.LSN, h.Block = int64(first), int64(t.lsn)
	}
	return c.nextLSN(ctx, h)
}

// putNumbers adds the counters that a draft has taken from to its batch.
func (d *draft) putNumbers() {
	for _, t := range d.numbers {
		pre := kv.Precondition{Key: t.c.counterKey(), Expect: kv.Absent}
		if t.was != nil {
			pre.Expect, pre.Value = kv.Equal, t.was
		}
		d.pre = append(d.pre, pre)
		putCounter(d.late, t.c.gen, t.lsn, t.num)
	}
}

func errNumbersEnd() error {
	return status.New(status.BadRequest, "The item numbers of the container are at their end.")
}

// allVisible is a counter that is above those of all items.
const allVisible = math.MaxUint64
