package store

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/ru"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// Tx is a transaction on one logical partition. It keeps these invariants:
//
//  1. Every write of a Tx has the same LSN. The order of its items is their position.
//  2. Its writes are committed together or not at all. They are committed only if every item that the Tx has read is
//     still the same, and every item that it has found absent is still absent. If the Tx has queried (View), they are
//     committed only if nothing was written to the logical partition since the snapshot. So the transactions and writes
//     of a logical partition are serializable.
//
// It reads a snapshot, together with its own writes. While its function runs nobody waits: the latch is taken only for
// the commit. A function that has lost txRaces times runs in its own turn, see turns. A Tx must not outlive its
// function. Byte slices that are passed in may be reused after WithTx returns. A Tx is not safe for concurrent use.
//
// Example: two transactions read counter n = 1 and write n = 2. The first commits with LSN 8. The second finds that n
// has changed and runs again: it reads 2 and commits 3 with LSN 9.
type Tx struct {
	c       *Container
	ctx     context.Context
	snap    kv.Snapshot
	seen    int64    // LSN of the slot before the snapshot, which has every commit up to it
	begun   int64    // the snapshot has no commit above it
	basis   []byte   // the slot's stored head in the snapshot, with a shared engine; else nil
	at      identity // of the logical partition, without an id
	pk      PartitionKey
	items   map[string]*txItem // by identity
	order   []*txItem
	bytes   int // of the documents that it writes
	charge  float64
	writes  []float64 // charges of the calls of Write that changed something
	shown   int64     // what must be durable before a result of its reads is returned
	made    int       // versions that it has made
	created *int      // items that have a provisional number; nil: none yet

	pol    *index.Policy // of queries before the snapshot, like resets and of
	resets uint32
	of     *Slots
	taken  *taken      // nil: conflicts of unique values are left to the commit
	in     *Within     // the transaction whose part it is, if taken is that of all its parts
	hold   *hold       // of its slot, with a shared engine; nil: none
	asked  bool        // the Tx has queried
	old    bool        // a read has found the snapshot too old
	strict bool        // absences are looked for in the snapshot only
	was    LogicalHead // of the logical partition in the snapshot, if hasWas
	hasWas bool
}

// txItem is one item that the Tx has read or written.
type txItem struct {
	id    identity
	old   *Item // as in the snapshot, nil = absent
	exp   bool
	cur   *Item // as the Tx sees it now
	dirty bool
	noIdx bool
	write int // the number of the last write
	order int // of its first write in its Transaction

	whole bool // for the journal: not all writes of the item were partial

	number uint64 // of cur, possibly provisional; 0: not given yet
}

const (
	// limit of the runs of the function, including the runs in a turn; after that WithTx returns RetryWith
	maxTxRuns  = 5
	txRaces    = 2        // races that a Tx loses before it takes a turn
	txOld      = 3        // limit of the runs if the snapshot of the last one was too old
	maxTxBytes = 16 << 20 // of the documents that a Tx writes
)

// WithTx runs fn in a transaction on the logical partition pk and commits when fn returns nil. fn may run again after a
// conflict. So it must have no effects outside the Tx; in particular it must not write to the logical partition in
// other ways. The transaction is durable when WithTx returns. The charge is that of all operations together.
func (c *Container) WithTx(ctx context.Context, pk PartitionKey, fn func(*Tx) error) (
	lsn int64, charge float64, err error) {
	at, err := c.locate(nil, pk, value.Value{})
	if err != nil {
		return 0, 0, err
	}
	tx, p, err := c.runTx(ctx, at, pk, fn)
	if tx == nil {
		return 0, 0, err
	}
	if p.slot == nil { // nothing was written: a commit would be later than the reads
		p = pending{slot: tx.at.slot, lsn: tx.shown}
	}
	if werr := p.wait(ctx); werr != nil {
		err = werr
	}
	if err != nil {
		return 0, tx.charge, err
	}
	if p.commit != nil {
		lsn = p.lsn
	}
	return lsn, tx.charge, nil
}

