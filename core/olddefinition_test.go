package core_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// A process is paused in a commit that it has decided on a definition. Another process changes the definition, and its
// change is answered. Then the paused one goes on: what it commits follows the new definition, or is refused.
func TestCommitsOfOldDefinitions(t *testing.T) {
	unique := func(b *peer) error { return declare(b.e, uniqueIn("u", "u")) }
	immortal := func(b *peer) error {
		_, err := b.e.Redefine(bg, "db", "c", func(d core.Definition) (core.ContainerSpec, error) {
			s := d.Spec().Clone()
			s.DefaultTTL = nil
			return s, nil
		})
		return err
	}
	noDates := func(b *peer) error { return declare(b.e) }
	create := core.Write{Kind: core.Create, Doc: mustDoc(t, `{"id":"new","pk":"1","u":"new"}`)}
	over := core.Write{Kind: core.Create, Doc: mustDoc(t, `{"id":"1","pk":"1","u":"over"}`)}
	remove := core.Write{Kind: core.Delete, PK: pk("1"), ID: value.StringOf("1")}
	write := func(w core.Write) func(c *core.Container) error {
		return func(c *core.Container) error { _, err := c.Write(bg, w); return err }
	}
	tx := func(w core.Write) func(c *core.Container) error {
		return func(c *core.Container) error {
			_, err := c.WithTx(bg, pk("1"), func(tx *core.Tx) error { _, err := tx.Write(&w); return err })
			return err
		}
	}
	many := func(c *core.Container) error {
		ws := []core.Write{create, {Kind: core.Create, Doc: mustDoc(t, `{"id":"new2","pk":"2","u":"new2"}`)}}
		for _, o := range c.WriteMany(bg, ws, false) {
			if o.Err != nil {
				return o.Err
			}
		}
		return nil
	}
	for _, c := range []struct {
		what, from string
		n          int64                         // the call of Write at which a is paused
		late       bool                          // the items are expired for a, and not for b
		dates      bool                          // they are so by an index
		do         func(c *core.Container) error // a; nil: a removes expired items
		change     func(b *peer) error
		code       status.Code // of a's error
		items      int         // afterwards
	}{
		{"write, unique", "(*jointCommit).commit", 1, false, false, write(create), unique, 0, 5},
		{"transaction, unique", "(*Tx).attempt", 1, false, false, tx(create), unique, 0, 5},
		{"removal in a transaction, unique", "(*Tx).attempt", 1, false, false, tx(remove), unique, 0, 3},
		{"several writes, unique", "(*many).commit", 1, false, false, many, unique, 0, 6},
		{"expiry, unique", "(*Container).reapAttempt", 1, true, false, nil, unique, 0, 0},
		{"expiry, items that live", "(*Container).reapAttempt", 1, true, false, nil, immortal, 0, 4},
		{"expiry by dates, items that live", "(*Container).reapAttempt", 1, true, true, nil, noDates, 0, 4},
		{"write over an item that lives", "(*jointCommit).commit", 1, true, false, write(over), immortal,
			status.Conflict, 4},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			mem := kv.Checked(memkv.New())
			a := join(t, mem)
			spec, ttl := core.ContainerSpec{}, int32(100)
			if c.dates {
				spec.Declared = []core.Declared{{Name: "d", Paths: dotted("at"), After: new(int32)}}
			} else if c.late {
				spec.DefaultTTL = &ttl
			}
			k := newContainer(t, a.e, spec)
			for i := range 4 {
				n := value.StringOf(strconv.Itoa(i))
				d := object([]any{"_id", n, "pk", n, "u", n, "at", value.DateOf(a.clk.Now().UnixMilli()+50_000, 0)})
				if _, err := k.Write(bg, core.Write{Kind: core.Create, Doc: d.Bytes()}); err != nil {
					t.Fatal(err)
				}
			}
			b := join(t, mem)
			b.of(t)
			if c.late {
				a.clk.Advance(200 * time.Second)
			}
			paused, resume := a.pauseAt(t, "Write", c.from, c.n)
			done := make(chan error, 1)
			go func() {
				if c.do != nil {
					done <- c.do(k)
					return
				}
				a.e.Reap(bg)
				done <- nil
			}()
			happens(t, "a is paused", paused)
			changed := make(chan error, 1)
			go func() { changed <- c.change(b) }()
			if err := ended(t, "the definition is changed", changed, b); err != nil {
				t.Fatal(err)
			}
			resume()
			err := ended(t, "the paused process ends", done, a, b)
			if (err != nil) != (c.code != 0) || err != nil && status.CodeOf(err) != c.code {
				t.Errorf("a's error is %v", err)
			}
			_, _ = a.e.Close(), b.e.Close()
			alone(t, mem, func(e *core.Engine) {
				k, err := e.Container("db", "c")
				if err != nil {
					t.Fatal(err)
				}
				if n, err := k.Count(bg); err != nil || n != int64(c.items) {
					t.Errorf("%d items (%v), want %d", n, err, c.items)
				}
			})
		})
	}
}

