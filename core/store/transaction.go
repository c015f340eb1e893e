package store

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// Transaction is a transaction on items of any logical partitions of any containers. Its isolation is that of a
// snapshot:
//
//  1. It reads one snapshot, taken when it began, together with its own writes. Queries do, too (Within).
//  2. Its writes are one write of the engine, over all slots that it touches: they are committed together or not at
//     all.
//  3. They are committed only if no item that it writes has changed since the snapshot: the first committer wins. What
//     it has only read may have changed, so write skew is possible.
//
// Nobody waits for it while it is open. Its commit holds the latches of its slots, in the order of their containers and
// ids, as every commit of several slots does. In a slot its items have one LSN and different positions.
//
// In each logical partition it reads and buffers its writes with a Tx, which it commits itself. Documents and keys that
// are passed in must not be changed until it ends. Its methods may be called concurrently; one waits for the other.
//
// Example: T moves 10 from account a to account b, in different slots. It reads both in its snapshot and writes both.
// Meanwhile somebody writes b. T's commit finds that b isn't the version of the snapshot, and writes nothing.
type Transaction struct {
	st *Store

	mu      sync.Mutex
	snap    kv.Snapshot // each request reads it with its own ctx; nil: the transaction has ended
	ended   error       // what its methods return then
	version uint64      // of the catalog, as this process knew it before the snapshot
	in      map[*Container]*Within
	all     []*Within // in, in the order of their first use
	created int       // items that have a provisional number
	until   time.Time // when its life ends
	views   int       // of its snapshot that are open
	claimed []string
	writes  int     // items that it has written
	spent   float64 // charge of parts that were dropped
	read    int     // bytes of items that are kept, though they were only read
	time    uint64  // of its commit, by the journal's clock; 0: it isn't in the journal
}

// Within is a transaction in one of its containers.
type Within struct {
	t     *Transaction
	c     *Container
	of    *Slots   // the slot map of the snapshot
	heads [][]byte // the stored heads of the slots in the snapshot, with a shared engine; else nil
	parts map[string]*Tx
	order []*Tx  // parts, in the order of their first use
	taken *taken // the unique values of all parts; nil: there are none
}

// beforeAll is an LSN that no slot has: what a Transaction has read is compared item by item.
const beforeAll = -1

// Begin begins a transaction. Calls after life fail. The caller calls Commit or Abort: also after life, because the
// engine keeps what the snapshot shows until then.
func (s *Store) Begin(ctx context.Context, life time.Duration) (*Transaction, error) {
	t := &Transaction{st: s, in: map[*Container]*Within{}, until: realTime.Now().Add(life), version: s.cat.Version()}
	snap, err := s.eng.Snapshot(ctx)
	if err != nil {
		return nil, translate(err)
	}
	t.snap = kv.With(context.WithoutCancel(ctx), snap)
	return t, nil
}

// Begin begins a transaction that reads this container first.
func (c *Container) Begin(ctx context.Context, life time.Duration) (*Transaction, error) {
	for range maxLooks {
		t, err := c.st.Begin(ctx, life)
		if err != nil {
			return nil, err
		}
		if _, err = t.Within(ctx, c); err == nil {
			return t, nil
		}
		t.Abort()
		if !status.Is(err, status.RetryWith) {
			return nil, err
		}
	}
	return nil, errManyChanges()
}

// errManyChanges is the error of a reader that always finds another definition of its container.
func errManyChanges() error {
	return status.New(status.Unavailable, "The container is changed too often by others.")
}

// of returns the transaction in a container. The caller holds mu.
func (t *Transaction) of(ctx context.Context, c *Container) (*Within, error) {
	if in := t.in[c]; in != nil {
		return in, nil
	}
	in := &Within{t: t, c: c, parts: map[string]*Tx{}}
	if err := in.look(ctx); err != nil {
		return nil, err
	}
	t.in[c] = in
	t.all = append(t.all, in)
	return in, nil
}

// look finds the slot map that the snapshot shows. If the container has another one by now the transaction ends: what
// is left of the slots of the snapshot isn't known.
func (in *Within) look(ctx context.Context) error {
	c, t := in.c, in.t
	for range maxLooks {
		if err := c.Alive(); err != nil {
			return err
		}
		in.of = c.Slots()
		switch {
		case c.unborn:
			return in.readHeads(ctx)
		case !c.st.others && c.st.cat.Version() == t.version: // a map is shown after the catalog's version
			return nil
		}
		older, err := in.compare(ctx)
		if err != nil || !older {
			return err
		}
		if err := c.keepUp(ctx); err != nil {
			return err
		}
	}
	return errManyChanges()
}

