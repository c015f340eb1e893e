package style

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// left are folders that hold nothing of the repository: what tools and builds leave behind (.gitignore).
var left = map[string]bool{
	".git": true, "bin": true, "data": true, "node_modules": true, "__pycache__": true, ".venv": true, "out": true,
	"target": true,
}

// texts calls f with each text file of the repository, its path from the root with slashes.
func texts(t *testing.T, f func(name, text string)) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && left[d.Name()]:
			return filepath.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(p)
		if err == nil && !strings.ContainsRune(string(text[:min(len(text), 4096)]), 0) {
			n++
			f(filepath.ToSlash(rel), string(text))
		}
		return err
	})
	if err != nil || n < 100 {
		t.Fatalf("%d files: %v", n, err)
	}
}
