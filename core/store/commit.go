package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
)

// draft is a commit whose batch is complete except for what needs the latches: the LSNs and times of its items, and the
// heads. It goes through three steps. Only steps 2 and 3 run under the latches of all its slots:
//
//  1. plan makes the operations and passes them to the engine to prepare.
//  2. fill takes the LSNs and adds the operations that depend on them. The caller has checked that every change's old
//     item is still the current one.
//  3. write passes the batch to the engine and updates the slots.
//
// Index terms hold the second of an item's time, and commit times of a slot never decrease. A draft that began earlier
// may find that another has committed in a later second. Then its items get that time, and step 1 is repeated under the
// latches. This happens at most once a second in a slot.
//
// Example: a write of one item plans Put(item), Put(index entries) and the number entry without the latch. It takes the
// latch, checks that the old item is unchanged, takes LSN 42, adds the feed entry of LSN 42 and the head {LSN 42, items
// + 1}, writes the batch and releases the latch. It then waits until the commit is durable.
type draft struct {
	c     *Container  // of the first part; a Transaction has parts of several
	b     *kv.Batch   // step 1
	late  *kv.Batch   // step 2
	ready kv.Prepared // b
	parts []part      // by slot
	pre   []kv.Precondition
	mem   scratch
	// together says that the journal has the changes under one time.
	together bool
	numbers  []numbering // what it takes from counters, with a shared engine: see inOrder
	time     uint64      // of the last of the entries that wait for the journal of a shared store; 0: there are none
	on       kv.Snapshot // in which the heads were read that the commit replaces; nil: it isn't known to be one
}

// part is the part of a draft in one slot.
type part struct {
	sl  *Slot
	chs []change

	// What the items add to the index, and the number of logical partitions that they belong to.
	flags      indexFlags
	extra      bool
	partitions int

	known   *LogicalHead // of the only logical partition, if the caller has read it under the latch
	fell    int64        // time of the slot's last commit, if the clock is before it: an epoch begins
	evicted []change     // expired items whose unique values the commit takes over
	h       Head         // valid after fill
	head    []byte
	facts   factsChange
}

// scratch is memory for one key and one value.
type scratch struct{ key, val []byte }

var draftPool = sync.Pool{New: func() any { return &draft{late: new(kv.Batch)} }}

// roomForItem is about the number of bytes that an item adds under the latch: its feed entry.
const roomForItem = 128

// plan makes the operations of changes that need no latch. The changes of one slot must be adjacent.
func (c *Container) plan(chs []change) (*draft, error) {
	d := draftPool.Get().(*draft)
	d.c, d.b, d.parts, d.pre = c, batchPool.Get().(*kv.Batch), d.parts[:0], d.pre[:0]
	for i := 0; i < len(chs); {
		j := i + 1
		for j < len(chs) && chs[j].id.slot == chs[i].id.slot {
			j++
		}
		d.parts = append(d.parts, part{sl: chs[i].id.slot, chs: chs[i:j:j]})
		i = j
	}
	for i := range d.parts {
		d.parts[i].group()
	}
	if err := d.prepare(); err != nil {
		d.free()
		return nil, err
	}
	return d, nil
}

// group assigns numbers to the logical partitions of a part's changes.
func (p *part) group() {
	for i := range p.chs {
		ch, j := &p.chs[i], 0
		for j < i && !bytes.Equal(p.chs[j].id.tuple, ch.id.tuple) {
			j++
		}
		if ch.partition = p.partitions; j < i {
			ch.partition = p.chs[j].partition
		} else {
			p.partitions++
		}
	}
}

