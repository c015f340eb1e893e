package catalog_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/internal/race"
)

// Sizes of the catalogs that are compared.
const few, many = 100, 20_000

// allocated returns the average bytes and allocations of one call of f.
func allocated(f func()) (bytes, n float64) {
	const calls = 50
	var a, b runtime.MemStats
	runtime.ReadMemStats(&a)
	for range calls {
		f()
	}
	runtime.ReadMemStats(&b)
	return float64(b.TotalAlloc-a.TotalAlloc) / calls, float64(b.Mallocs-a.Mallocs) / calls
}

// A change costs the same with 20,000 containers as with 100: as many engine operations, and at most the nodes of one
// more level of the tables.
func TestChangesDontGrowWithContainers(t *testing.T) {
	race.Alone(t)
	changes := map[string]func(c *catalog.Catalog){
		"create and drop": func(c *catalog.Catalog) {
			create(t, c, "db", spec("new"))
			if _, err := c.DropContainer(bg, "db", "new"); err != nil {
				t.Fatal(err)
			}
		},
		"replace": func(c *catalog.Catalog) {
			k, err := c.Container(bg, "db", name(50))
			if err != nil {
				t.Fatal(err)
			}
			s := k.Spec
			s.Properties = map[string][]byte{"x": {byte(k.Version)}}
			if _, err := c.ReplaceContainer(bg, k, s, catalog.InUse{}); err != nil {
				t.Fatal(err)
			}
		},
		"rename": func(c *catalog.Catalog) {
			for _, way := range [][2]string{{name(51), "Renamed"}, {"Renamed", name(51)}} {
				if _, _, err := c.RenameContainer(bg, "db", way[0], way[1], false); err != nil {
					t.Fatal(err)
				}
			}
		},
		"database": func(c *catalog.Catalog) {
			createDatabase(t, c, "other")
			if _, err := c.DropDatabase(bg, "other"); err != nil {
				t.Fatal(err)
			}
		},
		"refused": func(c *catalog.Catalog) {
			if _, err := c.CreateContainer(bg, "db", spec(name(7)), firstHead); err == nil {
				t.Fatal("a name was given twice")
			}
		},
	}
	small, large := newCounting(), newCounting()
	a, b := filled(t, small, few), filled(t, large, many)
	for what, f := range changes {
		f(a) // now both have loaded what they change
		f(b)
		before := [2][4]int64{small.asked(), large.asked()}
		bytesFew, callsFew := allocated(func() { f(a) })
		bytesMany, callsMany := allocated(func() { f(b) })
		for i := range before[0] {
			if s, l := small.asked()[i]-before[0][i], large.asked()[i]-before[1][i]; s != l {
				t.Errorf("%s: number %d of what is asked of the engine is %d with few and %d with many", what, i, s, l)
			}
		}
		t.Logf("%s: %.0f bytes in %.0f with few, %.0f in %.0f with many", what, bytesFew, callsFew,
			bytesMany, callsMany)
		if bytesMany > 2*bytesFew+8<<10 || callsMany > 2*callsFew+20 {
			t.Errorf("%s: %.0f bytes in %.0f allocations with few containers, %.0f in %.0f with many",
				what, bytesFew, callsFew, bytesMany, callsMany)
		}
	}
}

// A look-up of a container in use allocates nothing and reads nothing from the engine.
func TestLookUpIsFree(t *testing.T) {
	eng := newCounting()
	c := filled(t, eng, few)
	k := create(t, c, "db", spec("People"))
	d, err := c.Database("db")
	if err != nil {
		t.Fatal(err)
	}
	before := eng.asked()
	for what, f := range map[string]func() error{
		"database":        func() error { _, err := c.Database("db"); return err },
		"database by rid": func() error { _, err := c.DatabaseByRID(d.RID()); return err },
		"name":            func() error { _, err := c.Container(bg, "db", "People"); return err },
		"name in fold":    func() error { _, err := c.ContainerFold(bg, "db", "People"); return err },
		"rid":             func() error { _, err := c.ContainerByRID(t.Context(), k.RID()); return err },
	} {
		var err error
		if n := testing.AllocsPerRun(100, func() { err = f() }); n > 0 || err != nil {
			t.Errorf("by %s: %v allocations, %v", what, n, err)
		}
	}
	if after := eng.asked(); after != before {
		t.Errorf("the engine was asked: %v, before %v", after, before)
	}
}

