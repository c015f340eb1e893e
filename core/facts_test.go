package core_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

// byField is a query ordered by a field.
func byField(field string) exec.Query {
	return exec.Query{OrderBy: orderBy(false, field), Compare: value.CompareCosmos}
}

// firstRows reads the first rows of a query and returns the cost.
func firstRows(t testing.TB, c *core.Container, q exec.Query, n int) (ids []string, st exec.Stats) {
	t.Helper()
	q.Page = n
	r, err := c.Query(bg, &q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for len(ids) < n && r.Next() {
		ids = append(ids, r.Item().ID().Str())
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	return ids, *r.Stats()
}

// wantSorted fails unless the first rows, ordered by a field, are sorted, or read from the index at the cost of as many
// items.
func wantSorted(t testing.TB, c *core.Container, field string, sorted bool) {
	t.Helper()
	_, st := firstRows(t, c, byField(field), 10)
	if st.Sorted != sorted || !sorted && (st.Items > 10 || st.Plan.Kind != access.Ordered) {
		t.Errorf("order by %s: sorted %v with %d items read, want sorted %v (%s)", field, st.Sorted, st.Items, sorted,
			st.Plan.Explain())
	}
}

// waitPlan waits until a plan that depends on a background count is as expected.
func waitPlan(t testing.TB, c *core.Container, q *exec.Query, is func(p *access.Plan) bool) {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		p, err := c.Explain(bg, q)
		if err != nil {
			t.Fatal(err)
		}
		if is(&p) {
			return
		}
		if time.Since(begun) > 20*time.Second {
			t.Fatalf("the plan is %s", p.Explain())
		}
	}
}

// factKeys returns the keys of the facts that an engine stores.
func factKeys(t testing.TB, e kv.Engine) []string { return keysOfKind(t, e, keys.KindFact) }
func slotCount(t testing.TB, e kv.Engine) int     { return len(keysOfKind(t, e, keys.KindHead)) }

func keysOfKind(t testing.TB, e kv.Engine, want keys.Kind) (all []string) {
	t.Helper()
	ks, _ := every(t, e)
	for _, key := range ks {
		if _, kind, _ := keys.ParseSlot(key); kind == want {
			all = append(all, string(key))
		}
	}
	return all
}

// countFactWrites counts the writes of facts from now on.
func countFactWrites(h *hooks) *atomic.Int64 {
	n := new(atomic.Int64)
	h.set(func(s *hookSet) {
		s.pre = func(b *kv.Batch) {
			for i := range b.Len() {
				if _, kind, _ := keys.ParseSlot(b.Op(i).Key); kind == keys.KindFact {
					n.Add(1)
				}
			}
		}
	})
	return n
}

// heldSnapshot is a snapshot whose iterators wait.
type heldSnapshot struct {
	kv.Snapshot
	begun chan<- bool
	goOn  <-chan error
}

func (s *heldSnapshot) Iter(lo, hi []byte) (kv.Iterator, error) {
	s.begun <- true
	if err := <-s.goOn; err != nil {
		return nil, err
	}
	return s.Snapshot.Iter(lo, hi)
}

// holdCounts makes each count of a slot wait in its snapshot. begun tells that one waits, goOn lets it continue or
// fail. n is the number of counts.
func holdCounts(h *hooks) (begun <-chan bool, goOn chan<- error, n *atomic.Int64) {
	b, g, n := make(chan bool), make(chan error), new(atomic.Int64)
	h.set(func(s *hookSet) {
		s.snapshot = func(take func() kv.Snapshot) kv.Snapshot {
			if !calledBy("(*counting).begin") {
				return take()
			}
			n.Add(1)
			return &heldSnapshot{take(), b, g}
		}
	})
	return b, g, n
}

// numberOfCounts counts the counts of slots from now on.
func numberOfCounts(h *hooks) *atomic.Int64 {
	n := new(atomic.Int64)
	h.set(func(s *hookSet) {
		s.snapshot = func(take func() kv.Snapshot) kv.Snapshot {
			if calledBy("(*counting).begin") {
				n.Add(1)
			}
			return take()
		}
	})
	return n
}

// TestOrderOfManyItems: the first query ordered by a path uses the index for any number of items, and reads only the
// returned rows. Later queries do too, without another count.
func TestOrderOfManyItems(t *testing.T) {
	e, h := hooked(t, core.Options{MinSlots: 1})
	c := newContainer(t, e, core.ContainerSpec{})
	items := race.Fewer(4000, 1500)
	for i := range items {
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%04d","pk":"p%d","n":%d}`, i, i%11, items-i))
	}
	counts := numberOfCounts(h)
	for range 3 {
		got, st := firstRows(t, c, byField("n"), 10)
		if st.Sorted || st.Items > 10 || st.Entries > 20 || got[0] != fmt.Sprintf("%04d", items-1) {
			t.Errorf("%d items and %d entries read, sorted %v: %v", st.Items, st.Entries, st.Sorted, got)
		}
	}
	if n := counts.Load(); n != int64(slotCount(t, h)) {
		t.Errorf("%d counts in %d slots", n, slotCount(t, h))
	}
}

// TestCountHoldsNoLatch: while the entries of a path are counted, its slot accepts writes, and the fact includes them.
// Queries during the count wait for the same count, unless their time is over.
func TestCountHoldsNoLatch(t *testing.T) {
	e, h := hooked(t, core.Options{MinSlots: 1})
	c := newContainer(t, e, core.ContainerSpec{})
	for i := range 200 {
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%03d","pk":"p%d","n":%d}`, i, i%11, i*7%200))
	}
	begun, goOn, counts := holdCounts(h)
	results := make(chan string, 2)
	for range 2 {
		go func() {
			q := byField("n")
			r, err := c.Query(bg, &q)
			if err != nil {
				results <- err.Error()
				return
			}
			defer r.Close()
			rows := 0
			for r.Next() {
				rows++
			}
			results <- fmt.Sprint(rows, r.Stats().Sorted, r.Err())
		}()
	}
	slots := slotCount(t, h)
	for i := range slots {
		<-begun
		ctx, stop := context.WithTimeout(bg, time.Millisecond)
		q := byField("n")
		if _, err := c.Query(ctx, &q); !status.Is(err, status.Timeout) {
			t.Errorf("a query whose time is over: %v", err)
		}
		stop()
		for k := range 11 { // in every slot: a new item, one that loses its value and gets it back, one that is deleted
			put(t, c, core.Create, fmt.Sprintf(`{"id":"new%d-%d","pk":"p%d","n":%d}`, i, k, k, k))
			put(t, c, core.Upsert, fmt.Sprintf(`{"id":"%03d","pk":"p%d"}`, k, k))
			put(t, c, core.Upsert, fmt.Sprintf(`{"id":"%03d","pk":"p%d","n":1000}`, k, k))
			del(t, c, fmt.Sprintf("p%d", (99-11*i+k)%11), fmt.Sprintf("%03d", 99-11*i+k))
		}
		goOn <- nil
	}
	want := fmt.Sprint(200, false, nil)
	for range 2 {
		if got := <-results; got != want {
			t.Errorf("rows, sorted, error: %s, want %s", got, want)
		}
	}
	if n := counts.Load(); n != int64(slots) {
		t.Errorf("%d counts in %d slots", n, slots)
	}
}

// TestOrdersOfManyPaths: the hundredth path that queries order by is as fast as the first, and items without exceptions
// write no facts.
func TestOrdersOfManyPaths(t *testing.T) {
	e, h := hooked(t, core.Options{MinSlots: 1})
	c := newContainer(t, e, core.ContainerSpec{})
	item := func(i, n int) string {
		var b strings.Builder
		fmt.Fprintf(&b, `{"id":"%03d","pk":"p%d"`, i, i%5)
		for k := range 100 {
			fmt.Fprintf(&b, `,"f%d":%d`, k, (n+k)*31%97)
		}
		return b.String() + "}"
	}
	for i := range 30 {
		put(t, c, core.Create, item(i, i))
	}
	for k := range 100 {
		wantSorted(t, c, fmt.Sprintf("f%d", k), false)
	}
	facts := countFactWrites(h)
	for i := range 30 {
		put(t, c, core.Create, item(30+i, i))
		put(t, c, core.Upsert, item(i, i+1))
		del(t, c, fmt.Sprintf("p%d", i%5), fmt.Sprintf("%03d", i))
	}
	if n := facts.Load(); n != 0 {
		t.Errorf("%d writes of facts for items without exceptions", n)
	}
	put(t, c, core.Create, `{"id":"x","pk":"p1","f0":1}`)
	if n := facts.Load(); n != 99 {
		t.Errorf("%d writes of facts for an item that lacks 99 of the paths", n)
	}
	h.set(func(s *hookSet) { s.pre = nil })
	for k := range 100 {
		wantSorted(t, c, fmt.Sprintf("f%d", k), k > 0)
	}
}

// TestExceptionsThatGo: an exception prevents an order from the index only as long as it exists.
func TestExceptionsThatGo(t *testing.T) {
	long := `"` + strings.Repeat("x", 300) + `"`
	for name, n := range map[string]string{"long text": long, "array": "[1,2]", "empty array": "[]", "objects in an array": `[{"a":1}]`, "object": `{"a":1}`,
		"missing": "", "array with a long text": "[" + long + "]"} {
		t.Run(name, func(t *testing.T) {
			e, _ := hooked(t, core.Options{MinSlots: 1})
			c := newContainer(t, e, core.ContainerSpec{})
			for i := range 100 {
				put(t, c, core.Create, fmt.Sprintf(`{"id":"%03d","pk":"p%d","n":"%03d"}`, i, i%11, i*7%100))
			}
			odd := `{"id":"050","pk":"p6","n":` + n + `}`
			if n == "" {
				odd = `{"id":"050","pk":"p6"}`
			}
			for range 3 {
				wantSorted(t, c, "n", false)
				put(t, c, core.Upsert, odd)
				wantSorted(t, c, "n", true)
				put(t, c, core.Upsert, `{"id":"050","pk":"p6","n":"050"}`)
				wantSorted(t, c, "n", false)
				put(t, c, core.Create, strings.Replace(odd, "050", "new", 1))
				wantSorted(t, c, "n", true)
				del(t, c, "p6", "new")
			}
			wantSorted(t, c, "n", false)
		})
	}
}

// TestExceptionsBeforeTheFirstOrder: exceptions that are gone before the first query are only in the flags of the head.
func TestExceptionsBeforeTheFirstOrder(t *testing.T) {
	e, _ := hooked(t, core.Options{MinSlots: 1})
	c := newContainer(t, e, core.ContainerSpec{})
	for i := range 100 {
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%03d","pk":"p%d","n":[%d],"s":"%s"}`, i, i%11, i,
			strings.Repeat("s", 300)))
		put(t, c, core.Upsert, fmt.Sprintf(`{"id":"%03d","pk":"p%d","n":%d,"s":"%d"}`, i, i%11, i, i))
	}
	wantSorted(t, c, "n", false)
	wantSorted(t, c, "s", false)
}

