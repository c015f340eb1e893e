package move_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
	"github.com/orrerydb/orrery/core/move"
	"github.com/orrerydb/orrery/core/value"
)

var bg = context.Background()

// place is where a store is. open returns an engine on it; several may be open at a time if the store is a shared one.
type place struct {
	name string
	open func() kv.Engine
}

// unclosed is an engine whose store outlives it.
type unclosed struct{ kv.Engine }

func (unclosed) Close() error { return nil }

// places make places of each kind, which have no store yet.
var places = map[string]func(t testing.TB) place{
	"memory": func(testing.TB) place {
		e := memkv.New()
		return place{"memory", func() kv.Engine { return kv.Checked(unclosed{e}) }}
	},
	"directory": func(t testing.TB) place {
		dir := t.TempDir()
		return place{dir, func() kv.Engine {
			e, err := pebblekv.Open(dir, pebblekv.Options{Relaxed: true, Scanned: core.OnlyScanned,
				Kept: core.GotSingly})
			if err != nil {
				t.Fatal(err)
			}
			return kv.Checked(e)
		}}
	},
	"cluster": func(testing.TB) place {
		s := kvtest.NewShared(memkv.New(), 1)
		return place{"cluster", func() kv.Engine { return kv.Checked(s.Engine()) }}
	},
}

// serve opens a store as a server does. slots is the least number of slots of its containers.
func (p place) serve(t testing.TB, slots int) *core.Engine {
	t.Helper()
	eng := p.open()
	e, err := core.Open(bg, eng, core.Options{MinSlots: slots, Lease: 200 * time.Millisecond})
	if err != nil {
		_ = eng.Close()
		t.Fatal(err)
	}
	return e
}

// refuses checks that no server can open the store.
func (p place) refuses(t testing.TB) {
	t.Helper()
	eng := p.open()
	if e, err := core.Open(bg, eng, core.Options{}); err == nil {
		_ = e.Close()
		t.Errorf("%s is served", p.name)
		return
	}
	closed(t, eng)
}

// moved moves a store, in parts of some KiB.
func moved(t testing.TB, from, to place) move.Result {
	t.Helper()
	r, err := try(t, from, to, func(e kv.Engine) kv.Engine { return e })
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// try begins or continues a move over engines that wrap may change.
func try(t testing.TB, from, to place, wrap func(kv.Engine) kv.Engine) (move.Result, error) {
	a, b := from.open(), to.open()
	defer closed(t, a)
	defer closed(t, b)
	return move.Run(bg, wrap(a), wrap(b), move.Options{From: from.name, To: to.name, Part: 4 << 10})
}

func closed(t testing.TB, c interface{ Close() error }) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// clean closes a server's engine after a check of its store.
func clean(t testing.TB, e *core.Engine) {
	t.Helper()
	problems, err := e.Check(bg)
	if err != nil || len(problems) > 0 {
		t.Error(err, problems)
	}
	closed(t, e)
}

func document(t testing.TB, json string) doc.Doc {
	t.Helper()
	d, err := doc.FromJSON(nil, []byte(json), doc.JSONOptions{Names: doc.NoSQL})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func write(t testing.TB, c *core.Container, kind core.WriteKind, json string) core.Result {
	t.Helper()
	r, err := c.Write(bg, core.Write{Kind: kind, Doc: document(t, json)})
	if err != nil {
		t.Fatalf("%s: %v", json, err)
	}
	return r
}

func container(t testing.TB, e *core.Engine, id string) *core.Container {
	t.Helper()
	c, err := e.Container("db", id)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func partitions(t testing.TB, c *core.Container) []core.Partition {
	t.Helper()
	ps, err := c.Partitions(bg)
	if err != nil {
		t.Fatal(err)
	}
	return ps
}

func text(s string) value.Value { return value.StringOf(s) }

// dying is an engine of a process that ends with its n-th write: from then on each call fails. In half of the cases
// that write was applied.
type dying struct {
	kv.Engine
	life *life
}

// life is what the engines of one process share.
type life struct {
	mu      sync.Mutex
	writes  int
	applied bool
}

var errDead = errors.Join(kv.ErrClosed, errors.New("the process has ended"))

func (d dying) Write(ctx context.Context, b *kv.Batch, pre []kv.Precondition) (kv.Commit, error) {
	d.life.mu.Lock()
	defer d.life.mu.Unlock()
	if d.life.writes--; d.life.writes == 0 && d.life.applied {
		if c, err := d.Engine.Write(ctx, b, pre); err == nil {
			_ = c.Wait()
		}
	}
	if d.life.writes <= 0 {
		return nil, errDead
	}
	return d.Engine.Write(ctx, b, pre)
}
