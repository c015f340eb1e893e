package core_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
)

// TestLogicalPartitionByID: in one logical partition a range of ids reads only its own items, and the order of ids
// needs no sort, also over pages.
func TestLogicalPartitionByID(t *testing.T) {
	ctx := context.Background()
	e, err := core.Open(ctx, memkv.New(), core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := e.EnsureDatabase(ctx, "db"); err != nil {
		t.Fatal(err)
	}
	c, err := e.CreateContainer(ctx, "db",
		core.ContainerSpec{ID: "c", PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}})
	if err != nil {
		t.Fatal(err)
	}
	pk := core.PartitionKey{value.StringOf("p")}
	for i := range 1000 {
		var b doc.Builder
		b.BeginObject()
		b.Field("_id", value.StringOf(fmt.Sprintf("%04d", i)))
		b.Field("pk", pk[0])
		b.End()
		if _, err := c.Write(ctx, core.Write{Kind: core.Create, Doc: b.Doc()}); err != nil {
			t.Fatal(err)
		}
	}
	bound := func(s string, incl bool) *access.Bound {
		return &access.Bound{Value: value.StringOf(s), Inclusive: incl}
	}
	for _, tc := range []struct {
		lo, hi     *access.Bound
		rows, read int // all rows; the most items that the first page of 10 may read
	}{
		{bound("0990", true), nil, 10, 11},
		{bound("0990", false), nil, 9, 11},
		{nil, bound("0005", true), 6, 7},
		{nil, bound("0005", false), 5, 7},
		{bound("0100", true), bound("0199", true), 100, 11},
		{bound("0500", false), bound("0500", true), 0, 1},
		{bound("0600", true), bound("0500", true), 0, 1},
		{nil, nil, 1000, 11},
	} {
		q := &exec.Query{PK: pk, Pred: access.And(access.All(), access.Exists(access.ID)),
			OrderBy: []exec.Order{{Path: access.ID}}, Compare: value.CompareCosmos}
		if tc.lo != nil || tc.hi != nil {
			q.Pred = access.Range(access.ID, tc.lo, tc.hi)
		}
		n, last := 0, ""
		for page := 0; ; page++ {
			rows, err := c.Query(ctx, q)
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i < 10 && rows.Next(); i++ {
				id := value.Lookup(rows.Item().Doc, "_id").Str()
				if id <= last {
					t.Fatalf("%s after %s", id, last)
				}
				last = id
				n++
			}
			st := rows.Stats()
			if rows.Err() != nil || st.Sorted || page == 0 && st.Items > tc.read {
				t.Errorf("%+v %+v: %v, sorted %v, %d items read", tc.lo, tc.hi, rows.Err(), st.Sorted, st.Items)
			}
			q.Continuation = rows.Continuation()
			rows.Close()
			if q.Continuation == "" {
				break
			}
		}
		if n != tc.rows {
			t.Errorf("%+v %+v: %d rows, want %d", tc.lo, tc.hi, n, tc.rows)
		}
	}
}