// At the start each entry is read once, and no definition is. An unused container takes at most 200 bytes, also after a
// walk over all containers.
func TestUnusedContainersAreSmall(t *testing.T) {
	race.Alone(t)
	eng := newCounting()
	filled(t, eng, many)
	used := func() float64 {
		for range 2 {
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	eng.seen.Store(0)
	before := used()
	c := open(t, eng)
	if n := eng.seen.Load(); n > many+10 || eng.gets.Load() > many*10 {
		t.Errorf("%d entries were read", n)
	}
	opened := used()
	n := 0
	for range c.Containers(t.Context(), "db", 0) {
		n++
	}
	listed := used()
	t.Logf("%.0f bytes a container after the start, %.0f after a list", (opened-before)/many, (listed-before)/many)
	if opened-before > 200*many || listed-before > 200*many || n != many {
		t.Errorf("%d containers take %.0f bytes each, %.0f after a list", n, (opened-before)/many, (listed-before)/many)
	}
	if _, err := c.Container(bg, "db", name(many-1)); err != nil {
		t.Error(err)
	}
	runtime.KeepAlive(c)
}

// Lists can begin at any place, and cost only what they return.
func TestPagesOfLists(t *testing.T) {
	eng := newCounting()
	filled(t, eng, few)
	c := open(t, eng)
	var nums []uint32
	for k := range c.Containers(t.Context(), "db", 0) {
		nums = append(nums, k.Num)
	}
	c = open(t, eng)
	eng.gets.Store(0)
	var got []string
	for k, err := range c.Containers(t.Context(), "db", nums[39]+1) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, k.ID); len(got) == 10 {
			break
		}
	}
	if got[0] != name(40) || got[9] != name(49) || eng.gets.Load() != 10 {
		t.Errorf("%v with %d reads", got, eng.gets.Load())
	}
	got = nil
	for n := range c.Names("db", name(90)+"x") {
		got = append(got, n.ID)
	}
	if len(got) != 9 || got[0] != name(91) || eng.gets.Load() != 10 {
		t.Errorf("names %v with %d reads", got, eng.gets.Load())
	}
	for k, err := range c.Containers(t.Context(), "db", nums[few-1]+1) {
		t.Errorf("behind the end there is %v, %v", k, err)
	}
	for n := range c.Names("none", "") {
		t.Errorf("a missing database has %v", n)
	}
}

// A look-up that ignores case finds names while others are created, dropped and renamed.
func TestFoldedNames(t *testing.T) {
	c := open(t, memkv.New())
	createDatabase(t, c, "db")
	folded := func(s string) catalog.Spec { x := spec(s); x.FoldID = true; return x }
	find := func(id, want string) {
		t.Helper()
		k, err := c.ContainerFold(bg, "db", id)
		if got := ""; err == nil && k.ID != want || err != nil && want != "" {
			if k != nil {
				got = k.ID
			}
			t.Errorf("%q finds %q, %v; want %q", id, got, err, want)
		}
	}
	create(t, c, "db", folded("People"))
	find("people", "People")
	find("PEOPLE", "People")
	for _, s := range []catalog.Spec{folded("people"), spec("pEOPLE"), spec("people")} {
		if _, err := c.CreateContainer(bg, "db", s, firstHead); err == nil {
			t.Errorf("%q was made beside People", s.ID)
		}
	}
	if _, _, err := c.RenameContainer(bg, "db", "People", "people", false); err != nil {
		t.Fatal(err)
	}
	find("People", "people")
	create(t, c, "db", spec("Ab"))
	create(t, c, "db", spec("aB"))
	create(t, c, "db", spec("ab"))
	find("AB", "") // ambiguous: none of the three
	find("aB", "aB")
	if _, err := c.CreateContainer(bg, "db", folded("AB"), firstHead); err == nil {
		t.Error("AB folds and was made beside three others")
	}
	for _, id := range []string{"ab", "Ab"} {
		if _, err := c.DropContainer(bg, "db", id); err != nil {
			t.Fatal(err)
		}
	}
	find("AB", "aB")
	find("ab", "aB")
}

// Containers are found by their generations without their definitions.
func TestCalledReadsNoDefinition(t *testing.T) {
	store := &kvtest.Mute{Engine: memkv.New()}
	filled(t, store, 20)
	c, err := catalog.Open(store, clock.New(), catalog.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	was := store.Asked.Load()
	names := c.Called(map[uint32]bool{3: true, 5: true, 1000: true})
	if read := store.Asked.Load() - was; read > 0 || len(names) != 2 {
		t.Errorf("%v, %d reads", names, read)
	}
	for gen, name := range names {
		k, err := c.Container(bg, "db", strings.TrimPrefix(name, "db/"))
		if err != nil || k.Gen != gen {
			t.Errorf("%s has generation %d: %+v, %v", name, gen, k, err)
		}
	}
}