// prepare makes the operations that need no latch and passes them to the engine.
func (d *draft) prepare() error {
	d.b.Reset()
	d.b.Frees = true
	room := 0
	for i := range d.parts {
		p := &d.parts[i]
		p.flags, p.extra = indexFlags{}, false
		for k := range p.chs {
			ch := &p.chs[k]
			d.early(d.b, p.sl, ch)
			if ch.newTerms != nil {
				more := flagsOf(ch.newTerms, ch.id.ident)
				p.flags.add(&more)
			} else {
				p.flags.classes |= keyClasses(ch.id.ident)
			}
			p.extra = p.extra || ch.extra
			d.b.Frees = d.b.Frees && ch.item == nil
		}
		room += roomForItem*(len(p.chs)+p.partitions) + len(p.sl.headKey) + maxHead
		if p.sl.c.logs.Load() {
			room += p.roomForLog()
		}
		if p.sl.c.recorded() {
			room += p.roomForJournal()
		}
	}
	var err error
	d.ready, err = kv.Prepare(d.c.st.eng, d.b, room)
	return translate(err)
}

// free releases a draft that was not written.
func (d *draft) free() {
	if d.ready != nil {
		d.ready.Discard()
	}
	recycle(d.b)
	d.done()
}

// done releases a draft's memory, except the batch of step 1, which belongs to its commit.
func (d *draft) done() {
	small := d.late.Size() <= maxScratch
	d.late.Reset()
	for i := range d.parts {
		for k := range d.parts[i].evicted {
			d.parts[i].evicted[k].release()
		}
	}
	clear(d.parts)
	clear(d.pre)
	clear(d.numbers)
	d.numbers = d.numbers[:0]
	if cap(d.mem.val) > maxScratch {
		d.mem.val = nil
	}
	d.b, d.ready, d.on, d.together, d.time = nil, nil, nil, false, 0
	if small {
		draftPool.Put(d)
	}
}

// maxScratch is the largest number of bytes of memory that is kept for the next commit.
const maxScratch = 1 << 20

// fill completes a draft. The caller holds the latches of all its slots until the commit is visible or has failed.
// Changes get LSN and position. With apart each change gets its own LSN, else the changes of a slot share one.
func (d *draft) fill(ctx context.Context, apart bool) error {
	for i := range d.parts { // the heads of a dropped database are removed in several commits
		if err := d.parts[i].sl.c.Alive(); err != nil {
			return err
		}
		if d.parts[i].sl.head.Moved { // its callers have made sure of that: see Container.current
			return translate(kv.ErrUnavailable)
		}
	}
	if err := d.caughtUp(ctx); err != nil {
		return err
	}
	again := false
	if d.c.st.others {
		var err error
		if again, err = d.number(ctx); err != nil {
			return translate(err)
		}
	}
	if err := d.retime(ctx, again); err != nil {
		return err
	}
	if d.c.st.eng.Remote() {
		if err := d.readLogical(ctx); err != nil {
			return err
		}
	}
	for i := range d.parts {
		if err := d.fillPart(ctx, &d.parts[i], apart); err != nil {
			return translate(err)
		}
	}
	if err := d.declared(ctx); err != nil {
		return err
	}
	if d.c.st.others {
		if err := d.pend(); err != nil {
			return err
		}
		d.putNumbers()
	}
	for i := range d.parts { // from here on only the engine can fail
		p := &d.parts[i]
		p.h.Writer = d.c.st.writer
		p.head = p.h.append(p.sl.spare[:0])
		d.late.Put(p.sl.headKey[:], p.head)
		p.sl.rb.extra = p.sl.rb.extra || p.extra
		p.sl.rb.note(&p.flags)
		p.sl.widen(&p.h)
		p.sl.remember(p.chs)
		d.pre = append(d.pre, kv.Precondition{Key: p.sl.headKey[:], Expect: kv.Equal, Value: p.sl.headBytes})
		d.attach(p)
		d.mark(p)
	}
	return nil
}

