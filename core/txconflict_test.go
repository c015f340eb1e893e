package core_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

// Steps of transactions and of concurrent writers. Items are in logical partition "a" unless the step names another.

type txStep func(t *testing.T, tx *core.Tx) error

func reads(id string) txStep {
	return func(t *testing.T, tx *core.Tx) error {
		_, err := tx.Read(value.StringOf(id))
		if status.Is(err, status.NotFound) {
			return nil
		}
		return err
	}
}

func puts(kind core.WriteKind, id string) txStep {
	return func(t *testing.T, tx *core.Tx) error {
		w := core.Write{Kind: kind, ID: value.StringOf(id)}
		if kind != core.Delete {
			w.Doc = mustDoc(t, fmt.Sprintf(`{"id":%q,"pk":"a","by":"tx"}`, id))
		}
		_, err := tx.Write(&w)
		return err
	}
}

func other(kind core.WriteKind, key, id string) func(t *testing.T, c *core.Container) {
	return func(t *testing.T, c *core.Container) {
		w := core.Write{Kind: kind, PK: pk(key), ID: value.StringOf(id)}
		if kind != core.Delete {
			w.Doc = mustDoc(t, fmt.Sprintf(`{"id":%q,"pk":%q,"by":"other"}`, id, key))
		}
		if _, err := c.Write(bg, w); err != nil {
			t.Error(err)
		}
	}
}

func steps(fs ...func(t *testing.T, c *core.Container)) func(t *testing.T, c *core.Container) {
	return func(t *testing.T, c *core.Container) {
		for _, f := range fs {
			f(t, c)
		}
	}
}

// A transaction conflicts only with writers that change what it has read, including absences.
func TestTxLosesToRealConflictsOnly(t *testing.T) {
	cases := map[string]struct {
		tx    []txStep
		other func(t *testing.T, c *core.Container) // runs after the steps of the first run
		lost  bool
		left  string // ids in "a" at the end; all begin with x or y
	}{
		"another item is replaced": {[]txStep{reads("x"), puts(core.Replace, "x")}, other(core.Replace, "a", "y"),
			false, "x y"},
		"another item is created": {[]txStep{reads("x"), puts(core.Create, "z")}, other(core.Create, "a", "w"),
			false, "w x y z"},
		"another item is deleted": {[]txStep{reads("x"), puts(core.Create, "z")}, other(core.Delete, "a", "y"),
			false, "x z"},
		"another logical partition": {[]txStep{reads("x"), puts(core.Replace, "x")}, other(core.Create, "b", "x"),
			false, "x y"},
		"what it reads is replaced": {[]txStep{reads("x"), puts(core.Replace, "y")}, other(core.Replace, "a", "x"),
			true, "x y"},
		"what it reads is deleted": {[]txStep{reads("x"), puts(core.Replace, "y")}, other(core.Delete, "a", "x"),
			true, "y"},
		"what it writes is replaced":  {[]txStep{puts(core.Upsert, "x")}, other(core.Replace, "a", "x"), true, "x y"},
		"what it deletes is replaced": {[]txStep{puts(core.Delete, "x")}, other(core.Replace, "a", "x"), true, "y"},
		"what it misses is created": {[]txStep{reads("z"), puts(core.Replace, "x")}, other(core.Create, "a", "z"),
			true, "x y z"},
		"what it upserts is created": {[]txStep{puts(core.Upsert, "z")}, other(core.Create, "a", "z"),
			true, "x y z"},
		"what it reads is made anew": {
			[]txStep{reads("x"), puts(core.Replace, "y")},
			steps(other(core.Delete, "a", "x"), other(core.Create, "a", "x")), true, "x y"},
		"what it misses comes and goes": {
			[]txStep{reads("z"), puts(core.Replace, "x")},
			steps(other(core.Create, "a", "z"), other(core.Delete, "a", "z")), false, "x y"},
		"all items go": {[]txStep{reads("x"), puts(core.Upsert, "z")},
			steps(other(core.Delete, "a", "x"), other(core.Delete, "a", "y")), true, "z"},
		"all items go that it doesn't read": {[]txStep{puts(core.Upsert, "z")},
			steps(other(core.Delete, "a", "x"), other(core.Delete, "a", "y")), false, "z"},
		"what it only reads": {[]txStep{reads("x")}, other(core.Replace, "a", "x"), false, "x y"},
	}
	onEngines(t, core.Options{MinSlots: 1}, func(t *testing.T, e *core.Engine) {
		for name, f := range cases {
			for _, pause := range []time.Duration{0, 5 * time.Millisecond} {
				// the slot may have its id filter, which the creates caused
				t.Run(fmt.Sprintf("%s, after %v", name, pause), func(t *testing.T) {
					c := newContainer(t, e, core.ContainerSpec{ID: t.Name()})
					steps(other(core.Create, "a", "x"), other(core.Create, "a", "y"))(t, c)
					time.Sleep(pause)
					runs := 0
					_, err := c.WithTx(bg, pk("a"), func(tx *core.Tx) error {
						runs++
						for _, step := range f.tx {
							if err := step(t, tx); err != nil {
								return err
							}
						}
						if runs == 1 {
							f.other(t, c)
						}
						return nil
					})
					if err != nil && !status.Is(err, status.NotFound) {
						t.Fatal(err)
					}
					if want := 1 + map[bool]int{true: 1}[f.lost]; runs != want {
						t.Errorf("%d runs, want %d", runs, want)
					}
					got := ids(t, c, &exec.Query{PK: pk("a")})
					if slices.Sort(got); strings.Join(got, " ") != f.left {
						t.Errorf("%v are left, want %s", got, f.left)
					}
					if n, _, err := c.CountIn(bg, pk("a")); err != nil || int(n) != len(got) {
						t.Errorf("counted %d of %d: %v", n, len(got), err)
					}
				})
			}
		}
	})
}

