package core_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// held is a write that is visible and not durable while others read.
type held struct {
	before, write string // documents; with write "" the item is deleted
	spec          core.ContainerSpec
}

var (
	deleted  = held{before: `{"id":"1","pk":"a","n":1}`}
	created  = held{write: `{"id":"1","pk":"a","n":1}`}
	replaced = held{before: `{"id":"1","pk":"a","n":1}`, write: `{"id":"1","pk":"a","n":2}`}
	unique   = held{write: `{"id":"1","pk":"a","u":1}`, spec: core.ContainerSpec{UniqueKeys: [][]string{{"/u"}}}}
	large    = held{write: fmt.Sprintf(`{"id":"1","pk":"a","s":%q}`, strings.Repeat("x", 1500))}
	mortal   = held{before: `{"id":"1","pk":"a"}`, write: `{"id":"1","pk":"a","ttl":5}`,
		spec: core.ContainerSpec{DefaultTTL: new(int32(-1))}}
)

// wants converts the expected error to nil.
func wants(err error, code status.Code) error {
	switch {
	case status.Is(err, code):
		return nil
	case err == nil:
		return fmt.Errorf("no error, want code %d", code)
	}
	return err
}

// empty returns an error if a query has rows.
func empty(c *core.Container, q *exec.Query) error {
	r, err := c.Query(bg, q)
	if err != nil {
		return err
	}
	defer r.Close()
	if r.Next() {
		return fmt.Errorf("a row: %s", json(r.Item()))
	}
	return r.Err()
}

func write(t *testing.T, c *core.Container, kind core.WriteKind, text string) error {
	_, err := c.Write(bg, core.Write{Kind: kind, Doc: mustDoc(t, text)})
	return err
}

// both writes the item and another one in another logical partition with one call, and returns the item's error.
func both(t *testing.T, c *core.Container, w core.Write, ordered bool) error {
	other := core.Write{Kind: core.Replace, PK: pk("other"), Doc: mustDoc(t, `{"id":"none","pk":"other"}`)}
	out := c.WriteMany(bg, []core.Write{w, other}, ordered)
	return out[0].Err
}

var item = core.Write{PK: core.PartitionKey{value.StringOf("a")}, ID: value.StringOf("1")}

func of(kind core.WriteKind) core.Write {
	w := item
	w.Kind = kind
	return w
}

