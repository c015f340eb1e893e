package core_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/access"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

var bg = context.Background()

// engines are the storage engines that every test of this file runs on, with their contracts checked.
var engines = map[string]func(t testing.TB) kv.Engine{
	"mem": func(testing.TB) kv.Engine { return kv.Checked(memkv.New()) },
	"pebble": func(t testing.TB) kv.Engine {
		e, err := pebblekv.Open(t.TempDir(), pebblekv.Options{Relaxed: true})
		if err != nil {
			t.Fatal(err)
		}
		return kv.Checked(e)
	},
}

// onEngines runs f on an engine of each kind; afterwards the checker must find nothing.
func onEngines(t *testing.T, o core.Options, f func(t *testing.T, e *core.Engine)) {
	for name, open := range engines {
		t.Run(name, func(t *testing.T) {
			e, err := core.Open(bg, open(t), o)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				problems, err := e.Check(bg)
				if err != nil || len(problems) > 0 {
					t.Errorf("check: %v %s", err, strings.Join(problems, "\n"))
				}
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			}()
			f(t, e)
		})
	}
}

func newContainer(t testing.TB, e *core.Engine, spec core.ContainerSpec) *core.Container {
	t.Helper()
	if _, err := e.EnsureDatabase(bg, "db"); err != nil {
		t.Fatal(err)
	}
	if spec.ID == "" {
		spec.ID = "c"
	}
	if spec.PartitionKey.Paths == nil {
		spec.PartitionKey.Paths = []string{"/pk"}
	}
	c, err := e.CreateContainer(bg, "db", spec)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mustDoc(t testing.TB, json string) doc.Doc {
	t.Helper()
	d, err := doc.FromJSON(nil, []byte(json), doc.JSONOptions{Names: doc.NoSQL})
	if err != nil {
		t.Fatalf("%s: %v", json, err)
	}
	return d
}

func put(t testing.TB, c *core.Container, kind core.WriteKind, json string) core.Result {
	t.Helper()
	r, err := c.Write(bg, core.Write{Kind: kind, Doc: mustDoc(t, json)})
	if err != nil {
		t.Fatalf("%s: %v", json, err)
	}
	return r
}

func pk(v ...string) core.PartitionKey {
	var p core.PartitionKey
	for _, s := range v {
		p = append(p, value.StringOf(s))
	}
	return p
}

func json(it *core.Item) string {
	return string(doc.AppendJSON(nil, value.ObjectOf(it.Doc)))
}

func wantCode(t testing.TB, err error, code status.Code, sub int) {
	t.Helper()
	if err == nil || status.CodeOf(err) != code || status.From(err).Sub != sub {
		t.Fatalf("error is %v, want code %d sub-status %d", err, code, sub)
	}
}

func TestItemLife(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		_, err := c.Read(bg, pk("a"), value.StringOf("1"))
		wantCode(t, err, status.NotFound, 0)
		r := put(t, c, core.Create, `{"id":"1","pk":"a","n":1}`)
		if !r.Created || r.Charge <= 0 {
			t.Errorf("create: %+v", r)
		}
		_, err = c.Write(bg, core.Write{Kind: core.Create, Doc: mustDoc(t, `{"id":"1","pk":"a"}`)})
		wantCode(t, err, status.Conflict, 0)
		first, err := c.Read(bg, pk("a"), value.StringOf("1"))
		if err != nil {
			t.Fatal(err)
		}
		if first.ETag() != r.Item.ETag() || first.LSN != r.LSN {
			t.Errorf("read shows another version than the write: %s %s", first.ETag(), r.Item.ETag())
		}
		r2 := put(t, c, core.Upsert, `{"id":"1","pk":"a","n":2}`)
		if r2.Created || r2.Item.ETag() == r.Item.ETag() || r2.Item.Number != r.Item.Number {
			t.Errorf("upsert: %+v", r2)
		}
		if c.Count() != 1 {
			t.Errorf("count is %d", c.Count())
		}
		_, err = c.Write(bg, core.Write{Kind: core.Replace, PK: pk("b"), Doc: mustDoc(t, `{"id":"1","pk":"a"}`)})
		wantCode(t, err, status.BadRequest, status.SubPartitionKeyMismatch)
		stale := r.Item.ETag()
		_, err = c.Write(bg, core.Write{Kind: core.Delete, PK: pk("a"), ID: value.StringOf("1"), Check: func(old *core.Item) error {
			if old.ETag() != stale {
				return status.New(status.PreconditionFailed, "etag")
			}
			return nil
		}})
		wantCode(t, err, status.PreconditionFailed, 0)
		if _, err = c.Write(bg, core.Write{Kind: core.Delete, PK: pk("a"), ID: value.StringOf("1")}); err != nil {
			t.Fatal(err)
		}
		_, err = c.Write(bg, core.Write{Kind: core.Delete, PK: pk("a"), ID: value.StringOf("1")})
		wantCode(t, err, status.NotFound, 0)
		if c.Count() != 0 || c.Size() != 0 {
			t.Errorf("count %d, size %d after the last delete", c.Count(), c.Size())
		}
	})
}