// A create in a transaction reads only that its item is absent. If another writer creates it first, the create fails.
func TestTxCreateLosesToACreate(t *testing.T) {
	onEngines(t, core.Options{MinSlots: 1}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		other(core.Create, "a", "x")(t, c)
		time.Sleep(5 * time.Millisecond) // for the slot's id filter
		runs := 0
		_, err := c.WithTx(bg, pk("a"), func(tx *core.Tx) error {
			runs++
			err := puts(core.Create, "z")(t, tx)
			if runs == 1 {
				other(core.Create, "a", "z")(t, c)
			}
			return err
		})
		if !status.Is(err, status.Conflict) || runs != 2 {
			t.Errorf("%d runs: %v", runs, err)
		}
	})
}

// If two transactions each read what the other writes, one of them runs again and sees the other's write.
func TestTxWriteSkew(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		put(t, c, core.Create, `{"id":"x","pk":"a","on":true}`)
		put(t, c, core.Create, `{"id":"y","pk":"a","on":true}`)
		// off turns one item off if the other one is on.
		off := func(id, other string, meanwhile func()) {
			_, err := c.WithTx(bg, pk("a"), func(tx *core.Tx) error {
				it, err := tx.Read(value.StringOf(other))
				if err != nil {
					return err
				}
				meanwhile()
				if !doc.Get(it.Doc, "on").Bool() {
					return nil
				}
				_, err = tx.Write(&core.Write{
					Kind: core.Replace, Doc: mustDoc(t, fmt.Sprintf(`{"id":%q,"pk":"a","on":false}`, id))})
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
		var once sync.Once
		off("x", "y", func() { once.Do(func() { off("y", "x", func() {}) }) })
		on := 0
		for _, id := range []string{"x", "y"} {
			it, err := c.Read(bg, pk("a"), value.StringOf(id))
			if err != nil {
				t.Fatal(err)
			}
			if doc.Get(it.Doc, "on").Bool() {
				on++
			}
		}
		if on != 1 {
			t.Errorf("%d items are on, want 1", on)
		}
	})
}

// Random transactions over a few items, with concurrent single writes, are serializable in the order of their LSNs:
// each has read the state that this order implies.
func TestTxsAreSerializable(t *testing.T) {
	t.Parallel()
	const workers, items = 6, 5
	times := overNetwork(80, 30)
	onEngines(t, core.Options{MinSlots: 1}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		type act struct {
			lsn   int64
			read  map[string]int64 // n of items, 0 = absent
			wrote map[string]int64 // 0 = deleted
		}
		var mu sync.Mutex
		var acts []act
		var next atomic.Int64
		text := func(id string, n int64) doc.Doc { return mustDoc(t, fmt.Sprintf(`{"id":%q,"pk":"a","n":%d}`, id, n)) }
		transact := func(r *rand.Rand) error {
			a := act{}
			read := r.Perm(items)[:r.IntN(items)+1]
			change := read[:r.IntN(len(read))+1]
			cm, err := c.WithTx(bg, pk("a"), func(tx *core.Tx) error {
				a.read, a.wrote = map[string]int64{}, map[string]int64{}
				for _, i := range read {
					id := fmt.Sprint("i", i)
					it, err := tx.Read(value.StringOf(id))
					if err != nil && !status.Is(err, status.NotFound) {
						return err
					}
					if a.read[id] = 0; err == nil {
						a.read[id] = doc.Get(it.Doc, "n").Int()
					}
				}
				for _, i := range change {
					id := fmt.Sprint("i", i)
					w := core.Write{Kind: core.Delete, ID: value.StringOf(id)}
					if a.wrote[id] = 0; a.read[id] == 0 || r.IntN(3) > 0 {
						a.wrote[id] = next.Add(1)
						w = core.Write{Kind: core.Upsert, Doc: text(id, a.wrote[id])}
					}
					if _, err := tx.Write(&w); err != nil {
						return err
					}
				}
				return nil
			})
			a.lsn = cm.LSN
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				acts = append(acts, a)
			}
			return err
		}
		single := func(r *rand.Rand) error {
			id, n := fmt.Sprint("i", r.IntN(items)), next.Add(1)
			res, err := c.Write(bg, core.Write{Kind: core.Upsert, Doc: text(id, n)})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				acts = append(acts, act{res.LSN, nil, map[string]int64{id: n}})
			}
			return err
		}
		var wg waiter
		for w := range workers {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(w), 3))
				for range times {
					do := transact
					if r.IntN(3) == 0 {
						do = single
					}
					if err := do(r); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		slices.SortFunc(acts, func(a, b act) int { return int(a.lsn - b.lsn) })
		model := map[string]int64{}
		for _, a := range acts {
			for id, n := range a.read {
				if model[id] != n {
					t.Fatalf("the commit of LSN %d has read %s as %d, it was %d", a.lsn, id, n, model[id])
				}
			}
			maps.Copy(model, a.wrote)
		}
		if len(acts) != workers*times {
			t.Errorf("%d commits", len(acts))
		}
	})
}

