package tikvkv

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/orrerydb/orrery/core/kv"
)

// set writes a stored key as another program would.
func (m *mock) set(key, value string) {
	m.t.Helper()
	store := m.Store(nil)
	tx, err := store.Begin()
	if err == nil {
		err = tx.Set([]byte(key), []byte(value))
	}
	if err == nil {
		err = tx.Commit(bg)
	}
	if err := errors.Join(err, store.Close()); err != nil {
		m.t.Fatal(err)
	}
}

// Processes that open a new keyspace at the same time have one store.
func TestOneIdentity(t *testing.T) {
	m := newMock(t)
	ids := make([]string, 4)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			e := m.open("main")
			ids[i] = e.Identity().ID
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, id := range ids {
		if id == "" || id != ids[0] {
			t.Fatalf("several identities: %q", ids)
		}
	}
}

func TestKeyspacesOfOthersAreRefused(t *testing.T) {
	record := func(format, layout int) string {
		b, err := json.Marshal(identity{kv.Identity{Format: format, ID: "x"}, layout})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, tc := range []struct{ key, value, problem string }{
		{"or/main/anything", "1", "another program has written them"},
		{"or/main/i", "1", "the store of another program"},
		{"or/main/i", `{"name":"x"}`, "the store of another program"},
		{"or/main/i", record(kv.Format+1, layoutVersion), "start a newer version"},
		{"or/main/i", record(kv.Format, layoutVersion+1), "start a newer version"},
		{"or/main/i", record(kv.Format-1, layoutVersion), "with --upgrade"},
	} {
		m := newMock(t)
		m.set(tc.key, tc.value)
		_, err := Use(bg, m.Store(nil), "main", Options{})
		if !errors.Is(err, kv.ErrUnavailable) || !strings.Contains(err.Error(), tc.problem) {
			t.Errorf("%s = %s: %v, want %q", tc.key, tc.value, err, tc.problem)
		}
		// Nothing was written, and another keyspace is none of its business.
		e := m.open("main2")
		pairs, _, err := e.scan(bg, mustNow(t, e), []byte("or/main/"), []byte("or/main0"), 10, false, false)
		if err != nil || len(pairs) != 1 || string(pairs[0].val) != tc.value {
			t.Errorf("%s = %s: afterwards %q, %v", tc.key, tc.value, pairs, err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A store of an older format is opened for its upgrade, which one of several processes makes. Then others open it too.
func TestUpgradeOfIdentity(t *testing.T) {
	m := newMock(t)
	was := identity{kv.Identity{Format: kv.Format - 1, ID: "x"}, layoutVersion}
	b, err := json.Marshal(was)
	if err != nil {
		t.Fatal(err)
	}
	m.set("or/main/i", string(b))
	var all []*Engine
	for range 2 {
		e, err := Use(bg, m.Store(nil), "main", Options{Upgrade: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Identity(); got != was.Identity {
			t.Errorf("before the upgrade: %+v", got)
		}
		all = append(all, e)
	}
	if err := all[0].Upgrade(bg); err != nil {
		t.Fatal(err)
	}
	if err := all[1].Upgrade(bg); !errors.Is(err, kv.ErrUnavailable) {
		t.Errorf("a second process upgrades too: %v", err)
	}
	e := m.open("main")
	all = append(all, e)
	if i := e.Identity(); i.Format != kv.Format || i.ID != "x" {
		t.Errorf("after the upgrade: %+v", i)
	}
	for _, e := range all {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

func mustNow(t testing.TB, e *Engine) uint64 {
	t.Helper()
	ts, err := e.timestamp(bg)
	if err != nil {
		t.Fatal(err)
	}
	return ts
}

// Stores in two keyspaces don't see each other, also if the name of one begins that of the other.
func TestKeyspacesAreApart(t *testing.T) {
	m := newMock(t)
	a, b := m.open("a"), m.open("ab")
	put(t, a, "k", "of a")
	put(t, b, "k", "of ab")
	if err := a.DropRange(bg, []byte{0}, []byte{0xff}); err != nil {
		t.Fatal(err)
	}
	if v, err := b.Get(bg, nil, []byte("k")); string(v) != "of ab" {
		t.Errorf("%q, %v", v, err)
	}
	if v, err := a.Get(bg, nil, []byte("k")); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("%q, %v", v, err)
	}
	if a.Identity().ID == b.Identity().ID {
		t.Error("one identity for two stores")
	}
	if err := errors.Join(a.Close(), b.Close()); err != nil {
		t.Error(err)
	}
}
