package store

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/work"
)

// A container without a partition key takes no more data above 10 GB, or above the limit of a logical partition if that
// is smaller. The heads of the logical partitions say that they hold so much: nobody writes it here.
func TestFixedContainersAreFullAt10GB(t *testing.T) {
	ctx := context.Background()
	for _, x := range []struct {
		fixed bool
		limit int64 // of a logical partition, 0: the default
		holds int64
		full  string
	}{
		{true, 0, 10<<30 - 1, "10 GB"},
		{true, 0, 10<<30 - 1000, ""},
		{true, 5 << 30, 5<<30 - 1, "5 GB"},
		{true, 30 << 30, 10<<30 - 1, "10 GB"},
		{false, 0, 10<<30 - 1, ""},
		{false, 0, 20<<30 - 1, "20 GB"},
	} {
		eng, clk, bg := memkv.New(), clock.New(), work.New(nil)
		cat, err := catalog.Open(eng, clk, catalog.Settings{MinSlots: 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cat.CreateDatabase(ctx, "db", catalog.Throughput{}); err != nil {
			t.Fatal(err)
		}
		def, err := cat.CreateContainer(ctx, "db", catalog.Spec{ID: "c", PartitionKey: catalog.PartitionKeyDef{
			Paths: []string{"/_partitionKey"}, Kind: "Hash", Version: 2, SystemKey: x.fixed}}, FirstHead())
		if err != nil {
			t.Fatal(err)
		}
		put := func(id int) error {
			c, err := Open(eng, cat, clk, Limits{LogicalPartition: x.limit}, bg).Container(ctx, def)
			if err != nil {
				t.Fatal(err)
			}
			d, err := doc.FromJSON(nil, fmt.Appendf(nil, `{"id":"%d"}`, id), doc.JSONOptions{Names: doc.NoSQL})
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Write(ctx, &Write{Kind: Create, Doc: d})
			return err
		}
		if err := put(1); err != nil {
			t.Fatal(err)
		}
		for slot := range def.SlotKeys() {
			key := only(t, eng, slot)
			var b kv.Batch
			b.Put(key, (&LogicalHead{LSN: 1, Items: 1, Bytes: x.holds}).append(nil))
			if _, err := eng.Write(ctx, &b, nil); err != nil {
				t.Fatal(err)
			}
		}
		err = put(2)
		want := "Partition key reached maximum size of " + x.full
		if x.full == "" && err != nil || x.full != "" && (!status.Is(err, status.Forbidden) ||
			status.From(err).Sub != status.SubPartitionKeyFull || !strings.HasPrefix(status.From(err).Msg, want)) {
			t.Errorf("%+v: %v", x, err)
		}
		bg.Close()
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	}
}

// only returns the key of the head of the only logical partition in a slot.
func only(t *testing.T, eng kv.Engine, slot keys.Slot) (key []byte) {
	t.Helper()
	snap, err := eng.Snapshot(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	it, err := snap.Iter(keys.KindBounds(slot, keys.KindLogical))
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		key, n = bytes.Clone(it.Key()), n+1
	}
	if n != 1 || it.Err() != nil {
		t.Fatalf("%d logical partitions, %v", n, it.Err())
	}
	return key
}