// compare reads the heads of the slots, and compares the container's definition in the snapshot with the one in memory.
// older says that this process doesn't know the definition or its slot map yet. If the snapshot shows an older map the
// transaction ends.
func (in *Within) compare(ctx context.Context) (older bool, err error) {
	c := in.c
	if err := in.readHeads(ctx); err != nil {
		return false, err
	}
	shown, err := catalog.ShownIn(kv.With(ctx, in.t.snap), c.Def())
	switch was := in.of.m.MapVersion; {
	case err != nil:
		return false, in.t.readError(err)
	case shown == nil && in.heads[0] == nil: // it was created since
		return false, nil
	case shown == nil || shown.Gen != c.gen:
	case c.st.others && (shown.MapVersion > was || shown.Version > c.def.Load().Version):
		return true, nil
	case shown.MapVersion == was:
		return false, nil
	}
	in.t.end(status.New(status.RetryWith, "The container was changed after the transaction began. Retry the whole "+
		"transaction."))
	return false, in.t.ended
}

// readHeads reads the heads of the slots. A container that the snapshot doesn't show has none.
func (in *Within) readHeads(ctx context.Context) error {
	names := make([][]byte, len(in.of.all))
	for i, sl := range in.of.all {
		names[i] = sl.headKey[:]
	}
	var v kv.Values
	if err := kv.With(ctx, in.t.snap).GetMany(&v, names); err != nil {
		return in.t.readError(err)
	}
	in.heads = make([][]byte, len(names))
	for i := range names {
		in.heads[i] = bytes.Clone(v.At(i))
	}
	return nil
}

// readError translates the error of a read of the snapshot. If the snapshot can't be read any more the transaction
// ends.
func (t *Transaction) readError(err error) error {
	if errors.Is(err, kv.ErrSnapshotTooOld) {
		t.end(errTxConflict())
		return t.ended
	}
	return translate(err)
}

// over returns why the transaction has ended; nil if it hasn't. The caller holds mu.
func (t *Transaction) over() error {
	if !realTime.Now().Before(t.until) {
		t.end(status.New(status.RetryWith, "The transaction was aborted because it was open for too long."))
	}
	return t.ended
}

// end ends the transaction, unless it has ended. err is what its methods return from now on. The caller holds mu.
func (t *Transaction) end(err error) {
	if t.snap == nil {
		return
	}
	if t.views == 0 {
		_ = t.snap.Close()
	}
	t.snap, t.ended = nil, err
	for _, in := range t.all {
		for _, p := range in.order {
			if !in.c.unborn {
				in.c.Spend(p.at.place, p.charge)
			}
		}
	}
	t.in, t.all = nil, nil
	t.st.claims.give(t.claimed)
}

// errTxEnded is the error of a call after the end of a transaction.
func errTxEnded() error { return status.New(status.BadRequest, "The transaction has ended.") }

// errTxConflict is the error of a transaction that has lost to another writer.
func errTxConflict() error {
	return status.New(status.RetryWith, "An item that the transaction writes was changed after it began. Retry the "+
		"whole transaction.")
}

// Abort ends the transaction, and drops its writes. After its end Abort does nothing.
func (t *Transaction) Abort() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end(errTxEnded())
}

// part returns the Tx of a logical partition.
func (in *Within) part(ctx context.Context, pk PartitionKey) (*Tx, error) {
	at, err := in.c.locate(nil, pk, value.Value{})
	if err != nil {
		return nil, err
	}
	if p := in.parts[string(at.tuple)]; p != nil {
		p.ctx, p.snap = ctx, kv.With(ctx, in.t.snap)
		return p, nil
	}
	n := in.of.m.Slot(at.place)
	at.slot, at.version = in.of.all[n], in.of.m.MapVersion
	p := &Tx{c: in.c, ctx: ctx, snap: kv.With(ctx, in.t.snap), of: in.of, at: at, pk: pk, items: map[string]*txItem{},
		strict: true, seen: beforeAll, begun: at.slot.begun.Load(), created: &in.t.created}
	if in.heads != nil && in.heads[n] != nil {
		var h Head
		if err := h.parse(in.heads[n], new(indexFlags)); err != nil {
			return nil, err
		}
		p.basis, p.seen, p.begun = in.heads[n], h.LSN, h.LSN
	}
	if in.c.single() {
		if in.taken == nil {
			in.taken = newTaken()
		}
		p.taken, p.in = in.taken, in
	}
	in.parts[string(at.tuple)] = p
	in.order = append(in.order, p)
	return p, nil
}

// Read returns an item of a container as the transaction sees it; NotFound when it is absent.
func (t *Transaction) Read(ctx context.Context, c *Container, pk PartitionKey, id value.Value) (*Item, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.over(); err != nil {
		return nil, err
	}
	in, err := t.of(ctx, c)
	if err != nil {
		return nil, err
	}
	p, err := in.part(ctx, pk)
	if err != nil {
		return nil, err
	}
	it, err := p.Read(id)
	if err = t.shown(ctx, p, err); t.snap != nil {
		in.forget(p, id, itemSize(it))
	}
	return it, err
}

