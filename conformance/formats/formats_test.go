// Package formats opens stores in the formats of earlier versions. Clients of all APIs must read the same from them as
// from a new store.
//
// testdata has two stores for each format: as closed, and as after a kill. Before the format changes, add the stores of
// the current one: `ORRERY_MAKE_STORES=testdata/N go test ./formats` writes N-closed.tar.gz and N-killed.tar.gz.
package formats

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/conformance/harness"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
)

func TestEarlierFormats(t *testing.T) {
	stores, err := filepath.Glob("testdata/*.tar.gz")
	if err != nil || len(stores) == 0 {
		t.Fatal(stores, err)
	}
	now := serve(t, t.TempDir())
	fill(t, now)
	want := read(t, now)
	for _, store := range stores {
		t.Run(strings.TrimSuffix(filepath.Base(store), ".tar.gz"), func(t *testing.T) {
			dir := t.TempDir()
			unpack(t, store, dir)
			s := serve(t, dir)
			compare(t, read(t, s), want)
			change(t, s)
			change(t, now)
			compare(t, read(t, s), read(t, now))
			upgraded(t, s)
			compare(t, read(t, s), read(t, now))
			restore(t, now)
		})
	}
}

// A check of a store in an earlier format checks what all formats have, and changes nothing.
func TestCheckOfEarlierFormats(t *testing.T) {
	stores, err := filepath.Glob("testdata/*.tar.gz")
	if err != nil || len(stores) == 0 {
		t.Fatal(stores, err)
	}
	for _, store := range stores {
		dir := t.TempDir()
		unpack(t, store, dir)
		eng, err := server.Examine(bg, dir, pebblekv.Watch{Report: func(p pebblekv.Problem) {
			if p.Level != pebblekv.Note {
				t.Errorf("%s: %s", store, p)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		if !eng.Older() {
			t.Errorf("%s: it isn't said that the store is of an older format", store)
		}
		problems, err := eng.Check(bg)
		if err != nil || len(problems) > 0 {
			t.Errorf("%s: %v %v", store, problems, err)
		}
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestMakeStores makes the stores of the current format if ORRERY_MAKE_STORES is set.
func TestMakeStores(t *testing.T) {
	to := os.Getenv("ORRERY_MAKE_STORES")
	if to == "" {
		to = filepath.Join(t.TempDir(), "now")
	}
	dir := t.TempDir()
	t.Run("fill", func(t *testing.T) {
		s := serve(t, dir)
		fill(t, s)
		pack(t, dir, to+"-killed.tar.gz")
	})
	pack(t, dir, to+"-closed.tar.gz")
	for _, how := range []string{"-killed", "-closed"} {
		from := t.TempDir()
		unpack(t, to+how+".tar.gz", from)
		if len(read(t, serve(t, from))) == 0 {
			t.Errorf("nothing is read of the store%s", how)
		}
	}
}

// serve starts a server on a directory.
func serve(t *testing.T, dir string) *harness.Server {
	t.Helper()
	cfg := server.Ephemeral()
	cfg.Strict, cfg.Memory, cfg.Data, cfg.Upgrade = nil, false, dir, true
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	return harness.StartWith(t, cfg)
}

// upgraded waits until all containers have the current format.
func upgraded(t *testing.T, s *harness.Server) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		st, under := s.Engine().Upgrading()
		if !under {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the upgrade is at %+v", st)
		}
	}
}

// compare reports the differences of two lists of replies.
func compare(t *testing.T, got, want map[string][]string) {
	t.Helper()
	for what, rows := range want {
		if !slices.Equal(got[what], rows) {
			t.Errorf("%s:\n%s\nof a store made just now:\n%s", what, strings.Join(got[what], "\n"),
				strings.Join(rows, "\n"))
		}
	}
}

// pack writes the files of a store's directory, except the ballast, to an archive.
func pack(t *testing.T, dir, to string) {
	t.Helper()
	f, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	z, _ := gzip.NewWriterLevel(f, gzip.BestCompression)
	w := tar.NewWriter(z)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "ballast" || d.Name() == "LOCK" {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) { // an obsolete file was removed meanwhile
			return nil
		}
		if err == nil {
			err = w.WriteHeader(&tar.Header{Name: filepath.ToSlash(name), Mode: 0o600, Size: int64(len(b))})
		}
		if err == nil {
			_, err = w.Write(b)
		}
		return err
	})
	if err = errors.Join(err, w.Close(), z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func unpack(t *testing.T, from, dir string) {
	t.Helper()
	f, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil || !filepath.IsLocal(h.Name) {
			t.Fatal(h.Name, err)
		}
		path := filepath.Join(dir, h.Name)
		b, err := io.ReadAll(r)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o700)
		}
		if err == nil {
			err = os.WriteFile(path, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func rows(vs []any) []string {
	out := make([]string, len(vs))
	for i, v := range vs {
		out[i] = fmt.Sprint(v)
	}
	slices.Sort(out)
	return out
}

var bg = context.Background()
