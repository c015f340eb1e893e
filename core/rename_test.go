package core_test

import (
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
)

// TestRenameReplaces: a container that replaces another one keeps its items. None of the other's items remain, and no
// check finds leftovers.
func TestRenameReplaces(t *testing.T) {
	e, err := core.Open(bg, memkv.New(), core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	from, to := newContainer(t, e, core.ContainerSpec{ID: "from"}), newContainer(t, e, core.ContainerSpec{ID: "to"})
	put(t, from, core.Create, `{"id":"1","pk":"a"}`)
	put(t, to, core.Create, `{"id":"2","pk":"a"}`)
	put(t, to, core.Create, `{"id":"3","pk":"b"}`)
	if _, err := e.RenameContainer(bg, "db", "from", "to", false); !status.Is(err, status.Conflict) {
		t.Fatalf("a taken id: %v", err)
	}
	if counted(from) != 1 || counted(to) != 2 {
		t.Fatal("a refused rename has changed something")
	}
	c, err := e.RenameContainer(bg, "db", "from", "to", true)
	if err != nil || c.ID() != "to" || counted(c) != 1 || c.RID() != from.RID() {
		t.Fatalf("%v with %d items, %v", c.ID(), counted(c), err)
	}
	if _, err := e.Container("db", "from"); !status.Is(err, status.NotFound) {
		t.Errorf("the former name: %v", err)
	}
	if _, err := e.RenameContainer(bg, "db", "to", "to", true); err != nil {
		t.Errorf("to its own name: %v", err)
	}
	if _, err := e.RenameContainer(bg, "db", "to", "free", true); err != nil {
		t.Errorf("to a free name: %v", err)
	}
	if problems, err := e.Check(bg); err != nil || len(problems) > 0 {
		t.Errorf("check: %v, %v", problems, err)
	}
}
