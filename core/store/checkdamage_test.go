package store

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
)

// damagedEngine can't read the keys in [lo, hi), as if the index of a table were damaged. It counts the reads of them.
type damagedEngine struct {
	kv.Engine
	lo, hi []byte
	failed int
	end    func() // nil, or called by the first such read
	err    error  // of such reads; nil: a corruption
	remote bool
}

func (e *damagedEngine) Remote() bool { return e.remote }

func (e *damagedEngine) bad(key []byte) error {
	if bytes.Compare(key, e.lo) < 0 || bytes.Compare(key, e.hi) >= 0 {
		return nil
	}
	e.failed++
	if e.end != nil {
		e.end()
	}
	if e.err != nil {
		return e.err
	}
	return fmt.Errorf("%w: checksum mismatch", kv.ErrCorruption)
}

func (e *damagedEngine) Snapshot(ctx context.Context) (kv.Snapshot, error) {
	s, err := e.Engine.Snapshot(ctx)
	return &damagedSnapshot{s, e}, err
}

type damagedSnapshot struct {
	kv.Snapshot
	e *damagedEngine
}

func (s *damagedSnapshot) Get(dst, key []byte) ([]byte, error) {
	if err := s.e.bad(key); err != nil {
		return dst, err
	}
	return s.Snapshot.Get(dst, key)
}

func (s *damagedSnapshot) Iter(lo, hi []byte) (kv.Iterator, error) {
	it, err := s.Snapshot.Iter(lo, hi)
	return &damagedIterator{Iterator: it, e: s.e}, err
}

type damagedIterator struct {
	kv.Iterator
	e   *damagedEngine
	err error
}

func (i *damagedIterator) at(ok bool) bool {
	if ok {
		i.err = i.e.bad(i.Key())
	}
	return ok && i.err == nil
}

func (i *damagedIterator) First() bool            { return i.at(i.Iterator.First()) }
func (i *damagedIterator) Next() bool             { return i.at(i.Iterator.Next()) }
func (i *damagedIterator) SeekGE(key []byte) bool { return i.at(i.Iterator.SeekGE(key)) }
func (i *damagedIterator) Err() error {
	if i.err != nil {
		return i.err
	}
	return i.Iterator.Err()
}

// stillContainer returns a checkedContainer without background work, whose engine a test may replace.
func stillContainer(t *testing.T, items int) (*Container, kv.Engine) {
	t.Helper()
	c, eng := checkedContainer(t, items)
	c.st.work.Close()
	return c, eng
}

// A check and a scrub name a place that can't be read once, and don't try again for each key behind it.
func TestCheckOfWhatCannotBeRead(t *testing.T) {
	const items = 200
	for _, kind := range []keys.Kind{keys.KindItem, keys.KindIndex, keys.KindNumber, keys.KindFeed} {
		c, eng := stillContainer(t, items)
		slot := c.slotList()[0]
		lo, hi := keys.KindBounds(slot.key, kind)
		snap, err := eng.Snapshot(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		it, err := snap.Iter(lo, hi)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for ok := it.First(); ok && n < items/4; ok = it.Next() {
			lo, n = bytes.Clone(it.Key()), n+1
		}
		if err := it.Close(); err != nil {
			t.Fatal(err)
		}
		if err := snap.Close(); err != nil {
			t.Fatal(err)
		}
		bad := &damagedEngine{Engine: eng, lo: lo, hi: hi}
		c.st.eng = bad
		var found []string
		report := func(p string) { found = append(found, p) }
		if err := c.Check(context.Background(), Watch{Problem: report}); err != nil {
			t.Fatal(err)
		}
		if len(found) != 1 || !strings.Contains(found[0], "can't be read") || bad.failed > 4 {
			t.Errorf("%x: %d reads that failed, found %q", kind, bad.failed, found)
		}
		found, bad.failed = nil, 0
		var from []byte
		for {
			if from, err = c.CheckStep(context.Background(), slot, from, 256, report); err != nil {
				t.Fatal(err)
			}
			if from == nil {
				break
			}
		}
		if len(found) == 0 || len(found) > 2 || !strings.Contains(found[0], "can't be read") || bad.failed > 2 {
			t.Errorf("%x: %d reads of a scrub that failed, found %q", kind, bad.failed, found)
		}
		c.st.eng = eng
	}
}

// A check or scrub whose reads fail without damage reports none, but fails itself: it is ended while it reads, or the
// other machines don't answer, or have removed what the snapshot shows.
func TestCheckThatIsCutOffFindsNothing(t *testing.T) {
	for _, kind := range []keys.Kind{keys.KindHead, keys.KindItem, keys.KindIndex, keys.KindLogical, keys.KindFeed} {
		c, eng := stillContainer(t, 20)
		lo, hi := keys.KindBounds(c.slotList()[0].key, kind)
		for _, e := range []*damagedEngine{
			{err: fmt.Errorf("%w: no answer", kv.ErrUnavailable), remote: true},
			{err: kv.ErrSnapshotTooOld, remote: true},
			{err: kv.ErrClosed},
		} {
			e.Engine, e.lo, e.hi = eng, lo, hi
			c.st.eng = e
			report := func(p string) { t.Errorf("%x, %v: %s", kind, e.err, p) }
			err := c.Check(context.Background(), Watch{Problem: report})
			if e.failed == 0 || err == nil {
				t.Errorf("%x, %v: %d reads have failed, the error of the check is %v", kind, e.err, e.failed, err)
			}
		}
		c.st.eng = &damagedEngine{Engine: eng, lo: lo, hi: hi, err: fmt.Errorf("%w: EIO", kv.ErrUnavailable)}
		found := 0
		err := c.Check(context.Background(), Watch{Problem: func(string) { found++ }})
		if found == 0 || err != nil {
			t.Errorf("%x: a disk that can't be read: %d problems, %v", kind, found, err)
		}
		c.st.eng = eng
	}
}

// A check or scrub that is ended while it reads reports no damage.
func TestEndedCheckFindsNothing(t *testing.T) {
	for _, kind := range []keys.Kind{keys.KindItem, keys.KindIndex} {
		c, eng := stillContainer(t, 20)
		slot := c.slotList()[0]
		lo, hi := keys.KindBounds(slot.key, kind)
		report := func(p string) { t.Errorf("%x: %s", kind, p) }
		for name, check := range map[string]func(ctx context.Context) error{
			"check": func(ctx context.Context) error { return c.Check(ctx, Watch{Problem: report}) },
			"scrub": func(ctx context.Context) error {
				_, err := c.CheckStep(ctx, slot, nil, 10_000, report)
				return err
			},
		} {
			ctx, end := context.WithCancel(context.Background())
			c.st.eng = &damagedEngine{Engine: eng, lo: lo, hi: hi, end: end}
			if err := check(ctx); err == nil {
				t.Errorf("%x: the %s has no error", kind, name)
			}
			end()
		}
		c.st.eng = eng
	}
}
