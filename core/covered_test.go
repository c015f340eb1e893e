package core_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/access"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/value"
)

// valuesOf reads the values of /n that a query gives.
func valuesOf(t *testing.T, c *core.Container, q exec.Query) (vals []int64, st exec.Stats) {
	t.Helper()
	rows, err := c.Query(bg, &q)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		for range rows.Times() {
			vals = append(vals, doc.Get(rows.Item().Doc, "n").Int())
		}
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
	slices.Sort(vals)
	return vals, *rows.Stats()
}

// TestCoveredAnswersOfOldStores opens a store whose index entries have no forms: items are fetched until they are written anew.
func TestCoveredAnswersOfOldStores(t *testing.T) {
	raw := memkv.New()
	e, err := core.Open(bg, raw, core.Options{MinSlots: 2})
	if err != nil {
		t.Fatal(err)
	}
	c := newContainer(t, e, core.ContainerSpec{})
	for i := range 60 {
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p%d","n":%d}`, i, i%7, i/2))
	}
	ks, vs := every(t, raw)
	var b kv.Batch
	for i, key := range ks {
		switch keys.Kind(key[keys.PrefixLen-1]) {
		case keys.KindHead:
			head := bytes.Clone(vs[i])
			at := 1 + 8*4 + 4 + 8 // the value classes
			binary.BigEndian.PutUint32(head[at:], binary.BigEndian.Uint32(head[at:])&^index.FormsKnown)
			b.Put(key, head)
		case keys.KindIndex:
			b.Put(key, []byte{vs[i][0] &^ index.FormMask})
		}
	}
	if _, err := raw.Write(bg, &b, nil); err != nil {
		t.Fatal(err)
	}
	if e, err = core.Open(bg, raw, core.Options{}); err != nil {
		t.Fatal(err)
	}
	clean(t, e)
	if c, err = e.Container("db", "c"); err != nil {
		t.Fatal(err)
	}
	n := access.NewPath("n")
	q := exec.Query{Pred: access.Range(n, &access.Bound{Value: value.Int32Of(10), Inclusive: true}, nil), Needs: []access.Path{n}, Whole: true}
	vals, st := valuesOf(t, c, q)
	if len(vals) != 40 || st.Items != 40 || !st.Plan.Covered {
		t.Errorf("%d values with %d items read by %s", len(vals), st.Items, st.Plan.Explain())
	}
	for i := range 60 {
		put(t, c, core.Upsert, fmt.Sprintf(`{"id":"%d","pk":"p%d","n":%d}`, i, i%7, i/2+i%2*100)) // every second one changes
	}
	clean(t, e)
	if vals, st = valuesOf(t, c, q); len(vals) != 50 || st.Items != 20 {
		t.Errorf("%d values with %d items read after half of them were written anew", len(vals), st.Items)
	}
	for want, most := range map[exec.Want]int{exec.WantEnds: 50, exec.WantValues: 50} {
		q.Want = want
		if vals, st = valuesOf(t, c, q); slices.Max(vals) != 129 || slices.Min(vals) != 10 || st.Entries < most {
			t.Errorf("want %d: %d values from %d entries: it must not skip what it can't tell", want, len(vals), st.Entries)
		}
	}
	spec := *c.Spec()
	spec.IndexingPolicy = []byte(`{"includedPaths":[{"path":"/n/?"}],"excludedPaths":[{"path":"/*"}]}`)
	if c, err = e.ReplaceContainer(bg, "db", "c", spec); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitIndex(bg); err != nil {
		t.Fatal(err)
	}
	q.Want = exec.WantEnds
	if vals, st = valuesOf(t, c, q); slices.Max(vals) != 129 || st.Items != 0 || st.Entries > 8 {
		t.Errorf("%v with %d items and %d entries read after the index was made again", vals, st.Items, st.Entries)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCoveredWhileWritesGoOn: what a covered query gives is what the items of its view hold, whatever is written meanwhile.
func TestCoveredWhileWritesGoOn(t *testing.T) {
	e, err := core.Open(bg, kv.Checked(memkv.New()), core.Options{MinSlots: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	c := newContainer(t, e, core.ContainerSpec{})
	for i := range 100 {
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p%d","n":1}`, i, i))
	}
	done := make(chan error)
	go func() { // each item's n goes up, one after the other; the sum over all never goes down
		var err error
		for i := 0; i < 400 && err == nil; i++ {
			d, _ := doc.FromJSON(nil, fmt.Appendf(nil, `{"id":"%d","pk":"p%d","n":%d}`, i%100, i%100, 2+i/100), doc.JSONOptions{Names: doc.NoSQL})
			pk, id, _ := c.KeyOf(d)
			_, err = c.Write(bg, core.Write{Kind: core.Upsert, PK: pk, ID: id, Doc: d})
		}
		done <- err
	}()
	n := access.NewPath("n")
	q := exec.Query{Pred: access.Exists(n), Needs: []access.Path{n}, Whole: true, Repeat: true}
	before := int64(0)
	for running := true; running; {
		select {
		case err := <-done:
			if running = false; err != nil {
				t.Fatal(err)
			}
		default:
		}
		vals, st := valuesOf(t, c, q)
		sum := int64(0)
		for _, v := range vals {
			sum += v
		}
		if len(vals) != 100 || sum < before || st.Items != 0 {
			t.Fatalf("%d values, sum %d after %d, %d items read", len(vals), sum, before, st.Items)
		}
		before = sum
	}
	if before != 500 {
		t.Errorf("the sum is %d at the end", before)
	}
}
