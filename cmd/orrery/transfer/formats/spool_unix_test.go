//go:build unix

package formats

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/doc"
)

// Nothing is left of a file of rows that wait for the end of an export, also if that never comes.
func TestSpoolLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	s, err := newSpool(filepath.Join(dir, "out.csv"))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := s.add(doc.Doc(bson.Empty)); err != nil {
			t.Fatal(err)
		}
	}
	none := func() {
		t.Helper()
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%v, %v", left, err)
		}
	}
	none()
	n := 0
	if err := s.each(func(doc.Doc) error { n++; return nil }); err != nil || n != 3 {
		t.Errorf("%d rows, %v", n, err)
	}
	none()
}
