package core_test

import (
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
	"github.com/orrerydb/orrery/internal/race"
)

// A split writes each copied key once to the disk, and a join too. By commits the log alone would get more than twice
// the documents: their index entries are as long.
func TestSplitWritesOnce(t *testing.T) {
	race.Alone(t)
	t.Parallel()
	items := 2000
	kve, err := pebblekv.Open(t.TempDir(),
		pebblekv.Options{Relaxed: true, Scanned: core.OnlyScanned, Kept: core.GotSingly})
	if err != nil {
		t.Fatal(err)
	}
	e, err := core.Open(bg, kve, core.Options{MinSlots: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	c := newContainer(t, e, core.ContainerSpec{PartitionKey: core.PartitionKeyDef{Paths: []string{"/tenant"}}})
	docs := 0
	for i := range items {
		put(t, c, core.Create, order(i))
		docs += len(order(i))
	}
	at := nested(2)[0]
	for _, move := range []func([]byte) error{
		func(at []byte) error { return c.SplitSlot(bg, at) }, func(at []byte) error { return c.JoinSlots(bg, at) },
	} {
		before := atRest(kve)
		if err := move(at); err != nil {
			t.Fatal(err)
		}
		wrote := kve.Metrics().Written - before
		t.Logf("%d bytes for documents of %d bytes", wrote, docs)
		if wrote == 0 || wrote > uint64(docs)*3/2 {
			t.Errorf("%d bytes were written for documents of %d bytes", wrote, docs)
		}
	}
}

// atRest waits until a store writes nothing more, and returns what it has written.
func atRest(kve *pebblekv.Engine) (written uint64) {
	for still := 0; still < 20; time.Sleep(100 * time.Millisecond) {
		still++
		if now := kve.Metrics().Written; now != written {
			written, still = now, 0
		}
	}
	return written
}
