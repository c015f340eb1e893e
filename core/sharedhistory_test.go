package core_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// sharedEnv is the number of seconds for which each history of several processes runs; without it a second.
const sharedEnv = "ORRERY_SHARED"

// nearNetwork has calls as fast as those within a machine, farNetwork those of a busy network.
var (
	nearNetwork = kvtest.Faults{Most: time.Millisecond, Unavailable: 0.003, Unknown: 0.02, Late: 3 * time.Millisecond,
		Oldest: 200 * time.Millisecond}
	farNetwork = kvtest.Faults{Least: time.Millisecond, Most: 20 * time.Millisecond, Unavailable: 0.003, Unknown: 0.02,
		Late: 60 * time.Millisecond, Oldest: 2 * time.Second}
)

// sharedHistory is a history of several processes over one store, which fail, are killed, and are started again.
//
// Writers and readers of a few registers record what they have asked and what was answered. Every version of a register
// has a value of its own, and the LSNs of its versions are the order of its writes, so the record is judged without a
// search: see judge.
type sharedHistory struct {
	*processes
	alive []sync.RWMutex // held for reading by the users of a process, for writing while it is replaced
	stop  atomic.Bool
	first time.Time
	value atomic.Int64 // the last value that was given to a write
	kills int
	moves map[string]int // results of splits and joins

	networks []kvtest.Faults // how calls of the engines end, in turn

	mu     sync.Mutex
	events []event

	pos    feed.Position    // of the reader of the feed
	passed map[string]int64 // the greatest LSN of each logical partition that it has read
	tailed map[string]int64 // LSN of the newest version of each item that it has read
}

// event is one read or write of a register.
type event struct {
	key        string
	begun, end time.Duration // since the history began
	write      bool
	unsure     bool  // a write whose outcome is unknown: lsn is 0
	value      int64 // that was written or read
	lsn        int64
}

const (
	sharedRegisters = 6
	sharedAccounts  = 4
)

// TestSharedHistory runs writers, transactions, queries, a reader of the feed, changes of the indexing policy, the
// reaper, and splits and joins of slots and partitions in two and in three processes. Calls of the storage engine take
// time and fail, outcomes are unknown, snapshots become too old, clocks differ by a day, and processes are paused,
// killed and started again. Reads and writes are linearizable, the sum of the accounts never changes, the feed shows
// the versions of each logical partition in their order, once each, and misses nothing, and a check finds nothing.
//
// Half of the histories have calls of 1 to 20 ms, the long ones in every other second. Then little happens, but all of
// it meets something else.
func TestSharedHistory(t *testing.T) {
	t.Parallel()
	seconds, far := 1.0, []kvtest.Faults{farNetwork}
	if s := os.Getenv(sharedEnv); s != "" {
		far = append(far, nearNetwork)
		var err error
		if seconds, err = strconv.ParseFloat(s, 64); err != nil {
			t.Fatal(sharedEnv, err)
		}
	}
	near := []kvtest.Faults{nearNetwork}
	for i, networks := range [][]kvtest.Faults{near, near, far, far} {
		n := 2 + i%2
		t.Run(fmt.Sprintf("%d processes, calls of up to %v", n, networks[0].Most), func(t *testing.T) {
			h := &sharedHistory{processes: startProcesses(t, n, kvtest.Faults{}), networks: networks,
				alive: make([]sync.RWMutex, n), first: time.Now(),
				pos: feed.Start(), passed: map[string]int64{}, tailed: map[string]int64{}, moves: map[string]int{}}
			h.run(time.Duration(seconds * float64(time.Second)))
		})
	}
}

