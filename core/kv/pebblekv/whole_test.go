package pebblekv

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/internal/race"
)

// fill writes n keys, each in its own commit.
func fill(t *testing.T, e *Engine, from, n int) {
	t.Helper()
	for i := from; i < from+n; i++ {
		var b kv.Batch
		b.Put(fmt.Appendf(nil, "key %06d", i), fmt.Appendf(nil, "value %d %s", i, strings.Repeat("v", 200)))
		c, err := e.Write(context.Background(), &b, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Wait(); err != nil {
			t.Fatal(err)
		}
	}
}

// storeIn makes a store with tables and a log that isn't empty, and closes it.
func storeIn(t *testing.T, dir string) {
	t.Helper()
	e := mustOpen(t, dir, Options{MemTableMB: 1})
	fill(t, e, 0, 2000)
	if err := e.db.Flush(); err != nil {
		t.Fatal(err)
	}
	fill(t, e, 2000, 100)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// copyDir copies the files of a directory, which may be that of an open store.
func copyDir(t *testing.T, from string) string {
	t.Helper()
	for n := 1; ; n++ {
		to := t.TempDir()
		err := os.CopyFS(to, os.DirFS(from))
		if err == nil {
			return to
		}
		if n == 10 || !errors.Is(err, os.ErrNotExist) { // else an open store has removed one of its files meanwhile
			t.Fatal(err)
		}
	}
}

// fingerprint describes a directory's state: names, sizes, times and contents.
func fingerprint(t *testing.T, dir string) string {
	t.Helper()
	var s strings.Builder
	err := filepath.Walk(dir, func(path string, i os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		fmt.Fprintln(&s, path, i.Mode(), i.ModTime().UnixNano())
		if !i.IsDir() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&s, "%d %x\n", len(b), sha256.Sum256(b))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s.String()
}

func removeAll(t *testing.T, dir, pattern string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %v, %v", pattern, names, err)
	}
	for _, n := range names {
		if err := os.Remove(n); err != nil {
			t.Fatal(err)
		}
	}
}

// A directory with files that isn't a whole store is refused, for writing and for reading, and nothing in it is
// changed.
func TestRefusesWhatIsNotWhole(t *testing.T) {
	whole := t.TempDir()
	storeIn(t, whole)
	for _, c := range []struct {
		name string
		do   func(t *testing.T, dir string)
	}{
		{"no manifest marker", func(t *testing.T, dir string) { removeAll(t, dir, "marker.manifest.*") }},
		{"no format marker", func(t *testing.T, dir string) { removeAll(t, dir, "marker.format-version.*") }},
		{"no markers", func(t *testing.T, dir string) { removeAll(t, dir, "marker.*") }},
		{"no manifest", func(t *testing.T, dir string) { removeAll(t, dir, "MANIFEST-*") }},
		{"empty manifest", func(t *testing.T, dir string) {
			overwrite(t, dir, "MANIFEST-*", func([]byte) []byte { return nil })
		}},
		{"no log", func(t *testing.T, dir string) { removeAll(t, dir, "*.log") }},
		{"short log", func(t *testing.T, dir string) {
			overwrite(t, dir, "*.log", func(b []byte) []byte { return b[:len(b)/2] })
		}},
		{"no tables", func(t *testing.T, dir string) { removeAll(t, dir, "*.sst") }},
		{"tables alone", func(t *testing.T, dir string) {
			for _, p := range []string{"marker.*", "MANIFEST-*", "OPTIONS-*", "*.log", "LOCK", closedName} {
				removeAll(t, dir, p)
			}
		}},
		{"a log alone", func(t *testing.T, dir string) {
			for _, p := range []string{"marker.*", "MANIFEST-*", "OPTIONS-*", "*.sst", "LOCK", closedName} {
				removeAll(t, dir, p)
			}
		}},
		{"a manifest marker of another number", func(t *testing.T, dir string) {
			removeAll(t, dir, "marker.manifest.*")
			write(t, dir, "marker.manifest.000009.MANIFEST-009999", "")
		}},
		{"a malformed marker", func(t *testing.T, dir string) { write(t, dir, "marker.x", "") }},
		{"another's files", func(t *testing.T, dir string) {
			removeAll(t, dir, "*")
			write(t, dir, "letters.txt", "dear")
		}},
		{"an older format", func(t *testing.T, dir string) {
			removeAll(t, dir, "marker.*")
			write(t, dir, "CURRENT", "MANIFEST-000001\n")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := copyDir(t, whole)
			c.do(t, dir)
			before := fingerprint(t, dir)
			if _, err := Open(dir, Options{ReadOnly: true}); !errors.Is(err, kv.ErrCorruption) {
				t.Errorf("for reading: %v", err)
			}
			if after := fingerprint(t, dir); after != before {
				t.Fatalf("changed:\n%s\nto\n%s", before, after)
			}
			e, err := Open(dir, Options{})
			if !errors.Is(err, kv.ErrCorruption) {
				t.Errorf("for writing: %v", err)
			}
			if err == nil {
				e.Close()
			}
			if after := fingerprint(t, dir); withoutLock(after) != withoutLock(before) {
				t.Fatalf("changed:\n%s\nto\n%s", before, after)
			}
		})
	}
}

// The settings of a store that was killed have no checksum. A change that Pebble would refuse names the file.
func TestDamagedSettingsAreNamed(t *testing.T) {
	race.Alone(t)
	whole := t.TempDir()
	storeIn(t, whole)
	removeAll(t, whole, closedName)
	for _, c := range []struct{ name, from, to string }{
		{"no settings at all", "[Version]", "KVersion]"},
		{"another order of keys", "comparer=leveldb", "comparer=leveldc"},
		{"another place of logs", "wal_dir=", "wal_dir=x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := copyDir(t, whole)
			overwrite(t, dir, "OPTIONS-*", func(b []byte) []byte {
				if !strings.Contains(string(b), c.from) {
					t.Fatalf("no %q in %s", c.from, b)
				}
				return []byte(strings.Replace(string(b), c.from, c.to, 1))
			})
			_, err := Open(dir, Options{})
			if !errors.Is(err, ErrNotWhole) || !strings.Contains(err.Error(), "OPTIONS-0") {
				t.Errorf("the error is %v", err)
			}
			removeAll(t, dir, "OPTIONS-*")
			e, err := Open(dir, Options{}) // as the error says
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A truncated manifest names logs and tables that no longer exist, or not all of those that do. A store after a crash
// is whole with its complete manifest, and refused with less, as long as there is a write in its log.
func TestRefusesACutManifest(t *testing.T) {
	dir := t.TempDir()
	for round := range 3 {
		e := mustOpen(t, dir, Options{MemTableMB: 1})
		fill(t, e, round*1000, 500)
		if err := e.db.Flush(); err != nil {
			t.Fatal(err)
		}
		fill(t, e, round*1000+500, 20)
		if round < 2 {
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		killed := copyDir(t, dir)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		dir = killed
	}
	p, err := partsOf(vfs.Default, dir)
	if err != nil {
		t.Fatal(err)
	}
	name := p.manifests[len(p.manifests)-1].name
	whole := fileBytes(t, vfs.Default, filepath.Join(dir, name))
	inspected := func() (problems []string) {
		if _, err := inspect(vfs.Default, dir, false, func(p Problem) {
			if p.Level != Note {
				problems = append(problems, p.String())
			}
		}); err != nil {
			t.Fatal(err)
		}
		return problems
	}
	if p := inspected(); len(p) > 0 {
		t.Fatalf("whole: %q", p)
	}
	for at := 0; at < len(whole); at += race.Fewer(1, 9) {
		write(t, dir, name, string(whole[:at]))
		if len(inspected()) > 0 || at%9 > 0 {
			continue
		}
		// Pebble may detect it: tables of the last merge may be missing
		e, err := Open(dir, Options{ReadOnly: true, CacheMB: 1})
		if err != nil {
			continue
		}
		for _, i := range []int{0, 499, 519, 1000, 1519, 2000, 2499, 2500, 2519} {
			if _, err := e.Get(context.Background(), nil, fmt.Appendf(nil, "key %06d", i)); err != nil {
				t.Errorf("cut at byte %d of %d: key %d: %v", at, len(whole), i, err)
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for at := 0; at < len(whole); at += race.Fewer(1, 9) {
		b := []byte(string(whole))
		b[at] ^= 0x15
		write(t, dir, name, string(b))
		if len(inspected()) == 0 {
			t.Errorf("flipped at byte %d of %d", at, len(whole))
		}
	}
}

// withoutLock removes what taking the lock changes: the time of its file.
func withoutLock(s string) string {
	var out []string
	for _, l := range strings.Split(s, "\n") {
		if !strings.Contains(l, "/LOCK ") {
			out = append(out, l)
		}
	}
	return strings.Join(out, "\n")
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// overwrite changes the newest file that matches a pattern.
func overwrite(t *testing.T, dir, pattern string, f func([]byte) []byte) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %v, %v", pattern, names, err)
	}
	name := names[len(names)-1]
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, f(b), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Directories without files of a store, and those in which a crash interrupted the creation of a store, become new
// stores. Opened for reading, they have no store.
func TestMakesNewStores(t *testing.T) {
	for _, c := range []struct {
		name  string
		files []string
	}{
		{"no directory", nil},
		{"empty", []string{}},
		{"locked once", []string{"LOCK"}},
		{"cut before the manifest counted", []string{"LOCK", "MANIFEST-000001"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			if c.files != nil {
				if err := os.Mkdir(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for _, f := range c.files {
				write(t, dir, f, "")
			}
			if _, err := Open(dir, Options{ReadOnly: true}); !errors.Is(err, ErrNoStore) {
				t.Errorf("for reading: %v", err)
			}
			e, err := Open(dir, Options{})
			if err != nil {
				t.Fatal(err)
			}
			fill(t, e, 0, 10)
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			if err := mustOpen(t, dir, Options{ReadOnly: true}).Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A crash may come when a new store has a manifest and an empty log, but no format marker.
func TestMakesNewStoreOfOneHalfMade(t *testing.T) {
	dir := t.TempDir()
	if err := mustOpen(t, dir, Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"OPTIONS-*", "marker.format-version.*", closedName, identityName} {
		removeAll(t, dir, p)
	}
	overwrite(t, dir, "*.log", func([]byte) []byte { return nil })
	e := mustOpen(t, dir, Options{})
	fill(t, e, 0, 10)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// A store that is open for writing can't be opened for reading, or the reverse. Several readers can open it.
func TestReadersAndWriters(t *testing.T) {
	dir := t.TempDir()
	e := mustOpen(t, dir, Options{})
	fill(t, e, 0, 10)
	if _, err := Open(dir, Options{ReadOnly: true}); !errors.Is(err, ErrLocked) {
		t.Errorf("for reading beside a writer: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	a, b := mustOpen(t, dir, Options{ReadOnly: true}), mustOpen(t, dir, Options{ReadOnly: true})
	var batch kv.Batch
	batch.Put([]byte("k"), []byte("v"))
	if _, err := a.Write(context.Background(), &batch, nil); !errors.Is(err, kv.ErrUnavailable) {
		t.Errorf("a write: %v", err)
	}
	if err := a.DropRange(context.Background(), []byte("a"), []byte("z")); !errors.Is(err, kv.ErrUnavailable) {
		t.Errorf("a drop: %v", err)
	}
	if v, err := b.Get(context.Background(), nil, []byte("key 000003")); err != nil || len(v) == 0 {
		t.Errorf("a read: %q, %v", v, err)
	}
	if err := errors.Join(a.Close(), b.Close()); err != nil {
		t.Error(err)
	}
}

// After any crash a store is whole: the rules that detect a missing log or a damaged end report nothing.
func TestCrashedStoresAreWhole(t *testing.T) {
	race.Alone(t)
	rnd := rand.New(rand.NewPCG(5, 6))
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	var fs vfs.FS = vfs.NewCrashableMem()
	written := 0
	for round := range rounds {
		mem := fs.(*vfs.MemFS)
		e, err := Open("db", Options{FS: fs, MemTableMB: 1, Relaxed: false})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		for i := range written {
			if _, err := e.Get(context.Background(), nil, fmt.Appendf(nil, "key %06d", i)); err != nil {
				t.Fatalf("round %d: key %d: %v", round, i, err)
			}
		}
		n := rnd.IntN(4) * rnd.IntN(300)
		fill(t, e, written, n)
		written += n
		if rnd.IntN(3) == 0 {
			if _, err := e.db.AsyncFlush(); err != nil {
				t.Fatal(err)
			}
			fill(t, e, written, 5)
			written += 5
		}
		switch rnd.IntN(3) {
		case 0: // closed
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			fs = mem.CrashClone(vfs.CrashCloneCfg{})
		default: // a power failure
			next := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rnd.IntN(101), RNG: rnd})
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			fs = next
		}
	}
}
