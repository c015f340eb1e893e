package core_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
)

// TestOrderFromIndex orders by a path without a condition on it. The index gives the order from the first query on. If
// an item lacks the path, the query sorts and still returns the item.
func TestOrderFromIndex(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		for i := range 200 {
			put(t, c, core.Create, fmt.Sprintf(`{"id":"%03d","pk":"p%d","n":%d}`, i, i%11, i*37%200))
		}
		q := exec.Query{OrderBy: []exec.Order{{Path: access.NewPath("n"), Desc: true}}, Compare: value.CompareCosmos}
		check := func(want access.Kind, rows int) {
			t.Helper()
			plan, err := c.Explain(bg, &q)
			if err != nil || plan.Kind != want {
				t.Fatalf("plan is %s, want %s (%v)", plan.Explain(), want, err)
			}
			for _, page := range []int{7, 1000} {
				got := paged(t, c, q, page)
				if len(got) != rows {
					t.Fatalf("%d rows in pages of %d", len(got), page)
				}
				if seen := slices.Clone(got); len(slices.Compact(slices.Sorted(slices.Values(seen)))) != rows {
					t.Fatalf("a row came twice in pages of %d", page)
				}
				if got[0] != "027" { // 27*37 mod 200 = 199
					t.Fatalf("first row is %s", got[0])
				}
			}
		}
		check(access.Ordered, 200)
		put(t, c, core.Create, `{"id":"none","pk":"p1"}`)
		check(access.Scan, 201)
		if _, err := c.Write(bg, core.Write{Kind: core.Delete, PK: pk("p1"), ID: value.StringOf("none")}); err != nil {
			t.Fatal(err)
		}
		check(access.Ordered, 200)
	})
}