// sights are answers that depend on an absence, or that refuse something because of what exists.
var sights = map[string]struct {
	held held
	look func(t *testing.T, c *core.Container) error
}{
	"read of an absent item": {deleted, func(t *testing.T, c *core.Container) error {
		_, err := c.Read(bg, pk("a"), value.StringOf("1"))
		return wants(err, status.NotFound)
	}},
	"read of an expired item": {mortal, func(t *testing.T, c *core.Container) error {
		_, err := c.Read(bg, pk("a"), value.StringOf("1"))
		return wants(err, status.NotFound)
	}},
	"empty query of a logical partition": {deleted, func(t *testing.T, c *core.Container) error {
		return empty(c, &exec.Query{PK: pk("a")})
	}},
	"empty query of a key": {deleted, func(t *testing.T, c *core.Container) error {
		return empty(c, &exec.Query{PK: pk("a"), Pred: access.Eq(access.ID, value.StringOf("1"))})
	}},
	"empty query of an id": {deleted, func(t *testing.T, c *core.Container) error {
		return empty(c, &exec.Query{Pred: access.Eq(access.ID, value.StringOf("1"))})
	}},
	"empty query of everything": {deleted, func(t *testing.T, c *core.Container) error {
		return empty(c, &exec.Query{})
	}},
	"empty query by index": {replaced, func(t *testing.T, c *core.Container) error {
		return empty(c, eqQuery("n", 1))
	}},
	"empty query by filter": {replaced, func(t *testing.T, c *core.Container) error {
		q := eqQuery("n", 1)
		q.Pred = nil
		return empty(c, q)
	}},
	"empty query in order": {deleted, func(t *testing.T, c *core.Container) error {
		return empty(c, &exec.Query{OrderBy: orderBy(true, "n"), Compare: value.CompareCosmos})
	}},
	"query whose filter fails": {replaced, func(t *testing.T, c *core.Container) error {
		q := &exec.Query{Match: func(it *core.Item) (bool, error) {
			return false, status.New(status.BadRequest, "n is %d", doc.Get(it.Doc, "n").Int())
		}}
		return wants(empty(c, q), status.BadRequest)
	}},
	"page without rows": {replaced, func(t *testing.T, c *core.Container) error {
		q := eqQuery("n", 1)
		q.Pred, q.MaxRead = nil, 1
		return empty(c, q)
	}},
	"count of nothing": {deleted, func(t *testing.T, c *core.Container) error {
		for counted(c) > 0 { // the commit is visible a moment before it is counted
			time.Sleep(time.Millisecond)
		}
		return c.Settle()
	}},
	"count of an empty logical partition": {deleted, func(t *testing.T, c *core.Container) error {
		n, _, err := c.CountIn(bg, pk("a"))
		if n > 0 {
			t.Errorf("counted %d", n)
		}
		return err
	}},
	"create of an item that is there": {created, func(t *testing.T, c *core.Container) error {
		return wants(write(t, c, core.Create, created.write), status.Conflict)
	}},
	"replace of an absent item": {deleted, func(t *testing.T, c *core.Container) error {
		return wants(write(t, c, core.Replace, deleted.before), status.NotFound)
	}},
	"delete of an absent item": {deleted, func(t *testing.T, c *core.Container) error {
		_, err := c.Write(bg, of(core.Delete))
		return wants(err, status.NotFound)
	}},
	"condition on an absent item": {deleted, func(t *testing.T, c *core.Container) error {
		w := of(core.Delete)
		w.Check = func(old *core.Item) error { return status.New(status.PreconditionFailed, "there: %v", old != nil) }
		_, err := c.Write(bg, w)
		return wants(err, status.PreconditionFailed)
	}},
	"condition on an item": {replaced, func(t *testing.T, c *core.Container) error {
		w := of(core.Delete)
		w.Check = func(old *core.Item) error { return status.New(status.PreconditionFailed, "there: %v", old != nil) }
		_, err := c.Write(bg, w)
		return wants(err, status.PreconditionFailed)
	}},
	"update that keeps an absent item absent": {deleted, func(t *testing.T, c *core.Container) error {
		w := of(core.Update)
		w.Update = func(old *core.Item) (core.Change, error) { return core.Change{Keep: true}, nil }
		r, err := c.Write(bg, w)
		if !r.Kept || r.Item != nil {
			t.Errorf("%+v", r)
		}
		return err
	}},
	"update that makes too much of an item": {replaced, func(t *testing.T, c *core.Container) error {
		w := of(core.Update)
		w.Update = func(old *core.Item) (core.Change, error) {
			return core.Change{Doc: mustDoc(t, fmt.Sprintf(`{"id":"1","pk":"a","s":%q}`, strings.Repeat("x", 5000)))},
				nil
		}
		_, err := c.Write(bg, w)
		return wants(err, status.TooLarge)
	}},
	"unique value that is taken": {unique, func(t *testing.T, c *core.Container) error {
		return wants(write(t, c, core.Create, `{"id":"2","pk":"a","u":1}`), status.Conflict)
	}},
	"unique value that is taken, in a transaction": {unique, func(t *testing.T, c *core.Container) error {
		_, err := c.WithTx(bg, pk("a"), func(tx *core.Tx) error {
			_, err := tx.Write(&core.Write{Kind: core.Create, Doc: mustDoc(t, `{"id":"2","pk":"a","u":1}`)})
			return err
		})
		return wants(err, status.Conflict)
	}},
	"logical partition that is full": {large, func(t *testing.T, c *core.Container) error {
		return wants(write(t, c, core.Create, fmt.Sprintf(`{"id":"2","pk":"a","s":%q}`, strings.Repeat("x", 900))),
			status.Forbidden)
	}},
	"many writes in order, one refused": {created, func(t *testing.T, c *core.Container) error {
		w := of(core.Create)
		w.Doc = mustDoc(t, created.write)
		return wants(both(t, c, w, true), status.Conflict)
	}},
	"many writes, all refused": {deleted, func(t *testing.T, c *core.Container) error {
		return wants(both(t, c, of(core.Delete), false), status.NotFound)
	}},
	"many writes, one kept": {deleted, func(t *testing.T, c *core.Container) error {
		w := of(core.Update)
		w.Update = func(old *core.Item) (core.Change, error) { return core.Change{Keep: true}, nil }
		return both(t, c, w, false)
	}},
	"many writes of a container with unique keys": {unique, func(t *testing.T, c *core.Container) error {
		return wants(c.WriteMany(bg, []core.Write{{Kind: core.Create, Doc: mustDoc(t, `{"id":"2","pk":"a","u":1}`)}},
			false)[0].Err, status.Conflict)
	}},
	"transaction that reads an absence": {deleted, func(t *testing.T, c *core.Container) error {
		_, err := c.WithTx(bg, pk("a"), func(tx *core.Tx) error {
			_, err := tx.Read(value.StringOf("1"))
			return wants(err, status.NotFound)
		})
		return err
	}},
	"transaction that is refused for an absence": {deleted, func(t *testing.T, c *core.Container) error {
		_, err := c.WithTx(bg, pk("a"), func(tx *core.Tx) error {
			w := of(core.Delete)
			_, err := tx.Write(&w)
			return err
		})
		return wants(err, status.NotFound)
	}},
	"transaction that is refused for an item": {created, func(t *testing.T, c *core.Container) error {
		_, err := c.WithTx(bg, pk("a"), func(tx *core.Tx) error {
			_, err := tx.Write(&core.Write{Kind: core.Create, Doc: mustDoc(t, created.write)})
			return err
		})
		return wants(err, status.Conflict)
	}},
}

