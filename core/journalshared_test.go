package core_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/journal"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/value"
)

// journalled are processes that count up items of one container, and readers of its journal.
type journalled struct {
	*processes
	alive []sync.RWMutex // locked while a process is replaced
	stop  atomic.Bool
	made  atomic.Int64
}

const countedItems = 8

func counterOf(i int) (core.PartitionKey, value.Value) {
	return pk(fmt.Sprintf("p%d", i%4)), value.StringOf(fmt.Sprint(i))
}

// count writes with one process until it is told to stop: mostly one item, sometimes two at once.
func (j *journalled) count(p int, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 3))
	for !j.stop.Load() {
		j.alive[p].RLock()
		if err := j.countOnce(p, r); err == nil {
			j.made.Add(1)
		}
		j.alive[p].RUnlock()
		time.Sleep(time.Millisecond)
	}
}

func (j *journalled) countOnce(p int, r *rand.Rand) error {
	ctx, cancel := context.WithTimeout(bg, time.Second)
	defer cancel()
	c, err := j.all[p].Container("db", "c")
	if err != nil {
		return err
	}
	key, id := counterOf(r.IntN(countedItems))
	next := func(it *core.Item) doc.Doc {
		return mustDoc(j.t, fmt.Sprintf(`{"id":%q,"pk":%q,"v":%d}`, it.ID().Str(), doc.Get(it.Doc, "pk").Str(),
			doc.Get(it.Doc, "v").Int()+1))
	}
	if r.IntN(4) > 0 {
		_, err = c.Write(ctx, core.Write{Kind: core.Update, PK: key, ID: id,
			Update: func(old *core.Item) (core.Change, error) { return core.Change{Doc: next(old)}, nil }})
		return err
	}
	tx, err := c.Begin(ctx, time.Second)
	if err != nil {
		return err
	}
	defer tx.Abort()
	for _, i := range r.Perm(countedItems)[:2] {
		key, id := counterOf(i)
		it, err := tx.Read(ctx, c, key, id)
		if err != nil {
			return err
		}
		if _, err := tx.Write(ctx, c, core.Write{Kind: core.Replace, Doc: next(it)}); err != nil {
			return err
		}
	}
	_, err = tx.Commit(ctx)
	return err
}

// kill replaces processes by others, without closing them.
func (j *journalled) kill(r *rand.Rand) {
	for !j.stop.Load() {
		time.Sleep(time.Duration(100+r.IntN(200)) * time.Millisecond)
		p := r.IntN(len(j.all))
		j.kvs[p].Kill()
		j.alive[p].Lock()
		_ = j.all[p].Close()
		for err := error(nil); ; {
			j.kvs[p] = j.store.Engine()
			if j.all[p], err = core.Open(bg, j.kvs[p], j.options(p)); err == nil {
				break
			}
		}
		j.alive[p].Unlock()
	}
}

// follow reads the journal from a position until done is closed and nothing follows. It goes to another process from
// time to time, and after errors.
func (j *journalled) follow(from journal.Position, done <-chan struct{}, seed uint64) (out []*journal.Entry) {
	r, pos := rand.New(rand.NewPCG(seed, 4)), from
	for {
		last := false
		select {
		case <-done:
			last = true
		default:
		}
		p := r.IntN(len(j.all))
		j.alive[p].RLock()
		found, next, err := j.readOn(p, pos, last, 1+r.IntN(5))
		j.alive[p].RUnlock()
		if out, pos = append(out, found...), next; last && err == nil {
			return out
		}
	}
}

// readOn reads some pages at one process, each after the topic has told of news. With last it reads to the end.
func (j *journalled) readOn(p int, pos journal.Position, last bool, pages int) (out []*journal.Entry,
	next journal.Position, err error) {
	ctx, cancel := context.WithTimeout(bg, time.Second)
	defer cancel()
	jou := j.all[p].Journal()
	if last {
		if _, err := jou.Now(ctx); err != nil {
			return nil, pos, err
		}
	}
	topic := jou.Watch(journal.Namespace{DB: "db", Coll: "c"})
	defer topic.Leave()
	for i := 0; i < pages || last; i++ {
		from := pos.Time
		if !pos.Whole() {
			from--
		}
		short, stop := context.WithTimeout(ctx, 150*time.Millisecond)
		news := last || topic.Wait(short, from)
		if stop(); !news {
			return out, pos, nil
		}
		page, err := jou.Read(ctx, pos, 3, func(e *journal.Entry) bool { return e.Op != journal.Mark })
		if err != nil {
			return out, pos, err
		}
		out, pos = append(out, page.Entries...), page.Next
		if last && !page.More {
			return out, pos, nil
		}
	}
	return out, pos, nil
}

// Processes with clocks that differ by a day write, lose answers, and are killed. One of them begins to record while
// the others write. All readers get the same changes in the same order, wherever they read: each item's versions one
// after the other, everything that is acknowledged after the begin, the changes of a transaction together, and the drop
// at the end.
func TestJournalOfProcesses(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) { testJournalOfProcesses(t, n) })
	}
}

