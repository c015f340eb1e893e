package core_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

// txPaged runs a query of a transaction in pages of n rows.
func txPaged(t *testing.T, c *core.Container, tx *core.Tx, q exec.Query, n int) (out []string) {
	t.Helper()
	q.Page = n
	for range 1000 {
		rows, err := c.QueryTx(bg, tx, &q)
		if err != nil {
			t.Fatal(err)
		}
		for k := 0; k < n && rows.Next(); k++ {
			out = append(out, rows.Item().ID().Str())
		}
		if rows.Err() != nil {
			t.Fatal(rows.Err())
		}
		q.Continuation = rows.Continuation()
		done := rows.Exhausted()
		rows.Close()
		if done || q.Continuation == "" {
			return out
		}
	}
	t.Fatal("the query does not end")
	return nil
}

// TestTxQueriesSeeOwnWrites runs random queries between random writes of a transaction and compares the rows with those
// of a plain loop over what the transaction must see.
func TestTxQueriesSeeOwnWrites(t *testing.T) {
	race.Alone(t)
	t.Parallel()
	policies := []string{"", `{"indexingMode":"none"}`,
		`{"indexingMode":"consistent","includedPaths":[{"path":"/n/?"}],"excludedPaths":[{"path":"/*"}]}`}
	for i, policy := range policies {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
				spec := core.ContainerSpec{}
				if policy != "" {
					spec.IndexingPolicy = []byte(policy)
				}
				c := newContainer(t, e, spec)
				r := rand.New(rand.NewPCG(7, uint64(i)))
				want := map[string]int64{}
				for k := range 60 {
					id, n := fmt.Sprintf("i%02d", k), r.IntN(10)
					put(t, c, core.Create, fmt.Sprintf(`{"id":%q,"pk":"a","n":%d}`, id, n))
					put(t, c, core.Create, fmt.Sprintf(`{"id":%q,"pk":"b","n":%d}`, id, n))
					want[id] = int64(n)
				}
				_, err := c.WithTx(bg, pk("a"), func(tx *core.Tx) error {
					txQueries(t, c, tx, want)
					for range overNetwork(15, 6) {
						id, n := fmt.Sprintf("i%02d", r.IntN(80)), r.IntN(10)
						w := core.Write{Kind: core.Upsert,
							Doc: mustDoc(t, fmt.Sprintf(`{"id":%q,"pk":"a","n":%d}`, id, n))}
						if _, ok := want[id]; ok && r.IntN(3) == 0 {
							w = core.Write{Kind: core.Delete, ID: value.StringOf(id)}
							delete(want, id)
						} else {
							want[id] = int64(n)
						}
						if _, err := tx.Write(&w); err != nil {
							return err
						}
						txQueries(t, c, tx, want)
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				got := ids(t, c, &exec.Query{PK: pk("a"), PlanHash: 1})
				if len(got) != len(want) {
					t.Errorf("%d items after the commit, want %d", len(got), len(want))
				}
			})
		})
	}
}

// txQueries compares queries of a transaction with a plain loop over the items, id to n.
func txQueries(t *testing.T, c *core.Container, tx *core.Tx, items map[string]int64) {
	t.Helper()
	least := value.Int64Of(4)
	preds := map[string]*access.Pred{"all": nil, "n = 4": access.Eq(access.NewPath("n"), least)}
	for name, p := range preds {
		for _, order := range []string{"", "n", "n desc"} {
			q := exec.Query{Pred: p, PlanHash: 9, Compare: value.CompareCosmos, Collation: access.JSONOrder}
			if p != nil {
				q.Match = func(it *core.Item) (bool, error) {
					return value.EqualCosmos(doc.Get(it.Doc, "n"), least), nil
				}
			}
			if order != "" {
				q.OrderBy = []exec.Order{{Path: access.NewPath("n"), Desc: order == "n desc"}}
			}
			var want []string
			for id, n := range items {
				if p == nil || n == 4 {
					want = append(want, id)
				}
			}
			for _, size := range []int{7, 1000} {
				got := txPaged(t, c, tx, q, size)
				ordered := slices.IsSortedFunc(got, func(a, b string) int {
					d := int(items[a] - items[b])
					if order == "n desc" {
						d = -d
					}
					return d
				})
				if order != "" && !ordered {
					t.Fatalf("%s order by %s in pages of %d: %v", name, order, size, got)
				}
				slices.Sort(got)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Fatalf("%s order by %s in pages of %d:\n%v, want\n%v", name, order, size, got, want)
				}
			}
		}
	}
}

