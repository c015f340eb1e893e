package core_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
	"github.com/orrerydb/orrery/core/value"
)

// diskEngine is a core over its own store on disk, with a cache of values.
func diskEngine(t *testing.T, o pebblekv.Options) (*core.Engine, *pebblekv.Engine) {
	t.Helper()
	o.Scanned, o.Kept, o.Relaxed = core.OnlyScanned, core.GotSingly, true
	k, err := pebblekv.Open(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	e, err := core.Open(bg, k, core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e, k
}

// Dropping a container removes no cached items of other containers.
func TestDroppedContainerLeavesTheOthersCached(t *testing.T) {
	e, k := diskEngine(t, pebblekv.Options{})
	stays := newContainer(t, e, core.ContainerSpec{ID: "stays"})
	goes := newContainer(t, e, core.ContainerSpec{ID: "goes"})
	const n = 50
	read := func(c *core.Container) {
		for i := range n {
			if _, err := c.Read(bg, pk("a"), value.StringOf(fmt.Sprint(i))); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range n {
		for _, c := range []*core.Container{stays, goes} {
			put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"a"}`, i))
		}
	}
	read(stays)
	if err := e.DropContainer(bg, "db", "goes"); err != nil {
		t.Fatal(err)
	}
	before := k.Metrics()
	read(stays)
	after := k.Metrics()
	if hits, misses := after.ValueHits-before.ValueHits, after.ValueMisses-before.ValueMisses; hits < n || misses > 0 {
		t.Errorf("%d items were found in the cache and %d weren't", hits, misses)
	}
}

// The space of a dropped container is freed without further writes: of data in tables, of data in the memtable, and
// next to a larger container that stays.
func TestDroppedContainersSpaceComesBack(t *testing.T) {
	for _, tc := range []struct {
		name  string
		items int // of 2 KB
		stays int
		flush bool // before the drop
	}{
		{"in the memtable", 1500, 0, false},
		{"in tables", 6000, 0, true},
		{"beside a larger one", 1500, 8000, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			e, k := diskEngine(t, pebblekv.Options{MemTableMB: 4})
			fill := func(name string, n int) {
				c := newContainer(t, e, core.ContainerSpec{ID: name})
				for i := range n {
					put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p%d","t":"%s"}`, i, i%10, noise(i)))
				}
			}
			fill("stays", tc.stays)
			fill("goes", tc.items)
			lo, hi := keys.GenerationBounds(2)
			for end := time.Now().Add(time.Minute); tc.flush; time.Sleep(20 * time.Millisecond) {
				size, err := k.Size(lo, hi)
				if err != nil || time.Now().After(end) {
					t.Fatalf("%d bytes of the container in tables, %v", size, err)
				}
				if size >= uint64(tc.items)*500 && k.Metrics().Runs == 0 {
					break
				}
			}
			full := k.Metrics().DiskBytes
			if err := e.DropContainer(bg, "db", "goes"); err != nil {
				t.Fatal(err)
			}
			// The remaining data has its size and as much again for obsolete tables, and a small store a log.
			most := full*uint64(tc.stays)/uint64(tc.stays+tc.items)*5/4 + 2<<20
			for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
				size, err := k.Size(lo, hi)
				if err != nil {
					t.Fatal(err)
				}
				m := k.Metrics()
				if m.DiskBytes <= most && size < 64<<10 {
					return
				}
				if time.Now().After(end) {
					t.Fatalf("of %d bytes on disk %d are left, at most %d are expected; %d of the container", full,
						m.DiskBytes, most, size)
				}
			}
		})
	}
}

// noise returns 2 KB of text that hardly compresses, the same for the same i.
func noise(i int) string {
	var b strings.Builder
	for x := uint64(i)*2 + 1; b.Len() < 2000; {
		x = x*6364136223846793005 + 1442695040888963407
		fmt.Fprintf(&b, "%x", x)
	}
	return b.String()
}
