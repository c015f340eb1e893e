package tikvkv

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core/kv"
)

func put(t testing.TB, e kv.Engine, key, val string) {
	t.Helper()
	var b kv.Batch
	b.Put([]byte(key), []byte(val))
	if _, err := e.Write(bg, &b, nil); err != nil {
		t.Fatal(err)
	}
}

// parts returns the number of stored parts.
func parts(t testing.TB, e *Engine) int {
	t.Helper()
	lo, hi := append([]byte(e.prefix), spaceParts), append([]byte(e.prefix), spaceParts+1)
	pairs, _, err := e.scan(bg, mustNow(t, e), lo, hi, 1000, false, true)
	if err != nil {
		t.Fatal(err)
	}
	return len(pairs)
}

// Values of every size around the limits are read back in all ways, and what Sweep leaves is what pointers name.
func TestLargeValues(t *testing.T) {
	e := newMock(t, newLayout("main").data([]byte("k2"))).open("main")
	sizes := []int{1, maxInline, maxInline + 1, partSize, partSize + 1, 3*partSize - 1}
	want := map[string][]byte{}
	keys := [][]byte{[]byte("absent")}
	named := 0
	for i, n := range sizes {
		key := "k" + string(rune('0'+i))
		want[key] = bytes.Repeat([]byte{byte('a' + i)}, n)
		put(t, e, key, string(want[key]))
		keys = append(keys, []byte(key))
		if n > maxInline {
			named += pointer{length: n}.parts()
		}
	}
	old, err := e.Snapshot(bg)
	if err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		var v kv.Values
		if err := old.GetMany(&v, keys); err != nil || v.At(0) != nil {
			t.Fatal(err)
		}
		for i, key := range keys[1:] {
			if !bytes.Equal(v.At(i+1), want[string(key)]) {
				t.Errorf("%s: %d bytes of %d", key, len(v.At(i+1)), len(want[string(key)]))
			}
		}
		it, err := old.Iter([]byte("k"), []byte("l"))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for ok := it.Last(); ok; ok = it.Prev() {
			n++
			if !bytes.Equal(it.Value(), want[string(it.Key())]) {
				t.Errorf("%s: %d bytes", it.Key(), len(it.Value()))
			}
		}
		if err := errors.Join(it.Err(), it.Close()); err != nil || n != len(want) {
			t.Errorf("%d values, %v", n, err)
		}
	}
	check()
	if n, err := e.Sweep(bg); n != 0 || err != nil || parts(t, e) != named {
		t.Errorf("%d of %d parts removed, %v", n, named, err)
	}

	// A replaced, a deleted and a dropped value lose their parts, and the snapshot before still has them.
	put(t, e, "k5", "small")
	put(t, e, "k4", string(want["k3"]))
	var b kv.Batch
	b.Delete([]byte("k3"))
	if _, err := e.Write(bg, &b, nil); err != nil {
		t.Fatal(err)
	}
	if err := e.DropRange(bg, []byte("k2"), []byte("k3")); err != nil {
		t.Fatal(err)
	}
	if n, err := e.Sweep(bg); n != 6 || err != nil || parts(t, e) != 1 {
		t.Errorf("%d parts removed and %d left, %v", n, parts(t, e), err)
	}
	check()
	if v, err := e.Get(bg, nil, []byte("k4")); err != nil || !bytes.Equal(v, want["k3"]) {
		t.Errorf("%d bytes, %v", len(v), err)
	}
	if err := errors.Join(old.Close(), e.Close()); err != nil {
		t.Error(err)
	}
}

// A batch that writes one key several times leaves the parts of the last value.
func TestALargeValueTwiceInABatch(t *testing.T) {
	e := newMock(t).open("main")
	last := bytes.Repeat([]byte("z"), partSize+1)
	var b kv.Batch
	b.Put([]byte("k"), make([]byte, 4*partSize))
	b.Put([]byte("k"), last)
	if _, err := e.Write(bg, &b, nil); err != nil {
		t.Fatal(err)
	}
	if v, err := e.Get(bg, nil, []byte("k")); err != nil || !bytes.Equal(v, last) || parts(t, e) != 2 {
		t.Errorf("%d bytes in %d parts, %v", len(v), parts(t, e), err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// A snapshot ends when what it would read may have been removed.
func TestSnapshotsEnd(t *testing.T) {
	e := newMock(t).open("main")
	put(t, e, "k", "1")
	aged, err := e.Snapshot(bg)
	if err != nil {
		t.Fatal(err)
	}
	aged.(*snapshot).taken = time.Now().Add(-KeptVersions - time.Second)
	if _, err := aged.Get(nil, []byte("k")); !errors.Is(err, kv.ErrSnapshotTooOld) {
		t.Errorf("older than what is kept: %v", err)
	}
	s, err := e.Snapshot(bg)
	if err != nil {
		t.Fatal(err)
	}
	put(t, e, "k", "2")
	if err := e.CollectGarbage(bg, 0); err != nil {
		t.Fatal(err)
	}
	if v, err := s.Get(nil, []byte("k")); err != nil || string(v) != "1" {
		t.Errorf("after a collection: %q, %v", v, err)
	}
	// Another program has collected more. The client learns that from the cluster.
	e.store.UpdateTxnSafePointCache(mustNow(t, e), time.Now())
	it, err := s.Iter([]byte("a"), []byte("z"))
	if err != nil {
		t.Fatal(err)
	}
	_, get := s.Get(nil, []byte("k"))
	many := s.GetMany(&kv.Values{}, [][]byte{[]byte("k")})
	it.First()
	for _, err := range []error{get, many, it.Err()} {
		if !errors.Is(err, kv.ErrSnapshotTooOld) {
			t.Errorf("below the safe point: %v", err)
		}
	}
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if err := e.CollectGarbage(ctx, 0); !errors.Is(err, kv.ErrUnavailable) {
		t.Error(err)
	}
	if err := errors.Join(it.Close(), s.Close(), aged.Close(), e.Close()); err != nil {
		t.Error(err)
	}
}
