package store

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"

	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
)

// committer makes the batch of one commit into one slot.
type committer struct {
	c   *Container
	sl  *slot
	b   *kv.Batch
	key []byte // scratch
	val []byte // scratch
	h   Head

	apart bool // the changes are independent: none may rely on one behind it

	evicted []change // expired items whose unique values the commit takes
}

// slotCommit is a commit into one slot whose batch is made.
type slotCommit struct {
	sl   *slot
	chs  []change
	h    Head
	head []byte
}

// commit makes the changes visible under the next LSN. The caller holds the slot's latch and has checked that every
// change's old item is the present one. All changes belong to the slot; each fills in LSN and position. raced says that the
// slot's head was not what was expected: nothing is written, try again.
func (c *Container) commit(ctx context.Context, sl *slot, chs []change) (p pending, raced bool, err error) {
	b := batchPool.Get().(*kv.Batch)
	b.Reset()
	s, err := c.build(ctx, sl, chs, b, false)
	if err != nil {
		return p, false, err
	}
	w, err := c.st.eng.Write(ctx, b, []kv.Precondition{s.pre()})
	if err != nil {
		raced, err = c.lost(sl, err)
		return p, raced, err
	}
	s.visible(w)
	return pending{commit: w, slot: sl, lsn: s.h.LSN, batch: b}, false, nil
}

// build adds the operations of a commit into one slot to a batch, and lets queries know what will be there. With apart each change
// has an LSN of its own, else they share one. The caller holds the latch until the commit is visible or given up.
func (c *Container) build(ctx context.Context, sl *slot, chs []change, b *kv.Batch, apart bool) (s slotCommit, err error) {
	lsn, err := c.counter.nextLSN(ctx, sl.head.LSN)
	if err != nil {
		return s, translate(err)
	}
	mem := scratchPool.Get().(*scratch)
	m := committer{c: c, sl: sl, b: b, h: sl.head, key: mem.key, val: mem.val, apart: apart}
	m.h.Tracked = slices.Clone(sl.head.Tracked)
	m.h.LSN = lsn
	defer m.release(mem)
	if err := m.uniques(chs); err != nil {
		return s, translate(err)
	}
	for i := range m.evicted {
		m.write(&m.evicted[i])
	}
	for i := range chs {
		pos := uint16(i)
		if apart && i > 0 {
			if m.h.LSN, err = c.counter.nextLSN(ctx, m.h.LSN); err != nil {
				return s, translate(err)
			}
		}
		if apart {
			pos = 0
		}
		chs[i].lsn = m.h.LSN
		if chs[i].item != nil {
			m.stamp(&chs[i], m.h.LSN, pos)
		}
		m.write(&chs[i])
	}
	all := chs
	if len(m.evicted) > 0 {
		all = append(slices.Clone(chs), m.evicted...)
	}
	if err := m.logicalHeads(all); err != nil {
		return s, translate(err)
	}
	s = slotCommit{sl: sl, chs: chs, h: m.h, head: m.h.append(sl.spare[:0])}
	b.Put(sl.headKey, s.head)
	sl.widen(&s.h)
	sl.remember(chs)
	return s, nil
}

// pre is what must hold for the commit.
func (s *slotCommit) pre() kv.Precondition {
	return kv.Precondition{Key: s.sl.headKey, Expect: kv.Equal, Value: s.sl.headBytes}
}

// visible tells the slot of its commit.
func (s *slotCommit) visible(w kv.Commit) {
	sl := s.sl
	sl.head, sl.headBytes, sl.spare = s.h, s.head, sl.headBytes
	sl.last.Store(&lastCommit{s.h.LSN, w})
	sl.publish()
}

// scratch is memory of a committer.
type scratch struct{ key, val []byte }

var scratchPool = sync.Pool{New: func() any { return new(scratch) }}

func (m *committer) release(mem *scratch) {
	if mem.key = m.key; cap(m.val) <= 1<<20 {
		mem.val = m.val
	}
	scratchPool.Put(mem)
	for i := range m.evicted {
		m.evicted[i].release()
	}
}

