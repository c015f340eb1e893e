package admit

import (
	"context"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/orrerydb/orrery/core/status"
)

func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Options{Running: 2, Waiting: 1, Wait: time.Second, Delay: func() time.Duration {
			return 0
		}, Now: time.Now})
		for range 2 {
			if err := g.Enter(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var waited error
		go func() { waited = g.Enter(t.Context()) }()
		synctest.Wait()
		err := g.Enter(t.Context())
		if !status.Is(err, status.TooManyRequests) || status.From(err).RetryAfter <= 0 ||
			status.From(err).Sub != status.SubThrottled {
			t.Errorf("one too many: %v", err)
		}
		g.Leave()
		synctest.Wait()
		if waited != nil || g.Running() != 2 {
			t.Errorf("who waits is let in: %v, %d run", waited, g.Running())
		}
		begun := time.Now()
		if err := g.Enter(t.Context()); !status.Is(err, status.TooManyRequests) || time.Since(begun) != time.Second {
			t.Errorf("a wait that is too long: %v after %v", err, time.Since(begun))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := g.Enter(ctx); err != context.DeadlineExceeded {
			t.Errorf("a wait that its context ends: %v", err)
		}
		g.Leave()
		g.Leave()
		if g.Running() != 0 || g.waiting.Load() != 0 || g.Refused() != 2 {
			t.Errorf("%d run, %d wait, %d were refused", g.Running(), g.waiting.Load(), g.Refused())
		}
	})
}

// TestReturn: a request that gives up its place lets another one in, and then continues whether or not a place is free.
func TestReturn(t *testing.T) {
	g := New(Options{Running: 1, Wait: time.Millisecond, Delay: func() time.Duration { return 0 }})
	enter := func() error { return g.Enter(t.Context()) }
	if err := enter(); err != nil {
		t.Fatal(err)
	}
	g.Leave()
	if err := enter(); err != nil {
		t.Fatal(err)
	}
	g.Return()
	if err := enter(); g.Running() != 2 || err == nil {
		t.Errorf("%d run; the next: %v", g.Running(), err)
	}
	g.Leave()
	if err := enter(); err == nil {
		t.Error("one that is let in though one runs")
	}
	g.Leave()
	if err := enter(); err != nil {
		t.Error(err)
	}
	(*Gate)(nil).Return()
}

func TestNoGate(t *testing.T) {
	var g *Gate
	if err := g.Enter(context.Background()); err != nil || g.Running() != 0 || g.Limit() != 0 || g.Refused() != 0 {
		t.Error("no gate lets all in")
	}
	g.Leave()
}

// machine simulates a server in synthetic time: processors that requests use, and a disk that all requests share.
type machine struct {
	cpu   chan struct{}
	mu    sync.Mutex
	waits []time.Duration // waits for a processor since the last call of delay
}

func (m *machine) compute(d time.Duration) {
	begun := time.Now()
	m.cpu <- struct{}{}
	m.mu.Lock()
	m.waits = append(m.waits, time.Since(begun))
	m.mu.Unlock()
	time.Sleep(d)
	<-m.cpu
}

func (m *machine) delay() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.waits) < fewest {
		return -1
	}
	slices.Sort(m.waits)
	d := m.waits[len(m.waits)*9/10]
	m.waits = m.waits[:0]
	return d
}

// result is what the clients have measured.
type result struct {
	mu       sync.Mutex
	took     []time.Duration // durations of the admitted requests
	refusals []time.Duration
}

func (r *result) median() time.Duration {
	slices.Sort(r.took)
	return r.took[len(r.took)/2]
}

// load runs clients in a loop for a second of synthetic time and ignores the first half. A refused client comes back
// after RetryAfter.
func load(t *testing.T, g *Gate, clients int, request func()) *result {
	r := &result{}
	end, settled := time.Now().Add(time.Second), time.Now().Add(time.Second/2)
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for time.Now().Before(end) {
				begun := time.Now()
				err := g.Enter(t.Context())
				took := time.Since(begun)
				if err == nil {
					request()
					g.Leave()
					took = time.Since(begun)
				}
				if begun.After(settled) {
					r.mu.Lock()
					if err == nil {
						r.took = append(r.took, took)
					} else {
						r.refusals = append(r.refusals, took)
					}
					r.mu.Unlock()
				}
				if err != nil {
					time.Sleep(status.From(err).RetryAfter)
				}
			}
		})
	}
	wg.Wait()
	return r
}

