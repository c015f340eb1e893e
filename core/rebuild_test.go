package core_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

const (
	onlyA  = `{"includedPaths":[{"path":"/a/?"}],"excludedPaths":[{"path":"/*"}]}`
	onlyB  = `{"includedPaths":[{"path":"/b/[]/?"},{"path":"/n/?"}],"excludedPaths":[{"path":"/*"}]}`
	allANB = `{"indexingMode":"consistent","includedPaths":[{"path":"/*"},{"path":"/a/?"}],` +
		`"excludedPaths":[{"path":"/b/*"}]}`
)

func TestIndexRebuild(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		for i := range 100 {
			put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p%d","a":%d,"b":[%d]}`, i, i%7, i%3, i))
		}
		for _, policy := range []string{`{"includedPaths":[{"path":"/b/[]/?"}],"excludedPaths":[{"path":"/*"}]}`,
			noIndex, allANB, onlyA} {
			setPolicy(t, e, c, policy)
			if got := ids(t, c, eqQuery("a", 1)); len(got) != 33 {
				t.Errorf("%s: %d rows", policy, len(got))
			}
			if n := c.IndexProgress(); n != 100 {
				t.Errorf("progress is %d at the end", n)
			}
			clean(t, e)
		}
	})
}

// stopper stops the index rebuild of a hooked engine at each of its writes.
type stopper struct{ at, goOn chan bool }

func stopAtWrites(h *hooks) stopper {
	s := stopper{make(chan bool), make(chan bool)}
	h.set(func(on *hookSet) {
		first := true
		on.visible = func() {
			if first { // the write of the catalog
				first = false
				return
			}
			s.at <- true
			<-s.goOn
		}
	})
	return s
}

// During an index rebuild queries use the previous policy until the new index is complete. A path that both policies
// index is never scanned. A path that one of them indexes uses the index while that policy is in use.
func TestQueriesDuringRebuild(t *testing.T) {
	e, h := hooked(t, core.Options{MinSlots: 2})
	c := newContainer(t, e, core.ContainerSpec{IndexingPolicy: []byte(`{"includedPaths":[{"path":"/a/?"},` +
		`{"path":"/n/?"}],"excludedPaths":[{"path":"/*"}]}`)})
	for i := range 300 {
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p%d","n":%d,"a":%d,"b":[%d,%d]}`, i, i, i%50, i%50,
			i%50, i%50+1))
	}
	both, before, after := eqQuery("n", 1), eqQuery("a", 1),
		&exec.Query{Pred: access.Eq(access.NewPath("b").Element(), value.Int32Of(1)),
			Match: func(it *core.Item) (bool, error) {
				return strings.Contains(json(it), `"b":[0,1]`) || strings.Contains(json(it), `"b":[1,2]`), nil
			}}
	top := exec.Query{Pred: access.Range(access.NewPath("n"), &access.Bound{Value: value.Int32Of(0), Inclusive: true},
		nil), OrderBy: orderBy(true, "n"),
		Compare: value.CompareCosmos}
	sorted := ids(t, c, &top)
	s := stopAtWrites(h)
	spec := c.Spec().Clone()
	spec.IndexingPolicy = []byte(`{"includedPaths":[{"path":"/b/*"},{"path":"/n/?"}],"excludedPaths":[{"path":"/*"}]}`)
	if _, err := e.ReplaceContainer(bg, "db", "c", spec); err != nil {
		t.Fatal(err)
	}
	stops, flips, last := 0, 0, -1
	was := "a"
	wait := make(chan error)
	go func() { wait <- c.WaitIndex(bg) }()
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
		if n := c.IndexProgress(); n < last || n > 100 {
			t.Errorf("progress goes from %d to %d", last, n)
		} else {
			last = n
		}
		kinds := map[string]access.Kind{}
		for name, q := range map[string]*exec.Query{"both": both, "a": before, "b": after} {
			p, err := c.Explain(bg, q)
			if err != nil {
				t.Fatal(err)
			}
			kinds[name] = p.Kind
			want := 6
			if name == "b" {
				want = 12
			}
			if got := ids(t, c, q); len(got) != want {
				t.Errorf("stop %d, %s: %d rows (%s)", stops, name, len(got), p.Explain())
			}
		}
		if kinds["both"] != access.Index || (kinds["a"] == access.Index) == (kinds["b"] == access.Index) {
			t.Errorf("stop %d: access paths are %v", stops, kinds)
		}
		if kinds[was] != access.Index {
			flips, was = flips+1, "b"
		}
		if p, err := c.Explain(bg, &top); err != nil || p.Kind != access.Ordered {
			t.Errorf("stop %d: the order comes from %s (%v)", stops, p.Explain(), err)
		}
		if got := ids(t, c, &top); !slices.Equal(got, sorted) {
			t.Errorf("stop %d: another order", stops)
		}
		s.goOn <- true
	}
	h.set(func(on *hookSet) { on.visible = nil })
	if stops < 6 || flips != 1 || last < 50 {
		t.Errorf("%d stops, %d changes of policy, progress %d", stops, flips, last)
	}
}

