package run

import (
	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/traversal/compile"
)

// repeatStep runs its body repeatedly: the results of one round are the input of the next. The traversers of a round
// wait in queues, so the graph is traversed breadth first, as in the service.
//
//	until before repeat(): tested before each round, so a traverser may pass without any round
//	until after it: tested after each round
//	emit  before repeat(): traversers that enter a round are also returned; after it: those that leave a round
//
// Example: V('a').repeat(out()).emit().times(2), where a -> b and b -> c. Round 1 turns a into b, which is emitted and
// enters round 2. Round 2 turns b into c. c has reached times(2), so it leaves. The results are b and c.
type repeatStep struct {
	base
	body                  *traversal
	until, emit           *condition
	times                 int64 // -1: no times()
	hasUntil, hasEmit     bool
	untilFirst, emitFirst bool
	name                  string

	out   []*trav          // results that wait to be returned; with whole
	again []*trav          // traversers that begin another round with the tests at its start
	queue map[string]*trav // waiting traversers with which equal ones can still be merged
	held  holder
	outer *loopNode // the counter of the repeat() around this one
	fed   bool      // the body got input since it last ended; without input a count() would return 0

	// whole says that the body processes all traversers of a round together (order, count, limit, ..). The body then
	// gets all of a round before it starts, and its results wait in pending for the next round.
	//
	// many also works round by round, with a batch of new traversers at a time. Without paths, traversers with
	// different histories that meet at a vertex are merged. This keeps a walk of fixed length over a dense graph small.
	whole   bool
	many    bool
	batch   int
	round   int // number of completed rounds
	pending []*trav
}

// repeat compiles repeat() with its until, emit and times. ins begins with one of them.
func (c *compiler) repeat(tr *traversal, ins []gvalue.Instruction) (int, error) {
	s := &repeatStep{times: -1}
	i := 0
	for ; i < len(ins) && ins[i].Op != "repeat"; i++ {
		if !isRepeatMod(ins[i].Op) {
			return 0, errf(Compile, "The repeat()-traversal was not defined: the step %s() is not followed by repeat()",
				ins[0].Op)
		}
		if err := c.repeatMod(s, ins[i], true); err != nil {
			return 0, err
		}
	}
	if i == len(ins) {
		return 0, errf(Compile, "The repeat()-traversal was not defined: the step %s() belongs to a repeat()",
			ins[0].Op)
	}
	in := &inst{op: "repeat", args: ins[i].Args}
	args := in.args
	if len(args) == 2 {
		name, ok := args[0].(string)
		if !ok {
			return 0, in.argErr("the name of the loop is a string")
		}
		s.name, args = name, args[1:]
	}
	if len(args) != 1 {
		return 0, in.argErr("a traversal is expected")
	}
	outer, order := c.bodyDepth, c.order
	c.bodyDepth, c.order = c.depth+1, c.orderFor(ins[i+1:])
	body, err := c.child(in, args[0])
	c.bodyDepth, c.order = outer, order
	if err != nil {
		return 0, err
	}
	s.body, s.whole = body, body.has(seesRound)
	for i++; i < len(ins) && isRepeatMod(ins[i].Op); i++ {
		if belongsToNext(ins[i:], s) {
			break
		}
		if err := c.repeatMod(s, ins[i], false); err != nil {
			return 0, err
		}
	}
	s.many = !c.x.paths && s.times >= 0 && !s.hasEmit
	if !s.whole && !s.many {
		body.head.held = &s.held
	}
	tr.add(s)
	return i, nil
}

// maxBatch is the number of traversers that go through the rounds of a repeat() together if it doesn't need all of
// them. The first batch has one, and each batch is larger than the previous one, so that a query for few results waits
// only for few.
const (
	maxBatch  = 2500
	moreBatch = 8
)

func isRepeatMod(op string) bool { return op == "until" || op == "emit" || op == "times" }

// belongsToNext reports whether a modulator belongs to the next repeat: in repeat(a).times(2).emit().repeat(b), this
// repeat already has such a modulator.
func belongsToNext(ins []gvalue.Instruction, s *repeatStep) bool {
	switch ins[0].Op {
	case "emit":
		if !s.hasEmit {
			return false
		}
	default:
		if !s.hasUntil {
			return false
		}
	}
	for _, in := range ins {
		if in.Op == "repeat" {
			return true
		}
		if !isRepeatMod(in.Op) {
			return false
		}
	}
	return false
}