// lost finds out where a slot stands after the engine refused a commit or doesn't know what became of it, and reads its head
// again. raced says that nothing was written and that trying again may help. The caller holds the latch.
func (c *Container) lost(sl *slot, cause error) (raced bool, err error) {
	conflict := errors.Is(cause, kv.ErrConflict)
	if !conflict && !errors.Is(cause, kv.ErrUnknownOutcome) {
		return false, translate(cause)
	}
	b, err := c.st.eng.Get(sl.headKey)
	if errors.Is(err, kv.ErrNotFound) {
		return false, errDropped()
	}
	var h Head
	if err == nil {
		err = h.decode(b)
	}
	if err != nil {
		return false, translate(err)
	}
	if h.LSN != sl.head.LSN {
		// The head is that of a commit without a handle to wait on. A commit after it has one.
		var same kv.Batch
		same.Put(sl.headKey, b)
		w, err := c.st.eng.Write(context.Background(), &same, []kv.Precondition{{Key: sl.headKey, Expect: kv.Equal, Value: b}})
		if err != nil {
			return false, translate(err)
		}
		sl.last.Store(&lastCommit{h.LSN, w})
	}
	sl.head, sl.headBytes = h, b
	sl.publish()
	if conflict {
		return true, nil
	}
	return false, translate(cause)
}

// stamp gives a new item its LSN, position and time. Commit times never fall within a slot, so the time may move up; when
// that changes its second, the terms (which hold _ts) are made again.
func (m *committer) stamp(ch *change, lsn int64, pos uint16) {
	it := ch.item
	it.LSN, it.Pos = lsn, pos
	if it.Ticks < m.h.Ticks {
		before := it.TS()
		it.Ticks = m.h.Ticks
		if it.TS() != before {
			ch.collect(m.c.upkeepOf(m.sl))
		}
	}
	m.h.Ticks = it.Ticks
}

// write puts one change's keys into the batch.
func (m *committer) write(ch *change) {
	key, id := m.sl.key, ch.id
	if ch.old != nil {
		m.del(keys.AppendFeed(m.key[:0], key, uint64(ch.old.LSN), ch.old.Pos))
		m.h.Items--
		m.h.Bytes -= storedSize(id, ch.old)
		m.ttl(id, ch.old, true)
		if ch.item == nil || ch.item.Number != ch.old.Number {
			m.del(keys.AppendNumber(m.key[:0], key, ch.old.Number))
		}
	}
	m.index(ch)
	m.sl.rb.extra = m.sl.rb.extra || ch.extra
	itemKey := append(keys.AppendPrefix(m.key[:0], key, keys.KindItem), id.suffix...)
	if ch.item == nil {
		m.del(itemKey)
		return
	}
	m.val = appendEnvelope(m.val[:0], ch.item)
	m.put(itemKey, m.val)
	if ch.old == nil || ch.item.Number != ch.old.Number {
		m.put(keys.AppendNumber(m.key[:0], key, ch.item.Number), id.suffix)
	}
	m.put(keys.AppendFeed(m.key[:0], key, uint64(ch.item.LSN), ch.item.Pos), id.suffix)
	m.ttl(id, ch.item, false)
	m.h.Items++
	m.h.Bytes += storedSize(id, ch.item)
}

func (m *committer) put(key, val []byte) {
	m.b.Put(key, val)
	m.key = key
}

func (m *committer) del(key []byte) {
	m.b.Delete(key)
	m.key = key
}

// storedSize is the logical size of an item: its key and value.
func storedSize(id identity, it *Item) int64 {
	n := keys.PrefixLen + len(id.suffix) + envFixed + envSum + len(it.Doc)
	if it.TTL != 0 {
		n += 4
	}
	return int64(n)
}

// ttl keeps the ttl entry of an item with a ttl of its own.
func (m *committer) ttl(id identity, it *Item, del bool) {
	if it.TTL <= 0 {
		return
	}
	k := keys.AppendTTL(m.key[:0], m.sl.key, uint64(it.TS()+int64(it.TTL)), id.suffix)
	if del {
		m.del(k)
	} else {
		m.put(k, []byte{1})
	}
}

var noTerms index.Terms

