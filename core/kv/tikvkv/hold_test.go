package tikvkv

import (
	"errors"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/tikv/client-go/v2/tikvrpc"
)

// Who holds a key commits, although another process writes it all the time: those commits wait.
func TestHoldersLoseNoRace(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	holder, link := m.openFaulty(Options{TwoPhase: true})
	other := m.open("main")
	put(t, other, "k", "0")
	stop, done := make(chan bool), make(chan bool)
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				put(t, other, "k", "other")
			}
		}
	}()
	for range 20 {
		s, err := holder.Hold(bg, []byte("k"))
		if err != nil {
			t.Fatal(err)
		}
		was, err := s.Get(nil, []byte("k"))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond) // the others write a hundred times in that time
		link.set(nil)
		if err := putFrom(s, "k", was, "holder"); err != nil {
			t.Error(err)
		}
		if n := link.requests(tikvrpc.CmdPrewrite); n != 1 {
			t.Errorf("%d attempts to commit", n)
		}
	}
	close(stop)
	<-done
	if err := errors.Join(other.Close(), holder.Close()); err != nil {
		t.Error(err)
	}
}

// A process holds a key and doesn't go on. Others wait as long as its lock lives. Then its own write is decided by its
// preconditions.
func TestHoldsEnd(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	holder, other := m.open("main"), m.open("main")
	for want, change := range map[string]string{"holder": "", "other": "other"} {
		put(t, other, "k", "0")
		s, err := holder.Hold(bg, []byte("k"))
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if change == "" {
			put(t, other, "k", "0")
		} else {
			put(t, other, "k", change)
		}
		if took := time.Since(begun); took < lockLife/2 || took > 2*lockLife {
			t.Errorf("the lock was in the way for %v", took)
		}
		err = putFrom(s, "k", []byte("0"), "holder")
		if change == "" && err != nil || change != "" && !errors.Is(err, kv.ErrConflict) {
			t.Error(err)
		}
		if err := getAt(other, "k", want); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(other.Close(), holder.Close()); err != nil {
		t.Error(err)
	}
}

// Reads don't wait for who holds a key, and a key that nobody has written to is free at once.
func TestHoldsAreNotInTheWay(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	holder, other := m.open("main"), m.open("main")
	put(t, other, "k", "0")
	begun := time.Now()
	s, err := holder.Hold(bg, []byte("k"))
	if err != nil {
		t.Fatal(err)
	}
	if err := getAt(other, "k", "0"); err != nil {
		t.Error(err)
	}
	if v, err := other.Get(bg, nil, []byte("k")); err != nil || string(v) != "0" {
		t.Errorf("%q, %v", v, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	put(t, other, "k", "1")
	if took := time.Since(begun); took > lockLife/2 {
		t.Errorf("others have waited for %v", took)
	}
	if err := errors.Join(other.Close(), holder.Close()); err != nil {
		t.Error(err)
	}
}

// putFrom writes a key in the transaction of a snapshot, which it closes.
func putFrom(s kv.Snapshot, key string, was []byte, val string) error {
	var b kv.Batch
	b.Put([]byte(key), []byte(val))
	_, err := s.(kv.Basis).WriteFrom(bg, &b, []kv.Precondition{{Key: []byte(key), Expect: kv.Equal, Value: was}})
	return errors.Join(err, s.Close())
}