func (h *sharedHistory) run(d time.Duration) {
	never := int32(-1)
	cs := h.containers(core.ContainerSpec{DefaultTTL: &never, UniqueKeys: [][]string{{"/u"}}, LogMinutes: 600,
		Throughput: core.Throughput{Manual: 20000}})
	for i := range sharedRegisters {
		h.set(cs[0], core.Create, register(i), nil)
	}
	for i := range sharedAccounts {
		put(h.t, cs[0], core.Create, account(i, 100))
	}
	clocks := make(chan bool)
	defer func() { clocks <- true }()
	go h.tick(clocks)
	var users waiter
	users.Go(h.vary)
	for w := range 4 {
		users.Go(func() { h.use(w) })
	}
	for _, f := range []func(*rand.Rand){h.transfer, h.transfer, h.sum, h.policies, h.expire, h.tail, h.move, h.pause,
		h.kill} {
		users.Go(func() { f(rand.New(rand.NewPCG(uint64(d), 3))) })
	}
	time.Sleep(d)
	h.stop.Store(true)
	users.Wait()
	time.Sleep(farNetwork.Late + 2*time.Millisecond) // for writes that are on their way
	h.store.SetFaults(kvtest.Faults{})
	h.judge()
	h.tail(rand.New(rand.NewPCG(1, 1))) // what was written since
	h.last()
	h.t.Logf("%d reads and writes of registers, %d kills, splits and joins: %v", len(h.events), h.kills,
		h.moves)
	// with slow calls, kills and rebuilds leave hardly any time for moves
	if d >= 10*time.Second && len(h.networks) == 1 && h.moves["<nil>"] < 3 {
		h.t.Error("too few splits and joins")
	}
}

// tick lets the clocks go on, as leases need it, until it is told to stop.
func (h *sharedHistory) tick(stop <-chan bool) {
	const step = 5 * time.Millisecond
	for {
		select {
		case <-stop:
			return
		case <-time.After(step):
			for _, c := range h.clks {
				c.Advance(step)
			}
		}
	}
}

// on calls f with the container in a process.
func (h *sharedHistory) on(r *rand.Rand, f func(e *core.Engine, c *core.Container) error) {
	p := r.IntN(len(h.all))
	h.alive[p].RLock()
	defer h.alive[p].RUnlock()
	c, err := h.all[p].Container("db", "c")
	if err == nil {
		err = f(h.all[p], c)
	}
	switch status.CodeOf(err) {
	case status.Unavailable, status.UnknownOutcome, status.RetryWith, status.TooManyRequests, status.Timeout:
	default:
		if err != nil {
			h.t.Error(err)
		}
	}
}

// vary lets each of the networks last for a second in turn.
func (h *sharedHistory) vary() {
	for i := 0; !h.stop.Load(); i++ {
		h.store.SetFaults(h.networks[i%len(h.networks)])
		for begun := time.Now(); time.Since(begun) < time.Second && !h.stop.Load(); {
			time.Sleep(5 * time.Millisecond)
		}
	}
}

func (h *sharedHistory) now() time.Duration { return time.Since(h.first) }

func register(i int) string { return fmt.Sprintf("r%d", i) }

// partitionOfRegister returns the partition key of a register.
func partitionOfRegister(key string) string { return "p" + key[1:] }

// set writes a register and records it.
func (h *sharedHistory) set(c *core.Container, kind core.WriteKind, key string, check func(*core.Item) error) error {
	v := h.value.Add(1)
	e := event{key: key, begun: h.now(), write: true, value: v}
	d := mustDoc(h.t, fmt.Sprintf(`{"id":%q,"pk":%q,"v":%d,"u":%q,"tags":[%d]}`, key, partitionOfRegister(key), v,
		key, v))
	res, err := c.Write(bg, core.Write{Kind: kind, Doc: d, Check: check})
	if e.end = h.now(); err == nil {
		e.lsn = res.LSN
	} else if e.unsure = status.Is(err, status.UnknownOutcome); !e.unsure {
		return err
	}
	h.record(e)
	return err
}

// get reads a register and records it.
func (h *sharedHistory) get(c *core.Container, key string) (*core.Item, error) {
	e := event{key: key, begun: h.now()}
	it, err := c.Read(bg, pk(partitionOfRegister(key)), value.StringOf(key))
	if err != nil {
		return nil, err
	}
	e.end, e.value, e.lsn = h.now(), doc.Get(it.Doc, "v").Int(), it.LSN
	h.record(e)
	return it, nil
}