// TestManyArrayPaths: with many array paths, the set in the head may contain every path. Orders, ranges whose bounds
// different elements could satisfy, and look-ups by partition key work as without them.
func TestManyArrayPaths(t *testing.T) {
	e, _ := hooked(t, core.Options{MinSlots: 1})
	c := newContainer(t, e, core.ContainerSpec{})
	var arrays strings.Builder
	for k := range 400 {
		fmt.Fprintf(&arrays, `,"a%d":[%d,%d]`, k, k, k+1)
	}
	for i := range 100 {
		more := ""
		if i < 5 {
			more = arrays.String()
		}
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%03d","pk":"p%d","n":%d%s}`, i, i%50, i*7%100, more))
	}
	wantSorted(t, c, "n", false)
	wantSorted(t, c, "_id", false)
	n := access.NewPath("n").Element()
	q := exec.Query{
		Pred: access.Range(n, &access.Bound{Value: value.Int32Of(20), Inclusive: true},
			&access.Bound{Value: value.Int32Of(90)}),
		OrderBy: []exec.Order{{Path: n}}, Compare: value.CompareBSON}
	if got, st := firstRows(t, c, q, 5); st.Sorted || st.Items > 5 || len(got) != 5 {
		t.Errorf("range and order of a path whose elements count: sorted %v, %d items read (%s)", st.Sorted, st.Items,
			st.Plan.Explain())
	}
	key := access.NewPath("pk").Element()
	points := exec.Query{Pred: access.Eq(key, value.StringOf("p7"))}
	waitPlan(t, c, &points, func(p *access.Plan) bool { return p.Why == access.ItemsInside })
	if got := ids(t, c, &points); len(got) != 2 {
		t.Errorf("the look-up gives %v", got)
	}
	put(t, c, core.Upsert, `{"id":"050","pk":"p0","n":[1,2]}`)
	if _, st := firstRows(t, c, q, 5); !st.Sorted {
		t.Error("the order comes from the index though a path has elements")
	}
}