func (d *draft) fillPart(ctx context.Context, p *part, apart bool) error {
	sl := p.sl
	p.h = sl.head
	p.beginFacts()
	sl.taking.Store(sl.c.counter.given.Load() + 1)
	p.h.LSN = max(p.h.LSN, sl.unsure)
	lsn, err := d.nextLSN(ctx, sl.c, &p.h)
	if err != nil {
		return err
	}
	p.h.LSN = lsn
	if p.fell != 0 {
		p.h.fell(lsn, p.fell)
		sl.c.clockFell(sl, lsn, p.fell)
	}
	if err := d.uniques(ctx, p); err != nil {
		return err
	}
	for i := range p.evicted {
		d.early(d.late, sl, &p.evicted[i])
		p.count(&p.evicted[i])
		if p.evicted[i].lsn = lsn; p.h.Moving {
			d.removed(sl, &p.evicted[i])
		}
	}
	for i := range p.chs {
		ch, pos := &p.chs[i], uint16(i)
		if apart {
			if pos = 0; i > 0 {
				if p.h.LSN, err = d.nextLSN(ctx, sl.c, &p.h); err != nil {
					return err
				}
			}
		}
		if ch.lsn = p.h.LSN; ch.item != nil {
			ch.item.LSN, ch.item.Pos = ch.lsn, pos
			p.h.Ticks = ch.item.Ticks
			d.mem.val = appendEnvelopeHead(d.mem.val[:0], ch.item, ch.sum)
			d.ready.Patch(ch.op, d.mem.val)
			d.put(d.late, keys.AppendFeed(d.mem.key[:0], sl.key, uint64(ch.lsn), pos), ch.id.suffix)
		} else if p.h.Moving {
			d.removed(sl, ch)
		}
		p.count(ch)
	}
	p.outlive()
	if p.h.LogFloor != 0 {
		d.log(p)
	}
	p.h.addFlags(&p.flags)
	d.facts(p)
	return d.logicalHeads(ctx, p, apart)
}

// removed records that a commit removes an item, for the copy of its slot. The feed records all other changes.
func (d *draft) removed(sl *Slot, ch *change) {
	d.put(d.late, keys.AppendRemoved(d.mem.key[:0], sl.key, uint64(ch.lsn), ch.id.suffix), []byte{1})
}

// count adds a change to the counts of the slot's next head.
func (p *part) count(ch *change) {
	items, bytes := ch.grows()
	if ch.item != nil {
		n := Counter(ch.item.Number)
		p.h.Lowest, p.sl.leastNew = min(p.h.Lowest, n), min(p.sl.leastNew, n)
	}
	p.h.Items += items
	p.h.Bytes += bytes
	p.countFacts(ch)
}

// write makes a filled draft visible and updates its slots. The draft must not be used afterwards. After an error the
// caller calls lost. With a shared engine it finds out an unknown outcome itself: if nothing was written, and nothing
// will be, the error is ErrConflict.
func (d *draft) write(ctx context.Context) (pending, error) {
	switch {
	case d.c.st.others:
		p, err := d.writeNow(ctx)
		if err == nil && d.time != 0 {
			p.time = d.time
			d.c.st.jou.Nudge()
		}
		return p, err
	case d.c.st.jou.Active():
		return d.writeRecorded(ctx)
	}
	return d.writeNow(ctx)
}

// writeNow is write without the journal.
func (d *draft) writeNow(ctx context.Context) (pending, error) {
	for i := range d.parts { // before the commit is visible
		d.parts[i].sl.begun.Store(d.parts[i].h.LSN)
	}
	if d.on != nil {
		d.ready.On(d.on)
	}
	w, err := d.ready.Write(ctx, d.late, d.pre)
	d.ready = nil
	if d.c.st.others && errors.Is(err, kv.ErrUnknownOutcome) {
		return d.findOut(ctx, err)
	}
	if err != nil {
		if !errors.Is(err, kv.ErrUnknownOutcome) && !errors.Is(err, kv.ErrConflict) { // lost handles these
			for i := range d.parts {
				d.parts[i].sl.begun.Store(d.parts[i].sl.head.LSN)
			}
		}
		recycle(d.b)
		return pending{}, err
	}
	for i := range d.parts {
		p := &d.parts[i]
		p.sl.head, p.sl.headBytes, p.sl.spare = p.h, p.head, p.sl.headBytes
		p.keepFacts()
		p.sl.committed(p.h.LSN, w)
		p.sl.publish()
		p.sl.c.removed(p)
	}
	last := &d.parts[len(d.parts)-1]
	return pending{commit: w, slot: last.sl, lsn: last.h.LSN, batch: d.b}, nil
}

