package pebblekv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/internal/race"
)

// A store keeps its identity, and two stores have different ones. A store of an older format keeps its identity when it
// is upgraded. A store from before identities existed gets one.
func TestIdentity(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	identity := func(dir string) kv.Identity {
		e := mustOpen(t, dir, Options{})
		defer e.Close()
		return e.Identity()
	}
	a, b := identity(first), identity(second)
	if a.Format != kv.Format || a.ID == "" || a.Created.IsZero() || a.ID == b.ID {
		t.Fatalf("%+v and %+v", a, b)
	}
	if again := identity(first); again != a {
		t.Errorf("opened again it is %+v, it was %+v", again, a)
	}
	older := a
	older.Format = 1
	rewriteIdentity(t, first, func(i *identityFile) { i.Identity = older })
	readable := func(want kv.Identity) {
		e := mustOpen(t, first, Options{ReadOnly: true})
		defer e.Close()
		if got := e.Identity(); got != want {
			t.Errorf("a reader sees the identity %+v, want %+v", got, want)
		}
	}
	refused := func() {
		before := withoutLock(fingerprint(t, first))
		_, err := Open(first, Options{})
		if !errors.Is(err, ErrOlder) || !strings.Contains(err.Error(), fmt.Sprintf("it has format 1, this server "+
			"writes format %d", kv.Format)) ||
			!strings.Contains(err.Error(), "--upgrade") || !strings.Contains(err.Error(), "copy its directory first") {
			t.Errorf("opened without being asked to upgrade it: %v", err)
		}
		if withoutLock(fingerprint(t, first)) != before {
			t.Error("something has changed")
		}
	}
	upgraded := func() kv.Identity {
		e := mustOpen(t, first, Options{Upgrade: true})
		defer e.Close()
		return e.Identity()
	}
	readable(older)
	refused()
	if got := upgraded(); got != a || identity(first) != a {
		t.Errorf("upgraded it is %+v, it was %+v", got, older)
	}
	if err := os.Remove(filepath.Join(first, identityName)); err != nil {
		t.Fatal(err)
	}
	readable(kv.Identity{})
	refused()
	if got := upgraded(); got.ID == "" || got.ID == a.ID || got.Format != kv.Format || identity(first) != got {
		t.Errorf("a store without identity is given %+v", got)
	}
}

// If the process is killed while a store is created or upgraded, the store can be opened again.
func TestIdentityIsWrittenAroundTheMaking(t *testing.T) {
	dir := t.TempDir()
	rewriteIdentity(t, dir, func(i *identityFile) {
		i.Identity, i.Making = kv.Identity{Format: kv.Format, ID: "of the first try", Created: time.Unix(1, 0).UTC()},
			true
	})
	e := mustOpen(t, dir, Options{})
	if got := e.Identity(); got.ID != "of the first try" {
		t.Errorf("begun again it is %+v", got)
	}
	fill(t, e, 0, 10)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	rewriteIdentity(t, dir, func(i *identityFile) {
		if i.Making {
			t.Error("the store is still being made")
		}
		i.Making = true // the kill came after everything was created
	})
	e = mustOpen(t, dir, Options{})
	defer e.Close()
	if n := count(t, e); n != 10 {
		t.Errorf("%d values are read", n)
	}
}

// rewriteIdentity changes the identity in a directory, or creates one.
func rewriteIdentity(t *testing.T, dir string, change func(*identityFile)) {
	t.Helper()
	var i identityFile
	path := filepath.Join(dir, identityName)
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, &i)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	change(&i)
	i.Sum = i.sum()
	if b, err = json.Marshal(i); err == nil {
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A directory with only an identity is a store that has lost everything else: no new store is created there.
func TestIdentityWithoutAStore(t *testing.T) {
	dir := t.TempDir()
	storeIn(t, dir)
	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if n.Name() != identityName {
			if err := os.Remove(filepath.Join(dir, n.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := Open(dir, Options{}); !errors.Is(err, ErrNotWhole) {
		t.Errorf("Open: %v", err)
	}
}

// A store of a newer format is refused by everything that reads it. The error names both formats, and the store isn't
// changed.
func TestNewerFormat(t *testing.T) {
	dir := t.TempDir()
	storeIn(t, dir)
	rewriteIdentity(t, dir, func(i *identityFile) { i.Format = kv.Format + 1 })
	before := withoutLock(fingerprint(t, dir))
	for what, open := range map[string]func() error{
		"Open": func() error {
			_, err := Open(dir, Options{})
			return err
		},
		"Open for reading": func() error {
			_, err := Open(dir, Options{ReadOnly: true})
			return err
		},
		"Examine": func() error {
			_, err := Examine(context.Background(), dir, Options{}, Watch{})
			return err
		},
		"OpenSalvage": func() error {
			_, err := OpenSalvage(context.Background(), dir, Options{}, Watch{})
			return err
		},
	} {
		err := open()
		if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), fmt.Sprintf("it has format %d, this server "+
			"knows formats up to %d", kv.Format+1, kv.Format)) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if withoutLock(fingerprint(t, dir)) != before {
		t.Error("something has changed")
	}
}

// A damaged identity is reported, and the store continues with a new one.
func TestDamagedIdentity(t *testing.T) {
	race.Alone(t)
	t.Parallel()
	for name, content := range map[string]string{
		"empty": "", "no JSON": "{", "another sum": `{"format":1,"id":"x","created":"2026-01-01T00:00:00Z","sum":"00"}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			storeIn(t, dir)
			if err := os.WriteFile(filepath.Join(dir, identityName), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			var found []string
			report := func(p Problem) { found = append(found, p.String()) }
			e, err := Examine(context.Background(), dir, Options{}, Watch{Report: report})
			if err != nil || e == nil || len(found) != 1 || !strings.HasPrefix(found[0], identityName+": damaged") {
				t.Fatalf("an examination finds %q, %v", found, err)
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			e = mustOpen(t, dir, Options{})
			defer e.Close()
			if got := e.Identity(); got.ID == "" || got.Format != kv.Format {
				t.Errorf("the store has the identity %+v", got)
			}
			if n := count(t, e); n != 2100 {
				t.Errorf("%d values are read", n)
			}
		})
	}
}
