package core_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/value"
)

// overrun is the store of a process beside another one, which changes the catalog before each look.
type overrun struct {
	*kvtest.Process
	other   *core.Engine
	on      atomic.Bool
	mu      sync.Mutex
	changes int
}

func (o *overrun) Snapshot(ctx context.Context) (kv.Snapshot, error) {
	if o.on.Load() {
		o.mu.Lock()
		defer o.mu.Unlock()
		var err error
		if o.changes++; o.changes%2 == 0 {
			err = o.other.DropDatabase(bg, "other")
		} else {
			_, err = o.other.CreateDatabase(bg, core.DatabaseSpec{ID: "other"})
		}
		if err != nil {
			return nil, err
		}
	}
	return o.Process.Snapshot(ctx)
}

// Requests to a container go on, however often other containers and databases are changed.
func TestRequestsBesideOtherChanges(t *testing.T) {
	ps := startProcesses(t, 1, kvtest.Faults{})
	ps.containers(core.ContainerSpec{})
	o := &overrun{Process: ps.store.Engine(), other: ps.all[0]}
	c, err := opened(t, o, ps.options(0)).Container("db", "c")
	if err != nil {
		t.Fatal(err)
	}
	o.on.Store(true)
	defer o.on.Store(false)
	put(t, c, core.Create, `{"id":"x","pk":"a","n":1}`)
	put(t, c, core.Replace, `{"id":"x","pk":"a","n":2}`)
	if _, err := c.Read(bg, core.PartitionKey{value.StringOf("a")}, value.StringOf("x")); err != nil {
		t.Error(err)
	}
	if rows := ids(t, c, &exec.Query{}); len(rows) != 1 {
		t.Errorf("rows %v", rows)
	}
	if o.mu.Lock(); o.changes < 4 {
		t.Errorf("%d changes of the catalog", o.changes)
	}
	o.mu.Unlock()
}