// commit makes the changes of a draft in one slot visible under the next LSN. The caller holds the slot's latch and has
// checked that every change's old item is the current one. raced says that the slot's head was not the expected one:
// nothing is written, and the caller may try again.
func (d *draft) commit(ctx context.Context) (p pending, raced bool, err error) {
	c, sl := d.c, d.parts[0].sl // done gives the draft to the next writer
	defer sl.taken()
	if err := d.fill(ctx, false); err != nil {
		d.free()
		if err == errBehind {
			return p, true, nil
		}
		if h := heldBy(err); h != nil && !h.expired {
			p, err := h.refusal()
			return p, false, err
		}
		return pending{slot: sl, lsn: sl.head.LSN}, false, err // a refusal depends on the current state
	}
	p, err = d.write(ctx)
	d.done()
	if err != nil {
		raced, err = c.lost(sl, err)
	}
	return p, raced, err
}

// lost finds out the state of a slot after the engine has refused a commit, or doesn't know whether it was applied. It
// reads the slot's head again. raced says that nothing was written and that another attempt may succeed. The caller
// holds the latch.
func (c *Container) lost(sl *Slot, cause error) (raced bool, err error) {
	raced, err = c.findHead(sl, cause)
	if err != nil && errors.Is(cause, kv.ErrUnknownOutcome) && !status.Is(err, status.NotFound) {
		err = translate(cause) // whatever has failed since: the commit may have been applied
	}
	return raced, err
}

// headTime is the longest time in which the head of a lost commit is read from a shared store. Others wait for the
// latch meanwhile.
const headTime = 3 * time.Second

