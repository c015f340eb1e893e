package store

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/work"
	"github.com/orrerydb/orrery/internal/race"
)

// checkedContainer has items in one slot, each in its own logical partition, and about ten times as many keys.
func checkedContainer(t *testing.T, items int) (*Container, kv.Engine) {
	t.Helper()
	ctx, eng, clk := context.Background(), memkv.New(), clock.New()
	cat, err := catalog.Open(eng, clk, catalog.Settings{MinSlots: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cat.CreateDatabase(ctx, "db", catalog.Throughput{}); err != nil {
		t.Fatal(err)
	}
	never := int32(-1)
	def, err := cat.CreateContainer(ctx, "db", catalog.Spec{ID: "c", DefaultTTL: &never, UniqueKeys: [][]string{{"/a"}},
		PartitionKey: catalog.PartitionKeyDef{Paths: []string{"/pk"}, Kind: "Hash", Version: 2}}, FirstHead())
	if err != nil {
		t.Fatal(err)
	}
	bg := work.New(nil)
	t.Cleanup(func() {
		bg.Close()
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	})
	c, err := Open(eng, cat, clk, Limits{}, bg).Container(ctx, def)
	if err != nil {
		t.Fatal(err)
	}
	for i := range items {
		d, err := doc.FromJSON(nil, fmt.Appendf(nil, `{"id":"%d","pk":"p%[1]d","a":%[1]d,"b":"b%[1]d","c":%d,`+
			`"ttl":100000}`, i, i%7),
			doc.JSONOptions{Names: doc.NoSQL})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(ctx, &Write{Kind: Create, Doc: d}); err != nil {
			t.Fatal(err)
		}
	}
	return c, eng
}

// liveHeap returns the bytes in use.
func liveHeap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A check uses the same memory for ten times as many keys, also when it names problems.
func TestCheckTakesConstantMemory(t *testing.T) {
	race.Alone(t)
	const measures = 8
	for _, damaged := range []bool{false, true} {
		peak := func(items int) (most int64, read int) {
			c, eng := checkedContainer(t, items)
			if damaged {
				lo, hi := keys.KindBounds(c.slotList()[0].key, keys.KindNumber)
				if err := eng.DropRange(context.Background(), lo, hi); err != nil {
					t.Fatal(err)
				}
			}
			steps, problems := 0, 0
			begun := int64(liveHeap())
			err := c.Check(context.Background(), Watch{
				Problem: func(string) { problems++ },
				Pause: func(n int) error {
					read += n
					if steps++; steps%(items*10/checkStep/measures) == 0 {
						most = max(most, int64(liveHeap())-begun)
					}
					return nil
				},
			})
			if err != nil || (problems > 0) != damaged {
				t.Errorf("%d items, damaged %v: %d problems, %v", items, damaged, problems, err)
			}
			return most, read
		}
		few, fewKeys := peak(2_000)
		many, manyKeys := peak(20_000)
		t.Logf("damaged %v: %d bytes for %d keys, %d for %d", damaged, few, fewKeys, many, manyKeys)
		if fewKeys < 20_000 || manyKeys < 9*fewKeys {
			t.Fatalf("%d and %d keys are too few", fewKeys, manyKeys)
		}
		if many > few+int64(manyKeys) { // one byte for each key
			t.Errorf("damaged %v: %d bytes for %d keys, %d for %d", damaged, few, fewKeys, many, manyKeys)
		}
	}
}
