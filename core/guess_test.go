package core_test

import (
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/epk"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// What is read from a container that a name had before is an answer only while the name still has it.
func TestRecentContainers(t *testing.T) {
	ps := startProcesses(t, 2, network)
	newContainer(t, ps.all[0], core.ContainerSpec{})
	lookUp := func() *core.Container { return ps.container(0) }
	put(t, lookUp(), core.Create, `{"id":"i","pk":"p","n":1}`)
	recent := func() *core.Container { return ps.all[0].Within(bg).Recent("db", "c") }
	other := func() *core.Container { return ps.container(1) }
	for _, tc := range []struct {
		name string
		do   func() error // another process does this
	}{
		{"nothing", nil},
		{"another container is created", func() error {
			_, err := ps.all[1].CreateContainer(bg, "db", core.ContainerSpec{ID: "d",
				PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}})
			return err
		}},
		{"the slot is split", func() error { return other().SplitSlot(bg, epk.Split(epk.V2, 32)[3]) }},
		{"the container is renamed, and another one gets its name", func() error {
			if _, err := ps.all[1].RenameContainer(bg, "db", "c", "old", false); err != nil {
				return err
			}
			_, err := ps.all[1].RenameContainer(bg, "db", "d", "c", false)
			return err
		}},
		{"the container is dropped, and another one gets its name", func() error {
			if err := ps.all[1].DropContainer(bg, "db", "c"); err != nil {
				return err
			}
			newContainer(t, ps.all[1], core.ContainerSpec{})
			return nil
		}},
		{"the database is dropped", func() error { return ps.all[1].DropDatabase(bg, "db") }},
	} {
		read := func(c *core.Container, id string) (n int64, err error) {
			it, err := c.Read(bg, pk("p"), value.StringOf(id))
			if err == nil {
				n = it.LSN
			}
			return n, err
		}
		if tc.do != nil {
			if err := tc.do(); err != nil {
				t.Fatal(tc.name, err)
			}
			if c := recent(); c != nil {
				if n, err := read(c, "i"); c.Shown() {
					t.Errorf("%s: the name's old container has shown %d, %v", tc.name, n, err)
				}
			}
		}
		if _, err := ps.all[0].Container("db", "c"); err != nil {
			if !status.Is(err, status.NotFound) || recent() != nil {
				t.Errorf("%s: %v, and there is a recent container: %v", tc.name, err, recent() != nil)
			}
			continue
		}
		res := put(t, other(), core.Upsert, `{"id":"i","pk":"p","n":2}`)
		c := recent()
		if c == nil {
			t.Fatalf("%s: after a look-up there is no recent container", tc.name)
		}
		if c.Shown() {
			t.Errorf("%s: shown without a read", tc.name)
		}
		if n, err := read(c, "i"); n != res.LSN || err != nil || !c.Shown() {
			t.Errorf("%s: read LSN %d, %v, want %d; shown %v", tc.name, n, err, res.LSN, c.Shown())
		}
		if _, err := read(c, "none"); !status.Is(err, status.NotFound) || !c.Shown() {
			t.Errorf("%s: an absent item is %v, shown %v", tc.name, err, c.Shown())
		}
		if c.KnownLSN() < res.LSN {
			t.Errorf("%s: knows LSN %d, has read %d", tc.name, c.KnownLSN(), res.LSN)
		}
	}
}

// A container of which one read wasn't shown isn't shown again.
func TestOneReadIsNotShown(t *testing.T) {
	ps := startProcesses(t, 2, network)
	newContainer(t, ps.all[0], core.ContainerSpec{})
	put(t, ps.container(0), core.Create, `{"id":"i","pk":"p"}`)
	c := ps.all[0].Within(bg).Recent("db", "c")
	if _, err := c.Read(bg, pk("p"), value.StringOf("i")); err != nil || !c.Shown() {
		t.Fatal(err, c.Shown())
	}
	if _, err := c.Read(bg, core.PartitionKey{}, value.StringOf("i")); err == nil || c.Shown() {
		t.Error("a read with no key: ", err, c.Shown())
	}
	if _, err := c.Read(bg, pk("p"), value.StringOf("i")); err != nil || c.Shown() {
		t.Error("a good read after that: ", err, c.Shown())
	}
}

// Where no other process can change the catalog a look-up costs nothing, and there are no guesses.
func TestNoRecentContainersInALocalStore(t *testing.T) {
	e := opened(t, memkv.New(), core.Options{})
	c := newContainer(t, e, core.ContainerSpec{})
	if !c.Shown() || e.Within(bg).Recent("db", "c") != nil {
		t.Error("a local store guesses")
	}
}
