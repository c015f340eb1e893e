package script

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/sqlapi/script/wire"
)

// idleTime is how long a worker without a run lives.
const idleTime = time.Minute

// interruptGrace is how much later than its engine a worker is killed: an engine that can be interrupted answers then.
const interruptGrace = 100 * time.Millisecond

// Pool runs programs in worker processes. Safe for concurrent use.
type Pool struct {
	options Options

	// Each holds a value for every run. Functions have places of their own, because a procedure keeps its place while a
	// query of it waits for functions; a function waits for nothing.
	programs, functions chan struct{}

	reads readsBySource

	mu     sync.Mutex
	idle   []*process // the last is taken first, so that the others can end
	live   map[*process]bool
	closed bool
}

// NewPool returns a pool. It starts no process until the first run.
func NewPool(o Options) *Pool {
	o.Workers = cmp.Or(o.Workers, max(runtime.GOMAXPROCS(0), 2))
	o.Memory = cmp.Or(o.Memory, DefaultMemory)
	o.Time = cmp.Or(o.Time, DefaultTime)
	if o.Clock == nil {
		o.Clock = clock.New()
	}
	return &Pool{options: o, programs: make(chan struct{}, o.Workers), functions: make(chan struct{}, o.Workers),
		live: map[*process]bool{}}
}

// Close ends all workers; runs in progress fail. No process of the pool exists when it returns.
func (p *Pool) Close() error {
	p.mu.Lock()
	idle := p.idle
	p.closed, p.idle = true, nil
	busy := maps.Clone(p.live)
	p.mu.Unlock()
	for _, w := range idle {
		delete(busy, w)
		w.idle.Stop()
		p.drop(w)
	}
	for w := range busy {
		w.kill() // its run drops it
		<-w.ended
	}
	return nil
}

var errClosed = &Error{Status: http.StatusServiceUnavailable, Body: "The server is stopping."}

// Run runs a program to its end. It returns an *Error for what the program or its limits did, and the context's error
// when that ended the run. A run that fails has left its operations to the host, who takes them back.
func (p *Pool) Run(ctx context.Context, r Run, h Host) (Result, error) {
	var result Result
	err := p.with(ctx, p.programs, func(ctx context.Context, w *process) (last bool, err error) {
		result, last, err = converse(ctx, w, wire.EncodeRun(p.setting(), &r), h)
		return last, err
	})
	return result, err
}

// setting is what a worker must know for a run that begins now.
func (p *Pool) setting() wire.Setting {
	s := wire.Setting{Time: p.options.Time}
	if c := p.options.Clock; c.Frozen() {
		s.Now = c.Now()
	}
	return s
}

// with calls f with a worker, in a context that ends with the run's time. The worker is killed when the context ends,
// and when f fails with another error than the program's.
func (p *Pool) with(ctx context.Context, places chan struct{},
	f func(context.Context, *process) (last bool, err error)) error {
	select {
	case places <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-places }()
	w, err := p.take()
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, p.options.Time+interruptGrace)
	defer cancel()
	stop := context.AfterFunc(limited, w.kill)
	healthy := false
	defer func() {
		if stop() && healthy {
			p.put(w)
		} else {
			p.drop(w)
		}
	}()
	last, err := f(limited, w)
	var thrown *Error
	if err == nil || errors.As(err, &thrown) {
		healthy = !last
		return err
	}
	return p.died(ctx, limited, w)
}

// memoryTexts are what a worker or its runtime writes when it gets no memory.
var memoryTexts = []string{"out of memory", "annot allocate memory", "cannot map pages", "failed to commit pages",
	"failed to create new OS thread", "pthread_create failed"}

// died says why a worker didn't answer.
func (p *Pool) died(ctx, limited context.Context, w *process) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w.stop()
	p.mu.Lock()
	closed := p.closed
	p.mu.Unlock()
	switch {
	case closed:
		return errClosed
	case limited.Err() != nil:
		return wire.TimeError(p.options.Time)
	case w.stderr.has(memoryTexts...):
		return wire.MemoryError()
	case w.stderr.has("stack overflow", "stack exceeds"):
		return wire.ExceptionError("Error: Out of stack space")
	}
	return wire.ExceptionError("Error: The process of the script has ended")
}

