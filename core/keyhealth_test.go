package core

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/value"
)

// A report says which physical partition gets most of the request units, though the data is even. It says nothing about
// few of them, nor while partitions have been metered for different times. A container without a partition key isn't
// blamed for its key.
func TestAdviceOnUse(t *testing.T) {
	ctx, clk := context.Background(), clock.Fake(time.Unix(1_700_000_000, 0))
	e, err := Open(ctx, memkv.New(), Options{Clock: clk, MinSlots: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := e.EnsureDatabase(ctx, "db"); err != nil {
		t.Fatal(err)
	}
	sample := func(steps int) {
		for range steps {
			clk.Advance(10 * time.Second)
			e.store.Sample()
		}
	}
	const items = 200
	even := func(i int) int { return i % items }
	hot := func(int) int { return 7 }
	for _, x := range []struct {
		name, path string
		reads      int
		of         func(i int) int
		split      bool
		want       string
	}{
		{"even", "/pk", 400, even, false, "The partition key spreads the data evenly."},
		{"hot", "/pk", 400, hot, false, "The load is uneven: physical partition "},
		{"few", "/pk", 90, hot, false, "The partition key spreads the data evenly."},
		{"young", "/pk", 400, even, true, "The partition key spreads the data evenly."},
		{"ids", "/id", 400, even, false, "The partition key is the id: "},
		{"an id", "/id", 400, hot, false, "The load is uneven: physical partition "},
		{"fixed", "/_partitionKey", 400, hot, false,
			"The container has no partition key, so its data is never divided. It has 0 % of the size"},
	} {
		spec := ContainerSpec{ID: x.name, Throughput: Throughput{Manual: 20_000},
			PartitionKey: PartitionKeyDef{Paths: []string{x.path}}}
		if x.name == "fixed" {
			spec.PartitionKey.SystemKey, spec.Throughput.Manual = true, 10_000
		}
		c, err := e.CreateContainer(ctx, "db", spec)
		if err != nil {
			t.Fatal(err)
		}
		docs := make([]doc.Doc, items)
		for i := range docs {
			docs[i], err = doc.FromJSON(nil, fmt.Appendf(nil, `{"id":"%d","pk":"p%d"}`, i, i),
				doc.JSONOptions{Names: doc.NoSQL})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Write(ctx, Write{Kind: Create, Doc: docs[i]}); err != nil {
				t.Fatal(err)
			}
		}
		sample(8)
		for i := range x.reads {
			if x.split && i == x.reads-1 {
				if err := c.SplitPartition(ctx, "0"); err != nil {
					t.Fatal(err)
				}
			}
			n := x.of(i)
			pk, _, err := c.rt.KeyOf(docs[n])
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Read(ctx, pk, value.StringOf(fmt.Sprint(n))); err != nil {
				t.Fatal(err)
			}
		}
		sample(1)
		r, err := c.ReportKey(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(r.Advice, x.want) {
			t.Errorf("%s: %s, want %s", x.name, r.Advice, x.want)
		}
		if p, err := c.PartitionOf(PartitionKey{value.StringOf("p7")}); x.name == "hot" && (err != nil ||
			!strings.Contains(r.Advice, "partition "+p.ID+" has 100 % of the request units")) {
			t.Errorf("the hot key is in partition %s: %s (%v)", p.ID, r.Advice, err)
		}
	}
}
