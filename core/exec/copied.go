package exec

import "github.com/orrerydb/orrery/core/kv"

// copied is the iterator of one stream of a merge on a local engine. It copies its first entries with an iterator that
// all streams share (via), because an iterator costs several seeks, and most streams of a short page need only a few
// entries. After these it makes an iterator of its own.
//
// Example: the 20 least entries of 16 slots. Each stream copies 6 entries, with one seek of the shared iterator. Where
// values are distributed evenly, a stream gives one or two of them, and none makes an iterator of its own.
//
// Entries that were copied and not given are not counted: entries.accept counts.
type copied struct {
	e    *entries // the stream; its lo and hi are the bounds
	via  *via     // nil: the merge has begun
	most int      // entries that are copied
	mem  []byte
	list []copiedEntry
	at   int
	back bool        // the list is in descending order
	more bool        // entries may follow the list
	own  kv.Iterator // nil: the position is in the list, or at its end
	err  error
}

// via is an iterator that finds the first entries of several streams.
type via struct{ it kv.Iterator }

// copiedEntry is an entry in memory: the key is mem[from:mid], the value mem[mid:to].
type copiedEntry struct{ from, mid, to int }

// fill copies the first entries, beginning with the one that via is on.
func (c *copied) fill(ok, back bool) bool {
	c.list, c.mem, c.at, c.back = c.list[:0], c.mem[:0], 0, back
	it := c.via.it
	for ; ok && len(c.list) < c.most; ok = back && it.Prev() || !back && it.Next() {
		from := len(c.mem)
		c.mem = append(c.mem, it.Key()...)
		mid := len(c.mem)
		c.mem = append(c.mem, it.Value()...)
		c.list = append(c.list, copiedEntry{from, mid, len(c.mem)})
	}
	c.more, c.err = ok, it.Err()
	return c.err == nil && len(c.list) > 0
}

// takeOver makes the stream's own iterator and moves it to the current entry. Past an end it has no position.
func (c *copied) takeOver() bool {
	if c.err == nil && c.own == nil {
		at := c.Key()
		c.via = nil
		if c.own, c.err = c.e.b.iter(c.e.lo, c.e.hi); c.err == nil && at != nil {
			c.own.SeekGE(at)
		}
	}
	return c.err == nil
}

// step moves by one entry. The list is left where it ends, and where the direction changes.
func (c *copied) step(back bool) bool {
	if c.own == nil && c.back == back {
		if c.at+1 < len(c.list) || !c.more {
			c.at = min(c.at+1, len(c.list))
			return c.err == nil && c.at < len(c.list)
		}
	}
	return c.takeOver() && (back && c.own.Prev() || !back && c.own.Next())
}

// The methods of kv.Iterator.

func (c *copied) First() bool {
	if c.via != nil && c.err == nil {
		return c.fill(c.via.it.First(), false)
	}
	return c.takeOver() && c.own.First()
}

func (c *copied) Last() bool {
	if c.via != nil && c.err == nil {
		return c.fill(c.via.it.Last(), true)
	}
	return c.takeOver() && c.own.Last()
}

func (c *copied) SeekGE(key []byte) bool {
	if c.via != nil && c.err == nil {
		return c.fill(c.via.it.SeekGE(key), false)
	}
	return c.takeOver() && c.own.SeekGE(key)
}

func (c *copied) SeekLT(key []byte) bool {
	if c.via != nil && c.err == nil {
		return c.fill(c.via.it.SeekLT(key), true)
	}
	return c.takeOver() && c.own.SeekLT(key)
}

func (c *copied) Next() bool { return c.step(false) }
func (c *copied) Prev() bool { return c.step(true) }

func (c *copied) Key() []byte {
	switch {
	case c.own != nil:
		return c.own.Key()
	case c.at < len(c.list):
		return c.mem[c.list[c.at].from:c.list[c.at].mid]
	}
	return nil
}

func (c *copied) Value() []byte {
	switch {
	case c.own != nil:
		return c.own.Value()
	case c.at < len(c.list):
		return c.mem[c.list[c.at].mid:c.list[c.at].to]
	}
	return nil
}

// Reset positions the iterator before the first key of the stream's bounds, which the stream has just changed.
func (c *copied) Reset(lo, hi []byte) {
	c.list, c.at, c.more = c.list[:0], 0, false
	switch {
	case c.via != nil && c.via.it != nil:
		c.via.it.Reset(lo, hi)
	case c.via != nil:
		c.via.it, c.err = c.e.b.iter(lo, hi)
	case c.own != nil:
		c.own.Reset(lo, hi)
	}
}

func (c *copied) Ahead(int) {} // only local engines are read in this way

func (c *copied) Err() error {
	if c.err == nil && c.own != nil {
		return c.own.Err()
	}
	return c.err
}

// Close releases the stream's own iterator. The shared one belongs to the merge.
func (c *copied) Close() error {
	if c.own != nil {
		c.e.b.rest(c.own)
		c.own = nil
	}
	return nil
}
