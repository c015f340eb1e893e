//go:build unix

package tikvkv

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/value"
	tikverr "github.com/tikv/client-go/v2/error"
	"github.com/tikv/client-go/v2/tikv"
	"github.com/tikv/client-go/v2/tikvrpc"
	pd "github.com/tikv/pd/client"
	"github.com/tikv/pd/client/clients/tso"
	"github.com/tikv/pd/client/pkg/caller"
)

// These benchmarks compare the core with the bare client of the same cluster, in one run: the ratio counts. They run on
// the client's simulation with requests that take tripTime, and on the cluster of ORRERY_TEST_PD, where all commits are
// in two phases. The bare client reads and writes keys and values of the same sizes as the core.
//
//	go test -run '^$' -bench . -benchtime 1000x

// tripTime is how long a request takes in the simulation.
const tripTime = 2 * time.Millisecond

// far is a connection to stores whose requests take tripTime.
type far struct{ tikv.Client }

func (f far) SendRequest(ctx context.Context, addr string, req *tikvrpc.Request, d time.Duration) (
	*tikvrpc.Response, error) {
	time.Sleep(tripTime)
	return f.Client.SendRequest(ctx, addr, req, d)
}

// farPD is a connection to a Placement Driver whose timestamps take tripTime.
type farPD struct{ pd.Client }

func (f farPD) GetTS(ctx context.Context) (int64, int64, error) {
	time.Sleep(tripTime)
	return f.Client.GetTS(ctx)
}

func (f farPD) GetTSAsync(ctx context.Context) tso.TSFuture {
	return lateTime{f.Client.GetTSAsync(ctx), time.Now().Add(tripTime)}
}

// WithCallerComponent is what the client names its users with.
func (f farPD) WithCallerComponent(caller.Component) pd.Client { return f }

type lateTime struct {
	tso.TSFuture
	at time.Time
}

func (l lateTime) Wait() (int64, int64, error) {
	time.Sleep(time.Until(l.at))
	return l.TSFuture.Wait()
}

// onBoth runs a benchmark on the simulation and on the cluster.
func onBoth(b *testing.B, f func(b *testing.B, e *Engine)) {
	b.Run("simulation", func(b *testing.B) {
		m := newMock(b)
		store := m.StoreWith(func(c tikv.Client) tikv.Client { return far{c} },
			func(c pd.Client) pd.Client { return farPD{c} })
		e, err := Use(bg, store, "main", Options{TwoPhase: true})
		if err != nil {
			b.Fatal(err)
		}
		f(b, e)
	})
	b.Run("cluster", func(b *testing.B) {
		members := os.Getenv(clusterEnv)
		if members == "" {
			b.Skip("there is no cluster: " + clusterEnv)
		}
		e, err := Open(bg, fmt.Sprintf("tikv://%s/bench-%d?commit=2pc", members, time.Now().UnixNano()), Options{})
		if err != nil {
			b.Fatal(err)
		}
		f(b, e)
	})
}

// seen records the last batch that went through an engine.
type seen struct {
	*Engine
	last atomic.Pointer[kv.Batch]
}

func (s *seen) Write(ctx context.Context, b *kv.Batch, pre []kv.Precondition) (kv.Commit, error) {
	c := &kv.Batch{}
	c.Append(b)
	s.last.Store(c)
	return s.Engine.Write(ctx, b, pre)
}

// rig is a container, and the bare client of its store.
type rig struct {
	b    *testing.B
	e    *Engine
	core *core.Engine
	c    *core.Container
	last *kv.Batch // of one insert
	keys []string  // a partition key in each partition
	next atomic.Int64
}

func newRig(b *testing.B, e *Engine, partitions int) *rig {
	rec := &seen{Engine: e}
	of, err := core.Open(bg, rec, core.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := of.Close(); err != nil {
			b.Error(err)
		}
	})
	if _, err := of.EnsureDatabase(bg, "db"); err != nil {
		b.Fatal(err)
	}
	r := &rig{b: b, e: e, core: of}
	if r.c, err = of.CreateContainer(bg, "db", core.ContainerSpec{ID: "c",
		PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}},
		Throughput:   core.Throughput{Manual: 10000 * partitions}}); err != nil {
		b.Fatal(err)
	}
	found := map[uint32]bool{}
	for i := 0; len(found) < partitions; i++ {
		key := fmt.Sprint("p", i)
		if res := r.insert(r.c, key); !found[res.Slot.ID()] {
			found[res.Slot.ID()] = true
			r.keys = append(r.keys, key)
		}
	}
	r.last = rec.last.Load()
	return r
}

