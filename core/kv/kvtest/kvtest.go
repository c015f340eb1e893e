// Package kvtest is the suite that every engine passes. Run tests the contract, RunCheckpoint tests copies, and Bench
// measures.
package kvtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/internal/race"
)

// Run runs the suite; open returns an empty engine, which the suite closes.
func Run(t *testing.T, open func(t *testing.T) kv.Engine) {
	tests := []struct {
		name string
		f    func(t *testing.T, e kv.Engine)
	}{
		{"get and batch semantics", testBatch},
		{"empty keys and values are refused", testEmpty},
		{"limits", testLimits},
		{"big values", testBigValues},
		{"preconditions", testPreconditions},
		{"a failed write applies nothing", testAtomic},
		{"contention on one key loses no update", testContention},
		{"writes without preconditions don't slip into a check", testBlindWrites},
		{"snapshots are isolated", testSnapshot},
		{"a batch is seen whole or not at all", testTornReads},
		{"iterators keep their bounds", testBounds},
		{"iterators turn and reset", testIterator},
		{"iterators walk as a list does", testWalks},
		{"has", testHas},
		{"many keys at once", testMany},
		{"reads whose ctx has ended", testReadsEnd},
		{"hints change nothing", testAhead},
		{"drop range", testDropRange},
		{"sizes and split points", testSizes},
		{"commits", testCommits},
		{"prepared batches", testPrepared},
		{"writes based on a snapshot", testBasis},
		{"writes of who holds a key", testHold},
		{"writes that follow a commit", testFollower},
		{"newest values", testNewest},
		{"sorted tables", testTables},
		{"large batches keep the order of operations", testLargeBatches},
		{"a cancelled context writes nothing", testContext},
		{"random history against a model", testModel},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			e := kv.Checked(open(t))
			tc.f(t, e)
			if err := e.Close(); err != nil {
				t.Fatalf("close: %v", err)
			}
		})
	}
	t.Run("closed engine", func(t *testing.T) { testClosed(t, open(t)) })
	t.Run("missing bounds", func(t *testing.T) { testMissingBounds(t, open(t)) })
}

var ctx = context.Background()

func b(s string) []byte { return []byte(s) }

// put writes pairs "k=v"; "k" alone deletes k.
func put(t testing.TB, e kv.Engine, pairs ...string) {
	t.Helper()
	if err := write(e, nil, pairs...); err != nil {
		t.Fatalf("write %v: %v", pairs, err)
	}
}

func write(e kv.Engine, pre []kv.Precondition, pairs ...string) error {
	var batch kv.Batch
	for _, p := range pairs {
		if k, v, ok := strings.Cut(p, "="); ok {
			batch.Put(b(k), b(v))
		} else {
			batch.Delete(b(k))
		}
	}
	c, err := e.Write(ctx, &batch, pre)
	if err != nil {
		return err
	}
	return c.Wait()
}

