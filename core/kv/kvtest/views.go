package kvtest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/orrerydb/orrery/core/kv"
)

func testSnapshot(t *testing.T, e kv.Engine) {
	put(t, e, "a=1", "b=1")
	s1 := Snapshot(t, e)
	put(t, e, "a=2", "b", "c=2")
	s2 := Snapshot(t, e)
	it, err := s1.Iter(b("a"), b("z")) // opened after the write, sees the snapshot's state
	if err != nil {
		t.Fatal(err)
	}
	put(t, e, "a=3")
	for _, tc := range []struct {
		s    kv.Snapshot
		want string
	}{{s1, "a=1 b=1"}, {s2, "a=2 c=2"}} {
		if got := scan(t, tc.s, "a", "z", false); got != tc.want {
			t.Fatalf("snapshot shows %s, want %s", got, tc.want)
		}
	}
	wantGet(t, s1, "a", "1")
	wantGet(t, s2, "b", "")
	wantGet(t, now{e}, "a", "3")
	if !it.First() || string(it.Value()) != "1" {
		t.Fatal("the iterator left its snapshot")
	}
	if err := errors.Join(it.Close(), s1.Close(), s2.Close()); err != nil {
		t.Fatal(err)
	}
}

// Every batch writes the same number under 20 keys; no reader may see two numbers.
func testTornReads(t *testing.T, e kv.Engine) {
	var done atomic.Bool
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Go(func() {
			var batch kv.Batch
			for n := range 300 {
				batch.Reset()
				for k := range 20 {
					batch.Put([]byte{'k', byte('a' + k)}, b(strconv.Itoa(w*1000+n)))
				}
				c, err := e.Write(ctx, &batch, nil)
				if err != nil {
					t.Error(err)
					return
				}
				if n%50 == 0 && c.Wait() != nil {
					t.Error("wait failed")
				}
			}
		})
	}
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for !done.Load() {
				s := Snapshot(t, e)
				got := scan(t, s, "k", "l", false)
				_ = s.Close()
				seen := map[string]bool{}
				for _, p := range strings.Fields(got) {
					_, v, _ := strings.Cut(p, "=")
					seen[v] = true
				}
				if len(seen) > 1 {
					t.Errorf("torn read: %q", got)
					return
				}
			}
		})
	}
	wg.Wait()
	done.Store(true)
	readers.Wait()
}