func testJournalOfProcesses(t *testing.T, n int) {
	j := &journalled{processes: startProcesses(t, n, network), alive: make([]sync.RWMutex, n)}
	c := j.containers(core.ContainerSpec{Throughput: core.Throughput{Manual: 40_000}})[0]
	for i := range countedItems {
		key, id := counterOf(i)
		put(t, c, core.Create, fmt.Sprintf(`{"id":%q,"pk":%q,"v":0}`, id.Str(), key[0].Str()))
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	var writers, readers sync.WaitGroup
	for p := range n {
		for k := range 2 {
			writers.Go(func() { j.count(p, seed+uint64(10*p+k)) })
		}
	}
	time.Sleep(50 * time.Millisecond)
	from := recordOf(t, j.all[n-1], "db", "c")
	begun := make([]int64, countedItems) // versions that were acknowledged before
	for i := range begun {
		key, id := counterOf(i)
		it, err := c.Read(bg, key, id)
		if err != nil {
			t.Fatal(err)
		}
		begun[i] = doc.Get(it.Doc, "v").Int()
	}
	j.store.SetFaults(kvtest.Faults{Most: time.Millisecond, Unavailable: 0.01, Unknown: 0.03,
		Late: 5 * time.Millisecond})
	done, got := make(chan struct{}), make([][]*journal.Entry, 2)
	for i := range got {
		readers.Go(func() { got[i] = j.follow(from, done, seed+uint64(i)) })
	}
	writers.Go(func() { j.kill(rand.New(rand.NewPCG(seed, 5))) })
	for begun := time.Now(); j.made.Load() < 250 && time.Since(begun) < time.Minute; {
		time.Sleep(10 * time.Millisecond)
	}
	j.stop.Store(true)
	writers.Wait()
	j.store.SetFaults(kvtest.Faults{})
	time.Sleep(20 * time.Millisecond) // writes that are on their way
	final := map[string]int64{}
	if c, err := j.all[0].Container("db", "c"); err != nil {
		t.Fatal(err)
	} else {
		for i := range countedItems {
			key, id := counterOf(i)
			it, err := c.Read(bg, key, id)
			if err != nil {
				t.Fatal(err)
			}
			final[id.Str()] = doc.Get(it.Doc, "v").Int()
		}
	}
	if err := j.all[1].DropContainer(bg, "db", "c"); err != nil {
		t.Fatal(err)
	}
	close(done)
	readers.Wait()
	at := map[string]int64{}
	for k, e := range got[0] {
		if e.Op == journal.Change {
			if k != len(got[0])-1 {
				t.Errorf("%s isn't the last entry", story([]*journal.Entry{e}))
			}
			continue
		}
		id, v := value.ObjectOf(e.Key).Get("_id").Str(), value.ObjectOf(e.Current).Get("v").Int()
		if was, ok := at[id]; ok && v != was+1 {
			t.Fatalf("entry %d: version %d of item %s follows version %d", k, v, id, was)
		} else if i := int(id[0] - '0'); !ok && v > begun[i]+1 {
			t.Fatalf("the journal of item %s begins with version %d, but the record with %d", id, v, begun[i])
		}
		at[id] = v
		if k > 0 && !got[0][k-1].Position().Before(e.Position()) {
			t.Fatalf("entry %d has position %v, the one before %v", k, e.Position(), got[0][k-1].Position())
		}
		if e.Together && e.N == 0 && (k+1 >= len(got[0]) || got[0][k+1].Time != e.Time) {
			t.Errorf("entry %d: the second change of a transaction doesn't follow", k)
		}
	}
	for id, v := range final {
		if was, ok := at[id]; ok && was != v {
			t.Errorf("the journal of item %s ends with version %d, want %d", id, was, v)
		}
	}
	times := func(list []*journal.Entry) (out []journal.Position) {
		for _, e := range list {
			out = append(out, e.Position())
		}
		return out
	}
	if !slices.Equal(times(got[0]), times(got[1])) {
		t.Errorf("two readers got %d and %d entries, which aren't the same", len(got[0]), len(got[1]))
	}
	if len(got[0]) < 100 {
		t.Errorf("only %d entries of %d writes: the test tests nothing", len(got[0]), j.made.Load())
	}
	t.Logf("%d entries", len(got[0]))
}

// Of a shared journal what is too old is removed as well, at all processes, and what none of them reads is no longer
// recorded. Readers in front of what was removed are refused.
func TestTrimOfSharedJournal(t *testing.T) {
	store := kvtest.NewShared(memkv.New(), 1)
	clk := clock.Fake(time.Unix(1_700_000_000, 0))
	var all []*core.Engine
	for range 2 {
		e, err := core.Open(bg, store.Engine(), core.Options{Clock: clk, JournalAge: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		all = append(all, e)
	}
	trim := func() {
		t.Helper()
		for _, e := range all {
			if err := e.TrimJournal(bg); err != nil {
				t.Fatal(err)
			}
		}
	}
	stored := func() (n int) { // keys of entries, and of what is pending
		snap, err := store.Engine().Snapshot(bg)
		if err != nil {
			t.Fatal(err)
		}
		defer snap.Close()
		for _, bounds := range []func() (lo, hi []byte){keys.JournalBounds, keys.PendingBounds} {
			it, err := snap.Iter(bounds())
			if err != nil {
				t.Fatal(err)
			}
			for ok := it.First(); ok; ok = it.Next() {
				n++
			}
			_ = it.Close()
		}
		return n
	}
	ns := journal.Namespace{DB: "db", Coll: "c"}
	newContainer(t, all[0], core.ContainerSpec{})
	from := recordOf(t, all[1], "db", "c")
	write := func(id string) {
		t.Helper()
		c, err := all[0].Container("db", "c")
		if err != nil {
			t.Fatal(err)
		}
		put(t, c, core.Create, fmt.Sprintf(`{"id":%q,"pk":"p","v":1}`, id))
	}
	write("a")
	for i := range 6 { // the second process reads for three hours
		clk.Advance(30 * time.Minute)
		if all[1].Journal().Since(ns) == 0 {
			t.Fatalf("after %d half hours nothing is recorded", i)
		}
		write(fmt.Sprint("b", i))
		trim()
	}
	for i, e := range all {
		if _, err := e.Journal().Read(bg, from, 10, func(*journal.Entry) bool { return true }); err == nil {
			t.Errorf("process %d reads what was removed", i)
		}
		if out, _ := recorded(t, e, journal.After(e.Journal().Since(ns))); len(out) < 2 || len(out) > 5 {
			t.Errorf("process %d has %s", i, story(out))
		}
	}
	clk.Advance(3 * time.Minute)
	trim()
	if n := stored(); n < 2 || n > 5 {
		t.Errorf("%d entries are stored", n)
	}
	clk.Advance(3 * time.Hour) // nobody reads
	trim()
	write("last")
	clk.Advance(3 * time.Minute)
	trim()
	if all[0].Journal().Active() || all[1].Journal().Since(ns) != 0 {
		t.Error("changes are recorded though nobody reads them")
	}
	if n := stored(); n != 0 {
		t.Errorf("%d entries are left", n)
	}
	again := recordOf(t, all[0], "db", "c")
	write("new")
	if out, _ := recorded(t, all[1], again); story(out) != "create c.new ->1" {
		t.Errorf("a new reader gets %s", story(out))
	}
}

// A process finds an entry that another one has read, also if it has not looked at the journal itself since.
func TestEntriesThatAnotherProcessHasRead(t *testing.T) {
	store := kvtest.NewShared(memkv.New(), 1)
	var all []*core.Engine
	for range 2 {
		e, err := core.Open(bg, store.Engine(), core.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		all = append(all, e)
	}
	c := newContainer(t, all[0], core.ContainerSpec{})
	pos := recordOf(t, all[0], "db", "c")
	for i := range 3 {
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p"}`, i))
		if _, err := all[0].Journal().Now(bg); err != nil {
			t.Fatal(err)
		}
		p, err := all[0].Journal().Read(bg, pos, 1, func(*journal.Entry) bool { return true })
		if err != nil || len(p.Entries) != 1 {
			t.Fatalf("%d entries, %v", len(p.Entries), err)
		}
		pos = p.Entries[0].Position()
		e, err := all[1].Journal().Find(bg, pos)
		if err != nil || e == nil || e.Position() != pos {
			t.Errorf("entry %d at the other process: %v, %v", i, e, err)
		}
	}
}

// While changes are recorded, a drop and a rename of one of many containers read that one's definition.
func TestOneOfManyContainersIsDropped(t *testing.T) {
	const n = 100
	below := memkv.New()
	first, err := core.Open(bg, kvtest.NewShared(below, 1).Engine(), core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	newContainer(t, first, core.ContainerSpec{})
	for i := range n {
		spec := core.ContainerSpec{ID: fmt.Sprint("c", i), PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}}
		if _, err := first.CreateContainer(bg, "db", spec); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := first.RecordChanges(bg, journal.Namespace{DB: "db", Coll: "c"}); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	store := &kvtest.Mute{Engine: kvtest.NewShared(below, 2).Engine(),
		Only: keys.AppendMeta(nil, keys.MetaContainer, 0, "")[:2]}
	e, err := core.Open(bg, store, core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for was := int64(-1); was != store.Asked.Load(); time.Sleep(100 * time.Millisecond) {
		was = store.Asked.Load() // a start looks at all of them
	}
	for name, do := range map[string]func() error{
		"drop":   func() error { return e.DropContainer(bg, "db", "c1") },
		"rename": func() error { _, err := e.RenameContainer(bg, "db", "c2", "d", false); return err },
	} {
		was := store.Asked.Load()
		if err := do(); err != nil {
			t.Fatal(err)
		}
		if got := store.Asked.Load() - was; got > n/4 { // background work may read some too
			t.Errorf("%s: %d definitions are read", name, got)
		}
	}
}
