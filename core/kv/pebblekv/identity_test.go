package pebblekv

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/kv"
)

// A store keeps its identity; two stores have different ones; a store that was made before there were identities gets
// one, and keeps that.
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
	if err := os.Remove(filepath.Join(first, identityName)); err != nil {
		t.Fatal(err)
	}
	given := identity(first)
	if given.ID == "" || given.ID == a.ID || identity(first) != given {
		t.Errorf("a store without one is given %+v, then it is %+v", given, identity(first))
	}
	if err := os.Remove(filepath.Join(first, identityName)); err != nil {
		t.Fatal(err)
	}
	e := mustOpen(t, first, Options{ReadOnly: true})
	defer e.Close()
	if got := e.Identity(); got != (kv.Identity{}) {
		t.Errorf("a reader gives a store the identity %+v", got)
	}
}

// A directory in which the identity alone is left is a store that has lost all else: no new one is made there.
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

// A store of a newer format is refused by all that reads it, in one sentence that names both formats, and stays as it
// is.
func TestNewerFormat(t *testing.T) {
	dir := t.TempDir()
	storeIn(t, dir)
	var i identityFile
	b, err := os.ReadFile(filepath.Join(dir, identityName))
	if err == nil {
		err = json.Unmarshal(b, &i)
	}
	if err != nil {
		t.Fatal(err)
	}
	i.Format = kv.Format + 1
	i.Sum = i.sum()
	if b, err = json.Marshal(i); err == nil {
		err = os.WriteFile(filepath.Join(dir, identityName), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
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
		if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "it has format 2, this server knows formats up to 1") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if withoutLock(fingerprint(t, dir)) != before {
		t.Error("something has changed")
	}
}

// A damaged identity is told, and the store goes on with a new one.
func TestDamagedIdentity(t *testing.T) {
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