func TestTxIsAllOrNothing(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		put(t, c, core.Create, `{"id":"1","pk":"a","n":1}`)
		_, err := c.WithTx(bg, pk("a"), func(tx *core.Tx) error {
			if _, err := tx.Write(&core.Write{Kind: core.Create, Doc: mustDoc(t, `{"id":"2","pk":"a"}`)}); err != nil {
				return err
			}
			if _, err := tx.Read(value.StringOf("2")); err != nil {
				return fmt.Errorf("own write: %w", err)
			}
			_, err := tx.Write(&core.Write{Kind: core.Create, Doc: mustDoc(t, `{"id":"1","pk":"a"}`)})
			return err
		})
		wantCode(t, err, status.Conflict, 0)
		_, err = c.Read(bg, pk("a"), value.StringOf("2"))
		wantCode(t, err, status.NotFound, 0)

		var made [3]*core.Item
		cm, err := c.WithTx(bg, pk("a"), func(tx *core.Tx) error {
			for i := range made {
				r, err := tx.Write(&core.Write{Kind: core.Upsert, Doc: mustDoc(t, fmt.Sprintf(`{"id":"%d","pk":"a","tx":true}`, i))})
				if err != nil {
					return err
				}
				made[i] = r.Item
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, it := range made {
			if it.LSN != cm.LSN || int(it.Pos) != i {
				t.Errorf("item %d of the transaction has LSN %d position %d, want %d", i, it.LSN, it.Pos, cm.LSN)
			}
		}
	})
}

// TestTxConflictRunsAgain writes to the logical partition while a transaction runs: the function must see the new state.
func TestTxConflictRunsAgain(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		put(t, c, core.Create, `{"id":"sum","pk":"a","n":0}`)
		runs := 0
		_, err := c.WithTx(bg, pk("a"), func(tx *core.Tx) error {
			runs++
			it, err := tx.Read(value.StringOf("sum"))
			if err != nil {
				return err
			}
			n := doc.Get(it.Doc, "n").Int()
			if runs == 1 {
				put(t, c, core.Upsert, `{"id":"sum","pk":"a","n":10}`)
			}
			_, err = tx.Write(&core.Write{Kind: core.Replace, Doc: mustDoc(t, fmt.Sprintf(`{"id":"sum","pk":"a","n":%d}`, n+1))})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		it, err := c.Read(bg, pk("a"), value.StringOf("sum"))
		if err != nil {
			t.Fatal(err)
		}
		if runs != 2 || doc.Get(it.Doc, "n").Int() != 11 {
			t.Errorf("%d runs, %s", runs, json(it))
		}
	})
}

// TestUpdateRaces increments one counter from many goroutines: none may be lost.
func TestUpdateRaces(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		put(t, c, core.Create, `{"id":"1","pk":"a","n":0}`)
		const workers, times = 8, 50
		var wg sync.WaitGroup
		for range workers {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for range times {
					_, err := c.Write(bg, core.Write{Kind: core.Update, PK: pk("a"), ID: value.StringOf("1"), Update: func(old *core.Item) (core.Change, error) {
						return core.Change{Doc: mustDoc(t, fmt.Sprintf(`{"id":"1","pk":"a","n":%d}`, doc.Get(old.Doc, "n").Int()+1))}, nil
					}})
					if err != nil {
						t.Error(err)
					}
				}
			}()
		}
		wg.Wait()
		it, err := c.Read(bg, pk("a"), value.StringOf("1"))
		if err != nil || doc.Get(it.Doc, "n").Int() != workers*times {
			t.Errorf("%v %v", err, it)
		}
	})
}

