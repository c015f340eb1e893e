package core_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/ru"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

// longLife is the life of a transaction in tests that don't wait for its end.
const longLife = time.Minute

// inTx is a transaction in a container.
type inTx struct {
	*core.Transaction
	c *core.Container
}

// begin begins a transaction, which the caller ends before its engine is closed. Each call is a request of its own,
// whose ctx ends with it, as when the client's connections are closed.
func begin(t testing.TB, c *core.Container) inTx {
	t.Helper()
	ctx, end := context.WithCancel(bg)
	defer end()
	tx, err := c.Begin(ctx, longLife)
	if err != nil {
		t.Fatal(err)
	}
	return inTx{tx, c}
}

func (tx inTx) read(pk core.PartitionKey, id value.Value) (*core.Item, error) {
	ctx, end := context.WithCancel(bg)
	defer end()
	return tx.Read(ctx, tx.c, pk, id)
}

// purse is the document of an account in a logical partition of its own.
func purse(name string, n int64) string { return fmt.Sprintf(`{"id":"x","pk":%q,"n":%d}`, name, n) }

func setIn(t testing.TB, tx inTx, kind core.WriteKind, json string) error {
	t.Helper()
	ctx, end := context.WithCancel(bg)
	defer end()
	_, err := tx.Write(ctx, tx.c, core.Write{Kind: kind, Doc: mustDoc(t, json)})
	return err
}

// balance reads n of an account; -1 if it is absent.
func balance(t testing.TB, read func(core.PartitionKey, value.Value) (*core.Item, error), name string) int64 {
	t.Helper()
	it, err := read(pk(name), value.StringOf("x"))
	if status.Is(err, status.NotFound) {
		return -1
	}
	if err != nil {
		t.Fatal(err)
	}
	return doc.Get(it.Doc, "n").Int()
}

func outside(c *core.Container) func(core.PartitionKey, value.Value) (*core.Item, error) {
	return func(pk core.PartitionKey, id value.Value) (*core.Item, error) { return inTurn(c).Read(bg, pk, id) }
}

// A transaction doesn't hold what it only reads, and is charged for it. The engine may take memory meanwhile, as for
// its next memtable, so there are three attempts.
func TestTransactionHoldsNoReads(t *testing.T) {
	race.Alone(t)
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		const n, size = 200, 100 << 10
		c := newContainer(t, e, core.ContainerSpec{})
		pad := strings.Repeat("x", size)
		for i := range n {
			put(t, c, core.Create, fmt.Sprintf(`{"id":"x","pk":"%d","n":1,"p":%q}`, i, pad))
		}
		held := func() int64 {
			runtime.GC()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		for i := range n { // the engine's caches have them then
			balance(t, outside(c), fmt.Sprint(i))
		}
		one := 0.0
		read := func() (tx inTx, more int64) {
			tx = begin(t, inTurn(c))
			before := held()
			for i := range n {
				name := fmt.Sprint(i)
				it, err := tx.read(pk(name), value.StringOf("x"))
				if err != nil {
					t.Fatal(err)
				}
				one = ru.Read(len(it.Doc))
				if _, err := tx.read(pk(name), value.StringOf("none")); !status.Is(err, status.NotFound) {
					t.Fatal(err)
				}
			}
			return tx, held() - before
		}
		tx, more := read()
		for again := 2; again > 0 && more > n*size/4; again-- {
			tx.Abort()
			tx, more = read()
		}
		defer tx.Abort()
		if more > n*size/4 {
			t.Errorf("%d bytes are held after %d bytes were read", more, n*size)
		}
		if err := setIn(t, tx, core.Replace, purse("7", 2)); err != nil {
			t.Fatal(err)
		}
		if got := balance(t, tx.read, "7"); got != 2 {
			t.Errorf("its own write: %d", got)
		}
		charge, err := tx.Commit(bg)
		if err != nil || charge < n*one {
			t.Errorf("the charge is %g, and %g for the reads: %v", charge, n*one, err)
		}
		if got := balance(t, outside(c), "7"); got != 2 {
			t.Errorf("after the commit: %d", got)
		}
	})
}