// TestTxQueryContinuesAfterWrites pages through a query while the transaction writes between the pages. Each item that
// isn't written comes once.
func TestTxQueryContinuesAfterWrites(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		inOneProcess(c)
		for k := range 30 {
			put(t, c, core.Create, fmt.Sprintf(`{"id":"i%02d","pk":"a"}`, k))
		}
		var got []string
		_, err := c.WithTx(bg, pk("a"), func(tx *core.Tx) error {
			got = nil
			q := exec.Query{PlanHash: 9, Page: 4}
			for {
				rows, err := c.QueryTx(bg, tx, &q)
				if err != nil {
					return err
				}
				var page []string
				for len(page) < 4 && rows.Next() {
					page = append(page, rows.Item().ID().Str())
				}
				q.Continuation = rows.Continuation()
				rows.Close()
				got = append(got, page...)
				for _, id := range page {
					if _, err := tx.Write(&core.Write{Kind: core.Delete, ID: value.StringOf(id)}); err != nil {
						return err
					}
				}
				if len(page) < 4 {
					return nil
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != 30 || !slices.IsSorted(got) {
			t.Errorf("pages have %v", got)
		}
		if left := ids(t, c, &exec.Query{PlanHash: 1}); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// TestTxQueryConflicts writes to a container while a transaction has queried. A write to the logical partition that the
// query doesn't name makes the transaction run again; one to another partition doesn't.
func TestTxQueryConflicts(t *testing.T) {
	for _, c := range []struct {
		name, before, other string
		runs                int
	}{
		{"new item", `{"id":"1","pk":"a"}`, `{"id":"2","pk":"a"}`, 2},
		{"first item", "", `{"id":"2","pk":"a"}`, 2},
		{"other partition", `{"id":"1","pk":"a"}`, `{"id":"2","pk":"b"}`, 1},
		{"nothing", `{"id":"1","pk":"a"}`, "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEngines(t, core.Options{MinSlots: 1}, func(t *testing.T, e *core.Engine) {
				ct := newContainer(t, e, core.ContainerSpec{})
				if c.before != "" {
					put(t, ct, core.Create, c.before)
				}
				runs, seen := 0, 0
				_, err := ct.WithTx(bg, pk("a"), func(tx *core.Tx) error {
					runs++
					seen = len(txPaged(t, ct, tx, exec.Query{PlanHash: 1}, 100))
					if runs == 1 && c.other != "" {
						put(t, ct, core.Create, c.other)
					}
					_, err := tx.Write(&core.Write{Kind: core.Upsert,
						Doc: mustDoc(t, fmt.Sprintf(`{"id":"count","pk":"a","n":%d}`, seen))})
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				if runs != c.runs {
					t.Errorf("ran %d times, want %d", runs, c.runs)
				}
			})
		})
	}
}

// TestTxQueryConflictsWithDeletes empties the partition while a transaction has counted its items.
func TestTxQueryConflictsWithDeletes(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		put(t, c, core.Create, `{"id":"1","pk":"a"}`)
		runs, seen := 0, 0
		_, err := c.WithTx(bg, pk("a"), func(tx *core.Tx) error {
			runs++
			seen = len(txPaged(t, c, tx, exec.Query{PlanHash: 1}, 100))
			if runs == 1 {
				_, err := c.Write(bg, core.Write{Kind: core.Delete, PK: pk("a"), ID: value.StringOf("1")})
				if err != nil {
					return err
				}
			}
			_, err := tx.Write(&core.Write{Kind: core.Create, Doc: mustDoc(t, `{"id":"x","pk":"a"}`)})
			return err
		})
		if err != nil || runs != 2 || seen != 0 {
			t.Errorf("%d runs, saw %d: %v", runs, seen, err)
		}
	})
}

// TestTxFindsProvisionalNumbers looks items up by the numbers that a transaction shows for them.
func TestTxFindsProvisionalNumbers(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		old := put(t, c, core.Create, `{"id":"old","pk":"a"}`).Item
		other := put(t, c, core.Create, `{"id":"other","pk":"b"}`).Item
		var made *core.Item
		_, err := c.WithTx(bg, pk("a"), func(tx *core.Tx) error {
			res, err := tx.Write(&core.Write{Kind: core.Create, Doc: mustDoc(t, `{"id":"new","pk":"a"}`)})
			if err != nil {
				return err
			}
			made = res.Item
			again, err := tx.Write(&core.Write{Kind: core.Replace, Doc: mustDoc(t, `{"id":"new","pk":"a","n":1}`)})
			if err != nil {
				return err
			}
			if again.Item.Number != made.Number || again.Item.ETag() == made.ETag() {
				t.Errorf("a second version has number %d and etag %s, the first %d and %s", again.Item.Number,
					again.Item.ETag(), made.Number, made.ETag())
			}
			for number, want := range map[uint64]string{old.Number: "old", made.Number: "new", other.Number: "",
				made.Number + 1: ""} {
				id, ok, err := tx.ByNumber(number)
				if err != nil || ok != (want != "") || ok && id.Str() != want {
					t.Errorf("number %d is %v %v %v, want %q", number, id, ok, err, want)
				}
			}
			made = again.Item
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Read(bg, pk("a"), value.StringOf("new"))
		if err != nil || got.Number != made.Number || got.ETag() != made.ETag() {
			t.Errorf("committed as %d %s, result has %d %s: %v", got.Number, got.ETag(), made.Number, made.ETag(), err)
		}
	})
}
