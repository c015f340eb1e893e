package journal

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// What is recorded is a list of scopes: the store, a database, or a container by its name. A scope is added when
// somebody asks for its changes for the first time, and removed when nobody has used it for as long as entries are
// kept. It is stored, so a restart changes nothing. Everything in a scope is recorded since the scope's time.
//
// Example: the scopes are the database "shop" since 50, and the container "log.a" since 70. A reader of "shop.orders"
// may begin at 50. One of "log.b" can't be served yet: its scope is added, and the reader begins "now".

// scope is an entry of the list. It is never changed, except for used.
type scope struct {
	Namespace
	since uint64
	count int64 // of a shared store: goes up while any process uses the scope
	*usage
}

// usage is when a scope was used, in seconds by this process's clock.
type usage struct {
	used atomic.Int64 // last, by this process
	told atomic.Int64 // when this process has raised count
	seen atomic.Int64 // when count was another one
}

// unready is the time of a scope since when commits are being asked to record it, but not all of them may do so yet.
const unready = 1<<64 - 1

// scopes is a version of the list.
type scopes struct {
	list    []scope
	version uint64
}

func (s *scope) covers(db, coll string) bool {
	return s.DB == "" || s.DB == db && (s.Coll == "" || s.Coll == coll || coll == "")
}

func (s *scopes) covers(db, coll string) bool {
	return slices.ContainsFunc(s.list, func(x scope) bool { return x.covers(db, coll) })
}

// whole returns the scope that has everything of a namespace for the longest time; nil if there is none.
func (s *scopes) whole(ns Namespace) (out *scope) {
	for i := range s.list {
		x := &s.list[i]
		if (x.DB == "" || x.DB == ns.DB && (x.Coll == "" || x.Coll == ns.Coll)) && (out == nil || x.since < out.since) {
			out = x
		}
	}
	return out
}

// Quiet waits until every commit into a namespace that was decided before the call is visible or has failed.
type Quiet func(context.Context, Namespace) error

// Record begins to record a namespace, unless that is done already, and returns the time since when: every change with
// a greater time is in the journal, unless it was removed. quiet is called when new commits are recorded. It fails with
// NotSupported if the store is only read. Of a shared store the catalog does it (Plan).
func (j *Journal) Record(ctx context.Context, ns Namespace, quiet Quiet) (since uint64, err error) {
	if at := j.use(ns); at != 0 {
		return at, nil
	}
	if j.set.ReadOnly {
		return 0, status.New(status.NotSupported, "The store is only read.")
	}
	if err := j.stateMu.Lock(ctx); err != nil {
		return 0, kv.Status(err)
	}
	defer j.stateMu.Unlock()
	if at := j.use(ns); at != 0 {
		return at, nil
	}
	was := j.scopes.Load()
	now := &scopes{version: was.version + 1, list: slices.Clone(was.list)}
	// Until the scope is stored readers find no scope that begins early enough.
	now.list = append(now.list, scope{Namespace: ns, since: unready, usage: new(usage)})
	j.show(now)
	stored := false
	defer func() {
		if !stored {
			j.show(&scopes{version: now.version + 2, list: was.list})
		}
	}()
	if err := quiet(ctx, ns); err != nil {
		return 0, err
	}
	t := j.Begin(1, 1<<10)
	defer t.End(nil)
	since = t.Time() - 1
	list := slices.Clone(now.list)
	list[len(list)-1].since = since
	list[len(list)-1].used.Store(j.clk.Now().Unix())
	var b kv.Batch
	t.Put(&b, &Entry{Op: Mark, DB: ns.DB, Coll: ns.Coll})
	w, err := j.writeState(ctx, &b, list, j.floor.Load())
	// If its outcome was unknown and it is stored, a restart finds the scope. So it has everything from now on.
	if stored = err == nil || bytes.Equal(j.stored, encodeState(list, j.floor.Load())); !stored {
		return 0, err
	}
	t.End(w)
	j.show(&scopes{version: now.version + 1, list: list})
	return since, err
}

// use returns the time since when a namespace is recorded, and keeps its scope; 0 if it isn't recorded.
func (j *Journal) use(ns Namespace) uint64 {
	s := j.scopes.Load().whole(ns)
	if s == nil || s.since == unready {
		return 0
	}
	if now := j.clk.Now().Unix(); s.used.Load() != now {
		s.used.Store(now)
	}
	return max(s.since, j.floor.Load())
}

// Since returns the time since when a namespace is recorded without a gap, and keeps its scope; 0 if it isn't recorded.
func (j *Journal) Since(ns Namespace) uint64 { return j.use(ns) }

