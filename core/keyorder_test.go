package core_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

// The order of partition key and id over all logical partitions: from the index, or sorted if the policy or the kinds
// of keys and ids require that; at once, and in pages between which items change.
func TestKeyOrder(t *testing.T) {
	race.Alone(t)
	t.Parallel()
	byKeys := []exec.Order{{Path: access.NewPath("pk")}, {Path: access.ID}}
	for name, c := range map[string]struct {
		policy string
		pk, id func(n int) string
	}{
		"texts": {"", func(n int) string { return fmt.Sprintf(`"p%d"`, n%37) }, func(n int) string {
			return fmt.Sprintf(`"i%d"`, n)
		}},
		"one each": {"", func(n int) string { return fmt.Sprintf(`"p%d"`, n) }, func(n int) string {
			return fmt.Sprintf(`"i%d"`, n)
		}},
		"no index": {noIndex, func(n int) string { return fmt.Sprintf(`"p%d"`, n%37) }, func(n int) string {
			return fmt.Sprintf(`"i%d"`, n)
		}},
		"numbers": {"", func(n int) string { return []string{fmt.Sprint(n % 20), `"x"`, "null", `""`}[n%4] },
			func(n int) string { return fmt.Sprintf(`"i%d"`, n) }},
		"long texts": {"", func(n int) string { return `"` + strings.Repeat("long", 300) + fmt.Sprint(n%9) + `"` },
			func(n int) string { return fmt.Sprintf(`"i%d"`, n) }},
		"zeros": {"", func(n int) string {
			return fmt.Sprintf(`"a%s"`, strings.Repeat("\\u0000", n%3)+strings.Repeat("b", n%2))
		}, func(n int) string { return fmt.Sprintf(`"i%d"`, n) }},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := core.Open(bg, kv.Checked(memkv.New()), core.Options{MinSlots: 4})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			ct := newContainer(t, e, core.ContainerSpec{IndexingPolicy: []byte(c.policy)})
			type item struct{ pk, id value.Value }
			have := map[int]item{}
			add := func(n int) {
				d := mustDoc(t, fmt.Sprintf(`{"id":%s,"pk":%s,"g":%d}`, c.id(n), c.pk(n), n%5))
				if _, err := ct.Write(bg, core.Write{Kind: core.Create, Doc: d}); err != nil {
					t.Fatal(err)
				}
				have[n] = item{value.ObjectOf(d).Get("pk"), value.ObjectOf(d).Get("_id")}
			}
			ordered := func(takes func(n int) bool) (out []string) {
				var is []item
				for n, i := range have {
					if takes(n) {
						is = append(is, i)
					}
				}
				slices.SortFunc(is, func(a, b item) int {
					if c := value.CompareCosmos(a.pk, b.pk); c != 0 {
						return c
					}
					return value.CompareCosmos(a.id, b.id)
				})
				for _, i := range is {
					out = append(out, i.id.Str())
				}
				return out
			}
			next := 0
			for ; next < 150; next++ {
				add(next)
			}
			g := func(it *core.Item) (bool, error) { return value.ObjectOf(it.Doc).Get("g").Int() == 2, nil }
			for qname, x := range map[string]struct {
				q     exec.Query
				takes func(n int) bool
			}{
				"all":    {exec.Query{}, func(int) bool { return true }},
				"filter": {exec.Query{Match: g}, func(n int) bool { return n%5 == 2 }},
				"equality": {exec.Query{Match: g, Pred: access.Eq(access.NewPath("g"), value.Int32Of(2))},
					func(n int) bool { return n%5 == 2 }},
			} {
				x.q.OrderBy, x.q.Compare = byKeys, value.CompareCosmos
				want := ordered(x.takes)
				if got := ids(t, ct, &x.q); !slices.Equal(got, want) {
					t.Errorf("%s:\n got %v\nwant %v", qname, got, want)
				}
				for _, n := range []int{1, 7, 50} {
					if got := paged(t, ct, x.q, n); !slices.Equal(got, want) {
						t.Errorf("%s, pages of %d:\n got %v\nwant %v", qname, n, got, want)
					}
				}
			}
			if name == "long texts" { // their positions are cut, so rows may come twice after a delete
				return
			}
			rnd := rand.New(rand.NewPCG(7, 8))
			q := exec.Query{OrderBy: byKeys, Compare: value.CompareCosmos}
			before := ordered(func(int) bool { return true })
			var got []string
			for token := ""; ; {
				q.Continuation = token
				var rows []string
				rows, token = page(t, ct, q, 5)
				if got = append(got, rows...); token == "" {
					break
				}
				add(next)
				next++
				for _, n := range slices.Sorted(maps.Keys(have)) {
					if rnd.IntN(len(have)) == 0 {
						if _, err := ct.Write(
							bg, core.Write{
								Kind: core.Delete, PK: core.PartitionKey{have[n].pk}, ID: have[n].id}); err != nil {
							t.Fatal(err)
						}
						delete(have, n)
						break
					}
				}
			}
			after := ordered(func(int) bool { return true })
			stayed := func(ids []string) []string {
				return slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
					return !slices.Contains(before, id) || !slices.Contains(after, id)
				})
			}
			if have := stayed(got); !slices.Equal(have, stayed(before)) {
				t.Errorf("while data change:\n got %v\nwant %v", have, stayed(before))
			}
		})
	}
}

