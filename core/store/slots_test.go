package store

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/core/work"
)

// slotted is an empty container of four slots.
func slotted(t *testing.T) *Container { return slottedOn(t, memkv.New()) }

// slottedOn is slotted with a store.
func slottedOn(t *testing.T, eng kv.Engine) *Container {
	t.Helper()
	ctx, clk := context.Background(), clock.New()
	cat, err := catalog.Open(eng, clk, catalog.Settings{MinSlots: 4})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cat.CreateDatabase(ctx, "db", catalog.Throughput{}); err != nil {
		t.Fatal(err)
	}
	def, err := cat.CreateContainer(ctx, "db", catalog.Spec{ID: "c",
		PartitionKey: catalog.PartitionKeyDef{Paths: []string{"/pk"}, Kind: "Hash", Version: 2}}, FirstHead())
	if err != nil {
		t.Fatal(err)
	}
	bg := work.New(nil)
	t.Cleanup(bg.Close)
	c, err := Open(eng, cat, clk, Limits{}, bg).Container(ctx, def)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// raise gives a container the next version of its map: with the same slots, or with others, loaded from the stored
// heads.
func raise(t *testing.T, c *Container, others bool) {
	t.Helper()
	was := c.Slots()
	m := *was.m
	m.MapVersion++
	next := &Slots{m: &m, all: was.all}
	if others {
		again, err := c.st.load(context.Background(), c.Def())
		if err != nil {
			t.Fatal(err)
		}
		next.all = again.slotList()
		for _, sl := range next.all {
			sl.c = c
		}
	}
	if !c.slots.CompareAndSwap(was, next) && others {
		t.Fatal("the map was changed by somebody else")
	}
}

func counted(t *testing.T, pk string, n int64) []byte {
	t.Helper()
	d, err := doc.FromJSON(nil, fmt.Appendf(nil, `{"id":"i","pk":%q,"n":%d}`, pk, n), doc.JSONOptions{Names: doc.NoSQL})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// increment is a write that adds one to an item's n. It calls seen each time it has read the item.
func increment(t *testing.T, pk string, seen func()) Write {
	return Write{Kind: Update, PK: PartitionKey{value.StringOf(pk)}, ID: value.StringOf("i"),
		Update: func(old *Item) (Change, error) {
			seen()
			n := int64(0)
			if old != nil {
				n = doc.Get(old.Doc, "n").Int()
			}
			return Change{Doc: counted(t, pk, n+1)}, nil
		}}
}

// A write finds its slot in one version of the map, and another version under the latch. Then it finds its slot again,
// reads again what its result depends on, and is done once.
func TestWritesFollowTheSlotMap(t *testing.T) {
	ctx := context.Background()
	for name, write := range map[string]func(c *Container, seen func()) error{
		"one": func(c *Container, seen func()) error {
			w := increment(t, "a", seen)
			res, err := c.Write(ctx, &w)
			if err == nil && res.Slot != c.Slots().at(res.Slot.Min()) {
				t.Error("the result names a slot that is no more")
			}
			return err
		},
		"many": func(c *Container, seen func()) error {
			other := increment(t, "a", func() {}) // in the same slot, so both share a commit
			other.ID, other.Update = value.StringOf("j"), func(*Item) (Change, error) {
				d, err := doc.FromJSON(nil, []byte(`{"id":"j","pk":"a"}`), doc.JSONOptions{Names: doc.NoSQL})
				return Change{Doc: d}, err
			}
			for _, o := range c.WriteMany(ctx, []Write{increment(t, "a", seen), other}, false) {
				if o.Err != nil {
					return o.Err
				}
			}
			return nil
		},
		"many in order": func(c *Container, seen func()) error {
			for _, o := range c.WriteMany(ctx, []Write{increment(t, "a", seen), increment(t, "b", func() {})}, true) {
				if o.Err != nil {
					return o.Err
				}
			}
			return nil
		},
		"transaction": func(c *Container, seen func()) error {
			_, _, err := c.WithTx(ctx, PartitionKey{value.StringOf("a")}, func(tx *Tx) error {
				w := increment(t, "a", seen)
				_, err := tx.Write(&w)
				return err
			})
			return err
		},
	} {
		for _, others := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, other slots %v", name, others), func(t *testing.T) {
				c := slotted(t)
				w := increment(t, "a", func() {})
				if _, err := c.Write(ctx, &w); err != nil {
					t.Fatal(err)
				}
				runs := 0
				err := write(c, func() {
					if runs++; runs == 1 {
						raise(t, c, others)
					}
				})
				if err != nil {
					t.Fatal(err)
				}
				if runs != 2 {
					t.Errorf("the item was read %d times, not once under each version", runs)
				}
				it, err := c.Read(ctx, PartitionKey{value.StringOf("a")}, value.StringOf("i"))
				if err != nil || doc.Get(it.Doc, "n").Int() != 2 {
					t.Errorf("item %+v, %v", it, err)
				}
				if err := c.Check(ctx, Watch{Problem: func(p string) { t.Error(p) }}); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// Writers and readers continue while the map changes again and again: no write is lost or done twice, and there is no
// error.
func TestWritersMeetNewSlotMaps(t *testing.T) {
	ctx := context.Background()
	c := slotted(t)
	const writers, rounds, keys = 6, 120, 8
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for n := range rounds {
				pk := fmt.Sprint("p", (n+w)%keys)
				var err error
				switch n % 3 {
				case 0:
					one := increment(t, pk, func() {})
					_, err = c.Write(ctx, &one)
				case 1:
					o := c.WriteMany(ctx,
						[]Write{increment(t, pk, func() {}), increment(t, "also "+pk, func() {})}, n%2 == 0)
					for i := range o {
						if o[i].Err != nil {
							err = o[i].Err
						}
					}
				default:
					_, _, err = c.WithTx(ctx, PartitionKey{value.StringOf(pk)}, func(tx *Tx) error {
						one := increment(t, pk, func() {})
						_, err := tx.Write(&one)
						return err
					})
				}
				if err != nil {
					t.Error(err)
					return
				}
				if n%8 == w {
					raise(t, c, false)
				}
				if _, err := c.Read(ctx, PartitionKey{value.StringOf(pk)}, value.StringOf("i")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	sum := int64(0)
	for k := range keys {
		for _, pk := range []string{fmt.Sprint("p", k), fmt.Sprint("also p", k)} {
			if it, err := c.Read(ctx, PartitionKey{value.StringOf(pk)}, value.StringOf("i")); err == nil {
				sum += doc.Get(it.Doc, "n").Int()
			}
		}
	}
	if want := int64(writers * rounds * 4 / 3); sum != want {
		t.Errorf("%d increments are there, %d were acknowledged", sum, want)
	}
	if v := c.Slots().m.MapVersion; v < 10 {
		t.Errorf("the map came to version %d only", v)
	}
	if err := c.Check(ctx, Watch{Problem: func(p string) { t.Error(p) }}); err != nil {
		t.Error(err)
	}
}

// Two processes that share a store know nothing of each other's commits until a commit is refused. From then on a
// process doesn't use what it knows only from its own commits: the ids of a slot, and the floors that it raises.
func TestASlotThatAnotherProcessHasWrittenTo(t *testing.T) {
	ctx := context.Background()
	c := slotted(t)
	sl := c.Slots().at(nil)
	pk := ""
	for i := 0; pk == ""; i++ {
		p := fmt.Sprint(i)
		if place, _, _, err := c.Place(PartitionKey{value.StringOf(p)}); err != nil {
			t.Fatal(err)
		} else if c.Slots().at(place) == sl {
			pk = p
		}
	}
	create := func(c *Container, id string) error {
		d, err := doc.FromJSON(nil, fmt.Appendf(nil, `{"id":%q,"pk":%q}`, id, pk), doc.JSONOptions{Names: doc.NoSQL})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Write(ctx, &Write{Kind: Create, Doc: d})
		return err
	}
	if err := create(c, "a"); err != nil {
		t.Fatal(err)
	}
	other, err := c.st.load(context.Background(), c.Def())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.makeIDFilter(sl); err != nil || sl.ids.Load() == nil {
		t.Fatal("no filter", err)
	}
	half, snap, err := c.beginIDFilter(sl) // a filter that is being made
	if err != nil || half == nil {
		t.Fatal(err)
	}
	defer snap.Close()
	raising, was, next, err := c.beginRaise(sl) // and floors that are being raised
	if err != nil {
		t.Fatal(err)
	}
	if err := create(other, "b"); err != nil {
		t.Fatal(err)
	}
	if err := create(c, "z"); err != nil { // refused once, because of the other process's commit
		t.Fatal(err)
	}
	if err := create(c, "b"); !status.Is(err, status.Conflict) {
		t.Errorf("an item that another process has created was created again: %v", err)
	}
	sl.mu.Lock() // another filter may be being made now
	stale, floor := sl.idsNext == half, sl.head.Lowest
	sl.mu.Unlock()
	if stale {
		t.Error("a filter without the other process's ids is still being made")
	}
	if err := c.endRaise(sl, raising, was, next); err != nil || sl.head.Lowest != floor {
		t.Errorf("the floor was raised from %d to %d: %v", floor, sl.head.Lowest, err)
	}
	if err := create(c, "c"); err != nil {
		t.Error(err)
	}
	if err := create(other, "c"); !status.Is(err, status.Conflict) {
		t.Errorf("an item of this process was created again by the other one: %v", err)
	}
}