func (j *Journal) show(s *scopes) {
	j.scopes.Store(s)
	j.activate()
}

// writeState stores the list and the floor together with other operations, and waits until that is durable. The caller
// holds stateMu.
func (j *Journal) writeState(ctx context.Context, b *kv.Batch, list []scope, floor uint64) (kv.Commit, error) {
	state := encodeState(list, floor)
	b.Put(keys.JournalState(), state)
	w, err := j.eng.Write(ctx, b, []kv.Precondition{j.asStored()})
	if err == nil {
		err = w.Wait()
	}
	switch {
	case err == nil:
		j.stored = state
		return w, nil
	case errors.Is(err, kv.ErrUnknownOutcome):
		if b, gerr := j.eng.Get(context.WithoutCancel(ctx), nil, keys.JournalState()); gerr == nil {
			j.stored = b
		}
	}
	return nil, kv.Status(err)
}

// The stored state: BSON {format: 1, floor: long, scopes: [{db, coll, since: long, count: long}]}.
const formatState = 1

func encodeState(list []scope, floor uint64) []byte {
	at, b := bson.Begin(nil)
	b = bson.AppendInt32(b, "format", formatState)
	b = bson.AppendInt64(b, "floor", int64(floor))
	la, b := bson.BeginArray(b, "scopes")
	for i, s := range list {
		var sa int
		sa, b = bson.Begin(bson.AppendIndexHead(b, bson.TypeDocument, i))
		b = bson.AppendString(b, "db", s.DB)
		b = bson.AppendString(b, "coll", s.Coll)
		if b = bson.AppendInt64(b, "since", int64(s.since)); s.count != 0 {
			b = bson.AppendInt64(b, "count", s.count)
		}
		b = bson.End(b, sa)
	}
	return bson.End(bson.End(b, la), at)
}

// loadState reads the stored state.
func (j *Journal) loadState(snap kv.Snapshot) error {
	b, err := orNil(snap.Get(nil, keys.JournalState()))
	if b == nil || err != nil {
		return err
	}
	return j.readState(b)
}

// readState makes a stored state this process's.
func (j *Journal) readState(b []byte) error {
	floor, err := floorOf(b)
	if err != nil {
		return err
	}
	now, err := scopesOf(b)
	if err != nil {
		return err
	}
	j.stored = bytes.Clone(b)
	j.floor.Store(floor)
	j.Clock.Advance(floor)
	was := j.scopes.Load()
	now.version = was.version + 1
	for i := range now.list {
		n := &now.list[i]
		seen := true
		if k := slices.IndexFunc(was.list, func(o scope) bool { return o.Namespace == n.Namespace }); k >= 0 {
			n.usage, seen = was.list[k].usage, was.list[k].count != n.count
		}
		if seen {
			n.seen.Store(j.clk.Now().Unix())
		}
		if n.since != unready {
			j.Clock.Advance(n.since)
		}
	}
	j.show(now)
	return nil
}

// scopesOf reads the list in a stored state; nil: there is none.
func scopesOf(b []byte) (*scopes, error) {
	if b == nil {
		return &scopes{}, nil
	}
	if _, err := floorOf(b); err != nil {
		return nil, err
	}
	s := &scopes{}
	for _, x := range value.Elements(value.ObjectOf(b).Get("scopes")) {
		n := scope{Namespace: Namespace{x.Get("db").Str(), x.Get("coll").Str()}, since: uint64(x.Get("since").Int()),
			usage: new(usage)}
		if c := x.Get("count"); c.IsDefined() {
			n.count = c.Int()
		}
		s.list = append(s.list, n)
	}
	return s, nil
}

// floorOf reads the floor in a stored state.
func floorOf(b []byte) (uint64, error) {
	d := value.ObjectOf(b)
	if err := bson.Validate(b, 8); err != "" || d.Get("format").Int() != formatState {
		return 0, status.New(status.Corruption, "state of the journal of unknown format")
	}
	return uint64(d.Get("floor").Int()), nil
}

// idle returns the list without the scopes that nobody has used for as long as entries are kept; false if all are
// used.
func (j *Journal) idle(now time.Time) ([]scope, bool) {
	list := slices.Clone(j.scopes.Load().list)
	n := len(list)
	most := int64(j.set.Age / time.Second)
	list = slices.DeleteFunc(list, func(s scope) bool { return now.Unix()-max(s.used.Load(), s.seen.Load()) > most })
	return list, len(list) < n
}
