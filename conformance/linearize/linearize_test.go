package linearize

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/anishathalye/porcupine"
)

const (
	workers = 2 // for each API
	// lossMost is the largest age of lost writes in a relaxed store: 0.2 s in which the log isn't synced, and the time
	// of a sync on a busy disk.
	lossMost = 3 * time.Second
	patience = 2 * time.Minute // for the history of one item
)

// life is one process of the server, with its observations.
type life struct {
	number  int
	clients map[string]client
	found   map[string]int // with relaxed: the items at its start
	begun   int64          // when it was ready
	killed  int64          // just before the signal
	gone    int64          // after its end
}

// op is an operation of a history.
type op struct {
	porcupine.Operation
	life *life
}

// run is one run of the test.
type run struct {
	t     *testing.T
	start time.Time
	now   atomic.Pointer[life] // nil: the server isn't running
	next  atomic.Int64         // the next value to write
	mu    sync.Mutex
	ops   []op
	told  [unknown + 1]int // number of operations by result
}

func (r *run) time() int64 { return time.Since(r.start).Nanoseconds() }

// record adds an operation that began at call and has just been answered.
func (r *run) record(l *life, worker int, call int64, in input, out output) {
	ret := r.time()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told[out.result]++
	r.ops = append(r.ops, op{porcupine.Operation{ClientId: worker, Input: in, Call: call, Output: out, Return: ret}, l})
}

// work executes operations through one API until the context ends.
func (r *run) work(ctx context.Context, worker int, api string) {
	rnd := rand.New(rand.NewPCG(uint64(worker), uint64(r.start.UnixNano())))
	for ctx.Err() == nil {
		l := r.now.Load()
		if l == nil {
			time.Sleep(time.Millisecond)
			continue
		}
		if err := r.one(ctx, l, worker, l.clients[api], rnd); err != nil {
			if r.now.Load() == l && ctx.Err() == nil { // now changes before the kill, so the kill is not the cause
				r.t.Errorf("%s: %v", api, err)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// one executes one operation.
func (r *run) one(ctx context.Context, l *life, worker int, c client, rnd *rand.Rand) error {
	n := rnd.IntN(partitions * each)
	pk, id := place(n)
	write := func(in input, do func() (result, error)) error {
		in.item = id
		call := r.time()
		res, err := do()
		r.record(l, worker, call, in, output{result: res})
		return err
	}
	look := func() (v int, etag string, err error) {
		call := r.time()
		if v, etag, err = c.read(ctx, n); err == nil {
			r.record(l, worker, call, input{item: id}, output{v: v})
		}
		return v, etag, err
	}
	switch v := int(r.next.Add(1)); rnd.IntN(6) {
	case 0, 1:
		return write(input{kind: create, v: v}, func() (result, error) { return c.create(ctx, n, v) })
	case 2:
		return write(input{kind: remove}, func() (result, error) { return c.remove(ctx, n) })
	case 3:
		from, etag, err := look()
		if err != nil || from == 0 {
			return err
		}
		return write(input{kind: replace, v: v, from: from}, func() (result, error) {
			return c.replace(ctx, n, v, from, etag)
		})
	case 4:
		call := r.time()
		all, err := c.list(ctx, pk)
		if err != nil {
			return err
		}
		for m := range partitions * each {
			if p, id := place(m); p == pk {
				r.record(l, worker, call, input{item: id}, output{v: all[id]})
			}
		}
		return nil
	}
	_, _, err := look()
	return err
}

// serve starts the server and clients for it.
func (r *run) serve(dir, durability string, number int) (*process, *life, func()) {
	p := launch(r.t, dir, durability, "127.0.0.1:0")
	cs, closed := clients(r.t, p.at)
	l := &life{number: number, clients: cs, found: map[string]int{}}
	ctx := context.Background()
	if number == 0 {
		no := cs["nosql"].(*noSQL)
		db, err := no.cl.NewDatabase(database)
		if err != nil {
			r.t.Fatal(err)
		}
		if _, err := no.cl.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: database}, nil); err != nil {
			r.t.Fatal(err)
		}
		def := azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}, Version: 2, Kind: azcosmos.PartitionKeyKindHash}
		props := azcosmos.ContainerProperties{ID: container, PartitionKeyDefinition: def}
		if _, err := db.CreateContainer(ctx, props, nil); err != nil {
			r.t.Fatal(err)
		}
	}
	for n := range partitions * each {
		_, id := place(n)
		v, _, err := cs["nosql"].read(ctx, n)
		if err != nil {
			r.t.Fatal(err)
		}
		l.found[id] = v
	}
	l.begun = r.time()
	return p, l, closed
}

