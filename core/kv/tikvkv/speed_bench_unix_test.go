//go:build unix

package tikvkv

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/value"
	"github.com/pingcap/kvproto/pkg/kvrpcpb"
	tikverr "github.com/tikv/client-go/v2/error"
	clientkv "github.com/tikv/client-go/v2/kv"
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

// recorder remembers what the last transaction has sent in its first phase.
type recorder struct {
	tikv.Client
	mu    sync.Mutex
	begin uint64 // the transaction
	last  []*kvrpcpb.Mutation
}

func (r *recorder) SendRequest(ctx context.Context, addr string, req *tikvrpc.Request, d time.Duration) (
	*tikvrpc.Response, error) {
	if req.Type == tikvrpc.CmdPrewrite {
		r.record(req.Prewrite())
	}
	return r.Client.SendRequest(ctx, addr, req, d)
}

func (r *recorder) record(p *kvrpcpb.PrewriteRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begin != p.StartVersion { // a transaction of several regions has several requests
		r.begin, r.last = p.StartVersion, nil
	}
	r.last = append(r.last, p.Mutations...)
}

// rig is a container, and the bare client of its store.
type rig struct {
	b    *testing.B
	e    *Engine
	core *core.Engine
	c    *core.Container
	keys []string              // a partition key in each partition
	sent [][]*kvrpcpb.Mutation // what an insert sends, for each of keys
	item []byte                // the key of an item of the first partition
	next atomic.Int64
}

func newRig(b *testing.B, e *Engine, partitions int) *rig {
	of, err := core.Open(bg, e, core.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := of.Close(); err != nil {
			b.Error(err)
		}
	})
	if err := of.Announce(core.Announcement{Name: "bench"}); err != nil { // as servers do
		b.Fatal(err)
	}
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
	for _, key := range r.keys {
		r.learn(key)
	}
	r.presplit()
	return r
}

