package core_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

// sortable is a container of n items of about a kilobyte that no index orders.
func sortable(t *testing.T, n int, b *budget.Budget) *core.Container {
	e, err := core.Open(bg, kv.Checked(memkv.New()), core.Options{MinSlots: 2, Budget: b})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	c := newContainer(t, e, core.ContainerSpec{IndexingPolicy: []byte(`{"indexingMode":"none","automatic":false}`)})
	text := strings.Repeat("x", 1000)
	putMany(t, c, n, func(i int) string {
		return fmt.Sprintf(`{"id":"%d","pk":"%d","n":%d,"text":%q}`, i, i%7, i*7919%n, text)
	})
	return c
}

func byN(limit int) *exec.Query {
	return &exec.Query{OrderBy: []exec.Order{{Path: access.NewPath("n")}}, Compare: value.CompareCosmos, Limit: limit}
}

// run reads a query to its end, or to its first error.
func run(ctx context.Context, t *testing.T, c *core.Container, q *exec.Query, each func()) (ids []string, err error) {
	t.Helper()
	r, err := c.Query(ctx, q)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for r.Next() {
		if len(r.Item().Doc) < 1000 {
			t.Fatal("a row lacks its document")
		}
		ids = append(ids, r.Item().ID().Str())
		if each != nil {
			each()
		}
	}
	return ids, r.Err()
}

// A sort takes its memory from the budget of all requests. Without memory for documents it keeps keys. Without memory
// for keys it fails. It releases all memory.
func TestSortIsChargedToTheBudget(t *testing.T) {
	race.Alone(t)
	const items = 2000 // 2 MB of documents, about 500 KB of keys
	all, err := run(bg, t, sortable(t, items, nil), byN(0), nil)
	if err != nil || len(all) != items {
		t.Fatalf("without a budget: %d rows, %v", len(all), err)
	}
	for _, tc := range []struct {
		name         string
		limit, share int64
		taken        int64 // by others
		rows         int   // that the query wants; 0 = all
		want         status.Code
	}{
		{"room for documents", 16 << 20, 0, 0, 0, 0},
		{"room for keys", 1 << 20, 0, 0, 0, 0},
		{"no room in its share", 16 << 20, 128 << 10, 0, 0, status.MemoryLimit},
		{"no room beside others", 16 << 20, 0, 16<<20 - 128<<10, 0, status.TooManyRequests},
		{"few rows are wanted", 128 << 10, 0, 0, 20, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := budget.New(tc.limit, tc.share)
			c := sortable(t, items, b)
			others := b.Open("others")
			if err := others.Grow(tc.taken); err != nil {
				t.Fatal(err)
			}
			before, most := b.Used(), int64(0)
			got, err := run(bg, t, c, byN(tc.rows), func() { most = max(most, b.Used()-before) })
			want := all
			if tc.rows > 0 {
				want = all[:tc.rows]
			}
			switch {
			case tc.want != 0:
				if !status.Is(err, tc.want) || tc.want == status.TooManyRequests && status.From(err).RetryAfter <= 0 {
					t.Errorf("the error is %v", err)
				}
			case err != nil || !slices.Equal(got, want):
				t.Errorf("%d rows, %v", len(got), err)
			case most < 16<<10 || most > tc.limit:
				t.Errorf("%d bytes were charged", most)
			}
			if b.Used() != before {
				t.Errorf("%d bytes are left over", b.Used()-before)
			}
		})
	}
}

// A sort releases memory for its reply when it is asked to. The rows don't change, including the present one.
func TestSortMakesRoom(t *testing.T) {
	const items = 1000
	b := budget.New(16<<20, 0)
	c := sortable(t, items, b)
	all, err := run(bg, t, c, byN(0), nil)
	if err != nil || len(all) != items {
		t.Fatalf("%d rows, %v", len(all), err)
	}
	for _, q := range map[string]*exec.Query{
		"whole": byN(0), "by pages": {OrderBy: byN(0).OrderBy, Compare: value.CompareCosmos, Page: 400}} {
		r, err := c.Query(bg, q)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for r.Next() {
			if len(got)%150 == 10 {
				before, held := r.Item().ID().Str(), b.Used()
				r.Spill()
				if doc := r.Item(); doc.ID().Str() != before || len(doc.Doc) < 1000 {
					t.Errorf("row %d is another one", len(got))
				}
				if left := b.Used(); len(got) == 10 && left > held*2/3 || left > held {
					t.Errorf("row %d: %d of %d bytes are still held", len(got), left, held)
				}
			}
			got = append(got, r.Item().ID().Str())
		}
		if r.Err() != nil || !slices.Equal(got, all) {
			t.Errorf("%d rows, %v", len(got), r.Err())
		}
		r.Close()
		r.Spill()
		if b.Used() != 0 {
			t.Errorf("%d bytes are left over", b.Used())
		}
	}
}

// A sort releases its memory however it ends: an error of its filter, a panic, a client that disconnects.
func TestSortGivesItsMemoryBack(t *testing.T) {
	b := budget.New(16<<20, 0)
	c := sortable(t, 500, b)
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	for name, at := range map[string]func() error{
		"error": func() error { return status.New(status.BadRequest, "no") },
		"fault": func() error { panic("a fault") },
		"leave": func() error { cancel(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			q, n := byN(0), 0
			q.Match = func(*core.Item) (bool, error) {
				if n++; n == 400 {
					return true, at()
				}
				return true, nil
			}
			func() {
				defer func() { _ = recover() }()
				_, _ = run(ctx, t, c, q, nil)
			}()
			if b.Used() != 0 {
				t.Errorf("%d bytes are left over", b.Used())
			}
		})
	}
}

// A query with only matching items ends with its context too.
func TestQueriesEndWithTheirContext(t *testing.T) {
	c := sortable(t, 1000, nil)
	for name, q := range map[string]*exec.Query{"scan": {}, "sort": byN(0)} {
		ctx, cancel := context.WithCancel(bg)
		n := 0
		_, err := run(ctx, t, c, q, func() {
			if n++; n == 100 {
				cancel()
			}
		})
		if !status.Is(err, status.Timeout) || n > 200 {
			t.Errorf("%s: %v after %d rows", name, err, n)
		}
		cancel()
	}
}
