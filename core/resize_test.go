package core_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
)

// resized waits until a container has a number of partitions and isn't being resized.
func resized(t testing.TB, e *core.Engine, id string, want int) {
	t.Helper()
	n := 0
	for begun := time.Now(); time.Since(begun) < 20*time.Second; time.Sleep(time.Millisecond) {
		c, err := e.Container("db", id)
		if err != nil {
			t.Fatal(err)
		}
		if n = len(partitionsOf(c)); n == want && !resizing(e, "db", id) {
			return
		}
	}
	t.Fatalf("%d partitions, resizing %v, want %d", n, resizing(e, "db", id), want)
}

// raiseTo changes the throughput of a container.
func raiseTo(t testing.TB, e *core.Engine, id string, to core.Throughput) {
	t.Helper()
	c, err := e.Container("db", id)
	if err != nil {
		t.Fatal(err)
	}
	spec := c.Spec().Clone()
	spec.Throughput = to
	if _, err := e.ReplaceContainer(bg, "db", id, spec); err != nil {
		t.Fatal(err)
	}
}

// More throughput than the partitions serve splits them, until there are ceil(T/t). Less throughput merges nothing.
func TestThroughputSplitsPartitions(t *testing.T) {
	e, _ := hooked(t, core.Options{})
	c := newContainer(t, e, core.ContainerSpec{Throughput: core.Throughput{Manual: 400}})
	putMany(t, c, 50, func(i int) string { return fmt.Sprintf(`{"id":"%d","pk":"p%d"}`, i, i) })
	for _, x := range []struct {
		to   core.Throughput
		want int
	}{
		{core.Throughput{Manual: 10000}, 1}, {core.Throughput{Manual: 10100}, 2}, {core.Throughput{Manual: 400}, 2},
		{core.Throughput{AutoscaleMax: 30000}, 3}, {core.Throughput{AutoscaleMax: 1000}, 3}, {core.Throughput{}, 3},
	} {
		raiseTo(t, e, "c", x.to)
		resized(t, e, "c", x.want)
	}
	if counted(c) != 50 {
		t.Errorf("%d items", counted(c))
	}
}