func (c *compiler) repeatMod(s *repeatStep, m gvalue.Instruction, first bool) error {
	in := &inst{op: m.Op, args: m.Args}
	order := c.order
	c.order = compile.Partly // a condition is true at its first result
	defer func() { c.order = order }()
	switch m.Op {
	case "times":
		if len(m.Args) != 1 {
			return in.argErr("a number is expected")
		}
		n, err := in.intArg(m.Args[0])
		if err != nil {
			return err
		}
		if s.hasUntil {
			return errf(Compile, "The repeat() has two until() or times()")
		}
		s.times, s.hasUntil, s.untilFirst = n, true, first
		return nil
	case "until":
		if s.hasUntil {
			return errf(Compile, "The repeat() has two until() or times()")
		}
		if len(m.Args) != 1 {
			return in.argErr("a traversal is expected")
		}
		cond, err := c.repeatCondition(in)
		s.until, s.hasUntil, s.untilFirst = cond, true, first
		return err
	}
	if s.hasEmit {
		return errf(Compile, "The repeat() has two emit()")
	}
	s.hasEmit, s.emitFirst = true, first
	if len(m.Args) == 0 {
		return nil
	}
	cond, err := c.repeatCondition(in)
	s.emit = cond
	return err
}

// repeatCondition compiles the traversal or predicate of until() and emit().
func (c *compiler) repeatCondition(in *inst) (*condition, error) {
	if p, ok := in.args[0].(*gvalue.P); ok {
		return c.conditionOf(&gvalue.Bytecode{Steps: []gvalue.Instruction{{Op: "is", Args: []any{p}}}})
	}
	return c.condition(in, in.args[0])
}

// doUntil reports whether until() or times() ends the loop for t. first: the test is the one before a round.
func (s *repeatStep) doUntil(x *exec, t *trav, first bool) (bool, error) {
	if !s.hasUntil || s.untilFirst != first {
		return false, nil
	}
	if s.until == nil {
		return int64(t.loops.n) >= s.times, nil
	}
	return s.until.test(x, t)
}

// doEmit reports whether emit() returns t although it goes on. first: the test is the one before a round.
func (s *repeatStep) doEmit(x *exec, t *trav, first bool) (bool, error) {
	if !s.hasEmit || s.emitFirst != first {
		return false, nil
	}
	if s.emit == nil {
		return true, nil
	}
	return s.emit.test(x, t)
}

// leave removes this loop's counter from the traverser.
func leave(t *trav) *trav {
	n := t.clone()
	n.loops = t.loops.prev
	return n
}

func (s *repeatStep) next(x *exec) (*trav, error) {
	for {
		if err := x.tick(); err != nil {
			return nil, err
		}
		if len(s.out) > 0 {
			t := s.out[0]
			s.out = s.out[1:]
			return t, nil
		}
		if s.fed {
			t, err := s.body.end.next(x)
			if err != nil {
				return nil, err
			}
			if t == nil {
				s.endRound()
				continue
			}
			out, err := s.roundEnd(x, t)
			if out != nil || err != nil {
				return out, err
			}
			continue
		}
		if s.whole || s.many {
			more, err := s.startAll(x)
			if !more || err != nil {
				return nil, err
			}
			continue
		}
		out, done, err := s.roundStart(x)
		if out != nil || done || err != nil {
			return out, err
		}
	}
}

// endRound prepares the body for further traversers after it has returned everything. The rest of its queue isn't
// needed.
func (s *repeatStep) endRound() {
	s.fed, s.queue = false, nil
	s.body.nextRound()
	s.round++
	if len(s.again) == 0 && len(s.pending) == 0 {
		s.held.release()
	}
}

// nextRound implements rounder, for a repeat() inside another.
func (s *repeatStep) nextRound() { s.reset() }

// roundEnd processes a result of the body.
func (s *repeatStep) roundEnd(x *exec, t *trav) (*trav, error) {
	if t.loops == nil { // it was created in the body: count() without input
		t.loops = &loopNode{n: s.round, name: s.name, prev: s.outer}
	}
	t.loops = &loopNode{n: t.loops.n + 1, name: t.loops.name, prev: t.loops.prev}
	done, err := s.doUntil(x, t, false)
	if err != nil {
		return nil, err
	}
	if done {
		return leave(t), nil
	}
	emit, err := s.doEmit(x, t, false)
	if err != nil {
		return nil, err
	}
	if s.untilFirst || s.emitFirst {
		if err := s.held.keep(x, t); err != nil {
			return nil, err
		}
		s.again = append(s.again, t)
	} else if err := s.enqueue(x, t); err != nil {
		return nil, err
	}
	if emit {
		return leave(t), nil
	}
	return nil, nil
}

