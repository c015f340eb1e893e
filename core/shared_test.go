package core_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// processes are several engines over one store.
type processes struct {
	t     *testing.T
	store *kvtest.Shared
	clks  []*clock.Clock
	kvs   []*kvtest.Process
	all   []*core.Engine
}

// skews are the differences of the processes' clocks.
var skews = []time.Duration{0, 24 * time.Hour, -5 * time.Minute}

// network is a network without faults.
var network = kvtest.Faults{Most: time.Millisecond}

// startProcesses opens a store with n processes. At the end of the test each of them must find the store undamaged.
func startProcesses(t *testing.T, n int, f kvtest.Faults) *processes {
	return processesOver(t, memkv.New(), n, f)
}

// processesOver does the same with a store that has contents.
func processesOver(t *testing.T, of kv.Engine, n int, f kvtest.Faults) *processes {
	ps := &processes{t: t, store: kvtest.NewShared(of, 1)}
	for i := range n {
		ps.clks = append(ps.clks, clock.Fake(time.Unix(1_700_000_000, 0).Add(skews[i])))
		ps.kvs, ps.all = append(ps.kvs, nil), append(ps.all, nil)
		ps.start(i)
	}
	ps.store.SetFaults(f)
	t.Cleanup(func() {
		ps.store.SetFaults(kvtest.Faults{})
		for _, e := range ps.all {
			clean(t, e)
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return ps
}

// options are those of the i-th process.
func (ps *processes) options(i int) core.Options {
	return core.Options{Clock: ps.clks[i], Lease: 500 * time.Millisecond}
}

// start opens the i-th process.
func (ps *processes) start(i int) {
	ps.kvs[i] = ps.store.Engine()
	e, err := core.Open(bg, kv.Checked(ps.kvs[i]), ps.options(i))
	if err != nil {
		ps.t.Fatal(err)
	}
	ps.all[i] = e
}

// containers creates a container in the first process and returns the handles of all processes.
func (ps *processes) containers(spec core.ContainerSpec) (out []*core.Container) {
	newContainer(ps.t, ps.all[0], spec)
	for i := range ps.all {
		out = append(out, ps.container(i))
	}
	return out
}

// container returns the i-th process's handle of container "c".
func (ps *processes) container(i int) *core.Container {
	ps.t.Helper()
	c, err := ps.all[i].Container("db", "c")
	if err != nil {
		ps.t.Fatal(err)
	}
	return c
}

// each runs f at the same time for every process, n times.
func (ps *processes) each(n int, f func(p, i int)) {
	var g sync.WaitGroup
	for p := range ps.all {
		for i := range n {
			g.Go(func() { f(p, i) })
		}
	}
	g.Wait()
}

// Of several processes that create one item, one succeeds, and the others get Conflict. The same holds for databases
// and containers.
func TestSharedCreates(t *testing.T) {
	ps := startProcesses(t, 3, network)
	cs := ps.containers(core.ContainerSpec{})
	const ids = 20
	var made [ids]atomic.Int64
	ps.each(ids, func(p, i int) {
		_, err := cs[p].Write(bg, core.Write{Kind: core.Create,
			Doc: mustDoc(t, fmt.Sprintf(`{"id":"i%d","pk":"p%d","by":%d}`, i, i%3, p))})
		if err == nil {
			made[i].Add(1)
		} else if !status.Is(err, status.Conflict) {
			t.Errorf("create of %d: %v", i, err)
		}
	})
	for i := range made {
		if n := made[i].Load(); n != 1 {
			t.Errorf("%d processes have created item %d", n, i)
		}
	}
	var databases, containers atomic.Int64
	ps.each(1, func(p, _ int) {
		if _, err := ps.all[p].CreateDatabase(bg, core.DatabaseSpec{ID: "new"}); err == nil {
			databases.Add(1)
		} else if !status.Is(err, status.Conflict) {
			t.Error(err)
		}
		_, err := ps.all[p].CreateContainer(bg, "new", core.ContainerSpec{ID: "c",
			PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}})
		if err == nil {
			containers.Add(1)
		} else if !status.Is(err, status.Conflict) {
			t.Error(err)
		}
	})
	if databases.Load() != 1 || containers.Load() != 1 {
		t.Errorf("%d databases and %d containers were created", databases.Load(), containers.Load())
	}
}

// Increments by transactions and by updates in all processes add up. Writers that lose a race to another process are
// repeated inside the server.
func TestSharedIncrements(t *testing.T) {
	ps := startProcesses(t, 3, network)
	cs := ps.containers(core.ContainerSpec{})
	put(t, cs[0], core.Create, `{"id":"n","pk":"p","n":0}`)
	next := func(it *core.Item) doc.Doc {
		return mustDoc(t, fmt.Sprintf(`{"id":"n","pk":"p","n":%d}`, doc.Get(it.Doc, "n").Int()+1))
	}
	const each = 8
	ps.each(2, func(p, i int) {
		for range each {
			var err error
			if i == 0 {
				_, err = cs[p].Write(bg, core.Write{Kind: core.Update, PK: pk("p"), ID: value.StringOf("n"),
					Update: func(old *core.Item) (core.Change, error) { return core.Change{Doc: next(old)}, nil }})
			} else {
				err = retried(func() error {
					_, err := cs[p].WithTx(bg, pk("p"), func(tx *core.Tx) error {
						it, err := tx.Read(value.StringOf("n"))
						if err != nil {
							return err
						}
						_, err = tx.Write(&core.Write{Kind: core.Replace, Doc: next(it)})
						return err
					})
					return err
				})
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
	for p, c := range cs {
		it, err := c.Read(bg, pk("p"), value.StringOf("n"))
		if err != nil || doc.Get(it.Doc, "n").Int() != int64(len(cs)*2*each) {
			t.Errorf("process %d reads %v (%v), want %d", p, it, err, len(cs)*2*each)
		}
	}
}

// retried repeats a transaction that was refused with RetryWith: after a bounded number of races it is.
func retried(f func() error) (err error) {
	for range 100 {
		if err = f(); !status.Is(err, status.RetryWith) {
			return err
		}
	}
	return err
}

// What one process has written, the others read at their next request: items, counts, queries, feeds, and absences.
func TestSharedReads(t *testing.T) {
	ps := startProcesses(t, 2, network)
	cs := ps.containers(core.ContainerSpec{})
	a, b := cs[0], cs[1]
	for i := range 10 {
		id := fmt.Sprintf("i%d", i)
		if _, err := b.Read(bg, pk("p"), value.StringOf(id)); !status.Is(err, status.NotFound) {
			t.Errorf("before the write: %v", err)
		}
		res := put(t, a, core.Create, fmt.Sprintf(`{"id":%q,"pk":"p","n":%d,"tags":["x","y"]}`, id, i))
		it, err := b.Read(bg, pk("p"), value.StringOf(id))
		if err != nil || it.LSN != res.LSN {
			t.Errorf("%s: %v, %v", id, it, err)
		}
		if n := counted(b); n != int64(i+1) {
			t.Errorf("count is %d, want %d", n, i+1)
		}
		if got := ids(t, b, eqQuery("n", i)); len(got) != 1 || got[0] != id {
			t.Errorf("query finds %v, want %s", got, id)
		}
		page, err := b.Feed(bg, feed.Scope{}, feed.Start(), 100)
		if err != nil || len(page.Items) != i+1 {
			t.Errorf("the feed has %d items, want %d (%v)", len(page.Items), i+1, err)
		}
		if lastLSN(b) != res.LSN || givenLSN(b) != res.LSN {
			t.Errorf("LSN %d and %d, want %d", lastLSN(b), givenLSN(b), res.LSN)
		}
		a, b = b, a
	}
}

// A process that only reads finds items of every class of values, with array elements, and by the order of a path: what
// its queries skip is decided by the heads in their snapshot.
func TestSharedQueries(t *testing.T) {
	ps := startProcesses(t, 2, network)
	cs := ps.containers(core.ContainerSpec{})
	v := access.NewPath("v")
	for i, c := range []struct {
		doc  string
		pred *access.Pred
	}{
		{`1`, access.Eq(v, value.Int32Of(1))},
		{`"s"`, access.Eq(v, value.StringOf("s"))},
		{`true`, access.Eq(v, value.BoolOf(true))},
		{`null`, access.Eq(v, value.NullValue())},
		{`["e"]`, access.Eq(v.Element(), value.StringOf("e"))},
	} {
		id := fmt.Sprintf("i%d", i)
		put(t, cs[0], core.Create, fmt.Sprintf(`{"id":%q,"pk":"p%d","v":%s}`, id, i, c.doc))
		if got := ids(t, cs[1], &exec.Query{Pred: c.pred, PlanHash: uint64(i)}); len(got) != 1 || got[0] != id {
			t.Errorf("%s: the query finds %v", c.doc, got)
		}
		byID := &exec.Query{Pred: access.Eq(access.ID, value.StringOf(id)), PlanHash: 99}
		if got := ids(t, cs[1], byID); len(got) != 1 {
			t.Errorf("%s by its id: %v", id, got)
		}
		order := &exec.Query{OrderBy: orderBy(false, "v"), Compare: value.CompareCosmos}
		if got := ids(t, cs[1], order); len(got) != i+1 {
			t.Errorf("in order there are %d of %d items: %v", len(got), i+1, got)
		}
	}
}

// Items that processes create at the same time have different numbers, over many blocks of them.
func TestSharedNumbers(t *testing.T) {
	t.Parallel()
	// the processes read and replace the counter at about the same time
	ps := startProcesses(t, 3, kvtest.Faults{Least: time.Millisecond, Most: 1100 * time.Microsecond})
	cs := ps.containers(core.ContainerSpec{})
	var numbers sync.Map
	ps.each(2, func(p, i int) {
		var ws []core.Write
		for n := range 150 {
			ws = append(ws, core.Write{Kind: core.Create,
				Doc: mustDoc(t, fmt.Sprintf(`{"id":"%d-%d-%d","pk":"p"}`, p, i, n))})
		}
		for _, o := range cs[p].WriteMany(bg, ws, false) {
			if o.Err != nil {
				t.Error(o.Err)
			} else if was, twice := numbers.LoadOrStore(o.Result.Item.Number, o.Result.Item.ID().Str()); twice {
				t.Errorf("%s and %s have one number", was, o.Result.Item.ID().Str())
			}
		}
	})
}

// A definition that one process replaces is obeyed by another at its next request.
func TestSharedDefinition(t *testing.T) {
	ps := startProcesses(t, 2, network)
	cs := ps.containers(core.ContainerSpec{})
	put(t, cs[0], core.Create, `{"id":"i","pk":"p","n":1}`)
	spec := cs[0].Spec().Clone()
	ttl := int32(10)
	spec.DefaultTTL = &ttl
	if _, err := ps.all[0].ReplaceContainer(bg, "db", "c", spec); err != nil {
		t.Fatal(err)
	}
	ps.clks[1].Advance(time.Minute)
	if _, err := cs[1].Read(bg, pk("p"), value.StringOf("i")); !status.Is(err, status.NotFound) {
		t.Errorf("the expired item: %v", err)
	}
	spec.DefaultTTL = nil
	if _, err := ps.all[1].ReplaceContainer(bg, "db", "c", spec); err != nil {
		t.Fatal(err)
	}
	if _, err := cs[0].Read(bg, pk("p"), value.StringOf("i")); err != nil {
		t.Errorf("the item that doesn't expire any more: %v", err)
	}
	for n := range 4 { // policies in turn, by both processes
		policy := noIndex
		if n%2 == 1 {
			policy = ""
		}
		spec.IndexingPolicy = []byte(policy)
		if _, err := ps.all[n%2].ReplaceContainer(bg, "db", "c", spec); err != nil {
			t.Fatal(err)
		}
		put(t, cs[n%2], core.Upsert, fmt.Sprintf(`{"id":"i","pk":"p","n":%d}`, n))
		if err := cs[1-n%2].WaitIndex(bg); err != nil {
			t.Fatal(err)
		}
		for _, c := range cs {
			if p := c.IndexProgress(); p != 100 {
				t.Errorf("progress %d after the rebuild", p)
			}
			if got := ids(t, c, eqQuery("n", n)); len(got) != 1 {
				t.Errorf("with policy %q the query finds %v", policy, got)
			}
		}
	}
}

// A container that one process drops is gone for the others, and one that is created again under its name is found.
func TestSharedDrop(t *testing.T) {
	ps := startProcesses(t, 2, network)
	cs := ps.containers(core.ContainerSpec{})
	put(t, cs[1], core.Create, `{"id":"i","pk":"p"}`)
	if err := ps.all[0].DropContainer(bg, "db", "c"); err != nil {
		t.Fatal(err)
	}
	_, err := cs[1].Read(bg, pk("p"), value.StringOf("i"))
	wantCode(t, err, status.NotFound, status.SubOwnerNotFound)
	_, err = cs[1].Write(bg, core.Write{Kind: core.Upsert, Doc: mustDoc(t, `{"id":"i","pk":"p"}`)})
	wantCode(t, err, status.NotFound, status.SubOwnerNotFound)
	_, err = cs[1].Query(bg, &exec.Query{})
	wantCode(t, err, status.NotFound, status.SubOwnerNotFound)
	_, err = ps.all[1].Container("db", "c")
	wantCode(t, err, status.NotFound, 0)
	newContainer(t, ps.all[0], core.ContainerSpec{})
	again := ps.container(1)
	if n := counted(again); n != 0 {
		t.Errorf("the new container has %d items", n)
	}
	put(t, again, core.Create, `{"id":"i","pk":"p"}`)
	if err := ps.all[1].DropDatabase(bg, "db"); err != nil {
		t.Fatal(err)
	}
	_, err = ps.all[0].Database("db")
	wantCode(t, err, status.NotFound, 0)
	_, err = again.Read(bg, pk("p"), value.StringOf("i"))
	wantCode(t, err, status.NotFound, status.SubOwnerNotFound)
}

// A process that was paused in the middle of writes doesn't overwrite what another has written meanwhile.
func TestSharedPause(t *testing.T) {
	ps := startProcesses(t, 2, kvtest.Faults{Least: time.Millisecond, Most: 2 * time.Millisecond})
	cs := ps.containers(core.ContainerSpec{})
	for round := range 6 {
		first := put(t, cs[0], core.Upsert, `{"id":"i","pk":"p","by":"first"}`)
		same := func(it *core.Item) error {
			if it.LSN != first.LSN {
				return status.New(status.PreconditionFailed, "another version")
			}
			return nil
		}
		done := make(chan error, 1)
		go func() {
			_, err := cs[0].Write(bg, core.Write{Kind: core.Replace, Doc: mustDoc(t, `{"id":"i","pk":"p","by":"slow"}`),
				Check: same})
			done <- err
		}()
		time.Sleep(time.Duration(round) * 700 * time.Microsecond)
		ps.kvs[0].Pause()
		_, err := cs[1].Write(bg, core.Write{Kind: core.Replace, Doc: mustDoc(t, `{"id":"i","pk":"p","by":"other"}`),
			Check: same})
		ps.kvs[0].Resume()
		slow := <-done
		it, rerr := cs[1].Read(bg, pk("p"), value.StringOf("i"))
		if rerr != nil {
			t.Fatal(rerr)
		}
		by := doc.Get(it.Doc, "by").Str()
		if (err == nil) == (slow == nil) || err == nil && by != "other" || slow == nil && by != "slow" {
			t.Errorf("round %d: the paused process got %v, the other one %v, and %q is stored", round, slow, err, by)
		}
	}
}

// A write whose outcome the engine doesn't know is answered with the truth, and is never done twice.
func TestSharedUnknownOutcomes(t *testing.T) {
	t.Parallel()
	ps := startProcesses(t, 2, network)
	cs := ps.containers(core.ContainerSpec{UniqueKeys: [][]string{{"/u"}}})
	put(t, cs[0], core.Create, `{"id":"n","pk":"p","u":"n","n":0}`)
	ps.store.SetFaults(kvtest.Faults{Most: time.Millisecond, Unknown: 0.3, Late: 4 * time.Millisecond})
	var sum, unsure atomic.Int64
	const writes = 120 // so many that chance doesn't decide: some 40 stay unknown, and 72 if nobody looked
	ps.each(1, func(p, _ int) {
		for i := range writes {
			_, err := cs[p].Write(bg, core.Write{Kind: core.Update, PK: pk("p"), ID: value.StringOf("n"),
				Update: func(old *core.Item) (core.Change, error) {
					return core.Change{Doc: mustDoc(t, fmt.Sprintf(`{"id":"n","pk":"p","u":"n","n":%d}`,
						doc.Get(old.Doc, "n").Int()+1))}, nil
				}})
			switch {
			case err == nil:
				sum.Add(1)
			case status.Is(err, status.UnknownOutcome):
				unsure.Add(1)
			default:
				t.Error(err)
			}
			id := fmt.Sprintf("%d-%d", p, i)
			_, err = cs[p].Write(bg, core.Write{Kind: core.Create,
				Doc: mustDoc(t, fmt.Sprintf(`{"id":%q,"pk":"p","u":%q}`, id, id))})
			it, rerr := cs[1-p].Read(bg, pk("p"), value.StringOf(id))
			if err == nil != (rerr == nil) && !status.Is(err, status.UnknownOutcome) {
				t.Errorf("create of %s: %v; read: %v, %v", id, err, it, rerr)
			}
		}
	})
	time.Sleep(10 * time.Millisecond)
	ps.store.SetFaults(kvtest.Faults{})
	it, err := cs[0].Read(bg, pk("p"), value.StringOf("n"))
	if err != nil {
		t.Fatal(err)
	}
	if n := doc.Get(it.Doc, "n").Int(); n < sum.Load() || n > sum.Load()+unsure.Load() {
		t.Errorf("n is %d after %d increments and %d of unknown outcome", n, sum.Load(), unsure.Load())
	}
	if unsure.Load() > writes/2 {
		t.Errorf("%d of %d outcomes were not found out", unsure.Load(), 2*writes)
	}
}

// The order of writes is that of LSNs, and the feed is in this order and complete, whatever the clocks of the processes
// say.
func TestSharedClocks(t *testing.T) {
	ps := startProcesses(t, 3, network)
	cs := ps.containers(core.ContainerSpec{})
	var want []string
	lsn := int64(0)
	for i := range 30 {
		id := fmt.Sprintf("i%02d", i)
		res := put(t, cs[i*7%3], core.Create, fmt.Sprintf(`{"id":%q,"pk":"p%d"}`, id, i%4))
		if res.LSN <= lsn {
			t.Errorf("LSN %d after %d", res.LSN, lsn)
		}
		want, lsn = append(want, id), res.LSN
	}
	for p, c := range cs {
		var got []string
		for pos := feed.Start(); ; {
			page, err := c.Feed(bg, feed.Scope{}, pos, 4)
			if err != nil {
				t.Fatal(err)
			}
			for _, it := range page.Items {
				got = append(got, it.ID().Str())
			}
			if pos = page.Next; !page.More && len(page.Items) == 0 {
				break
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("process %d: the feed has %v, want %v", p, got, want)
		}
	}
}

// A resource that one process changes is seen by the others.
func TestSharedResources(t *testing.T) {
	ps := startProcesses(t, 2, network)
	a, b := ps.all[0], ps.all[1]
	if _, err := a.CreateDatabase(bg, core.DatabaseSpec{ID: "db"}); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		id := fmt.Sprintf("u%d", i)
		if _, err := a.CreateResource(bg, "db", core.Resource{Kind: core.User, ID: id}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Resource("db", core.User, 0, id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		if all, err := b.Resources(bg, "db", core.User, 0); err != nil || len(all) != i+1 {
			t.Errorf("%d resources (%v)", len(all), err)
		}
		a, b = b, a
	}
	if _, err := a.ReplaceDatabase(bg, core.DatabaseSpec{ID: "db",
		Throughput: core.Throughput{Manual: 500}}); err != nil {
		t.Fatal(err)
	}
	if d, err := b.Database("db"); err != nil || d.Throughput.Manual != 500 {
		t.Errorf("%+v, %v", d, err)
	}
	if n := databases(t, b); n != 1 {
		t.Errorf("%d databases", n)
	}
}
