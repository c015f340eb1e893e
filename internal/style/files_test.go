package style

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// left are folders that don't belong to the repository: the output of tools and builds (.gitignore).
var left = map[string]bool{
	".git": true, "bin": true, "dist": true, "data": true, "node_modules": true, "__pycache__": true, ".venv": true,
	"out": true, "target": true,
}

// texts calls f with each text file of the repository, its path from the root with slashes.
func texts(t *testing.T, f func(name, text string)) {
	t.Helper()
	names, err := tracked()
	if err != nil { // no git, or no checkout: a copy of the files
		names, err = walked()
	}
	n := 0
	for _, name := range names {
		var text []byte
		if text, err = os.ReadFile(filepath.Join(root, filepath.FromSlash(name))); err != nil {
			break
		}
		if !strings.ContainsRune(string(text[:min(len(text), 4096)]), 0) {
			n++
			f(name, string(text))
		}
	}
	if err != nil || n < 100 {
		t.Fatalf("%d files: %v", n, err)
	}
}

// tracked returns the names of existing files that git tracks. Other files in a checkout don't count.
func tracked() ([]string, error) {
	out, err := exec.Command("git", "-C", root, "ls-files", "-z").Output()
	names := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	return slices.DeleteFunc(names, func(name string) bool {
		info, err := os.Lstat(filepath.Join(root, filepath.FromSlash(name)))
		return err != nil || !info.Mode().IsRegular()
	}), err
}

// walked returns the names of all files except those in folders of tools.
func walked() (names []string, err error) {
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && left[d.Name()]:
			return filepath.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		rel, err := filepath.Rel(root, p)
		names = append(names, filepath.ToSlash(rel))
		return err
	})
	return names, err
}