// Goroutines add one to a counter under an Equal precondition and retry on conflict. At the end no addition is lost.
func testContention(t *testing.T, e kv.Engine) {
	const workers, each = 8, 50
	put(t, e, "n=0", "other=0")
	var wg sync.WaitGroup
	var conflicts atomic.Int64
	for w := range workers {
		wg.Go(func() {
			for done := 0; done < each; {
				v, err := e.Get(ctx, nil, b("n"))
				if err != nil {
					t.Error(err)
					return
				}
				n, _ := strconv.Atoi(string(v))
				err = write(e, []kv.Precondition{{Key: b("n"), Expect: kv.Equal, Value: v}},
					fmt.Sprintf("n=%d", n+1), fmt.Sprintf("log%d=%d", n+1, w))
				switch {
				case err == nil:
					done++
				case errors.Is(err, kv.ErrConflict):
					conflicts.Add(1)
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	// A writer of other keys must not affect the result.
	wg.Go(func() {
		for i := range each {
			if err := write(e, []kv.Precondition{{Key: b("other"), Expect: kv.Present}},
				fmt.Sprintf("other=%d", i)); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	wantGet(t, now{e}, "n", strconv.Itoa(workers*each))
	s := Snapshot(t, e)
	defer s.Close()
	if got := len(strings.Fields(scan(t, s, "log", "loh", false))); got != workers*each {
		t.Fatalf("%d log entries of %d", got, workers*each)
	}

	// Create if absent: exactly one of many wins.
	var won atomic.Int64
	for range workers {
		wg.Go(func() {
			err := write(e, []kv.Precondition{{Key: b("once"), Expect: kv.Absent}}, "once=1")
			if err == nil {
				won.Add(1)
			} else if !errors.Is(err, kv.ErrConflict) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Fatalf("%d writers created the same key", won.Load())
	}
}

// One writer sets "a" to 1, 2, 3, .. without preconditions. The others change a value v that they find to "v!", under
// the precondition that it is still v. So after the first writer has written n it finds n or n!. If it finds an older
// value, its write was applied between the check and the apply of another write.
func testBlindWrites(t *testing.T, e kv.Engine) {
	put(t, e, "a=0")
	var done atomic.Bool
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for !done.Load() {
				v, err := e.Get(ctx, nil, b("a"))
				if err != nil {
					t.Error(err)
					return
				}
				if bytes.HasSuffix(v, b("!")) {
					runtime.Gosched()
					continue
				}
				err = visible(e, []kv.Precondition{{Key: b("a"), Expect: kv.Equal, Value: v}}, "a", string(v)+"!")
				if err != nil && !errors.Is(err, kv.ErrConflict) {
					t.Error(err)
				}
			}
		})
	}
	for n := range 500 {
		if err := visible(e, nil, "a", strconv.Itoa(n)); err != nil {
			t.Error(err)
			break
		}
		if v, err := e.Get(ctx, nil, b("a")); err != nil || strings.TrimSuffix(string(v), "!") != strconv.Itoa(n) {
			t.Errorf("wrote %d, found %q, %v", n, v, err)
			break
		}
	}
	done.Store(true)
	wg.Wait()
}

// visible writes one key and does not wait for durability.
func visible(e kv.Engine, pre []kv.Precondition, key, value string) error {
	var batch kv.Batch
	batch.Put(b(key), b(value))
	_, err := e.Write(ctx, &batch, pre)
	return err
}

func testBounds(t *testing.T, e kv.Engine) {
	put(t, e, "a=1", "b=2", "bb=3", "c=4", "d=5")
	s := Snapshot(t, e)
	defer s.Close()
	for _, tc := range []struct{ lo, hi, want string }{
		{"a", "e", "a=1 b=2 bb=3 c=4 d=5"},
		{"b", "d", "b=2 bb=3 c=4"},
		{"b", "b\x00", "b=2"},
		{"aa", "ab", ""},
		{"c", "c", ""},
		{"d", "b", ""},
		{"e", "z", ""},
	} {
		if got := scan(t, s, tc.lo, tc.hi, false); got != tc.want {
			t.Errorf("[%s, %s) = %s, want %s", tc.lo, tc.hi, got, tc.want)
		}
		fields := strings.Fields(tc.want)
		slices.Reverse(fields)
		if got := scan(t, s, tc.lo, tc.hi, true); got != strings.Join(fields, " ") {
			t.Errorf("[%s, %s) backwards = %s", tc.lo, tc.hi, got)
		}
	}
}

func testIterator(t *testing.T, e kv.Engine) {
	put(t, e, "a=1", "b=2", "c=3", "d=4", "e=5")
	s := Snapshot(t, e)
	defer s.Close()
	lo, hi := b("b"), b("e")
	it, err := s.Iter(lo, hi)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	lo[0], hi[0] = 'z', 'z' // the bounds are the caller's again
	at := func(want string, ok bool) {
		t.Helper()
		got := ""
		if ok {
			got = string(it.Key())
		}
		if got != want || it.Err() != nil {
			t.Fatalf("at %q (%v), want %q", got, it.Err(), want)
		}
	}
	at("b", it.Next()) // Next before any positioning acts as First
	at("c", it.Next())
	at("d", it.Next())
	at("", it.Next())
	at("", it.Next()) // stays off the end
	at("d", it.Prev())
	at("d", it.SeekGE(b("cc")))
	at("b", it.SeekGE(b("a"))) // clamped to the bounds
	at("", it.SeekGE(b("e")))
	at("c", it.SeekLT(b("d")))
	at("d", it.SeekLT(b("zz")))
	at("", it.SeekLT(b("b")))
	at("b", it.Next()) // turns back from the front
	at("", it.Prev())
	at("d", it.Last())
	at("c", it.Prev())
	at("d", it.Next())

	it.Reset(b("a"), b("c"))
	at("a", it.Next()) // Reset stands before the first key
	at("b", it.Next())
	at("", it.Next())
	it.Reset(b("c"), b("z"))
	at("e", it.Prev()) // Prev before any positioning acts as Last
	it.Reset(b("c"), b("z"))
	at("e", it.SeekLT(b("zzz")))
	it.Reset(b("x"), b("c")) // empty
	at("", it.First())
	at("", it.Last())
	it.Reset(b("a"), b("z"))
	at("c", it.SeekGE(b("bb")))
	if string(it.Value()) != "3" {
		t.Fatalf("value %q", it.Value())
	}
}

func testHas(t *testing.T, e kv.Engine) {
	put(t, e, "a=1", "ab=1", "gone=1")
	put(t, e, "gone")
	s := Snapshot(t, e)
	defer s.Close()
	put(t, e, "late=1", "a")
	want := map[string]bool{"a": true, "ab": true, "gone": false, "late": false, "abc": false, "0": false, "zz": false}
	for _, k := range slices.Sorted(maps.Keys(want)) {
		for range 2 { // twice, because engines keep something warm between calls
			if got, err := s.Has(b(k)); err != nil || got != want[k] {
				t.Errorf("has %q = %v, %v", k, got, err)
			}
		}
	}
	var wg sync.WaitGroup // a snapshot is safe for concurrent use
	for range 4 {
		wg.Go(func() {
			for i := range 200 {
				k := []string{"a", "abc"}[i%2]
				if got, err := s.Has(b(k)); err != nil || got != want[k] {
					t.Errorf("has %q = %v, %v", k, got, err)
				}
			}
		})
	}
	wg.Wait()
}

// testModel runs random batches against a map and compares snapshots, old and new, key by key and in both directions.
func testModel(t *testing.T, e kv.Engine) {
	r := rand.New(rand.NewPCG(1, 2)) // fixed: a failure repeats
	model := map[string]string{}
	type past struct {
		s    kv.Snapshot
		want map[string]string
	}
	var pasts []past
	key := func() string { return fmt.Sprintf("k%x", r.IntN(400)) }
	for step := range 400 {
		var batch kv.Batch
		for range r.IntN(30) {
			k := key()
			if r.IntN(3) == 0 {
				batch.Delete(b(k))
				delete(model, k)
			} else {
				v := strconv.Itoa(step) + strings.Repeat("x", r.IntN(50))
				batch.Put(b(k), b(v))
				model[k] = v
			}
		}
		if _, err := e.Write(ctx, &batch, nil); err != nil {
			t.Fatal(err)
		}
		if r.IntN(100) == 0 {
			lo, hi := key(), key()
			if err := e.DropRange(ctx, b(lo), b(hi)); err != nil {
				t.Fatal(err)
			}
			maps.DeleteFunc(model, func(k, _ string) bool { return k >= lo && k < hi })
		}
		if r.IntN(10) == 0 {
			pasts = append(pasts, past{Snapshot(t, e), maps.Clone(model)})
		}
		if len(pasts) > 5 {
			i := r.IntN(len(pasts))
			compare(t, r, pasts[i].s, pasts[i].want, key)
			_ = pasts[i].s.Close()
			pasts = slices.Delete(pasts, i, i+1)
		}
	}
	for _, p := range pasts {
		compare(t, r, p.s, p.want, key)
		_ = p.s.Close()
	}
}

func compare(t *testing.T, r *rand.Rand, s kv.Snapshot, want map[string]string, key func() string) {
	t.Helper()
	lo, hi := key(), key()
	var keys []string
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if k >= lo && k < hi {
			keys = append(keys, k)
		}
	}
	var list []string
	for _, k := range keys {
		list = append(list, k+"="+want[k])
	}
	if got := scan(t, s, lo, hi, false); got != strings.Join(list, " ") {
		t.Fatalf("[%s, %s)\n got %s\nwant %s", lo, hi, got, strings.Join(list, " "))
	}
	slices.Reverse(list)
	if got := scan(t, s, lo, hi, true); got != strings.Join(list, " ") {
		t.Fatalf("[%s, %s) backwards\n got %s\nwant %s", lo, hi, got, strings.Join(list, " "))
	}
	it, err := s.Iter(b(lo), b(hi))
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for range 20 {
		k := key()
		wantGet(t, s, k, want[k])
		i, _ := slices.BinarySearch(keys, k)
		if ok := it.SeekGE(b(k)); ok != (i < len(keys)) || ok && !bytes.Equal(it.Key(), b(keys[i])) {
			t.Fatalf("SeekGE %s in %v: %v", k, keys, ok)
		}
		if r.IntN(2) == 0 && i < len(keys) {
			if ok := it.Prev(); ok != (i > 0) || ok && string(it.Key()) != keys[i-1] {
				t.Fatalf("Prev after SeekGE %s in %v: %v", k, keys, ok)
			}
		}
		if ok := it.SeekLT(b(k)); ok != (i > 0) || ok && string(it.Key()) != keys[i-1] {
			t.Fatalf("SeekLT %s in %v: %v", k, keys, ok)
		}
		if r.IntN(2) == 0 && i > 0 {
			if ok := it.Next(); ok != (i < len(keys)) || ok && string(it.Key()) != keys[i] {
				t.Fatalf("Next after SeekLT %s in %v: %v", k, keys, ok)
			}
		}
	}
}
