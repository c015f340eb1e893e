package core_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

// agedContainers are containers of all kinds, by id.
var agedContainers = map[string]core.ContainerSpec{
	"plain":     {},
	"byid":      {PartitionKey: core.PartitionKeyDef{Paths: []string{"/id"}}},
	"levels":    {PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk", "/n"}}},
	"composite": {IndexingPolicy: compositePolicy([]string{"n", "-a"})},
	"places":    {IndexingPolicy: []byte(spatialPolicy)},
	"unique":    {UniqueKeys: [][]string{{"/u"}}},
	"expiring":  {DefaultTTL: ttlOf(1 << 30)},
	"bare":      {IndexingPolicy: []byte(noIndex)},
	"empty":     {},
}

func ttlOf(n int32) *int32 { return &n }

func agedDoc(i int) string {
	return fmt.Sprintf(`{"id":"%d","pk":"p%d","n":%d,"a":%d,"b":[%d,{"c":%d}],"u":%d,"text":"%s"}`,
		i, i%7, i%20, i%3, i%5, i, i, strings.Repeat("long ", i%40))
}

// fillAged creates the containers with items, and also changes and removes some items.
func fillAged(t testing.TB, e *core.Engine, items int) {
	t.Helper()
	for id, spec := range agedContainers {
		spec.ID = id
		c := newContainer(t, e, spec)
		if id == "empty" {
			continue
		}
		putMany(t, c, items+1, agedDoc)
		key := core.PartitionKey{value.StringOf(fmt.Sprintf("p%d", items%7))}
		switch id {
		case "byid":
			key = core.PartitionKey{value.StringOf(fmt.Sprint(items))}
		case "levels":
			key = append(key, value.Int32Of(int32(items%20)))
		}
		if _, err := c.Write(bg, core.Write{Kind: core.Delete, PK: key, ID: value.StringOf(fmt.Sprint(items))}); err !=
			nil {
			t.Fatal(id, err)
		}
		put(t, c, core.Upsert, agedDoc(1))
	}
}

// askAged returns the containers' answers, by query.
func askAged(t testing.TB, e *core.Engine) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for id := range agedContainers {
		c, err := e.Container("db", id)
		if err != nil {
			t.Fatal(err)
		}
		for name, q := range map[string]*exec.Query{
			"equal": eqQuery("n", 3),
			"all":   {},
			"element": {Pred: access.Eq(access.NewPath("b").Element(), value.Int32Of(2)),
				Match: func(it *core.Item) (bool, error) {
					return strings.Contains(json(it), `"b":[2,`), nil
				}},
			"id": {Pred: access.Eq(access.NewPath("_id"), value.StringOf("5")),
				Match: func(it *core.Item) (bool, error) {
					return it.ID().Str() == "5", nil
				}},
		} {
			rows := ids(t, c, q)
			slices.Sort(rows)
			out[id+" "+name] = rows
		}
		sorted := exec.Query{OrderBy: orderBy(true, "n", "a"), Compare: value.CompareCosmos}
		sorted.OrderBy[1].Desc = false
		var ranks []string
		for _, id := range ids(t, c, &sorted) { // rows with equal values have no particular order
			n := 0
			_, _ = fmt.Sscan(id, &n)
			ranks = append(ranks, fmt.Sprint(n%20, n%3))
		}
		out[id+" sorted"] = ranks
		out[id+" pages"] = paged(t, c, exec.Query{}, 7)
		slices.Sort(out[id+" pages"])
		out[id+" count"] = []string{fmt.Sprint(counted(c))}
	}
	return out
}

func sameAnswers(t testing.TB, when string, got, want map[string][]string) {
	t.Helper()
	for q, rows := range want {
		if !slices.Equal(got[q], rows) {
			t.Errorf("%s, %s: %v, want %v", when, q, got[q], rows)
		}
	}
}

// upgraded waits for the end of the upgrade.
func upgraded(t testing.TB, e *core.Engine) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		st, under := e.Upgrading()
		if !under {
			return
		}
		if time.Now().After(end) || st.Problem != "" {
			t.Fatalf("the upgrade is at %+v", st)
		}
	}
}

