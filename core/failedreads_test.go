package core_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/internal/race"
)

// failsRead is an engine in which one read of a request fails. The request's ctx has the counter of its reads.
type failsRead struct{ kv.Engine }

type readsLeft struct{}

// withReads returns a ctx whose n-th read fails, and the counter of what is left.
func withReads(n int64) (context.Context, *atomic.Int64) {
	left := &atomic.Int64{}
	left.Store(n)
	return context.WithValue(bg, readsLeft{}, left), left
}

func (e failsRead) Snapshot(ctx context.Context) (kv.Snapshot, error) {
	left, _ := ctx.Value(readsLeft{}).(*atomic.Int64)
	if left == nil {
		return e.Engine.Snapshot(ctx)
	}
	if err := failNow(left); err != nil {
		return nil, err
	}
	s, err := e.Engine.Snapshot(ctx)
	return failingSnapshot{s, left}, err
}

func failNow(left *atomic.Int64) error {
	if left.Add(-1) == 0 {
		return fmt.Errorf("%w: a read that fails", kv.ErrUnavailable)
	}
	return nil
}

type failingSnapshot struct {
	kv.Snapshot
	left *atomic.Int64
}

func (s failingSnapshot) Get(dst, key []byte) ([]byte, error) {
	if err := failNow(s.left); err != nil {
		return dst, err
	}
	return s.Snapshot.Get(dst, key)
}

func (s failingSnapshot) GetMany(v *kv.Values, keys [][]byte) error {
	if err := failNow(s.left); err != nil {
		v.Reset()
		return err
	}
	return s.Snapshot.GetMany(v, keys)
}

func (s failingSnapshot) Has(key []byte) (bool, error) {
	if err := failNow(s.left); err != nil {
		return false, err
	}
	return s.Snapshot.Has(key)
}

func (s failingSnapshot) Iter(lo, hi []byte) (kv.Iterator, error) {
	if err := failNow(s.left); err != nil {
		return nil, err
	}
	it, err := s.Snapshot.Iter(lo, hi)
	return &failingIter{Iterator: it, left: s.left}, err
}

type failingIter struct {
	kv.Iterator
	left *atomic.Int64
	err  error
}

func (i *failingIter) move(f func() bool) bool {
	if i.err == nil {
		i.err = failNow(i.left)
	}
	return i.err == nil && f()
}

func (i *failingIter) First() bool { return i.move(i.Iterator.First) }
func (i *failingIter) Last() bool  { return i.move(i.Iterator.Last) }
func (i *failingIter) Next() bool  { return i.move(i.Iterator.Next) }
func (i *failingIter) Prev() bool  { return i.move(i.Iterator.Prev) }
func (i *failingIter) SeekGE(key []byte) bool {
	return i.move(func() bool { return i.Iterator.SeekGE(key) })
}
func (i *failingIter) SeekLT(key []byte) bool {
	return i.move(func() bool { return i.Iterator.SeekLT(key) })
}

func (i *failingIter) Err() error {
	if i.err != nil {
		return i.err
	}
	return i.Iterator.Err()
}

// Whichever read of a query fails, the query ends with that error, or with the right rows if it needn't have read. It
// leaves nothing open: kv.Checked finds that.
func TestQueriesWhoseReadsFail(t *testing.T) {
	t.Parallel()
	for name, eng := range map[string]kv.Engine{"local": failsRead{memkv.New()},
		"remote": &kvtest.Slow{Engine: failsRead{memkv.New()}, Far: true}} {
		t.Run(name, func(t *testing.T) {
			c := forManyKinds(t, opened(t, kv.Checked(eng), core.Options{MinSlots: 20}), 120)
			queries := manyKinds()
			for _, name := range slices.Sorted(maps.Keys(queries)) {
				q := queries[name]
				for _, most := range []int{5, cmp.Or(q.Limit, 1000)} {
					q.PlanHash, q.Page = 1, most
					_, _ = readUpTo(bg, c, &q, most) // counts what the plan depends on
					want, err := readUpTo(bg, c, &q, most)
					if err != nil {
						t.Fatal(err)
					}
					for n := int64(1); ; n += int64(race.Fewer(1, 5)) {
						ctx, left := withReads(n)
						got, err := readUpTo(ctx, c, &q, most)
						if left.Load() > 0 {
							break
						}
						if err == nil && got != want || err != nil && status.CodeOf(err) != status.Unavailable {
							t.Errorf("%s, %d rows, read %d fails: %v\n%s\nwant\n%s", name, most, n, err, got, want)
						}
					}
				}
			}
		})
	}
}

// readUpTo reads rows of a query, looks whether there are more, and reads as many again. A panic is an error.
func readUpTo(ctx context.Context, c *core.Container, q *exec.Query, most int) (out string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	r, err := c.Query(ctx, q)
	if err != nil {
		return "", err
	}
	defer r.Close()
	var b strings.Builder
	for n := 0; n < cmp.Or(q.Limit, 1000); n += most {
		for i := 0; i < most && r.Next(); i++ {
			fmt.Fprintf(&b, "%s*%d ", r.Item().ID().Str(), r.Times())
		}
		if r.Err() != nil || !q.Whole && r.Exhausted() {
			break
		}
	}
	return b.String(), r.Err()
}