// Ids of several kinds aren't stored in the order of any language, so their logical partition is sorted.
func TestKeyOrderOfMixedIDs(t *testing.T) {
	onEngines(t, core.Options{MinSlots: 2}, func(t *testing.T, e *core.Engine) {
		ct := newContainer(t, e, core.ContainerSpec{})
		var want []string
		for n := range 24 {
			id := []value.Value{value.Int32Of(int32(n)), value.StringOf(fmt.Sprintf("%02d", n))}[n%2]

			var b doc.Builder
			b.BeginObject()
			b.Field("_id", id)
			b.Field("pk", value.StringOf(fmt.Sprintf("p%d", n%12/6)))
			b.End()

			if _, err := ct.Write(bg, core.Write{Kind: core.Create, Doc: b.Doc()}); err != nil {
				t.Fatal(err)
			}
		}
		for p := range 2 {
			for _, odd := range []int{0, 1} { // numbers come before strings
				for n := range 24 {
					if n%2 == odd && n%12/6 == p {
						want = append(want, fmt.Sprint(n))
					}
				}
			}
		}
		for _, size := range []int{1, 5, 100} {
			var got []string
			q := exec.Query{OrderBy: []exec.Order{{Path: access.NewPath("pk")}, {Path: access.ID}},
				Compare: value.CompareCosmos}
			for {
				r, err := ct.Query(bg, &q)
				if err != nil {
					t.Fatal(err)
				}
				for n := 0; n < size && r.Next(); n++ {
					id := r.Item().ID()
					if id.Kind() == value.String {
						got = append(got, strings.TrimPrefix(id.Str(), "0"))
					} else {
						got = append(got, fmt.Sprint(id.Int()))
					}
				}
				q.Continuation = r.Continuation()
				r.Close()
				if r.Err() != nil {
					t.Fatal(r.Err())
				}
				if q.Continuation == "" {
					break
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("pages of %d:\n got %v\nwant %v", size, got, want)
			}
		}
	})
}

// If an index finds few items, a query in the order of keys reads only the items of the page.
func TestKeyOrderReadsItsPage(t *testing.T) {
	e, err := core.Open(bg, kv.Checked(memkv.New()), core.Options{MinSlots: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	c := newContainer(t, e, core.ContainerSpec{})
	var want []string
	for n := range 2000 {
		d := fmt.Sprintf(`{"id":"i%04d","pk":"p%d","g":%d,"h":%d}`, (n*7)%2000, n%30, n%20, n%10)
		if put(t, c, core.Create, d); n%20 == 3 {
			want = append(want, fmt.Sprintf("p%d/i%04d", n%30, (n*7)%2000))
		}
	}
	slices.Sort(want)
	for i := range want {
		want[i] = want[i][strings.Index(want[i], "/")+1:]
	}
	g := access.Eq(access.NewPath("g"), value.Int32Of(3))
	for name, x := range map[string]struct {
		pred *access.Pred
		rows int
	}{
		"one condition":  {g, len(want)},
		"both of two":    {access.And(g, access.Eq(access.NewPath("h"), value.Int32Of(3))), len(want)},
		"either of two":  {access.Or(g, access.Eq(access.NewPath("g"), value.Int32Of(3))), len(want)},
		"no item at all": {access.Eq(access.NewPath("g"), value.Int32Of(99)), 0},
	} {
		q := exec.Query{Pred: x.pred, OrderBy: []exec.Order{{Path: access.NewPath("pk")}, {Path: access.ID}},
			Compare: value.CompareCosmos}
		var got []string
		for pages := 0; ; pages++ {
			q.Page = 10
			rows, err := c.Query(bg, &q)
			if err != nil {
				t.Fatal(err)
			}
			for len(got) < 10*(pages+1) && rows.Next() {
				got = append(got, rows.Item().ID().Str())
			}
			if rows.Err() != nil {
				t.Fatal(rows.Err())
			}
			if n := rows.Stats().Items; n > 11 {
				t.Errorf("%s: page %d reads %d items", name, pages, n)
			}
			q.Continuation = ""
			if len(got) == 10*(pages+1) {
				q.Continuation = rows.Continuation()
			}
			rows.Close()
			if q.Continuation == "" {
				break
			}
		}
		if !slices.Equal(got, want[:x.rows]) {
			t.Errorf("%s:\n got %v\nwant %v", name, got, want[:x.rows])
		}
	}
}
