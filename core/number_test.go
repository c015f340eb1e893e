package core_test

import (
	"fmt"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/value"
)

// keysOf counts the data keys of a store by kind. counters are the counters of its number keys, by slot.
func keysOf(t *testing.T, e kv.Engine) (kinds map[keys.Kind]int, counters map[keys.Slot][]uint64) {
	t.Helper()
	kinds, counters = map[keys.Kind]int{}, map[keys.Slot][]uint64{}
	snap := kvtest.Snapshot(t, e)
	defer snap.Close()
	it, err := snap.Iter(keys.DataBounds())
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		slot, kind, _ := keys.ParseSlot(it.Key())
		kinds[kind]++
		if kind == keys.KindNumber {
			n, ok := keys.NumberCounter(it.Key())
			if !ok {
				t.Fatalf("a number key of %d bytes", len(it.Key()))
			}
			counters[slot] = append(counters[slot], n)
		}
	}
	return kinds, counters
}

// Every kind of write maintains number entries by counter. If the partition key is the id, the number is the counter,
// and there are no heads of logical partitions.
func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		path  string
		plain bool // the number is the counter alone
	}{{"/id", true}, {"/pk", false}} {
		t.Run(c.path, func(t *testing.T) {
			kve := memkv.New()
			e, err := core.Open(bg, kve, core.Options{MinSlots: 4})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			ct := newContainer(t, e, core.ContainerSpec{PartitionKey: core.PartitionKeyDef{Paths: []string{c.path}}})
			doc := func(i int, more string) string { return fmt.Sprintf(`{"id":"i%d","pk":"i%[1]d"%s}`, i, more) }
			last := uint64(0)
			for i := range 40 {
				n := put(t, ct, core.Create, doc(i, "")).Item.Number
				if plain := n < 1<<40; plain != c.plain {
					t.Errorf("item %d has number %x", i, n)
				}
				if n &= 1<<40 - 1; n <= last {
					t.Errorf("item %d has counter %d after %d", i, n, last)
				} else {
					last = n
				}
			}
			for i := range 10 {
				put(t, ct, core.Replace, doc(i, `,"x":1`))
				if _, err := ct.Write(bg,
					core.Write{Kind: core.Delete, PK: pk(fmt.Sprintf("i%d", 30+i)),
						ID: value.StringOf(fmt.Sprintf("i%d", 30+i))}); err != nil {
					t.Fatal(err)
				}
			}
			many := ct.WriteMany(bg, []core.Write{
				{Kind: core.Upsert, Doc: mustDoc(t, doc(41, ""))},
				{Kind: core.Upsert, Doc: mustDoc(t, doc(42, ""))}}, true)
			if len(many) != 2 || many[1].Err != nil {
				t.Fatal(many)
			}
			_, err = ct.WithTx(bg, pk("i43"), func(tx *core.Tx) error {
				_, err := tx.Write(&core.Write{Kind: core.Create, Doc: mustDoc(t, doc(43, ""))})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			kinds, counters := keysOf(t, kve)
			if kinds[keys.KindItem] != 33 || kinds[keys.KindNumber] != 33 || len(counters) < 2 {
				t.Errorf("there are %v", kinds)
			}
			if heads := kinds[keys.KindLogical]; heads != 0 && c.plain || heads != 33 && !c.plain {
				t.Errorf("there are %d heads of logical partitions", heads)
			}
			for id, want := range map[string]int64{"i1": 1, "i35": 0, "i43": 1} {
				if n, ok, err := ct.CountIn(bg, pk(id)); n != want || !ok || err != nil {
					t.Errorf("the logical partition %s has %d items, %v", id, n, err)
				}
			}
			if problems, err := e.Check(bg); len(problems) > 0 || err != nil {
				t.Error(problems, err)
			}
		})
	}
}

// An item is found by its number. The number of a deleted item finds nothing.
func TestKeyByNumber(t *testing.T) {
	for _, path := range []string{"/id", "/pk"} {
		onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
			ct := newContainer(t, e, core.ContainerSpec{PartitionKey: core.PartitionKeyDef{Paths: []string{path}}})
			numbers := map[string]uint64{}
			for i := range 20 {
				it := put(t, ct, core.Create, fmt.Sprintf(`{"id":"i%d","pk":"p%d"}`, i, i%3)).Item
				numbers[it.ID().Str()] = it.Number
			}
			for id, n := range numbers {
				if _, got, ok, err := ct.KeyByNumber(bg, n); !ok || err != nil || got.Str() != id {
					t.Errorf("%x names %v, %v, %v, not %s", n, got, ok, err, id)
				}
				for _, other := range []uint64{n ^ 1<<45, n + 1000, 0} {
					if _, got, ok, err := ct.KeyByNumber(bg, other); ok || err != nil {
						t.Errorf("%x names %v, %v", other, got, err)
					}
				}
			}
		})
	}
}

// A transaction on a container whose partition key is the id reads and validates its item without a logical head.
func TestTxWhereTheKeyIsTheID(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		ct := newContainer(t, e, core.ContainerSpec{PartitionKey: core.PartitionKeyDef{Paths: []string{"/id"}}})
		put(t, ct, core.Create, `{"id":"a","n":1}`)
		runs := 0
		_, err := ct.WithTx(bg, pk("a"), func(tx *core.Tx) error {
			it, err := tx.Read(value.StringOf("a"))
			if err != nil {
				return err
			}
			if runs++; runs == 1 { // another writer writes the item
				put(t, ct, core.Replace, `{"id":"a","n":5}`)
			}
			_, err = tx.Write(&core.Write{
				Kind: core.Replace, Doc: mustDoc(
					t, fmt.Sprintf(`{"id":"a","n":%d}`, value.ObjectOf(it.Doc).Get("n").Int()+1))})
			return err
		})
		it, rerr := ct.Read(bg, pk("a"), value.StringOf("a"))
		if err != nil || rerr != nil || runs != 2 || value.ObjectOf(it.Doc).Get("n").Int() != 6 {
			t.Fatalf("%d runs, %v, %v", runs, err, rerr)
		}
	})
}
