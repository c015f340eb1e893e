// Command release builds the archives of a release: each binary for each system, with the licence, README and the
// licences of all modules in it, a list of these modules (SBOM), and the checksums of all files.
//
//	release [-out dist] [-tags tags] [os/arch ...]
//
// The binary's version is what Go stamps into it: the tag of the commit, or the commit.
package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

var systems = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

// program is a binary of the release.
type program struct {
	name string
	dir  string // of the Go module
	pkg  string // in the module
	pgo  string // the profile, from dir; auto: that of the package

	cgo []string // systems for which it can't be built without a C compiler: left out
}

var programs = []program{
	{name: "orrery", dir: ".", pkg: "./cmd/orrery", pgo: "auto"},
	{name: "orrery-tikv", dir: "cmd/orrery-tikv", pkg: ".", pgo: "../orrery/default.pgo",
		cgo: []string{"darwin"}}, // a library of TiKV's client reads the load of the machine there
}

func main() {
	out := flag.String("out", "dist", "directory for the files; what is in it is removed")
	tags := flag.String("tags", "", "build tags")
	flag.Parse()
	targets := flag.Args()
	if len(targets) == 0 {
		targets = systems
	}
	if err := release(*out, *tags, targets); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func release(out, tags string, targets []string) error {
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	work := filepath.Join(out, "work")
	if err := os.MkdirAll(work, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(work)
	var names []string
	for _, target := range targets {
		goos, goarch, ok := strings.Cut(target, "/")
		if !ok {
			return fmt.Errorf("%q is not os/arch", target)
		}
		for _, p := range programs {
			if slices.Contains(p.cgo, goos) {
				fmt.Fprintln(os.Stderr, p.name, "can't be built for", target, "without a C compiler: left out")
				continue
			}
			fmt.Fprintln(os.Stderr, "building", p.name, "for", target)
			made, err := p.build(out, work, tags, goos, goarch)
			if err != nil {
				return fmt.Errorf("%s for %s: %w", p.name, target, err)
			}
			names = append(names, made...)
		}
	}
	return checksums(out, names)
}

// build builds for a system and writes its archive and its list of modules. It returns the names of both.
func (p *program) build(out, work, tags, goos, goarch string) ([]string, error) {
	exe := p.name
	if goos == "windows" {
		exe += ".exe"
	}
	binary, err := filepath.Abs(filepath.Join(work, exe))
	if err != nil {
		return nil, err
	}
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-pgo", p.pgo, "-tags", tags, "-o", binary,
		p.pkg)
	build.Dir = p.dir
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, err
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	info.Deps = slices.DeleteFunc(info.Deps, ours)
	notices, err := noticesOf(info.Deps, p.moduleDir)
	if err != nil {
		return nil, err
	}
	data, err := dataNotices(".")
	if err != nil {
		return nil, err
	}
	notices = append(notices, data...)
	base := strings.Join([]string{p.name, version(info), goos, goarch}, "_")
	bom, err := bomOf(info)
	if err != nil {
		return nil, err
	}
	list := base + ".cdx.json"
	if err := os.WriteFile(filepath.Join(out, list), bom, 0o644); err != nil {
		return nil, err
	}
	files := []file{{name: "THIRD_PARTY_NOTICES", data: notices, mode: 0o644}}
	for _, f := range []file{{name: exe, from: binary, mode: 0o755}, {name: "LICENSE", from: "LICENSE", mode: 0o644},
		{name: "README.md", from: "README.md", mode: 0o644}} {
		if f.data, err = os.ReadFile(f.from); err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	archive, write := base+".tar.gz", writeTar
	if goos == "windows" {
		archive, write = base+".zip", writeZip
	}
	w, err := os.Create(filepath.Join(out, archive))
	if err != nil {
		return nil, err
	}
	if err := write(w, base, files); err != nil {
		w.Close()
		return nil, err
	}
	return []string{archive, list}, w.Close()
}

// version is the version in a binary; "+" is none for a file's name.
func version(info *debug.BuildInfo) string {
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		v = "devel"
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v = s.Value[:min(12, len(s.Value))]
			}
		}
	}
	return strings.ReplaceAll(v, "+", "-")
}

// ours reports whether a module is one of this repository: it has the licence of the archive, and no version.
func ours(m *debug.Module) bool {
	return m.Path == repository || strings.HasPrefix(m.Path, repository+"/")
}

const repository = "github.com/orrerydb/orrery"

// moduleDir returns the directory of a module in the cache.
func (p *program) moduleDir(m *debug.Module) (string, error) {
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", m.Path+"@"+m.Version)
	list.Dir = p.dir
	b, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", m.Path, err)
	}
	return strings.TrimSpace(string(b)), nil
}

// file is a file of an archive.
type file struct {
	name, from string
	data       []byte
	mode       int64
}

// epoch is the time of all files, so that an archive depends on nothing but what is in it.
var epoch = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

func writeTar(w io.Writer, dir string, files []file) error {
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	for _, f := range files {
		h := tar.Header{Name: dir + "/" + f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: epoch}
		if err := t.WriteHeader(&h); err != nil {
			return err
		}
		if _, err := t.Write(f.data); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	return z.Close()
}

func writeZip(w io.Writer, dir string, files []file) error {
	z := zip.NewWriter(w)
	for _, f := range files {
		h := zip.FileHeader{Name: dir + "/" + f.name, Method: zip.Deflate, Modified: epoch}
		h.SetMode(os.FileMode(f.mode))
		e, err := z.CreateHeader(&h)
		if err != nil {
			return err
		}
		if _, err := e.Write(f.data); err != nil {
			return err
		}
	}
	return z.Close()
}

// checksums writes SHA256SUMS in the form that sha256sum -c reads.
func checksums(out string, names []string) error {
	var b strings.Builder
	for _, name := range slices.Sorted(slices.Values(names)) {
		data, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(data), name)
	}
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), []byte(b.String()), 0o644)
}