// keptReads is how many bytes of items a transaction over a network keeps that it has only read: a write of one of them
// needn't read it again.
const keptReads = 64 << 10

// forget drops an item that was only read, and its part if there is nothing else in it: the snapshot still has it, and
// the commit doesn't look at it. Otherwise a transaction would hold all that it ever reads.
func (in *Within) forget(p *Tx, id value.Value, size int) {
	t := in.t
	if in.c.st.eng.Remote() && t.read+size <= keptReads {
		t.read += size
		return
	}
	at, err := p.place(id)
	if err != nil {
		return
	}
	if it := p.items[string(at.ident)]; it != nil && !it.dirty {
		delete(p.items, string(at.ident))
	}
	last := len(in.order) - 1
	if len(p.items) > 0 || len(p.order) > 0 || in.order[last] != p {
		return
	}
	in.order = in.order[:last]
	delete(in.parts, string(p.at.tuple))
	t.spent += p.charge
	if !in.c.unborn {
		in.c.Spend(p.at.place, p.charge)
	}
}

// Fetch reads the items of writes at once, if the engine is over a network, as Tx.Fetch does.
func (t *Transaction) Fetch(ctx context.Context, c *Container, ws []Write) error {
	if len(ws) < 2 || !c.st.eng.Remote() {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.over(); err != nil {
		return err
	}
	in, err := t.of(ctx, c)
	if err != nil {
		return err
	}
	f := fetch{n: len(ws)}
	for i := range ws {
		pk, id := ws[i].PK, ws[i].ID
		if ws[i].Doc != nil && !ws[i].KeyRead {
			pk, id, err = c.keyOf(ws[i].Doc)
		}
		if err != nil || len(pk) == 0 { // an error is left to Write
			continue
		}
		own := make(PartitionKey, len(pk)) // the part keeps it
		for k := range pk {
			own[k] = pk[k].Clone()
		}
		if p, err := in.part(ctx, own); err == nil {
			f.add(p, id)
		}
	}
	if err := f.read(kv.With(ctx, t.snap)); err != nil {
		return t.readError(err)
	}
	return nil
}

// shown waits until what a part has read is durable. If the snapshot can't be read any more, the transaction ends.
func (t *Transaction) shown(ctx context.Context, p *Tx, err error) error {
	if p.old {
		t.end(errTxConflict())
		return t.ended
	}
	if werr := p.at.slot.waitDurable(ctx, p.shown); werr != nil {
		return werr
	}
	return err
}

// Write does one write in a container. If the item has changed since the snapshot, or the transaction has written too
// much, it ends, and the error is RetryWith or TooLarge. After another error it is as it was before the call. A unique
// value that another item has in the snapshot, or by a write of the transaction, is a Conflict. Over a network all
// unique values of an item take one round trip. Commit finds those that others have taken since. Result.Item gets its
// LSN, number and etag when Commit succeeds.
func (t *Transaction) Write(ctx context.Context, c *Container, w *Write) (Result, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.over(); err != nil {
		return Result{}, err
	}
	if w.PK == nil && w.Doc != nil {
		pk, _, err := c.keyOf(w.Doc)
		if err != nil {
			return Result{}, err
		}
		w.PK = pk
	}
	in, err := t.of(ctx, c)
	if err != nil {
		return Result{}, err
	}
	p, err := in.part(ctx, w.PK)
	if err != nil {
		return Result{}, err
	}
	before := len(p.order)
	res, err := p.Write(w)
	if err = t.shown(ctx, p, err); err != nil {
		return Result{}, err
	}
	if t.size() > maxTxBytes {
		t.end(status.New(status.TooLarge, "A transaction writes at most %d MiB.", maxTxBytes>>20))
		return Result{}, t.ended
	}
	if len(p.order) > before {
		t.writes++
		p.order[before].order = t.writes
	}
	if len(p.order) > before && !c.unborn && !t.claim(c, p.order[before].id.suffix) {
		t.end(errTxConflict())
		return Result{}, t.ended
	}
	if len(p.order) > before && !t.st.others && !c.unborn { // over a network the commit finds it
		id := p.order[before].id
		c.relocate(&id)
		same, err := c.stands(ctx, &id, p.order[before].old)
		if err == nil && !same {
			t.end(errTxConflict())
			err = t.ended
		}
		if err != nil {
			return Result{}, err
		}
	}
	return res, nil
}

// size returns the bytes of the documents that the transaction writes.
func (t *Transaction) size() (n int) {
	for _, in := range t.all {
		for _, p := range in.order {
			n += p.bytes
		}
	}
	return n
}