// TestCompositesBesideArrays: the order of a composite index doesn't depend on arrays at other paths.
func TestCompositesBesideArrays(t *testing.T) {
	e, _ := hooked(t, core.Options{MinSlots: 1})
	c := newContainer(t, e, core.ContainerSpec{IndexingPolicy: []byte(`{"includedPaths":[{"path":"/*"}],` +
		`"compositeIndexes":[[{"path":"/m"},{"path":"/n"}]]}`)})
	var odd strings.Builder
	for k := range 400 {
		fmt.Fprintf(&odd, `,"a%d":[{"x":%q}]`, k, strings.Repeat("x", 300))
	}
	for i := range 100 {
		more := ""
		if i < 5 {
			more = odd.String()
		}
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%03d","pk":"p%d","m":%d,"n":%d%s}`, i, i%50, i%3, i*7%100, more))
	}
	q := exec.Query{OrderBy: orderBy(false, "m", "n"), Compare: value.CompareCosmos, Collation: access.JSONOrder}
	if _, st := firstRows(t, c, q, 5); st.Sorted || st.Items > 5 {
		t.Errorf("sorted %v, %d items read (%s)", st.Sorted, st.Items, st.Plan.Explain())
	}
}

// TestTallyOfManyMissing: the number of items with a value is known without reading the items that have none.
func TestTallyOfManyMissing(t *testing.T) {
	for _, policy := range []string{`{"includedPaths":[{"path":"/*"}]}`, `{"includedPaths":[{"path":"/*"},` +
		`{"path":"/n/?"}]}`} {
		e, h := hooked(t, core.Options{MinSlots: 1})
		c := newContainer(t, e, core.ContainerSpec{IndexingPolicy: []byte(policy)})
		for i := range 300 {
			n := ""
			if i%3 == 0 {
				n = fmt.Sprintf(`,"n":%d`, i)
			}
			put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p%d"%s}`, i, i, n))
		}
		n := access.NewPath("n")
		r, err := c.Query(bg, &exec.Query{Needs: []access.Path{n}, Whole: true, Repeat: true, Want: exec.WantTally})
		if err != nil {
			t.Fatal(err)
		}
		rows := 0
		for r.Next() {
			rows += r.Times()
		}
		if st := r.Stats(); rows != 300 || st.Items > 0 || st.Entries > 10*slotCount(t, h) || r.Err() != nil {
			t.Errorf("%d rows, %d items and %d entries read (%s)", rows, st.Items, st.Entries, st.Plan.Explain())
		}
		r.Close()
	}
}