// A function that takes 5 ms, with 400 writes a second to other items of its logical partition, succeeds at its first
// run.
func TestTxBesideABusyPartition(t *testing.T) {
	onEngines(t, core.Options{MinSlots: 1}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		put(t, c, core.Create, `{"id":"sum","pk":"a","n":0}`)
		stop := hammer(t, c, 4, 10*time.Millisecond, func(w, n int) string {
			return fmt.Sprintf(`{"id":"w%d","pk":"a","n":%d}`, w, n)
		})
		defer stop()
		const txs = 20
		runs := 0
		for range txs {
			if err := add(t, c, func() { runs++; time.Sleep(5 * time.Millisecond) }); err != nil {
				t.Error(err)
			}
		}
		stop()
		if runs != txs {
			t.Errorf("%d runs of %d transactions", runs, txs)
		}
	})
}

// If the writes change what the function reads, the transaction gets a turn. All queued transactions and all writers
// succeed. The transactions go on until the writers have come through. A turn ends after a second, so over a network a
// transaction may lose if a single run takes half of that.
func TestTxThatLosesGetsATurn(t *testing.T) {
	onEngines(t, core.Options{MinSlots: 1}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		put(t, c, core.Create, `{"id":"sum","pk":"a","n":0}`)
		var writes atomic.Int64
		stop := hammer(t, c, 4, 0, func(w, n int) string {
			writes.Add(1)
			return fmt.Sprintf(`{"id":"sum","pk":"a","n":%d}`, n)
		})
		defer stop()
		start := time.Now()
		var wg waiter
		for range 4 {
			wg.Go(func() {
				for n := 0; n < 5 || writes.Load() < 20 && time.Since(start) < time.Minute; n++ {
					var longest time.Duration // from one run to the next
					begun := time.Now()
					err := add(t, c, func() {
						longest, begun = max(longest, time.Since(begun)), time.Now()
						time.Sleep(5 * time.Millisecond)
					})
					slow := e.Shared() && max(longest, time.Since(begun)) > time.Second/2
					if err != nil && !(slow && status.Is(err, status.RetryWith)) {
						t.Errorf("%v, after runs of up to %v", err, longest)
					}
				}
			})
		}
		wg.Wait()
		if stop(); writes.Load() < 20 {
			t.Errorf("%d writes came through in %v beside transactions", writes.Load(), time.Since(start))
		}
	})
}

// add adds 1 to an item in a transaction. pause runs between read and write.
func add(t *testing.T, c *core.Container, pause func()) error {
	_, err := c.WithTx(bg, pk("a"), func(tx *core.Tx) error {
		it, err := tx.Read(value.StringOf("sum"))
		if err != nil {
			return err
		}
		pause()
		n := doc.Get(it.Doc, "n").Int()
		_, err =
			tx.Write(&core.Write{Kind: core.Replace, Doc: mustDoc(t, fmt.Sprintf(`{"id":"sum","pk":"a","n":%d}`, n+1))})
		return err
	})
	return err
}

