//go:build unix

package server

import (
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/epk"
)

// splitMB names the variable with the size of the slot that BenchmarkSplitUnderLoad splits, in MB.
const splitMB = "ORRERY_SPLIT_MB"

// splitReplaces names the variable that has all clients of BenchmarkSplitUnderLoad replace.
const splitReplaces = "ORRERY_SPLIT_REPLACES"

const (
	splitClients = 16
	splitBeside  = 4 * time.Second // of load before the split, and as much after it
)

// BenchmarkSplitUnderLoad splits a slot of a durable store while 16 clients send requests over loopback connections.
// Half of them read and half replace items; of both, half do it in the slot that is split and half in another
// container. It reports how long the split takes. It compares the requests in that time with those before and after it:
// their rate (rate-%), their number for each second of CPU time (cpu-rate-%), and their 99th percentile (x-p99). It
// also reports the longest one. On a machine with other work cpu-rate-% is what the split leaves to requests. The log
// has the same by kind of client.
//
// ORRERY_SPLIT_MB is the size of the slot in MB, 64 by default. One run per size: -benchtime 1x. With
// ORRERY_SPLIT_REPLACES all clients replace.
func BenchmarkSplitUnderLoad(b *testing.B) {
	mb := 64
	if s := os.Getenv(splitMB); s != "" {
		var err error
		if mb, err = strconv.Atoi(s); err != nil {
			b.Fatal(splitMB, err)
		}
	}
	cfg := Ephemeral()
	cfg.Memory, cfg.Data, cfg.Strict, cfg.MinSlots = false, b.TempDir(), nil, 1
	cfg.MongoAddr, cfg.GremlinAddr, cfg.TableAddr = Off, Off, Off
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	s, err := Start(cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { stop(b, s, 30*time.Second) })
	if err := s.WaitReady(b.Context()); err != nil {
		b.Fatal(err)
	}
	if err := s.nosql(b.Context(), "POST", "dbs", "", nil, []byte(`{"id":"db"}`)); err != nil {
		b.Fatal(err)
	}
	load := splitLoad{b: b, s: s, sizes: map[string]int{"split": mb << 10, "other": 10_000}}
	for name, n := range load.sizes {
		load.fill(name, n)
	}
	time.Sleep(3 * time.Second) // let the store's work after the load end
	for range b.N {
		load.run()
	}
}

// splitLoad is the clients of one benchmark.
type splitLoad struct {
	b     *testing.B
	s     *Server
	sizes map[string]int // number of items of about 1 KB, by container

	splitting atomic.Bool
	stop      atomic.Bool
}

// splitKey is the partition key of item i.
func splitKey(i int) string { return fmt.Sprint("t", i/100) }

// fill creates a container with one slot and items.
func (l *splitLoad) fill(name string, n int) {
	body := fmt.Sprintf(`{"id":%q,"partitionKey":{"paths":["/tenant"],"kind":"Hash","version":2}}`, name)
	if err := l.s.nosql(l.b.Context(), "POST", "colls", "dbs/db", nil, []byte(body)); err != nil {
		l.b.Fatal(err)
	}
	c := l.container(name)
	var next atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for {
				from := int(next.Add(100)) - 100
				if from >= n {
					return
				}
				var ws []core.Write
				for i := from; i < min(from+100, n); i++ {
					d, err := doc.FromJSON(nil, []byte(benchOrder(i, splitKey(i))), doc.JSONOptions{Names: doc.NoSQL})
					if err != nil {
						l.b.Error(err)
						return
					}
					ws = append(ws, core.Write{Kind: core.Create, Doc: d})
				}
				for _, o := range c.WriteMany(l.b.Context(), ws, false) {
					if o.Err != nil {
						l.b.Error(o.Err)
						return
					}
				}
			}
		})
	}
	all.Wait()
	if l.b.Failed() {
		l.b.FailNow()
	}
}

func (l *splitLoad) container(name string) *core.Container {
	c, err := l.s.Engine().Container("db", name)
	if err != nil {
		l.b.Fatal(err)
	}
	return c
}

// took has the durations of requests without a split and during it.
type took [2][]time.Duration

// used is a time and the CPU time of the process in it.
type used struct{ wall, cpu time.Duration }

// measure calls f.
func (u *used) measure(f func()) {
	begun, cpu := time.Now(), processTime()
	f()
	u.wall += time.Since(begun)
	u.cpu += processTime() - cpu
}