// A transaction sees its snapshot and its own writes. Others see its writes in all partitions after the commit, and
// none of them before it or after an abort.
func TestTransactionSpansPartitions(t *testing.T) {
	names := strings.Split("abcdefghijklmnop", "")
	for _, commits := range []bool{true, false} {
		t.Run(fmt.Sprintf("commits=%t", commits), func(t *testing.T) {
			onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
				c := newContainer(t, e, core.ContainerSpec{UniqueKeys: [][]string{{"/n"}}})
				for _, name := range names[1:] {
					put(t, c, core.Create, purse(name, 1))
				}
				tx := begin(t, inTurn(c))
				defer tx.Abort()
				kinds := map[string]core.WriteKind{"a": core.Create}
				for _, name := range names {
					kind, ok := kinds[name]
					if !ok {
						kind = core.Replace
					}
					if err := setIn(t, tx, kind, purse(name, 2)); err != nil {
						t.Fatal(err)
					}
				}
				_, err := tx.Write(bg, tx.c, core.Write{Kind: core.Delete, PK: pk("b"), ID: value.StringOf("x")})
				if err != nil {
					t.Fatal(err)
				}
				wantCode(t, setIn(t, tx, core.Create, purse("c", 3)), status.Conflict, 0)
				want := map[bool]map[string]int64{true: {"a": 2, "b": -1, "c": 2}, false: {"a": -1, "b": 1, "c": 1}}
				for name, n := range want[true] {
					if got := balance(t, tx.read, name); got != n {
						t.Errorf("inside: %s is %d, want %d", name, got, n)
					}
				}
				for name, n := range want[false] {
					if got := balance(t, outside(c), name); got != n {
						t.Errorf("before the end: %s is %d, want %d", name, got, n)
					}
				}
				if !commits {
					tx.Abort()
				} else if charge, err := tx.Commit(bg); err != nil || charge <= 0 {
					t.Fatalf("commit: charge %v, %v", charge, err)
				}
				for name, n := range want[commits] {
					if got := balance(t, outside(c), name); got != n {
						t.Errorf("after the end: %s is %d, want %d", name, got, n)
					}
				}
				_, err = tx.Commit(bg)
				wantCode(t, err, status.BadRequest, 0)
			})
		})
	}
}

