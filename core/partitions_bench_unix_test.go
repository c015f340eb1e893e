//go:build unix

package core_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
)

// partitionedItems is the number of items of 1 KB in the containers of BenchmarkPartitions.
const partitionedItems = 50000

// BenchmarkPartitions compares the same operations in containers with 1 and with 16 physical partitions. Judge by
// cpu-us/op, the process's CPU time, with runs in turn (-count).
func BenchmarkPartitions(b *testing.B) {
	for _, n := range []int{1, 16} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchPartitions(b, n) })
	}
}

// partitioned creates a container with a number of physical partitions and 1 KB items, 100 for each partition key.
func partitioned(b *testing.B, e *core.Engine, partitions, items int) *core.Container {
	b.Helper()
	c := newContainer(b, e, core.ContainerSpec{PartitionKey: core.PartitionKeyDef{Paths: []string{"/tenant"}},
		Throughput: core.Throughput{Manual: 10000 * partitions}})
	if len(partitionsOf(c)) != partitions {
		b.Fatalf("%d partitions", len(partitionsOf(c)))
	}
	for from := 0; from < items; from += 100 {
		ws := make([]core.Write, 100)
		for i := range ws {
			ws[i] = core.Write{Kind: core.Create, Doc: mustDoc(b, partitionedText(from+i))}
		}
		for _, o := range c.WriteMany(bg, ws, false) {
			if o.Err != nil {
				b.Fatal(o.Err)
			}
		}
	}
	return c
}

// partitionedText is an item whose customer nine others have too.
func partitionedText(i int) string {
	return strings.Replace(order(i), fmt.Sprintf(`"c%07d"`, i%1000),
		fmt.Sprintf(`"c%07d"`, i%(partitionedItems/10)), 1)
}

func benchPartitions(b *testing.B, n int) {
	e, _ := benchEngine(b, true)
	c := partitioned(b, e, n, partitionedItems)
	time.Sleep(time.Second) // let the engine's work after the load end
	r := rand.New(rand.NewPCG(1, 2))
	fresh := partitionedItems
	pick := func() int { return r.IntN(partitionedItems) }
	total := access.NewPath("total")
	equality := func(b *testing.B, q exec.Query) {
		v := value.StringOf(fmt.Sprintf("c%07d", pick()%(partitionedItems/10)))
		q.Pred = access.Eq(access.NewPath("customer"), v)
		q.Match = func(it *core.Item) (bool, error) { return value.EqualCosmos(doc.Get(it.Doc, "customer"), v), nil }
		growthQuery(b, c, 10, &q)
	}
	from := func() *access.Bound {
		return &access.Bound{Value: value.DoubleOf(float64(pick() % 900)), Inclusive: true}
	}
	for _, op := range []struct {
		name string
		do   func(b *testing.B)
	}{
		{"read", func(b *testing.B) {
			i := pick()
			_, err := c.Read(bg, pk(fmt.Sprintf("t%06d", i/100)), value.StringOf(fmt.Sprintf("o%08d", i)))
			if err != nil {
				b.Fatal(err)
			}
		}},
		{"insert", func(b *testing.B) {
			put(b, c, core.Create, partitionedText(fresh))
			fresh++
		}},
		{"replace", func(b *testing.B) {
			s := strings.Replace(partitionedText(pick()), `"p0":`, fmt.Sprintf(`"p0":%d`, r.IntN(9)+1), 1)
			put(b, c, core.Replace, s)
		}},
		{"equality", func(b *testing.B) { equality(b, exec.Query{}) }},
		{"equality-created", func(b *testing.B) { // as the NoSQL API asks, in the order of creation
			equality(b, exec.Query{Shown: exec.CreationByPartition, Page: 100})
		}},
		{"range-page", func(b *testing.B) {
			at := from()
			least := at.Value.Float()
			growthQuery(b, c, 100, &exec.Query{Pred: access.Range(total, at, nil), Page: 100, Limit: 100,
				Match: func(it *core.Item) (bool, error) { return doc.Get(it.Doc, "total").Float() >= least, nil }})
		}},
		{"order-page", func(b *testing.B) {
			growthQuery(b, c, 20, &exec.Query{Pred: access.Range(total, from(), nil), Page: 20, Limit: 20,
				OrderBy: []exec.Order{{Path: total}}, Compare: value.CompareCosmos})
		}},
		{"key-order-page", func(b *testing.B) { // of one logical partition
			growthQuery(b, c, 20, &exec.Query{PK: pk(fmt.Sprintf("t%06d", pick()/100)), Page: 20, Limit: 20,
				OrderBy: []exec.Order{{Path: total}}, Compare: value.CompareCosmos})
		}},
	} {
		b.Run(op.name, func(b *testing.B) {
			begin := cpuTime()
			for range b.N {
				op.do(b)
			}
			b.ReportMetric(float64((cpuTime()-begin).Nanoseconds())/1000/float64(b.N), "cpu-us/op")
		})
	}
}
