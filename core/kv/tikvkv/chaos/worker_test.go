//go:build unix

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/epk"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/kv/tikvkv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// workerEnv has the address of the store in a worker's environment, and numberEnv its number. No two workers of a run
// have the same one, so no two writes have the same value.
const (
	workerEnv = "ORRERY_CHAOS_WORKER"
	numberEnv = "ORRERY_CHAOS_NUMBER"
)

const (
	registers = 6
	accounts  = 4
	money     = 100             // in each account at first
	deadline  = 6 * time.Second // of each operation
	// bound is the longest time of an operation: the deadline, two seconds in which a commit looks for its outcome, and
	// one for the machine.
	bound    = deadline + 3*time.Second
	openings = 15 * time.Second // the longest time in which a worker must be able to open the store
)

// skews are the differences of the workers' clocks, by their numbers.
var skews = []time.Duration{0, 24 * time.Hour, -5 * time.Minute}

var bg = context.Background()

func TestMain(m *testing.M) {
	if address := os.Getenv(workerEnv); address != "" {
		number, err := strconv.Atoi(os.Getenv(numberEnv))
		if err == nil {
			err = work(address, number)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// event is a line that a worker prints: an operation of one of its users, or a write that begins.
type event struct {
	User  int    `json:"user"`
	Op    string `json:"op"`            // set, get, transfer, sum, tail, move
	Key   string `json:"key,omitempty"` // the register
	Value int64  `json:"value,omitempty"`
	LSN   int64  `json:"lsn,omitempty"`
	Begun int64  `json:"begun"`         // in nanoseconds of the machine's clock, which all processes have in common
	End   int64  `json:"end,omitempty"` // 0: a write that begins
	// Err is the error. Unsure says that a write may have been applied nevertheless.
	Err string `json:"err,omitempty"`
	// Overtaken says that the error is the answer to a write under a condition that doesn't hold any more.
	Overtaken bool `json:"overtaken,omitempty"`
	Unsure    bool `json:"unsure,omitempty"`
	// Wrong is what no fault explains.
	Wrong string `json:"wrong,omitempty"`
}

// worker is one process.
type worker struct {
	number int
	e      *core.Engine
	values atomic.Int64
	stop   atomic.Bool
	mu     sync.Mutex // of the output
}

// work is a worker's life. It ends when its input does.
func work(address string, number int) error {
	w := &worker{number: number}
	w.values.Store(int64(number) * 1_000_000)
	clk := skewed(skews[number%len(skews)])
	if err := w.open(address, clk); err != nil {
		return err
	}
	var users sync.WaitGroup
	for i, f := range []func(user int, r *rand.Rand){w.use, w.use, w.transfer, w.sum, w.tail, w.move} {
		users.Go(func() { f(i, rand.New(rand.NewPCG(uint64(number), uint64(i)))) })
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	w.stop.Store(true)
	users.Wait()
	return w.e.Close()
}

// skewed returns a clock that differs from the machine's, and runs.
func skewed(by time.Duration) *clock.Clock {
	c := clock.Fake(time.Now().Add(by))
	go func() {
		for at := time.Now(); ; {
			time.Sleep(5 * time.Millisecond)
			now := time.Now()
			c.Advance(now.Sub(at))
			at = now
		}
	}()
	return c
}

// open opens the store. While stores fail that may fail too.
func (w *worker) open(address string, clk *clock.Clock) error {
	begun := time.Now()
	for {
		err := w.openOnce(address, clk)
		if err == nil || time.Since(begun) > openings {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (w *worker) openOnce(address string, clk *clock.Clock) error {
	of, err := tikvkv.Open(bg, address, tikvkv.Options{})
	if err != nil {
		return err
	}
	o := core.Options{Clock: clk, Lease: 2 * time.Second, Logger: slog.New(slog.DiscardHandler)}
	if w.e, err = core.Open(bg, of, o); err != nil {
		return errors.Join(err, of.Close())
	}
	return w.e.Announce(core.Announcement{Name: "worker"}) // as servers do
}

func (w *worker) print(e event) {
	line, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = os.Stdout.Write(append(line, '\n'))
}

// do runs one operation, which completes e, and prints it.
func (w *worker) do(e event, f func(ctx context.Context, c *core.Container, e *event) error) {
	e.Begun = time.Now().UnixNano()
	if e.Op == "set" {
		w.print(e)
	}
	ctx, cancel := context.WithTimeout(bg, deadline)
	c, err := w.e.Within(ctx).Container("db", "c") // as each request of a server does
	if err == nil {
		err = f(ctx, c, &e)
	}
	cancel()
	e.End = time.Now().UnixNano()
	if err != nil {
		e.Err, e.Unsure = err.Error(), status.Is(err, status.UnknownOutcome)
		switch status.CodeOf(err) {
		case status.Unavailable, status.UnknownOutcome, status.RetryWith, status.TooManyRequests, status.Timeout:
		case status.PreconditionFailed:
			e.Overtaken = true
		default:
			if !errors.Is(err, context.DeadlineExceeded) {
				e.Wrong = err.Error()
			}
		}
	}
	w.print(e)
}

func registerName(i int) string { return "r" + strconv.Itoa(i) }

// partitionOf returns the partition key of a register.
func partitionOf(register string) string { return "p" + register[1:] }

func parse(format string, args ...any) doc.Doc {
	d, err := doc.FromJSON(nil, fmt.Appendf(nil, format, args...), doc.JSONOptions{Names: doc.NoSQL})
	if err != nil {
		panic(err)
	}
	return d
}

func register(key string, v int64) doc.Doc {
	return parse(`{"id":%q,"pk":%q,"v":%d,"u":%q}`, key, partitionOf(key), v, key)
}

func account(i int, n int64) doc.Doc {
	return parse(`{"id":"a%d","pk":"bank","money":%d,"u":"a%d"}`, i, n, i)
}

func key(pk string) core.PartitionKey { return core.PartitionKey{value.StringOf(pk)} }

// use reads and writes registers.
func (w *worker) use(user int, r *rand.Rand) {
	for !w.stop.Load() {
		k := registerName(r.IntN(registers))
		switch r.IntN(4) {
		case 0:
			w.set(user, k, nil)
		case 1: // replace the version that was read before
			if was := w.get(user, k); was != nil {
				w.set(user, k, was)
			}
		default:
			w.get(user, k)
		}
	}
}

// set writes a register; with was only if that is its version.
func (w *worker) set(user int, k string, was *core.Item) {
	w.do(event{User: user, Op: "set", Key: k, Value: w.values.Add(1)},
		func(ctx context.Context, c *core.Container, e *event) error {
			write := core.Write{Kind: core.Upsert, Doc: register(k, e.Value)}
			if was != nil {
				write.Kind = core.Replace
				write.Check = func(it *core.Item) error {
					if it == nil || it.LSN != was.LSN {
						return status.New(status.PreconditionFailed, "another version")
					}
					return nil
				}
			}
			res, err := c.Write(ctx, write)
			e.LSN = res.LSN
			return err
		})
}

func (w *worker) get(user int, k string) (it *core.Item) {
	w.do(event{User: user, Op: "get", Key: k}, func(ctx context.Context, c *core.Container, e *event) (err error) {
		if it, err = c.Read(ctx, key(partitionOf(k)), value.StringOf(k)); err != nil {
			it = nil
			return err
		}
		e.Value, e.LSN = doc.Get(it.Doc, "v").Int(), it.LSN
		return nil
	})
	return it
}

// transfer moves money from one account to another.
func (w *worker) transfer(user int, r *rand.Rand) {
	for !w.stop.Load() {
		from := r.IntN(accounts)
		to := (from + 1 + r.IntN(accounts-1)) % accounts
		w.do(event{User: user, Op: "transfer"}, func(ctx context.Context, c *core.Container, _ *event) error {
			_, err := c.WithTx(ctx, key("bank"), func(tx *core.Tx) error {
				for i, n := range map[int]int64{from: -1, to: 1} {
					it, err := tx.Read(value.StringOf(fmt.Sprint("a", i)))
					if err != nil {
						return err
					}
					d := account(i, doc.Get(it.Doc, "money").Int()+n)
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
func (w *worker) sum(user int, r *rand.Rand) {
	for !w.stop.Load() {
		w.do(event{User: user, Op: "sum"}, func(ctx context.Context, c *core.Container, e *event) error {
			sum, err := total(ctx, c)
			if err == nil && sum != accounts*money {
				e.Wrong = fmt.Sprintf("the accounts hold %d", sum)
			}
			return err
		})
		time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
	}
}

func total(ctx context.Context, c *core.Container) (sum int64, err error) {
	rows, err := c.Query(ctx, &exec.Query{PK: key("bank")})
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		sum += doc.Get(rows.Item().Doc, "money").Int()
	}
	return sum, rows.Err()
}

// tail reads the feed. Versions of a logical partition come in the order of their LSNs.
func (w *worker) tail(user int, r *rand.Rand) {
	pos, passed := feed.Start(), map[string]int64{}
	for !w.stop.Load() {
		w.do(event{User: user, Op: "tail"}, func(ctx context.Context, c *core.Container, e *event) error {
			page, err := c.Feed(ctx, feed.Scope{}, pos, 20)
			if err != nil {
				return err
			}
			for _, it := range page.Items {
				pk := it.PK()[0].Str()
				if it.LSN < passed[pk] {
					e.Wrong = fmt.Sprintf("the feed has %s of LSN %d after LSN %d", it.ID().Str(), it.LSN, passed[pk])
				}
				passed[pk] = it.LSN
			}
			pos = page.Next
			return nil
		})
		time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
	}
}

// move splits and joins slots from time to time. Some of that isn't possible, and is refused.
func (w *worker) move(user int, r *rand.Rand) {
	ats := epk.Split(epk.V2, 8)
	for !w.stop.Load() {
		time.Sleep(time.Duration(r.IntN(4000)) * time.Millisecond)
		w.do(event{User: user, Op: "move"}, func(ctx context.Context, c *core.Container, _ *event) error {
			at, change := ats[r.IntN(len(ats))], c.SplitSlot
			if r.IntN(2) == 0 {
				change = c.JoinSlots
			}
			err := change(ctx, at)
			if status.Is(err, status.BadRequest) || status.Is(err, status.NotFound) {
				err = nil
			}
			return err
		})
	}
}