func TestExpiry(t *testing.T) {
	clk := clock.Fake(time.Unix(1_700_000_000, 0))
	onEngines(t, core.Options{Clock: clk}, func(t *testing.T, e *core.Engine) {
		ttl := int32(100)
		c := newContainer(t, e, core.ContainerSpec{DefaultTTL: &ttl, UniqueKeys: [][]string{{"/u"}}})
		old := put(t, c, core.Create, `{"id":"1","pk":"a","u":1}`)
		put(t, c, core.Create, `{"id":"2","pk":"a","ttl":10,"u":2}`)
		put(t, c, core.Create, `{"id":"3","pk":"a","ttl":-1,"u":3}`)
		clk.Advance(11 * time.Second)
		_, err := c.Read(bg, pk("a"), value.StringOf("2"))
		wantCode(t, err, status.NotFound, 0)
		put(t, c, core.Create, `{"id":"4","pk":"a","u":2}`) // the unique value of an expired item is free
		clk.Advance(95 * time.Second)
		if n := e.Reap(bg); n != 2 || c.Count() != 2 {
			t.Errorf("reaped %d, %d left", n, c.Count())
		}
		if p, err := e.Check(bg); err != nil || len(p) > 0 {
			t.Errorf("after reaping: %v %v", err, p)
		}
		_, err = c.Write(bg, core.Write{Kind: core.Create, Doc: mustDoc(t, `{"id":"5","pk":"a","u":2}`)})
		wantCode(t, err, status.Conflict, 0) // it belongs to item 4 now
		clk.Advance(5 * time.Second)
		if got := ids(t, c, &exec.Query{PK: pk("a")}); !slices.Equal(got, []string{"3"}) {
			t.Errorf("alive: %v", got)
		}
		again := put(t, c, core.Create, `{"id":"1","pk":"a","u":1}`)
		if !again.Created || again.Item.Number == old.Item.Number {
			t.Errorf("an expired item was not created anew: %+v", again)
		}
	})
}