// A query's snapshot may be taken at any point of an index rebuild, which is complete before the query reads the index.
// The query must not use half an index.
func TestQueryOpensDuringRebuild(t *testing.T) {
	for stop := 1; ; stop++ {
		e, h := hooked(t, core.Options{MinSlots: 1})
		c := newContainer(t, e, core.ContainerSpec{})
		for i := range 300 {
			put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p%d","n":%d,"v":[%d,2,3]}`, i, i, i%40, i))
		}
		q := eqQuery("n", 1)
		half, goOn, done := make(chan bool), make(chan bool), make(chan bool)
		over := false
		h.set(func(s *hookSet) {
			s.snapshot = func(take func() kv.Snapshot) kv.Snapshot {
				writes := 0
				h.set(func(s *hookSet) {
					s.snapshot = nil
					s.visible = func() {
						if writes++; writes == stop {
							h.set(func(s *hookSet) { s.visible = nil })
							select {
							case half <- true:
								<-goOn
							case <-done:
							}
						}
					}
				})
				go func() {
					setPolicy(t, e, c, onlyA)
					close(done)
				}()
				select {
				case <-half:
				case <-done:
					over = true
					return take()
				}
				view := take()
				close(goOn)
				<-done
				return view
			}
		})
		if got := ids(t, c, q); len(got) != 8 {
			t.Errorf("stop %d: %d rows, want 8", stop, len(got))
		}
		if over {
			if stop < 6 {
				t.Errorf("only %d writes", stop)
			}
			return
		}
	}
}

// Wherever a process ends in an index rebuild, the next one has right answers at once and completes the rebuild.
func TestCrashInRebuild(t *testing.T) {
	for _, policies := range [][]string{{"", onlyA}, {onlyA, onlyB}, {noIndex, ""}, {onlyB, noIndex, onlyA}} {
		for stop := 1; ; stop++ {
			h := &hooks{Engine: kv.Checked(memkv.New())}
			e, err := core.Open(bg, h, core.Options{MinSlots: 2})
			if err != nil {
				t.Fatal(err)
			}
			c := newContainer(t, e, core.ContainerSpec{IndexingPolicy: []byte(policies[0])})
			r := rand.New(rand.NewPCG(3, 4))
			for i := range 60 {
				put(t, c, core.Create, rebuildDoc(r, i))
			}
			var once sync.Once
			crashed := make(chan bool)
			var writes atomic.Int64
			h.set(func(s *hookSet) {
				s.fail = func() error {
					if writes.Add(1) > int64(stop) {
						once.Do(func() { close(crashed) })
						return kv.ErrUnavailable
					}
					return nil
				}
			})
			whole := true
			for _, p := range policies[1:] {
				spec := c.Spec().Clone()
				spec.IndexingPolicy = []byte(p)
				if _, err := e.ReplaceContainer(bg, "db", "c", spec); err != nil {
					whole = false
				}
			}
			over := make(chan error, 1)
			go func() { over <- c.WaitIndex(bg) }()
			select {
			case <-over:
			case <-crashed:
				whole = false
			}
			afterCrash(t, h.Engine, fmt.Sprintf("%v, write %d", policies, stop))
			_ = e.Close()
			if whole {
				break
			}
		}
	}
}

func rebuildDoc(r *rand.Rand, i int) string {
	d := fmt.Sprintf(`{"id":"%d","pk":"p%d","n":%d`, i, i%9, i%20)
	for _, f := range []string{"a", "b"} {
		if v := randomValue(r); v != "" {
			d += fmt.Sprintf(`,%q:%s`, f, v)
		}
	}
	return d + "}"
}

// afterCrash opens a second engine over the store of one that can no longer write.
func afterCrash(t *testing.T, eng kv.Engine, at string) {
	t.Helper()
	e, err := core.Open(bg, notClosed{eng}, core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	c, err := e.Container("db", "c")
	if err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		r := rand.New(rand.NewPCG(1, 1))
		for n := range race.Fewer(40, 8) {
			pred, match := randomPred(r, 2)
			q := &exec.Query{Pred: pred, PlanHash: uint64(n), Match: func(it *core.Item) (bool, error) {
				return match(it.Doc), nil
			}}
			got := ids(t, c, q)
			all := ids(t, c, &exec.Query{Match: q.Match})
			slices.Sort(got)
			slices.Sort(all)
			if !slices.Equal(got, all) {
				p, _ := c.Explain(bg, q)
				t.Fatalf("%s, %s, query %d (%s): got %v, want %v", at, when, n, p.Explain(), got, all)
			}
		}
		if p, err := e.Check(bg); err != nil || len(p) > 0 {
			t.Fatalf("%s, %s: %v %v", at, when, err, p)
		}
	}
	check("at once")
	for i := range 20 {
		put(t, c, core.Upsert, rebuildDoc(rand.New(rand.NewPCG(9, uint64(i))), i*4))
	}
	if err := c.WaitIndex(bg); err != nil {
		t.Fatal(err)
	}
	check("in the end")
	policy := string(c.Spec().IndexingPolicy)
	for path, in := range map[string]bool{"a": policy != noIndex && policy != onlyB, "b": policy == ""} {
		if c.Indexes(access.NewPath(path)) != in {
			t.Errorf("%s: the index doesn't follow %q", at, policy)
		}
	}
}