// learn finds what an insert sends.
func (r *rig) learn(partitionKey string) {
	client := r.e.store.GetTiKVClient()
	rec := &recorder{Client: client}
	r.e.store.SetTiKVClient(rec)
	r.insert(r.c, partitionKey)
	r.e.store.SetTiKVClient(client)
	rec.mu.Lock()
	defer rec.mu.Unlock()
	var item []byte
	for _, m := range rec.last {
		if r.kind(m.Key) == keys.KindItem {
			item = m.Key
		}
	}
	if item == nil {
		r.b.Fatalf("an insert has sent %d keys, and none of an item", len(rec.last))
	}
	if r.item == nil {
		r.item = item
	}
	r.sent = append(r.sent, rec.last)
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

// commit is a commit of the bare client: it sends the keys that an insert does, in another place, with the same values.
// All commits of a partition write one key, as they write the slot's head. It is repeated when it has lost to another
// one.
func (r *rig) commit(partition int) {
	for id := r.next.Add(1); ; {
		tx, err := r.e.store.Begin()
		if err != nil {
			r.b.Error(err)
			return
		}
		tx.SetEnableAsyncCommit(!r.e.twoPhase)
		tx.SetEnable1PC(!r.e.twoPhase)
		for _, m := range r.sent[partition] {
			if err := r.put(tx, r.bareKey(m.Key, id), m); err != nil {
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

// bareGeneration is a generation that no container has.
const bareGeneration = 1 << 31

// bareKey is the bare client's key for one of an insert: the same one in a slot of another generation. All but the head
// have id at their end, so that each commit has keys of its own.
func (r *rig) bareKey(stored []byte, id int64) []byte {
	bare := slices.Clone(stored)
	binary.BigEndian.PutUint32(bare[len(r.e.data(nil))+1:], bareGeneration)
	if r.kind(stored) != keys.KindHead {
		bare = binary.BigEndian.AppendUint64(bare, uint64(id))
	}
	return bare
}

// kind is the kind of a stored key.
func (r *rig) kind(stored []byte) keys.Kind { return keys.Kind(r.e.key(stored)[keys.PrefixLen-1]) }

// presplit gives each slot of the bare client a region of its own, if the container's slots have theirs.
func (r *rig) presplit() {
	if len(r.sent) < 2 {
		return
	}
	var at [][]byte
	for i := range r.sent {
		at = append(at, r.e.key(r.bareKey(r.sent[i][0].Key, 0))[:keys.PrefixLen-1])
	}
	slices.SortFunc(at, bytes.Compare)
	if err := r.e.Presplit(bg, at); err != nil {
		r.b.Fatal(err)
	}
}

// put does to a key what m does to its own.
func (r *rig) put(tx *tikv.KVTxn, key []byte, m *kvrpcpb.Mutation) error {
	switch m.Op {
	case kvrpcpb.Op_Put, kvrpcpb.Op_Insert:
		return tx.Set(key, m.Value)
	case kvrpcpb.Op_Del:
		return tx.Delete(key)
	case kvrpcpb.Op_Lock:
		return tx.LockKeys(bg, clientkv.NewLockCtx(tx.StartTS(), clientkv.LockNoWait, time.Time{}), key)
	}
	return fmt.Errorf("an insert does %s", m.Op)
}

// cpuTime is the CPU time of this process: that of the core and the client, and of a simulation. The stores and the
// Placement Driver of a cluster are other processes.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// rounds is how often the calls that are compared take turns. A store is slower after many commits, and a machine at
// one time than at another.
const rounds = 10

// load is calls that clients make at the same time.
type load struct {
	name    string
	clients int
	n       int // in all
	call    func(client int)

	times []time.Duration // of the rounds
	cpu   time.Duration
}

// compare makes the calls of all loads in turn, and reports the calls of each in a second, and the CPU time of a call.
// The time is that of the median round: one that met a pause of the cluster doesn't count.
func compare(b *testing.B, loads ...*load) {
	b.ResetTimer()
	for range rounds {
		for _, l := range loads {
			l.run()
		}
	}
	for _, l := range loads {
		b.ReportMetric(l.rate(), l.name+"/s")
		b.ReportMetric(float64(l.cpu.Microseconds())/float64(rounds*l.round()), l.name+"-cpu-us")
	}
}

// round is the number of calls in a round.
func (l *load) round() int { return max(1, l.n/rounds) }

// run is a round.
func (l *load) run() {
	var left atomic.Int64
	left.Store(int64(l.round()))
	var g sync.WaitGroup
	begin, cpu := time.Now(), cpuTime()
	for i := range l.clients {
		g.Go(func() {
			for left.Add(-1) >= 0 {
				l.call(i)
			}
		})
	}
	g.Wait()
	l.times = append(l.times, time.Since(begin))
	l.cpu += cpuTime() - cpu
}

// rate is the number of calls in a second.
func (l *load) rate() float64 {
	times := slices.Sorted(slices.Values(l.times))
	return float64(l.round()) / times[len(times)/2].Seconds()
}

// ratio reports the rate of one load by that of another.
func ratio(b *testing.B, of, by *load) { b.ReportMetric(of.rate()/by.rate(), of.name+"/"+by.name) }

// BenchmarkBareReads compares point reads of eight clients with a bare get. bare has a timestamp, as a transaction of
// the client has; newest has none. named finds the container by its name first, as most requests of a server do.
// recent takes the one that the name had before, as requests for one item do: recent/newest is what a server adds to
// the least that a read of the store can take.
func BenchmarkBareReads(b *testing.B) {
	onBoth(b, func(b *testing.B, e *Engine) {
		r := newRig(b, e, 1)
		get := func(ts uint64) {
			if _, err := e.store.GetSnapshot(ts).Get(bg, r.item); err != nil {
				b.Error(err)
			}
		}
		read := func(c *core.Container) {
			if _, err := c.Read(bg, core.PartitionKey{value.StringOf("p0")}, value.StringOf("i1")); err != nil {
				b.Error(err)
			}
		}
		bare := &load{name: "bare", clients: 8, n: b.N, call: func(int) {
			ts, err := e.timestamp(bg)
			if err != nil {
				b.Error(err)
			}
			get(ts)
		}}
		newest := &load{name: "newest", clients: 8, n: b.N, call: func(int) { get(1<<64 - 1) }}
		ours := &load{name: "core", clients: 8, n: b.N, call: func(int) { read(r.c) }}
		named := &load{name: "named", clients: 8, n: b.N, call: func(int) {
			c, err := r.core.Container("db", "c")
			if err != nil {
				b.Error(err)
				return
			}
			read(c)
		}}
		compare(b, bare, newest, ours, named)
		for _, l := range []*load{ours, named} {
			ratio(b, l, bare)
			ratio(b, l, newest)
		}
	})
}

// BenchmarkHotPartition compares the inserts of eight clients into one partition with the commits of one bare writer,
// and one client with it.
func BenchmarkHotPartition(b *testing.B) {
	onBoth(b, func(b *testing.B, e *Engine) {
		r := newRig(b, e, 1)
		insert := func(int) { r.insert(r.c, r.keys[0]) }
		bare := &load{name: "bare", clients: 1, n: b.N, call: r.commit}
		one := &load{name: "one", clients: 1, n: b.N, call: insert}
		eight := &load{name: "eight", clients: 8, n: b.N, call: insert}
		many := &load{name: "sixtyfour", clients: 64, n: 4 * b.N, call: insert}
		compare(b, bare, one, eight, many)
		for _, l := range []*load{one, eight, many} {
			ratio(b, l, bare)
		}
	})
}

// BenchmarkManyPartitions compares the inserts of 16 clients, each into a partition of its own, with as many bare
// writers of the same keys.
func BenchmarkManyPartitions(b *testing.B) {
	onBoth(b, func(b *testing.B, e *Engine) {
		r := newRig(b, e, 16)
		bare := &load{name: "bare", clients: 16, n: b.N, call: r.commit}
		ours := &load{name: "core", clients: 16, n: b.N,
			call: func(client int) { r.insert(r.c, r.keys[client]) }}
		compare(b, bare, ours)
		ratio(b, ours, bare)
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
		fetched := &load{name: "fetched", clients: 1, n: b.N, call: func(int) { batch(items) }}
		alone := &load{name: "alone", clients: 1, n: b.N, call: func(int) { batch(0) }}
		compare(b, fetched, alone)
		for _, l := range []*load{fetched, alone} {
			b.ReportMetric(1/l.rate()/tripTime.Seconds(), l.name+"-trips")
		}
	})
}