// index moves the index entries from the old terms to the new ones.
func (m *committer) index(ch *change) {
	old, new := ch.oldTerms, ch.newTerms
	if old == nil {
		old = &noTerms
	}
	if new == nil {
		new = &noTerms
	}
	before := old
	if ch.old != nil && ch.item != nil && ch.old.Number != ch.item.Number { // an expired item replaced: nothing is shared
		index.Diff(old, &noTerms, m.delTerm(ch, ch.old.Number), nil)
		old = &noTerms
	}
	var number uint64
	if ch.item != nil {
		number = ch.item.Number
	} else {
		number = ch.old.Number
	}
	index.Diff(old, new, m.delTerm(ch, number), func(term []byte, flag byte) {
		m.put(keys.AppendIndexEntry(m.key[:0], m.sl.key, term, number, ch.id.ident), []byte{flag})
	})
	for i := range m.h.Tracked {
		t := &m.h.Tracked[i]
		t.Count += int64(new.HasValue(t.Path)) - int64(before.HasValue(t.Path))
	}
	m.h.Classes |= new.Classes | keyClasses(ch.id.ident)
	m.h.Elements.Merge(&new.Elements)
	m.h.Lossy.Merge(&new.Lossy)
	m.sl.rb.note(new.Classes|keyClasses(ch.id.ident), &new.Elements, &new.Lossy)
}

// keyClasses returns the value classes of the parts of an identity: a head knows them whatever the policy indexes.
func keyClasses(ident []byte) (bits uint32) {
	for len(ident) > 0 {
		bits |= 1 << (ident[0] >> 3)
		rest, err := keys.SkipExact(ident)
		if err != nil {
			break
		}
		ident = rest
	}
	return bits
}

func (m *committer) delTerm(ch *change, number uint64) func([]byte) {
	return func(term []byte) {
		m.del(keys.AppendIndexEntry(m.key[:0], m.sl.key, term, number, ch.id.ident))
	}
}

// logicalHeads rewrites the heads of the logical partitions that the changes touch, and refuses one that would grow above
// its limit.
func (m *committer) logicalHeads(chs []change) error {
	for i := range chs {
		id := chs[i].id
		part := id.suffix[:len(id.place)+len(id.tuple)]
		if seenBefore(chs[:i], part) {
			continue
		}
		key := append(keys.AppendPrefix(m.key[:0], m.sl.key, keys.KindLogical), part...)
		var h LogicalHead
		b, err := m.c.st.eng.Get(key)
		switch {
		case errors.Is(err, kv.ErrNotFound):
		case err != nil:
			return err
		default:
			if err := h.decode(b); err != nil {
				return err
			}
		}
		before, full := h.Bytes, false
		for j := i; j < len(chs); j++ {
			if j == i || string(chs[j].id.tuple) == string(id.tuple) {
				was := h.Bytes
				h.add(&chs[j])
				full = full || m.apart && h.Bytes > m.c.st.lim.LogicalPartition && h.Bytes > was
			}
		}
		if full || h.Bytes > m.c.st.lim.LogicalPartition && h.Bytes > before {
			return status.WithSub(status.Forbidden, status.SubPartitionKeyFull,
				"Partition key reached maximum size of %s. Learn more: https://aka.ms/CosmosDB/sql/errors/full-pk", sizeText(m.c.st.lim.LogicalPartition))
		}
		h.LSN = m.h.LSN
		if h.Items == 0 {
			m.del(key)
		} else {
			m.val = h.append(m.val[:0])
			m.put(key, m.val)
		}
	}
	return nil
}

func seenBefore(chs []change, part []byte) bool {
	for i := range chs {
		id := chs[i].id
		if string(id.suffix[:len(id.place)+len(id.tuple)]) == string(part) {
			return true
		}
	}
	return false
}

func (h *LogicalHead) add(ch *change) {
	if ch.old != nil {
		h.Items--
		h.Bytes -= storedSize(ch.id, ch.old)
	}
	if ch.item != nil {
		h.Items++
		h.Bytes += storedSize(ch.id, ch.item)
	}
}

func sizeText(n int64) string {
	unit := []string{"bytes", "KB", "MB", "GB", "TB"}
	i := 0
	for n >= 1024 && n%1024 == 0 && i < len(unit)-1 {
		n /= 1024
		i++
	}
	return strconv.FormatInt(n, 10) + " " + unit[i]
}