// runTx runs fn until its commit succeeds. It returns the last Tx. It returns nil when there was none or it has lost
// too often.
func (c *Container) runTx(ctx context.Context, at identity, pk PartitionKey, fn func(*Tx) error) (*Tx, pending, error) {
	turns := &at.slot.turns
	var until time.Time
	for n := 0; n < maxTxRuns || realTime.Now().Before(until); n++ {
		switch {
		case n < txRaces:
			if err := turns.wait(ctx, at.tuple); err != nil {
				return nil, pending{}, err
			}
		case n == txRaces:
			leave, err := turns.take(ctx, at.tuple)
			if err != nil {
				return nil, pending{}, err
			}
			defer leave()
			until = realTime.Now().Add(turnMost) // writers that began before can still win, one commit each
		}
		if err := ctx.Err(); err != nil {
			return nil, pending{}, translate(err)
		}
		c.relocate(&at)
		tx := &Tx{c: c, ctx: ctx, at: at, pk: pk, items: map[string]*txItem{}}
		p, raced, err := tx.run(fn, n)
		if !raced && !tx.old {
			return tx, p, err
		}
		if tx.old && n+1 >= txOld {
			return nil, pending{}, translate(kv.ErrSnapshotTooOld)
		}
	}
	return nil, pending{}, status.New(status.RetryWith, "Conflicting request to resource has been attempted. Retry "+
		"to avoid conflicts.")
}

// Outlived records that the engine can't read the Tx's snapshot any more. The Tx isn't committed then: its function
// runs again, whatever it makes of the error.
func (tx *Tx) Outlived() { tx.old = true }

// readError translates the error of a read of the snapshot.
func (tx *Tx) readError(err error) error {
	tx.old = tx.old || errors.Is(err, kv.ErrSnapshotTooOld)
	return translate(err)
}

// run runs fn and commits, unless the snapshot was too old for a read. lost is how many races it has lost before.
func (tx *Tx) run(fn func(*Tx) error, lost int) (p pending, raced bool, err error) {
	if tx.c.st.others {
		if tx.at.slot.contested(lost) {
			if tx.hold, err = tx.c.hold(tx.ctx, tx.at.slot); err != nil {
				return p, false, err
			}
			defer tx.hold.end()
		}
		if err := tx.look(); err != nil {
			return p, false, err
		}
		defer tx.endLook()
		if err = fn(tx); err != nil || tx.old {
			return p, false, err
		}
		return tx.commit()
	}
	sl := tx.at.slot
	tx.seen = sl.lsn.Load()
	tx.pol, tx.resets, tx.of = tx.c.pol.Load(), tx.c.resets.Load(), tx.c.Slots()
	if tx.snap, err = tx.c.st.eng.Snapshot(tx.ctx); err != nil {
		return p, false, translate(err)
	}
	defer tx.snap.Close()
	if tx.c.left(&tx.at) { // the snapshot may have nothing of the slot any more
		return p, true, nil
	}
	tx.begun = sl.begun.Load()
	if err = fn(tx); err != nil {
		return p, false, err
	}
	return tx.commit()
}

// logical returns the current head of the logical partition; an empty one where the partition key is the id.
func (tx *Tx) logical() (h LogicalHead, err error) {
	if tx.c.def.Load().KeyIsID() {
		return h, nil
	}
	h, err = tx.c.logicalHead(tx.ctx, nil, tx.logicalKey())
	return h, translate(err)
}

