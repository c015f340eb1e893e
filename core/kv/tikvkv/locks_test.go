package tikvkv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/tikv/client-go/v2/tikvrpc"
)

// A process is gone between the phases of a commit. Others wait for its locks, and no longer than they live.
func TestLocksOfADeadProcess(t *testing.T) {
	for name, next := range map[string]func(*Engine) error{
		"a get":   func(e *Engine) error { return getAt(e, "k", "old") },
		"a write": func(e *Engine) error { return putOnce(bg, e, "other") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMock(t)
			dead, link := m.openFaulty(Options{Timeout: 100 * time.Millisecond})
			other := m.open("main")
			put(t, other, "k", "old")
			link.set(from(tikvrpc.CmdCommit, lost))
			begun := time.Now()
			if err := putOnce(bg, dead, "new"); err == nil {
				t.Fatal("acknowledged without a commit")
			}
			if err := next(other); err != nil {
				t.Error(err)
			}
			if took := time.Since(begun); took > lockLife+time.Second {
				t.Errorf("the locks were there for %v", took)
			}
			link.set(nil)
			if err := errors.Join(other.Close(), dead.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// A store answers so late that a commit takes longer than its locks live, and a reader has undone it. It is made again,
// with locks that live twice as long.
func TestLocksOfASlowCommit(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	slow, link := m.openFaulty(Options{Timeout: 30 * time.Second})
	other := m.open("main")
	put(t, other, "k", "old")
	var lives []uint64 // ms, of one request after the other
	undone := false
	link.set(func(_ context.Context, req *tikvrpc.Request) outcome {
		switch {
		case req.Type == tikvrpc.CmdPrewrite:
			lives = append(lives, req.Prewrite().LockTtl)
		case req.Type == tikvrpc.CmdCommit && !undone:
			undone = true
			time.Sleep(lockLife + lockLife/4)
			if err := getAt(other, "k", "old"); err != nil {
				t.Error(err)
			}
		}
		return arrives
	})
	if err := putOnce(bg, slow, "new"); err != nil {
		t.Error(err)
	}
	if err := getAt(other, "k", "new"); err != nil {
		t.Error(err)
	}
	link.set(nil)
	once := uint64(lockLife.Milliseconds())
	if len(lives) != 2 || lives[0]/once != 1 || lives[1]/once != 2 {
		t.Errorf("locks live %d ms", lives)
	}
	if err := errors.Join(other.Close(), slow.Close()); err != nil {
		t.Error(err)
	}
}

// A commit takes long, and many writers meet its locks. They don't wait much longer than it takes, although its locks
// would live for 1.4 seconds more.
func TestWritersOfLockedKeys(t *testing.T) {
	t.Parallel()
	const writers, takes, more = 8, 1600 * time.Millisecond, 800 * time.Millisecond
	m := newMock(t)
	slow, link := m.openFaulty(Options{TwoPhase: true})
	other := m.open("main")
	locked, freed := make(chan bool), time.Time{}
	var once sync.Once
	link.set(func(_ context.Context, req *tikvrpc.Request) outcome {
		if req.Type == tikvrpc.CmdCommit {
			once.Do(func() {
				close(locked)
				time.Sleep(takes)
				freed = time.Now()
			})
		}
		return arrives
	})
	var large kv.Batch
	for i := range writers {
		large.Put([]byte(fmt.Sprint("k", i)), make([]byte, maxInline))
	}
	large.Put([]byte("z"), make([]byte, 2<<20)) // so the locks live for three seconds
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := slow.Write(bg, &large, nil); err != nil {
			t.Error(err)
		}
	})
	<-locked
	var late [writers]time.Time
	for i := range writers {
		all.Go(func() {
			put(t, other, fmt.Sprint("k", i), "v")
			late[i] = time.Now()
		})
	}
	all.Wait()
	for i := range late {
		if after := late[i].Sub(freed); after < 0 || after > more {
			t.Errorf("writer %d has written %v after the locks went, want at most %v", i, after, more)
		}
	}
	if err := errors.Join(other.Close(), slow.Close()); err != nil {
		t.Error(err)
	}
}

// A process is gone when the first of its keys is committed, and with it all of them. Its other locks are in the way of
// one commit, which removes them and isn't made again for each.
func TestLocksOfACommittedTransaction(t *testing.T) {
	t.Parallel()
	const keys, first = 12, "a"
	m := newMock(t)
	gone, link := m.openFaulty(Options{TwoPhase: true, Timeout: 100 * time.Millisecond})
	other, meets := m.openFaulty(Options{TwoPhase: true})
	if err := other.Presplit(bg, [][]byte{[]byte("k")}); err != nil {
		t.Fatal(err)
	}
	batch := func(val string) *kv.Batch {
		var b kv.Batch
		b.Put([]byte(first), []byte(val))
		for i := range keys {
			b.Put([]byte(fmt.Sprintf("k%02d", i)), []byte(val))
		}
		return &b
	}
	link.set(func(_ context.Context, req *tikvrpc.Request) outcome {
		if req.Type == tikvrpc.CmdCommit && !bytes.HasSuffix(req.Commit().Keys[0], []byte(first)) {
			return lost
		}
		return arrives
	})
	if _, err := gone.Write(bg, batch("gone"), nil); err != nil {
		t.Fatal(err)
	}
	if err := gone.Close(); err != nil {
		t.Error(err)
	}
	meets.set(nil)
	if _, err := other.Write(bg, batch("other"), nil); err != nil {
		t.Fatal(err)
	}
	if n := meets.requests(tikvrpc.CmdPrewrite); n > keys+3 {
		t.Errorf("%d requests for locks, with %d locks in the way", n, keys)
	}
	if err := getAt(other, "k05", "other"); err != nil {
		t.Error(err)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
}

func TestLifeOfLocks(t *testing.T) {
	for _, tc := range []struct {
		bytes, late int
		want        time.Duration
	}{
		{1, 0, time.Second}, {1, 1, 2 * time.Second}, {1, 4, 16 * time.Second}, {1, 9, 16 * time.Second},
		{4 << 20, 0, 5 * time.Second}, {4 << 20, 1, 10 * time.Second},
	} {
		t.Run(fmt.Sprint(tc.bytes, " ", tc.late), func(t *testing.T) {
			var b kv.Batch
			b.Put([]byte("k"), make([]byte, tc.bytes))
			if got := life(&b, tc.late); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// putOnce writes the key k.
func putOnce(ctx context.Context, e *Engine, val string) error {
	var b kv.Batch
	b.Put([]byte("k"), []byte(val))
	_, err := e.Write(ctx, &b, nil)
	return err
}

// from is a fault of all requests from the first one of a kind on.
func from(kind tikvrpc.CmdType, how outcome) func(context.Context, *tikvrpc.Request) outcome {
	begun := false
	return func(_ context.Context, req *tikvrpc.Request) outcome {
		if begun = begun || req.Type == kind; begun {
			return how
		}
		return arrives
	}
}

// getAt reads a key in a snapshot. Its value must be one of some.
func getAt(e *Engine, key string, want ...string) error {
	s, err := e.Snapshot(bg)
	if err != nil {
		return err
	}
	v, err := s.Get(nil, []byte(key))
	if err == nil && !slices.Contains(want, string(v)) {
		err = fmt.Errorf("got %q, want one of %q", v, want)
	}
	return errors.Join(err, s.Close())
}
