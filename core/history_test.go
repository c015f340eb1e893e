package core_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

// history is shared by the goroutines of TestHistory. Every writer has its own items and knows their state. All writers
// transfer money between the same accounts. Some items are never changed, and every query must return them.
type history struct {
	t     *testing.T
	e     *core.Engine
	c     *core.Container
	clk   *clock.Clock
	stop  atomic.Bool
	over  atomic.Bool // nobody needs time any more
	quiet atomic.Bool // nothing commits any more

	tailed map[string]int64 // the newest version of each writer's item that the tail has seen

	whole bool         // queries are read in one page
	steps int          // of each writer, at least
	left  atomic.Int64 // slots that are to be split or joined before the writers end
}

const (
	historyStill    = 60 // items that are never changed
	historyAccounts = 8
	historyWriters  = 4
)

// TestHistory runs writers, transactions, paged queries, changes of the indexing policy and the reaper at the same
// time. Afterwards the store agrees with what the writers know, and the checker finds nothing.
func TestHistory(t *testing.T) {
	t.Parallel()
	runHistory(t, false)
}

// TestHistoryWithSplits does the same while slots are split and joined all the time.
func TestHistoryWithSplits(t *testing.T) {
	t.Parallel()
	runHistory(t, true)
}

func runHistory(t *testing.T, splits bool) {
	for name, open := range engines {
		t.Run(name, func(t *testing.T) {
			h := &history{t: t, clk: clock.Fake(time.Unix(1_700_000_000, 0)), whole: splits,
				steps: overNetwork(150, 30)}
			if splits {
				h.left.Store(int64(race.Fewer(30, 12)))
			}
			eng := open(t)
			lease := time.Duration(overNetwork(400, 5000)) * time.Millisecond // a split that loses it ends
			o := core.Options{Clock: h.clk, MinSlots: 4, Lease: lease}
			e, err := core.Open(bg, eng, o)
			if err != nil {
				t.Fatal(err)
			}
			if openTwins(t, eng, e, o); splits && e.Shared() { // rebuilds and moves of two processes take turns
				h.left.Store(4)
			}
			h.e = e
			never := int32(-1)
			h.c = newContainer(t, e, core.ContainerSpec{DefaultTTL: &never, UniqueKeys: [][]string{{"/u"}},
				LogMinutes: 60})
			for i := range historyStill {
				put(t, h.c, core.Create, fmt.Sprintf(`{"id":"s%03d","pk":"p%d","n":%d,"u":"s%d"}`, i, i%5, i, i))
			}
			for i := range historyAccounts {
				put(t, h.c, core.Create, fmt.Sprintf(`{"id":"a%d","pk":"bank","money":100,"u":"a%d"}`, i, i))
			}
			var writers, others, passing, tails waiter
			models := make([]map[string]int64, historyWriters)
			for w := range historyWriters {
				models[w] = map[string]int64{}
				writers.Go(func() { h.write(w, models[w]) })
				writers.Go(func() { h.transfer(w) })
			}
			others.Go(h.query)
			others.Go(h.queryOrdered)
			others.Go(h.changePolicy)
			passing.Go(h.passTime)
			tails.Go(h.tail)
			if splits {
				others.Go(h.splitAndJoin)
			}
			writers.Wait()
			h.stop.Store(true)
			others.Wait()
			h.over.Store(true)
			passing.Wait()
			h.quiet.Store(true)
			tails.Wait()
			h.clk.Advance(time.Hour)
			e.Reap(bg)
			h.compare(models)
			clean(t, e)
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// write makes random writes to its own items. Each write increases n of the item.
func (h *history) write(w int, model map[string]int64) {
	r := rand.New(rand.NewPCG(uint64(w), 7))
	n := int64(0)
	var lsn int64
	for step := 0; step < h.steps || h.left.Load() > 0 && !h.t.Failed(); step++ {
		if step >= h.steps {
			time.Sleep(time.Millisecond)
		}
		n++
		k := r.IntN(12)
		id, key := fmt.Sprintf("w%d-%02d", w, k), fmt.Sprintf("p%d", k%5)
		old, there := model[id]
		text := fmt.Sprintf(`{"id":%q,"pk":%q,"n":%d,"v":[%d,"x%d"],"u":"%s"}`, id, key, n, n, n%3, id)
		d := mustDoc(h.t, text)
		res := core.Result{}
		var err error
		switch step % 6 {
		case 0:
			res, err = inTurn(h.c).Write(bg, core.Write{Kind: core.Create, Doc: d})
			if there != status.Is(err, status.Conflict) {
				h.t.Errorf("create of %s, there %v: %v", id, there, err)
			}
			if there {
				continue
			}
		case 1:
			res, err = inTurn(h.c).Write(bg, core.Write{Kind: core.Upsert, Doc: d})
		case 2:
			res, err = inTurn(h.c).Write(bg, core.Write{Kind: core.Replace, Doc: d, Check: func(it *core.Item) error {
				if it != nil && doc.Get(it.Doc, "n").Int() != old {
					return status.New(status.PreconditionFailed, "n is %d, not %d", doc.Get(it.Doc, "n").Int(), old)
				}
				return nil
			}})
			if there == status.Is(err, status.NotFound) {
				h.t.Errorf("replace of %s, there %v: %v", id, there, err)
			}
			if !there {
				continue
			}
		case 3:
			_, err = inTurn(h.c).Write(bg, core.Write{Kind: core.Delete, PK: pk(key), ID: value.StringOf(id)})
			if there == status.Is(err, status.NotFound) {
				h.t.Errorf("delete of %s, there %v: %v", id, there, err)
			}
			delete(model, id)
			continue
		case 4: // an item that will expire, and one that then takes its unique value
			ttl := mustDoc(h.t, fmt.Sprintf(`{"id":"e%d-%d","pk":%q,"ttl":5,"u":"e%d"}`, w, step, key, w))
			if _, err := inTurn(h.c).Write(bg, core.Write{Kind: core.Create, Doc: ttl}); err != nil &&
				!status.Is(err, status.Conflict) {
				h.t.Error(err)
			}
			continue
		case 5:
			both := []core.Write{{Kind: core.Upsert, Doc: d}, {Kind: core.Create, Doc: d}}
			out := inTurn(h.c).WriteMany(bg, both, false)
			res, err = out[0].Result, out[0].Err
			if !status.Is(out[1].Err, status.Conflict) {
				h.t.Errorf("second create of %s: %v", id, out[1].Err)
			}
		}
		if err != nil {
			h.t.Errorf("step %d of %s: %v", step, id, err)
			continue
		}
		model[id] = n
		if res.LSN <= 0 || res.Item.LSN != res.LSN || res.LSN == lsn && !h.e.Shared() {
			h.t.Errorf("%s: LSN %d after %d, item has %d", id, res.LSN, lsn, res.Item.LSN)
		}
		lsn = res.LSN
		it, err := inTurn(h.c).Read(bg, pk(key), value.StringOf(id))
		if err != nil || doc.Get(it.Doc, "n").Int() != n {
			h.t.Errorf("%s reads back as %v (%v)", id, it, err)
		}
	}
}

// transfer transfers money between two accounts, by a transaction or by updates.
func (h *history) transfer(w int) {
	r := rand.New(rand.NewPCG(uint64(w), 8))
	account := func(i int, n int64) doc.Doc {
		return mustDoc(h.t, fmt.Sprintf(`{"id":"a%d","pk":"bank","money":%d,"u":"a%d"}`, i, n, i))
	}
	for range h.steps / 3 {
		from, to := r.IntN(historyAccounts), r.IntN(historyAccounts)
		if from == to {
			continue
		}
		_, err := inTurn(h.c).WithTx(bg, pk("bank"), func(tx *core.Tx) error {
			a, err := tx.Read(value.StringOf(fmt.Sprintf("a%d", from)))
			if err != nil {
				return err
			}
			b, err := tx.Read(value.StringOf(fmt.Sprintf("a%d", to)))
			if err != nil {
				return err
			}
			for _, d := range []doc.Doc{
				account(from, doc.Get(a.Doc, "money").Int()-1), account(to, doc.Get(b.Doc, "money").Int()+1)} {
				if _, err := tx.Write(&core.Write{Kind: core.Replace, Doc: d}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil && !status.Is(err, status.RetryWith) {
			h.t.Error(err)
		}
	}
}

// run reads a query in pages and returns the ids of its rows and their values of n.
func (h *history) run(q exec.Query, n int) (got []string) {
	if h.whole {
		n = 1 << 20
	}
	for {
		r, err := inTurn(h.c).Query(bg, &q)
		if err != nil {
			h.t.Error(err)
			return got
		}
		k := 0
		for k < n && r.Next() {
			got = append(got, r.Item().ID().Str())
			k++
		}
		if err := r.Err(); err != nil {
			h.t.Error(err)
		}
		q.Continuation = r.Continuation()
		if r.Exhausted() || q.Continuation == "" {
			r.Close()
			return got
		}
		r.Close()
	}
}

// still checks that each unchanged item came once. Their ids begin with s.
func (h *history) still(what string, got []string) (still []string) {
	for _, id := range got {
		if id[0] == 's' {
			still = append(still, id)
		}
	}
	sorted := slices.Sorted(slices.Values(still))
	if len(sorted) != historyStill || len(slices.Compact(sorted)) != historyStill {
		h.t.Errorf("%s: %d of %d still items: %v", what, len(still), historyStill, still)
	}
	return still
}

// query reads everything, by scan, by index and by union. It reads the accounts in one page: their sum never changes.
func (h *history) query() {
	n := access.NewPath("n")
	all := access.Range(n, &access.Bound{Value: value.Int32Of(0), Inclusive: true}, nil)
	elems := access.Range(n.Element(), &access.Bound{Value: value.Int32Of(0), Inclusive: true}, nil)
	for i := 0; !h.stop.Load(); i++ {
		size := 7 + i%50
		h.still("scan", h.run(exec.Query{}, size))
		h.still("index", h.run(exec.Query{Pred: all}, size))
		h.still("elements", h.run(exec.Query{Pred: elems}, size))
		h.still(
			"union",
			h.run(exec.Query{Pred: access.Or(all, access.Eq(access.NewPath("v").Element(), value.StringOf("x1")))},
				size))
		sum := int64(0)
		r, err := inTurn(h.c).Query(bg, &exec.Query{PK: pk("bank")})
		if err != nil {
			h.t.Error(err)
			return
		}
		for r.Next() {
			sum += doc.Get(r.Item().Doc, "money").Int()
		}
		r.Close()
		if sum != historyAccounts*100 {
			h.t.Errorf("the accounts hold %d", sum)
		}
	}
}

// queryOrdered reads everything in order.
func (h *history) queryOrdered() {
	n := access.NewPath("n")
	all := access.Range(n, &access.Bound{Value: value.Int32Of(0), Inclusive: true}, nil)
	for i := 0; !h.stop.Load(); i++ {
		desc := i%2 == 0
		q := exec.Query{OrderBy: orderBy(desc, "n"), Compare: value.CompareCosmos}
		if i%3 == 0 {
			q.Pred = all
		}
		still := h.still("order", h.run(q, 9+i%40))
		if desc {
			slices.Reverse(still)
		}
		if !slices.IsSorted(still) {
			h.t.Errorf("not in order: %v", still)
		}
	}
}

func (h *history) changePolicy() {
	policies := []string{"", noIndex, `{"includedPaths":[{"path":"/n/?"}],"excludedPaths":[{"path":"/*"}]}`,
		`{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/v/*"}]}`}
	for i := 0; !h.stop.Load(); i++ {
		spec := h.c.Spec().Clone()
		spec.IndexingPolicy = []byte(policies[i%len(policies)])
		if _, err := h.e.ReplaceContainer(bg, "db", "c", spec); err != nil {
			h.t.Error(err)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// splitAndJoin splits slots until there are 16, joins them until there are 2, and begins again.
func (h *history) splitAndJoin() {
	move := func(f func(context.Context, []byte) error, at []byte) {
		if h.stop.Load() {
			return
		}
		if err := f(bg, at); err != nil {
			h.t.Error(err)
		}
		h.left.Add(-1)
	}
	for !h.stop.Load() {
		for n := 4; n <= 16; n *= 2 {
			for _, at := range nested(n) {
				move(h.c.SplitSlot, at)
			}
		}
		for i, at := range nested(16) {
			if i != 7 {
				move(h.c.JoinSlots, at)
			}
		}
	}
}

// passTime lets time pass until nobody works any more. Where processes have leases it passes slowly enough for these to
// be renewed.
func (h *history) passTime() {
	step := time.Second
	if h.e.Shared() {
		step = time.Millisecond
	}
	for !h.over.Load() {
		h.clk.Advance(step)
		h.e.Reap(bg)
		time.Sleep(time.Millisecond)
	}
}

// scale returns what has an order of LSNs in the feed: the container, or in a store that processes share each logical
// partition, wherever slots are split.
func (h *history) scale(it *core.Item) string {
	if !h.e.Shared() {
		return ""
	}
	return it.PK()[0].Str()
}

// tail reads the feed while others write, in pages. Each version comes once, in the order of LSNs. A commit in flight
// holds back what was acknowledged after it, so that an empty page is the end only once nothing commits any more, which
// includes the reaper.
func (h *history) tail() {
	h.tailed = map[string]int64{}
	lasts, pos := map[string]int64{}, feed.Start()
	for stopped := false; ; stopped = h.quiet.Load() {
		page, err := inTurn(h.c).ChangeFeed(bg, "", pos, 7)
		if err != nil {
			h.t.Error(err)
			return
		}
		for i, it := range page.Items {
			of := h.scale(it)
			last := lasts[of]
			if it.LSN < last || it.LSN == last && (i == 0 || it.Pos <= page.Items[i-1].Pos) {
				h.t.Errorf("the tail has %s of LSN %d after LSN %d", it.ID().Str(), it.LSN, last)
			}
			lasts[of] = it.LSN
			if id := it.ID().Str(); strings.HasPrefix(id, "w") {
				h.tailed[id] = doc.Get(it.Doc, "n").Int()
			}
		}
		if pos = page.Next; stopped && len(page.Items) == 0 && !page.More {
			return
		}
	}
}

// compare compares the store with what the writers know, by scan and by feed.
func (h *history) compare(models []map[string]int64) {
	want := map[string]int64{}
	for _, m := range models {
		maps.Copy(want, m)
	}
	got := map[string]int64{}
	page, err := inTurn(h.c).ChangeFeed(bg, "", feed.Start(), 1<<20)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, it := range page.Items {
		if id := it.ID().Str(); strings.HasPrefix(id, "w") {
			if _, twice := got[id]; twice {
				h.t.Errorf("%s is in the feed twice", id)
			}
			got[id] = doc.Get(it.Doc, "n").Int()
		}
	}
	if !maps.Equal(got, want) {
		h.t.Errorf("the feed has %v, want %v", got, want)
	}
	for id, n := range want {
		if h.tailed[id] != n {
			h.t.Errorf("the tail has version %d of %s, the newest is %d", h.tailed[id], id, n)
		}
	}
	rows := h.run(exec.Query{}, 1000)
	if n := len(want) + historyStill + historyAccounts; len(rows) != n || counted(inTurn(h.c)) != int64(n) {
		h.t.Errorf("%d rows, count %d, want %d", len(rows), counted(inTurn(h.c)), n)
	}
}
