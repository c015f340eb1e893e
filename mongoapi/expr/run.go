package expr

import (
	"context"
	"time"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/spill"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// Run is what all that is computed for one command, or one cursor, shares: the context that may end it, and the
// memory that it may take. A nil Run has no end and no limit. One goroutine at a time uses it.
type Run struct {
	ctx   context.Context
	bud   *budget.Budget
	space *spill.Space    // of files; nil: what doesn't fit into memory is refused
	mem   *budget.Account // what expressions build, and what is held: see Hold
	steps uint
	cut   error // of ctx, when it ended within a Match
}

// NewRun returns a Run under ctx.
func NewRun(ctx context.Context, b *budget.Budget) *Run {
	return &Run{ctx: ctx, bud: b, mem: b.Open("value")}
}

// Spill lets what is computed use temporary files when its memory is used up; a nil space takes that away.
func (r *Run) Spill(s *spill.Space) { r.space = s }

// Space is where temporary files may be made; nil when none may.
func (r *Run) Space() *spill.Space {
	if r == nil || r.bud == nil {
		return nil
	}
	return r.space
}

// Under puts what is computed from now on under another context: a cursor lives on when the command that opened it
// has ended.
func (r *Run) Under(ctx context.Context) { r.ctx, r.cut = ctx, nil }

// Context is a context that follows Under: what reads for a cursor keeps it from command to command.
func (r *Run) Context() context.Context {
	if r == nil {
		return context.Background()
	}
	return following{r}
}

type following struct{ r *Run }

// Deadline implements context.Context.
func (f following) Deadline() (time.Time, bool) { return f.r.ctx.Deadline() }

// Done implements context.Context.
func (f following) Done() <-chan struct{} { return f.r.ctx.Done() }

// Err implements context.Context.
func (f following) Err() error { return f.r.ctx.Err() }

// Value implements context.Context.
func (f following) Value(key any) any { return f.r.ctx.Value(key) }

// Open opens an account of the memory budget. What names it in errors.
func (r *Run) Open(what string) *budget.Account {
	if r == nil {
		return nil
	}
	return r.bud.Open(what)
}

// freeHeld is how much may be held in one piece before the budget is asked, in bytes.
const freeHeld = 16 << 10

// Hold counts n bytes that are held until Close. A small piece isn't counted.
func (r *Run) Hold(n int) error {
	if r == nil || n <= freeHeld {
		return nil
	}
	return r.mem.Grow(int64(n))
}

// Held is the number of bytes that are counted.
func (r *Run) Held() int64 {
	if r == nil {
		return 0
	}
	return r.mem.Used()
}

// stepsPerLook is how many steps are made between two looks at the context: some microseconds of work.
const stepsPerLook = 256

// Step is called where something runs in a loop of unknown length. Now and then it gives the error of a context that
// has ended.
func (r *Run) Step() error {
	if r == nil {
		return nil
	}
	if r.steps++; r.steps%stepsPerLook != 0 {
		return nil
	}
	return r.ctx.Err()
}

// maxValue is the largest value that an expression may build, in bytes.
const maxValue = 64 << 20

// array builds an array within the limits of a run. What it takes is given back at done: the value then is its
// user's, who copies it or drops it.
type array struct {
	run     *Run
	b       []byte
	at, n   int
	charged int
}

// freeArray is how long an array may grow before the budget is asked.
const freeArray = 16 << 10

func newArray(e *Env) array {
	a := array{run: e.Run, charged: freeArray}
	a.at, a.b = bson.Begin(nil)
	return a
}

// add appends an element.
func (a *array) add(v value.Value) error {
	if a.b = value.AppendIndexed(a.b, a.n, v); len(a.b) > a.charged {
		if err := a.charge(); err != nil {
			return err
		}
	}
	a.n++
	return a.run.Step()
}

func (a *array) charge() error {
	if len(a.b) > maxValue {
		return merr.New(merr.ExceededMemoryLimit, "an expression made an array of more than %d bytes", maxValue)
	}
	if a.run == nil {
		return nil
	}
	n := max(len(a.b)-a.charged, freeArray, len(a.b)/4)
	if err := a.run.mem.Grow(int64(n)); err != nil {
		return err
	}
	a.charged += n
	return nil
}

// drop gives back what the array took; it is called whatever came of it.
func (a *array) drop() {
	if a.run != nil && a.charged > freeArray {
		a.run.mem.Shrink(int64(a.charged - freeArray))
	}
	a.charged = freeArray
}

func (a *array) done() value.Value { return value.ArrayOf(bson.End(a.b, a.at)) }

// Close gives back all that is held. The Run may be used again.
func (r *Run) Close() {
	if r != nil {
		r.mem.Close()
	}
}
