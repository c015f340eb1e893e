package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/epk"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
)

// Slots and partitions of a map are contiguous, and each placement is in the one whose bounds contain it.
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
					for before := range p + 1 {
						if got := m.PartitionFrom(before, place); got != p {
							t.Errorf("%x is in partition %d, looked for from %d on, want %d", place, got, before, p)
						}
					}
				}
			}
		}
		if m.Slot(bytes.Repeat([]byte{255}, 16)) != n.slots-1 {
			t.Error("the greatest placement isn't in the last slot")
		}
	}
}

// A container's map is stored with its version. An entry without a version is from an older program: it is version 1.
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

// A map answers for all earlier versions which placements a slot had, as those versions themselves do. Slots and
// partitions stay contiguous.
func TestFormerSlots(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	m := newSlotMap(epk.V2, 4, 2)
	all := []*SlotMap{m}
	for range 300 {
		i := r.IntN(len(m.Slots))
		switch min, max := m.Bounds(i, i+1); {
		case r.IntN(2) == 0 && len(m.Slots) < 12:
			at := append(bytes.Clone(min), byte(1+r.IntN(200)))
			if max != nil && bytes.Compare(at, max) >= 0 {
				continue
			}
			m = m.Split(i, at, m.NextSlot, m.NextSlot+1)
		case i+1 < len(m.Slots) && !m.PartitionBegins(i+1):
			m = m.Join(i, m.NextSlot)
		default:
			continue
		}
		if bad := m.verify(); bad != "" || m.MapVersion != all[len(all)-1].MapVersion+1 || len(m.Partitions) != 2 ||
			!bytes.Equal(m.Slots[m.Partitions[1].First].Min, all[0].Slots[2].Min) {
			t.Fatalf("%s: %+v", bad, m)
		}
		all = append(all, m)
	}
	if len(all) < 100 || len(m.Gone) < 40 {
		t.Fatalf("only %d versions, %d boundaries gone", len(all), len(m.Gone))
	}
	places := [][]byte{{0x99, 0x99}}
	for _, v := range all {
		for _, s := range v.Slots {
			places = append(places, s.Min)
		}
	}
	for _, v := range all {
		for _, min := range places {
			i := v.Slot(min)
			was := bytes.Equal(v.Slots[i].Min, min)
			_, end := v.Bounds(i, i+1)
			max, ok := m.Former(v.MapVersion, min)
			if ok != was || ok && (!bytes.Equal(max, end) || (max == nil) != (end == nil)) {
				t.Fatalf("version %d at %x: %x %v, want %x %v", v.MapVersion, min, max, ok, end, was)
			}
		}
	}
	if _, ok := m.Former(m.MapVersion+1, nil); ok {
		t.Error("a version that doesn't exist yet had a slot")
	}
}

// A map keeps a bounded number of former boundaries. It says so about versions that had others.
func TestFormerBoundariesAreBounded(t *testing.T) {
	m := newSlotMap(epk.V2, 1, 1)
	first := m.MapVersion
	for range maxGone + 2 {
		m = m.Split(0, []byte{0x10}, m.NextSlot, m.NextSlot+1)
		m = m.Join(0, m.NextSlot)
	}
	if len(m.Gone) != maxGone {
		t.Errorf("%d boundaries", len(m.Gone))
	}
	for version, want := range map[uint64]bool{first: false, first + 1: false, m.Since - 1: false, m.Since: true,
		m.MapVersion: true} {
		if _, ok := m.Former(version, nil); ok != want {
			t.Errorf("version %d of %d: %v", version, m.MapVersion, ok)
		}
	}
	if max, ok := m.Former(m.Since+1, nil); !ok || !bytes.Equal(max, []byte{0x10}) {
		t.Errorf("the first slot ended at %x, %v", max, ok)
	}
}

// A map is replaced only if it is the one that the change was made for. Reserved ids are never given out twice, and the
// slots with notes are those that no map names.
func TestMapsAreReplaced(t *testing.T) {
	ctx, eng := context.Background(), memkv.New()
	c, err := Open(eng, clock.New(), Settings{MinSlots: 2})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateDatabase(ctx, "db", Throughput{}); err != nil {
		t.Fatal(err)
	}
	k, err := c.CreateContainer(ctx, "db", Spec{ID: "c",
		PartitionKey: PartitionKeyDef{Paths: []string{"/pk"}, Kind: "Hash", Version: 2}}, []byte("head"))
	if err != nil {
		t.Fatal(err)
	}
	notes := func(want ...uint32) {
		t.Helper()
		left, err := c.Left(ctx)
		var ids []uint32
		for _, s := range left.Slots {
			ids = append(ids, s.ID)
		}
		if err != nil || !slices.Equal(ids, want) {
			t.Fatalf("notes of slots %v, %v; want %v", ids, err, want)
		}
	}
	vain, err := c.ReserveSlots(ctx, k, 2)
	if err != nil || vain != 3 {
		t.Fatal(vain, err)
	}
	notes(3, 4)
	to, err := c.ReserveSlots(ctx, k, 2)
	if err != nil || to != 5 {
		t.Fatal(to, err)
	}
	notes(3, 4, 5, 6)
	old := k.SlotMap // its next id is an outdated one
	var with kv.Batch
	with.Put([]byte("\x20more"), []byte("1"))
	next := old.Split(0, []byte{0x10}, to, to+1)
	now, err := c.ReplaceMap(ctx, k, old, next, &with, kv.Precondition{Key: []byte("\x20more"), Expect: kv.Absent})
	if err != nil || now.MapVersion != 2 || now.NextSlot != 7 || now.Version != k.Version {
		t.Fatalf("%+v, %v", now, err)
	}
	notes(1, 3, 4)
	if _, err := c.ReplaceMap(ctx, k, old, next, nil); !errors.Is(err, ErrMapChanged) {
		t.Errorf("a change of a former map: %v", err)
	}
	third := now.SlotMap.Join(0, 7)
	if _, err := c.ReplaceMap(ctx, k, now.SlotMap, third, nil,
		kv.Precondition{Key: []byte("\x20more"), Expect: kv.Absent}); err == nil {
		t.Error("a change whose precondition fails")
	}
	notes(1, 3, 4)
	if err := c.RemovedSlots(ctx, []keys.Slot{{Gen: k.Gen, ID: 3}, {Gen: k.Gen, ID: 4}}); err != nil {
		t.Fatal(err)
	}
	notes(1)
	again, err := Open(eng, clock.New(), Settings{})
	if err != nil {
		t.Fatal(err)
	}
	read, err := again.Container(context.Background(), "db", "c")
	if err != nil || fmt.Sprint(read.SlotMap) != fmt.Sprint(now.SlotMap) {
		t.Errorf("read back: %+v, want %+v, %v", read.SlotMap, now.SlotMap, err)
	}
	if _, err := c.DropContainer(ctx, "db", "c"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ReserveSlots(ctx, k, 1); !status.Is(err, status.NotFound) {
		t.Errorf("ids of a dropped container: %v", err)
	}
}
