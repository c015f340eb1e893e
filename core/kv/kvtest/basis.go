package kvtest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv"
)

// testBasis writes with preconditions that were read in a snapshot.
func testBasis(t *testing.T, e kv.Engine) {
	testBasisOf(t, e, func() (kv.Snapshot, error) { return e.Snapshot(ctx) })
}

// testHold is testBasis with snapshots that hold another key. A key can be held by one after the other, and is free
// when its holder has written or ended. Holders of two keys, whatever their order, go on too.
func testHold(t *testing.T, e kv.Engine) {
	testBasisOf(t, e, func() (kv.Snapshot, error) { return kv.Hold(ctx, e, b("held")) })
	const holders, times = 4, 10
	put(t, e, "held=0", "held2=0")
	var all sync.WaitGroup
	for i := range holders {
		keys := [][]byte{b("held"), b("held2")}
		if i%2 == 1 {
			slices.Reverse(keys)
		}
		all.Go(func() {
			for done := 0; done < times; {
				err := raise(e, done%3 == 0, keys[:1+done%2]...)
				if err == nil {
					done++
				} else if !errors.Is(err, kv.ErrConflict) {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	wantScan(t, e, "held", "helf", fmt.Sprintf("held=%d held2=%[1]d", holders/2*times))
}

// raise adds one to a number, the first of keys, in the snapshot of their holder. Before, it may hold them for nothing.
func raise(e kv.Engine, idle bool, keys ...[]byte) error {
	key := keys[0]
	if idle {
		s, err := kv.Hold(ctx, e, keys...)
		if err != nil {
			return err
		}
		if err := s.Close(); err != nil {
			return err
		}
	}
	s, err := kv.Hold(ctx, e, keys...)
	if err != nil {
		return err
	}
	defer s.Close()
	was, err := s.Get(nil, key)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(string(was))
	if err != nil {
		return err
	}
	batch := new(kv.Batch)
	batch.Put(key, b(fmt.Sprint(n+1)))
	p, err := kv.Prepare(e, batch, 0)
	if err != nil {
		return err
	}
	p.On(s)
	w, err := p.Write(ctx, new(kv.Batch), []kv.Precondition{{Key: key, Expect: kv.Equal, Value: was}})
	if err != nil {
		return err
	}
	return w.Wait()
}

// testBasisOf is testBasis with the snapshots of take.
func testBasisOf(t *testing.T, e kv.Engine, take func() (kv.Snapshot, error)) {
	for _, tc := range []struct {
		name  string
		first string // what b is in the snapshot
		since string // a write since the snapshot; "": none
		want  error
		then  string
	}{
		{"nothing has changed", "b=1", "", nil, "a=2 b=1"},
		{"another key has changed", "b=1", "c=1", nil, "a=2 b=1 c=1"},
		{"the value is another one", "b=1", "b=2", kv.ErrConflict, "a=1 b=2"},
		{"the key is gone", "b=1", "b", kv.ErrConflict, "a=1"},
		{"the value is the same again", "b=1", "b=1", nil, "a=2 b=1"},
		{"it holds only since then", "b=0", "b=1", nil, "a=2 b=1"},
		{"a key that is written has changed", "b=1", "a=3", nil, "a=2 b=1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			put(t, e, "a=1", tc.first, "c")
			s, err := take()
			if err != nil {
				t.Fatal(err)
			}
			if tc.since != "" {
				put(t, e, tc.since)
			}
			for range 2 { // also if a write is repeated on the same snapshot
				batch := new(kv.Batch)
				batch.Put(b("a"), b("2"))
				p, err := kv.Prepare(e, batch, 0)
				if err != nil {
					t.Fatal(err)
				}
				p.On(s)
				w, err := p.Write(ctx, new(kv.Batch), []kv.Precondition{{Key: b("b"), Expect: kv.Equal, Value: b("1")}})
				if !errors.Is(err, tc.want) {
					t.Fatalf("got %v, want %v", err, tc.want)
				}
				if err == nil {
					err = w.Wait()
				}
				if err != nil && tc.want == nil {
					t.Fatal(err)
				}
			}
			wantGet(t, s, "a", "1")
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			wantScan(t, e, "a", "d", tc.then)
		})
	}
}

// testFollower writes from the snapshots that commits leave, if the engine has such commits. A snapshot shows its
// commit and nothing later, is given once, and is no basis for a write to what was written since.
func testFollower(t *testing.T, e kv.Engine) {
	put(t, e, "a=0", "n=0")
	other := "0" // the value of n
	for n := range 20 {
		batch := &kv.Batch{Followed: true}
		batch.Put(b("a"), b(fmt.Sprint(n)))
		w, err := e.Write(ctx, batch, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Wait(); err != nil {
			t.Fatal(err)
		}
		acknowledged := clock.New().Now()
		f, ok := w.(kv.Follower)
		if !ok {
			continue
		}
		s, at := f.After(ctx)
		if again, _ := f.After(ctx); again != nil {
			t.Error("a snapshot was given twice")
		}
		if s == nil {
			continue
		}
		if at.After(acknowledged) {
			t.Errorf("the snapshot is %v younger than the commit", at.Sub(acknowledged))
		}
		shown, want := other, error(nil)
		if n%2 == 1 {
			other, want = fmt.Sprint(n), kv.ErrConflict
			put(t, e, "n="+other)
		}
		var v kv.Values
		if err := s.GetMany(&v, [][]byte{b("a"), b("n")}); err != nil || string(v.At(0)) != fmt.Sprint(n) ||
			string(v.At(1)) != shown {
			t.Errorf("after commit %d the snapshot has %q and %q, %v", n, v.At(0), v.At(1), err)
		}
		next := new(kv.Batch)
		next.Put(b("next"), b("1"))
		p, err := kv.Prepare(e, next, 0)
		if err != nil {
			t.Fatal(err)
		}
		p.On(s)
		pre := []kv.Precondition{{Key: b("n"), Expect: kv.Equal, Value: v.At(1)}}
		if _, err = p.Write(ctx, new(kv.Batch), pre); !errors.Is(err, want) {
			t.Errorf("after commit %d a write based on the snapshot ends with %v, want %v", n, err, want)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// testNewest reads the newest values of several keys.
func testNewest(t *testing.T, e kv.Engine) {
	put(t, e, "a=1", "c=3")
	var v kv.Values
	for _, want := range []string{"1", "2"} {
		if err := kv.GetNewest(ctx, e, &v, [][]byte{b("c"), b("absent"), b("a"), b("c")}); err != nil {
			t.Fatal(err)
		}
		if v.Len() != 4 || string(v.At(0)) != "3" || v.At(1) != nil || string(v.At(2)) != want ||
			string(v.At(3)) != "3" {
			t.Errorf("got %q %q %q %q", v.At(0), v.At(1), v.At(2), v.At(3))
		}
		put(t, e, "a=2")
	}
	large := make([]byte, 300<<10)
	for i := range large {
		large[i] = byte(i%250 + 1)
	}
	put(t, e, "l="+string(large))
	if err := kv.GetNewest(ctx, e, &v, [][]byte{b("a"), b("l")}); err != nil || string(v.At(1)) != string(large) {
		t.Errorf("%d bytes, %v", len(v.At(1)), err)
	}
}