// A merge that would leave fewer partitions than the throughput needs is refused, and changes nothing. After the
// throughput was lowered it is done, and nothing undoes it: no other change of the container, and no restart.
func TestMergesLeaveWhatTheThroughputNeeds(t *testing.T) {
	raw := memkv.New()
	e, err := core.Open(bg, notClosed{raw}, core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := newContainer(t, e, core.ContainerSpec{Throughput: core.Throughput{Manual: 20_000}})
	putMany(t, c, 50, func(i int) string { return fmt.Sprintf(`{"id":"%d","pk":"p%d"}`, i, i) })
	if err := c.SplitPartition(bg, "0"); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		to      int    // the throughput
		merge   string // partition
		refused string
		want    int // partitions
	}{
		{20_000, "2", "", 2},
		{20_000, "4", "20000 RU/s need 2 physical partitions, and the container has 2. Lower its throughput first.", 2},
		{30_000, "", "", 3},
		{10_100, "5", "", 2},
		{10_000, "7", "", 1},
		{9000, "", "", 1},
	} {
		raiseTo(t, e, "c", core.Throughput{Manual: x.to})
		if x.merge == "" {
			resized(t, e, "c", x.want)
			continue
		}
		err := c.MergePartitions(bg, x.merge)
		if x.refused == "" && err != nil ||
			x.refused != "" && (!status.Is(err, status.BadRequest) || status.From(err).Msg != x.refused) {
			t.Errorf("partition %s at %d RU/s: %v", x.merge, x.to, err)
		}
		if n := len(partitionsOf(c)); n != x.want || resizing(e, "db", "c") {
			t.Errorf("%d partitions at %d RU/s, want %d; resizing: %v", n, x.to, x.want, resizing(e, "db", "c"))
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if e, err = core.Open(bg, raw, core.Options{}); err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	resized(t, e, "c", 1)
	clean(t, e)
}

// A container that has as many partitions as it can have isn't being resized, though its throughput needs more since
// the limit of a partition was lowered.
func TestFullContainersAreNotResized(t *testing.T) {
	raw := memkv.New()
	e, err := core.Open(bg, notClosed{raw}, core.Options{PartitionRU: 100})
	if err != nil {
		t.Fatal(err)
	}
	newContainer(t, e, core.ContainerSpec{Throughput: core.Throughput{Manual: 409_600}})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if e, err = core.Open(bg, raw, core.Options{PartitionRU: 50}); err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	resized(t, e, "c", 4096)
}

// A resize follows from the throughput and the partitions that there are: it begins, or goes on, when a store is opened
// in which they differ, also if no request uses the container.
func TestResizeGoesOnAfterAStart(t *testing.T) {
	raw := memkv.New()
	e, err := core.Open(bg, notClosed{raw}, core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	newContainer(t, e, core.ContainerSpec{Throughput: core.Throughput{Manual: 8000}})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if e, err = core.Open(bg, raw, core.Options{PartitionRU: 2000}); err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for begun := time.Now(); resizing(e, "db", "c"); time.Sleep(time.Millisecond) {
		if time.Since(begun) > 20*time.Second {
			t.Fatal("nothing is resized until a request opens the container")
		}
	}
	for st, err := range e.Stats(bg, "db") { // which opens no container
		if err != nil || len(st.Partitions) != 4 {
			t.Errorf("%d partitions, %v: not enough for four times the throughput of one", len(st.Partitions), err)
		}
	}
	resized(t, e, "c", 4)
	if resizing(e, "db", "none") {
		t.Error("a container that doesn't exist is being resized")
	}
	clean(t, e)
}

// A partition that reaches its storage limit is split between logical partitions, so that both parts have about half of
// the bytes. A partition with one logical partition isn't split, until it has another one.
func TestFullPartitionsAreSplit(t *testing.T) {
	t.Parallel()
	const limit = 40_000
	onEngines(t, core.Options{MinSlots: 1, MaxPartition: limit}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		one := newContainer(t, e, core.ContainerSpec{ID: "one"})
		pad := strings.Repeat("x", 1000)
		putMany(t, c, 150, func(i int) string { return fmt.Sprintf(`{"id":"%d","pk":"p%d","pad":%q}`, i, i%50, pad) })
		putMany(t, one, 150, func(i int) string { return fmt.Sprintf(`{"id":"%d","pk":"p","pad":%q}`, i, pad) })
		settled := func(c *core.Container) bool {
			for _, p := range partitionsOf(c) {
				if p.Bytes >= limit {
					return false
				}
			}
			return true
		}
		for begun := time.Now(); !settled(c); time.Sleep(time.Millisecond) {
			if time.Since(begun) > 20*time.Second {
				t.Fatalf("%+v", partitionsOf(c))
			}
		}
		parts := partitionsOf(c)
		if len(parts) < 4 || len(parts) > 16 {
			t.Errorf("%d partitions for four times the limit", len(parts))
		}
		for _, p := range parts {
			if p.Bytes < limit/8 {
				t.Errorf("partition %s has %d bytes only", p.ID, p.Bytes)
			}
		}
		if n := len(partitionsOf(one)); n != 1 || bytesOf(one) < limit {
			t.Errorf("%d partitions for one logical partition of %d bytes", n, bytesOf(one))
		}
		putMany(t, one, 20, func(i int) string { return fmt.Sprintf(`{"id":"%d","pk":"other","pad":%q}`, i, pad) })
		for begun := time.Now(); len(partitionsOf(one)) != 2; time.Sleep(time.Millisecond) {
			if time.Since(begun) > 20*time.Second {
				t.Fatalf("%+v", partitionsOf(one))
			}
		}
		if n := len(ids(t, c, &exec.Query{})) + len(ids(t, one, &exec.Query{})); n != 320 {
			t.Errorf("%d items", n)
		}
	})
}
