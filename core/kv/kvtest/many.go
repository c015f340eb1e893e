package kvtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/kv"
)

// testMany reads several keys at once: in any order, with absent keys, and into memory that is used again.
func testMany(t *testing.T, e kv.Engine) {
	put(t, e, "a=1", "b=22", "c=333", "d=4444")
	s := Snapshot(t, e)
	defer s.Close()
	put(t, e, "a=later", "b", "e=later")
	var v kv.Values
	for _, tc := range []struct {
		keys string
		most int
		want string
	}{
		{"", 0, ""},
		{"a b c d", 0, "1 22 333 4444"},
		{"d c b a", 0, "4444 333 22 1"},
		{"c x a", 0, "333 - 1"},
		{"x e", 0, "- -"},
		{"b b a b", 0, "22 22 1 22"},
		{"a b c d", 3, "1 22"},
		{"a b c d", 4, "1 22 333"},
		{"d a", 1, "4444"},
		{"x y a b", 1, "- - 1"},
		{"a b c d", 100, "1 22 333 4444"},
	} {
		var keys [][]byte
		for _, k := range strings.Fields(tc.keys) {
			keys = append(keys, b(k))
		}
		v.Most = tc.most
		if err := s.GetMany(&v, keys); err != nil {
			t.Fatalf("%s: %v", tc.keys, err)
		}
		var got []string
		for i := range v.Len() {
			if at := v.At(i); at == nil {
				got = append(got, "-")
			} else {
				got = append(got, string(at))
			}
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%q and at most %d bytes: %q, want %q", tc.keys, tc.most, got, tc.want)
		}
	}
}

// testReadsEnd reads with a ctx that has ended. An engine need not notice. One that does returns ErrUnavailable with
// the error of the ctx, and still serves others.
func testReadsEnd(t *testing.T, e kv.Engine) {
	put(t, e, "a=1")
	ended, cancel := context.WithCancel(ctx)
	cancel()
	check := func(what string, err error) {
		t.Helper()
		if err != nil && (!errors.Is(err, kv.ErrUnavailable) || !errors.Is(err, context.Canceled)) {
			t.Errorf("%s with a ctx that has ended: %v", what, err)
		}
	}
	_, err := e.Get(ended, nil, b("a"))
	check("Get", err)
	s, err := e.Snapshot(ended)
	if check("Snapshot", err); err == nil {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	later, cancel := context.WithCancel(ctx)
	if s, err = e.Snapshot(later); err != nil {
		t.Fatal(err)
	}
	it, err := s.Iter(b("a"), b("b"))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	_, err = s.Get(nil, b("a"))
	check("Snapshot.Get", err)
	_, err = s.Has(b("a"))
	check("Has", err)
	check("GetMany", s.GetMany(&kv.Values{}, [][]byte{b("a")}))
	if !it.First() && it.Err() == nil {
		t.Error("an iterator whose ctx has ended stands at its end, and has no error")
	}
	check("Iter", it.Err())
	check("Iterator.Close", it.Close())
	s = kv.With(ctx, s) // another request goes on
	wantGet(t, s, "a", "1")
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	wantGet(t, now{e}, "a", "1")
}

// testAhead tries several hints: the keys are the same for each.
func testAhead(t *testing.T, e kv.Engine) {
	var want []string
	for i := range 30 {
		want = append(want, fmt.Sprintf("k%02d=%d", i, i))
	}
	put(t, e, want...)
	s := Snapshot(t, e)
	defer s.Close()
	it, err := s.Iter(b("k"), b("l"))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 1, 7, 30, 1000} {
		it.Reset(b("k"), b("l"))
		it.Ahead(n)
		var got, back []string
		for ok := it.First(); ok; ok = it.Next() {
			got = append(got, fmt.Sprintf("%s=%s", it.Key(), it.Value()))
		}
		it.Ahead(n)
		for ok := it.SeekLT(b("k20")); ok; ok = it.Prev() {
			back = append(back, string(it.Key()))
		}
		if strings.Join(got, " ") != strings.Join(want, " ") || len(back) != 20 || back[19] != "k00" ||
			it.Err() != nil {
			t.Errorf("ahead %d: %q and %q, %v", n, got, back, it.Err())
		}
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
}
