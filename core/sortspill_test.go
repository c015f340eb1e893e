package core_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/spill"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

// spilling is a container of items without an index, on an engine with a budget and a space for files. Some items are
// large. n has few values, some of them too long for a continuation.
func spilling(t *testing.T, items int, b *budget.Budget, o spill.Options) (*core.Container, *spill.Space) {
	t.Helper()
	files, err := spill.Open(filepath.Join(t.TempDir(), "spill"), o)
	if err != nil {
		t.Fatal(err)
	}
	e, err := core.Open(bg, kv.Checked(memkv.New()), core.Options{MinSlots: 2, Budget: b, Spill: files})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = e.Close()
		if files.Files() != 0 || files.Used() != 0 || b.Used() != 0 {
			t.Errorf("left over: %d files, %d bytes of them, %d bytes of memory", files.Files(), files.Used(), b.Used())
		}
	})
	c := newContainer(t, e, core.ContainerSpec{IndexingPolicy: []byte(`{"indexingMode":"none","automatic":false}`)})
	rnd := rand.New(rand.NewPCG(7, 8))
	long := strings.Repeat("z", 700)
	putMany(t, c, items, func(i int) string {
		n := fmt.Sprint(rnd.IntN(items / 4))
		if i%5 == 0 {
			n = fmt.Sprintf("%q", long+n)
		}
		size := 1000
		if i%200 == 0 {
			size = 6000
		}
		return fmt.Sprintf(`{"id":"%05d","pk":"%d","n":%s,"text":%q}`, i, i%7, n, strings.Repeat("x", size))
	})
	return c, files
}

// A sort without memory returns the same rows in the same order as one in memory: completely, with a limit, by windows,
// and in pages with continuations. It writes files only if it lacks memory, and leaves none.
func TestSortSpills(t *testing.T) {
	race.Alone(t)
	t.Parallel()
	const items = 2000
	whole, _ := spilling(t, items, budget.New(64<<20, 0), spill.Options{})
	tight := budget.New(1<<20, 0)
	c, files := spilling(t, items, tight, spill.Options{})
	for _, desc := range []bool{false, true} {
		for _, limit := range []int{0, 40, 900} {
			q := exec.Query{OrderBy: orderBy(desc, "n"), Compare: value.CompareCosmos, Limit: limit}
			want, err := run(bg, t, whole, &q, nil)
			if err != nil {
				t.Fatal(err)
			}
			if limit > 0 {
				want = want[:limit]
			}
			for _, page := range []int{0, 30, 700} {
				q := q
				q.Page = page
				before := files.Written()
				got, err := run(bg, t, c, &q, nil)
				if limit > 0 && len(got) > limit {
					got = got[:limit]
				}
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("desc %t, limit %d, page %d: %d rows, want %d; %v", desc, limit, page, len(got),
						len(want), err)
				}
				if spilled := files.Written() > before; spilled != (limit != 40) {
					t.Errorf("desc %t, limit %d, page %d: spilled %t", desc, limit, page, spilled)
				}
			}
			var got []string
			for more := true; more && len(got) < len(want); more = q.Continuation != "" {
				ids, next := page(t, c, q, 300)
				got, q.Continuation = append(got, ids...), next
			}
			if got = got[:min(len(got), len(want))]; !slices.Equal(got, want) {
				t.Errorf("desc %t, limit %d: %d rows by pages, want %d", desc, limit, len(got), len(want))
			}
		}
	}
}

// Ten concurrent sorts share a budget that is much smaller than one of them would need.
func TestManySortsSpillTogether(t *testing.T) {
	const items, limit = 1500, 4 << 20
	b := budget.New(limit, limit/2)
	c, _ := spilling(t, items, b, spill.Options{})
	errs := make(chan error, 10)
	for range cap(errs) {
		go func() {
			q, n, last := byN(0), 0, ""
			r, err := c.Query(bg, q)
			if err == nil {
				for r.Next() {
					n++
					last = r.Item().ID().Str()
				}
				err = r.Err()
				r.Close()
			}
			if err == nil && n != items {
				err = fmt.Errorf("%d rows, the last one %s", n, last)
			}
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// However a sort with files ends, the files are removed: an error, a panic, a client that disconnects while rows are
// read or returned, a full disk.
func TestSortLeavesNoFiles(t *testing.T) {
	race.Alone(t)
	const items = 1500
	full := spill.Options{Limit: 600 << 10}
	for name, tc := range map[string]struct {
		o    spill.Options
		at   int // candidate
		do   func(cancel func()) error
		row  int // at which it ends; 0 = none
		want status.Code
	}{
		"error": {at: 1400, do: func(func()) error { return status.New(status.BadRequest, "no") },
			want: status.BadRequest},
		"fault":  {at: 1400, do: func(func()) error { panic("a fault") }},
		"leave":  {at: 1200, do: func(cancel func()) error { cancel(); return nil }, want: status.Timeout},
		"closed": {row: 700},
		"full":   {o: full, want: status.StoreFull},
	} {
		t.Run(name, func(t *testing.T) {
			c, files := spilling(t, items, budget.New(1<<20, 0), tc.o)
			ctx, cancel := context.WithCancel(bg)
			defer cancel()
			q, n := byN(0), 0
			q.Match = func(*core.Item) (bool, error) {
				if n++; n == tc.at {
					return true, tc.do(cancel)
				}
				return true, nil
			}
			func() {
				defer func() { _ = recover() }()
				r, err := c.Query(ctx, q)
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				rows := 0
				for r.Next() {
					if rows++; rows == tc.row {
						return
					}
				}
				if tc.want != 0 && !status.Is(r.Err(), tc.want) {
					t.Errorf("the error is %v", r.Err())
				}
			}()
			if files.Written() == 0 {
				t.Error("nothing was written")
			}
			if files.Files() != 0 {
				t.Errorf("%d files are left", files.Files())
			}
		})
	}
}

// A sort whose rows are all in files no longer needs its view of the store: no new view is opened when it is old.
func TestSpilledRowsOutliveTheView(t *testing.T) {
	const items = 600
	files, err := spill.Open(filepath.Join(t.TempDir(), "spill"), spill.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := core.Open(bg, kv.Checked(memkv.New()), core.Options{MinSlots: 2, Budget: budget.New(512<<10, 0),
		Spill: files, ViewAge: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close() }()
	c := newContainer(t, e, core.ContainerSpec{IndexingPolicy: []byte(`{"indexingMode":"none","automatic":false}`)})
	text := strings.Repeat("x", 1000)
	putMany(t, c, items, func(i int) string {
		return fmt.Sprintf(`{"id":"%d","pk":"%d","n":%d,"text":%q}`, i, i%7, i*7919%items, text)
	})
	r, err := c.Query(bg, byN(0))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	n := 0
	for r.Next() {
		n++
	}
	if r.Err() != nil || n != items || r.Stats().Items > items {
		t.Errorf("%d rows, %d items were read, %v", n, r.Stats().Items, r.Err())
	}
	if files.Written() == 0 {
		t.Error("nothing was written")
	}
}