// findHead is lost, but an error of its own hides that an outcome is unknown.
func (c *Container) findHead(sl *Slot, cause error) (raced bool, err error) {
	conflict := errors.Is(cause, kv.ErrConflict)
	if !conflict && !errors.Is(cause, kv.ErrUnknownOutcome) {
		return false, translate(cause)
	}
	ctx := context.Background() // the slot must know its state even if the request has ended
	if c.st.others {            // if that fails the next commit is lost, and reads it
		most := headTime
		if !conflict { // the outcome was looked for before
			most = graceTime
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(c.st.work.Context(), most)
		defer cancel()
	}
	b, err := c.st.eng.Get(ctx, nil, sl.headKey[:])
	if errors.Is(err, kv.ErrNotFound) {
		if moved, err := c.remap(ctx); moved || err != nil || !c.Slots().has(sl) {
			return lostSlot(conflict, err, cause)
		}
		return false, c.gone()
	}
	var h Head
	if err == nil {
		err = sl.readHead(&h, b)
	}
	if err == nil && h.Moved {
		_, err := c.remap(ctx)
		return lostSlot(conflict, err, cause)
	}
	var known *facts
	if err == nil && !c.st.others {
		known, err = c.readFacts(ctx, sl, &h)
	}
	if err != nil {
		return false, translate(err)
	}
	if c.st.others {
		if conflict {
			sl.rivals.Store(rivalCommits)
		}
		if err := c.install(ctx, sl, b); err != nil || conflict {
			return err == nil, err
		}
		return false, translate(cause)
	}
	if conflict && h.LSN != sl.head.LSN {
		sl.overtaken()
	}
	if h.LSN != sl.head.LSN {
		if err := c.writeAgain(sl, h.LSN, b); err != nil {
			return false, translate(err)
		}
	}
	sl.head, sl.headBytes = h, b
	sl.facts.Store(known)
	sl.publish()
	if conflict {
		return true, nil
	}
	return false, translate(cause)
}

// writeAgain writes the stored head of a slot once more. It belongs to a commit without a handle to wait for. A later
// commit has a handle, and is durable only after it.
func (c *Container) writeAgain(sl *Slot, lsn int64, head []byte) error {
	same := kv.Batch{Frees: true} // it adds nothing
	same.Put(sl.headKey[:], head)
	w, err := c.st.eng.Write(context.Background(), &same,
		[]kv.Precondition{{Key: sl.headKey[:], Expect: kv.Equal, Value: head}})
	if err == nil {
		sl.committed(lsn, w)
	}
	return err
}

// lostSlot is the result of lost for a slot that others have replaced. err is the error of the look at the map.
func lostSlot(conflict bool, err, cause error) (raced bool, _ error) {
	if conflict && err == nil {
		return true, nil
	}
	return false, translate(cmp.Or(err, cause))
}

// early adds to a batch what one change does to the keys of its slot, except its feed entry.
func (d *draft) early(b *kv.Batch, sl *Slot, ch *change) {
	key, id := sl.key, ch.id
	if ch.old != nil {
		d.del(b, keys.AppendFeed(d.mem.key[:0], key, uint64(ch.old.LSN), ch.old.Pos))
		d.ttl(b, sl, id, ch.old, true)
		if ch.item == nil || ch.item.Number != ch.old.Number {
			d.del(b, keys.AppendNumber(d.mem.key[:0], key, Counter(ch.old.Number)))
		}
	}
	d.index(b, sl, ch)
	itemKey := append(keys.AppendPrefix(d.mem.key[:0], key, keys.KindItem), id.suffix...)
	if ch.item == nil {
		d.del(b, itemKey)
		return
	}
	ch.op, ch.sum = b.Len(), checksumDoc(ch.item.Doc)
	d.mem.val = append(appendEnvelopeHead(d.mem.val[:0], ch.item, ch.sum), ch.item.Doc...)
	b.PutOpen(itemKey, d.mem.val)
	d.mem.key = itemKey
	if ch.old == nil || ch.item.Number != ch.old.Number {
		d.put(b, keys.AppendNumber(d.mem.key[:0], key, Counter(ch.item.Number)), id.suffix)
	}
	d.ttl(b, sl, id, ch.item, false)
}

func (d *draft) put(b *kv.Batch, key, val []byte) {
	b.Put(key, val)
	d.mem.key = key
}

func (d *draft) del(b *kv.Batch, key []byte) {
	b.Delete(key)
	d.mem.key = key
}

// storedSize returns the logical size of an item: its key and value.
func storedSize(id identity, it *Item) int64 {
	n := keys.PrefixLen + len(id.suffix) + envFixed + envSum + len(it.Doc)
	if it.TTL != 0 {
		n += 4
	}
	return int64(n)
}

// grows returns the number of items and stored bytes that a change adds.
func (ch *change) grows() (items, bytes int64) {
	if ch.old != nil {
		items, bytes = -1, -storedSize(ch.id, ch.old)
	}
	if ch.item != nil {
		items, bytes = items+1, bytes+storedSize(ch.id, ch.item)
	}
	return items, bytes
}

// ttl keeps the ttl entry of an item that has its own ttl.
func (d *draft) ttl(b *kv.Batch, sl *Slot, id identity, it *Item, del bool) {
	if it.TTL <= 0 {
		return
	}
	k := keys.AppendTTL(d.mem.key[:0], sl.key, uint64(it.TS()+int64(it.TTL)), id.suffix)
	if del {
		d.del(b, k)
	} else {
		d.put(b, k, []byte{1})
	}
}

var noTerms index.Terms

// index moves the index entries from the old terms to the new ones.
func (d *draft) index(b *kv.Batch, sl *Slot, ch *change) {
	old, new := ch.oldTerms, ch.newTerms
	if old == nil {
		old = &noTerms
	}
	if new == nil {
		new = &noTerms
	}
	var number uint64
	layout := sl.c.Entries()
	del := func(term []byte) {
		d.del(b, layout.Append(d.mem.key[:0], sl.key, term, number, ch.id.ident))
	}
	if ch.old != nil && ch.item != nil && ch.old.Number != ch.item.Number {
		// an expired item replaced: nothing is shared
		number = ch.old.Number
		index.Diff(old, &noTerms, del, nil)
		old = &noTerms
	}
	if ch.item != nil {
		number = ch.item.Number
	} else {
		number = ch.old.Number
	}
	index.Diff(old, new, del, func(term []byte, flag byte) {
		d.put(b, layout.Append(d.mem.key[:0], sl.key, term, number, ch.id.ident), []byte{flag})
	})
}

// keyClasses returns the value classes of the parts of an identity. A head records them whatever the policy indexes.
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