// Writes have looked when another process declares an index. A transaction of their process loses a race against that,
// and its client goes away. So the slot's head is known, and the definition isn't. The writes follow it nevertheless.
func TestHeadIsKnownBeforeItsDefinition(t *testing.T) {
	mem := kv.Checked(memkv.New())
	a := join(t, mem)
	k := newContainer(t, a.e, core.ContainerSpec{})
	put(t, k, core.Create, `{"id":"1","pk":"1","u":"1"}`)
	b := join(t, mem)
	b.of(t)
	looked, lost := make(chan bool), make(chan bool)
	ws := []core.Write{{Kind: core.Create, Doc: mustDoc(t, `{"id":"2","pk":"2","u":"2"}`)},
		{Kind: core.Create, Doc: mustDoc(t, `{"id":"3","pk":"3","u":"3"}`)}}
	once := sync.OnceFunc(func() { close(looked) })
	ws[0].Check = func(*core.Item) error {
		once()
		<-lost
		return nil
	}
	written := make(chan error, 1)
	go func() {
		var errs []error
		for _, o := range k.WriteMany(bg, ws, false) {
			errs = append(errs, o.Err)
		}
		written <- errors.Join(errs...)
	}()
	happens(t, "the writes have looked", looked)
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	a.set(func(call string) error {
		if call == "Get" && calledBy("(*Container).findHead") {
			cancel()
		}
		return nil
	})
	_, err := k.WithTx(ctx, pk("1"), func(tx *core.Tx) error {
		if err := declare(b.e, uniqueIn("u", "u")); err != nil {
			t.Error(err)
		}
		_, err := tx.Write(&core.Write{Kind: core.Replace, Doc: mustDoc(t, `{"id":"1","pk":"1","u":"one"}`)})
		return err
	})
	if err == nil {
		t.Error("the transaction has not lost")
	}
	close(lost)
	if err := ended(t, "the writes end", written, a, b); err != nil {
		t.Error(err)
	}
	_, _ = a.e.Close(), b.e.Close()
	alone(t, mem, func(*core.Engine) {})
}

// A process is paused while it declares a unique index, for longer than its lease. Another process declares one
// meanwhile, or is about to. What the paused one does then is refused, and takes nothing away from the other one.
func TestPausedDeclaration(t *testing.T) {
	add := func(p *peer, field string) error {
		_, err := p.e.ChangeContainer(bg, "db", "c", func(s *core.ContainerSpec) error {
			s.Declared = append(s.Declared, uniqueIn(field, field))
			return nil
		})
		return err
	}
	for _, c := range []struct {
		what, call, from string
		n                int64
		during           bool // b is paused in its own declaration, after its entries were made
	}{
		{"before the index is in the definition", "Write", "(*declaring).change", 1, false},
		{"before the index is ready", "Write", "(*declaring).change", 2, false},
		{"before its entries are made", "Write", "(*declaring).write", 1, false},
		{"before the index is in the definition, beside another one", "Write", "(*declaring).change", 1, true},
		{"before the index is ready, beside another one", "Write", "(*declaring).change", 2, true},
		{"before its entries are made, beside another one", "Write", "(*declaring).write", 1, true},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			mem := kv.Checked(memkv.New())
			a := join(t, mem)
			k := newContainer(t, a.e, core.ContainerSpec{})
			put(t, k, core.Create, `{"id":"1","pk":"1","u":"1","v":"1"}`)
			put(t, k, core.Create, `{"id":"2","pk":"2","u":"2","v":"2"}`)
			paused, resume := a.pauseAt(t, c.call, c.from, c.n)
			failed := make(chan error, 1)
			go func() { failed <- add(a, "v") }()
			happens(t, "a is paused", paused)
			b := join(t, mem)
			b.of(t)
			done := make(chan error, 1)
			goOn := func() {}
			if c.during {
				var ready <-chan bool
				// a's index that isn't ready is removed first, if the definition has it
				n := int64(4)
				if c.from == "(*declaring).change" && c.n == 1 {
					n = 2
				}
				ready, goOn = b.pauseAt(t, "Write", "(*declaring).change", n)
				go func() { done <- add(b, "u") }()
				eventually(t, "b is paused", func() bool {
					select {
					case <-ready:
						return true
					default:
						return false
					}
				}, b)
			} else {
				go func() { done <- add(b, "u") }()
				if err := ended(t, "b declares its index", done, b); err != nil {
					t.Fatal(err)
				}
				done <- nil
			}
			resume()
			if err := ended(t, "a ends", failed, a); err == nil {
				t.Error("a has no error")
			}
			goOn()
			if err := ended(t, "b ends", done, b); err != nil {
				t.Error(err)
			}
			_, err := b.of(t).Write(bg, core.Write{Kind: core.Create, Doc: mustDoc(t, `{"id":"3","pk":"3","u":"1"}`)})
			if !status.Is(err, status.Conflict) {
				t.Errorf("a second item with a unique value: %v", err)
			}
			_, _ = a.e.Close(), b.e.Close()
			alone(t, mem, func(*core.Engine) {})
		})
	}
}