// noFormer checks that nothing of an older format is left.
func noFormer(t testing.TB, e kv.Engine) {
	t.Helper()
	ks, _ := every(t, e)
	for _, k := range ks {
		if _, kind, ok := keys.ParseSlot(k); ok && (kind == keys.KindFormerIndex || kind == keys.KindFormerNumber) {
			t.Fatalf("key %x is left", k)
		}
	}
}

// A store of an older format gives the same answers as before, during the upgrade and after it. Then the new format is
// recorded.
func TestUpgrade(t *testing.T) {
	for name, open := range engines {
		t.Run(name, func(t *testing.T) {
			eng := open(t)
			defer eng.Close()
			e, err := core.Open(bg, notClosed{eng}, core.Options{MinSlots: 2})
			if err != nil {
				t.Fatal(err)
			}
			if _, under := e.Upgrading(); under {
				t.Error("a new store is being upgraded")
			}
			fillAged(t, e, overNetwork(150, 50))
			want := askAged(t, e)
			_ = e.Close()
			if n := age(t, eng); n < overNetwork(5000, 1500) {
				t.Fatalf("%d entries", n)
			}
			ro, err := core.Open(bg, notClosed{eng}, core.Options{ReadOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			clean(t, ro)
			sameAnswers(t, "open for reading", askAged(t, ro), want)
			_ = ro.Close()
			if e, err = core.Open(bg, notClosed{eng}, core.Options{}); err != nil {
				t.Fatal(err)
			}
			sameAnswers(t, "at once", askAged(t, e), want)
			clean(t, e)
			upgraded(t, e)
			sameAnswers(t, "in the end", askAged(t, e), want)
			clean(t, e)
			noFormer(t, eng)
			c, err := e.Container("db", "plain")
			if err != nil {
				t.Fatal(err)
			}
			if p, err := c.Explain(bg, eqQuery("n", 3)); err != nil || p.Kind != access.Index {
				t.Errorf("in the end an equality is answered by %s (%v)", p.Explain(), err)
			}
			_ = e.Close()
			if e, err = core.Open(bg, notClosed{eng}, core.Options{}); err != nil {
				t.Fatal(err)
			}
			if st, under := e.Upgrading(); under {
				t.Errorf("opened again it is upgraded again: %+v", st)
			}
			_ = e.Close()
		})
	}
}

// dying is an engine that does a number of further changes and then none, as if its process had ended.
type dying struct {
	kv.Engine
	left atomic.Int64
	over chan bool
	once sync.Once
}

func (d *dying) dead() error {
	if d.left.Add(-1) >= 0 {
		return nil
	}
	d.once.Do(func() { close(d.over) })
	return kv.ErrUnavailable
}

func (d *dying) Write(ctx context.Context, b *kv.Batch, pre []kv.Precondition) (kv.Commit, error) {
	if err := d.dead(); err != nil {
		return nil, err
	}
	return d.Engine.Write(ctx, b, pre)
}

// Tables implements kv.Ingester. Each Ingest counts as a write.
func (d *dying) Tables(ctx context.Context) kv.Tables {
	t := kv.BeginTables(ctx, d.Engine)
	if t == nil {
		return nil
	}
	return dyingTables{t, d}
}

type dyingTables struct {
	kv.Tables
	d *dying
}

func (t dyingTables) Ingest(pre []kv.Precondition) error {
	if err := t.d.dead(); err != nil {
		return err
	}
	return t.Tables.Ingest(pre)
}

func (d *dying) DropRange(ctx context.Context, lo, hi []byte) error {
	if err := d.dead(); err != nil {
		return err
	}
	return d.Engine.DropRange(ctx, lo, hi)
}

func (d *dying) Close() error { return nil }

// Wherever a process ends in an upgrade, the next one has right answers at once and continues the upgrade. So does the
// process after that, if the second one ends too.
func TestUpgradeCutAnywhere(t *testing.T) {
	t.Parallel()
	cuts := 0
	for _, policy := range []string{"", onlyA, onlyB, noIndex, allANB} {
		for stop, whole := int64(0), false; !whole; stop += int64(race.Fewer(1, 6)) {
			mem := kv.Checked(memkv.New())
			e, err := core.Open(bg, notClosed{mem}, core.Options{MinSlots: 10})
			if err != nil {
				t.Fatal(err)
			}
			c := newContainer(t, e, core.ContainerSpec{IndexingPolicy: []byte(policy)})
			r := rand.New(rand.NewPCG(3, 4))
			for i := range 100 {
				put(t, c, core.Create, rebuildDoc(r, i))
			}
			_ = e.Close()
			age(t, mem)
			for again := range int64(3) {
				d := &dying{Engine: mem, over: make(chan bool)}
				d.left.Store(stop + again)
				if e, err = core.Open(bg, d, core.Options{}); err != nil {
					t.Fatal(err)
				}
				ended := make(chan bool)
				go func() {
					defer close(ended)
					for {
						if _, under := e.Upgrading(); !under || e.Faults() > 0 {
							return
						}
						select {
						case <-d.over:
							return
						case <-time.After(100 * time.Microsecond):
						}
					}
				}()
				select {
				case <-d.over:
					cuts++
				case <-ended:
					_, under := e.Upgrading()
					whole = whole || again == 0 && !under
				}
				_ = e.Close()
				<-ended
			}
			afterCrash(t, mem, fmt.Sprintf("%s, change %d", policy, stop))
			noFormer(t, mem)
		}
	}
	if t.Logf("%d cuts", cuts); cuts < race.Fewer(200, 30) {
		t.Errorf("only %d cuts", cuts)
	}
}

// During the upgrade of a container, it and all others are served, and /status shows the progress.
func TestUpgradeStopsNobody(t *testing.T) {
	h := &hooks{Engine: kv.Checked(memkv.New())}
	e, err := core.Open(bg, notClosed{h}, core.Options{MinSlots: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"c", "other"} {
		c := newContainer(t, e, core.ContainerSpec{ID: id})
		for i := range 500 {
			put(t, c, core.Create, agedDoc(i))
		}
	}
	_ = e.Close()
	age(t, h.Engine)
	at, goOn := make(chan bool), make(chan bool)
	stop := func() {
		at <- true
		<-goOn
	}
	h.set(func(on *hookSet) { on.drop = stop })
	if e, err = core.Open(bg, notClosed{h}, core.Options{}); err != nil {
		t.Fatal(err)
	}
	<-at // the upgrade of the first container is stopped here
	st, under := e.Upgrading()
	for end := time.Now().Add(10 * time.Second); st.Container == "" &&
		time.Now().Before(end); time.Sleep(time.Millisecond) {
		st, under = e.Upgrading()
	}
	if !under || st.Containers != 2 || st.Done != 0 || st.Container == "" || st.Percent >= 100 {
		t.Errorf("the upgrade is at %+v, %v", st, under)
	}
	name := strings.TrimPrefix(st.Container, "db/")
	c, err := e.Container("db", name)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		put(t, c, core.Upsert, agedDoc(i*20))
	}
	if got := ids(t, c, eqQuery("n", 3)); len(got) != 25 {
		t.Errorf("%d rows of the container that is being upgraded", len(got))
	}
	// The other container is upgraded concurrently when it is first used.
	other := "c"
	if name == "c" {
		other = "other"
	}
	h.set(func(on *hookSet) { on.drop = nil })
	o, err := e.Container("db", other)
	if err != nil {
		t.Fatal(err)
	}
	put(t, o, core.Upsert, agedDoc(7))
	if err := o.WaitIndex(bg); err != nil {
		t.Fatal(err)
	}
	if p, err := o.Explain(bg, eqQuery("n", 3)); err != nil || p.Kind != access.Index {
		t.Errorf("the other container answers by %s (%v)", p.Explain(), err)
	}
	close(goOn)
	upgraded(t, e)
	clean(t, e)
	noFormer(t, h.Engine)
	if got := ids(t, c, eqQuery("n", 3)); len(got) != 25 {
		t.Errorf("%d rows in the end", len(got))
	}
	_ = e.Close()
}

// Writers, readers and changes of the policy continue during an upgrade.
func TestUpgradeAmongClients(t *testing.T) {
	for name, open := range engines {
		t.Run(name, func(t *testing.T) {
			eng := open(t)
			defer eng.Close()
			e, err := core.Open(bg, notClosed{eng}, core.Options{MinSlots: 2})
			if err != nil {
				t.Fatal(err)
			}
			c := newContainer(t, e, core.ContainerSpec{})
			items := overNetwork(600, 180)
			putMany(t, c, items, agedDoc)
			_ = e.Close()
			age(t, eng)
			if e, err = core.Open(bg, notClosed{eng}, core.Options{}); err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			if c, err = e.Container("db", "c"); err != nil {
				t.Fatal(err)
			}
			stopped := make(chan bool)
			stop := sync.OnceFunc(func() { close(stopped) })
			var wg sync.WaitGroup
			defer wg.Wait()
			defer stop()
			for w := range 3 {
				wg.Go(func() {
					r := rand.New(rand.NewPCG(uint64(w), 1))
					for n := 0; ; n++ {
						select {
						case <-stopped:
							return
						default:
						}
						i := r.IntN(items/3)*3 + w
						switch id := value.StringOf(fmt.Sprint(i)); n % 3 {
						case 0:
							put(t, c, core.Upsert, agedDoc(i))
						case 1: // it is removed and created again with another number
							_, err := c.Write(
								bg, core.Write{Kind: core.Delete, PK: pk(fmt.Sprintf("p%d", i%7)), ID: id})
							if err != nil {
								t.Error(err)
							}
							put(t, c, core.Create, agedDoc(i))
						case 2:
							if _, err := c.Read(bg, pk(fmt.Sprintf("p%d", i%7)), id); err != nil {
								t.Error(err)
							}
						}
					}
				})
			}
			for _, p := range []string{onlyA, "", string(compositePolicy([]string{"n", "-a"}))} {
				_, err := e.ReplaceContainer(bg, "db", "c", core.ContainerSpec{ID: "c", IndexingPolicy: []byte(p)})
				if err != nil {
					t.Fatal(err)
				}
				clean(t, e)
			}
			for range 20 {
				if n := len(ids(t, c, eqQuery("n", 3))); n < items/20-3 || n > items/20 {
					t.Errorf("%d rows", n)
				}
			}
			stop()
			wg.Wait()
			upgraded(t, e)
			if err := c.WaitIndex(bg); err != nil {
				t.Fatal(err)
			}
			clean(t, e)
			noFormer(t, eng)
			if n := len(ids(t, c, eqQuery("n", 3))); n != items/20 {
				t.Errorf("%d rows in the end", n)
			}
		})
	}
}

// A container that several open at once is upgraded for all of them: none sees it before its upgrade runs.
func TestUpgradeBesideAnOpen(t *testing.T) {
	for range 1000 {
		eng := memkv.New()
		e, err := core.Open(bg, notClosed{eng}, core.Options{MinSlots: 1})
		if err != nil {
			t.Fatal(err)
		}
		put(t, newContainer(t, e, core.ContainerSpec{}), core.Create, agedDoc(1))
		_ = e.Close()
		age(t, eng)
		if e, err = core.Open(bg, notClosed{eng}, core.Options{}); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if c, err := e.Container("db", "c"); err != nil {
					t.Error(err)
				} else if err := c.WaitIndex(bg); err != nil || c.IndexProgress() != 100 {
					t.Errorf("%v at %d %%", err, c.IndexProgress())
				}
			})
		}
		wg.Wait()
		upgraded(t, e)
		_ = e.Close()
		_ = eng.Close()
	}
}