// Snapshot takes a snapshot of an engine.
func Snapshot(t testing.TB, e kv.Engine) kv.Snapshot {
	t.Helper()
	s, err := e.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// now reads the current state of an engine.
type now struct{ kv.Engine }

func (n now) Get(dst, key []byte) ([]byte, error) { return n.Engine.Get(ctx, dst, key) }

// getter is a snapshot, or the current state of an engine.
type getter interface {
	Get(dst, key []byte) ([]byte, error)
}

// wantGet expects the value of key, "" for an absent key. It also checks that Get appends to its argument.
func wantGet(t testing.TB, e getter, key, want string) {
	t.Helper()
	v, err := e.Get(nil, b(key))
	appended, aerr := e.Get(b("before "), b(key))
	if want == "" {
		if !errors.Is(err, kv.ErrNotFound) || !errors.Is(aerr, kv.ErrNotFound) {
			t.Fatalf("get %q = %q, %v and %v; want not found", key, v, err, aerr)
		}
		return
	}
	if err != nil || string(v) != want {
		t.Fatalf("get %q = %q, %v; want %q", key, v, err, want)
	}
	if aerr != nil || string(appended) != "before "+want {
		t.Fatalf("append %q = %q, %v; want %q", key, appended, aerr, want)
	}
}

// scan lists "k=v" over [lo, hi) in the wanted direction.
func scan(t testing.TB, s kv.Snapshot, lo, hi string, reverse bool) string {
	t.Helper()
	it, err := s.Iter(b(lo), b(hi))
	if err != nil {
		t.Fatalf("iter: %v", err)
	}
	var out []string
	first, next := it.First, it.Next
	if reverse {
		first, next = it.Last, it.Prev
	}
	for ok := first(); ok; ok = next() {
		out = append(out, fmt.Sprintf("%s=%s", it.Key(), it.Value()))
	}
	if err := errors.Join(it.Err(), it.Close()); err != nil {
		t.Fatalf("scan: %v", err)
	}
	return strings.Join(out, " ")
}

func wantScan(t testing.TB, e kv.Engine, lo, hi, want string) {
	t.Helper()
	s := Snapshot(t, e)
	defer s.Close()
	if got := scan(t, s, lo, hi, false); got != want {
		t.Fatalf("scan [%s, %s) = %s; want %s", lo, hi, got, want)
	}
}

func testBatch(t *testing.T, e kv.Engine) {
	wantGet(t, now{e}, "a", "")
	put(t, e, "a=1", "b=2", "c=3")
	wantGet(t, now{e}, "b", "2")
	put(t, e, "a=x", "b", "a=y", "c", "c=z", "d=1", "d") // the last operation on a key wins
	wantScan(t, e, "a", "z", "a=y c=z")
	put(t, e, "nothing") // deleting an absent key is no error
	put(t, e)            // nor is an empty batch

	// Get's result and the batch's arguments belong to their callers.
	v, _ := e.Get(ctx, nil, b("a"))
	v[0] = '!'
	k, val := b("kk"), b("vv")
	var batch kv.Batch
	batch.Put(k, val)
	k[0], val[0] = '!', '!'
	c, err := e.Write(ctx, &batch, nil)
	if err != nil || c.Wait() != nil {
		t.Fatal(err)
	}
	batch.Reset()
	batch.Put(b("zz"), b("!!"))
	wantGet(t, now{e}, "kk", "vv")
	wantGet(t, now{e}, "a", "y")
}

func testEmpty(t *testing.T, e kv.Engine) {
	raw := e.Limits()
	var batch kv.Batch
	batch.Put(b("k"), nil)
	if err := raw.CheckBatch(&batch); !errors.Is(err, kv.ErrContract) {
		t.Fatalf("empty value: %v", err)
	}
	batch.Reset()
	batch.Delete(nil)
	if err := raw.CheckBatch(&batch); !errors.Is(err, kv.ErrContract) {
		t.Fatalf("empty key: %v", err)
	}
	// A value of one zero byte and keys with every byte are fine.
	put(t, e, "k=\x00", "\x00=1", "\xff\xff=2")
	wantScan(t, e, "\x00", "\xff\xff\xff", "\x00=1 k=\x00 \xff\xff=2")
}

func testLimits(t *testing.T, e kv.Engine) {
	l := e.Limits()
	if l.Key < 3200 || l.Value < 1<<20 || l.Batch < l.Value {
		t.Fatalf("limits too small for the core: %+v", l)
	}
	var batch kv.Batch
	batch.Put(b("a"), b("1"))
	batch.Put(bytes.Repeat([]byte{'k'}, l.Key+1), b("v"))
	if _, err := e.Write(ctx, &batch, nil); !errors.Is(err, kv.ErrTooLarge) {
		t.Fatalf("key above the limit: %v", err)
	}
	wantGet(t, now{e}, "a", "")
	batch.Reset()
	batch.Put(bytes.Repeat([]byte{'k'}, l.Key), b("v"))
	if _, err := e.Write(ctx, &batch, nil); err != nil {
		t.Fatalf("key at the limit: %v", err)
	}
}

func testBigValues(t *testing.T, e kv.Engine) {
	for _, n := range []int{1, 64 << 10, 1 << 20, race.Fewer(20<<20, 4<<20)} {
		v := bytes.Repeat([]byte{byte(n>>8) | 1}, min(n, e.Limits().Value))
		var batch kv.Batch
		batch.Put(b("big"), v)
		c, err := e.Write(ctx, &batch, nil)
		if err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if err := c.Wait(); err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if got, err := e.Get(ctx, nil, b("big")); err != nil || !bytes.Equal(got, v) {
			t.Fatalf("%d bytes read back as %d, %v", n, len(got), err)
		}
	}
}

func testPreconditions(t *testing.T, e kv.Engine) {
	put(t, e, "there=v")
	absent := func(k string) kv.Precondition { return kv.Precondition{Key: b(k), Expect: kv.Absent} }
	present := func(k string) kv.Precondition { return kv.Precondition{Key: b(k), Expect: kv.Present} }
	equal := func(k, v string) kv.Precondition { return kv.Precondition{Key: b(k), Expect: kv.Equal, Value: b(v)} }
	for _, tc := range []struct {
		name string
		pre  []kv.Precondition
		fail int // index of the precondition that fails, -1 none
	}{
		{"none", nil, -1},
		{"absent holds", []kv.Precondition{absent("gone")}, -1},
		{"absent fails", []kv.Precondition{absent("there")}, 0},
		{"a key's prefix is another key", []kv.Precondition{absent("ther"), absent("there!")}, -1},
		{"present holds", []kv.Precondition{present("there")}, -1},
		{"present fails", []kv.Precondition{present("gone")}, 0},
		{"equal holds", []kv.Precondition{equal("there", "v")}, -1},
		{"equal fails on another value", []kv.Precondition{equal("there", "w")}, 0},
		{"equal fails on a longer value", []kv.Precondition{equal("there", "vv")}, 0},
		{"equal fails on an absent key", []kv.Precondition{equal("gone", "v")}, 0},
		{"the first that fails is named",
			[]kv.Precondition{present("there"), absent("gone"), absent("there"), present("gone")}, 2},
		{"the same key twice", []kv.Precondition{present("there"), equal("there", "v")}, -1},
	} {
		err := write(e, tc.pre, "out="+tc.name)
		var pe *kv.PreconditionError
		switch {
		case tc.fail < 0 && err != nil:
			t.Fatalf("%s: %v", tc.name, err)
		case tc.fail >= 0 && (!errors.Is(err, kv.ErrConflict) || !errors.As(err, &pe) || pe.Index != tc.fail):
			t.Fatalf("%s: got %v, want precondition %d", tc.name, err, tc.fail)
		case tc.fail < 0:
			wantGet(t, now{e}, "out", tc.name)
		}
	}
}

func testAtomic(t *testing.T, e kv.Engine) {
	put(t, e, "a=1")
	err := write(e, []kv.Precondition{{Key: b("a"), Expect: kv.Absent}}, "a=2", "b=2", "c=2")
	if !errors.Is(err, kv.ErrConflict) {
		t.Fatalf("got %v", err)
	}
	wantScan(t, e, "a", "z", "a=1")
}

func testCommits(t *testing.T, e kv.Engine) {
	var batch kv.Batch
	batch.Put(b("a"), b("1"))
	c, err := e.Write(ctx, &batch, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantGet(t, now{e}, "a", "1") // visible before it is durable
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 3 {
				if err := c.Wait(); err != nil {
					t.Errorf("wait: %v", err)
				}
			}
		})
	}
	wg.Wait()
}