// The first committer of an item wins. What a transaction has only read, and other items of its partitions, may change.
func TestTransactionConflicts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		other   func(t *testing.T, c *core.Container) // after the snapshot
		kind    core.WriteKind
		account string
		loses   bool
	}{
		{"nobody writes", func(*testing.T, *core.Container) {}, core.Replace, "a", false},
		{"replaced", func(t *testing.T, c *core.Container) { put(t, c, core.Replace, purse("a", 7)) },
			core.Replace, "a", true},
		{"replaced by the same document", func(t *testing.T, c *core.Container) {
			put(t, c, core.Replace, purse("a", 1))
		}, core.Replace, "a", true},
		{"created meanwhile", func(t *testing.T, c *core.Container) { put(t, c, core.Create, purse("new", 7)) },
			core.Create, "new", true},
		{"deleted meanwhile", func(t *testing.T, c *core.Container) { dropPurse(t, c, "a") }, core.Upsert, "a", true},
		{"deleted and created again", func(t *testing.T, c *core.Container) {
			dropPurse(t, c, "a")
			put(t, c, core.Create, purse("a", 1))
		}, core.Upsert, "a", true},
		{"only read: write skew", func(t *testing.T, c *core.Container) { put(t, c, core.Replace, purse("b", 7)) },
			core.Replace, "a", false},
		{"another item of the partition", func(t *testing.T, c *core.Container) {
			put(t, c, core.Create, `{"id":"y","pk":"a"}`)
		}, core.Replace, "a", false},
		{"slots are split", func(t *testing.T, c *core.Container) {
			for _, at := range nested(8) { // of 4 slots
				if err := c.SplitSlot(bg, at); err != nil {
					t.Fatal(err)
				}
			}
		}, core.Replace, "a", false},
	}
	for _, when := range []string{"before the write", "before the commit"} {
		for _, test := range tests {
			t.Run(when+"/"+test.name, func(t *testing.T) {
				onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
					c := newContainer(t, e, core.ContainerSpec{})
					put(t, c, core.Create, purse("a", 1))
					put(t, c, core.Create, purse("b", 1))
					tx := begin(t, inTurn(c))
					defer tx.Abort()
					if got := balance(t, tx.read, "b"); got != 1 {
						t.Fatalf("b is %d", got)
					}
					if when == "before the write" {
						test.other(t, c)
					}
					err := setIn(t, tx, test.kind, purse(test.account, 2))
					if when == "before the commit" && err == nil {
						test.other(t, c)
					}
					if err == nil {
						if got := balance(t, tx.read, "b"); got != 1 {
							t.Errorf("b is %d in the snapshot", got)
						}
						_, err = tx.Commit(bg)
					}
					if test.loses {
						wantCode(t, err, status.RetryWith, 0)
						_, err = tx.Commit(bg)
						if err == nil {
							t.Error("it could be committed after a conflict")
						}
					} else if err != nil {
						t.Error(err)
					}
					if got := balance(t, outside(c), test.account); got == 2 == test.loses {
						t.Errorf("%s is %d afterwards", test.account, got)
					}
				})
			})
		}
	}
}

func dropPurse(t *testing.T, c *core.Container, name string) {
	t.Helper()
	_, err := inTurn(c).Write(bg, core.Write{Kind: core.Delete, PK: pk(name), ID: value.StringOf("x")})
	if err != nil {
		t.Fatal(err)
	}
}

// A unique key that another item has is a conflict at the write. What the transaction has written before isn't there
// if it isn't committed.
func TestTransactionUnique(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{UniqueKeys: [][]string{{"/n"}}})
		put(t, c, core.Create, purse("a", 1))
		tx := begin(t, c)
		defer tx.Abort()
		if err := setIn(t, tx, core.Create, purse("b", 1)); err != nil {
			t.Fatal(err)
		}
		err := setIn(t, tx, core.Create, `{"id":"y","pk":"a","n":1}`)
		wantCode(t, err, status.Conflict, 0)
		if got := balance(t, outside(c), "b"); got != -1 {
			t.Error("b is there")
		}
	})
}

// A value that a declared index keeps unique over all partitions is a conflict at the write, if another item has it in
// the snapshot or by the transaction's own writes. What the transaction frees it may give to another item. What others
// have taken since the snapshot is found by the commit.
func TestTransactionDeclaredUnique(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{Declared: []core.Declared{uniqueIn("n", "n")}})
		put(t, c, core.Create, purse("a", 1))
		tx := begin(t, c)
		defer tx.Abort()
		for _, s := range []struct {
			kind    core.WriteKind
			name    string
			n       int64
			refused bool
		}{
			{core.Create, "b", 1, true},
			{core.Create, "b", 2, false},
			{core.Create, "c", 2, true},
			{core.Replace, "b", 1, true},
			{core.Replace, "a", 3, false}, // which frees 1
			{core.Create, "c", 1, false},
			{core.Replace, "b", 4, false}, // which frees 2
			{core.Create, "d", 2, false},
			{core.Create, "e", 3, true},
		} {
			err := setIn(t, tx, s.kind, purse(s.name, s.n))
			if !s.refused && err != nil {
				t.Fatalf("%s gets %d: %v", s.name, s.n, err)
			}
			var dup *core.Duplicate
			if s.refused && (!status.Is(err, status.Conflict) || !errors.As(err, &dup) || dup.Index != "n") {
				t.Errorf("%s gets %d: %v", s.name, s.n, err)
			}
		}
		late := begin(t, c)
		defer late.Abort()
		if err := setIn(t, late, core.Create, purse("f", 2)); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Commit(bg); err != nil {
			t.Fatal(err)
		}
		for name, n := range map[string]int64{"a": 3, "b": 4, "c": 1, "d": 2, "e": -1} {
			if got := balance(t, outside(c), name); got != n {
				t.Errorf("%s has %d, not %d", name, got, n)
			}
		}
		_, err := late.Commit(bg)
		wantCode(t, err, status.Conflict, 0)
	})
}

