package pebblekv

import (
	"testing"

	"github.com/orrerydb/orrery/core/kv"
)

// Spare leaves the store the space that it needs: after it is used up new data is still accepted. Space that other
// programs take is subtracted at once.
func TestSpareLeavesTheStoresRoom(t *testing.T) {
	const disk = 256 << 20
	fs, log := newSmallFS(disk), &lines{}
	e := smallStore(t, fs, log)
	defer e.Close()
	if err := put(e, "k", []byte("v")); err != nil {
		t.Fatal(err)
	}
	n := e.Spare()
	if n <= 0 || n >= disk {
		t.Fatalf("%d bytes are spare of %d", n, disk)
	}
	fs.mu.Lock()
	fs.others += n
	fs.mu.Unlock()
	if left := e.Spare(); left > 1<<20 || left < -(8<<20) {
		t.Errorf("%d bytes are spare when %d are used", left, n)
	}
	if h := e.Health(); h.State != kv.Well {
		t.Errorf("health %+v", h)
	}
	fs.take(0)
	if left := e.Spare(); left >= 0 {
		t.Errorf("%d bytes are spare on a full disk", left)
	}
	fs.give()
}