// A container that can't be upgraded, because one of its items is damaged, is reported, and the others are upgraded.
func TestUpgradeOfDamaged(t *testing.T) {
	eng := kv.Checked(memkv.New())
	e, err := core.Open(bg, notClosed{eng}, core.Options{MinSlots: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b", "c"} {
		put(t, newContainer(t, e, core.ContainerSpec{ID: id}), core.Create, `{"id":"1","pk":"p"}`)
	}
	_ = e.Close()
	age(t, eng)
	ks, _ := every(t, eng)
	for _, k := range ks {
		if _, kind, ok := keys.ParseSlot(k); ok && kind == keys.KindItem { // of container a, the oldest one
			var b kv.Batch
			b.Put(k, []byte{99})
			if _, err := eng.Write(bg, &b, nil); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	if e, err = core.Open(bg, notClosed{eng}, core.Options{}); err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if st, under := e.Upgrading(); under && st.Done == 2 && st.Problem != "" {
			break
		} else if time.Now().After(end) {
			t.Fatalf("the upgrade is at %+v", st)
		}
	}
	c, err := e.Container("db", "a")
	if err != nil {
		t.Fatal(err)
	}
	put(t, c, core.Create, `{"id":"2","pk":"p"}`)
	if _, err := c.Read(bg, pk("p"), value.StringOf("1")); !status.Is(err, status.Corruption) {
		t.Errorf("the damaged item: %v", err)
	}
}

// A slot whose index entries follow an unknown policy is indexed again in the same way.
func TestIndexOfUnknownPolicy(t *testing.T) {
	for _, items := range []int{20, 300} { // few items are indexed in one commit
		t.Run(fmt.Sprint(items), func(t *testing.T) { indexOfUnknownPolicy(t, items) })
	}
}

func indexOfUnknownPolicy(t *testing.T, items int) {
	eng := kv.Checked(memkv.New())
	e, err := core.Open(bg, notClosed{eng}, core.Options{MinSlots: 2})
	if err != nil {
		t.Fatal(err)
	}
	c := newContainer(t, e, core.ContainerSpec{})
	for i := range items {
		put(t, c, core.Create, agedDoc(i))
	}
	inOrder := exec.Query{OrderBy: orderBy(false, "n"), Compare: value.CompareCosmos}
	ids(t, c, &inOrder)
	_ = e.Close()
	var b kv.Batch
	facts := 0
	ks, vs := every(t, eng)
	for i, k := range ks {
		slot, kind, _ := keys.ParseSlot(k)
		switch {
		case kind == keys.KindHead:
			vs[i][2+8*4+3] = 77 // the version of the policy
			b.Put(k, vs[i])
		case kind == keys.KindFact: // the facts of unknown entries
			vs[i][2] = 8
			b.Put(k, vs[i])
			facts++
		case kind == keys.KindIndex && i%3 == 0:
			b.Delete(k)
			b.Put(append(keys.AppendIndexPath(nil, slot, 12345), k[keys.PrefixLen+8:]...), vs[i])
		}
	}
	if _, err := eng.Write(bg, &b, nil); err != nil || facts == 0 {
		t.Fatal(facts, err)
	}
	if e, err = core.Open(bg, notClosed{eng}, core.Options{}); err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if c, err = e.Container("db", "c"); err != nil {
		t.Fatal(err)
	}
	if got := ids(t, c, eqQuery("n", 3)); len(got) != items/20 {
		t.Errorf("%d rows at once", len(got))
	}
	if err := c.WaitIndex(bg); err != nil {
		t.Fatal(err)
	}
	clean(t, e)
	if got := ids(t, c, eqQuery("n", 3)); len(got) != items/20 {
		t.Errorf("%d rows", len(got))
	}
	if got := ids(t, c, &inOrder); len(got) != items {
		t.Errorf("%d rows in order", len(got))
	}
}

// The identity gets the current format before anything else is written in it. An interrupted upgrade continues without
// being requested again.
func TestUpgradeOfIdentity(t *testing.T) {
	dir := t.TempDir()
	open := func(o pebblekv.Options) (*core.Engine, error) {
		o.Relaxed, o.Scanned, o.Kept = true, core.OnlyScanned, core.GotSingly
		k, err := pebblekv.Open(dir, o)
		if err != nil {
			return nil, err
		}
		return core.Open(bg, k, core.Options{ReadOnly: o.ReadOnly})
	}
	e, err := open(pebblekv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := newContainer(t, e, core.ContainerSpec{})
	for i := range 200 {
		put(t, c, core.Create, agedDoc(i))
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	ageDir(t, dir)
	if _, err := open(pebblekv.Options{}); !errors.Is(err, pebblekv.ErrOlder) {
		t.Fatalf("opened without being asked to upgrade it: %v", err)
	}
	ro, err := open(pebblekv.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	clean(t, ro)
	if i := ro.Identity(); i.Format != 2 {
		t.Errorf("a reader sees %+v", i)
	}
	_ = ro.Close()
	if e, err = open(pebblekv.Options{Upgrade: true}); err != nil {
		t.Fatal(err)
	}
	if i := e.Identity(); i.Format != kv.Format {
		t.Errorf("the identity is %+v", i)
	}
	_ = e.Close() // at any point of the upgrade
	if e, err = open(pebblekv.Options{}); err != nil {
		t.Fatal(err)
	}
	upgraded(t, e)
	clean(t, e)
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