// A transaction ends after its life, and when it has written too much.
func TestTransactionBounds(t *testing.T) {
	race.Alone(t)
	t.Parallel()
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		brief, err := e.Begin(bg, time.Nanosecond)
		if err != nil {
			t.Fatal(err)
		}
		short := inTx{brief, c}
		for err = nil; err == nil; time.Sleep(time.Millisecond) {
			err = setIn(t, short, core.Upsert, purse("a", 1))
		}
		wantCode(t, err, status.RetryWith, 0)
		_, err = short.Commit(bg)
		wantCode(t, err, status.RetryWith, 0)

		large, big := begin(t, c), strings.Repeat("x", 1<<20)
		written := 0
		for err = nil; err == nil; written++ {
			err = setIn(t, large, core.Create, fmt.Sprintf(`{"id":"x","pk":"%d","big":%q}`, written, big))
		}
		wantCode(t, err, status.TooLarge, 0)
		if written != 16 {
			t.Errorf("the write number %d of 1 MiB was too much", written)
		}
		if got := balance(t, outside(c), "a"); got != -1 {
			t.Error("a write of the ended transaction is there")
		}
	})
}

// transfers runs writers that move amounts between accounts of several partitions with transactions. Before they begin
// it calls first. The sum that a transaction sees must always be the same. It returns the number of transactions of
// unknown outcome.
func transfers(t *testing.T, cs []*core.Container, names []string, rounds int, first func()) (unsure int64) {
	t.Helper()
	const each = 100
	for _, name := range names {
		put(t, cs[0], core.Create, purse(name, each))
	}
	first()
	var unknown, won atomic.Int64
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			c, r := cs[w%len(cs)], rand.New(rand.NewPCG(uint64(w), 1))
			for range rounds {
				err := transfer(t, c, names, r)
				switch {
				case err == nil:
					won.Add(1)
				case status.Is(err, status.UnknownOutcome):
					unknown.Add(1)
				case !status.Is(err, status.RetryWith):
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if won.Load() == 0 {
		t.Error("no transaction was committed")
	}
	tx := begin(t, cs[0])
	defer tx.Abort()
	if got := sum(t, tx, names); got != int64(each*len(names)) {
		t.Errorf("the sum is %d afterwards, want %d", got, each*len(names))
	}
	return unknown.Load()
}

func sum(t *testing.T, tx inTx, names []string) (n int64) {
	for _, name := range names {
		it, err := tx.read(pk(name), value.StringOf("x"))
		if err != nil {
			t.Error(err)
			return 0
		}
		n += doc.Get(it.Doc, "n").Int()
	}
	return n
}

// transfer moves one from an account to another in a transaction, and checks the sum of its snapshot and of its own
// view.
func transfer(t *testing.T, c *core.Container, names []string, r *rand.Rand) error {
	tx := begin(t, c)
	defer tx.Abort()
	want := int64(100 * len(names))
	if got := sum(t, tx, names); got != want {
		t.Errorf("the sum of a snapshot is %d, want %d", got, want)
	}
	pair := r.Perm(len(names))[:2]
	for i, by := range []int64{-1, 1} {
		name := names[pair[i]]
		it, err := tx.read(pk(name), value.StringOf("x"))
		if err != nil {
			return err
		}
		if err := setIn(t, tx, core.Replace, purse(name, doc.Get(it.Doc, "n").Int()+by)); err != nil {
			return err
		}
	}
	if got := sum(t, tx, names); got != want {
		t.Errorf("the sum with own writes is %d, want %d", got, want)
	}
	_, err := tx.Commit(bg)
	return err
}

// No update is lost and no half of a transaction is ever seen, while slots are split and joined underneath.
func TestTransactionsAddUp(t *testing.T) {
	t.Parallel()
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		cs := append([]*core.Container{c}, twinsOf(c)...)
		begun := len(slotMap(t, c).Slots) // someSlots, or 1 where each partition has one slot
		stop, stopped := make(chan struct{}), make(chan struct{})
		splits := func() {
			defer close(stopped)
			for n := 8; n <= 64; n *= 2 {
				for _, at := range nested(n) {
					if err := c.SplitSlot(bg, at); err != nil {
						t.Error(err)
					}
					select {
					case <-stop:
						return
					default:
					}
				}
			}
		}
		transfers(t, cs, strings.Split("abcdefghijkl", ""), 40, func() { go splits() })
		close(stop)
		<-stopped
		if n := len(slotMap(t, c).Slots); n == begun {
			t.Error("no slot was split")
		}
	})
}

