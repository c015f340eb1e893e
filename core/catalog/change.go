package catalog

import (
	"context"
	"errors"

	"github.com/orrerydb/orrery/core/journal"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/work"
)

// Every change of the catalog raises its version, a key of its own, in the same commit. The precondition is that the
// version is still the one on which the change was decided. So if two processes decide on the same catalog, one of them
// is refused. It reads the catalog again and repeats the decision. If one process owns the store this never happens.
//
// Example: two processes at version 7 create a container "c". The first commits version 8. The commit of the second
// fails its precondition. It reads version 8, finds "c" and returns Conflict.

// draft is a change in preparation: the future state, and the batch that makes it durable.
type draft struct {
	state
	b   kv.Batch
	pre []kv.Precondition // besides that of the version
	on  kv.Snapshot       // holds the version's key; nil: nobody does

	news []journal.Entry // for the journal
}

// nextVersion gives the version of an entry that is changed.
func (x *draft) nextVersion() uint64 {
	x.account.NextVersion++
	return x.account.NextVersion - 1
}

// write adds an entry that isn't the entry of a container.
func (x *draft) write(key []byte, v any) error {
	e, err := encode(v)
	if err == nil {
		x.b.Put(key, e)
	}
	return err
}

// writeContainer adds a container's entry and puts the container into its database.
func (x *draft) writeContainer(d *database, k *Container) error {
	e, err := encodeContainer(k)
	if err != nil {
		return err
	}
	x.b.Put(containerKey(k), e)
	x.put(d.with(newRef(k, e)))
	return nil
}

// maxChanges is how often a change is repeated. Each time another process's change has been committed.
const maxChanges = 100

// mostLost is how many of these races a change loses before it holds the version's key (kv.Holder). Where another
// process changes the catalog all the time, one that has more to read and to decide would lose all of them.
const mostLost = 2

// change makes a change with f, which may be called more than once. The change is durable before it is visible. f must
// load the definitions of containers that it changes or removes. A draft without operations changes nothing.
func (c *Catalog) change(ctx context.Context, f func(*draft) error) error {
	if err := c.mu.Lock(ctx); err != nil {
		return translate(err)
	}
	defer c.mu.Unlock()
	if c.unsure {
		if err := c.reload(ctx); err != nil {
			return translate(err)
		}
	}
	for lost := range maxChanges {
		err := c.attempt(ctx, f, lost >= mostLost)
		if err == nil || errors.Is(err, kv.ErrUnknownOutcome) { // it may have been applied: it isn't repeated
			return translate(err)
		}
		if errors.Is(err, errUndone) {
			continue
		}
		// A decision on an old catalog is repeated, even a refusal.
		old, stale := c.refresh(ctx)
		if stale != nil || !old {
			return translate(err)
		}
	}
	return status.New(status.Unavailable, "The catalog is changed too often by others.")
}

// attempt decides and commits a change once. hold says that it holds the version's key meanwhile, so that no other
// process commits one. That ends after a second or so: then the commit decides, as without it. The caller holds mu.
func (c *Catalog) attempt(ctx context.Context, f func(*draft) error, hold bool) error {
	x := &draft{}
	if hold {
		s, err := kv.Hold(ctx, c.eng, versionKey())
		if err != nil {
			return err
		}
		defer s.Close()
		if err := c.reload(ctx); err != nil {
			return err
		}
		x.on = s
	}
	x.state = *c.cur.Load()
	if err := f(x); err != nil || x.b.Len() == 0 {
		return err
	}
	return c.commit(ctx, x)
}

// commit writes a draft, waits until it is durable and makes it visible. The caller holds mu.
func (c *Catalog) commit(ctx context.Context, x *draft) error {
	m, err := c.write(ctx, x)
	switch {
	case err == nil:
		c.show(&x.state)
	case errors.Is(err, kv.ErrUnknownOutcome) && c.eng.Shared():
		return c.findOut(ctx, m, err)
	case errors.Is(err, kv.ErrUnknownOutcome):
		c.unsure = true
		ctx, cancel := work.AtLeast(ctx, reloadTime)
		defer cancel()
		_ = c.reload(ctx) // if it fails, the next change does it
	}
	return err
}

// write writes a draft with the account's counters and the version, and waits until it is durable.
func (c *Catalog) write(ctx context.Context, x *draft) (m mark, err error) {
	pre := AtVersion(x.version)
	x.version++
	if c.eng.Shared() {
		m = x.sign(uint64(c.clk.Int63()))
	}
	if err := x.write(keys.AppendMeta(nil, keys.MetaAccount, 0, ""), x.account); err != nil {
		return m, err
	}
	x.b.Put(pre.Key, encodeVersion(x.version))
	t := c.ticket(x)
	defer t.End(nil)
	p, err := kv.Prepare(c.eng, &x.b, 0)
	if err != nil {
		return m, err
	}
	if x.on != nil { // it was taken before the version was read, and perhaps after what the others are about
		if err := kv.CheckIn(kv.With(ctx, x.on), x.pre); err != nil {
			p.Discard()
			return m, err
		}
		p.On(x.on)
	}
	w, err := p.Write(ctx, new(kv.Batch), append([]kv.Precondition{pre}, x.pre...))
	if err == nil {
		t.End(w)
		err = w.Wait()
	}
	return m, err
}

