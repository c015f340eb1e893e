package crashtest

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/internal/histories"
)

// droppedContainers is the number of containers in a database that is dropped.
const droppedContainers = 6

// makeAndDrop repeatedly makes databases with containers and items, and drops them, so that some kills interrupt a drop
// or the removal of dropped data.
func makeAndDrop(ctx context.Context, eng *core.Engine) {
	for i := 0; ; i++ {
		if err := makeAndDropOne(ctx, eng, fmt.Sprint("drop", i%3)); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
	}
}

func makeAndDropOne(ctx context.Context, eng *core.Engine, db string) error {
	if _, err := eng.EnsureDatabase(ctx, db); err != nil {
		return err
	}
	for k := range droppedContainers {
		c, err := eng.CreateContainer(ctx, db,
			core.ContainerSpec{ID: fmt.Sprint("c", k), PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}})
		if status.Is(err, status.Conflict) { // from before a kill
			continue
		}
		if err == nil {
			err = histories.Do(ctx, c, 0, 0, histories.After(0, 0))
		}
		if err != nil {
			return err
		}
	}
	return eng.DropDatabase(ctx, db)
}

// allDropped drops the databases that a child has left, waits until their data is removed, and checks that the store
// has data only of the one remaining container.
func allDropped(t *testing.T, dir string) {
	t.Helper()
	ctx := context.Background()
	eng, _, err := openStore(ctx, dir, false)
	if err != nil {
		t.Fatal(err)
	}
	dbs, err := eng.Databases(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dbs {
		if d.ID != database {
			if err := eng.DropDatabase(ctx, d.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	for end := time.Now().Add(time.Minute); eng.DropsLeft() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("what was dropped isn't removed")
		}
	}
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
	e, err := pebblekv.Open(dir, pebblekv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	snap := kvtest.Snapshot(t, e)
	defer snap.Close()
	lo, hi := keys.DataBounds()
	it, err := snap.Iter(lo, hi)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	gens := map[uint32]bool{}
	for ok := it.First(); ok; ok = it.Next() {
		g, _ := keys.Generation(it.Key())
		gens[g] = true
	}
	if len(gens) != 1 {
		t.Errorf("the store has data of %d containers", len(gens))
	}
	for _, kind := range []keys.MetaKind{keys.MetaDropped, keys.MetaDroppedDatabase} {
		it.Reset(keys.MetaBounds(kind))
		if it.First() {
			t.Errorf("a note is left: %x", it.Key())
		}
	}
}