// A transaction over several slots of a shared store is committed as a whole or not at all, also if the store doesn't
// say whether it was; and most outcomes are found out.
func TestTransactionUnknownOutcomes(t *testing.T) {
	ps := startProcesses(t, 2, network)
	cs := ps.containers(core.ContainerSpec{})
	names := strings.Split("abcdef", "")
	const rounds = 12
	unsure := transfers(t, cs, names, rounds, func() {
		ps.store.SetFaults(kvtest.Faults{Most: time.Millisecond, Unknown: 0.2, Late: 4 * time.Millisecond})
	})
	if unsure > 2*rounds {
		t.Errorf("%d of %d outcomes were not found out", unsure, 4*rounds)
	}
}

// After a power failure each transaction is there as a whole or not at all, and all that were acknowledged are there.
func TestTransactionPowerLoss(t *testing.T) {
	t.Parallel()
	fs := vfs.NewCrashableMem()
	e, err := openLossy(fs, false)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	c := newContainer(t, e, core.ContainerSpec{})
	names := strings.Split("abcdefgh", "")
	for _, name := range names {
		put(t, c, core.Create, purse(name, 0))
	}
	var acked atomic.Int64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // each transaction sets all purses to its number
		defer close(stopped)
		for n := int64(1); ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			tx := begin(t, c)
			for _, name := range names {
				if err := setIn(t, tx, core.Replace, purse(name, n)); err != nil {
					t.Error(err)
				}
			}
			if _, err := tx.Commit(bg); err != nil {
				t.Error(err)
				return
			}
			acked.Store(n)
		}
	}()
	r := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		for before := acked.Load(); acked.Load() < before+int64(r.IntN(5)) && !t.Failed(); {
			time.Sleep(100 * time.Microsecond)
		}
		sure := acked.Load()
		left := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: r})
		again, err := openLossy(left, false)
		if err != nil {
			t.Fatal(err)
		}
		is, err := again.Container("db", "c")
		if err != nil {
			t.Fatal(err)
		}
		first := balance(t, outside(is), names[0])
		if first < sure {
			t.Errorf("transaction %d is there, %d were acknowledged", first, sure)
		}
		for _, name := range names[1:] {
			if n := balance(t, outside(is), name); n != first {
				t.Errorf("%s is of transaction %d, %s of %d", name, n, names[0], first)
			}
		}
		clean(t, again)
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	<-stopped
	if acked.Load() < 20 {
		t.Errorf("only %d transactions", acked.Load())
	}
}