// item returns the Tx's state of an item, which is read on first use. A create has nothing to read if the slot's id
// filter says that the item is absent. The filter shows the current state and not the snapshot, and the commit checks
// whether the item is still absent.
func (tx *Tx) item(id value.Value, create bool) (*txItem, error) {
	at, err := tx.place(id)
	if err != nil {
		return nil, err
	}
	if t := tx.items[string(at.ident)]; t != nil {
		return t, nil
	}
	if create && !tx.strict && tx.c.lacks(&at, true) {
		t := &txItem{id: at}
		tx.shown = max(tx.shown, at.slot.begun.Load())
		tx.items[string(at.ident)] = t
		return t, nil
	}
	b, err := tx.snap.Get(nil, at.itemKey())
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return nil, tx.readError(err)
	}
	return tx.found(at, b)
}

// place returns where an item is. All items of a Tx use one version of the slot map.
func (tx *Tx) place(id value.Value) (identity, error) {
	at, err := tx.c.locate(make([]byte, 0, 96), tx.pk, id)
	at.slot, at.version = tx.at.slot, tx.at.version
	return at, err
}

// found makes the state of an item of what the snapshot has of it, which it keeps; nil: it is absent.
func (tx *Tx) found(at identity, b []byte) (*txItem, error) {
	t := &txItem{id: at}
	if b == nil {
		tx.shown = max(tx.shown, tx.begun)
	} else {
		t.old = &Item{ident: at.ident, paths: len(tx.pk)}
		if err := decodeEnvelope(b, t.old); err != nil {
			return nil, err
		}
		if t.exp = tx.c.expired(t.old); !t.exp {
			t.cur = t.old
		}
		tx.shown = max(tx.shown, t.old.LSN)
	}
	tx.items[string(at.ident)] = t
	return t, nil
}

// Fetch reads n items at once, if the engine is over a network: those that the function is going to read and write. It
// is never needed. With a local engine, which reads each when it is needed, it does nothing.
func (tx *Tx) Fetch(n int, id func(i int) value.Value) error {
	if n < 2 || !tx.c.st.eng.Remote() {
		return nil
	}
	f := fetch{n: n}
	for i := range n {
		f.add(tx, id(i))
	}
	if err := f.read(tx.snap); err != nil {
		return tx.readError(err)
	}
	return nil
}

// fetch reads items of several Txs of one snapshot at once.
type fetch struct {
	n     int // about the number of items
	of    []*Tx
	at    []identity
	names [][]byte
}

// add adds an item, unless the Tx has read it. An error is left to the call that needs the item.
func (f *fetch) add(tx *Tx, id value.Value) {
	at, err := tx.place(id)
	if err != nil || tx.items[string(at.ident)] != nil {
		return
	}
	if f.of == nil {
		f.of, f.at, f.names = make([]*Tx, 0, f.n), make([]identity, 0, f.n), make([][]byte, 0, f.n)
	}
	f.of, f.at, f.names = append(f.of, tx), append(f.at, at), append(f.names, at.itemKey())
}

func (f *fetch) read(snap kv.Snapshot) error {
	var v kv.Values
	if err := snap.GetMany(&v, f.names); err != nil {
		return err
	}
	for i, tx := range f.of {
		if _, err := tx.found(f.at[i], v.At(i)); err != nil {
			return err
		}
	}
	return nil
}

// Read returns an item as the Tx sees it; NotFound when it is absent.
func (tx *Tx) Read(id value.Value) (*Item, error) {
	t, err := tx.item(id, false)
	if err != nil {
		return nil, err
	}
	tx.charge += ru.Read(itemSize(t.cur))
	if t.cur == nil {
		return nil, errNotFound()
	}
	return t.cur, nil
}

