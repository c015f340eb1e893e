package files

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// After a power failure everything that was replaced or created exists, and nothing of what failed does.
func TestReplaceAndMakeDirStay(t *testing.T) {
	fs := vfs.NewCrashableMem()
	if err := MakeDir(fs, "/a/b/c"); err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"first", "second"} {
		if err := Replace(fs, "/a/b/c/f", ".tmp", []byte(content)); err != nil {
			t.Fatal(err)
		}
		after := fs.CrashClone(vfs.CrashCloneCfg{})
		if b, err := Read(after, "/a/b/c/f"); string(b) != content {
			t.Errorf("%q, %v instead of %q", b, err, content)
		}
	}
	if err := Replace(fs, "/missing/f", ".tmp", nil); !IsMissing(err) {
		t.Errorf("a file in a directory that isn't there: %v", err)
	}
	if _, err := Read(fs, "/a/b/c/f.tmp"); !IsMissing(err) {
		t.Errorf("what a file was made by way of: %v", err)
	}
}