// insert creates an item of the partition key.
func (r *rig) insert(c *core.Container, key string) core.Result {
	id := r.next.Add(1)
	res, err := c.Write(bg, core.Write{Kind: core.Create, Doc: parse(r.b, fmt.Sprintf(
		`{"id":"i%d","pk":%q,"name":"item %d","n":%d,"tags":["a","b"],"at":{"x":%d,"y":2.5}}`, id, key, id, id, id))})
	if err != nil {
		r.b.Error(err)
	}
	return res
}

// commit is a commit of the bare client: as many keys as an insert writes, with values of the same sizes, and a key
// that all commits of a partition write, as the slot's head. It is repeated when it has lost to another one.
func (r *rig) commit(partition int) {
	for id := r.next.Add(1); ; {
		tx, err := r.e.store.Begin()
		if err != nil {
			r.b.Error(err)
			return
		}
		tx.SetEnableAsyncCommit(!r.e.twoPhase)
		tx.SetEnable1PC(!r.e.twoPhase)
		for i := range r.last.Len() {
			op := r.last.Op(i)
			key := fmt.Appendf(nil, "bare-%s-%d-%d-%s", r.e.prefix, partition, id, op.Key)
			if i == 0 {
				key = fmt.Appendf(nil, "bare-%s-%d", r.e.prefix, partition)
			}
			if err := tx.Set(key, append([]byte{1}, op.Value...)); err != nil {
				r.b.Error(err)
			}
		}
		if err = tx.Commit(bg); err == nil {
			return
		} else if !tikverr.IsErrWriteConflict(err) {
			r.b.Error(err)
			return
		}
	}
}

// cpuTime is the CPU time of this process: that of the core and the client, and of a simulation. The stores and the
// Placement Driver of a cluster are other processes.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// withCPU is rate, and reports the CPU time of a call.
func withCPU(b *testing.B, name string, clients, n int, f func(client int)) float64 {
	begin := cpuTime()
	calls := rate(clients, n, f)
	b.ReportMetric(float64((cpuTime()-begin).Microseconds())/float64(n), name+"-cpu-us")
	return calls
}

// rate is the number of calls a second that clients make at the same time, of n in all.
func rate(clients, n int, f func(client int)) float64 {
	var left atomic.Int64
	left.Store(int64(n))
	var g sync.WaitGroup
	begin := time.Now()
	for i := range clients {
		g.Go(func() {
			for left.Add(-1) >= 0 {
				f(i)
			}
		})
	}
	g.Wait()
	return float64(n) / time.Since(begin).Seconds()
}

// BenchmarkBareReads compares point reads of eight clients with a bare get. bare has a timestamp, as a transaction of
// the client has; newest has none. named finds the container by its name first, as most requests of a server do.
// recent takes the one that the name had before, as requests for one item do: recent/newest is what a server adds to
// the least that a read of the store can take.
func BenchmarkBareReads(b *testing.B) {
	onBoth(b, func(b *testing.B, e *Engine) {
		r := newRig(b, e, 1)
		key := e.data(r.last.Op(0).Key)
		get := func(ts uint64) {
			if _, err := e.store.GetSnapshot(ts).Get(bg, key); err != nil {
				b.Error(err)
			}
		}
		read := func(c *core.Container) {
			if _, err := c.Read(bg, core.PartitionKey{value.StringOf("p0")}, value.StringOf("i1")); err != nil {
				b.Error(err)
			}
		}
		b.ResetTimer()
		bare := rate(8, b.N, func(int) {
			ts, err := e.timestamp(bg)
			if err != nil {
				b.Error(err)
			}
			get(ts)
		})
		newest := withCPU(b, "newest", 8, b.N, func(int) { get(1<<64 - 1) })
		ours := withCPU(b, "core", 8, b.N, func(int) { read(r.c) })
		named := rate(8, b.N, func(int) {
			c, err := r.core.Container("db", "c")
			if err != nil {
				b.Error(err)
				return
			}
			read(c)
		})
		recent := rate(8, b.N, func(int) {
			c := r.core.Within(bg).Recent("db", "c")
			if c == nil {
				b.Error("the name isn't known")
				return
			}
			if read(c); !c.Shown() {
				b.Error("the container isn't shown")
			}
		})
		b.ReportMetric(bare, "bare/s")
		b.ReportMetric(newest, "newest/s")
		b.ReportMetric(ours, "core/s")
		b.ReportMetric(named, "named/s")
		b.ReportMetric(ours/bare, "core/bare")
		b.ReportMetric(ours/newest, "core/newest")
		b.ReportMetric(named/bare, "named/bare")
		b.ReportMetric(named/newest, "named/newest")
		b.ReportMetric(recent/bare, "recent/bare")
		b.ReportMetric(recent/newest, "recent/newest")
	})
}

