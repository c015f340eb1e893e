package tikvkv

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/pingcap/failpoint"
	"github.com/tikv/client-go/v2/tikv"
	"github.com/tikv/client-go/v2/tikvrpc"
	"github.com/tikv/client-go/v2/util"
)

// faulty is the connection of one process to the stores. fault decides about each request; nil: nothing goes wrong.
type faulty struct {
	tikv.Client
	mu     sync.Mutex
	fault  func(ctx context.Context, req *tikvrpc.Request) outcome
	counts map[tikvrpc.CmdType]int
}

// outcome is what happens to a request.
type outcome int

const (
	arrives outcome = iota
	lost            // the request is lost
	unheard         // its answer is lost
	hangs           // there is no answer
)

func (f *faulty) SendRequest(ctx context.Context, addr string, req *tikvrpc.Request, d time.Duration) (
	*tikvrpc.Response, error) {
	f.mu.Lock()
	fault := f.fault
	if f.counts == nil {
		f.counts = map[tikvrpc.CmdType]int{}
	}
	f.counts[req.Type]++
	f.mu.Unlock()
	gone := errors.New("the connection is gone")
	o := arrives
	if fault != nil {
		o = fault(ctx, req)
	}
	switch o {
	case lost:
		return nil, gone
	case hangs:
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(min(d, 5*time.Second)):
			return nil, gone
		}
	}
	resp, err := f.Client.SendRequest(ctx, addr, req, d)
	if o == unheard {
		return nil, gone
	}
	return resp, err
}

func (f *faulty) set(fault func(ctx context.Context, req *tikvrpc.Request) outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault, f.counts = fault, nil
}

// requests returns how many requests of a kind there were since set.
func (f *faulty) requests(kind tikvrpc.CmdType) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts[kind]
}

// storesLive switches off that the client asks a store whether it lives when a request is lost: the simulation has no
// address to ask. It is the client's own switch for tests, and slows it down.
var storesLive = sync.OnceValue(func() error {
	util.EnableFailpoints()
	return failpoint.Enable("tikvclient/injectLiveness", `return("reachable")`)
})

// openFaulty returns the engine of one more process, and its connection.
func (m *mock) openFaulty(o Options) (*Engine, *faulty) {
	m.t.Helper()
	if err := storesLive(); err != nil {
		m.t.Fatal(err)
	}
	f := &faulty{}
	store := m.Store(func(c tikv.Client) tikv.Client {
		f.Client = c
		return f
	})
	e, err := Use(bg, store, "main", o)
	if err != nil {
		m.t.Fatal(err)
	}
	return e, f
}