// Nothing is returned that a crash could undo, including absences, counts and refusals. If a commit is visible and not
// durable, a reader's answer waits until it is durable, whether or not the writer has told the slot.
func TestAbsenceAndRefusalsWaitForDurability(t *testing.T) {
	for name, s := range sights {
		t.Run(name, func(t *testing.T) {
			clk := clock.Fake(time.Unix(1_700_000_000, 0))
			e, h := hooked(t, core.Options{Clock: clk, MaxItem: 4000, MaxLogicalPartition: 2500})
			c := newContainer(t, e, s.held.spec)
			put(t, c, core.Create, `{"id":"0","pk":"z"}`) // reserves numbers
			if _, err := c.Write(bg, core.Write{Kind: core.Delete, PK: pk("z"), ID: value.StringOf("0")}); err != nil {
				t.Fatal(err)
			}
			if s.held.before != "" {
				put(t, c, core.Create, s.held.before)
			}
			var durable atomic.Bool
			visible, sync, published := make(chan bool), make(chan bool), make(chan bool)
			h.set(func(h *hookSet) {
				h.visible = func() { visible <- true; <-published }
				h.wait = func() error { <-sync; durable.Store(true); return nil }
			})
			var wg waiter
			wg.Go(func() {
				w := of(core.Delete)
				if s.held.write != "" {
					w = core.Write{Kind: core.Upsert, Doc: mustDoc(t, s.held.write)}
				}
				if _, err := c.Write(bg, w); err != nil {
					t.Error(err)
				}
			})
			<-visible
			h.set(func(h *hookSet) { h.visible = nil })
			clk.Advance(10 * time.Second)
			wg.Go(func() {
				if err := s.look(t, c); err != nil {
					t.Error(err)
				}
				if !durable.Load() {
					t.Error("answered by a commit that is not durable")
				}
			})
			time.Sleep(10 * time.Millisecond) // time for the reader
			close(published)
			time.Sleep(10 * time.Millisecond)
			close(sync)
			wg.Wait()
		})
	}
}

// A commit that fails or has an unknown outcome doesn't block readers: afterwards an absence is returned at once, and
// if the commit was applied, the item is.
func TestFailedCommitsKeepNobodyWaiting(t *testing.T) {
	cases := map[string]struct {
		err     error // nil: a panic
		applied bool
		times   int // number of times that Write fails
	}{
		"no room":                         {kv.ErrFull, false, 1},
		"not available":                   {kv.ErrUnavailable, false, 1},
		"lost a race":                     {&kv.PreconditionError{}, false, 1},
		"unknown, not applied":            {kv.ErrUnknownOutcome, false, 1},
		"unknown, applied":                {kv.ErrUnknownOutcome, true, 1},
		"unknown, and so is the next one": {kv.ErrUnknownOutcome, true, 2},
		"fault":                           {nil, false, 1},
		"fault, applied":                  {nil, true, 1},
	}
	writes := map[string]func(c *core.Container, w core.Write){
		"write": func(c *core.Container, w core.Write) { _, _ = c.Write(bg, w) },
		"many": func(c *core.Container, w core.Write) {
			c.WriteMany(bg, []core.Write{w, {Kind: core.Upsert, PK: pk("b"), Doc: w.Doc}}, true)
		},
		"transaction": func(c *core.Container, w core.Write) {
			_, _ = c.WithTx(bg, pk("a"), func(tx *core.Tx) error {
				_, err := tx.Write(&w)
				return err
			})
		},
	}
	for name, f := range cases {
		for kind, write := range writes {
			t.Run(name+", "+kind, func(t *testing.T) {
				e, h := hooked(t, core.Options{MinSlots: 1})
				c := newContainer(t, e, core.ContainerSpec{})
				put(t, c, core.Create, `{"id":"0","pk":"a"}`)
				left := f.times
				fail := func() error {
					if left == 0 {
						return nil
					}
					if left--; f.err == nil {
						panic("a fault of the engine")
					}
					return f.err
				}
				h.set(func(h *hookSet) {
					if f.applied {
						h.unsure = fail
					} else {
						h.fail = fail
					}
				})
				func() {
					defer func() { _ = recover() }()
					write(c, core.Write{Kind: core.Upsert, Doc: mustDoc(t, `{"id":"1","pk":"a"}`)})
				}()
				_, err := c.Read(bg, pk("a"), value.StringOf("none"))
				wantCode(t, err, status.NotFound, 0)
				if _, err := c.Read(bg, pk("a"), value.StringOf("1")); err != nil &&
					(f.applied || !status.Is(err, status.NotFound)) {
					t.Error(err)
				}
				if err := empty(c, &exec.Query{PK: pk("none")}); err != nil {
					t.Error(err)
				}
				put(t, c, core.Upsert, `{"id":"1","pk":"a"}`)
				_, err = c.Read(bg, pk("a"), value.StringOf("none"))
				wantCode(t, err, status.NotFound, 0)
			})
		}
	}
}