// hammer has writers upsert the result of text at intervals, until stop is called. stop may be called more than once.
func hammer(t *testing.T, c *core.Container, writers int, every time.Duration, text func(w, n int) string) (
	stop func()) {
	var wg waiter
	var ended atomic.Bool
	for w := range writers {
		wg.Go(func() {
			for n := 0; !ended.Load(); n++ {
				if err := write(t, c, core.Upsert, text(w, n)); err != nil {
					t.Error(err)
					return
				}
				time.Sleep(every)
			}
		})
	}
	return func() {
		ended.Store(true)
		wg.Wait()
	}
}

// During a turn the writers of the transaction's logical partition wait, and those of other partitions don't. No writer
// waits longer than a second, or longer than its context. Time passes only while everybody waits, so a second is exact.
func TestTurnKeepsItsLogicalPartitionOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := hooked(t, core.Options{MinSlots: 1})
		c := newContainer(t, e, core.ContainerSpec{})
		put(t, c, core.Create, `{"id":"sum","pk":"a","n":0}`)
		turn, goOn := make(chan bool), make(chan bool)
		var wg waiter
		wg.Go(func() {
			runs := 0
			err := add(t, c, func() {
				switch runs++; runs {
				case 1, 2:
					put(t, c, core.Upsert, `{"id":"sum","pk":"a","n":0}`)
				case 3:
					turn <- true
					<-goOn
				}
			})
			if err != nil || runs < 3 {
				t.Errorf("%d runs: %v", runs, err)
			}
		})
		<-turn
		begun := time.Now()
		ways := map[string]func(ctx context.Context, key string) error{
			"write": func(ctx context.Context, key string) error {
				_, err := c.Write(ctx, core.Write{
					Kind: core.Upsert, Doc: mustDoc(t, fmt.Sprintf(`{"id":"w","pk":%q}`, key))})
				return err
			},
			"many": func(ctx context.Context, key string) error {
				w := core.Write{Kind: core.Upsert, Doc: mustDoc(t, fmt.Sprintf(`{"id":"m","pk":%q}`, key))}
				v := core.Write{Kind: core.Upsert, Doc: mustDoc(t, fmt.Sprintf(`{"id":"n","pk":%q}`, key))}
				return c.WriteMany(ctx, []core.Write{w, v}, true)[0].Err
			},
			"transaction": func(ctx context.Context, key string) error {
				_, err := c.WithTx(ctx, pk(key), func(tx *core.Tx) error {
					_, err := tx.Write(&core.Write{
						Kind: core.Upsert, Doc: mustDoc(t, fmt.Sprintf(`{"id":"t","pk":%q}`, key))})
					return err
				})
				return err
			},
		}
		for name, way := range ways {
			if err := way(bg, "b"); err != nil {
				t.Errorf("%s of another logical partition: %v", name, err)
			}
			ctx, cancel := context.WithTimeout(bg, 20*time.Millisecond)
			if err := way(ctx, "a"); !status.Is(err, status.Timeout) {
				t.Errorf("%s of the logical partition: %v", name, err)
			}
			cancel()
		}
		if err := ways["write"](bg, "a"); err != nil {
			t.Error(err)
		}
		if d := time.Since(begun); d != time.Second {
			t.Errorf("a writer waited for %v", d)
		}
		close(goOn)
		wg.Wait()
	})
}

// A transaction writes at most 16 MiB. Documents that it replaces again don't count.
func TestTxLimit(t *testing.T) {
	race.Alone(t)
	docs := make([]doc.Doc, 7)
	for id := range docs {
		docs[id] = mustDoc(t, fmt.Sprintf(`{"id":"%d","pk":"a","s":%q}`, id, strings.Repeat("x", 3<<20)))
	}
	large := func(id int) *core.Write { return &core.Write{Kind: core.Upsert, Doc: docs[id]} }
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{IndexingPolicy: []byte(noIndex)})
		_, err := c.WithTx(bg, pk("a"), func(tx *core.Tx) error {
			for i := range 12 {
				if _, err := tx.Write(large(i % 5)); err != nil {
					return err
				}
			}
			if _, err := tx.Write(&core.Write{Kind: core.Delete, ID: value.StringOf("0")}); err != nil {
				return err
			}
			if _, err := tx.Write(large(5)); err != nil {
				return err
			}
			_, err := tx.Write(large(6))
			wantCode(t, err, status.TooLarge, 0)
			return nil // without the refused one
		})
		if err != nil {
			t.Error(err)
		}
		if counted(c) != 5 {
			t.Errorf("%d items", counted(c))
		}
	})
}
