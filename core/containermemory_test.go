package core_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// A container in use takes at most 4 KB with its slot. What few containers need, such as queues of latches, is
// allocated on first use.
func TestMemoryOfAContainerInUse(t *testing.T) {
	const containers, most = 500, 3072
	raw := memkv.New()
	start := func() *core.Engine {
		e, err := core.Open(bg, &unclosedEngine{raw}, core.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close() })
		return e
	}
	e := start()
	for n := range containers {
		newContainer(t, e, core.ContainerSpec{ID: fmt.Sprint("c", n)})
	}
	e = start()
	used := make([]*core.Container, containers)
	before := heapNow()
	for n := range used {
		var err error
		if used[n], err = e.Container("db", fmt.Sprint("c", n)); err != nil {
			t.Fatal(err)
		}
	}
	if each := (heapNow() - before) / containers; each > most {
		t.Errorf("a container in use takes %.0f bytes", each)
	} else {
		t.Logf("a container in use takes %.0f bytes", each)
	}
	runtime.KeepAlive(used)
}
