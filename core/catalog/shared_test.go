package catalog_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
)

// Two processes use one store. If one decides on an old catalog, the store refuses the change, and it decides again; a
// refusal is decided again too. Reading the version shows each process what the other has done.
func TestTwoCatalogs(t *testing.T) {
	eng := newCounting()
	a, b := open(t, eng), open(t, eng)
	createDatabase(t, a, "db")
	k := create(t, b, "db", spec("one")) // b doesn't know db yet: it decides again
	if n := eng.conflicts.Load(); n != 0 {
		t.Errorf("%d commits were refused", n)
	}
	if _, err := a.Container(bg, "db", "one"); !status.Is(err, status.NotFound) {
		t.Errorf("before the look: %v", err)
	}
	two := create(t, a, "db", spec("two")) // a doesn't know any container yet
	if n := eng.conflicts.Load(); n != 1 {
		t.Errorf("%d commits of a were refused, want 1", n)
	}
	if two.Num == k.Num || two.Gen == k.Gen || two.Version == k.Version {
		t.Errorf("numbers were given twice: %+v and %+v", k, two)
	}
	if _, err := a.Container(bg, "db", "one"); err != nil {
		t.Errorf("after it a knows what b made: %v", err)
	}
	if _, err := b.CreateContainer(bg, "db", spec("two"), firstHead); !status.Is(err, status.Conflict) {
		t.Errorf("b made two again: %v", err)
	}
	if changed, err := b.Refresh(bg); changed || err != nil { // the refusal has already refreshed it
		t.Errorf("b is old: %v, %v", changed, err)
	}
	if _, _, err := a.RenameContainer(bg, "db", "one", "three", false); err != nil {
		t.Fatal(err)
	}
	s := spec("")
	s.Properties = map[string][]byte{"x": {1}}
	if _, err := b.ReplaceContainer(bg, k, s, catalog.InUse{}); !status.Is(err, status.NotFound) {
		t.Errorf("b replaced a container of an old name: %v", err)
	}
	three, err := b.Container(bg, "db", "three")
	if err == nil {
		_, err = b.ReplaceContainer(bg, three, s, catalog.InUse{})
	}
	if err != nil {
		t.Error(err)
	}
	if _, err := b.ReplaceContainer(bg, three, s, catalog.InUse{}); err != catalog.ErrRedefined {
		t.Errorf("b replaced a definition that is no longer the present one: %v", err)
	}
	if a.Version() == b.Version() {
		t.Error("a can't tell that it is old")
	}
	for range 2 {
		eng.gets.Store(0)
		changed, err := a.Refresh(bg)
		if err != nil || a.Version() != b.Version() {
			t.Errorf("a looks: %v, %v", changed, err)
		}
	}
	if n := eng.gets.Load(); n != 1 {
		t.Errorf("a look that finds nothing reads %d keys", n)
	}
	if got, err := a.Container(bg, "db", "three"); err != nil || len(got.Properties) != 1 {
		t.Errorf("a sees %+v, %v", got, err)
	}
	if _, err := a.DropContainer(bg, "db", "two"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.DropContainer(bg, "db", "two"); !status.Is(err, status.NotFound) {
		t.Errorf("b drops it again: %v", err)
	}
	r, err := a.CreateResource(bg, "db", catalog.Resource{Kind: keys.MetaUser, ID: "u"})
	if err != nil {
		t.Fatal(err)
	}
	if p, err := b.CreateResource(bg, "db", catalog.Resource{Kind: keys.MetaPermission, Parent: r.Num, ID: "p"}); err !=
		nil || p.Num == r.Num {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := b.DropDatabase(bg, "db"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.CreateContainer(bg, "db", spec("late"), firstHead); !status.Is(err, status.NotFound) {
		t.Errorf("a made a container in a dropped database: %v", err)
	}
}

// Three processes make many changes at once: no change is lost, and no number is assigned twice.
func TestManyCatalogs(t *testing.T) {
	eng := newCounting()
	const each = 40
	cats := []*catalog.Catalog{open(t, eng), open(t, eng), open(t, eng)}
	createDatabase(t, cats[0], "db")
	var wg sync.WaitGroup
	won := make([]int, len(cats))
	for i, c := range cats {
		wg.Go(func() {
			for n := range each {
				if _, err := c.CreateContainer(bg, "db", spec(fmt.Sprintf("own-%d-%d", i, n)), firstHead); err != nil {
					t.Error(err)
				}
				switch _, err := c.CreateContainer(bg, "db", spec(fmt.Sprintf("all-%d", n)), firstHead); {
				case err == nil:
					won[i]++
				case !status.Is(err, status.Conflict):
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := won[0] + won[1] + won[2]; n != each {
		t.Errorf("%d names that all wanted were given, want %d", n, each)
	}
	want := list(t, open(t, eng), "db")
	if len(want) != (len(cats)+1)*each {
		t.Errorf("%d containers are there", len(want))
	}
	nums, gens := map[uint32]bool{}, map[uint32]bool{}
	for k := range cats[0].Containers(t.Context(), "db", 0) {
		nums[k.Num], gens[k.Gen] = true, true
	}
	for i, c := range cats {
		if _, err := c.Refresh(bg); err != nil {
			t.Fatal(err)
		}
		if got := list(t, c, "db"); !slices.Equal(got, want) {
			t.Errorf("process %d sees %d containers, there are %d", i, len(got), len(want))
		}
	}
	for k := range cats[0].Containers(t.Context(), "db", 0) {
		nums[k.Num], gens[k.Gen] = true, true
	}
	if len(nums) != len(want) || len(gens) != len(want) {
		t.Errorf("%d numbers and %d generations of %d containers", len(nums), len(gens), len(want))
	}
	if eng.conflicts.Load() == 0 {
		t.Log("no change met another one")
	}
}

// Requests that find the catalog changed at the same time wait for one of them to read it, and don't ask the store one
// after the other then.
func TestCrowdReadsTheCatalogOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := kvtest.NewShared(memkv.New(), 1)
		a, b := open(t, store.Engine()), open(t, store.Engine())
		took := map[int]time.Duration{}
		for _, n := range []int{1, 64} {
			createDatabase(t, a, fmt.Sprint("db", n))
			store.SetFaults(kvtest.Faults{Least: time.Millisecond, Most: time.Millisecond})
			begun := time.Now()
			var crowd sync.WaitGroup
			for range n {
				crowd.Go(func() {
					if changed, err := b.Refresh(bg); err != nil || !changed {
						t.Errorf("%v, %v", changed, err)
					}
				})
			}
			crowd.Wait()
			took[n] = time.Since(begun)
			store.SetFaults(kvtest.Faults{})
			if b.Version() != a.Version() {
				t.Errorf("version %d, the newest is %d", b.Version(), a.Version())
			}
		}
		if took[64] > took[1] {
			t.Errorf("64 requests took %v, one takes %v", took[64], took[1])
		}
	})
}

// When the catalog is read again, unchanged definitions stay in memory.
func TestRefreshKeepsDefinitions(t *testing.T) {
	eng := newCounting()
	a := filled(t, eng, few)
	b := open(t, eng)
	before, err := b.Container(bg, "db", name(3))
	if err != nil {
		t.Fatal(err)
	}
	create(t, a, "db", spec("more"))
	if changed, err := b.Refresh(bg); err != nil || !changed {
		t.Fatal(changed, err)
	}
	if after, err := b.Container(bg, "db", name(3)); err != nil || after != before {
		t.Errorf("%v, %v", after, err)
	}
}

// If one process owns the store, no commit is ever refused.
func TestOneCatalogIsNeverRefused(t *testing.T) {
	eng := newCounting()
	c := open(t, eng)
	createDatabase(t, c, "db")
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 50 {
				id := fmt.Sprintf("%d-%d", i, n)
				create(t, c, "db", spec(id))
				if n%3 == 0 {
					if _, err := c.DropContainer(bg, "db", id); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	if n := eng.conflicts.Load(); n > 0 {
		t.Errorf("%d commits were refused", n)
	}
	if v := c.Version(); v != 1+4*50+4*17 {
		t.Errorf("the version is %d", v)
	}
}

// A reader sees each change of the catalog completely or not at all, also for definitions that were never read before.
func TestReadersMeetChanges(t *testing.T) {
	const n = 30
	eng := newCounting()
	filled(t, eng, n)
	for range 4 {
		c := open(t, eng) // no definition is in memory
		var done atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			defer done.Store(true)
			for i := range n {
				for _, way := range [][2]string{{name(i), "Other"}, {"Other", name(i)}} {
					if _, _, err := c.RenameContainer(bg, "db", way[0], way[1], false); err != nil {
						t.Error(err)
					}
				}
				k, err := c.Container(bg, "db", name(i))
				if err == nil {
					s := k.Spec
					s.Properties = map[string][]byte{"i": {byte(i)}}
					_, err = c.ReplaceContainer(bg, k, s, catalog.InUse{})
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for !done.Load() {
				seen := 0
				for range c.Names("db", "") {
					seen++
				}
				if seen != n {
					t.Errorf("%d names", seen)
				}
			}
		})
		wg.Go(func() {
			last := map[uint32]uint64{}
			for !done.Load() {
				seen := 0
				for k, err := range c.Containers(t.Context(), "db", 0) {
					if err != nil {
						t.Error(err)
						return
					}
					if k.Version < last[k.Num] {
						t.Errorf("%s is of version %d after %d", k.ID, k.Version, last[k.Num])
					}
					last[k.Num] = k.Version
					seen++
				}
				if seen != n {
					t.Errorf("%d containers", seen)
				}
			}
		})
		wg.Go(func() {
			for i := 0; !done.Load(); i++ {
				id := name(i % n)
				if k, err := c.Container(bg, "db", id); err == nil && k.ID != id || err != nil &&
					!status.Is(err, status.NotFound) {
					t.Errorf("%v, %v", k, err)
				}
				if k, err := c.ContainerFold(bg, "db", "OTHER"); err == nil && k.ID != "Other" || err != nil &&
					!status.Is(err, status.NotFound) {
					t.Errorf("%v, %v", k, err)
				}
			}
		})
		wg.Wait()
	}
}

// met is an engine in which a change comes between a reader's look for a container's name and its read of the entry.
type met struct {
	kv.Engine
	change func()
}

func (e *met) Get(ctx context.Context, dst, key []byte) ([]byte, error) {
	if change := e.change; change != nil {
		e.change = nil
		change()
	}
	return e.Engine.Get(ctx, dst, key)
}

// A name that has a container at every moment has one for every reader, whichever container takes it over.
func TestReadersMeetAReplacement(t *testing.T) {
	for _, other := range []string{name(0), name(2)} { // an older container, and a newer one
		eng := newCounting()
		filled(t, eng, 3)
		e := &met{Engine: eng}
		c := open(t, e) // no definition is in memory
		e.change = func() {
			if _, _, err := c.RenameContainer(bg, "db", other, name(1), true); err != nil {
				t.Error(err)
			}
		}
		if k, err := c.Container(bg, "db", name(1)); err != nil || k.ID != name(1) {
			t.Errorf("%s takes the name over: %v", other, err)
		}
		if k, err := c.Container(bg, "db", name(1)); err != nil || k.ID != name(1) {
			t.Errorf("after %s has taken the name over: %v", other, err)
		}
	}
}

// Another process changes the catalog whenever a change is decided. A change that has lost twice makes it wait.
func TestChangeBesideAFasterProcess(t *testing.T) {
	store := kvtest.NewShared(memkv.New(), 1)
	a, b := open(t, store.Engine()), open(t, store.Engine())
	createDatabase(t, a, "db")
	k := create(t, a, "db", spec("c"))
	if _, err := b.Refresh(bg); err != nil {
		t.Fatal(err)
	}
	tries := 0
	var others sync.WaitGroup
	def, err := b.ChangeSpec(bg, "db", "c", k.Gen, catalog.InUse{}, nil, func(s *catalog.Spec) error {
		tries++
		done, name := make(chan struct{}), fmt.Sprint("other", tries)
		others.Go(func() {
			defer close(done)
			createDatabase(t, a, name)
		})
		select {
		case <-done:
		case <-time.After(20 * time.Millisecond):
		}
		s.LogMinutes = 60
		return nil
	})
	others.Wait()
	if err != nil || def.LogMinutes != 60 || tries != 3 {
		t.Errorf("%v after %d tries", err, tries)
	}
	if _, err := b.Refresh(bg); err != nil || len(b.Databases()) != 1+tries {
		t.Errorf("%d databases after %d tries (%v)", len(b.Databases()), tries, err)
	}
}
