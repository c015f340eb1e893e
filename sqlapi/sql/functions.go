package sql

import (
	"context"
	"slices"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// Functions evaluates the user-defined functions of a container. It must be safe for concurrent use.
type Functions interface {
	// Has reports whether there is a function of this name.
	Has(name string) bool
	// Call evaluates a function for each list of arguments. A list is a JSON array, in which the word undefined may
	// also be an element. A value is JSON, or nil for undefined. The error is that of the first call that fails; it
	// ends the query.
	Call(ctx context.Context, name string, args [][]byte) ([][]byte, error)
	// Reads returns for each parameter which properties the function can read of an object there; nil: all. Objects
	// that have only these properties give the same value. It returns nil where that isn't known, or not known yet.
	Reads(name string) [][]string
}

// maxFunctionCalls is the most references to user-defined functions in one query.
const maxFunctionCalls = 10

// calls is the state of an execution's user-defined functions. A call costs a message to another process, so the rows
// of a query are read ahead in batches (lookahead), and all calls of a batch are made together: each row is first run
// dry, without effects, which only finds out the calls that it makes.
type calls struct {
	functions Functions
	names     []string
	row       int                    // number of the current row in its batch
	known     map[string]value.Value // values of the batch's calls, by row, function and arguments
	dry       bool                   // the current row is run dry
	missed    []missedCall           // by dry runs since the last message
	key       []byte
	args      []byte     // lists of arguments of calls that are not made yet
	rows      int        // of the batch
	stopped   error      // of a call that has exceeded a limit
	parts     [][][]part // what is sent of an object, by function and argument; nil: all of it
}

// missedCall is a call whose value isn't known yet.
type missedCall struct {
	function int
	row      int
	key      string
	args     []byte
}

// maxKnown bounds the values that calls outside of batches leave.
const maxKnown = 4096

// function returns the number of a user-defined function, and counts the reference.
func (c *compiler) function(e *syntax.Call) int {
	if c.calls++; c.calls > maxFunctionCalls {
		c.failAt(e, syntax.CodeNotSupported, "The query refers to user defined functions more than %d times.",
			maxFunctionCalls)
	}
	for i, name := range c.functions {
		if name == e.Name {
			return i
		}
	}
	c.functions = append(c.functions, e.Name)
	return len(c.functions) - 1
}

// userDefined compiles the call of a user-defined function. It is never evaluated at compile time: the function can
// change, and needn't give the same value twice.
func (c *compiler) userDefined(e *syntax.Call) cexpr {
	args, n := c.exprs(e.Args), c.function(e)
	return cexpr{fn: func(f *frame) value.Value {
		u, base := f.calls, len(f.args)
		missed := len(u.missed)
		for i := range args {
			var v value.Value
			if !args[i].whole || !f.onItem() {
				v = args[i].fn(f)
			}
			f.args = append(f.args, v)
		}
		var v value.Value
		if len(u.missed) == missed { // else the arguments aren't known yet
			v = u.call(f, n, args, f.args[base:])
		}
		f.args = f.args[:base]
		return v
	}}
}

// checkFunctions refuses a program that refers to a function that doesn't exist.
func (p *program) checkFunctions(fns Functions) error {
	for _, name := range p.functions {
		if fns == nil || !fns.Has(name) {
			err := syntax.PlainError("The user defined function '%s' does not exist.", syntax.Clip(name))
			err.Code = syntax.CodeFunction
			return err
		}
	}
	return nil
}

// newCalls returns the state of an execution's functions, nil when the query has none.
func (p *program) newCalls(env *Env) *calls {
	if len(p.functions) == 0 {
		return nil
	}
	u := &calls{functions: env.Functions, names: p.functions, known: map[string]value.Value{},
		parts: make([][][]part, len(p.functions))}
	u.begin()
	return u
}

// begin forgets all values. What is sent of objects can change then, and with it the keys of values.
func (u *calls) begin() {
	clear(u.known)
	for n, name := range u.names {
		if u.parts[n] != nil {
			continue
		}
		for _, names := range u.functions.Reads(name) {
			u.parts[n] = append(u.parts[n], partsFor(names))
		}
	}
}

// call returns the value of a function in the current row. In a dry run an unknown value is undefined.
func (u *calls) call(f *frame, function int, exprs []cexpr, args []value.Value) value.Value {
	if f.err != nil {
		return value.Value{}
	}
	u.key = append(u.key[:0], byte(function), byte(u.row), byte(u.row>>8))
	u.key = u.appendArguments(u.key, f, function, exprs, args, true)
	if v, ok := u.known[string(u.key)]; ok {
		return v
	}
	from := len(u.args)
	u.args = u.appendArguments(u.args, f, function, exprs, args, false)
	if u.dry && from == 0 {
		u.args = roomFor(u.args, u.rows)
	}
	miss := missedCall{function, u.row, string(u.key), u.args[from:len(u.args):len(u.args)]}
	if u.dry {
		u.missed = append(u.missed, miss)
		return value.Value{}
	}
	u.args = u.args[:0]
	if u.stopped != nil {
		f.fail(u.stopped)
		return value.Value{}
	}
	if len(u.known) >= maxKnown {
		u.begin()
	}
	if err := u.send(f.done, function, []missedCall{miss}); err != nil {
		f.fail(err)
	}
	return u.known[miss.key]
}

// send evaluates calls of one function.
func (u *calls) send(ctx context.Context, function int, batch []missedCall) error {
	args := make([][]byte, len(batch))
	for i, m := range batch {
		args[i] = m.args
	}
	values, err := u.functions.Call(ctx, u.names[function], args)
	if err != nil {
		return err
	}
	for i, text := range values {
		var v value.Value
		if text != nil {
			if v, err = doc.ValueFromJSON(text); err != nil {
				return err
			}
		}
		u.known[batch[i].key] = v
	}
	return nil
}

// sendMissed evaluates the calls that dry runs have missed, one message for each function. It reports whether all
// values are known then. A call that fails is left out: the row that needs its value fails when it is run, unless its
// filter never comes to it. After a call that has exceeded its time no further ones are made.
func (u *calls) sendMissed(ctx context.Context) bool {
	whole := true
	for n := range u.names {
		var batch []missedCall
		for _, m := range u.missed {
			if m.function == n {
				batch = append(batch, m)
			}
		}
		if len(batch) == 0 {
			continue
		}
		if err := u.send(ctx, n, batch); err != nil {
			whole = false
			if status.Is(err, status.Timeout) || status.Is(err, status.Forbidden) {
				u.stopped = err
				break
			}
		}
	}
	u.missed, u.args = u.missed[:0], u.args[:0]
	return whole
}

// The batches of lookahead. A page reads few rows beyond its end.
const (
	leastAhead = 16
	mostAhead  = 256
	aheadBytes = 4 << 20 // of items, in one batch
)

// lookahead is a rowSource that reads rows in batches, and evaluates the functions of a batch together.
type lookahead struct {
	src  *coreRows
	r    *runner
	rows []aheadRow
	mem  []byte // of the rows' items
	i    int
	more bool // a batch was read
}

// aheadRow is a row of a batch.
type aheadRow struct {
	item     core.Item
	position string
}

func (s *lookahead) err() error { return s.src.err() }

func (s *lookahead) item() (doc.Doc, *core.Item) {
	it := &s.rows[s.i].item
	return it.Doc, it
}

func (s *lookahead) position() string { return s.rows[s.i].position }

func (s *lookahead) next() bool {
	s.i++
	if s.i >= len(s.rows) && !s.fill() {
		return false
	}
	s.r.f.calls.row = s.i
	return true
}

// roomFor makes room for n texts of which mem has the first one: the others are about as long.
func roomFor(mem []byte, n int) []byte {
	return slices.Grow(mem, min((len(mem)+len(mem)/8)*(n-1), aheadBytes))
}

// size returns how many rows the next batch has. The first one of a page has the rows that the page still takes.
func (s *lookahead) size() int {
	if s.more || s.r.pageSize <= 0 || s.r.p.top.restarts() {
		return mostAhead
	}
	n := s.r.pageSize
	if left := s.r.st.left; left >= 0 {
		n = int(min(int64(n), left+s.r.st.skip))
	}
	return min(max(n, leastAhead), mostAhead)
}

// fill reads a batch. It returns false at the end of the rows.
func (s *lookahead) fill() bool {
	n := s.size()
	s.rows, s.mem, s.i, s.more = s.rows[:0], s.mem[:0], 0, true
	for len(s.rows) < n && len(s.mem) < aheadBytes && s.src.next() {
		var row aheadRow
		_, it := s.src.item()
		if row.item, s.mem = it.CloneTo(s.mem); len(s.rows) == 0 {
			s.mem = roomFor(s.mem, n)
		}
		row.position = s.src.position()
		s.rows = append(s.rows, row)
	}
	if len(s.rows) == 0 {
		return false
	}
	s.prepare()
	return true
}

// prepare runs the rows dry until all their calls are known. The argument of a call can be the value of another one, so
// a row can need several runs.
func (s *lookahead) prepare() {
	f := s.r.f
	u, sink, steps := f.calls, f.sink, f.steps
	u.begin()
	u.rows = len(s.rows)
	u.dry, f.sink = true, s.r.p.top.dryRow
	defer func() { u.dry, f.sink, f.steps = false, sink, steps }()
	todo := make([]int, len(s.rows))
	for i := range todo {
		todo[i] = i
	}
	for len(todo) > 0 && f.done.Err() == nil {
		var again []int
		for _, i := range todo {
			before := len(u.missed)
			u.row = i
			f.setRoot(s.rows[i].item.Doc, &s.rows[i].item)
			s.r.p.top.run(f)
			f.err = nil // it comes again when the row is run
			if len(u.missed) > before {
				again = append(again, i)
			}
		}
		if !u.sendMissed(f.done) {
			return
		}
		todo = again
	}
}

// dryRow evaluates what a row that has passed WHERE would evaluate, without any other effect.
func (cq *cquery) dryRow(f *frame) bool {
	switch {
	case cq.grouped:
		for _, key := range cq.keys {
			key(f)
		}
		for _, a := range cq.group.aggs {
			a.arg(f)
		}
	case cq.write != nil:
		cq.write(f, nil)
	default:
		cq.project(f)
	}
	return f.err == nil
}

// plain returns the rows as the core gives them.
func (r *runner) plain() *coreRows {
	switch src := r.src.(type) {
	case *coreRows:
		return src
	case *lookahead:
		return src.src
	}
	return nil
}

// source returns the rows of the core for a page. A query that calls functions reads them in batches, unless what it
// sees of them are the rows of a sub-query that gathers them all.
func (r *runner) source(plain *coreRows) rowSource {
	if r.f.calls == nil || r.p.top.derived != nil {
		return plain
	}
	return &lookahead{src: plain, r: r}
}
