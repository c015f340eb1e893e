package catalog_test

import (
	"cmp"
	"fmt"
	"math"
	"testing"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
)

// TestPartitionsFor: a container is created with ceil(T/t) physical partitions, or with one if it has no partition key.
// A throughput that would need more partitions than a container may have is refused, and the error says which is the
// most.
func TestPartitionsFor(t *testing.T) {
	auto := func(n int) catalog.Throughput { return catalog.Throughput{AutoscaleMax: n} }
	manual := func(n int) catalog.Throughput { return catalog.Throughput{Manual: n} }
	for _, x := range []struct {
		limit int
		of    catalog.Throughput
		want  int // 0: refused
	}{
		{0, catalog.Throughput{}, 1}, {0, manual(400), 1}, {0, manual(10000), 1}, {0, manual(10001), 2},
		{0, manual(20000), 2}, {0, auto(20000), 2}, {0, manual(25100), 3}, {0, manual(1000000), 100},
		{6000, manual(30000), 5}, {6000, auto(30100), 6}, {100, manual(1000), 10},
		{100, manual(409600), 4096}, {100, manual(409601), 0}, {0, manual(math.MaxInt), 0}, {0, manual(-1), 0},
		{0, auto(-1), 0}, {244, manual(1000000), 0}, {245, manual(1000000), 4082},
	} {
		c, err := catalog.Open(memkv.New(), clock.New(), catalog.Settings{PartitionRU: x.limit, MinSlots: 1})
		if err != nil {
			t.Fatal(err)
		}
		createDatabase(t, c, "db")
		s := spec("c")
		s.Throughput = x.of
		k, err := c.CreateContainer(bg, "db", s, firstHead)
		if x.want == 0 {
			want := "A throughput can't be below 0."
			if x.of.Max() > 0 {
				want = fmt.Sprintf("The throughput is at most %d RU/s: 4096 physical partitions, which serve %d RU/s "+
					"each (--partition-ru).", 4096*cmp.Or(x.limit, 10000), cmp.Or(x.limit, 10000))
			}
			if !status.Is(err, status.BadRequest) || status.From(err).Msg != want {
				t.Errorf("%+v at %d: %v, want %s", x.of, x.limit, err, want)
			}
			continue
		}
		if err != nil || len(k.Partitions) != x.want || c.PartitionsFor(&s) != x.want {
			t.Errorf("%+v at %d: %v, %d partitions for %d, want %d", x.of, x.limit, err, len(k.Partitions),
				c.PartitionsFor(&s), x.want)
		}
		s.ID, s.PartitionKey.SystemKey = "fixed", true
		if k, err = c.CreateContainer(bg, "db", s, firstHead); err != nil || len(k.Partitions) != 1 ||
			c.PartitionsFor(&s) != 1 {
			t.Errorf("%+v at %d, without a partition key: %v, %d partitions for %d", x.of, x.limit, err,
				len(k.Partitions), c.PartitionsFor(&s))
		}
	}
}

// TestSmallerPartitionLimit: a store opens with a smaller limit of a partition than it was written with. Its containers
// can be changed as before, also those whose throughput would be refused now. A new throughput must be within the
// limit.
func TestSmallerPartitionLimit(t *testing.T) {
	eng := memkv.New()
	c := open(t, eng)
	createDatabase(t, c, "db")
	s := spec("c")
	s.Throughput.Manual = 1000000
	create(t, c, "db", s)
	c, err := catalog.Open(eng, clock.New(), catalog.Settings{PartitionRU: 100})
	if err != nil {
		t.Fatal(err)
	}
	k, err := c.Container(bg, "db", "c")
	if err != nil {
		t.Fatal(err)
	}
	s.Properties = map[string][]byte{"a": []byte("b")}
	if k, err = c.ReplaceContainer(bg, k, s, catalog.InUse{}); err != nil {
		t.Fatal(err)
	}
	s.Throughput.Manual = 999900
	if _, err = c.ReplaceContainer(bg, k, s, catalog.InUse{}); !status.Is(err, status.BadRequest) {
		t.Errorf("more partitions than a container may have: %v", err)
	}
}
