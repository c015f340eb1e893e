// Command packaging makes the packages of a release: container images, deb, rpm, npm packages, Python wheels, the
// Homebrew formula and the Helm chart. It is a Go module of its own, because its libraries are many and no binary has
// them.
//
//	packaging [-out dist/packages] [-tags tags] [-version v] [-kinds image,shell-image,deb,rpm,..] [os/arch ...]
//
// The same commit gives the same bytes: all times are that of the commit, and all files are in order.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

var systems = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

// release is what the packages are made of.
type release struct {
	root     string // of the repository
	out      string
	version  string // without v, such as 1.2.3
	when     time.Time
	binaries map[string]string // by system, such as linux/amd64
}

// kind makes the packages of one kind. It returns the names of the files.
type kind func(*release) ([]string, error)

var kinds = map[string]kind{
	"image": makeImage, "shell-image": makeShellImage,
	"deb": makeDeb, "rpm": makeRPM, "npm": makeNPM, "wheel": makeWheels, "brew": makeFormula,
	"helm": makeChart,
}

func main() {
	out := flag.String("out", "dist/packages", "directory for the files")
	tags := flag.String("tags", "nomsgpack,nethttpomithttp2", "build tags")
	version := flag.String("version", "", "version of the packages; default: the tag of the commit, or 0.0.0")
	which := flag.String("kinds", "image,shell-image,deb,rpm,npm,wheel,brew,helm",
		"kinds of packages")
	root := flag.String("root", ".", "root of the repository")
	flag.Parse()
	targets := flag.Args()
	if len(targets) == 0 {
		targets = systems
	}
	if err := run(*root, *out, *tags, *version, strings.Split(*which, ","), targets); err != nil {
		fmt.Fprintln(os.Stderr, "packaging:", err)
		os.Exit(1)
	}
}

func run(root, out, tags, version string, which, targets []string) error {
	r, err := newRelease(root, out, version)
	if err != nil {
		return err
	}
	for _, t := range targets {
		if err := r.build(t, tags); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
	}
	for _, name := range which {
		make, ok := kinds[name]
		if !ok {
			return fmt.Errorf("%q is no kind of package", name)
		}
		files, err := make(r)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, f := range files {
			info, err := os.Stat(filepath.Join(r.out, f))
			if err != nil {
				return err
			}
			fmt.Printf("%9d  %s\n", info.Size(), f)
		}
	}
	return nil
}

func newRelease(root, out, version string) (*release, error) {
	r := &release{root: root, out: out, version: strings.TrimPrefix(version, "v"), binaries: map[string]string{}}
	seconds := os.Getenv("SOURCE_DATE_EPOCH")
	if seconds == "" {
		seconds = r.git("log", "-1", "--format=%ct")
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("the time of the commit is unknown: set SOURCE_DATE_EPOCH: %w", err)
	}
	r.when = time.Unix(n, 0).UTC()
	if r.version == "" {
		r.version = strings.TrimPrefix(r.git("describe", "--tags", "--exact-match", "--match", "v[0-9]*"), "v")
	}
	if r.version == "" {
		r.version = "0.0.0"
	}
	return r, os.MkdirAll(out, 0o755)
}

// git returns the output of a git command, "" if it fails.
func (r *release) git(args ...string) string {
	cmd := exec.Command("git", args...)
	cmd.Dir = r.root
	text, err := cmd.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// build builds the binary for a system.
func (r *release) build(target, tags string) error {
	goos, goarch, ok := strings.Cut(target, "/")
	if !ok {
		return fmt.Errorf("want os/arch")
	}
	file, err := filepath.Abs(filepath.Join(r.out, "work", goos+"_"+goarch, "orrery"))
	if err != nil {
		return err
	}
	if given := os.Getenv("ORRERY_BIN"); given != "" { // for tests of the packages: one binary for the only system
		r.binaries[target] = given
		return nil
	}
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-tags", tags, "-o", file, "./cmd/orrery")
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch, "GOFLAGS=")
	cmd.Stderr = os.Stderr
	r.binaries[target] = file
	return cmd.Run()
}

// path returns the name of a file of this module.
func (r *release) path(elem ...string) string {
	return filepath.Join(append([]string{r.root, "cmd", "orrery", "packaging"}, elem...)...)
}
