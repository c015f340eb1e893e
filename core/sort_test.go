package core_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

// TestSortWindows: a sort that knows the number of rows of a page returns the same rows as one that doesn't, also when
// more rows are read. A page of that size takes one pass; more rows take more passes.
func TestSortWindows(t *testing.T) {
	race.Alone(t)
	t.Parallel()
	e, _ := hooked(t, core.Options{MinSlots: 4})
	c := newContainer(t, e, core.ContainerSpec{})
	setPolicy(t, e, c, noIndex)
	items := 500
	for i := range items {
		n := fmt.Sprint(i * 7 % 40)
		if i%5 == 0 { // longer than in a token, with equal beginnings
			n = fmt.Sprintf("%q", strings.Repeat("z", 700)+n)
		}
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%03d","pk":"p%d","n":%s}`, i, i%5, n))
	}
	read := func(q exec.Query, rows int) (ids []string, next string, read int) {
		r, err := c.Query(bg, &q)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for len(ids) < rows && r.Next() {
			ids = append(ids, r.Item().ID().Str())
		}
		if r.Err() != nil {
			t.Fatal(r.Err())
		}
		if !r.Exhausted() {
			next = r.Continuation()
		}
		return ids, next, r.Stats().Items
	}
	for _, desc := range []bool{false, true} {
		for _, limit := range []int{0, 30, 1000} {
			q := exec.Query{OrderBy: orderBy(desc, "n"), Compare: value.CompareCosmos, Limit: limit}
			want, _, _ := read(q, items)
			for _, page := range []int{1, 7, 20, 600} {
				q := q
				q.Page = page
				all, _, passes := read(q, len(want))
				if !slices.Equal(all, want) {
					t.Errorf("limit %d, page %d, read on:\n got %v\nwant %v", limit, page, all, want)
				}
				if passes > 8*items {
					t.Errorf("limit %d, page %d: %d items read", limit, page, passes)
				}
				var got []string
				for more := true; more && len(got) < len(want); more = q.Continuation != "" {
					ids, next, n := read(q, page)
					if n > items && q.Continuation != "" && page < 600 {
						t.Errorf("limit %d, page %d: %d items read for one page", limit, page, n)
					}
					got, q.Continuation = append(got, ids...), next
				}
				if got = got[:min(len(got), len(want))]; !slices.Equal(got, want) {
					t.Errorf("limit %d, pages of %d:\n got %v\nwant %v", limit, page, got, want)
				}
			}
		}
	}
}