// A write whose outcome the process can't learn says so. One that was certainly not applied says that.
func TestOutcomes(t *testing.T) {
	for _, tc := range []struct {
		name string
		at   tikvrpc.CmdType // the first request that fails; then all do
		how  outcome
		want error
		then string // what is stored then
	}{
		{"the answer of the commit is lost", tikvrpc.CmdCommit, unheard, kv.ErrUnknownOutcome, "new"},
		{"the first request is lost", tikvrpc.CmdPrewrite, lost, nil, "old"},
		{"the preconditions can't be read", tikvrpc.CmdBatchGet, lost, kv.ErrUnavailable, "old"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := newMock(t)
			e, f := m.openFaulty(Options{Timeout: 300 * time.Millisecond})
			put(t, e, "k", "old")
			cut := false
			f.set(func(_ context.Context, req *tikvrpc.Request) outcome {
				switch {
				case cut:
					return lost
				case req.Type == tc.at:
					cut = true
					return tc.how
				}
				return arrives
			})
			var b kv.Batch
			b.Put([]byte("k"), []byte("new"))
			pre := []kv.Precondition{{Key: []byte("k"), Expect: kv.Equal, Value: []byte("old")}}
			_, err := e.Write(bg, &b, pre)
			if tc.want == nil { // a lost request may also have arrived, so the client can't be sure
				if !errors.Is(err, kv.ErrUnavailable) && !errors.Is(err, kv.ErrUnknownOutcome) {
					t.Errorf("got %v", err)
				}
			} else if !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			other := m.open("main")
			if v, err := other.Get(bg, nil, []byte("k")); string(v) != tc.then || err != nil {
				t.Errorf("%q, %v; want %q", v, err, tc.then)
			}
			f.set(nil)
			if err := errors.Join(other.Close(), e.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// While no store answers, each call ends with its ctx, and without one after the timeout.
func TestCallsEnd(t *testing.T) {
	e, f := newMock(t).openFaulty(Options{Timeout: 400 * time.Millisecond})
	put(t, e, "k", "1")
	s, err := e.Snapshot(bg)
	if err != nil {
		t.Fatal(err)
	}
	heal := make(chan bool)
	f.set(func(ctx context.Context, _ *tikvrpc.Request) outcome {
		select {
		case <-heal:
		case <-ctx.Done():
		}
		return hangs
	})
	calls := map[string]func(ctx context.Context) error{
		"get": func(ctx context.Context) error { _, err := e.Get(ctx, nil, []byte("k")); return err },
		"write": func(ctx context.Context) error {
			var b kv.Batch
			b.Put([]byte("k"), []byte("2"))
			_, err := e.Write(ctx, &b, nil)
			return err
		},
		"drop":     func(ctx context.Context) error { return e.DropRange(ctx, []byte("a"), []byte("z")) },
		"presplit": func(ctx context.Context) error { return e.Presplit(ctx, [][]byte{[]byte("m")}) },
		"reads of a snapshot": func(ctx context.Context) error {
			own := kv.With(ctx, s)
			_, err := own.Get(nil, []byte("k"))
			return err
		},
		"many keys": func(ctx context.Context) error {
			own := kv.With(ctx, s)
			return own.GetMany(&kv.Values{}, [][]byte{[]byte("k")})
		},
		"a scan": func(ctx context.Context) error {
			own := kv.With(ctx, s)
			it, err := own.Iter([]byte("a"), []byte("z"))
			if err != nil {
				return err
			}
			it.First()
			return errors.Join(it.Err(), it.Close())
		},
	}
	var all sync.WaitGroup
	for name, call := range calls {
		for _, limit := range []time.Duration{100 * time.Millisecond, time.Hour} {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(bg, limit)
				defer cancel()
				begun := time.Now()
				err := call(ctx)
				if !errors.Is(err, kv.ErrUnavailable) && !errors.Is(err, kv.ErrUnknownOutcome) {
					t.Errorf("%s, %v: %v", name, limit, err)
				}
				if ended := ctx.Err(); errors.Is(err, kv.ErrUnavailable) && ended != nil && !errors.Is(err, ended) {
					t.Errorf("%s, %v: %v doesn't wrap the error of its ctx", name, limit, err)
				}
				if took, most := time.Since(begun), min(limit, e.timeout)+time.Second; took > most {
					t.Errorf("%s, %v: took %v", name, limit, took)
				}
			})
		}
	}
	all.Wait()
	close(heal)
	f.set(nil)
	if err := errors.Join(s.Close(), e.Close()); err != nil {
		t.Error(err)
	}
}

// An iterator reads as many keys at a time as its reader says. Then it reads more each time. What it has read, it needs
// not read again.
func TestScansAreSized(t *testing.T) {
	e, f := newMock(t).openFaulty(Options{})
	var b kv.Batch
	for i := range 100 {
		b.Put([]byte{'k', byte(i)}, []byte("v"))
	}
	if _, err := e.Write(bg, &b, nil); err != nil {
		t.Fatal(err)
	}
	s, err := e.Snapshot(bg)
	if err != nil {
		t.Fatal(err)
	}
	it, err := s.Iter([]byte("k"), []byte("l"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name  string
		ahead int
		walk  func()
		want  int
	}{
		{"one key", 1, func() { it.First() }, 1},
		{"as many as asked for", 20, func() {
			it.First()
			for range 19 {
				it.Next()
			}
		}, 1},
		{"16, 32, and the rest", 0, func() {
			for ok := it.First(); ok; ok = it.Next() {
			}
		}, 3},
		{"the same backwards", 0, func() {
			for ok := it.Last(); ok; ok = it.Prev() {
			}
		}, 3},
		{"to and fro in what was read", 50, func() {
			it.First()
			it.SeekGE([]byte{'k', 40})
			it.SeekLT([]byte{'k', 30})
			it.Prev()
			it.Next()
		}, 1},
	} {
		it.Reset([]byte("k"), []byte("l"))
		it.Ahead(tc.ahead)
		f.set(nil)
		tc.walk()
		if got := f.requests(tikvrpc.CmdScan); got != tc.want || it.Err() != nil {
			t.Errorf("%s: %d requests, want %d; %v", tc.name, got, tc.want, it.Err())
		}
	}
	var v kv.Values
	f.set(nil)
	keys := [][]byte{{'k', 1}, {'k', 90}, []byte("none")}
	if err := s.GetMany(&v, keys); err != nil || f.requests(tikvrpc.CmdBatchGet) != 1 {
		t.Errorf("%d requests for many keys, %v", f.requests(tikvrpc.CmdBatchGet), err)
	}
	if err := errors.Join(it.Close(), s.Close(), e.Close()); err != nil {
		t.Error(err)
	}
}
