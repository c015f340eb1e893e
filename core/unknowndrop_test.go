package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
)

// unknownDrops are operations that leave data to be removed.
var unknownDrops = map[string]func(e *core.Engine, c *core.Container) error{
	"drop":          func(e *core.Engine, _ *core.Container) error { return e.DropContainer(bg, "db", "other") },
	"drop database": func(e *core.Engine, _ *core.Container) error { return e.DropDatabase(bg, "more") },
	"rename": func(e *core.Engine, _ *core.Container) error {
		_, err := e.RenameContainer(bg, "db", "third", "other", true)
		return err
	},
	"split": func(_ *core.Engine, c *core.Container) error { return c.SplitSlot(bg, nested(4)[0]) },
	"join":  func(_ *core.Engine, c *core.Container) error { return c.JoinSlots(bg, nested(2)[0]) },
	"split a partition": func(_ *core.Engine, c *core.Container) error {
		return c.SplitPartition(bg, c.Known()[0].ID)
	},
}

// A disk that doesn't answer for some seconds leaves the outcome of a commit unknown. Whichever commit of an operation
// that is, its data is removed when the disk answers, without a restart, and partitions are those that are stored.
func TestDropsOfUnknownOutcome(t *testing.T) {
	for name, do := range unknownDrops {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, times := range []int{1, 3} {
				for n := 0; unknownDrop(t, name, do, n, times); n++ {
				}
			}
		})
	}
}

// unknownDrop runs an operation whose waits for the disk fail so many times, from the n-th on. It returns false if
// there were fewer.
func unknownDrop(t *testing.T, name string, do func(*core.Engine, *core.Container) error, n, times int) bool {
	mem := kv.Checked(memkv.New())
	h := &hooks{Engine: notClosed{mem}}
	e, err := core.Open(bg, h, core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := newContainer(t, e, splitSpec())
	if name == "join" || name == "split a partition" {
		if err := c.SplitSlot(bg, nested(2)[0]); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20 {
		put(t, c, core.Create, splitDoc(i, 0))
	}
	if _, err := e.CreateDatabase(bg, core.DatabaseSpec{ID: "more"}); err != nil {
		t.Fatal(err)
	}
	for _, of := range [][2]string{{"db", "other"}, {"db", "third"}, {"more", "c"}} {
		spec := core.ContainerSpec{ID: of[1], PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}}
		o, err := e.CreateContainer(bg, of[0], spec)
		if err != nil {
			t.Fatal(err)
		}
		put(t, o, core.Create, splitDoc(1, 0))
	}
	left := n
	h.set(func(s *hookSet) {
		s.wait = func() error {
			if left--; left < 0 && left >= -times {
				return fmt.Errorf("%w: the disk doesn't answer", kv.ErrUnknownOutcome)
			}
			return nil
		}
	})
	err = do(e, c)
	if err != nil && !status.Is(err, status.UnknownOutcome) && !status.Is(err, status.Unavailable) {
		t.Errorf("%s, wait %d: %v", name, n, err)
	}
	for end := time.Now().Add(20 * time.Second); e.DropsLeft() > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	hit, shown := left < 0, len(c.Known())
	h.set(func(s *hookSet) { s.wait = nil })
	heads, own := map[keys.Slot]bool{}, map[uint32]bool{}
	for _, s := range slotMap(t, c).Slots {
		own[s.ID] = true
	}
	ks, _ := every(t, mem)
	first, _ := keys.Generation(ks[0]) // of c
	for _, k := range ks {
		s, kind, _ := keys.ParseSlot(k)
		if heads[s] = heads[s] || kind == keys.KindHead && (s.Gen != first || own[s.ID]); !heads[s] {
			t.Fatalf("%s, wait %d (%v): key %x is left", name, n, err, k)
		}
	}
	clean(t, e)
	_ = e.Close()
	if e, err = core.Open(bg, mem, core.Options{}); err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if c, err = e.Container("db", "c"); err != nil {
		t.Fatal(err)
	}
	if stored := len(c.Known()); shown != stored {
		t.Errorf("%s, wait %d: %d partitions, and %d are stored", name, n, shown, stored)
	}
	return hit
}