// BenchmarkHotPartition compares the inserts of eight clients into one partition with the commits of one bare writer,
// and one client with it.
func BenchmarkHotPartition(b *testing.B) {
	onBoth(b, func(b *testing.B, e *Engine) {
		r := newRig(b, e, 1)
		b.ResetTimer()
		bare := withCPU(b, "bare", 1, b.N, func(int) { r.commit(0) })
		one := withCPU(b, "one", 1, b.N, func(int) { r.insert(r.c, r.keys[0]) })
		eight := withCPU(b, "eight", 8, b.N, func(int) { r.insert(r.c, r.keys[0]) })
		many := withCPU(b, "sixtyfour", 64, 4*b.N, func(int) { r.insert(r.c, r.keys[0]) })
		b.ReportMetric(bare, "bare/s")
		b.ReportMetric(one, "one/s")
		b.ReportMetric(eight, "eight/s")
		b.ReportMetric(many, "sixtyfour/s")
		b.ReportMetric(one/bare, "one/bare")
		b.ReportMetric(eight/bare, "eight/bare")
		b.ReportMetric(many/bare, "sixtyfour/bare")
	})
}

// BenchmarkManyPartitions compares the inserts of 16 clients, each into a partition of its own, with as many bare
// writers of the same keys.
func BenchmarkManyPartitions(b *testing.B) {
	onBoth(b, func(b *testing.B, e *Engine) {
		r := newRig(b, e, 16)
		b.ResetTimer()
		bare := rate(16, b.N, r.commit)
		ours := rate(16, b.N, func(client int) { r.insert(r.c, r.keys[client]) })
		b.ReportMetric(bare, "bare/s")
		b.ReportMetric(ours, "core/s")
		b.ReportMetric(ours/bare, "core/bare")
	})
}

// BenchmarkBatches is a client that replaces 20 items in one transaction, as a transactional batch does, with and
// without reading them at once. trips is the time of one by that of a request of the simulation.
func BenchmarkBatches(b *testing.B) {
	const items = 20
	onBoth(b, func(b *testing.B, e *Engine) {
		r := newRig(b, e, 1)
		id := func(i int) value.Value { return value.StringOf(fmt.Sprint("b", i)) }
		batch := func(n int) {
			if _, err := r.c.WithTx(bg, core.PartitionKey{value.StringOf("p0")}, func(tx *core.Tx) error {
				if err := tx.Fetch(n, id); err != nil {
					return err
				}
				for i := range items {
					if _, err := tx.Write(&core.Write{Kind: core.Upsert, Doc: parse(b, fmt.Sprintf(
						`{"id":%q,"pk":"p0","n":%d}`, id(i).Str(), r.next.Add(1)))}); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				b.Error(err)
			}
		}
		batch(items)
		b.ResetTimer()
		for name, n := range map[string]int{"fetched": items, "alone": 0} {
			per := rate(1, b.N, func(int) { batch(n) })
			b.ReportMetric(per, name+"/s")
			b.ReportMetric(1/per/tripTime.Seconds(), name+"-trips")
		}
	})
}
