package pebblekv

import (
	"path/filepath"
	"testing"
)

// A linked store shares the tables and logs of its source. They stay as they are when the source goes on writing, also
// over the moment at which it no longer needs them.
func TestLinkedFilesStay(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	fillAndClose := func(begin, n int) {
		e := mustOpen(t, from, Options{MemTableMB: 1})
		fill(t, e, begin, n)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	fillAndClose(0, 1000)
	if err := Link(from, to); err != nil {
		t.Fatal(err)
	}
	before := fingerprint(t, to)
	fillAndClose(1000, 5000)
	if after := fingerprint(t, to); after != before {
		t.Errorf("the linked store was\n%s\nand is\n%s", before, after)
	}
	e := mustOpen(t, to, Options{})
	defer e.Close()
	if n := count(t, e); n != 1000 {
		t.Errorf("it has %d keys, want 1000", n)
	}
}
