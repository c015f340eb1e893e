package core_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
)

// TestLeastThroughputOf: the least throughput by the highest one ever, the storage, and the containers that share it.
func TestLeastThroughputOf(t *testing.T) {
	const gb = 1 << 30
	manual := func(n, ever int) core.Throughput { return core.Throughput{Manual: n, Highest: ever} }
	auto := func(n, ever int) core.Throughput { return core.Throughput{AutoscaleMax: n, Highest: ever} }
	for _, x := range []struct {
		t    core.Throughput
		held core.Held
		want int
	}{
		{manual(400, 0), core.Held{}, 400},
		{manual(400, 40_000), core.Held{}, 400},
		{manual(400, 40_100), core.Held{}, 500},
		{manual(100_000, 0), core.Held{}, 1000},
		{manual(400, 0), core.Held{Bytes: 400 * gb}, 400},
		{manual(400, 0), core.Held{Bytes: 400*gb + 1}, 500},
		{manual(400, 0), core.Held{Shared: 25}, 400},
		{manual(400, 0), core.Held{Shared: 26}, 500},
		{manual(400, 100_000), core.Held{Shared: 26, Bytes: 2000 * gb}, 2000},
		{auto(1000, 0), core.Held{}, 1000},
		{auto(4000, 20_000), core.Held{}, 2000},
		{auto(4000, 20_100), core.Held{}, 3000},
		{auto(20_000, 0), core.Held{Bytes: 1500 * gb}, 15_000},
		{auto(1000, 0), core.Held{Shared: 27}, 3000},
	} {
		if got := core.LeastThroughput(x.t, x.held); got != x.want {
			t.Errorf("%+v with %+v: %d RU/s, want %d", x.t, x.held, got, x.want)
		}
	}
	for _, x := range []struct {
		t    core.Throughput
		held core.Held
		want core.Throughput
	}{
		{manual(400, 0), core.Held{}, core.Throughput{AutoscaleMax: 1000}},
		{manual(10_000, 0), core.Held{Bytes: 25 * gb}, core.Throughput{AutoscaleMax: 10_000}},
		{manual(50_000, 0), core.Held{Bytes: 25_000 * gb}, core.Throughput{AutoscaleMax: 250_000}},
		{manual(1000, 100_000), core.Held{}, core.Throughput{AutoscaleMax: 10_000}},
		{auto(20_000, 0), core.Held{}, core.Throughput{Manual: 20_000}},
	} {
		if got := core.Migrated(x.t, x.held); got != x.want {
			t.Errorf("%+v with %+v becomes %+v, want %+v", x.t, x.held, got, x.want)
		}
	}
}

// idle asks whether the throughput of container "c" may be changed to 500 RU/s, as an API does that then changes it.
func idle(t *testing.T, e *core.Engine) (answer error) {
	t.Helper()
	refused := errors.New("not now")
	_, err := e.Redefine(bg, "db", "c", func(d core.Definition) (core.ContainerSpec, error) {
		if err := e.CheckIdle(bg, d, d.Spec().Throughput); err != nil {
			t.Errorf("the present throughput: %v", err)
		}
		answer = e.CheckIdle(bg, d, core.Throughput{Manual: 500})
		return core.ContainerSpec{}, refused
	})
	if !errors.Is(err, refused) {
		t.Fatal(err)
	}
	return answer
}

// A container is idle, except while its partitions are split for a throughput.
func TestCheckIdle(t *testing.T) {
	e, h := hooked(t, core.Options{})
	newContainer(t, e, core.ContainerSpec{Throughput: core.Throughput{Manual: 400}})
	if err := idle(t, e); err != nil {
		t.Error(err)
	}
	release := make(chan bool)
	var writes atomic.Int32
	h.set(func(h *hookSet) {
		h.pre = func(*kv.Batch) {
			if writes.Add(1) > 1 { // the first one is the throughput, the others are the split's
				<-release
			}
		}
	})
	raiseTo(t, e, "c", core.Throughput{Manual: 20_000})
	if err := idle(t, e); !status.Is(err, status.Locked) {
		t.Errorf("while partitions are split: %v", err)
	}
	close(release)
	resized(t, e, "c", 2)
	if err := idle(t, e); err != nil {
		t.Error(err)
	}
}
