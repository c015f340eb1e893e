package core_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/internal/race"
)

// columnPolicy has composite indexes of all orders and a tuple path.
const columnPolicy = `{"includedPaths":[{"path":"/a/?"},{"path":"/l/[]/{x, y}/?"}],"excludedPaths":[{"path":"/*"}],
	"compositeIndexes":[[{"path":"/a"},{"path":"/b"}],[{"path":"/b","order":"descending"},{"path":"/a"}],
	[{"path":"/b"},{"path":"/a","order":"descending"}]]}`

// columnStore is a store whose index has entries of several columns. No check finds anything in it.
func columnStore(t *testing.T, key core.PartitionKeyDef) (*core.Engine, kv.Engine) {
	t.Helper()
	raw := memkv.New()
	e, err := core.Open(bg, raw, core.Options{MinSlots: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	c := newContainer(t, e, core.ContainerSpec{PartitionKey: key, IndexingPolicy: []byte(columnPolicy)})
	for i := range 40 {
		b := []string{`"x\u0000y"`, "1.5", "-7", "null", "true", "[1,2]", `"` + strings.Repeat("z", 3000) + `"`}[i%7]
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p%d","a":%d,"b":%s,"l":[{"x":%d,"y":"q"},{"x":"s"}]}`,
			i, i, i%5, b, i))
	}
	return e, raw
}

// checks returns the problems that the check of the whole store finds. A scrub must find as many.
func checks(t *testing.T, e *core.Engine) []string {
	t.Helper()
	problems, err := e.Check(bg)
	if err != nil {
		t.Fatal(err)
	}
	before := e.ScrubStatus().Found
	if err := e.Scrub(bg); err != nil {
		t.Fatal(err)
	}
	if st := e.ScrubStatus(); int(st.Found-before) != len(problems) {
		t.Errorf("the check finds %q, a scrub %d:\n%q", problems, st.Found-before, st.Problems)
	}
	return problems
}

// TestCheckNamesColumnEntries: each check names the damaged entries of several columns and no others, in both layouts
// of entries.
func TestCheckNamesColumnEntries(t *testing.T) {
	race.Alone(t)
	for name, key := range map[string]core.PartitionKeyDef{"key is another": keyDefs["V2"], "key is the id": keyIsID} {
		t.Run(name, func(t *testing.T) { namesColumnEntries(t, key, keys.Entries{ByID: name == "key is the id"}) })
	}
}

func namesColumnEntries(t *testing.T, key core.PartitionKeyDef, layout keys.Entries) {
	e, raw := columnStore(t, key)
	if found := checks(t, e); len(found) > 0 {
		t.Fatalf("a store that is well: %q", found)
	}
	entries, numbers := map[uint64][]byte{}, map[uint64]int{} // one entry of each path, end of the number
	flags := map[string][]byte{}
	ks, vs := every(t, raw)
	columns := 0
	for i, key := range ks {
		if id, ok := keys.IndexPath(key); ok && keys.Kind(key[keys.PrefixLen-1]) == keys.KindIndex &&
			entries[id] == nil {
			entries[id], flags[string(key)] = key, vs[i]
			gen, _ := keys.Generation(key)
			pol, err := index.Compile([]byte(columnPolicy), uint64(gen))
			if err != nil {
				t.Fatal(err)
			}
			entry, err := layout.Parse(key)
			if c := pol.Columns(id); c != nil {
				columns++
				entry, err = c.Parse(layout, key)
			}
			if err != nil {
				t.Fatal(err)
			}
			numbers[id] = len(key) - len(entry.Name)
		}
	}
	if columns != 4 {
		t.Fatalf("%d indexes of several columns have entries, want 4", columns)
	}
	for id, key := range entries {
		other := func(change func(k []byte)) []byte {
			k := bytes.Clone(key)
			change(k)
			return k
		}
		for what, x := range map[string]struct {
			del, put []byte
			want     string
		}{
			"a missing entry":        {key, nil, "missing entry"},
			"an entry of no item":    {nil, other(func(k []byte) { k[len(k)-3] ^= 1 }), "has no item"},
			"another number":         {nil, other(func(k []byte) { k[numbers[id]-1]++ }), "has no item"},
			"an index that isn't":    {nil, other(func(k []byte) { k[keys.PrefixLen] ^= 0x80 }), "no item"},
			"columns that are cut":   {nil, key[:keys.PrefixLen+12], "names no item"},
			"a class that isn't one": {nil, other(func(k []byte) { k[keys.PrefixLen+8] ^= 0x55 }), "no item"},
		} {
			var do, undo kv.Batch
			if x.del != nil {
				do.Delete(x.del)
				undo.Put(x.del, flags[string(key)])
			} else {
				do.Put(x.put, flags[string(key)])
				undo.Delete(x.put)
			}
			if _, err := raw.Write(bg, &do, nil); err != nil {
				t.Fatal(err)
			}
			if found := checks(t, e); len(found) != 1 || !strings.Contains(found[0], x.want) {
				t.Errorf("%s under %x (%x): %q", what, id, key, found)
			}
			if _, err := raw.Write(bg, &undo, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	clean(t, e)
}

// TestCheckDuringRebuildOfColumns: no check finds a problem while composite indexes are added and removed, when entries
// of two policies exist together.
func TestCheckDuringRebuildOfColumns(t *testing.T) {
	e, h := hooked(t, core.Options{MinSlots: 2})
	c := newContainer(t, e, core.ContainerSpec{})
	for i := range 40 {
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p%d","a":%d,"b":"%d","l":[{"x":%d}]}`, i, i, i%5, i, i))
	}
	for _, policy := range []string{columnPolicy, onlyA} {
		at, goOn, wait := make(chan bool), make(chan bool), make(chan error)
		stop := func(take func() kv.Snapshot) kv.Snapshot { // no latch is held when the rebuild reads its next items
			if calledBy("(*rebuilder)") {
				at <- true
				<-goOn
			}
			return take()
		}
		h.set(func(on *hookSet) { on.snapshot = stop })
		go func() {
			spec := c.Spec().Clone()
			spec.IndexingPolicy = []byte(policy)
			_, err := e.ReplaceContainer(bg, "db", "c", spec)
			if err == nil {
				err = c.WaitIndex(bg)
			}
			wait <- err
		}()
		stops := 0
		for over := false; !over; {
			select {
			case err := <-wait:
				if err != nil {
					t.Fatal(err)
				}
				over = true
			case <-at:
				stops++
				h.set(func(on *hookSet) { on.snapshot = nil })
				if found := checks(t, e); len(found) > 0 {
					t.Errorf("stop %d on the way to %s: %q", stops, policy, found)
				}
				h.set(func(on *hookSet) { on.snapshot = stop })
				goOn <- true
			}
		}
		h.set(func(on *hookSet) { on.snapshot = nil })
		if stops < 2 {
			t.Errorf("%d stops", stops)
		}
		if found := checks(t, e); len(found) > 0 {
			t.Errorf("with %s: %q", policy, found)
		}
	}
}