// TestFactsOfAnOldQueryGo: a fact that no query uses and that commits have to change is dropped. It is counted again
// when a query needs it.
func TestFactsOfAnOldQueryGo(t *testing.T) {
	e, h := hooked(t, core.Options{MinSlots: 1})
	c := newContainer(t, e, core.ContainerSpec{})
	put(t, c, core.Create, `{"id":"first","pk":"p","n":1}`)
	wantSorted(t, c, "nowhere", true)
	if n := len(factKeys(t, h)); n != 1 {
		t.Fatalf("%d facts", n)
	}
	facts := countFactWrites(h)
	for i := range 300 {
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p","n":1}`, i))
	}
	if n, left := facts.Load(), len(factKeys(t, h)); n < 100 || n > 110 || left != 0 {
		t.Errorf("%d writes of the fact of a path that no item has, %d facts are left", n, left)
	}
	for i := range 300 { // a query uses it sometimes
		put(t, c, core.Create, fmt.Sprintf(`{"id":"again%d","pk":"p","n":1}`, i))
		if i%50 == 0 {
			wantSorted(t, c, "nowhere", true)
		}
	}
	if left := len(factKeys(t, h)); left != 1 {
		t.Errorf("%d facts are left of a path that is asked for", left)
	}
}

// TestFactsAreBounded: above the bound a new path replaces one that no query has used.
func TestFactsAreBounded(t *testing.T) {
	e, h := hooked(t, core.Options{MinSlots: 1})
	c := newContainer(t, e, core.ContainerSpec{})
	for i := range 20 {
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p","n":%d}`, i, i))
	}
	for k := range 1010 {
		wantSorted(t, c, fmt.Sprintf("f%d", k), true)
		if k%100 == 0 {
			wantSorted(t, c, "n", false)
		}
	}
	if n := len(factKeys(t, h)); n != 1000 {
		t.Errorf("%d facts", n)
	}
	wantSorted(t, c, "n", false)
}

// TestFactsAfterReopen: a reopened store has its facts and keeps them.
func TestFactsAfterReopen(t *testing.T) {
	raw := memkv.New()
	e, err := core.Open(bg, raw, core.Options{MinSlots: 1})
	if err != nil {
		t.Fatal(err)
	}
	c := newContainer(t, e, core.ContainerSpec{})
	for i := range 100 {
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%03d","pk":"p%d","n":%d,"m":%d}`, i, i, i, i))
	}
	wantSorted(t, c, "n", false)
	put(t, c, core.Create, `{"id":"odd","pk":"p1"}`)
	h := &hooks{Engine: kv.Checked(raw)}
	if e, err = core.Open(bg, h, core.Options{}); err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if c, err = e.Container("db", "c"); err != nil {
		t.Fatal(err)
	}
	counts := numberOfCounts(h)
	wantSorted(t, c, "n", true)
	del(t, c, "p1", "odd")
	wantSorted(t, c, "n", false)
	if n := counts.Load(); n != 0 {
		t.Errorf("%d counts of what was known", n)
	}
	clean(t, e)
}

