package core_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

// A transaction over several containers shows one state of all of them, and is committed in all of them or in none.
func TestTransactionSpansContainers(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		first := newContainer(t, e, core.ContainerSpec{})
		spec := core.ContainerSpec{ID: "second", UniqueKeys: [][]string{{"/n"}},
			PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}, Kind: "Hash", Version: 2}}
		second, err := e.CreateContainer(bg, "db", spec)
		if err != nil {
			t.Fatal(err)
		}
		put(t, first, core.Create, purse("a", 1))
		for _, fails := range []bool{false, true} {
			tx := begin(t, first)
			in := inTx{tx.Transaction, second}
			put(t, first, core.Create, purse(fmt.Sprint("late", fails), 1))
			mustWrite(t, second, purse(fmt.Sprint("late", fails), 100+int64(len(fmt.Sprint(fails)))))
			for _, of := range []inTx{tx, in} {
				if got := balance(t, of.read, fmt.Sprint("late", fails)); got != -1 {
					t.Errorf("a write after the beginning is seen: %d", got)
				}
			}
			name := fmt.Sprint("new", fails)
			if err := setIn(t, tx, core.Replace, purse("a", 2)); err != nil {
				t.Fatal(err)
			}
			if err := setIn(t, in, core.Create, purse(name, 7)); err != nil {
				t.Fatal(err)
			}
			if fails { // somebody takes the unique value
				mustWrite(t, second, `{"id":"y","pk":"newtrue","n":7}`)
				if err := setIn(t, tx, core.Replace, purse("a", 3)); err != nil {
					t.Fatal(err)
				}
			}
			_, err := tx.Commit(bg)
			if fails {
				wantCode(t, err, status.Conflict, 0)
			} else if err != nil {
				t.Fatal(err)
			}
			if got := balance(t, outside(first), "a"); got != 2 {
				t.Errorf("a is %d", got)
			}
			want := map[bool]int64{false: 7, true: -1}[fails]
			if got := balance(t, readsOf(second), name); got != want {
				t.Errorf("%s is %d, want %d", name, got, want)
			}
		}
	})
}

func mustWrite(t *testing.T, c *core.Container, json string) {
	t.Helper()
	if _, err := c.Write(bg, core.Write{Kind: core.Create, Doc: mustDoc(t, json)}); err != nil {
		t.Fatal(err)
	}
}

func readsOf(c *core.Container) func(core.PartitionKey, value.Value) (*core.Item, error) {
	return func(pk core.PartitionKey, id value.Value) (*core.Item, error) { return c.Read(bg, pk, id) }
}

// A container that a transaction creates is seen by it alone, until its commit.
func TestTransactionCreatesContainers(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		newContainer(t, e, core.ContainerSpec{}) // and its database
		spec := core.ContainerSpec{ID: "fresh",
			PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}, Kind: "Hash", Version: 2}}
		for _, end := range []string{"abort", "commit", "lost"} {
			spec.ID = "fresh " + end
			tx, err := e.Begin(bg, longLife)
			if err != nil {
				t.Fatal(err)
			}
			c, err := tx.Create(bg, "db", spec)
			if err != nil {
				t.Fatal(err)
			}
			in := inTx{tx, c}
			for n := range 5 {
				if err := setIn(t, in, core.Create, purse(fmt.Sprint("p", n), int64(n))); err != nil {
					t.Fatal(err)
				}
			}
			wantCode(t, setIn(t, in, core.Create, purse("p1", 1)), status.Conflict, 0)
			if got := queried(t, in, &exec.Query{PlanHash: 1}); len(got) != 5 {
				t.Errorf("a query inside gives %v", got)
			}
			_, err = e.Container("db", spec.ID)
			wantCode(t, err, status.NotFound, 0)
			switch end {
			case "abort":
				tx.Abort()
			case "lost":
				if _, err := e.CreateContainer(bg, "db", spec); err != nil {
					t.Fatal(err)
				}
				_, err = tx.Commit(bg)
				wantCode(t, err, status.RetryWith, 0)
			default:
				if _, err = tx.Commit(bg); err != nil {
					t.Fatal(err)
				}
			}
			is, err := e.Container("db", spec.ID)
			if end == "abort" {
				wantCode(t, err, status.NotFound, 0)
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]int{"commit": 5}[end]
			if got := ids(t, is, &exec.Query{PlanHash: 1}); len(got) != want {
				t.Errorf("%s: %d items, want %d", end, len(got), want)
			}
			clean(t, e)
		}
	})
}

// queried returns the partition keys that a query of a transaction gives.
func queried(t *testing.T, tx inTx, q *exec.Query) (out []string) {
	t.Helper()
	one := *q
	for range 1000 {
		rows, err := tx.Query(bg, tx.c, &one)
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; (one.Page == 0 || n < one.Page) && rows.Next(); n++ {
			out = append(out, rows.Item().PK()[0].Str())
		}
		if rows.Err() != nil {
			t.Fatal(rows.Err())
		}
		one.Continuation = rows.Continuation()
		done := one.Page == 0 || rows.Exhausted()
		rows.Close()
		if done || one.Continuation == "" {
			return out
		}
	}
	t.Fatal("the query does not end")
	return nil
}

