package server

import (
	"context"
	"fmt"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// TestStatusListsSomeContainers: with very many containers the status lists the first ones and the number of all
// others. It opens none of them.
func TestStatusListsSomeContainers(t *testing.T) {
	raw := memkv.New()
	open := func() *core.Engine {
		e, err := core.Open(context.Background(), &lasting{raw}, core.Options{MinSlots: 1})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	e := open()
	if _, err := e.EnsureDatabase(context.Background(), "db"); err != nil {
		t.Fatal(err)
	}
	for i := range listed + 5 {
		spec := core.ContainerSpec{ID: fmt.Sprint("c", i), PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}}
		if _, err := e.CreateContainer(context.Background(), "db", spec); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = open()
	defer e.Close()
	got, more, err := containersOf(context.Background(), e)
	if err != nil || len(got) != listed || more != 5 || got[0].Container != "c0" || len(got[0].Partitions) != 1 {
		t.Errorf("%d containers and %d more, %v", len(got), more, err)
	}
	if n := e.OpenContainers(); n != 0 {
		t.Errorf("%d containers were opened", n)
	}
}

// lasting is an engine that isn't closed when its user is closed.
type lasting struct{ kv.Engine }

func (lasting) Close() error { return nil }