// TestCountFails: if the count fails, the query sorts. The count succeeds later.
func TestCountFails(t *testing.T) {
	for name, fail := range map[string]func(h *hooks){
		"begin refused": func(h *hooks) {
			h.set(func(s *hookSet) { s.fail = onFacts(1, kv.ErrUnavailable) })
		},
		"begin unknown": func(h *hooks) {
			h.set(func(s *hookSet) { s.unsure = onFacts(1, kv.ErrUnknownOutcome) })
		},
		"end refused": func(h *hooks) {
			h.set(func(s *hookSet) { s.fail = onFacts(2, kv.ErrUnavailable) })
		},
		"end unknown": func(h *hooks) {
			h.set(func(s *hookSet) { s.unsure = onFacts(2, kv.ErrUnknownOutcome) })
		},
		"in the middle": func(h *hooks) {
			begun, goOn, _ := holdCounts(h)
			go func() {
				<-begun
				goOn <- kv.ErrCorruption
			}()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, h := hooked(t, core.Options{MinSlots: 1})
			c := newContainer(t, e, core.ContainerSpec{})
			write := func(round string) {
				for i := range 50 {
					put(t, c, core.Upsert, fmt.Sprintf(`{"id":"%d%s","pk":"p%d","n":%d}`, i, round, i, i))
				}
			}
			write("a")
			fail(h)
			got, _ := firstRows(t, c, byField("n"), 1000)
			if len(got) != 50 {
				t.Errorf("%d rows", len(got))
			}
			h.set(func(s *hookSet) { *s = hookSet{} })
			write("b")
			clean(t, e)
			q := byField("n")
			waitPlan(t, c, &q, func(p *access.Plan) bool { return p.Kind == access.Ordered })
			write("c")
			if got, st := firstRows(t, c, byField("n"), 1000); len(got) != 150 || st.Sorted {
				t.Errorf("%d rows, sorted %v", len(got), st.Sorted)
			}
		})
	}
}

// onFacts returns the error for the n-th batch that begin and end of a count write.
func onFacts(n int64, err error) func() error {
	var seen atomic.Int64
	return func() error {
		if calledBy("writeFacts") && seen.Add(1) == n {
			return err
		}
		return nil
	}
}

// TestCountAndUnknownOutcome: if a slot's facts are read again during a count, the count begins again.
func TestCountAndUnknownOutcome(t *testing.T) {
	e, h := hooked(t, core.Options{MinSlots: 1})
	c := newContainer(t, e, core.ContainerSpec{})
	for i := range 50 {
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%03d","pk":"p1","n":%d}`, i, i))
	}
	begun, goOn, counts := holdCounts(h)
	over := make(chan bool)
	go func() {
		wantSorted(t, c, "n", true)
		close(over)
	}()
	lose := func(id string) error {
		_, err := c.Write(bg, core.Write{Kind: core.Upsert, Doc: mustDoc(t, `{"id":"`+id+`","pk":"p1"}`)})
		return err
	}
	for first, open := true, true; open; {
		select {
		case <-over:
			open = false
		case <-begun:
			if first {
				h.set(func(s *hookSet) { s.unsure = func() error { return kv.ErrUnknownOutcome } })
				if err := lose("001"); !status.Is(err, status.UnknownOutcome) {
					t.Errorf("a write: %v", err)
				}
				h.set(func(s *hookSet) { s.unsure = nil })
				if err := lose("002"); err != nil {
					t.Error(err)
				}
			}
			first = false
			goOn <- nil
		}
	}
	if n := counts.Load(); n != int64(slotCount(t, h))+1 {
		t.Errorf("%d counts", n)
	}
	clean(t, e)
}