func TestUniqueKeys(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{UniqueKeys: [][]string{{"/email"}, {"/a", "/b/c"}}})
		put(t, c, core.Create, `{"id":"1","pk":"p","email":"x","a":1}`)
		_, err := c.Write(bg, core.Write{Kind: core.Create, Doc: mustDoc(t, `{"id":"2","pk":"p","email":"x","a":2}`)})
		wantCode(t, err, status.Conflict, 0)
		put(t, c, core.Create, `{"id":"2","pk":"q","email":"x","a":1}`) // another logical partition
		put(t, c, core.Create, `{"id":"3","pk":"p","email":"y","a":3}`)
		_, err = c.Write(bg, core.Write{Kind: core.Replace, Doc: mustDoc(t, `{"id":"3","pk":"p","email":"y","a":1}`)})
		wantCode(t, err, status.Conflict, 0)
		_, err = c.WithTx(bg, pk("p"), func(tx *core.Tx) error { // two items swap their values: free inside one commit
			for _, d := range []string{`{"id":"1","pk":"p","email":"y","a":1}`, `{"id":"3","pk":"p","email":"x","a":3}`} {
				if _, err := tx.Write(&core.Write{Kind: core.Replace, Doc: mustDoc(t, d)}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestDropAndReopen(t *testing.T) {
	dir := t.TempDir()
	open := func() *core.Engine {
		kve, err := pebblekv.Open(dir, pebblekv.Options{})
		if err != nil {
			t.Fatal(err)
		}
		e, err := core.Open(bg, kve, core.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	e := open()
	c := newContainer(t, e, core.ContainerSpec{})
	put(t, c, core.Create, `{"id":"1","pk":"a"}`)
	lsn := c.LSN()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = open()
	c, err := e.Container("db", "c")
	if err != nil {
		t.Fatal(err)
	}
	if r := put(t, c, core.Create, `{"id":"2","pk":"a"}`); r.LSN <= lsn {
		t.Errorf("LSN %d after a restart, %d before", r.LSN, lsn)
	}
	if c.Count() != 2 {
		t.Errorf("count is %d", c.Count())
	}
	if err := e.DropContainer(bg, "db", "c"); err != nil {
		t.Fatal(err)
	}
	_, err = c.Write(bg, core.Write{Kind: core.Create, Doc: mustDoc(t, `{"id":"3","pk":"a"}`)})
	wantCode(t, err, status.NotFound, status.SubOwnerNotFound)
	c = newContainer(t, e, core.ContainerSpec{})
	if c.Count() != 0 || len(ids(t, c, &exec.Query{})) != 0 {
		t.Error("a new container of the same name has old items")
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// ids runs a query to its end in one go.
func ids(t testing.TB, c *core.Container, q *exec.Query) []string {
	t.Helper()
	r, err := c.Query(bg, q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out []string
	for r.Next() {
		out = append(out, r.Item().ID().Str())
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	return out
}

// paged runs a query with n rows a page.
func paged(t testing.TB, c *core.Container, q exec.Query, n int) []string {
	t.Helper()
	var out []string
	for pages := 0; pages < 10000; pages++ {
		r, err := c.Query(bg, &q)
		if err != nil {
			t.Fatal(err)
		}
		k := 0
		for k < n && r.Next() {
			out = append(out, r.Item().ID().Str())
			k++
		}
		if r.Err() != nil {
			t.Fatal(r.Err())
		}
		tok := r.Continuation()
		if len(tok) > 1024 {
			t.Fatalf("continuation of %d bytes", len(tok))
		}
		done := r.Exhausted()
		r.Close()
		if done || tok == "" {
			return out
		}
		q.Continuation = tok
	}
	t.Fatal("the query does not end")
	return nil
}

func TestIndexRebuild(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		for i := range 100 {
			put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p%d","a":%d,"b":[%d]}`, i, i%7, i%3, i))
		}
		for _, policy := range []string{
			`{"indexingMode":"consistent","includedPaths":[{"path":"/b/[]/?"}],"excludedPaths":[{"path":"/*"}]}`,
			`{"indexingMode":"none"}`,
			`{"indexingMode":"consistent","includedPaths":[{"path":"/*"},{"path":"/a/?"}],"excludedPaths":[{"path":"/b/*"}]}`,
		} {
			spec := c.Spec().Clone()
			spec.IndexingPolicy = []byte(policy)
			c, err := e.ReplaceContainer(bg, "db", "c", spec)
			if err != nil {
				t.Fatal(err)
			}
			got := ids(t, c, &exec.Query{Pred: access.Eq(access.NewPath("a"), value.Int32Of(1)), Match: func(it *core.Item) (bool, error) {
				return doc.Get(it.Doc, "a").Int() == 1, nil
			}})
			if len(got) != 33 {
				t.Errorf("%s: %d rows", policy, len(got))
			}
			if p, err := e.Check(bg); err != nil || len(p) > 0 {
				t.Errorf("%s: %v %v", policy, err, p)
			}
		}
	})
}

func TestFeed(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{Throughput: core.Throughput{Manual: 20000}})
		if len(c.Partitions()) != 2 {
			t.Fatalf("20,000 RU/s gave %d partitions", len(c.Partitions()))
		}
		for i := range 50 {
			put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p%d","v":0}`, i, i))
		}
		for i := 0; i < 50; i += 2 {
			put(t, c, core.Replace, fmt.Sprintf(`{"id":"%d","pk":"p%d","v":1}`, i, i))
		}
		seen := map[string]int{}
		for _, p := range c.Partitions() {
			pos := feed.Start()
			for {
				page, err := c.ChangeFeed(bg, p.ID, pos, 7)
				if err != nil {
					t.Fatal(err)
				}
				for _, it := range page.Items {
					seen[it.ID().Str()]++
				}
				if pos, err = feed.Parse(page.Next.String()); err != nil {
					t.Fatal(err)
				}
				if !page.More {
					break
				}
			}
		}
		if len(seen) != 50 {
			t.Errorf("%d items in the feed", len(seen))
		}
		for id, n := range seen {
			if n != 1 {
				t.Errorf("item %s came %d times", id, n)
			}
		}
	})
}

// TestQueriesAgainstOracle runs random predicates, orders and page sizes over random documents and compares with a plain
// loop; with the index and without, with 1 slot and 16.
func TestQueriesAgainstOracle(t *testing.T) {
	policies := map[string]string{"all": "", "none": `{"indexingMode":"none"}`,
		"a only": `{"indexingMode":"consistent","includedPaths":[{"path":"/a/?"}],"excludedPaths":[{"path":"/*"}]}`}
	for name, policy := range policies {
		for _, slots := range []int{1, 16} {
			t.Run(fmt.Sprintf("%s/%d slots", name, slots), func(t *testing.T) {
				e, err := core.Open(bg, kv.Checked(memkv.New()), core.Options{MinSlots: slots})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				spec := core.ContainerSpec{}
				if policy != "" {
					spec.IndexingPolicy = []byte(policy)
				}
				oracle(t, e, newContainer(t, e, spec), rand.New(rand.NewPCG(1, uint64(slots))))
				if p, err := e.Check(bg); err != nil || len(p) > 0 {
					t.Errorf("check: %v %v", err, p)
				}
			})
		}
	}
}

func oracle(t *testing.T, e *core.Engine, c *core.Container, r *rand.Rand) {
	docs := map[string]doc.Doc{}
	for i := range 400 {
		id := fmt.Sprintf("i%03d", r.IntN(300))
		d := fmt.Sprintf(`{"id":%q,"pk":"p%d"`, id, len(id)%2+int(id[3])%5)
		for _, f := range []string{"a", "b"} {
			if v := randomValue(r); v != "" {
				d += fmt.Sprintf(`,%q:%s`, f, v)
			}
		}
		d += "}"
		put(t, c, core.Upsert, d)
		docs[id] = mustDoc(t, d)
		if i%7 == 3 {
			_, err := c.Write(bg, core.Write{Kind: core.Delete, PK: core.PartitionKey{doc.Get(docs[id], "pk")}, ID: value.StringOf(id)})
			if err != nil {
				t.Fatal(err)
			}
			delete(docs, id)
		}
	}
	for n := range 200 {
		pred, match := randomPred(r, 2)
		q := exec.Query{Pred: pred, PlanHash: uint64(n), Match: func(it *core.Item) (bool, error) { return match(it.Doc), nil }}
		if r.IntN(4) == 0 {
			q.PK = pk(fmt.Sprintf("p%d", r.IntN(6)))
		}
		desc := r.IntN(2) == 0
		if r.IntN(2) == 0 {
			q.Compare = value.CompareCosmos
			q.OrderBy = []exec.Order{{Path: access.NewPath("a"), Desc: desc}}
		}
		var want []string
		for id, d := range docs {
			if match(d) && (q.PK == nil || value.EqualCosmos(doc.Get(d, "pk"), q.PK[0])) {
				want = append(want, id)
			}
		}
		for _, page := range []int{1, 3, 1000} {
			if page == 1 && n%6 != 0 {
				continue
			}
			got := paged(t, c, q, page)
			if q.OrderBy != nil {
				if !sort.SliceIsSorted(got, func(i, j int) bool {
					cmp := value.CompareCosmos(doc.Get(docs[got[i]], "a"), doc.Get(docs[got[j]], "a"))
					return cmp != 0 && (cmp < 0) != desc
				}) {
					t.Fatalf("query %d, page %d: not in order: %v", n, page, got)
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				p, _ := c.Explain(bg, &q)
				t.Fatalf("query %d (%s), page %d:\n got %v\nwant %v", n, p.Explain(), page, got, want)
			}
		}
	}
}

func randomValue(r *rand.Rand) string {
	switch r.IntN(9) {
	case 0:
		return ""
	case 1:
		return "null"
	case 2:
		return "true"
	case 3:
		return fmt.Sprintf("%q", strings.Repeat("x", 255+r.IntN(4))+string(rune('a'+r.IntN(3))))
	case 4:
		return fmt.Sprintf("[%d,%q,%d]", r.IntN(5), string(rune('a'+r.IntN(3))), r.IntN(5))
	case 5:
		return fmt.Sprintf("%q", string(rune('a'+r.IntN(5))))
	case 6:
		return fmt.Sprintf("%d.5", r.IntN(10)-5)
	}
	return fmt.Sprint(r.IntN(10) - 5)
}

// randomPred returns a predicate and its exact meaning on a document.
func randomPred(r *rand.Rand, depth int) (*access.Pred, func(doc.Doc) bool) {
	if depth > 0 && r.IntN(3) == 0 {
		p, f := randomPred(r, depth-1)
		q, g := randomPred(r, depth-1)
		if r.IntN(2) == 0 {
			return access.And(p, q), func(d doc.Doc) bool { return f(d) && g(d) }
		}
		return access.Or(p, q), func(d doc.Doc) bool { return f(d) || g(d) }
	}
	name := []string{"a", "b", "pk", "_id"}[r.IntN(4)]
	path := access.NewPath(name)
	each := func(d doc.Doc, f func(value.Value) bool) bool { return f(doc.Get(d, name)) }
	if r.IntN(3) == 0 {
		path = path.Element()
		each = func(d doc.Doc, f func(value.Value) bool) bool {
			v := doc.Get(d, name)
			for it := v.Iter(); v.Kind() == value.Array && it.Next(); {
				if f(it.Value()) {
					return true
				}
			}
			return f(v)
		}
	}
	random := func() value.Value {
		switch name {
		case "pk":
			return value.StringOf(fmt.Sprintf("p%d", r.IntN(6)))
		case "_id":
			return value.StringOf(fmt.Sprintf("i%03d", r.IntN(300)))
		}
		for {
			if s := randomValue(r); s != "" && s[0] != '[' {
				v, _ := doc.ValueFromJSON([]byte(s))
				return v
			}
		}
	}
	switch r.IntN(4) {
	case 0:
		v := random()
		return access.Eq(path, v), func(d doc.Doc) bool {
			return each(d, func(x value.Value) bool { return x.IsDefined() && value.EqualCosmos(x, v) })
		}
	case 1:
		v, w := random(), random()
		return access.In(path, v, w), func(d doc.Doc) bool {
			return each(d, func(x value.Value) bool {
				return x.IsDefined() && (value.EqualCosmos(x, v) || value.EqualCosmos(x, w))
			})
		}
	case 2:
		return access.Exists(path), func(d doc.Doc) bool { return doc.Get(d, name).IsDefined() }
	}
	v, incl, up := random(), r.IntN(2) == 0, r.IntN(2) == 0
	b := &access.Bound{Value: v, Inclusive: incl}
	p := access.Range(path, b, nil)
	if up {
		p = access.Range(path, nil, b)
	}
	return p, func(d doc.Doc) bool {
		return each(d, func(x value.Value) bool {
			if x.Class() != v.Class() {
				return false
			}
			c := value.CompareCosmos(x, v)
			return c == 0 && incl || c != 0 && (c < 0) == up
		})
	}
}

// TestOrderFromIndex sorts by a path without a condition on it: once the slots count the path the index gives the order, and
// an item without the path sends the query back to a sort, never out of the result.
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
		check(access.Scan, 200) // nobody has sorted by n before
		check(access.Ordered, 200)
		put(t, c, core.Create, `{"id":"none","pk":"p1"}`)
		check(access.Scan, 201)
		if _, err := c.Write(bg, core.Write{Kind: core.Delete, PK: pk("p1"), ID: value.StringOf("none")}); err != nil {
			t.Fatal(err)
		}
		check(access.Ordered, 200)
	})
}
