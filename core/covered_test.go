package core_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/plan/access"
)

// valuesOf returns the values of /n in a query's rows.
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

// TestCoveredWhileWritesGoOn: while other writes run, a covered query returns the values that the items have in its
// view.
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
	go func() { // each item's n grows, one item after the other, so the sum over all never falls
		var err error
		for i := 0; i < 400 && err == nil; i++ {
			d, _ := doc.FromJSON(nil, fmt.Appendf(nil, `{"id":"%d","pk":"p%d","n":%d}`, i%100, i%100, 2+i/100),
				doc.JSONOptions{Names: doc.NoSQL})
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