// TestCrashInACount: after a crash during a count the path is counted again, including later writes.
func TestCrashInACount(t *testing.T) {
	raw := memkv.New()
	h := &hooks{Engine: kv.Checked(raw)}
	e, err := core.Open(bg, h, core.Options{MinSlots: 1})
	if err != nil {
		t.Fatal(err)
	}
	c := newContainer(t, e, core.ContainerSpec{})
	for i := range 60 {
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%03d","pk":"p%d","n":%d}`, i, i, i))
	}
	begun, goOn, _ := holdCounts(h)
	old := make(chan error)
	go func() {
		q := byField("n")
		r, err := c.Query(bg, &q)
		if err == nil {
			r.Close()
		}
		old <- err
	}()
	<-begun
	put(t, c, core.Upsert, `{"id":"000","pk":"p0"}`)
	later, err := core.Open(bg, kv.Checked(raw), core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer later.Close()
	if c, err = later.Container("db", "c"); err != nil {
		t.Fatal(err)
	}
	put(t, c, core.Upsert, `{"id":"001","pk":"p1"}`)
	wantSorted(t, c, "n", true)
	clean(t, later)
	put(t, c, core.Upsert, `{"id":"000","pk":"p0","n":0}`)
	put(t, c, core.Upsert, `{"id":"001","pk":"p1","n":1}`)
	wantSorted(t, c, "n", false)
	clean(t, later)
	for open := true; open; { // the previous process must not store its result
		select {
		case goOn <- nil:
		case <-begun:
		case <-old:
			open = false
		}
	}
	clean(t, later)
	wantSorted(t, c, "n", false)
	h.set(func(s *hookSet) { *s = hookSet{} })
}

// factDocs are values of a field in the tests with random writes; "" is no value.
var factDocs = []string{"1", "2", `"x"`, "null", "true", "", "", "[]", "[1,2]", `[{"b":1}]`, `[[1]]`, `{"b":1}`,
	`{"b":[1,2]}`, `{}`, `"` + strings.Repeat("y", 300) + `"`,
	`["` + strings.Repeat("z", 300) + `"]`, `[{"_value":"v","id":"g"}]`}

func factDoc(r *rand.Rand, id int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"id":"%d","pk":"p%d"`, id, id%3)
	for _, field := range []string{"n", "m", "o"} {
		if v := factDocs[r.IntN(len(factDocs))]; v != "" {
			fmt.Fprintf(&b, `,%q:%s`, field, v)
		}
	}
	return b.String() + "}"
}

// TestFactsOfRandomWrites: the facts agree with the items after every step of random writes: single, many at once, in
// transactions, after crashes during counts, after changes of the indexing policy, and after unknown outcomes.
func TestFactsOfRandomWrites(t *testing.T) {
	policies := []string{`{"includedPaths":[{"path":"/*"}]}`, `{"includedPaths":[{"path":"/*"}],` +
		`"excludedPaths":[{"path":"/o/*"}]}`,
		`{"includedPaths":[{"path":"/*"},{"path":"/n/?"}],"compositeIndexes":[[{"path":"/n"},{"path":"/m"}]]}`,
		`{"includedPaths":[{"path":"/n/?"},{"path":"/o/*"}],"excludedPaths":[{"path":"/*"}]}`}
	for seed := range uint64(race.Fewer(6, 2)) {
		r := rand.New(rand.NewPCG(seed, 13))
		raw := memkv.New()
		var h *hooks
		var e *core.Engine
		var c *core.Container
		reopen := func() {
			h = &hooks{Engine: kv.Checked(raw)}
			var err error
			if e, err = core.Open(bg, h, core.Options{MinSlots: 2}); err != nil {
				t.Fatal(err)
			}
			if c, err = e.Container("db", "c"); err != nil {
				c = newContainer(t, e, core.ContainerSpec{})
			}
		}
		reopen()
		facts := 0
		for step := range race.Fewer(150, 60) {
			id := r.IntN(25)
			doc := factDoc(r, id)
			switch n := r.IntN(20); {
			case n < 6:
				put(t, c, core.Upsert, doc)
			case n < 8:
				_, _ = c.Write(bg, core.Write{
					Kind: core.Delete, PK: pk(fmt.Sprintf("p%d", id%3)), ID: value.StringOf(fmt.Sprint(id))})
			case n < 10:
				var many []core.Write
				for k := range 8 {
					many = append(many, core.Write{Kind: core.Upsert, Doc: mustDoc(t, factDoc(r, 25+k))})
				}
				c.WriteMany(bg, many, false)
			case n < 12:
				if _, err := c.WithTx(bg, pk("p1"), func(tx *core.Tx) error {
					for k := range 3 {
						if _, err := tx.Write(
							&core.Write{Kind: core.Upsert, Doc: mustDoc(t, factDoc(r, 40+3*k))}); err != nil {
							return err
						}
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
			case n < 17:
				field := []string{"n", "m", "o", "nowhere"}[r.IntN(4)]
				if len(ids(t, c, ptr(byField(field)))) != int(counted(c)) {
					t.Fatalf("seed %d, step %d: the order by %s has not all items", seed, step, field)
				}
			case n < 18:
				setPolicy(t, e, c, policies[r.IntN(len(policies))])
			case n < 19:
				h.set(func(s *hookSet) {
					s.unsure = func() error {
						h.set(func(s *hookSet) { s.unsure = nil })
						return kv.ErrUnknownOutcome
					}
				})
				_, _ = c.Write(bg, core.Write{Kind: core.Upsert, Doc: mustDoc(t, doc)})
				h.set(func(s *hookSet) { s.unsure = nil })
			default: // a crash during a count
				begun, goOn, _ := holdCounts(h)
				ctx, stop := context.WithTimeout(bg, 50*time.Millisecond)
				over := make(chan bool)
				go func() {
					q := byField([]string{"n", "m", "o"}[r.IntN(3)])
					if rows, err := c.Query(ctx, &q); err == nil {
						rows.Close()
					}
					close(over)
				}()
				select {
				case <-begun:
				case <-over:
				}
				before := e
				reopen()
				stop()
				go func() { // let the previous process end
					for {
						select {
						case goOn <- kv.ErrClosed:
						case <-begun:
						case <-over:
							select {
							case goOn <- kv.ErrClosed:
							case <-time.After(time.Second):
							}
							return
						}
					}
				}()
				<-over
				_ = before
			}
			problems, err := e.Check(bg)
			if err != nil || len(problems) > 0 {
				t.Fatalf("seed %d, step %d: %v %s", seed, step, err, strings.Join(problems, "\n"))
			}
			facts += len(factKeys(t, raw))
		}
		if facts < 50 {
			t.Errorf("seed %d: there were hardly any facts (%d)", seed, facts)
		}
		_ = e.Close()
	}
}

func ptr[T any](v T) *T { return &v }

// TestFactsUnderLoad: writers continue while several queries have many paths counted. Afterwards the facts agree with
// the items.
func TestFactsUnderLoad(t *testing.T) {
	e, h := hooked(t, core.Options{MinSlots: 2})
	c := newContainer(t, e, core.ContainerSpec{})
	for i := range 50 {
		put(t, c, core.Create, fmt.Sprintf(`{"id":"old%d","pk":"p%d"}`, i, i))
	}
	var writers, readers sync.WaitGroup
	stop := make(chan bool)
	for w := range 4 {
		writers.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 5))
			for {
				select {
				case <-stop:
					return
				default:
				}
				d := mustDoc(t, factDoc(r, r.IntN(200)))
				if _, err := c.Write(bg, core.Write{Kind: core.Upsert, Doc: d}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for w := range 3 {
		readers.Go(func() {
			for k := range race.Fewer(60, 20) {
				q := byField([]string{"n", "m", "o", fmt.Sprintf("f%d", k), fmt.Sprintf("f%d", 7*w+k)}[(k+w)%5])
				r, err := c.Query(bg, &q)
				if err != nil {
					t.Error(err)
					return
				}
				for r.Next() {
				}
				if r.Err() != nil {
					t.Error(r.Err())
				}
				r.Close()
			}
		})
	}
	readers.Wait()
	close(stop)
	writers.Wait()
	if n := len(factKeys(t, h)); n < 10 {
		t.Errorf("%d facts", n)
	}
}

// TestFactsDuringRebuild: if a change of the policy doesn't change a field's rules, the field's facts stay. Others are
// counted again after the rebuild.
func TestFactsDuringRebuild(t *testing.T) {
	e, h := hooked(t, core.Options{MinSlots: 1})
	c := newContainer(t, e, core.ContainerSpec{IndexingPolicy: []byte(`{"includedPaths":[{"path":"/*"}],` +
		`"excludedPaths":[{"path":"/m/[]/*"}]}`)})
	for i := range 300 {
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%03d","pk":"p%d","n":%d,"m":{"k":%d},"o":1}`, i, i, i, i))
	}
	m := exec.Query{OrderBy: []exec.Order{{Path: access.NewPath("m", "k")}}, Compare: value.CompareCosmos}
	wantSorted(t, c, "n", false)
	if _, st := firstRows(t, c, m, 10); st.Sorted {
		t.Error("the order by /m/k is sorted")
	}
	facts := len(factKeys(t, h))
	s := stopper{make(chan bool), make(chan bool)}
	h.set(func(on *hookSet) {
		on.snapshot = func(take func() kv.Snapshot) kv.Snapshot {
			if calledBy("(*chunk).collect") { // without the latch
				s.at <- true
				<-s.goOn
			}
			return take()
		}
	})
	spec := c.Spec().Clone()
	spec.IndexingPolicy = []byte(`{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/o/*"}],` +
		`"compositeIndexes":[[{"path":"/n"},{"path":"/pk"}]]}`)
	if _, err := e.ReplaceContainer(bg, "db", "c", spec); err != nil {
		t.Fatal(err)
	}
	wait := make(chan error)
	go func() { wait <- c.WaitIndex(bg) }()
	stops, sorts := 0, 0
	for over := false; !over; {
		select {
		case err := <-wait:
			if err != nil {
				t.Fatal(err)
			}
			over = true
			continue
		case <-s.at:
		}
		stops++
		wantSorted(t, c, "n", false)
		if _, st := firstRows(t, c, m, 10); st.Sorted {
			sorts++
		}
		s.goOn <- true
	}
	h.set(func(on *hookSet) { *on = hookSet{} })
	if left := len(factKeys(t, h)); stops < 6 || sorts == 0 || left != facts/2 {
		t.Errorf("%d stops, %d sorts by the field whose rules change, %d of %d facts left", stops, sorts, left, facts)
	}
	counts := numberOfCounts(h)
	wantSorted(t, c, "n", false)
	if n := counts.Load(); n != 0 {
		t.Errorf("%d counts of a path whose entries have not changed", n)
	}
	if _, st := firstRows(t, c, m, 10); st.Sorted || counts.Load() == 0 {
		t.Errorf("the order by /m/k is sorted after the rebuild (%d counts)", counts.Load())
	}
	put(t, c, core.Create, `{"id":"odd","pk":"p1","n":0,"m":[{"k":1},{"k":2}]}`)
	if _, st := firstRows(t, c, m, 10); !st.Sorted {
		t.Error("the order by /m/k comes from the index though it has elements")
	}
}