// Write does one write inside the Tx. After an error the Tx is as it was before the call, and the caller decides
// whether to continue. Result.Item gets its LSN, number and etag when WithTx commits: read them after it has returned.
func (tx *Tx) Write(w *Write) (Result, error) {
	if w.PK == nil {
		w.PK = tx.pk
	}
	at, err := tx.c.identify(w)
	if err != nil {
		return Result{}, err
	}
	if string(at.tuple) != string(tx.at.tuple) {
		return Result{}, errKeyMismatch()
	}
	id, _, err := keys.DecodeExact(at.ident[len(at.tuple):])
	if err != nil {
		return Result{}, status.Wrap(status.BadRequest, err, "The id is malformed.")
	}
	t, err := tx.item(id, w.Kind == Create)
	if err != nil {
		return Result{}, err
	}
	doc, keep, err := decide(w, t.cur)
	if err != nil {
		return Result{}, err
	}
	res := Result{Item: t.cur, Kept: keep, Slot: at.slot}
	if keep {
		res.Charge = ru.Read(itemSize(t.cur))
		tx.charge += res.Charge
		return res, nil
	}
	return tx.put(t, w, doc, res)
}

// put records the new state of an item.
func (tx *Tx) put(t *txItem, w *Write, doc []byte, res Result) (Result, error) {
	if doc != nil && len(doc) > tx.c.st.lim.Item {
		return Result{}, status.New(status.TooLarge, "Request size is too large")
	}
	size := tx.bytes + len(doc)
	if t.dirty {
		size -= itemSize(t.cur)
	}
	if size > maxTxBytes {
		return Result{}, status.New(status.TooLarge, "A transaction writes at most %d MiB.", maxTxBytes>>20)
	}
	if err := tx.take(t, doc); err != nil {
		return Result{}, err
	}
	tx.bytes = size
	res.Created, res.Deleted = t.cur == nil && doc != nil, doc == nil
	res.Charge = ru.Write(max(len(doc), itemSize(t.cur)), 0)
	tx.charge += res.Charge
	tx.writes, t.write = append(tx.writes, res.Charge), len(tx.writes)
	if !t.dirty {
		t.dirty = true
		tx.order = append(tx.order, t)
	}
	t.whole = t.whole || !w.Partial
	t.noIdx, t.cur = w.NoIndex, nil
	if doc != nil {
		t.cur = tx.provisional(t, doc)
	}
	res.Item = t.cur
	return res, nil
}

// Writes returns the charges of the calls of Write that have changed something, in their order. Once WithTx has
// returned without an error they contain the index terms.
func (tx *Tx) Writes() []float64 { return tx.writes }

// commit writes everything under the slot's latch if all items that the Tx has read are unchanged.
func (tx *Tx) commit() (p pending, raced bool, err error) {
	c := tx.c
	chs := make([]change, 0, len(tx.order))
	defer func() {
		for i := range chs {
			chs[i].release()
		}
	}()
	for _, t := range tx.order {
		if t.old == nil && t.cur == nil {
			continue
		}
		ch := change{id: t.id, old: t.old, expired: t.exp, basis: tx.basis}
		var doc []byte
		if t.cur != nil {
			doc = t.cur.Doc
		}
		if err := c.prepare(tx.ctx, &ch, doc, t.noIdx, false); err != nil {
			return p, false, err
		}
		if t.dirty {
			terms := ru.Terms(ch.terms())
			tx.writes[t.write] += terms
			tx.charge += terms
		}
		chs = append(chs, ch)
	}
	if len(chs) == 0 {
		return p, false, nil
	}
	if len(chs) > 1<<16-1 {
		return p, false, status.New(status.TooLarge, "A transaction has at most 65535 writes.")
	}
	for again, n := true, 0; again && n < maxRaces; n++ {
		p, raced, again, err = tx.attempt(chs)
		if h := heldBy(err); h != nil && h.expired {
			if err = c.removeExpired(tx.ctx, h); err == nil {
				raced, again = true, true
			}
		}
	}
	if tx.taken != nil && status.Is(err, status.Conflict) {
		return p, true, nil // the value was taken since the snapshot: the next run sees it
	}
	if raced || err != nil {
		return p, raced, err
	}
	i := 0
	for _, t := range tx.order { // the committed items: LSN, position, time
		if t.old == nil && t.cur == nil {
			continue
		}
		if t.cur != nil {
			*t.cur = *chs[i].item
		}
		i++
	}
	return p, false, nil
}