func testPrepared(t *testing.T, e kv.Engine) {
	put(t, e, "a=1", "b=1")
	prepare := func() (kv.Prepared, *kv.Batch) {
		early := new(kv.Batch)
		early.Delete(b("a"))
		early.PutOpen(b("c"), b("____:body"))
		early.Put(b("d"), b("early"))
		p, err := kv.Prepare(e, early, 20)
		if err != nil {
			t.Fatal(err)
		}
		return p, early
	}
	gone, _ := prepare()
	gone.Patch(1, b("xxxx"))
	gone.Discard()
	refused, _ := prepare()
	var late kv.Batch
	late.Put(b("d"), b("late"))
	late.Delete(b("b"))
	if _, err := refused.Write(ctx, &late, []kv.Precondition{{Key: b("a"), Expect: kv.Absent}}); !errors.Is(
		err, kv.ErrConflict) {
		t.Fatalf("got %v", err)
	}
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	late0, _ := prepare()
	if _, err := late0.Write(stopped, &late, nil); !errors.Is(err, kv.ErrUnavailable) {
		t.Fatalf("got %v", err)
	}
	wantScan(t, e, "a", "z", "a=1 b=1")

	p, early := prepare()
	before := Snapshot(t, e)
	p.Patch(1, b("head"))
	w, err := p.Write(ctx, &late, []kv.Precondition{{Key: b("b"), Expect: kv.Equal, Value: b("1")}})
	if err != nil {
		t.Fatal(err)
	}
	late.Reset() // may be used again at once
	late.Put(b("rubbish"), b("rubbish"))
	wantScan(t, e, "a", "z", "c=head:body d=late")
	wantGet(t, before, "a", "1")
	if err := errors.Join(before.Close(), w.Wait()); err != nil {
		t.Fatal(err)
	}
	early.Reset()
	if race.Enabled { // what follows copies hundreds of megabytes
		return
	}

	var empty kv.Batch
	empty.Put(b("x"), bytes.Repeat([]byte{1}, e.Limits().Value+1))
	if _, err := kv.Prepare(e, &empty, 0); !errors.Is(err, kv.ErrTooLarge) {
		t.Fatalf("got %v", err)
	}
	last, _ := prepare() // late brings it above the limit of a batch
	var much kv.Batch
	for i := range e.Limits().Batch/e.Limits().Value + 1 {
		much.Put([]byte{'m', byte(i)}, make([]byte, e.Limits().Value-100))
	}
	if _, err := last.Write(ctx, &much, nil); !errors.Is(err, kv.ErrTooLarge) {
		t.Fatalf("got %v", err)
	}
	wantScan(t, e, "a", "z", "c=head:body d=late")
}