// TestSpilledItemsDuringRebuild: for an item with too many terms, the whole policy decides which paths have entries. So
// a slot with such an item keeps no facts over a rebuild, whenever the item is written.
func TestSpilledItemsDuringRebuild(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 5200 {
		fmt.Fprintf(&b, ",%d", i)
	}
	all, some := `{"includedPaths":[{"path":"/*"}]}`,
		`{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/a/*"}]}`
	for _, from := range []string{all, some} {
		for when := 0; when < 7; when += race.Fewer(1, 3) { // 0: before the rebuild
			e, h := hooked(t, core.Options{MinSlots: 2})
			c := newContainer(t, e, core.ContainerSpec{IndexingPolicy: []byte(from)})
			for i := range 50 {
				put(t, c, core.Create, fmt.Sprintf(`{"id":"%03d","pk":"p%d","n":%d}`, i, i%7, i))
			}
			spill := func() {
				for k := range 7 {
					put(t, c, core.Create, fmt.Sprintf(`{"id":"big","pk":"p%d","a":[0%s],"n":5}`, k, b.String()))
				}
			}
			if when == 0 {
				spill()
			}
			wantSorted(t, c, "n", when == 0 && from == all)
			passes := 0
			h.set(func(on *hookSet) {
				on.snapshot = func(take func() kv.Snapshot) kv.Snapshot {
					if calledBy("(*chunk).collect") { // without the latch
						if passes++; passes == when {
							spill()
						}
					}
					return take()
				}
			})
			to := all
			if from == all {
				to = some
			}
			setPolicy(t, e, c, to)
			h.set(func(on *hookSet) { *on = hookSet{} })
			wantSorted(t, c, "n", to == all && when <= passes)
			for k := range 7 {
				_, _ = c.Write(bg, core.Write{
					Kind: core.Delete, PK: pk(fmt.Sprintf("p%d", k)), ID: value.StringOf("big")})
			}
			wantSorted(t, c, "n", false)
			clean(t, e)
		}
	}
}