// take returns an idle worker, or a new one.
func (p *Pool) take() (*process, error) {
	if w, err := p.takeIdle(); w != nil || err != nil {
		return w, err
	}
	command := p.options.Command
	if len(command) == 0 {
		if !served.Load() {
			return nil, noWorker(errNotServed)
		}
		name, err := defaultCommand()
		if err != nil {
			return nil, noWorker(err)
		}
		command = []string{name, WorkerCommand}
	}
	w, err := start(command, wire.Limits{Memory: p.options.Memory})
	if err != nil {
		return nil, noWorker(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		w.stop()
		return nil, errClosed
	}
	p.live[w] = true
	return w, nil
}

func noWorker(err error) error {
	return &Error{Status: http.StatusServiceUnavailable,
		Body: fmt.Sprintf("The script could not run, because its process did not start: %v", err)}
}

// takeIdle returns the worker that became idle last, nil if there is none. Those that have died are dropped.
func (p *Pool) takeIdle() (*process, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errClosed
	}
	for len(p.idle) > 0 {
		w := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if w.idle.Stop() && w.alive() {
			return w, nil
		}
		delete(p.live, w)
		w.stop()
	}
	return nil, nil
}

// put makes w idle.
func (p *Pool) put(w *process) {
	p.mu.Lock()
	closed := p.closed
	if !closed {
		if w.idle == nil {
			w.idle = time.AfterFunc(idleTime, func() { p.expire(w) })
		} else {
			w.idle.Reset(idleTime)
		}
		p.idle = append(p.idle, w)
	}
	p.mu.Unlock()
	if closed {
		p.drop(w)
	}
}

// expire ends w, which was idle for long, unless a run has just taken it.
func (p *Pool) expire(w *process) {
	p.mu.Lock()
	i := slices.Index(p.idle, w)
	if i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
	}
	p.mu.Unlock()
	if i >= 0 {
		p.drop(w)
	}
}

// drop ends w, which is not idle.
func (p *Pool) drop(w *process) {
	w.stop()
	p.mu.Lock()
	delete(p.live, w)
	p.mu.Unlock()
}

// converse sends a program to w and answers its operations until it ends.
func converse(ctx context.Context, w *process, f wire.Frame, h Host) (Result, bool, error) {
	reply, err := w.exchange(f)
	for err == nil && reply.Type == wire.TypeOps {
		if err = answer(ctx, w, reply, h); err == nil {
			reply, err = wire.Read(w.out)
		}
	}
	if err != nil {
		return Result{}, true, err
	}
	switch reply.Type {
	case wire.TypeDone:
		return wire.DecodeDone(reply)
	case wire.TypeFault:
		e, last, err := wire.DecodeFault(reply)
		if err != nil {
			return Result{}, true, err
		}
		return Result{}, last, e
	}
	return Result{}, true, fmt.Errorf("%w: type %q of a run's answer", wire.ErrFrame, reply.Type)
}

// answerBytes is how many bytes of answers are gathered before they are sent. The worker takes no more of them before
// it has called the callbacks for those, so that a burst of large reads is never in memory as a whole.
const answerBytes = 4 << 20

// answer performs the operations of a frame and sends the answers.
func answer(ctx context.Context, w *process, f wire.Frame, h Host) error {
	ops, err := wire.DecodeOps(f)
	if err != nil {
		return err
	}
	var answers []wire.Answer
	size := 0
	for i, op := range ops {
		if err := ctx.Err(); err != nil {
			return err
		}
		var a wire.Answer
		a.Reply, a.Err = h.Do(ctx, op)
		answers = append(answers, a)
		if size += len(a.Reply.Body); size < answerBytes && i < len(ops)-1 {
			continue
		}
		if err := w.frames.Write(wire.EncodeAnswers(answers)); err != nil {
			return err
		}
		answers, size = answers[:0], 0
	}
	return nil
}