// A later operation on a key wins however large a batch is, and a patch finds its value.
func testLargeBatches(t *testing.T, e kv.Engine) {
	r := rand.New(rand.NewPCG(5, 6))
	largest := race.Fewer(70_000, 2000)
	if e.Remote() { // its simulations take a time that grows with the square of the keys
		largest = 2000
	}
	for _, n := range []int{100, 1000, largest} {
		model := map[string]string{}
		var early, late kv.Batch
		patch := r.IntN(n / 2)
		for i := range n {
			k := fmt.Sprintf("k%0*d", 1+r.IntN(9), r.IntN(n/3))
			switch {
			case i == patch:
				k = "patched"
				early.PutOpen(b(k), b("____!"))
				model[k] = "head!"
			case r.IntN(4) == 0:
				early.Delete(b(k))
				delete(model, k)
			default:
				early.Put(b(k), b(fmt.Sprint(i)))
				model[k] = fmt.Sprint(i)
			}
		}
		for k := range model {
			if late.Delete(b(k)); late.Len() > 10 {
				break
			}
		}
		for i := range late.Len() {
			delete(model, string(late.Op(i).Key))
		}
		p, err := kv.Prepare(e, &early, late.Size())
		if err != nil {
			t.Fatal(err)
		}
		p.Patch(patch, b("head"))
		w, err := p.Write(ctx, &late, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := Snapshot(t, e)
		for k, v := range model {
			wantGet(t, s, k, v)
		}
		found := 0
		it, err := s.Iter(b("a"), b("z"))
		if err != nil {
			t.Fatal(err)
		}
		for ok := it.First(); ok; ok = it.Next() {
			found++
		}
		if found != len(model) {
			t.Errorf("%d operations: %d keys, want %d", n, found, len(model))
		}
		if err := errors.Join(it.Close(), s.Close(), w.Wait(), e.DropRange(ctx, b("a"), b("z"))); err != nil {
			t.Fatal(err)
		}
	}
}

func testContext(t *testing.T, e kv.Engine) {
	dead, cancel := context.WithCancel(ctx)
	cancel()
	var batch kv.Batch
	batch.Put(b("a"), b("1"))
	if _, err := e.Write(dead, &batch, nil); !errors.Is(err, kv.ErrUnavailable) {
		t.Fatalf("write: %v", err)
	}
	if err := e.DropRange(dead, b("a"), b("z")); !errors.Is(err, kv.ErrUnavailable) {
		t.Fatalf("drop: %v", err)
	}
	wantGet(t, now{e}, "a", "")
}

func testDropRange(t *testing.T, e kv.Engine) {
	put(t, e, "a=1", "b=2", "ba=3", "c=4", "d=5")
	s := Snapshot(t, e)
	for range 2 { // idempotent
		if err := e.DropRange(ctx, b("b"), b("d")); err != nil {
			t.Fatal(err)
		}
	}
	wantScan(t, e, "a", "z", "a=1 d=5")
	if got := scan(t, s, "a", "z", false); got != "a=1 b=2 ba=3 c=4 d=5" {
		t.Fatalf("an older snapshot changed: %s", got)
	}
	_ = s.Close()
	if err := e.DropRange(ctx, b("d"), b("a")); err != nil { // an empty range
		t.Fatal(err)
	}
	put(t, e, "b=again")
	wantScan(t, e, "a", "z", "a=1 b=again d=5")
}

func testSizes(t *testing.T, e kv.Engine) {
	for i := range 200 {
		put(t, e, fmt.Sprintf("k%03d=%s", i, strings.Repeat("v", 1000)))
	}
	if n, err := e.Size(b("k"), b("l")); err != nil || n > 1<<20 {
		t.Fatalf("size = %d, %v", n, err)
	}
	if n, err := e.Size(b("x"), b("y")); err != nil || n > 64<<10 {
		t.Fatalf("size of nothing = %d, %v", n, err)
	}
	if _, err := e.SplitPoints(b("k"), b("l"), 50_000); err != nil { // their order is checked by kv.Checked
		t.Fatal(err)
	}
	if cuts, err := e.SplitPoints(b("k"), b("l"), 1<<40); err != nil || len(cuts) != 0 {
		t.Fatalf("a small range is cut: %q, %v", cuts, err)
	}
}

func testClosed(t *testing.T, e kv.Engine) {
	put(t, e, "a=1")
	s := Snapshot(t, e)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	var batch kv.Batch
	batch.Put(b("a"), b("2"))
	for name, f := range map[string]func() error{
		"get":            func() error { _, err := e.Get(ctx, nil, b("a")); return err },
		"write":          func() error { _, err := e.Write(ctx, &batch, nil); return err },
		"drop":           func() error { return e.DropRange(ctx, b("a"), b("b")) },
		"size":           func() error { _, err := e.Size(b("a"), b("b")); return err },
		"split points":   func() error { _, err := e.SplitPoints(b("a"), b("b"), 1); return err },
		"checkpoint":     func() error { return e.Checkpoint(ctx, t.TempDir()+"/x") },
		"close":          e.Close,
		"snapshot":       func() error { _, err := e.Snapshot(ctx); return err },
		"snapshot.get":   func() error { _, err := s.Get(nil, b("a")); return err },
		"snapshot.has":   func() error { _, err := s.Has(b("a")); return err },
		"snapshot.iter":  func() error { _, err := s.Iter(b("a"), b("b")); return err },
		"snapshot.close": func() error { return s.Close() },
	} {
		if err := f(); !errors.Is(err, kv.ErrClosed) {
			t.Errorf("%s on a closed engine: %v", name, err)
		}
	}
}

func testMissingBounds(t *testing.T, e kv.Engine) {
	defer e.Close()
	put(t, e, "a=1")
	s := Snapshot(t, e)
	defer s.Close()
	it, err := s.Iter(b("a"), b("b"))
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for name, f := range map[string]func() error{
		"iter without hi": func() error { _, err := s.Iter(b("a"), nil); return err },
		"iter without lo": func() error { _, err := s.Iter(nil, b("a")); return err },
		"reset":           func() error { it.Reset(nil, nil); it.First(); return it.Err() },
		"drop":            func() error { return e.DropRange(ctx, b("a"), nil) },
		"size":            func() error { _, err := e.Size(nil, b("a")); return err },
	} {
		if err := f(); !errors.Is(err, kv.ErrContract) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var batch kv.Batch
	batch.Put(b("k"), nil)
	if _, err := e.Write(ctx, &batch, nil); !errors.Is(err, kv.ErrContract) {
		t.Errorf("empty value: %v", err)
	}
	wantGet(t, now{e}, "a", "1")
}

// RunCheckpoint checks that a copy has the content at the time of the copy and no later write. reopen opens a
// checkpoint.
func RunCheckpoint(t *testing.T, open func(t *testing.T) kv.Engine, reopen func(t *testing.T, dir string) kv.Engine) {
	e := open(t)
	defer e.Close()
	for i := range 500 {
		put(t, e, fmt.Sprintf("k%03d=v%d", i, i))
	}
	put(t, e, "k001", "k002=changed")
	dir := t.TempDir() + "/copy"
	if err := e.Checkpoint(ctx, dir); err != nil {
		t.Fatal(err)
	}
	if err := e.Checkpoint(ctx, dir); !errors.Is(err, kv.ErrContract) {
		t.Fatalf("an existing directory: %v", err)
	}
	put(t, e, "k003=later")
	c := kv.Checked(reopen(t, dir))
	wantGet(t, now{c}, "k001", "")
	wantGet(t, now{c}, "k002", "changed")
	wantGet(t, now{c}, "k003", "v3")
	wantGet(t, now{c}, "k499", "v499")
	put(t, c, "k003=own")
	wantGet(t, now{e}, "k003", "later")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}
