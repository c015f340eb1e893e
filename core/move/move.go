// Package move copies a whole store to an empty store of another storage engine, where the same clients go on: from a
// directory to a cluster, or back, or between two of a kind.
//
// The unit is a key. Items, index entries, catalog, counters, heads and logs are keys of the store, so etags, LSNs,
// _rids, procedures, users, and what clients hold (positions in feeds, continuations, session tokens) stay the same
// without code for each of them. Only what belongs to processes isn't copied: see carried.
//
// A move has these steps. Each can be interrupted, and the next call continues.
//
//  1. The source gets a record (catalog.Move) which says that it is leaving, and no process can write to it any more:
//     see fence. Nothing else in it changes.
//  2. The target gets a record which says that it is arriving. So nobody serves it.
//  3. Keys are copied in order. The commit of each part also writes the key up to which everything is copied.
//  4. All keys of both stores are compared, and the target is checked as `orrery check` does.
//  5. The record of the target says that it has arrived, and that of the source that it has left. The first of these
//     two commits decides which of the stores is served.
//
// Example: the process is killed after the copy of key k. Both stores are refused by a server then. The next call finds
// the same id in both records, and continues after k.
package move

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
)

// Options of a move. From and To are required.
type Options struct {
	From, To string       // the stores' names, for sentences: a directory or an address. A continued move has the same
	Clock    *clock.Clock // nil = the wall clock
	Watch    Watch        // nil = nobody watches
	Part     int          // bytes of keys and values in one commit; 0 = 4 MiB
}

// Watch gets the progress of a move.
type Watch interface {
	// Task begins a new task; bytes says that its units are bytes.
	Task(name string, bytes bool)
	// Set says that done of total units are finished.
	Set(done, total int64)
}

// Result says what a move has copied, in all of its calls.
type Result struct {
	Keys  int64 `json:"keys"`
	Items int64 `json:"items"`
	Bytes int64 `json:"bytes"` // of keys and values

	Done    bool          `json:"alreadyDone,omitempty"` // an earlier call has completed it
	Resumed bool          `json:"resumed,omitempty"`     // an earlier call has copied a part
	Copied  time.Duration `json:"copyNanoseconds"`       // how long this call has copied
	Checked time.Duration `json:"checkNanoseconds"`      // how long it has compared and checked
}

// partBytes is the default of Options.Part. A cluster takes a part in one transaction, and a mover holds two of them.
const partBytes = 4 << 20

// mover is the state of a call of Run.
type mover struct {
	Options
	from, to kv.Engine
	cat      *catalog.Catalog // of the source
	src, dst *catalog.Move    // the records; nil: none
	srcRaw   []byte           // their stored forms
	dstRaw   []byte
	items    int64 // in the source
}

// Run moves the store of one engine to another one, or continues that. Nobody else may use the engines. Errors are
// sentences for the operator. After an error neither store is served until the move is completed, or abandoned; but if
// the error came before step 1, nothing was changed.
func Run(ctx context.Context, from, to kv.Engine, o Options) (r Result, err error) {
	m := &mover{Options: o, from: from, to: to}
	if m.Clock == nil {
		m.Clock = clock.New()
	}
	if m.Watch == nil {
		m.Watch = unwatched{}
	}
	if m.Part <= 0 {
		m.Part = partBytes
	}
	if err := m.records(ctx); err != nil {
		return r, err
	}
	if m.dst != nil && m.dst.State == catalog.MoveArrived {
		r = Result{Keys: m.dst.Keys, Items: m.dst.Items, Bytes: m.dst.Bytes, Done: true}
		return r, m.left(ctx)
	}
	if err := m.fence(ctx); err != nil {
		return r, err
	}
	r.Resumed = m.dst != nil
	begun := m.Clock.Elapsed()
	if err := m.copyAll(ctx); err != nil {
		return r, err
	}
	r.Copied = m.Clock.Elapsed() - begun
	if err := errors.Join(m.compare(ctx), m.check(ctx)); err != nil {
		return r, err
	}
	r.Checked = m.Clock.Elapsed() - begun - r.Copied
	r.Keys, r.Items, r.Bytes = m.dst.Keys, m.dst.Items, m.dst.Bytes
	return r, m.arrive(ctx)
}

type unwatched struct{}

func (unwatched) Task(string, bool) {}
func (unwatched) Set(_, _ int64)    {}

// records reads the records of both stores, and decides whether a move begins, continues or is refused. Nothing is
// changed.
func (m *mover) records(ctx context.Context) (err error) {
	if m.src, m.srcRaw, err = catalog.ReadMove(ctx, m.from); err != nil {
		return err
	}
	if m.dst, m.dstRaw, err = catalog.ReadMove(ctx, m.to); err != nil {
		return err
	}
	if m.src != nil && m.src.State == catalog.MoveArrived { // from an earlier move to where the source is
		m.src = nil
	}
	switch {
	case m.src != nil && m.dst != nil && m.src.ID == m.dst.ID && (m.dst.State == catalog.MoveArriving ||
		m.dst.State == catalog.MoveArrived) && m.src.State != catalog.MoveArriving:
		return nil
	case m.src != nil && (m.src.State != catalog.MoveLeaving || m.src.Other != m.To):
		return m.src.Refusal()
	case m.dst != nil && m.dst.State == catalog.MoveArriving:
		return refused("%s has an incomplete copy of another store, or of another move: remove it, or give another "+
			"target.", m.To)
	}
	empty, err := m.empty(ctx)
	if err == nil && !empty {
		err = refused("%s isn't empty.", m.To)
	}
	return err
}