// attempt makes one attempt to commit changes. raced says that the transaction has lost a race. again says that it may
// still be valid: another process has written to the slot, perhaps to other logical partitions.
func (tx *Tx) attempt(chs []change) (p pending, raced, again bool, err error) {
	c, sl := tx.c, tx.at.slot
	d, err := c.plan(chs)
	if err != nil {
		return p, false, false, err
	}
	if err := sl.lockFor(tx.ctx, tx.hold); err != nil {
		d.free()
		return p, false, false, err
	}
	defer sl.mu.Unlock()
	now, snap, valid, err := tx.check(sl, chs)
	if snap != tx.snap {
		defer snap.Close()
	}
	if !valid {
		d.free()
		return p, err == nil, false, err
	}
	d.parts[0].known = &now
	d.base(snap)
	p, raced, err = d.commit(tx.ctx)
	return p, raced, raced && c.st.others, err
}

// check reports whether all that the Tx has read is as it was. It returns the head of the logical partition now, and
// the snapshot on which a commit can be based. The caller holds the latch.
func (tx *Tx) check(sl *Slot, chs []change) (now LogicalHead, snap kv.Snapshot, valid bool, err error) {
	c := tx.c
	inTheWay := tx.hold.inTheWay(tx.basis)
	if inTheWay {
		tx.endLook()
	}
	if err := c.adopt(tx.ctx, sl, tx.basis); err != nil || inTheWay || !c.allCurrent(chs) {
		return now, tx.snap, false, err
	}
	if !c.st.others {
		if now, err = tx.logical(); err == nil {
			valid, err = tx.valid(sl, &now)
		}
		return now, tx.snap, valid, err
	}
	if bytes.Equal(tx.basis, sl.headBytes) {
		return tx.was, tx.snap, true, nil
	}
	a, now, valid, err := tx.again(sl)
	if a == nil {
		return now, tx.snap, false, err
	}
	for i := range chs {
		chs[i].basis = a.basis
	}
	return now, a.snap, valid && c.allCurrent(chs), err // the look may show that other slots have replaced this one
}

// again looks again at all that the Tx has read, and reports whether it is as it was. The caller closes the look.
func (tx *Tx) again(sl *Slot) (a *again, now LogicalHead, valid bool, err error) {
	read := slices.Collect(maps.Values(tx.items))
	names := [][]byte{tx.logicalKey()}
	for _, t := range read {
		names = append(names, t.id.itemKey())
	}
	if a, err = tx.c.lookAgain(tx.ctx, sl, names); err != nil {
		return nil, now, false, err
	}
	if b := a.at(0); b != nil && !tx.c.def.Load().KeyIsID() {
		err = now.decode(b)
	}
	switch {
	case err != nil, !a.newest(sl):
		return a, now, false, err
	case now.Items > 0 && now.LSN <= tx.seen:
		return a, now, true, nil
	case tx.asked && (now.Items > 0 || tx.was.Items > 0):
		return a, now, false, nil
	}
	for i, t := range read {
		if same, err := a.unchanged(tx.c, &t.id, t.old, 1+i); err != nil || !same {
			return a, now, false, err
		}
	}
	return a, now, true, nil
}

// valid reports whether every item that the Tx has read or written is unchanged, including absent ones, and after a
// query whether the whole logical partition is. now is the current head of the logical partition. The caller holds the
// latch.
func (tx *Tx) valid(sl *Slot, now *LogicalHead) (bool, error) {
	if sl.head.LSN == tx.seen || now.Items > 0 && now.LSN <= tx.seen {
		return true, nil // no write since, to the slot or the logical partition; an empty partition has no LSN
	}
	if tx.asked && (now.Items > 0 || tx.was.Items > 0) {
		return false, nil
	}
	for _, t := range tx.items {
		if same, err := tx.c.stands(tx.ctx, &t.id, t.old); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}
