package catalog_test

import (
	"slices"
	"testing"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/status"
)

// Dropping a database is one commit of a few keys. Its entries are removed in steps of bounded size. If the process
// ends at any point, the next one opens the store and continues.
func TestDropOfADatabaseGoesByPieces(t *testing.T) {
	const n = 150
	eng := newCounting()
	c := filled(t, eng, n)
	createDatabase(t, c, "stays")
	create(t, c, "stays", spec("c"))
	damage(t, eng, name(99))
	for _, id := range []string{"u", "v"} {
		if _, err := c.CreateResource(bg, "db", catalog.Resource{Kind: keys.MetaUser, ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	eng.ops.Store(0)
	num, err := c.DropDatabase(bg, "db")
	if err != nil || eng.ops.Load() > 4 {
		t.Fatalf("the drop takes %d operations, %v", eng.ops.Load(), err)
	}
	createDatabase(t, c, "db") // its name is free
	create(t, c, "db", spec(name(0)))
	seen := 0
	for {
		again := open(t, eng) // as if the process had ended here
		if got := list(t, again, "db"); len(got) != 1 {
			t.Fatalf("the new database has %v", got)
		}
		if k, err := again.Container(bg, "stays", "c"); err != nil || k.ID != "c" {
			t.Fatal(err)
		}
		left, err := again.Left(bg)
		if err != nil || !slices.Equal(left.Databases, []uint32{num}) || len(left.Generations) > 0 {
			t.Fatalf("left is %v, %v", left, err)
		}
		eng.ops.Store(0)
		gens, err := again.ClearDropped(bg, num)
		if err != nil || len(gens) > 64 || eng.ops.Load() > 64*10 {
			t.Fatalf("%d generations, %d operations, %v", len(gens), eng.ops.Load(), err)
		}
		if len(gens) == 0 {
			break
		}
		seen += len(gens)
		if left, err = open(t, eng).Left(bg); err != nil || !slices.Equal(left.Generations, gens) {
			t.Fatalf("left is %v of %v, %v", left, gens, err)
		}
		if err := again.Removed(bg, gens); err != nil {
			t.Fatal(err)
		}
	}
	if seen != n-1 { // all except the damaged one
		t.Errorf("%d containers were removed, want %d", seen, n-1)
	}
	want := map[keys.MetaKind]int{keys.MetaAccount: 1, keys.MetaVersion: 1, keys.MetaDatabase: 2, keys.MetaContainer: 2}
	if got := metaKeys(t, eng); len(got) != len(want) {
		t.Errorf("the catalog has %v, want %v", got, want)
	}
}

// damage makes the entry of a container of db unreadable.
func damage(t testing.TB, eng kv.Engine, id string) {
	t.Helper()
	var b kv.Batch
	b.Put(keys.AppendMeta(nil, keys.MetaContainer, 0x10000001, id), []byte{9})
	b.Delete(keys.AppendMeta(nil, keys.MetaCounter, 100, ""))
	if _, err := eng.Write(bg, &b, nil); err != nil {
		t.Fatal(err)
	}
}

// A dropped container leaves a note until its data is removed.
func TestDropLeavesANote(t *testing.T) {
	eng := newCounting()
	c := filled(t, eng, 3)
	k, err := c.DropContainer(bg, "db", name(1))
	if err != nil {
		t.Fatal(err)
	}
	_, gone, err := c.RenameContainer(bg, "db", name(0), name(2), true)
	if err != nil {
		t.Fatal(err)
	}
	left, err := open(t, eng).Left(bg)
	want := []uint32{k.Gen, gone.Gen}
	if err != nil || !slices.Equal(left.Generations, want) {
		t.Fatalf("left is %v, %v; want %v", left, err, want)
	}
	if err := c.Removed(bg, want); err != nil {
		t.Fatal(err)
	}
	if left, err = c.Left(bg); err != nil || len(left.Generations) > 0 {
		t.Errorf("left is %v, %v", left, err)
	}
}

// A store from before versions, notes and fronts of entries existed is opened, recognized, and can be changed.
func TestStoreWithoutVersion(t *testing.T) {
	eng := newCounting()
	var b kv.Batch
	b.Put(keys.AppendMeta(nil, keys.MetaAccount, 0, ""), []byte("\x01"+`{"nextDb":268435458,"nextContainer":3,`+
		`"nextGen":3,"nextVersion":9}`))
	b.Put(keys.AppendMeta(nil, keys.MetaDatabase, 0, "db"), []byte("\x01"+`{"id":"db","num":268435457,"version":1,`+
		`"ts":5}`))
	for i, more := range []string{``, `"defaultTtl":7,"former":[{"version":1}],`} {
		id := string(rune('a' + i))
		n := string(rune('1' + i))
		b.Put(keys.AppendMeta(nil, keys.MetaContainer, 268435457, id),
			[]byte("\x01"+`{"id":"`+id+`","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},`+more+
				`"db":268435457,"num":214748364`+string(rune('9'-1+i))+`,"gen":`+n+`,"version2":`+n+
				`,"ts":6,"slots":[{"id":1}],"partitions":[{"id":0,"first":0}],"nextPartition":1,"nextSlot":2,"indexVersion":2}`))
	}
	if _, err := eng.Write(bg, &b, nil); err != nil {
		t.Fatal(err)
	}
	c := open(t, eng)
	if v := c.Version(); v != 0 {
		t.Errorf("its version is %d", v)
	}
	timed, former := 0, 0
	for range c.Timed(bg) {
		timed++
	}
	for range c.Rebuilding(bg) {
		former++
	}
	k, err := c.Container(bg, "db", "b")
	if err != nil || *k.DefaultTTL != 7 || k.Gen != 2 || timed != 1 || former != 1 {
		t.Fatalf("%+v, %v; %d with ttl, %d with former policies", k, err, timed, former)
	}
	if _, err := c.ReplaceContainer(bg, k, spec(""), catalog.InUse{}); err != nil {
		t.Fatal(err)
	}
	create(t, c, "db", spec("c"))
	again := open(t, eng)
	if again.Version() != 2 || len(list(t, again, "db")) != 3 {
		t.Errorf("version %d, %v", again.Version(), list(t, again, "db"))
	}
	k, err = again.Container(bg, "db", "b")
	if err != nil || k.DefaultTTL != nil || k.Gen != 2 || k.IndexVersion != 2 {
		t.Errorf("%+v, %v", k, err)
	}
}

// A repair doesn't save the entries of a dropped database. Without the note they belong to a database with a lost name.
func TestMendKnowsDroppedDatabases(t *testing.T) {
	eng := newCounting()
	c := filled(t, eng, 3)
	createDatabase(t, c, "stays")
	if _, err := c.DropDatabase(bg, "db"); err != nil {
		t.Fatal(err)
	}
	mended := newCounting()
	var b kv.Batch
	if err := catalog.Mend(entries(t, eng), &b, func(what string) { t.Error("lost:", what) }); err != nil {
		t.Fatal(err)
	}
	if _, err := mended.Write(bg, &b, nil); err != nil {
		t.Fatal(err)
	}
	m := open(t, mended)
	if got := m.Databases(); len(got) != 1 || got[0].ID != "stays" {
		t.Errorf("databases %v", got)
	}
	if _, err := m.Container(bg, "db", name(0)); !status.Is(err, status.NotFound) {
		t.Error(err)
	}
}

// entries returns all entries of a catalog.
func entries(t testing.TB, eng kv.Engine) (out []catalog.Entry) {
	t.Helper()
	snap := kvtest.Snapshot(t, eng)
	defer snap.Close()
	it, err := snap.Iter([]byte{0x10}, []byte{0x11})
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		out = append(out, catalog.Entry{Key: slices.Clone(it.Key()), Value: slices.Clone(it.Value())})
	}
	return out
}