// run makes one split under load.
func (l *splitLoad) run() {
	c := l.container("split")
	at := epk.Split(epk.V2, 2)[0]
	if parts, err := c.Partitions(l.b.Context()); err != nil || len(parts) != 1 {
		l.b.Fatal("the container has been split", err)
	}
	l.stop.Store(false)
	l.splitting.Store(false)
	kinds := []string{"read split", "replace split", "read other", "replace other"}
	if os.Getenv(splitReplaces) != "" {
		kinds = []string{"replace split", "replace other"}
	}
	times := make([]took, splitClients)
	var clients sync.WaitGroup
	for i := range splitClients {
		do, name, _ := strings.Cut(kinds[i%len(kinds)], " ")
		send := l.client(uint64(i), do, name)
		clients.Go(func() {
			for !l.stop.Load() {
				phase := 0
				if l.splitting.Load() {
					phase = 1
				}
				begun := time.Now()
				send()
				times[i][phase] = append(times[i][phase], time.Since(begun))
			}
		})
	}
	var uses [2]used
	uses[0].measure(func() { time.Sleep(splitBeside) })
	l.splitting.Store(true)
	uses[1].measure(func() {
		if err := c.SplitSlot(l.b.Context(), at); err != nil {
			l.b.Fatal(err)
		}
	})
	l.splitting.Store(false)
	uses[0].measure(func() { time.Sleep(splitBeside) })
	l.stop.Store(true)
	clients.Wait()
	if err := c.JoinSlots(l.b.Context(), at); err != nil { // for the next run
		l.b.Fatal(err)
	}
	var seconds, cpu [2]float64
	for phase, u := range uses {
		seconds[phase], cpu[phase] = u.wall.Seconds(), u.cpu.Seconds()
	}
	var all took
	for k, kind := range kinds {
		var of took
		for i := k; i < splitClients; i += len(kinds) {
			for phase := range of {
				of[phase] = append(of[phase], times[i][phase]...)
				all[phase] = append(all[phase], times[i][phase]...)
			}
		}
		l.b.Logf("%-14s %s", kind, of.text(seconds))
	}
	l.b.Logf("%-14s %s", "all", all.text(seconds))
	l.b.ReportMetric(seconds[1], "split-s")
	l.b.Logf("CPU per second: without %.2f s, during %.2f s", cpu[0]/seconds[0], cpu[1]/seconds[1])
	l.b.ReportMetric(100*all.rate(1, seconds)/all.rate(0, seconds), "rate-%")
	l.b.ReportMetric(100*all.rate(1, cpu)/all.rate(0, cpu), "cpu-rate-%")
	l.b.ReportMetric(float64(all.at(1, 0.99))/float64(all.at(0, 0.99)), "x-p99")
	l.b.ReportMetric(float64(all.at(1, 1).Microseconds())/1000, "max-ms")
}

func (t *took) rate(phase int, seconds [2]float64) float64 {
	return float64(len(t[phase])) / seconds[phase]
}

// at returns a quantile.
func (t *took) at(phase int, q float64) time.Duration {
	d := t[phase]
	slices.Sort(d)
	return d[min(int(q*float64(len(d))), len(d)-1)]
}

func (t *took) text(seconds [2]float64) (s string) {
	for phase, when := range []string{"without", "during"} {
		s += fmt.Sprintf("%s: %6.0f/s p50 %5d µs p99 %6d µs max %7d µs  ", when, t.rate(phase, seconds),
			t.at(phase, 0.5).Microseconds(), t.at(phase, 0.99).Microseconds(), t.at(phase, 1).Microseconds())
	}
	return s
}

// splitTexts is the number of items that a client uses.
const splitTexts = 2000

// client returns a function that sends a request about a random item of a container.
func (l *splitLoad) client(seed uint64, do, name string) (send func()) {
	r := rand.New(rand.NewPCG(seed, 1))
	c := dialBench(l.b, l.s.Addr(NoSQL))
	coll := "dbs/db/colls/" + name
	method := map[string]string{"read": "GET", "replace": "PUT"}[do]
	ids, heads := make([]int, splitTexts), make([][]byte, splitTexts)
	for i := range ids {
		ids[i] = r.IntN(l.sizes[name])
		link := fmt.Sprintf("%s/docs/o%d", coll, ids[i])
		heads[i] = l.s.benchHead(method, "/"+link, link,
			fmt.Sprintf("x-ms-documentdb-partitionkey: [%q]\r\n", splitKey(ids[i])))
	}
	n := 0
	return func() {
		i := r.IntN(splitTexts)
		var body []byte
		if do == "replace" {
			n++
			text := benchOrder(ids[i], splitKey(ids[i]))
			body = []byte(strings.Replace(text, `"total":`, fmt.Sprintf(`"total":%d`, n%9+1), 1))
		}
		c.do(l.b, heads[i], body, 200)
	}
}
