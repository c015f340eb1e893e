package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

func testInfo() *debug.BuildInfo {
	return &debug.BuildInfo{GoVersion: "go1.26", Main: debug.Module{Path: "example.com/orrery", Version: "v1.2.3+dirty"},
		Deps: []*debug.Module{{Path: "example.com/a", Version: "v1.0.0"},
			{Path: "example.com/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/c", Version: "v2.0.0"}}}}
}

// The list of modules has all modules of the binary, in the versions that are built.
func TestBOM(t *testing.T) {
	raw, err := bomOf(testInfo())
	if err != nil {
		t.Fatal(err)
	}
	var b bom
	if err := json.Unmarshal(raw, &b); err != nil {
		t.Fatal(err)
	}
	got := []string{b.Metadata.Component.PURL}
	for _, c := range b.Components {
		got = append(got, c.PURL)
	}
	want := "pkg:golang/example.com/orrery@v1.2.3-dirty pkg:golang/std@go1.26 pkg:golang/example.com/a@v1.0.0 " +
		"pkg:golang/example.com/c@v2.0.0"
	if strings.Join(got, " ") != want {
		t.Errorf("got %v\nwant %s", got, want)
	}
}

// The notices contain each module's licences. A module without one is refused.
func TestNotices(t *testing.T) {
	root := t.TempDir()
	dir := func(m *debug.Module) (string, error) { return filepath.Join(root, filepath.Base(m.Path)), nil }
	for name, text := range map[string]string{"a/LICENSE.txt": "licence of a", "a/main.go": "code", "a/NOTICE": "notice of a",
		"c/COPYING": "licence of c", "c/licenses/x": "another"} {
		p := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := noticesOf(testInfo().Deps, dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"example.com/a v1.0.0: LICENSE.txt\n\nlicence of a", "notice of a",
		"example.com/c v2.0.0: COPYING"} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %q in %s", want, b)
		}
	}
	if strings.Contains(string(b), "code") || strings.Contains(string(b), "another") {
		t.Errorf("more than notices: %s", b)
	}
	if err := os.Remove(filepath.Join(root, "c", "COPYING")); err != nil {
		t.Fatal(err)
	}
	if _, err := noticesOf(testInfo().Deps, dir); err == nil {
		t.Error("a module without a licence is passed on")
	}
}

// Modules of the repository itself are neither listed nor is their licence looked for.
func TestOurModules(t *testing.T) {
	for path, want := range map[string]bool{repository: true, repository + "/core/kv/tikvkv": true,
		repository + "er": false, "github.com/pingcap/log": false} {
		if got := ours(&debug.Module{Path: path}); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

// Each binary's module and profile are where the release looks for them.
func TestPrograms(t *testing.T) {
	for _, p := range programs {
		dir := filepath.Join("../..", p.dir)
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(dir, p.pkg, "main.go")); err != nil {
			t.Error(err)
		}
		if p.pgo != "auto" {
			if _, err := os.Stat(filepath.Join(dir, p.pgo)); err != nil {
				t.Error(err)
			}
		}
	}
}

// Both kinds of archives contain what was packed, with an executable binary.
func TestArchives(t *testing.T) {
	files := []file{{name: "orrery", data: []byte("binary"), mode: 0o755},
		{name: "LICENSE", data: []byte("text"), mode: 0o644}}
	var tgz, zipped bytes.Buffer
	if err := writeTar(&tgz, "d", files); err != nil {
		t.Fatal(err)
	}
	if err := writeZip(&zipped, "d", files); err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(&tgz)
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(z)
	for _, f := range files {
		h, err := r.Next()
		if err != nil || h.Name != "d/"+f.name || h.Mode != f.mode {
			t.Fatalf("%+v, %v", h, err)
		}
		if b, err := io.ReadAll(r); err != nil || string(b) != string(f.data) {
			t.Errorf("%s: %q, %v", f.name, b, err)
		}
	}
	zr, err := zip.NewReader(bytes.NewReader(zipped.Bytes()), int64(zipped.Len()))
	if err != nil || len(zr.File) != len(files) {
		t.Fatal(err)
	}
	for i, f := range files {
		if e := zr.File[i]; e.Name != "d/"+f.name || int64(e.Mode().Perm()) != f.mode {
			t.Errorf("%+v", e.FileHeader)
		}
	}
}

func TestDataNotices(t *testing.T) {
	b, err := dataNotices("../..")
	if err != nil || !bytes.Contains(b, []byte("Unicode, Inc.")) {
		t.Errorf("%v: %.200s", err, b)
	}
}
