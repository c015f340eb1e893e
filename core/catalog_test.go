package core_test

import (
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
	"github.com/orrerydb/orrery/core/status"
)

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
