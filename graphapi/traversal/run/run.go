package run

import (
	"context"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/graphapi/gremlin"
	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/traversal/compile"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// serviceScript is the largest length of a script in the service, in bytes.
const serviceScript = 64 << 10

// Run evaluates a request and calls emit with each result, one value with a bulk. An error is an *Error, or a
// *status.Error of the core. Results that were emitted and writes before it stay. An error of emit ends the run and is
// returned unchanged.
func Run(ctx context.Context, g *Graph, req *message.Request,
	emit func(v any, bulk int64) error) (stats Stats, err error) {
	if req.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, req.Timeout)
		defer cancel()
	}
	x := &exec{ctx: ctx, g: g, cosmos: req.Service, tokens: req.Tokens, lazy: req.Lazy, mem: memory{budget: g.budget},
		files: files{space: g.space, early: g.early}}
	defer func() {
		x.closeAll()
		stats = x.stats
	}()
	c := &compiler{x: x, binds: req.Bindings, text: req.Script}
	if req.Bytecode != nil {
		return x.stats, clean(c.run(req.Bytecode, 0, x.emitter(emit)))
	}
	if req.Service && len(req.Script) > serviceScript {
		return x.stats, errf(Parse, "The script is longer than %d bytes", serviceScript)
	}
	s, err := g.plans.Parse(req.Script, func(n string) bool { _, ok := req.Bindings[n]; return ok })
	if err != nil {
		var pe *gremlin.Error
		if errors.As(err, &pe) {
			k := Parse
			if pe.Unsupported {
				k = Unsupported
			}
			return x.stats, &Error{Kind: k, Msg: pe.Msg, Line: pe.Line, Col: pe.Col}
		}
		return x.stats, err
	}
	return x.stats, clean(c.script(s, x.sliced(x.emitter(emit))))
}

