package backup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/core/kv/pebblekv/files"
)

// job backs up a store of a few files whose tables have the given content.
func job(t *testing.T, fs vfs.FS, n int, store string, tables ...string) Job {
	t.Helper()
	from := fmt.Sprintf("from%d", n)
	if err := fs.MkdirAll(from, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := fs.MkdirAll("to", 0o755); err != nil {
		t.Fatal(err)
	}
	for i, text := range append(tables, "log") {
		name := fmt.Sprintf("%06d.sst", i+1)
		if text == "log" {
			name = "000009.log"
		}
		write(t, fs, from+"/"+name, text)
	}
	taken := time.Unix(1700000000+int64(n), 0)
	return Job{Work: Work{FS: fs}, From: from, Of: from, To: "to", Name: Name(taken, [4]byte{byte(n)}), Store: store,
		Taken: taken}
}

func write(t *testing.T, fs vfs.FS, name, text string) {
	t.Helper()
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write([]byte(text))
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

func wantError(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("%v, want %q", err, text)
	}
}

// Backups of two stores are kept apart: no backup of the second store is made into the first one's directory, and if a
// directory has backups of both, none is the newest.
func TestStoresAreKeptApart(t *testing.T) {
	fs := vfs.NewMem()
	if _, err := Take(context.Background(), job(t, fs, 1, "a", "one")); err != nil {
		t.Fatal(err)
	}
	_, err := Take(context.Background(), job(t, fs, 2, "b", "one"))
	wantError(t, err, "of another store")

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	left := job(t, fs, 3, "b", "one")
	left.To = "left"
	if err := fs.MkdirAll("left", 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Take(ctx, left); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	left = job(t, fs, 4, "a", "one")
	left.To = "left"
	_, err = Take(context.Background(), left)
	wantError(t, err, "of another store")

	other := job(t, fs, 5, "b", "one")
	if err := writeManifest(fs, mkdir(t, fs, "to/"+other.Name), &Manifest{Store: "b", Taken: other.Taken}); err != nil {
		t.Fatal(err)
	}
	_, _, err = Pick(fs, "to")
	wantError(t, err, "several stores")
}

func mkdir(t *testing.T, fs vfs.FS, dir string) string {
	t.Helper()
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A table of the same name, length and time is shared only if its last bytes are the same.
func TestOnlyTheSameTableIsShared(t *testing.T) {
	fs := vfs.NewMem()
	if _, err := Take(context.Background(), job(t, fs, 1, "", "one", "two")); err != nil {
		t.Fatal(err)
	}
	j := job(t, fs, 2, "", "one", "TWO")
	j.Of = "from1" // as if both had been written at the same time
	b, err := Take(context.Background(), j)
	if err != nil || b.Shared != 3 || b.Linked != 3 {
		t.Errorf("%+v %v", b, err)
	}
	text, err := files.Read(fs, b.Path+"/store/000002.sst")
	if err != nil || string(text) != "TWO" {
		t.Errorf("%q %v", text, err)
	}
}

// Pick finds the backup that a directory stands for.
func TestPick(t *testing.T) {
	fs := vfs.NewMem()
	mkdir(t, fs, "to")
	_, _, err := Pick(fs, "to")
	wantError(t, err, "no complete backup")
	_, _, err = Pick(fs, "missing")
	wantError(t, err, "no complete backup")
	var paths []string
	for n := range 3 {
		b, err := Take(context.Background(), job(t, fs, n, "", "one"))
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, b.Path)
	}
	mkdir(t, fs, "to/20990101T000000Z-00000000") // unfinished
	for dir, want := range map[string]string{"to": paths[2], paths[0]: paths[0]} {
		if path, m, err := Pick(fs, dir); err != nil || path != want || m == nil {
			t.Errorf("%s: %s %v, want %s", dir, path, err, want)
		}
	}
	write(t, fs, paths[1]+"/"+ManifestName, "{}")
	if path, _, err := Pick(fs, "to"); err != nil || path != paths[2] {
		t.Errorf("behind a damaged one: %s %v", path, err)
	}
	write(t, fs, paths[2]+"/"+ManifestName, "{}")
	_, _, err = Pick(fs, "to")
	wantError(t, err, "damaged")
	all, err := List(fs, "to")
	if err != nil || len(all) != 4 || all[0].Manifest == nil || all[1].Manifest != nil {
		t.Errorf("%+v %v", all, err)
	}
}

// A manifest can't name files in other directories.
func TestManifestStaysInItsDirectory(t *testing.T) {
	fs := vfs.NewMem()
	for _, name := range []string{"../x", "", "a/b", "..", "."} {
		if err := writeManifest(fs, mkdir(t, fs, "b"), &Manifest{Files: []File{{Name: name}}}); err != nil {
			t.Fatal(err)
		}
		_, err := ReadManifest(fs, "b")
		wantError(t, err, "names a file")
	}
	if err := writeManifest(fs, "b", &Manifest{}); err != nil {
		t.Fatal(err)
	}
	m, err := ReadManifest(fs, "b")
	if err != nil {
		t.Fatal(err)
	}
	m.Format, m.Sum = 2, ""
	m.Sum = m.sum()
	write(t, fs, "b/"+ManifestName, fmt.Sprintf(
		`{"format":2,"taken":"0001-01-01T00:00:00Z","files":null,"sum":%q}`, m.Sum))
	_, err = ReadManifest(fs, "b")
	wantError(t, err, "format 2")
}