// notClosed is an engine that its user doesn't close.
type notClosed struct{ kv.Engine }

func (notClosed) Close() error { return nil }

// Tables implements kv.Ingester.
func (e notClosed) Tables(ctx context.Context) kv.Tables { return kv.BeginTables(ctx, e.Engine) }

// Several changes of the policy during a rebuild end with the newest policy. Writers and queries continue.
func TestPolicyChangesDuringRebuild(t *testing.T) {
	onEngines(t, core.Options{MinSlots: 4}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		r := rand.New(rand.NewPCG(5, 6))
		for i := range 400 {
			put(t, c, core.Create, rebuildDoc(r, i))
		}
		stop, wg := make(chan bool), waiter{}
		wg.Go(func() {
			r := rand.New(rand.NewPCG(7, 8))
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				n := r.IntN(400)
				if i%5 == 4 {
					_, _ = c.Write(bg, core.Write{
						Kind: core.Delete, PK: pk(fmt.Sprintf("p%d", n%9)), ID: value.StringOf(fmt.Sprint(n))})
				} else {
					put(t, c, core.Upsert, rebuildDoc(r, n))
				}
			}
		})
		for i := range 20 {
			spec := c.Spec().Clone()
			spec.IndexingPolicy = []byte([]string{onlyA, onlyB, noIndex, ""}[i%4])
			if i == 19 {
				spec.IndexingPolicy = []byte(onlyA)
			}
			if _, err := e.ReplaceContainer(bg, "db", "c", spec); err != nil {
				t.Fatal(err)
			}
			for n := range 3 {
				q := eqQuery("n", n)
				seen := map[string]bool{}
				for _, id := range ids(t, c, q) {
					if seen[id] {
						t.Errorf("%s comes twice", id)
					}
					seen[id] = true
				}
			}
		}
		if err := c.WaitIndex(bg); err != nil {
			t.Fatal(err)
		}
		close(stop)
		wg.Wait()
		if !c.Indexes(access.NewPath("a")) || c.Indexes(access.NewPath("n")) {
			t.Error("the index doesn't follow the newest policy")
		}
		clean(t, e)
		d, _ := e.Container("db", "c")
		if n := d.IndexProgress(); n != 100 {
			t.Errorf("progress is %d", n)
		}
	})
}

// A container that is closed during an index rebuild doesn't delay the engine's Close.
func TestCloseDuringRebuild(t *testing.T) {
	h := &hooks{Engine: kv.Checked(memkv.New())}
	e, err := core.Open(bg, h, core.Options{MinSlots: 2})
	if err != nil {
		t.Fatal(err)
	}
	c := newContainer(t, e, core.ContainerSpec{})
	for i := range 500 {
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p%d","n":%d}`, i, i, i))
	}
	started := make(chan bool)
	var once sync.Once
	h.set(func(s *hookSet) {
		catalog := true
		s.fail = func() error {
			if catalog {
				catalog = false
				return nil
			}
			once.Do(func() { close(started) })
			return kv.ErrUnavailable // the rebuild would try forever
		}
	})
	spec := c.Spec().Clone()
	spec.IndexingPolicy = []byte(noIndex)
	if _, err := e.ReplaceContainer(bg, "db", "c", spec); err != nil {
		t.Fatal(err)
	}
	<-started
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// A change of the policy that changes no entry writes none: only one or two commits of each slot's head.
func TestSmallPolicyChangeWritesLittle(t *testing.T) {
	e, h := hooked(t, core.Options{MinSlots: 2})
	c := newContainer(t, e, core.ContainerSpec{})
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		put(t, c, core.Create, rebuildDoc(r, i))
	}
	ops := 0
	h.set(func(s *hookSet) { s.pre = func(b *kv.Batch) { ops += b.Len() } })
	setPolicy(t, e, c, `{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/x/*"}]}`)
	h.set(func(s *hookSet) { s.pre = nil })
	if ops > 20 {
		t.Errorf("%d operations", ops)
	}
}
