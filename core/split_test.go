package core_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/epk"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/internal/race"
)

// slotMap returns the current slot map of a container.
func slotMap(t testing.TB, c *core.Container) (m *catalog.SlotMap) {
	t.Helper()
	if err := c.ChangeMap(bg, func(now *catalog.SlotMap) (*catalog.SlotMap, error) {
		m = now
		return now, nil
	}); err != nil {
		t.Fatal(err)
	}
	return m
}

// slotNotes returns the number of notes of slots that remain to be removed.
func slotNotes(t testing.TB, eng kv.Engine) (n int) {
	t.Helper()
	s := kvtest.Snapshot(t, eng)
	defer s.Close()
	it, err := s.Iter(keys.MetaBounds(keys.MetaDroppedSlot))
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	return n
}

// nested returns the boundaries of n about equal parts of the hash, n a power of two up to 64. They include those of
// fewer parts.
func nested(n int) (out [][]byte) {
	all := epk.Split(epk.V2, 64)
	for i := 64 / n; i < 64; i += 64 / n {
		out = append(out, all[i-1])
	}
	return out
}

// onlySlots waits until a store has nothing of slots that the map of its container doesn't name, and no notes of such.
func onlySlots(t testing.TB, eng kv.Engine, c *core.Container) {
	t.Helper()
	known := map[uint32]bool{}
	for _, s := range slotMap(t, c).Slots {
		known[s.ID] = true
	}
	var odd []byte
	rest := time.Duration(overNetwork(1, 200)) * time.Millisecond // each look keeps the removal waiting
	end := time.Now().Add(time.Duration(overNetwork(20, 60)) * time.Second)
	for ; time.Now().Before(end); time.Sleep(rest) {
		odd = nil
		ks, _ := every(t, eng)
		for _, k := range ks {
			if s, kind, ok := keys.ParseSlot(k); ok && (!known[s.ID] || kind == keys.KindRemoved) {
				odd = k
			}
		}
		if odd == nil && slotNotes(t, eng) == 0 {
			return
		}
	}
	t.Errorf("key %x is left, and %d notes", odd, slotNotes(t, eng))
}

// splitSpec is a container with every kind of entry that a slot can have.
func splitSpec() core.ContainerSpec {
	never := int32(-1)
	return core.ContainerSpec{DefaultTTL: &never, LogMinutes: 60, UniqueKeys: [][]string{{"/u"}},
		IndexingPolicy: []byte(
			`{"compositeIndexes":[[{"path":"/n","order":"ascending"},{"path":"/s","order":"descending"}]]}`)}
}

func splitDoc(i, version int) string {
	ttl := ""
	if i%3 == 0 {
		ttl = `,"ttl":100000`
	}
	return fmt.Sprintf(`{"id":"%d","pk":"p%d","n":%d,"s":"s%d","u":"u%d.%d","a":[%d,"x"]%s}`, i, i%40, i%7, version, i,
		version, i, ttl)
}

// content returns all items of a container with LSN, number and time, in the order of creation.
func content(t testing.TB, c *core.Container) (out []string) {
	t.Helper()
	r, err := c.Query(bg, &exec.Query{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for r.Next() {
		it := r.Item()
		out = append(out, fmt.Sprint(json(it), " ", it.LSN, " ", it.Number, " ", it.Ticks))
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	slices.Sort(out)
	return out
}

// A container that was born with one slot has two, four, .. and 64, and one again. After each step every item is there
// with its number, LSN and time, the checker finds nothing, and nothing is left of the slots that were replaced.
func TestSlotsAreSplitAndJoined(t *testing.T) {
	t.Parallel()
	most := overNetwork(race.Fewer(64, 16), 4)
	for name, open := range engines {
		t.Run(name, func(t *testing.T) {
			eng := open(t)
			lease := time.Duration(overNetwork(500, 2000)) * time.Millisecond // a split that loses it ends
			o := core.Options{MinSlots: 1, ViewAge: time.Millisecond, Lease: lease}
			e, err := core.Open(bg, notClosed{eng}, o)
			if err != nil {
				t.Fatal(err)
			}
			c := newContainer(t, e, splitSpec())
			items := overNetwork(200, 60)
			for i := range items {
				put(t, c, core.Create, splitDoc(i, 0))
			}
			want, lsn := content(t, c), lastLSN(c)
			check := func(slots int) {
				t.Helper()
				if n := len(slotMap(t, c).Slots); n != slots {
					t.Fatalf("%d slots, want %d", n, slots)
				}
				got := content(t, c)
				if !slices.Equal(got, want) || counted(c) != int64(len(want)) || lastLSN(c) != lsn {
					t.Fatalf("%d slots: %d items, counted %d, LSN %d; want %d, LSN %d", slots, len(got), counted(c),
						lastLSN(c), len(want), lsn)
				}
				clean(t, e)
				if slots == 1 || !distant() { // over a network the removal waits for some leases
					onlySlots(t, eng, c)
				}
			}
			for n := 2; n <= most; n *= 2 {
				for _, at := range nested(n) {
					if err := c.SplitSlot(bg, at); err != nil {
						t.Fatal(err)
					}
				}
				check(n)
			}
			// after a restart too, and writes go on with greater LSNs and numbers
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			o.MinSlots = 0
			if e, err = core.Open(bg, eng, o); err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			if c, err = e.Container("db", "c"); err != nil {
				t.Fatal(err)
			}
			check(most)
			for i := range 50 {
				put(t, c, core.Replace, splitDoc(i, 1))
				put(t, c, core.Create, splitDoc(items+i, 0))
			}
			want, lsn = content(t, c), lastLSN(c)
			for n := most / 2; n >= 1; n /= 2 {
				joined := nested(n)
				for _, at := range nested(2 * n) {
					if slices.ContainsFunc(joined, func(b []byte) bool { return slices.Equal(b, at) }) {
						continue
					}
					if err := c.JoinSlots(bg, at); err != nil {
						t.Fatal(err)
					}
				}
				check(n)
			}
		})
	}
}