// empty reports whether the target has no keys, except of what processes are doing.
func (m *mover) empty(ctx context.Context) (bool, error) {
	r := newReader(m.to, false)
	defer r.close()
	var b kv.Batch
	_, err := r.read(ctx, &b, 1)
	return b.Len() == 0 && m.dst == nil, err
}

// arrive makes the target the store. The source must still be leaving: nobody may have abandoned the move.
func (m *mover) arrive(ctx context.Context) error {
	src, raw, err := catalog.ReadMove(ctx, m.from)
	if err != nil {
		return err
	}
	if src == nil || !bytes.Equal(raw, m.srcRaw) {
		return refused("The move of %s was abandoned by another process.", m.From)
	}
	next := *m.dst
	next.State, next.Last = catalog.MoveArrived, nil
	if err := m.target(ctx, &kv.Batch{}, next); err != nil {
		return err
	}
	return m.left(ctx)
}

// left says in the source that its store is elsewhere.
func (m *mover) left(ctx context.Context) error {
	if m.src.State == catalog.MoveLeft {
		return nil
	}
	next := *m.src
	next.State = catalog.MoveLeft
	raw, err := next.Encode()
	if err != nil {
		return err
	}
	b := kv.Batch{Frees: true}
	b.Put(catalog.MoveKey(), raw)
	return commit(ctx, m.from, &b, m.srcRaw, raw)
}

// target commits a batch to the target, with the next record of it.
func (m *mover) target(ctx context.Context, b *kv.Batch, next catalog.Move) error {
	raw, err := next.Encode()
	if err != nil {
		return err
	}
	b.Put(catalog.MoveKey(), raw)
	if err := commit(ctx, m.to, b, m.dstRaw, raw); err != nil {
		return err
	}
	m.dst, m.dstRaw = &next, raw
	return nil
}

// Bounds of attempts, while an engine isn't available or the outcome of a commit isn't known.
const (
	tries = 60
	rest  = 100 * time.Millisecond
)

// momentary reports whether what an engine has refused may succeed later.
func momentary(err error) bool {
	return errors.Is(err, kv.ErrUnavailable) || errors.Is(err, kv.ErrSnapshotTooOld) ||
		errors.Is(err, kv.ErrUnknownOutcome)
}

// commit writes a batch that changes a store's record from was (nil: none) to is, exactly once. It is durable then.
func commit(ctx context.Context, eng kv.Engine, b *kv.Batch, was, is []byte, more ...kv.Precondition) error {
	pre := append([]kv.Precondition{{Key: catalog.MoveKey(), Expect: kv.Absent}}, more...)
	if was != nil {
		pre[0].Expect, pre[0].Value = kv.Equal, was
	}
	return steadily(ctx, func() error {
		w, err := eng.Write(ctx, b, pre)
		if err == nil {
			err = w.Wait()
		}
		if !errors.Is(err, kv.ErrConflict) {
			return err
		}
		now, gerr := eng.Get(ctx, nil, catalog.MoveKey())
		switch {
		case gerr == nil && bytes.Equal(now, is), errors.Is(gerr, kv.ErrNotFound) && is == nil: // an attempt before
			return nil
		case gerr != nil && !errors.Is(gerr, kv.ErrNotFound):
			return gerr
		}
		return refused("Another process is using one of the stores.")
	})
}

// steadily calls f until it doesn't fail with an error of a moment.
func steadily(ctx context.Context, f func() error) error {
	for n := 1; ; n++ {
		err := f()
		if err == nil || !momentary(err) || ctx.Err() != nil || n >= tries || !sleep(ctx) {
			return err
		}
	}
}

// refused is an error with a sentence for the operator.
func refused(format string, args ...any) error {
	return status.New(status.Unavailable, format, args...)
}

// Abandon takes back that the store of an engine is leaving, or has left: it is a store again, and can be served.
// Nobody else may use the engine.
func Abandon(ctx context.Context, from kv.Engine) error {
	cat, err := catalog.Open(from, clock.New(), catalog.Settings{ReadOnly: true})
	if err != nil {
		return err
	}
	m, raw, err := catalog.ReadMove(ctx, from)
	if err != nil {
		return err
	}
	if m == nil || m.State == catalog.MoveArrived {
		return refused("The store isn't being moved, and was not moved.")
	}
	if m.State == catalog.MoveArriving {
		return refused("%s To abandon the move, give the store that it was moved from, and remove this copy.",
			m.Refusal())
	}
	b := kv.Batch{Frees: true}
	pre, err := cat.ChangeMove(&b, raw, nil)
	if err != nil {
		return err
	}
	return commit(ctx, from, &b, raw, nil, pre...)
}

// describe names a key for a sentence.
func describe(key []byte) string {
	if s, kind, ok := keys.ParseSlot(key); ok {
		return fmt.Sprintf("the key %x (container generation %d, slot %d, kind %02x)", key, s.Gen, s.ID, byte(kind))
	}
	return fmt.Sprintf("the key %x", key)
}