// Queries of a transaction give what a plain loop gives over its snapshot with its own writes, in any partition, while
// others write.
func TestTransactionQueries(t *testing.T) {
	race.Alone(t)
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
				inOneProcess(c) // of which creation order is exact
				r := rand.New(rand.NewPCG(3, uint64(i)))
				want, made := map[string]int64{}, []string(nil)
				for k := range 40 {
					name := fmt.Sprintf("p%02d", k)
					want[name] = int64(r.IntN(8))
					made = append(made, name)
					put(t, c, core.Create, purse(name, want[name]))
				}
				tx := begin(t, c)
				defer tx.Abort()
				checkQueries(t, tx, want, made)
				for k := range 12 {
					name := fmt.Sprintf("p%02d", r.IntN(60))
					put(t, c, core.Upsert, purse(fmt.Sprintf("other%d", k), 4)) // after the snapshot
					_, there := want[name]
					if there && r.IntN(3) == 0 {
						_, err := tx.Write(bg, tx.c, core.Write{Kind: core.Delete, PK: pk(name),
							ID: value.StringOf("x")})
						if err != nil {
							t.Fatal(err)
						}
						delete(want, name)
						continue
					}
					if !there && !slices.Contains(made, name) {
						made = append(made, name)
					}
					want[name] = int64(r.IntN(8))
					if err := setIn(t, tx, core.Upsert, purse(name, want[name])); err != nil {
						t.Fatal(err)
					}
					checkQueries(t, tx, want, made)
				}
				if _, err := tx.Commit(bg); err != nil {
					t.Fatal(err)
				}
				for name, n := range want {
					if got := balance(t, readsOf(c), name); got != n {
						t.Errorf("%s is %d, want %d", name, got, n)
					}
				}
			})
		})
	}
}

// checkQueries compares queries of a transaction with a plain loop over the accounts. made are all accounts, in the
// order of their creation.
func checkQueries(t *testing.T, tx inTx, accounts map[string]int64, made []string) {
	t.Helper()
	four := value.Int64Of(4)
	match := func(it *core.Item) (bool, error) { return value.EqualCosmos(doc.Get(it.Doc, "n"), four), nil }
	for _, filtered := range []bool{false, true} {
		var want []string
		for _, name := range made {
			if n, ok := accounts[name]; ok && (!filtered || n == 4) {
				want = append(want, name)
			}
		}
		for _, order := range []string{"", "whole", "newest", "n", "n desc"} {
			for _, page := range []int{0, 7} {
				q := exec.Query{PlanHash: 9, Compare: value.CompareCosmos, Collation: access.JSONOrder, Page: page}
				if filtered {
					q.Pred, q.Match = access.Eq(access.NewPath("n"), four), match
				}
				expect := slices.Clone(want)
				switch order {
				case "":
					q.Shown = exec.Creation
				case "whole":
					q.Whole, q.Page = true, 0
				case "newest":
					q.Shown = exec.Newest
					slices.Reverse(expect)
				default:
					q.OrderBy = []exec.Order{{Path: access.NewPath("n"), Desc: order == "n desc"}}
				}
				got := queried(t, tx, &q)
				if order == "n" || order == "n desc" {
					sorted := slices.IsSortedFunc(got, func(a, b string) int {
						if order == "n" {
							return cmp.Compare(accounts[a], accounts[b])
						}
						return cmp.Compare(accounts[b], accounts[a])
					})
					if !sorted {
						t.Fatalf("order %q in pages of %d: %v", order, page, got)
					}
				}
				if order != "" && order != "newest" {
					slices.Sort(got)
					slices.Sort(expect)
				}
				if !slices.Equal(got, expect) {
					t.Fatalf("filtered %t, order %q in pages of %d:\n%v, want\n%v", filtered, order, page, got, expect)
				}
			}
		}
	}
}

// A query goes on with what it began with while its transaction writes.
func TestTransactionQueryGoesOn(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		for k := range 30 {
			put(t, c, core.Create, purse(fmt.Sprintf("p%02d", k), 1))
		}
		tx := begin(t, inTurn(c))
		defer tx.Abort()
		if err := setIn(t, tx, core.Upsert, purse("own", 1)); err != nil {
			t.Fatal(err)
		}
		rows, err := tx.Query(bg, tx.c, &exec.Query{PlanHash: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		seen := map[string]int{}
		for rows.Next() {
			name := rows.Item().PK()[0].Str()
			if seen[name]++; name < "p20" {
				other := fmt.Sprintf("p%02d", 29-len(seen)%10)
				if err := setIn(t, tx, core.Upsert, purse(other, 2)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if rows.Err() != nil || len(seen) != 31 {
			t.Errorf("%d rows: %v", len(seen), rows.Err())
		}
		tx.Abort()
	})
}