// With ten times as many clients as the gate always admits, admitted requests take at most five times as long, the
// others are refused immediately, and as many are served as without overload.
func TestOverload(t *testing.T) {
	const clients = leastWaiting
	for _, service := range []time.Duration{20 * time.Microsecond, 200 * time.Microsecond} {
		synctest.Test(t, func(t *testing.T) {
			m := &machine{cpu: make(chan struct{}, runtime.GOMAXPROCS(0))}
			// Half of the time of a single request is spent on its way and needs no processor.
			request := func() {
				time.Sleep(service)
				m.compute(service)
			}
			g := New(Options{Running: 1000, Waiting: 1000, Wait: 100 * time.Millisecond, Delay: m.delay, Now: time.Now})
			calm := load(t, g, clients, request)
			if len(calm.refusals) > 0 {
				t.Errorf("service %v: %d refusals of %d clients", service, len(calm.refusals), clients)
			}
			r := load(t, g, 10*clients, request)
			if got, was := r.median(), calm.median(); got > 5*was {
				t.Errorf("service %v: with ten times the clients a request takes %v, before %v (limit %d)", service,
					got, was, g.Limit())
			}
			if len(r.refusals) == 0 || slices.Max(r.refusals) > 10*time.Millisecond {
				t.Errorf("service %v: %d refusals, the latest after %v", service, len(r.refusals),
					slices.Max(r.refusals))
			}
			if len(r.took) < len(calm.took)*9/10 {
				t.Errorf("service %v: %d are served, of %d that can be", service, len(r.took), len(calm.took))
			}
		})
	}
}

// Writers that share syncs of the log need almost no processor time: hundreds of them run at once and none is refused.
func TestGroupCommitIsNoOverload(t *testing.T) {
	for _, clients := range []int{64, 400} {
		synctest.Test(t, func(t *testing.T) {
			m := &machine{cpu: make(chan struct{}, runtime.GOMAXPROCS(0))}
			request := func() {
				m.compute(time.Microsecond)
				time.Sleep(2 * time.Millisecond)
			}
			g := New(Options{Running: 1000, Waiting: 1000, Wait: 10 * time.Millisecond, Delay: m.delay, Now: time.Now})
			r := load(t, g, clients, request)
			if clients == 64 && len(r.refusals) > 0 || g.Limit() < clients {
				t.Errorf("%d writers: %d were refused, limit %d", clients, len(r.refusals), g.Limit())
			}
			if got := r.median(); got > 4*time.Millisecond {
				t.Errorf("%d writers: a write takes %v", clients, got)
			}
		})
	}
}

// Real goroutines, for the race detector: never more than the limit run, and none runs at the end.
func TestConcurrent(t *testing.T) {
	g := New(Options{Running: 4, Waiting: 100, Wait: time.Second, Delay: func() time.Duration { return 0 }})
	var inside, served atomic.Int32
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			for range 200 {
				ctx, cancel := context.Background(), context.CancelFunc(func() {})
				if i%5 == 0 {
					ctx, cancel = context.WithTimeout(ctx, 20*time.Microsecond)
				}
				if g.Enter(ctx) == nil {
					if inside.Add(1) > 4 {
						t.Error("more than the limit are inside")
					}
					runtime.Gosched()
					inside.Add(-1)
					served.Add(1)
					g.Leave()
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if g.Running() != 0 || g.waiting.Load() != 0 || len(g.queue) != 0 || served.Load() == 0 {
		t.Errorf("%d run, %d wait, %d were served", g.Running(), g.waiting.Load(), served.Load())
	}
}

func TestQuantile(t *testing.T) {
	bounds := []float64{0, 1e-6, 1e-3, math.Inf(1)}
	for _, tc := range []struct {
		counts []uint64
		want   time.Duration
	}{
		{[]uint64{0, 0, 0}, -1},
		{[]uint64{0, 15, 0}, -1}, // too few samples
		{[]uint64{91, 9, 0}, time.Microsecond},
		{[]uint64{89, 11, 0}, time.Millisecond},
		{[]uint64{10, 10, 80}, time.Millisecond}, // no upper bound
	} {
		if got := quantile(tc.counts, bounds); got != tc.want {
			t.Errorf("%v: %v, want %v", tc.counts, got, tc.want)
		}
	}
	d := newRuntimeDelay()
	if len(d.before) == 0 {
		t.Error("the runtime tells no waits for a processor")
	}
}

func BenchmarkIdle(b *testing.B) {
	g := New(Options{Running: 1000, Waiting: 100, Wait: time.Second})
	for b.Loop() {
		_ = g.Enter(context.Background())
		g.Leave()
	}
}
