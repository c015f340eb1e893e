//go:build unix

package tikvkv

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/tikv/client-go/v2/tikv"
	pd "github.com/tikv/pd/client"
)

// BenchmarkRaces has three processes write to one logical partition: each has four clients that replace items, and two
// that move an amount from one item to another in a transaction. All of them race for the head of the slot. longest and
// p99 are waits of a client, refused is the part of the calls that had to be repeated by it.
//
// In the simulation a request that waits for a lock stops all others of its store for five milliseconds. So what
// writers that hold their slot do is measured on a cluster, if there is one.
func BenchmarkRaces(b *testing.B) {
	b.Run("simulation", func(b *testing.B) {
		m := newMock(b)
		benchmarkRaces(b, func() *Engine {
			store := m.StoreWith(func(c tikv.Client) tikv.Client { return far{c} },
				func(c pd.Client) pd.Client { return farPD{c} })
			e, err := Use(bg, store, "main", Options{TwoPhase: true})
			if err != nil {
				b.Fatal(err)
			}
			return e
		})
	})
	if members := os.Getenv(clusterEnv); members != "" {
		b.Run("cluster", func(b *testing.B) {
			address := fmt.Sprintf("tikv://%s/races-%d?commit=2pc", members, time.Now().UnixNano())
			benchmarkRaces(b, func() *Engine {
				e, err := Open(bg, address, Options{})
				if err != nil {
					b.Fatal(err)
				}
				return e
			})
		})
	}
}

func benchmarkRaces(b *testing.B, open func() *Engine) {
	const processes, items = 3, 6
	var cs []*core.Container
	for range processes {
		e := open()
		if len(cs) == 0 {
			r := newRig(b, e, 1)
			for i := range 2 * items {
				if _, err := r.c.Write(bg, core.Write{Kind: core.Create, Doc: parse(b, fmt.Sprintf(
					`{"id":"x%d","pk":"a","n":100}`, i))}); err != nil {
					b.Fatal(err)
				}
			}
			cs = append(cs, r.c)
			continue
		}
		of, err := core.Open(bg, e, core.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = of.Close() })
		c, err := of.Container("db", "c")
		if err != nil {
			b.Fatal(err)
		}
		cs = append(cs, c)
	}
	var mu sync.Mutex
	waits := map[string][]time.Duration{}
	refused := map[string]int{}
	timed := func(kind string, call func() error) {
		for begin := time.Now(); ; {
			err := call()
			mu.Lock()
			if err == nil {
				waits[kind] = append(waits[kind], time.Since(begin))
				mu.Unlock()
				return
			}
			refused[kind]++
			mu.Unlock()
			if !status.Is(err, status.RetryWith) && !status.Is(err, status.TooManyRequests) {
				b.Error(err)
				return
			}
		}
	}
	b.ResetTimer()
	end := time.Now().Add(time.Duration(b.N) * time.Millisecond)
	var g sync.WaitGroup
	for p, c := range cs {
		for w := range 4 {
			g.Go(func() {
				for n := 0; time.Now().Before(end); n++ {
					timed("set", func() error {
						_, err := c.Write(bg, core.Write{Kind: core.Upsert, Doc: parse(b, fmt.Sprintf(
							`{"id":"x%d","pk":"a","n":%d,"by":"%d.%d"}`, items+rand.IntN(items), n, p, w))})
						return err
					})
				}
			})
		}
		for range 2 {
			g.Go(func() {
				for time.Now().Before(end) {
					from, to := rand.IntN(items), rand.IntN(items-1)
					if to >= from {
						to++
					}
					timed("tx", func() error {
						_, err := c.WithTx(bg, core.PartitionKey{value.StringOf("a")}, func(tx *core.Tx) error {
							for i, by := range map[int]int64{from: -1, to: 1} {
								it, err := tx.Read(value.StringOf(fmt.Sprint("x", i)))
								if err != nil {
									return err
								}
								if _, err = tx.Write(&core.Write{Kind: core.Replace, Doc: parse(b, fmt.Sprintf(
									`{"id":"x%d","pk":"a","n":%d}`, i, doc.Get(it.Doc, "n").Int()+by))}); err != nil {
									return err
								}
							}
							return nil
						})
						return err
					})
				}
			})
		}
	}
	g.Wait()
	for _, kind := range []string{"set", "tx"} {
		w := waits[kind]
		if len(w) == 0 {
			b.Errorf("no %s", kind)
			continue
		}
		slices.Sort(w)
		b.ReportMetric(float64(len(w))/b.Elapsed().Seconds(), kind+"/s")
		b.ReportMetric(w[len(w)*99/100].Seconds()*1000, kind+"-p99-ms")
		b.ReportMetric(w[len(w)-1].Seconds()*1000, kind+"-longest-ms")
		b.ReportMetric(float64(refused[kind])/float64(len(w)), kind+"-refused")
	}
}