// clean makes sure that only our errors, the core's and emit's are returned.
func clean(err error) error {
	if err == nil {
		return nil
	}
	var (
		se *Error
		ce *status.Error
		ee *emitError
		rf compile.Refusal
	)
	switch {
	case errors.As(err, &ee):
		return ee.err
	case errors.As(err, &se):
		return se
	case errors.As(err, &ce):
		return ce
	case errors.Is(err, compile.ErrUnsupported):
		return errf(Unsupported, "%s", capital(err.Error()))
	case errors.As(err, &rf):
		return errf(ReadOnly, "%s", rf)
	case errors.Is(err, context.Canceled):
		return status.New(status.Unavailable, "The request was cancelled.")
	case errors.Is(err, context.DeadlineExceeded):
		return errf(Timeout, "A timeout occurred during traversal evaluation of the request")
	}
	return errf(Compile, "%s", capital(err.Error()))
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// emitError carries an error of emit through the steps.
type emitError struct{ err error }

func (e *emitError) Error() string { return e.err.Error() }

// emitter converts values before they are emitted.
func (x *exec) emitter(emit func(v any, bulk int64) error) func(v any, bulk int64) error {
	return func(v any, bulk int64) error {
		if err := emit(x.outward(v), bulk); err != nil {
			return &emitError{err}
		}
		return nil
	}
}

// outward converts internal values to values that clients can receive, and reduces elements to their tokens if
// requested.
func (x *exec) outward(v any) any {
	switch e := v.(type) {
	case *mapEntry:
		return gvalue.MapOf(x.outward(e.k), x.outward(e.v))
	case *gvalue.Vertex:
		if x.tokens {
			return &gvalue.Vertex{ID: e.ID, Label: e.Label}
		}
	case *gvalue.Edge:
		if x.tokens {
			c := *e
			c.Properties, c.Loader, c.Ref = nil, nil, nil
			return &c
		}
	case *gvalue.VertexProperty:
		if x.tokens {
			return &gvalue.VertexProperty{ID: e.ID, Label: e.Label, Value: e.Value}
		}
	case []any:
		return x.outwardList(e)
	case *gvalue.Set:
		out := x.outwardList(e.Items())
		if len(out) > 0 && &out[0] != &e.Items()[0] {
			return gvalue.SetOf(out...)
		}
	case *gvalue.Map:
		for i, en := range e.Entries() {
			e.Entries()[i].Value = x.outward(en.Value)
		}
	case *gvalue.Path:
		if x.tokens {
			return &gvalue.Path{Labels: e.Labels, Objects: x.outwardList(e.Objects)}
		}
	case *gvalue.BulkSet:
		if x.tokens || hasEntries(e) {
			b := &gvalue.BulkSet{}
			for _, i := range e.Items() {
				b.Add(x.outward(i.Value), i.Bulk)
			}
			return b
		}
	}
	return v
}

func hasEntries(b *gvalue.BulkSet) bool {
	for _, i := range b.Items() {
		if _, ok := i.Value.(*mapEntry); ok {
			return true
		}
	}
	return false
}

// outwardList copies the list only if an element changes.
func (x *exec) outwardList(l []any) []any {
	var out []any
	for i, v := range l {
		switch v.(type) {
		case string, int32, int64, float64, bool, nil:
			if out != nil {
				out[i] = v
			}
			continue
		}
		if out == nil {
			out = append([]any{}, l...)
		}
		out[i] = x.outward(v)
	}
	if out == nil {
		return l
	}
	return out
}

// script runs the statements. The value of the last one is the result.
func (c *compiler) script(s *gremlin.Script, emit func(v any, bulk int64) error) error {
	c.x.ends.off = len(s.Stmts) > 1
	for i, st := range s.Stmts {
		last := i == len(s.Stmts)-1
		if st.Assign == "" && !last {
			if err := c.statement(st.Expr, func(any, int64) error { return nil }); err != nil {
				return err
			}
			continue
		}
		if st.Assign == "" {
			return c.statement(st.Expr, emit)
		}
		v, err := c.assigned(st.Expr)
		if err != nil {
			return err
		}
		binds := make(map[string]any, len(c.binds)+1)
		for k, b := range c.binds {
			binds[k] = b
		}
		binds[st.Assign] = v
		c.binds = binds
		if last {
			return emitAll(v, emit)
		}
	}
	return nil
}

// assigned evaluates the right side of an assignment.
func (c *compiler) assigned(expr any) (any, error) {
	switch e := expr.(type) {
	case *gvalue.Bytecode: // a traversal without a terminal method: its value is the list of its results
		return c.subQuery(&gremlin.SubQuery{Code: e, Name: "toList", Count: -1})
	case *gremlin.SubQuery:
		return c.subQuery(e)
	case *gremlin.Expr:
		if e.Op == "?" || e.Op == "?:" {
			part, err := c.choose(e)
			if err != nil {
				return nil, err
			}
			return c.assigned(part)
		}
	}
	v, _, err := c.resolveArg(expr)
	return v, err
}

func (c *compiler) statement(expr any, emit func(v any, bulk int64) error) error {
	switch e := expr.(type) {
	case *gvalue.Bytecode:
		return c.run(e, 0, emit)
	case *gremlin.SubQuery:
		if e.Name == "toList" {
			return c.run(e.Code, 0, emit)
		}
		v, err := c.subQuery(e)
		if err != nil || e.Name == "iterate" {
			return err
		}
		return emitAll(v, emit)
	case *gremlin.Expr:
		if e.Op == "?" || e.Op == "?:" {
			part, err := c.choose(e)
			if err != nil {
				return err
			}
			return c.statement(part, emit)
		}
	}
	v, _, err := c.resolveArg(expr)
	if err != nil {
		return err
	}
	return emitAll(v, emit)
}

// emitAll emits the parts of a script's result: collections and maps are iterated, as in TinkerPop's server.
func emitAll(v any, emit func(v any, bulk int64) error) error {
	switch r := v.(type) {
	case []any, *gvalue.Set, *gvalue.BulkSet:
		for _, i := range listOf(r) {
			if err := emit(i, 1); err != nil {
				return err
			}
		}
		return nil
	case *gvalue.Map:
		for _, e := range r.Entries() {
			if err := emit(&mapEntry{e.Key, e.Value}, 1); err != nil {
				return err
			}
		}
		return nil
	}
	return emit(v, 1)
}

var errStop = errors.New("enough")

// subQuery runs a traversal with a terminal method inside a script and returns its value.
func (c *compiler) subQuery(q *gremlin.SubQuery) (any, error) {
	var out []any
	want := int64(-1)
	switch q.Name {
	case "next":
		want = max(q.Count, -q.Count) // -1 means one result
	case "hasNext", "tryNext":
		want = 1
	}
	if want == 0 {
		return []any{}, nil
	}
	paths, whole, side := c.x.paths, c.x.whole, c.x.side
	lazy := c.x.lazy
	c.x.lazy = false
	defer func() { c.x.lazy = lazy }()
	err := c.run(q.Code, int(max(0, min(want, math.MaxInt32))), func(v any, bulk int64) error {
		for range bulk {
			if err := c.x.hold(v); err != nil {
				return err
			}
			out = append(out, v)
			if int64(len(out)) == want {
				return errStop
			}
		}
		return nil
	})
	c.x.paths, c.x.whole, c.x.side = paths, whole, side
	if err != nil && !errors.Is(err, errStop) {
		return nil, err
	}
	switch q.Name {
	case "hasNext":
		return len(out) > 0, nil
	case "next":
		if q.Count >= 0 {
			return out, nil
		}
		if len(out) == 0 {
			return nil, errf(Runtime, "NoSuchElementException: the traversal has no next result")
		}
		return out[0], nil
	case "tryNext":
		return out, nil
	case "toSet":
		return gvalue.SetOf(out...), nil
	case "iterate":
		return nil, nil
	}
	if out == nil {
		out = []any{}
	}
	return out, nil
}

// run compiles a root traversal and pulls all its results. want is the number of results after which emit ends the run;
// 0: all.
func (c *compiler) run(b *gvalue.Bytecode, want int, emit func(v any, bulk int64) error) error {
	outer := c.config
	c.config = &compile.Config{}
	defer func() { c.config = outer }()
	x := c.x
	x.side, x.paths, x.whole, x.cut = nil, false, false, false
	ctx := x.ctx
	defer func() { x.ctx = ctx }()
	var cancel context.CancelFunc
	timeout, err := c.sourceSteps(b.Source)
	if err != nil {
		return err
	}
	x.seeded = nil
	if seed, ok := gvalue.Integer(c.config.Seed); ok {
		x.seeded = newSeededRandom(seed)
	}
	if timeout > 0 {
		x.ctx, cancel = context.WithTimeout(x.ctx, timeout)
		defer cancel()
	}
	ins, err := c.resolve(b.Steps)
	if err != nil {
		return err
	}
	if ins, err = c.config.Decorate(ins); err != nil {
		return err
	}
	if len(ins) == 0 {
		return errf(Compile, "The traversal has no steps")
	}
	x.whole = x.paths || compile.NeedsWholePaths(ins)
	x.paths = x.whole || compile.NeedsPaths(ins)
	c.want, c.order = want, compile.Counts // after resolve, which may run other traversals
	if want > 0 {
		c.order = compile.Partly
	}
	tr, err := c.compile(ins, true)
	if err != nil {
		return err
	}
	start := &trav{bulk: 1, sack: x.firstSack()}
	tr.head.add(start)
	for {
		t, err := tr.end.next(x)
		if x.cut && err == nil {
			err = x.timeout()
		}
		if t == nil || err != nil {
			return err
		}
		if err := x.tick(); err != nil {
			return err
		}
		if err := emit(t.v, t.bulk); err != nil {
			return err
		}
	}
}

// maxSteps limits the steps of a traversal, including nested ones.
const maxSteps = 20_000

// slice is the number of equal results of a script that are emitted between two checks of the time.
const slice = 512

// sliced emits a script's results in slices. A script's result is written once for each of its bulk, which may take
// longer than the timeout. Bytecode results are written once with their bulk.
func (x *exec) sliced(emit func(v any, bulk int64) error) func(v any, bulk int64) error {
	return func(v any, bulk int64) error {
		for bulk > slice {
			if err := emit(v, slice); err != nil {
				return err
			}
			if x.ctx.Err() != nil {
				return x.timeout()
			}
			bulk -= slice
		}
		return emit(v, bulk)
	}
}

// sourceSteps applies the instructions of the source (with.., strategies) and returns the evaluation timeout that they
// set, 0 if none.
func (c *compiler) sourceSteps(src []gvalue.Instruction) (time.Duration, error) {
	var timeout time.Duration
	for _, in := range src {
		args, _, err := c.resolveList(in.Args)
		if err != nil {
			return 0, err
		}
		switch in.Op {
		case "withStrategies":
			for _, a := range args {
				t, err := c.addStrategy(a)
				if err != nil {
					return 0, err
				}
				timeout = max(timeout, t)
			}
		case "withoutStrategies":
			for _, a := range args {
				switch s := a.(type) {
				case *gvalue.Strategy:
					c.config.Remove(s.Name())
				case gvalue.Class:
					c.config.Remove((&gvalue.Strategy{Class: string(s)}).Name())
				}
			}
		case "with":
			if len(args) < 1 || len(args) > 2 {
				return 0, errf(Compile, "with() takes a name and a value")
			}
			name, ok := args[0].(string)
			if !ok {
				return 0, errf(Compile, "with() takes the name of an option")
			}
			if len(args) == 2 {
				timeout = max(timeout, c.option(name, args[1]))
			}
		case "withPath":
			c.x.paths = true
		case "withBulk":
			c.x.noBulk = len(args) == 1 && args[0] == false
		case "withSideEffect":
			if err := c.withSideEffect(args); err != nil {
				return 0, err
			}
		case "withSack":
			if err := c.withSack(args); err != nil {
				return 0, err
			}
		case "tx":
			return 0, errf(Unsupported, "Transactions over several requests are not supported")
		default:
			return 0, errf(Unsupported, "The source step %s() is not supported", in.Op)
		}
	}
	return timeout, nil
}

func (c *compiler) addStrategy(a any) (time.Duration, error) {
	s, ok := a.(*gvalue.Strategy)
	if !ok {
		if cl, isClass := a.(gvalue.Class); isClass {
			s = &gvalue.Strategy{Class: string(cl), Config: &gvalue.Map{}}
		} else {
			return 0, errf(Compile, "withStrategies() takes strategies, not a %s", typeName(a))
		}
	}
	if s.Name() != "OptionsStrategy" {
		return 0, c.config.Add(s)
	}
	var timeout time.Duration
	for _, e := range s.Config.Entries() {
		if name, ok := e.Key.(string); ok {
			timeout = max(timeout, c.option(name, e.Value))
		}
	}
	return timeout, nil
}

// option applies with(name, value). Unknown options are allowed and have no effect.
func (c *compiler) option(name string, v any) time.Duration {
	switch name {
	case "evaluationTimeout", "scriptEvaluationTimeout":
		if ms, ok := gvalue.Integer(v); ok && ms > 0 && ms < int64(time.Hour/time.Millisecond*24) {
			return time.Duration(ms) * time.Millisecond
		}
	case "materializeProperties":
		if s, ok := v.(string); ok {
			c.x.tokens = s == "tokens"
		}
	}
	return 0
}