// live lets the workers run for a while, during which the server is killed repeatedly, and returns its lives.
func (r *run) live(dir, durability string, long, every time.Duration) (lives []*life) {
	// without a deadline, which clients would send to the server
	ctx, cancel := context.WithCancel(context.Background())
	defer time.AfterFunc(long, cancel).Stop()
	defer cancel()
	var wg sync.WaitGroup
	for n, api := range []string{"nosql", "table", "mongo"} {
		for w := range workers {
			wg.Go(func() { r.work(ctx, n*workers+w, api) })
		}
	}
	for ctx.Err() == nil {
		p, l, closed := r.serve(dir, durability, len(lives))
		lives = append(lives, l)
		r.now.Store(l)
		time.Sleep(every)
		r.now.Store(nil)
		l.killed = r.time()
		p.kill()
		l.gone = r.time()
		closed()
	}
	wg.Wait()
	return lives
}

// history returns the operations on each item, of one life or, with nil, of all.
func (r *run) history(of *life) map[string][]porcupine.Operation {
	out := map[string][]porcupine.Operation{}
	for _, o := range r.ops {
		in, res := o.Input.(input), o.Output.(output)
		if of != nil && o.life != of {
			continue
		}
		if res.result == unknown { // it took effect before the end of the process, or never
			o.Return = max(o.life.gone, o.Call+1)
		}
		out[in.item] = append(out[in.item], o.Operation)
	}
	return out
}

// relaxed returns the histories of each item in a life. A history begins with the state at the start of the life and
// ends with the state at the start of the next one.
func (r *run) relaxed(l, next *life) map[string][]porcupine.Operation {
	hs := r.history(l)
	for n := range partitions * each {
		_, id := place(n)
		first := input{item: id, kind: found, v: l.found[id]}
		hs[id] = append(hs[id], porcupine.Operation{Input: first, Output: output{}, Call: -2, Return: -1})
		if next != nil {
			at := max(l.begun, l.killed-lossMost.Nanoseconds())
			seen := output{v: next.found[id]}
			hs[id] = append(hs[id], porcupine.Operation{Input: input{item: id}, Output: seen, Call: at, Return: l.gone})
		}
	}
	return hs
}

// judge runs the checker on histories of items.
func judge(t *testing.T, what string, m porcupine.Model, hs map[string][]porcupine.Operation) {
	t.Helper()
	for id, ops := range hs {
		verdict, info := porcupine.CheckOperationsVerbose(m, ops, patience)
		if verdict == porcupine.Ok {
			continue
		}
		t.Errorf("%s: the history of %s, %d operations: %v", what, id, len(ops), verdict)
		if f, err := os.CreateTemp("", "linearize-*.html"); err == nil {
			if err := porcupine.Visualize(m, info, f); err == nil {
				t.Logf("a picture of it is in %s", f.Name())
			}
			_ = f.Close()
		}
	}
}

// The replies to clients of three APIs are linearizable for each item, even if the server is killed. See the package
// comment.
func TestLinearizable(t *testing.T) {
	runs, long, every := 1, 5*time.Second, time.Second
	if s := os.Getenv("ORRERY_LINEARIZE"); s != "" {
		var err error
		if runs, err = strconv.Atoi(s); err != nil {
			t.Fatal("ORRERY_LINEARIZE", err)
		}
		long, every = 20*time.Second, 3*time.Second
	}
	for n := range runs {
		for _, durability := range []string{"sync", "relaxed"} {
			t.Run(durability+"/"+strconv.Itoa(n+1), func(t *testing.T) {
				r := &run{t: t, start: time.Now()}
				dir := t.TempDir()
				lives := r.live(dir, durability, long, every)
				check(t, dir)
				t.Logf("%d operations in %d lives; done, absent, exists, differs, missed, unknown: %v", len(r.ops),
					len(lives), r.told)
				if len(lives) < 2 || len(r.ops) < 100*int(long.Seconds()) {
					t.Error("too little was done to find anything")
				}
				if durability == "sync" {
					judge(t, "all lives", item, r.history(nil))
					return
				}
				for i, l := range lives {
					var next *life
					if i+1 < len(lives) {
						next = lives[i+1]
					}
					judge(t, "life "+strconv.Itoa(i+1), item, r.relaxed(l, next))
				}
			})
		}
	}
}
