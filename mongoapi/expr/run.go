package expr

import (
	"context"
	"time"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/collate"
	"github.com/orrerydb/orrery/core/spill"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// Run is shared by all computations of one command or cursor. It has the context that can end them and the account of
// their memory. A nil Run never ends and has no limit. It is not safe for concurrent use.
//
// Example: a $map over a large array calls Step for each element. When the client disconnects the context ends, the
// next check in Step returns its error, and the command fails.
type Run struct {
	ctx     context.Context
	bud     *budget.Budget
	space   *spill.Space    // for temporary files; nil: what doesn't fit into memory is refused
	mem     *budget.Account // memory of values that expressions build, and of held values (Hold)
	steps   uint
	cut     error // error of ctx, if it ended during a Match, or that of Fail
	coll    *collate.Collation
	scripts Scripts // nil: JavaScript is off

	keys, docs int // that were read: see Read
}

// Read counts index entries and documents that a source has read.
func (r *Run) Read(keys, docs int) {
	if r != nil {
		r.keys, r.docs = r.keys+keys, r.docs+docs
	}
}

// TakeRead returns what Read has counted since the last call.
func (r *Run) TakeRead() (keys, docs int) {
	if r != nil {
		keys, docs = r.keys, r.docs
		r.keys, r.docs = 0, 0
	}
	return keys, docs
}

// Collation returns the order of strings in the command, nil for that of their bytes.
func (r *Run) Collation() *collate.Collation {
	if r == nil {
		return nil
	}
	return r.coll
}

// Collate sets the order of strings for what is compiled and computed from now on.
func (r *Run) Collate(c *collate.Collation) { r.coll = c }

// NewRun returns a Run under ctx.
func NewRun(ctx context.Context, b *budget.Budget) *Run {
	return &Run{ctx: ctx, bud: b, mem: b.Open("value")}
}

// Spill allows computations to use temporary files when their memory is used up. A nil space forbids it.
func (r *Run) Spill(s *spill.Space) { r.space = s }

// Space returns the space for temporary files, nil when none may be made.
func (r *Run) Space() *spill.Space {
	if r == nil || r.bud == nil {
		return nil
	}
	return r.space
}

// Under replaces the context for later computations. It is needed because a cursor continues to exist when the command
// that opened it has ended.
func (r *Run) Under(ctx context.Context) { r.ctx, r.cut = ctx, nil }

// Context returns a context that delegates to the current one (Under). Readers of a cursor can keep it across commands.
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

// freeHeld is the size in bytes up to which a held value isn't charged.
const freeHeld = 16 << 10

// Hold charges n bytes until Close. It ignores values of up to freeHeld bytes.
func (r *Run) Hold(n int) error {
	if r == nil || n <= freeHeld {
		return nil
	}
	return r.mem.Grow(int64(n))
}

// Held returns the number of charged bytes.
func (r *Run) Held() int64 {
	if r == nil {
		return 0
	}
	return r.mem.Used()
}

// stepsPerLook is the number of steps between two checks of the context: some microseconds of work.
const stepsPerLook = 256

// Step must be called in each loop of unknown length. Every stepsPerLook calls it checks the context and returns its
// error.
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

// array builds an array value within the limits of a run. Its memory is charged while it grows. done returns the value
// and drop ends the charge. The value's user then copies it or lets it go.
type array struct {
	run     *Run
	b       []byte
	at, n   int
	charged int
}

// freeArray is the size in bytes up to which an array isn't charged.
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

// drop returns the array's memory. It must be called in each case, also after an error.
func (a *array) drop() {
	if a.run != nil && a.charged > freeArray {
		a.run.mem.Shrink(int64(a.charged - freeArray))
	}
	a.charged = freeArray
}

func (a *array) done() value.Value { return value.ArrayOf(bson.End(a.b, a.at)) }

// Close returns all held memory. The Run can be used again.
func (r *Run) Close() {
	if r != nil {
		r.mem.Close()
		r.cut = nil
	}
}