// TestOrderWithoutWrites: in a read-only store nothing is counted. Known facts are used, and other orders are sorted.
func TestOrderWithoutWrites(t *testing.T) {
	raw := memkv.New()
	e, err := core.Open(bg, raw, core.Options{MinSlots: 1})
	if err != nil {
		t.Fatal(err)
	}
	c := newContainer(t, e, core.ContainerSpec{})
	for i := range 50 {
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%03d","pk":"p%d","n":%d,"m":%d}`, i, i, i, i))
	}
	wantSorted(t, c, "n", false)
	if e, err = core.Open(bg, raw, core.Options{ReadOnly: true}); err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if c, err = e.Container("db", "c"); err != nil {
		t.Fatal(err)
	}
	wantSorted(t, c, "n", false)
	wantSorted(t, c, "m", true)
	if n := len(factKeys(t, raw)); n != slotCount(t, raw) {
		t.Errorf("%d facts", n)
	}
}

// TestFactsAreNotRestored: a store that is rebuilt from another one's items has no facts until a query needs them.
func TestFactsAreNotRestored(t *testing.T) {
	raw := memkv.New()
	e, err := core.Open(bg, raw, core.Options{MinSlots: 1})
	if err != nil {
		t.Fatal(err)
	}
	c := newContainer(t, e, core.ContainerSpec{})
	for i := range 50 {
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%03d","pk":"p%d","n":%d}`, i, i, i))
	}
	wantSorted(t, c, "n", false)
	fresh := memkv.New()
	if _, err := core.Restore(bg, fresh, wholeStore{t, raw}, func(l core.Lost) {
		t.Errorf("lost %+v", l)
	}); err != nil {
		t.Fatal(err)
	}
	if n := len(factKeys(t, fresh)); n != 0 {
		t.Errorf("%d facts were restored", n)
	}
	if e, err = core.Open(bg, fresh, core.Options{}); err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if c, err = e.Container("db", "c"); err != nil {
		t.Fatal(err)
	}
	clean(t, e)
	wantSorted(t, c, "n", false)
	clean(t, e)
}

// wholeStore is a salvage source without damage.
type wholeStore struct {
	t *testing.T
	e kv.Engine
}

func (w wholeStore) Gaps() []core.Gap { return nil }

func (w wholeStore) Each(visit func(key, val []byte) error) error {
	s := kvtest.Snapshot(w.t, w.e)
	defer s.Close()
	it, err := s.Iter([]byte{0}, []byte{0xFF})
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if err := visit(it.Key(), it.Value()); err != nil {
			return err
		}
	}
	return it.Err()
}