// roundStart begins a round for a traverser of the last round or for a new one. done is true at the end of the step.
func (s *repeatStep) roundStart(x *exec) (out *trav, done bool, err error) {
	if len(s.again) > 0 {
		t := s.again[0]
		s.again[0] = nil
		s.again = s.again[1:]
		if !x.paths {
			s.held.drop(t)
		}
		out, err = s.enter(x, t)
		return out, false, err
	}
	s.again = nil
	t, err := s.arrive(x)
	if t == nil || err != nil {
		return nil, true, err
	}
	out, err = s.enter(x, t)
	return out, false, err
}

// arrive takes a new traverser, nil if there is none.
func (s *repeatStep) arrive(x *exec) (*trav, error) {
	t, err := s.prev.next(x)
	if t == nil || err != nil {
		return nil, err
	}
	s.outer, s.round = t.loops, 0
	t.loops = &loopNode{name: s.name, prev: t.loops}
	return t, nil
}

// enter applies the tests before a round. A traverser that passes them becomes input of the body.
func (s *repeatStep) enter(x *exec, t *trav) (out *trav, err error) {
	stop, err := s.doUntil(x, t, true)
	if err != nil {
		return nil, err
	}
	if stop {
		return leave(t), nil
	}
	emit, err := s.doEmit(x, t, true)
	if err != nil {
		return nil, err
	}
	if emit {
		out = leave(t)
	}
	return out, s.enqueue(x, t.clone())
}

// startAll begins a round with all its traversers: the results of the last round, or if there are none, all new ones.
// The results of the tests are kept in out. more is false if there is nothing to do.
func (s *repeatStep) startAll(x *exec) (more bool, err error) {
	back := s.again
	s.again = nil
	fresh := len(back) == 0 && len(s.pending) == 0
	for _, t := range back {
		if !x.paths {
			s.held.drop(t)
		}
		if err := s.enterWith(x, t); err != nil {
			return false, err
		}
	}
	if fresh {
		s.batch = min(max(s.batch*moreBatch, 1), maxBatch)
	}
	for n := 0; fresh && (s.whole || n < s.batch); n++ {
		t, err := s.arrive(x)
		if err != nil {
			return false, err
		}
		if t == nil {
			break
		}
		if err := s.enterWith(x, t); err != nil {
			return false, err
		}
	}
	for _, t := range s.pending {
		if !x.paths {
			s.held.drop(t)
		}
		s.body.head.add(t)
	}
	s.fed, s.pending, s.queue = len(s.pending) > 0, nil, nil
	return s.fed || len(s.out) > 0, nil
}

func (s *repeatStep) enterWith(x *exec, t *trav) error {
	out, err := s.enter(x, t)
	if out == nil || err != nil {
		return err
	}
	s.out = append(s.out, out)
	return s.held.keep(x, out)
}

// enqueue adds a traverser to the body's input. Without paths, equal traversers in a round are merged into one with a
// larger bulk, which keeps a walk over a dense graph small.
func (s *repeatStep) enqueue(x *exec, t *trav) error {
	if !x.paths && t.sack == nil && !x.noBulk && isMergeable(t.v) {
		key := appendKey(nil, t.v)
		for l := t.loops; l != nil; l = l.prev {
			key = append(key, byte(l.n), byte(l.n>>8), byte(l.n>>16), byte(l.n>>24))
		}
		if s.queue == nil {
			s.queue = map[string]*trav{}
		}
		if have, ok := s.queue[string(key)]; ok && !have.taken {
			if sum, fits := addBulk(have.bulk, t.bulk); fits {
				have.bulk = sum
				return nil
			}
		}
		s.queue[string(key)] = t
	}
	t.taken = false
	if err := s.held.keep(x, t); err != nil {
		return err
	}
	if s.whole || s.many {
		s.pending = append(s.pending, t)
		return nil
	}
	s.fed = true
	s.body.head.add(t)
	return nil
}

func (s *repeatStep) reset() {
	s.body.reset()
	s.out, s.again, s.pending, s.queue, s.fed, s.round, s.outer = nil, nil, nil, nil, false, 0, nil
	s.batch = 0
	s.held.release()
}
