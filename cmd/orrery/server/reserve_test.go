package server

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/orrerydb/orrery/core/kv/pebblekv"
)

// A restore and a fork of a snapshot open no store: they take the copy that was opened before, when the snapshot was
// made or last used. So their time doesn't depend on how long others make the disk wait.
func TestSnapshotsHaveCopiesInReserve(t *testing.T) {
	dir := t.TempDir()
	s := testServer(t, dir)
	newDatabase(t, s, "first")
	if err := s.Snapshot("", "base"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		ready := reserved(t, s, "base")
		newDatabase(t, s, "more")
		if err := s.Restore("", "base"); err != nil {
			t.Fatal(err)
		}
		if got := databases(t, s); got != "first" || StoreDir(dir) != ready {
			t.Errorf("after a restore there is %q in %s, want the copy in %s", got, StoreDir(dir), ready)
		}
	}
	ready := reserved(t, s, "base")
	forked, err := s.Fork("base", "", "forked")
	if err != nil {
		t.Fatal(err)
	}
	in := forked.stage.gen.Load().kv.(*pebblekv.Engine).Directory()
	if got := databases(t, forked); got != "first" || in != ready {
		t.Errorf("the fork has %q in %s, want the copy in %s", got, in, ready)
	}
	ready = reserved(t, s, "")
	if err := s.Reset(""); err != nil {
		t.Fatal(err)
	}
	if got := databases(t, s); got != "" {
		t.Errorf("after a reset there is %q", got)
	}
	if forked.stage.gen.Load().kv.(*pebblekv.Engine).Directory() != ready && StoreDir(dir) != ready {
		t.Errorf("no account has the empty store in %s", ready)
	}
}

// A copy in reserve ends with its snapshot: one that was replaced or removed doesn't come back.
func TestCopiesInReserveFollowTheirSnapshots(t *testing.T) {
	dir := t.TempDir()
	s := testServer(t, dir)
	want := ""
	for i := range 4 { // also while the copy of the one before is being made
		name := fmt.Sprint("db", i)
		newDatabase(t, s, name)
		if err := s.Snapshot("", "base"); err != nil {
			t.Fatal(err)
		}
		if want += name; i%2 == 0 {
			reserved(t, s, "base")
		}
		if err := s.Restore("", "base"); err != nil {
			t.Fatal(err)
		}
		if got := databases(t, s); got != want {
			t.Errorf("after snapshot %d there is %q, want %q", i, got, want)
		}
		want += ","
	}
	ready := reserved(t, s, "base")
	if err := s.RemoveSnapshot("base"); err != nil {
		t.Fatal(err)
	}
	if err := s.Restore("", "base"); err == nil {
		t.Error("a snapshot that was removed has been restored")
	}
	eventually(t, func() string {
		if _, err := os.Stat(ready); !os.IsNotExist(err) {
			return "the copy of a snapshot that was removed is still there"
		}
		return ""
	})
	for i := range mostCopies + 2 {
		if err := s.Snapshot("", fmt.Sprint("s", i)); err != nil {
			t.Fatal(err)
		}
	}
	s.kit.mu.Lock()
	var have []string
	for _, p := range s.kit.copiesInReserve() {
		have = append(have, p.name)
	}
	s.kit.mu.Unlock()
	if !slices.Equal(have, []string{"s2", "s3", "s4", "s5"}) {
		t.Errorf("the copies in reserve are %q", have)
	}
	stopNow(t, s)
	if left := names(filepath.Join(dir, storesName)); len(left) != 1 {
		t.Errorf("stores after a stop: %v", left)
	}
}

// reserved waits for the store in reserve for a snapshot, "" for the empty one, and returns its directory.
func reserved(t *testing.T, s *Server, name string) (dir string) {
	t.Helper()
	eventually(t, func() string {
		s.kit.mu.Lock()
		defer s.kit.mu.Unlock()
		i := s.kit.indexOfSpare(name)
		if i < 0 {
			return fmt.Sprintf("there is no store in reserve for %q", name)
		}
		<-s.kit.spares[i].opened
		dir = s.kit.spares[i].e.Directory()
		return ""
	})
	return dir
}