// show makes a state visible. The caller holds mu or is the only user.
func (c *Catalog) show(st *state) {
	if was := c.cur.Load(); was != nil {
		st.serial = was.serial + 1
	}
	c.cur.Store(st)
}

// reload reads the catalog again. The caller holds mu.
func (c *Catalog) reload(ctx context.Context) error {
	st, err := load(ctx, c.eng, c.cur.Load(), c.set.ReadOnly)
	if err != nil {
		return err
	}
	if err := c.jou.Reload(ctx); err != nil {
		return err
	}
	c.show(st)
	c.unsure = false
	return nil
}

// refresh reads the catalog again if it is old, and reports whether it was. The caller holds mu.
func (c *Catalog) refresh(ctx context.Context) (bool, error) {
	v, err := versionOf(c.eng.Get(ctx, nil, versionKey()))
	if err != nil || v == c.cur.Load().version && !c.unsure {
		return false, err
	}
	return true, c.reload(ctx)
}

// At returns the newest definition of the container with a generation, and a version of the catalog that the definition
// is at least as new as. It reads the catalog again if another process has changed it. NotFound with sub-status 1003
// when the container was dropped.
func (c *Catalog) At(ctx context.Context, rid [8]byte, gen uint32) (*Container, uint64, error) {
	for range maxChanges {
		if _, err := c.Refresh(ctx); err != nil {
			return nil, 0, err
		}
		st := c.cur.Load()
		d, ok := st.byNum.get(ridNumber(rid[:4]))
		var r *ref
		if ok {
			r, ok = d.numbers.get(ridNumber(rid[4:]))
		}
		if !ok || r.gen != gen {
			return nil, st.version, errNoContainer("", status.SubOwnerNotFound)
		}
		k, err := c.definition(ctx, d, r)
		if !status.Is(err, status.NotFound) { // else it was renamed or dropped meanwhile
			return k, st.version, err
		}
	}
	return nil, 0, status.New(status.Unavailable, "The catalog is changed too often by others.")
}

// ShownIn returns the definition that a snapshot shows for the name of a container; nil when it shows no such
// container.
func ShownIn(snap kv.Snapshot, k *Container) (*Container, error) {
	b, err := snap.Get(nil, containerKey(k))
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return decodeContainer(b, k.Database)
}

// VersionKey returns the key of the catalog's version. A snapshot in which StoredVersion of its value is v shows the
// catalog of version v.
func VersionKey() []byte { return versionKey() }

// AtVersion is the precondition that the catalog has a version.
func AtVersion(v uint64) kv.Precondition {
	if v == 0 {
		return kv.Precondition{Key: versionKey(), Expect: kv.Absent}
	}
	return kv.Precondition{Key: versionKey(), Expect: kv.Equal, Value: encodeVersion(v)}
}

// StoredVersion decodes the value of VersionKey; nil stands for an absent key.
func StoredVersion(b []byte) (uint64, error) {
	if b == nil {
		return versionOf(nil, kv.ErrNotFound)
	}
	v, err := versionOf(b, nil)
	return v, translate(err)
}

// Version returns the version of the catalog that this process knows: the number of changes.
func (c *Catalog) Version() uint64 { return c.cur.Load().version }

// Refresh checks one key to find out whether another process has changed the catalog, and reads it again if so. It
// reports whether there was a change. Unchanged definitions are kept.
func (c *Catalog) Refresh(ctx context.Context) (changed bool, err error) {
	l := c.BeginLook()
	v, err := versionOf(c.eng.Get(ctx, nil, versionKey()))
	if err != nil {
		return false, translate(err)
	}
	c.Saw(l, v)
	if v == c.cur.Load().version {
		return false, nil
	}
	if err := c.mu.Lock(ctx); err != nil { // a change of this process may be in progress
		return false, translate(err)
	}
	defer c.mu.Unlock()
	if c.cur.Load().version >= v && !c.unsure { // another request has read it: a crowd must not ask one by one
		return true, nil
	}
	if err := c.reload(ctx); err != nil {
		return false, translate(err)
	}
	return true, nil
}

// translate turns an engine's error into a status.
func translate(err error) error {
	var e *status.Error
	var r *kv.Refusal
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return err
	case errors.As(err, &r):
		return r.Status()
	case errors.Is(err, kv.ErrFull):
		return status.Wrap(status.StoreFull, err, "The server's disk is full.")
	case errors.Is(err, kv.ErrTooLarge):
		return status.Wrap(status.TooLarge, err, "Request size is too large")
	case errors.Is(err, kv.ErrUnknownOutcome):
		return status.Wrap(status.UnknownOutcome, err, "The outcome of the change is unknown.")
	case errors.Is(err, kv.ErrCorruption):
		return status.Wrap(status.Corruption, err, "Stored data is corrupt.")
	}
	return status.Wrap(status.Unavailable, err, "The store is not available.")
}
