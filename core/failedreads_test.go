package core_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/feed"
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

// failEach has reads of an operation fail, one in each run. The operation must end with that error, or with what it
// gives otherwise if it needn't have read. A panic is another error.
func failEach(t *testing.T, what string, op func(context.Context) (string, error)) {
	t.Helper()
	_, _ = op(bg) // counts what plans depend on
	want, err := op(bg)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	for n := int64(1); ; n += 1 + n/int64(race.Fewer(16, 4)) {
		ctx, left := withReads(n)
		got, err := caught(ctx, op)
		if left.Load() > 0 {
			return
		}
		if err == nil && got != want || err != nil && status.CodeOf(err) != status.Unavailable {
			t.Errorf("%s, read %d fails: %v\n%s\nwant\n%s", what, n, err, got, want)
		}
	}
}

func caught(ctx context.Context, op func(context.Context) (string, error)) (out string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return op(ctx)
}

// Whichever read of a query or a feed fails, it ends with that error, or gives the right rows. It leaves nothing open:
// kv.Checked finds that.
func TestQueriesWhoseReadsFail(t *testing.T) {
	t.Parallel()
	for name, eng := range map[string]kv.Engine{"local": failsRead{memkv.New()},
		"remote": &kvtest.Slow{Engine: failsRead{memkv.New()}, Far: true}} {
		t.Run(name, func(t *testing.T) {
			e := opened(t, kv.Checked(eng), core.Options{MinSlots: 20})
			c := forManyKinds(t, e, 200)
			queries := manyKinds()
			for _, name := range slices.Sorted(maps.Keys(queries)) {
				q := queries[name]
				for _, most := range []int{5, cmp.Or(q.Limit, 1000)} {
					q.PlanHash, q.Page = 1, most
					failEach(t, fmt.Sprintf("%s, %d rows", name, most), func(ctx context.Context) (string, error) {
						r, err := c.Query(ctx, &q)
						return readUpTo(r, err, &q, most)
					})
				}
				if !q.Whole && q.Limit == 0 {
					failEach(t, name+", in a transaction", func(ctx context.Context) (string, error) {
						return inTransaction(ctx, t, e, c, q)
					})
				}
			}
			for name, sc := range map[string]feed.Scope{"feed": {}, "feed of a key": {PK: pk("p3")}} {
				failEach(t, name, func(ctx context.Context) (string, error) { return pagesOfFeed(ctx, c, sc) })
			}
		})
	}
}

// readUpTo reads rows of a query, looks whether there are more, and goes on.
func readUpTo(r *exec.Rows, err error, q *exec.Query, most int) (string, error) {
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

// inTransaction reads a query in a transaction that has changed an item and created one: one on a logical partition if
// the query is on one.
func inTransaction(ctx context.Context, t *testing.T, e *core.Engine, c *core.Container, q exec.Query) (out string,
	err error) {
	ws := []core.Write{
		{Kind: core.Upsert, Doc: mustDoc(t, `{"id":"3","pk":"p3","n":30,"k":3,"s":"a","a":[2],"w":[{"v":3}]}`)},
		{Kind: core.Create, Doc: mustDoc(t, `{"id":"new","pk":"p3","n":31,"k":3,"s":"b","a":[2],"w":[{"v":4}]}`)}}
	if q.PK != nil {
		enough := status.New(status.Conflict, "enough")
		_, err = c.WithTx(ctx, q.PK, func(tx *core.Tx) error {
			for i := range ws {
				if _, err := tx.Write(&ws[i]); err != nil {
					return err
				}
			}
			r, err := c.QueryTx(ctx, tx, &q)
			out, err = readUpTo(r, err, &q, 5)
			return cmp.Or(err, error(enough))
		})
		if errors.Is(err, enough) {
			err = nil
		}
		return out, err
	}
	tr, err := e.Begin(ctx, time.Minute)
	if err != nil {
		return "", err
	}
	defer tr.Abort()
	for _, w := range ws {
		if _, err := tr.Write(ctx, c, w); err != nil {
			return "", err
		}
	}
	r, err := tr.Query(ctx, c, &q)
	return readUpTo(r, err, &q, 5)
}

// pagesOfFeed reads a feed in pages.
func pagesOfFeed(ctx context.Context, c *core.Container, sc feed.Scope) (string, error) {
	var b strings.Builder
	for pos := feed.Start(); ; {
		p, err := c.Feed(ctx, sc, pos, 7)
		if err != nil {
			return "", err
		}
		for _, it := range p.Items {
			fmt.Fprintf(&b, "%s ", it.ID().Str())
		}
		if pos = p.Next; !p.More {
			return b.String(), nil
		}
	}
}
