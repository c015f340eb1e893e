package imports

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestModulesAgree: a module that holds packages of the root's module uses the same version of each other module as the
// root does. Otherwise a test in it would test another program than the one that is built, and the go command would
// compile nearly all packages once more for it.
func TestModulesAgree(t *testing.T) {
	root := filepath.Join("..", "..")
	wanted := requirements(t, filepath.Join(root, "go.mod"))
	for _, pattern := range []string{"*/go.mod", "*/*/go.mod", "*/*/*/go.mod"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			got := requirements(t, file)
			if _, ok := got[strings.TrimSuffix(module, "/")]; !ok {
				continue
			}
			for path, version := range got {
				if at, ok := wanted[path]; ok && at != version {
					t.Errorf("%s wants %s %s, the root's module %s", file, path, version, at)
				}
			}
		}
	}
}

// requirements returns the versions that a go.mod requires, by module.
func requirements(t *testing.T, file string) map[string]string {
	t.Helper()
	out, err := exec.Command("go", "mod", "edit", "-json", file).Output()
	if err != nil {
		t.Fatalf("go mod edit %s: %v", file, err)
	}
	var mod struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, require := range mod.Require {
		versions[require.Path] = require.Version
	}
	return versions
}