func (h *sharedHistory) record(e event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

// use reads and writes registers, in a random process each time.
func (h *sharedHistory) use(w int) {
	r := rand.New(rand.NewPCG(uint64(w), 1))
	for !h.stop.Load() {
		key := register(r.IntN(sharedRegisters))
		h.on(r, func(_ *core.Engine, c *core.Container) error {
			switch r.IntN(4) {
			case 0:
				return h.set(c, core.Upsert, key, nil)
			case 1: // replace the version that was read before
				was, err := h.get(c, key)
				if err != nil {
					return err
				}
				err = h.set(c, core.Replace, key, func(it *core.Item) error {
					if it == nil || it.LSN != was.LSN {
						return status.New(status.PreconditionFailed, "another version")
					}
					return nil
				})
				if status.Is(err, status.PreconditionFailed) {
					return nil
				}
				return err
			}
			_, err := h.get(c, key)
			if status.Is(err, status.NotFound) {
				h.t.Errorf("%s is absent", key)
			}
			return err
		})
	}
}

// judge checks that the reads and writes of each register are linearizable. The LSNs of its versions are the order in
// which they were written. So it is enough that
//   - two versions have different LSNs, and a read shows the LSN that its version was written with,
//   - a version is not shown before its write has begun,
//   - after a read or a write has ended, nothing older is shown, and a write that begins then has a greater LSN.
func (h *sharedHistory) judge() {
	written := map[string]map[int64]event{} // by register and value
	for _, e := range h.events {
		if written[e.key] == nil {
			written[e.key] = map[int64]event{}
		}
		if e.write {
			written[e.key][e.value] = e
		}
	}
	lsns := map[string]map[int64]int64{} // by register and LSN: the value
	slices.SortFunc(h.events, func(a, b event) int { return cmp.Compare(a.begun, b.begun) })
	byEnd := slices.Clone(h.events)
	slices.SortFunc(byEnd, func(a, b event) int { return cmp.Compare(a.end, b.end) })
	ended, least := 0, map[string]int64{} // the greatest LSN of what has ended
	for _, e := range h.events {
		for ; ended < len(byEnd) && byEnd[ended].end < e.begun; ended++ {
			b := &byEnd[ended]
			least[b.key] = max(least[b.key], b.lsn)
		}
		if e.unsure {
			continue
		}
		if lsns[e.key] == nil {
			lsns[e.key] = map[int64]int64{}
		}
		if v, ok := lsns[e.key][e.lsn]; ok && v != e.value {
			h.t.Errorf("%s: the values %d and %d have LSN %d", e.key, v, e.value, e.lsn)
		}
		lsns[e.key][e.lsn] = e.value
		if e.lsn < least[e.key] || e.write && e.lsn == least[e.key] {
			h.t.Errorf("%+v after LSN %d", e, least[e.key])
		}
		if w, ok := written[e.key][e.value]; !ok || !w.unsure && w.lsn != e.lsn || w.begun > e.end {
			h.t.Errorf("%+v, but the write was %+v", e, w)
		}
	}
}

// last compares what is stored at the end with the record.
func (h *sharedHistory) last() {
	h.reapAll()
	for p := range h.all {
		c := h.container(p)
		for i := range sharedRegisters {
			key := register(i)
			it, err := c.Read(bg, pk(partitionOfRegister(key)), value.StringOf(key))
			if err != nil {
				h.t.Error(err)
				continue
			}
			for _, e := range h.events {
				if e.key == key && e.lsn > it.LSN {
					h.t.Errorf("process %d: %s has LSN %d at the end, after %+v", p, key, it.LSN, e)
				}
			}
			if h.tailed[key] != it.LSN {
				h.t.Errorf("the feed has shown LSN %d of %s, the newest is %d", h.tailed[key], key, it.LSN)
			}
		}
		if err := c.WaitIndex(bg); err != nil {
			h.t.Error(err)
		}
		if rows := ids(h.t, c, &exec.Query{}); int64(len(rows)) != counted(c) {
			h.t.Errorf("process %d: %d rows, count %d", p, len(rows), counted(c))
		}
		h.sumOnce(c)
	}
}

// reapAll removes what has expired by the clock of any process. A killed one may have had the lease for that, so the
// others wait.
func (h *sharedHistory) reapAll() {
	for range 1000 {
		left := false
		for p := range h.all {
			h.clks[p].Advance(time.Hour)
			h.all[p].Reap(bg)
			c := h.container(p)
			left = left || int64(len(ids(h.t, c, &exec.Query{}))) != counted(c)
		}
		if !left {
			return
		}
		time.Sleep(time.Millisecond)
	}
	h.t.Error("what has expired is not removed")
}

func account(i int, money int64) string {
	return fmt.Sprintf(`{"id":"a%d","pk":"bank","money":%d,"u":"a%d"}`, i, money, i)
}

// transfer transfers money between two accounts.
func (h *sharedHistory) transfer(r *rand.Rand) {
	for !h.stop.Load() {
		from := r.IntN(sharedAccounts)
		to := (from + 1 + r.IntN(sharedAccounts-1)) % sharedAccounts
		h.on(r, func(_ *core.Engine, c *core.Container) error {
			_, err := c.WithTx(bg, pk("bank"), func(tx *core.Tx) error {
				for i, n := range map[int]int64{from: -1, to: 1} {
					it, err := tx.Read(value.StringOf(fmt.Sprintf("a%d", i)))
					if err != nil {
						return err
					}
					d := mustDoc(h.t, account(i, doc.Get(it.Doc, "money").Int()+n))
					if _, err := tx.Write(&core.Write{Kind: core.Replace, Doc: d}); err != nil {
						return err
					}
				}
				return nil
			})
			return err
		})
	}
}

// sum adds up the accounts with queries, which each show one moment.
func (h *sharedHistory) sum(r *rand.Rand) {
	for !h.stop.Load() {
		h.on(r, func(_ *core.Engine, c *core.Container) error { return h.sumOnce(c) })
	}
}

func (h *sharedHistory) sumOnce(c *core.Container) error {
	rows, err := c.Query(bg, &exec.Query{PK: pk("bank")})
	if err != nil {
		return err
	}
	defer rows.Close()
	sum := int64(0)
	for rows.Next() {
		sum += doc.Get(rows.Item().Doc, "money").Int()
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if sum != sharedAccounts*100 {
		h.t.Errorf("the accounts hold %d", sum)
	}
	return nil
}

// policies replaces the indexing policy, and queries registers by what they hold under any policy.
func (h *sharedHistory) policies(r *rand.Rand) {
	texts := []string{"", noIndex, `{"includedPaths":[{"path":"/v/?"}],"excludedPaths":[{"path":"/*"}]}`}
	for i := 0; !h.stop.Load(); i++ {
		h.on(r, func(e *core.Engine, c *core.Container) error {
			spec := c.Spec().Clone()
			spec.IndexingPolicy = []byte(texts[i%len(texts)])
			_, err := e.ReplaceContainer(bg, "db", "c", spec)
			return err
		})
		time.Sleep(time.Duration(r.IntN(600)) * time.Millisecond) // else there is no time for moves
		for range 5 {
			h.on(r, func(_ *core.Engine, c *core.Container) error {
				key := register(r.IntN(sharedRegisters))
				it, err := c.Read(bg, pk(partitionOfRegister(key)), value.StringOf(key))
				if err != nil {
					return err
				}
				rows, err := c.Query(bg, eqQuery("v", int(doc.Get(it.Doc, "v").Int())))
				if err != nil {
					return err
				}
				defer rows.Close()
				for rows.Next() {
					if got := rows.Item().ID().Str(); got != key {
						h.t.Errorf("a query for %s has found %s", key, got)
					}
				}
				return rows.Err()
			})
		}
	}
}

// expire writes items that expire, whose unique values others then take, and lets time pass.
func (h *sharedHistory) expire(r *rand.Rand) {
	for i := 0; !h.stop.Load(); i++ {
		h.on(r, func(e *core.Engine, c *core.Container) error {
			e.Clock().Advance(20 * time.Millisecond)
			d := mustDoc(h.t, fmt.Sprintf(`{"id":"e%d","pk":"bank","money":0,"ttl":1,"u":"e%d"}`, i, i%3))
			_, err := c.Write(bg, core.Write{Kind: core.Upsert, Doc: d})
			if status.Is(err, status.Conflict) {
				err = nil
			}
			e.Reap(bg)
			return err
		})
	}
}

// tail reads the feed, each page in another process. The versions of a logical partition come in the order of LSNs.
func (h *sharedHistory) tail(r *rand.Rand) {
	for over := false; !over; {
		stopped := h.stop.Load()
		h.on(r, func(_ *core.Engine, c *core.Container) error {
			page, err := c.Feed(bg, feed.Scope{}, h.pos, 5)
			if err != nil {
				return err
			}
			for _, it := range page.Items {
				id, pk := it.ID().Str(), it.PK()[0].Str()
				if it.LSN < h.passed[pk] || it.LSN <= h.tailed[id] {
					h.t.Errorf("the feed has %s of LSN %d after LSN %d, and %d of the item", id, it.LSN, h.passed[pk],
						h.tailed[id])
				}
				h.passed[pk], h.tailed[id] = it.LSN, it.LSN
			}
			h.pos = page.Next
			over = stopped && len(page.Items) == 0 && !page.More
			return nil
		})
	}
}

// move splits and joins slots and partitions, in a random process each time. Some of that isn't possible, and is
// refused. Each move has a deadline, because a killed process may have the lease.
func (h *sharedHistory) move(r *rand.Rand) {
	ats := nested(8)
	for !h.stop.Load() {
		h.on(r, func(_ *core.Engine, c *core.Container) (err error) {
			ctx, end := context.WithTimeout(bg, 2*time.Second)
			defer end()
			at, id := ats[r.IntN(len(ats))], ""
			if ps, err := c.Partitions(ctx); err == nil {
				id = ps[r.IntN(len(ps))].ID
			}
			switch r.IntN(6) {
			case 0, 1:
				err = c.SplitSlot(ctx, at)
			case 2, 3:
				err = c.JoinSlots(ctx, at)
			case 4:
				err = c.SplitPartition(ctx, id)
			default:
				err = c.MergePartitions(ctx, id)
			}
			h.moves[fmt.Sprint(err)]++
			if status.Is(err, status.BadRequest) || status.Is(err, status.NotFound) {
				err = nil
			}
			return err
		})
		time.Sleep(time.Duration(r.IntN(50)) * time.Millisecond)
	}
}

// pause stops a process for a while from time to time: what it was doing goes on afterwards.
func (h *sharedHistory) pause(r *rand.Rand) {
	for !h.stop.Load() {
		time.Sleep(time.Duration(50+r.IntN(300)) * time.Millisecond)
		p := r.IntN(len(h.all))
		h.alive[p].RLock()
		h.kvs[p].Pause()
		time.Sleep(time.Duration(r.IntN(400)) * time.Millisecond)
		h.kvs[p].Resume()
		h.alive[p].RUnlock()
	}
}

// kill kills a process from time to time, and starts another one in its place.
func (h *sharedHistory) kill(r *rand.Rand) {
	for !h.stop.Load() {
		time.Sleep(time.Duration(100+r.IntN(500)) * time.Millisecond)
		p := r.IntN(len(h.all))
		h.kvs[p].Kill()
		h.alive[p].Lock()
		_ = h.all[p].Close()
		for {
			h.kvs[p] = h.store.Engine()
			e, err := core.Open(bg, kv.Checked(h.kvs[p]), h.options(p))
			if err == nil {
				h.all[p] = e
				break
			}
			if !errors.Is(err, kv.ErrUnavailable) && !errors.Is(err, kv.ErrSnapshotTooOld) {
				h.t.Error(err)
			}
		}
		h.alive[p].Unlock()
		h.kills++
	}
}
