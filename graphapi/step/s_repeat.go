package step

import (
	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// repeatStep runs its body again and again for what the body gives. Rounds are kept in queues, so the graph is walked
// breadth first, as the service does.
//
//	until before repeat(): tested before each round, so it may let a traverser pass without any; after: tested after each.
//	emit  before repeat(): the traversers that enter a round come out, too; after: those that leave one.
type repeatStep struct {
	base
	body                  *traversal
	until, emit           *condition
	times                 int64 // -1: no times()
	hasUntil, hasEmit     bool
	untilFirst, emitFirst bool
	name                  string

	out   []*trav // results that wait, with whole
	again []*trav // traversers that begin another round by way of the tests at its start
	queue map[string]*trav
	held  holder
	stuck bool
	whole bool // the body looks at all traversers of a round together, so it gets all of them before it starts
	fed   bool // the body was given something since it ended last: one with count() would give 0 for nothing
}

// repeat compiles repeat() with the until, emit and times around it; ins begins with one of them.
func (c *compiler) repeat(tr *traversal, ins []gvalue.Instruction) (int, error) {
	s := &repeatStep{times: -1}
	i := 0
	for ; i < len(ins) && ins[i].Op != "repeat"; i++ {
		if !isRepeatMod(ins[i].Op) {
			return 0, errf(Compile, "The step %s() is not followed by repeat()", ins[0].Op)
		}
		if err := c.repeatMod(s, ins[i], true); err != nil {
			return 0, err
		}
	}
	if i == len(ins) {
		return 0, errf(Compile, "The step %s() belongs to a repeat()", ins[0].Op)
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
	outer, outerBody := c.loopDepth, c.bodyDepth
	c.loopDepth, c.bodyDepth = c.depth+1, c.depth+1
	body, err := c.child(in, args[0])
	c.loopDepth, c.bodyDepth = outer, outerBody
	if err != nil {
		return 0, err
	}
	s.body, s.whole = body, body.seesAll()
	for _, b := range body.steps {
		switch b.(type) {
		case *rangeStep, *dedupStep:
			s.whole = true
		}
	}
	for i++; i < len(ins) && isRepeatMod(ins[i].Op); i++ {
		if belongsToNext(ins[i:], s) {
			break
		}
		if err := c.repeatMod(s, ins[i], false); err != nil {
			return 0, err
		}
	}
	tr.add(s)
	return i, nil
}

func isRepeatMod(op string) bool { return op == "until" || op == "emit" || op == "times" }

// belongsToNext sees repeat(a).times(2).emit().repeat(b): a modulator that this repeat has already is the next one's.
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

func (s *repeatStep) doUntil(x *exec, t *trav, first bool) (bool, error) {
	if !s.hasUntil || s.untilFirst != first {
		return false, nil
	}
	if s.until == nil {
		return int64(t.loops.n) >= s.times, nil
	}
	return s.until.test(x, t)
}

func (s *repeatStep) doEmit(x *exec, t *trav, first bool) (bool, error) {
	if !s.hasEmit || s.emitFirst != first {
		return false, nil
	}
	if s.emit == nil {
		return true, nil
	}
	return s.emit.test(x, t)
}

// leave takes the traverser out of this loop's count.
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
		waiting := s.body.head.waiting()
		var t *trav
		var err error
		if s.fed {
			t, err = s.body.end.next(x)
		}
		if err != nil {
			return nil, err
		}
		if t != nil {
			out, err := s.roundEnd(x, t)
			if out != nil || err != nil {
				return out, err
			}
			continue
		}
		// A body with a barrier ends once per round. One that doesn't take its input any more (limit) is at its end.
		if n := s.body.head.waiting(); n > 0 && (n < waiting || !s.stuck) {
			s.stuck = n >= waiting
			continue
		}
		s.stuck, s.fed = false, false
		if s.queue != nil {
			s.queue = nil // all that was queued has gone
		}
		if s.whole {
			if err := s.startAll(x); err != nil {
				return nil, err
			}
			if !s.fed && len(s.out) == 0 {
				return nil, nil
			}
			continue
		}
		out, done, err := s.roundStart(x)
		if out != nil || done || err != nil {
			return out, err
		}
	}
}

// roundEnd takes what the body gave.
func (s *repeatStep) roundEnd(x *exec, t *trav) (*trav, error) {
	if t.loops == nil { // it began inside the body: count() of nothing, inject()
		t.loops = &loopNode{name: s.name}
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
		if err := s.held.hold(x, 1); err != nil {
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

// roundStart begins a round for a traverser that comes back, or for a new one. done is the end of the step.
func (s *repeatStep) roundStart(x *exec) (out *trav, done bool, err error) {
	var t *trav
	if len(s.again) > 0 {
		t = s.again[0]
		s.again[0] = nil
		if s.again = s.again[1:]; len(s.again) == 0 {
			s.held.release()
		}
	} else {
		s.again = nil
		in, err := s.prev.next(x)
		if in == nil || err != nil {
			return nil, true, err
		}
		t = in
		t.loops = &loopNode{name: s.name, prev: in.loops}
	}
	stop, err := s.doUntil(x, t, true)
	if err != nil {
		return nil, false, err
	}
	if stop {
		return leave(t), false, nil
	}
	emit, err := s.doEmit(x, t, true)
	if err != nil {
		return nil, false, err
	}
	if emit {
		out = leave(t)
	}
	return out, false, s.enqueue(x, t.clone())
}

// startAll begins the round for everything that waits: what comes out of the tests is kept for later.
func (s *repeatStep) startAll(x *exec) error {
	for {
		out, done, err := s.roundStart(x)
		if done || err != nil {
			return err
		}
		if out != nil {
			if err := s.held.hold(x, 1); err != nil {
				return err
			}
			s.out = append(s.out, out)
		}
	}
}

// enqueue gives a traverser to the body. Without paths, equal ones in the same round become one of greater bulk: that keeps
// a walk over a dense graph small.
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
			have.bulk = addBulk(have.bulk, t.bulk)
			return nil
		}
		s.queue[string(key)] = t
	}
	if s.body.head.waiting() > maxHeld/2 {
		return errf(Memory, "The traversal exceeds the memory that one request may use")
	}
	t.taken = false
	s.fed = true
	s.body.head.add(t)
	return nil
}

func (s *repeatStep) reset() {
	s.body.reset()
	s.out, s.again, s.queue, s.fed = nil, nil, nil, false
	s.held.release()
}
