package catalog

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/epk"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// Slots and partitions of a map are contiguous, and every placement is in the one that its bounds say.
func TestSlotMap(t *testing.T) {
	for _, n := range []struct{ slots, partitions int }{{1, 1}, {4, 1}, {8, 2}, {15, 3}} {
		m := newSlotMap(epk.V2, n.slots, n.partitions)
		if bad := m.verify(); bad != "" || m.MapVersion != firstMap {
			t.Fatalf("%d slots: %s, version %d", n.slots, bad, m.MapVersion)
		}
		var last []byte
		for p := range m.Partitions {
			from, to := m.Run(p)
			if to-from != n.slots/n.partitions {
				t.Errorf("partition %d of %d has slots %d to %d of %d", p, n.partitions, from, to, n.slots)
			}
			for i := from; i < to; i++ {
				min, max := m.Bounds(i, i+1)
				if !bytes.Equal(min, last) || (max == nil) != (i == n.slots-1) {
					t.Errorf("slot %d of %d holds %x to %x, the one before ends at %x", i, n.slots, min, max, last)
				}
				last = max
				for _, place := range [][]byte{min, append(bytes.Clone(min), 0)} {
					if m.Slot(place) != i || m.Partition(place) != p {
						t.Errorf("%x is in slot %d of partition %d, want %d and %d", place, m.Slot(place),
							m.Partition(place), i, p)
					}
				}
			}
		}
		if m.Slot(bytes.Repeat([]byte{255}, 16)) != n.slots-1 {
			t.Error("the greatest placement isn't in the last slot")
		}
	}
}

// A container's map is stored with its version. An entry without one is of an earlier program: then it is the first.
func TestSlotMapIsStored(t *testing.T) {
	ctx, eng := context.Background(), memkv.New()
	c, err := Open(eng, clock.New(), Settings{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateDatabase(ctx, "db", Throughput{}); err != nil {
		t.Fatal(err)
	}
	k, err := c.CreateContainer(ctx, "db", Spec{ID: "c", Throughput: Throughput{Manual: 20000},
		PartitionKey: PartitionKeyDef{Paths: []string{"/pk"}, Kind: "Hash", Version: 2}}, []byte("head"))
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []uint64{1, 7} {
		stored, m := *k, *k.SlotMap
		m.MapVersion, stored.SlotMap = version, &m
		b, err := encodeContainer(&stored)
		if err != nil {
			t.Fatal(err)
		}
		said := fmt.Appendf(nil, `"slotMap":%d,`, version)
		for _, without := range []bool{false, true} {
			want := version
			if without {
				if !bytes.Contains(b, said) {
					t.Fatalf("no %s in %s", said, b)
				}
				b, want = bytes.Replace(b, said, nil, 1), 1
			}
			got, err := decodeContainer(b, "db")
			if err != nil || got.MapVersion != want ||
				fmt.Sprint(got.Slots, got.Partitions) != fmt.Sprint(m.Slots, m.Partitions) {
				t.Errorf("version %d, left out %v: %+v, %v", version, without, got, err)
			}
		}
	}
}
