//go:build unix

package core_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
)

// BenchmarkGrowth compares the same operations in containers of 1,000 and of 100,000 items of 1 KB. Judge by cpu-us/op,
// the process's CPU time, because the engine's background work is part of an operation's cost.
func BenchmarkGrowth(b *testing.B) {
	for _, n := range []int{1000, 100000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchGrowth(b, n) })
	}
}

func benchGrowth(b *testing.B, n int) {
	e, _ := benchEngine(b, true)
	c := newContainer(b, e, core.ContainerSpec{PartitionKey: core.PartitionKeyDef{Paths: []string{"/tenant"}}})
	customers := n / 10
	text := func(i int) string {
		return strings.Replace(order(i), fmt.Sprintf(`"c%07d"`, i%1000), fmt.Sprintf(`"c%07d"`, i%customers), 1)
	}
	before := cpuTime()
	for i := range n {
		put(b, c, core.Create, text(i))
	}
	b.Logf("%d items loaded, %.1f cpu-us each", n, float64((cpuTime()-before).Microseconds())/float64(n))
	time.Sleep(time.Second) // let the engine's work after the load end
	r := rand.New(rand.NewPCG(1, 2))
	fresh := n
	pick := func() int { return r.IntN(n) }
	read := func(b *testing.B, i int) {
		if _, err := c.Read(bg, pk(fmt.Sprintf("t%06d", i/100)), value.StringOf(fmt.Sprintf("o%08d", i))); err != nil {
			b.Fatal(err)
		}
	}
	for range n { // a warm cache
		read(b, pick())
	}
	total := access.NewPath("total")
	for _, op := range []struct {
		name string
		do   func(b *testing.B)
	}{
		{"read", func(b *testing.B) { read(b, pick()) }},
		{"equality", func(b *testing.B) {
			v := value.StringOf(fmt.Sprintf("c%07d", pick()%customers))
			growthQuery(b, c, 10, &exec.Query{Pred: access.Eq(access.NewPath("customer"), v),
				Match: func(it *core.Item) (bool, error) {
					return value.EqualCosmos(doc.Get(it.Doc, "customer"), v), nil
				}})
		}},
		{"range", func(b *testing.B) {
			growthQuery(b, c, 20, &exec.Query{
				Pred: access.Range(total,
					&access.Bound{Value: value.DoubleOf(float64(pick() % 900)), Inclusive: true}, nil),
				OrderBy: []exec.Order{{Path: total}}, Compare: value.CompareCosmos, Limit: 20})
		}},
		{"replace", func(b *testing.B) {
			i := pick()
			s := strings.Replace(text(i), `"p0":`, fmt.Sprintf(`"p0":%d`, r.IntN(9)+1), 1)
			if _, err := c.Write(bg, core.Write{Kind: core.Replace, Doc: mustDoc(b, s)}); err != nil {
				b.Fatal(err)
			}
		}},
		{"insert", func(b *testing.B) {
			put(b, c, core.Create, text(fresh))
			fresh++
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

func growthQuery(b *testing.B, c *core.Container, rows int, q *exec.Query) {
	r, err := c.Query(bg, q)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	n := 0
	for n < rows && r.Next() {
		n++
	}
	if r.Err() != nil || n != rows {
		b.Fatalf("%d rows, %v", n, r.Err())
	}
}

// cpuTime returns the CPU time that the process has used so far, in all threads.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
