//go:build unix

package server

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Only the owner can read what a server, a backup, a restore and a repair make, also in a directory that others can
// read. A restore and a repair change nothing in the directory that they read.
func TestOthersCanNotRead(t *testing.T) {
	dir := t.TempDir()
	open := func(name string) string {
		path := filepath.Join(dir, name)
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	data, backups := open("data"), open("backups")
	s, _ := whole(t, func(c *Config) { c.Memory, c.Data = false, data })
	b, err := s.backup(context.Background(), backups, func(_, _ int64) {})
	if err != nil {
		t.Fatal(err)
	}
	restored, repaired := open("restored"), open("repaired")
	if _, err := Restore(context.Background(), backups, restored, silent{}); err != nil {
		t.Fatal(err)
	}
	if _, err := Repair(context.Background(), b.Path, repaired, func(_, _ int64) {}, nil); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(b.Path, link); err != nil {
		t.Fatal(err)
	}
	for _, in := range []string{backups, b.Path, link} {
		to := filepath.Join(in, "new")
		for _, from := range []string{backups, b.Path, link} {
			if _, err := Restore(context.Background(), from, to, silent{}); err == nil || !strings.Contains(err.Error(),
				"backups alone") {
				t.Errorf("a restore of %s to %s: %v", from, to, err)
			}
			want := "nothing is changed"
			if in == backups {
				want = "backups alone"
			}
			if from == backups {
				continue
			}
			if _, err := Repair(context.Background(), from, to, func(_, _ int64) {}, nil); err == nil ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("a repair of %s to %s: %v", from, to, err)
			}
		}
	}
	made := []string{b.Path}
	for _, of := range []string{data, restored, repaired} {
		made = append(made, filepath.Join(of, storeName))
	}
	for _, path := range made {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	for _, path := range []string{data, restored, repaired} {
		err := filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && name != path {
				return fs.SkipDir // which was looked at
			}
			if info, ierr := d.Info(); err == nil && name != path && (ierr != nil || info.Mode().Perm()&0o077 != 0) {
				t.Errorf("%s: %v, %v", name, info.Mode(), ierr)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}
