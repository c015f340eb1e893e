package run

import (
	"slices"

	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// buildChild makes map, flatMap, filter, sideEffect and local with a traversal.
func buildChild(c *compiler, in *inst) (step, error) {
	if in.op == "filter" {
		cond, err := c.condition(in, in.args[0])
		if err != nil {
			return nil, err
		}
		return &filterStep{f: cond.test}, nil
	}
	tr, err := c.child(in, in.args[0])
	if err != nil {
		return nil, err
	}
	switch in.op {
	case "map":
		return &mapStep{f: func(x *exec, t *trav) (any, bool, error) { return tr.first(x, t) }}, nil
	case "sideEffect":
		return &effectStep{f: func(x *exec, t *trav) error { return tr.drain(x, t) }}, nil
	case "flatMap":
		return &branchStep{only: true, pick: func(*exec, *trav) ([]*traversal, error) { return []*traversal{tr}, nil }},
			nil
	}
	return &branchStep{single: true, pick: func(*exec, *trav) ([]*traversal, error) { return []*traversal{tr}, nil }},
		nil
}

// drain runs the traversal to its end.
func (tr *traversal) drain(x *exec, t *trav) error {
	tr.start(t.clone())
	for {
		r, err := tr.end.next(x)
		if r == nil || err != nil {
			return err
		}
		if err := x.tick(); err != nil {
			return err
		}
	}
}

// branchStep sends each traverser through the traversals that pick selects, one after another, and returns their
// results. With only, the path of a result is one object longer than that of the input, whatever happened inside. With
// single, a traverser with bulk n is sent n times with bulk 1.
type branchStep struct {
	base
	pick func(x *exec, t *trav) ([]*traversal, error)
	only bool
	t    *trav
	todo []*traversal
	cur  *traversal

	single bool
	more   int64 // how many more times t is sent
}

func (s *branchStep) next(x *exec) (*trav, error) {
	for {
		if err := x.tick(); err != nil {
			return nil, err
		}
		if s.cur != nil {
			r, err := s.cur.end.next(x)
			if err != nil {
				return nil, err
			}
			if r != nil {
				if s.only {
					n := s.t.split(x, r.v)
					n.bulk, n.sack = r.bulk, r.sack
					return n, nil
				}
				return r, nil
			}
			s.cur = nil
		}
		if len(s.todo) > 0 {
			s.cur, s.todo = s.todo[0], s.todo[1:]
			s.cur.start(s.t.clone())
			continue
		}
		t, err := s.input(x)
		if t == nil || err != nil {
			return nil, err
		}
		if s.todo, err = s.pick(x, t); err != nil {
			return nil, err
		}
		s.t = t
	}
}

func (s *branchStep) input(x *exec) (*trav, error) {
	if s.more > 0 {
		s.more--
		return s.t, nil
	}
	t, err := s.prev.next(x)
	if t != nil && s.single {
		s.more, t.bulk = t.bulk-1, 1
	}
	return t, err
}

func (s *branchStep) reset() {
	s.more = 0
	if s.cur != nil {
		s.cur.reset()
	}
	s.cur, s.todo, s.t = nil, nil, nil
}

// needNoInput are steps that can't begin a traversal of the source, but one of a union() that does. There TinkerPop
// gives them true as input.
//
// Example: g.withSideEffect('m', [..]).union(select('m'), constant([..])).mergeE().
var needNoInput = map[string]bool{"select": true, "constant": true, "identity": true, "coalesce": true, "choose": true}

// buildUnion sends each traverser through all of the traversals. At the start of a request they start themselves.
func buildUnion(c *compiler, in *inst) (step, error) {
	var trs []*traversal
	for _, a := range in.args {
		b, ok := a.(*gvalue.Bytecode)
		if !ok || !in.root {
			tr, err := c.child(in, a)
			if err != nil {
				return nil, err
			}
			trs = append(trs, tr)
			continue
		}
		steps := b.Steps
		if len(steps) > 0 && needNoInput[steps[0].Op] {
			steps = append([]gvalue.Instruction{{Op: "inject", Args: []any{true}}}, steps...)
		}
		tr, err := c.compile(steps, true)
		if err != nil {
			return nil, err
		}
		trs = append(trs, tr)
	}
	return newFork(trs, func(*exec, *trav) ([]*traversal, error) { return trs, nil }), nil
}

// fork sends traversers into branches that keep their state from one traverser to the next: union, choose, branch. If a
// branch has a step that needs all its input before its first result (count, order), all input is distributed first. A
// branch without input returns nothing, not even a count of 0.
//
// Example: g.V().union(count(), out().count()) has 6 vertices as input. count() needs all input, so all 6 go into both
// branches. Then the branches are emptied: 6, and the number of neighbours.
type fork struct {
	base
	branches []*traversal
	fed      []bool // for each branch, whether it got input
	pick     func(x *exec, t *trav) ([]*traversal, error)
	whole    bool
	active   bool
	i        int // the branch whose results are returned
	held     holder
}

func newFork(branches []*traversal, pick func(x *exec, t *trav) ([]*traversal, error)) *fork {
	f := &fork{branches: branches, fed: make([]bool, len(branches)), pick: pick}
	for _, b := range branches {
		f.whole = f.whole || b.has(seesAll)
	}
	return f
}

// has reports whether a step of the traversal, or of its branches, satisfies is.
func (tr *traversal) has(is func(s step) bool) bool {
	for _, s := range tr.steps {
		if is(s) {
			return true
		}
		if f, ok := s.(*fork); ok && slices.ContainsFunc(f.branches, func(b *traversal) bool { return b.has(is) }) {
			return true
		}
	}
	return false
}

// seesAll reports whether a step needs all its input before its first result.
func seesAll(s step) bool {
	switch s := s.(type) {
	case *barrierStep, *orderStep, *groupStep, *reduceStep, *tailStep:
		return true
	case *repeatStep:
		return s.whole
	}
	return false
}

// seesRound reports whether the results of a step in a repeat() depend on which traversers it gets in one round.
func seesRound(s step) bool {
	switch s.(type) {
	case *rangeStep, *dedupStep:
		return true
	}
	return seesAll(s)
}

func (s *fork) next(x *exec) (*trav, error) {
	for {
		if err := x.tick(); err != nil {
			return nil, err
		}
		for s.active && s.i < len(s.branches) {
			if s.fed[s.i] {
				r, err := s.branches[s.i].end.next(x)
				if r != nil || err != nil {
					return r, err
				}
			}
			s.i++
		}
		s.held.release()
		if err := s.feed(x); err != nil || !s.active {
			return nil, err
		}
	}
}

// feed distributes the next traverser, or all of them, to the branches.
func (s *fork) feed(x *exec) error {
	s.active, s.i = false, 0
	clear(s.fed)
	for {
		t, err := s.prev.next(x)
		if t == nil || err != nil {
			return err
		}
		branches, err := s.pick(x, t)
		if err != nil {
			return err
		}
		for _, b := range branches {
			b.head.add(t.clone())
			s.fed[slices.Index(s.branches, b)] = true
		}
		s.active = true
		if !s.whole {
			return nil
		}
		if err := s.held.hold(x, 1, t.size()); err != nil {
			return err
		}
	}
}

func (s *fork) nextRound() {
	s.active = false
	s.held.release()
	for _, b := range s.branches {
		b.nextRound()
	}
}

func (s *fork) reset() {
	s.active = false
	s.held.release()
	for _, b := range s.branches {
		b.reset()
	}
}

// buildCoalesce returns the results of the first traversal that has any.
func buildCoalesce(c *compiler, in *inst) (step, error) {
	trs, err := c.children(in)
	if err != nil {
		return nil, err
	}
	return &firstOf{trs: trs, only: true}, nil
}

// buildOptional returns the traversal's results, or the traverser itself if there are none.
func buildOptional(c *compiler, in *inst) (step, error) {
	tr, err := c.child(in, in.args[0])
	if err != nil {
		return nil, err
	}
	return &firstOf{trs: []*traversal{tr}, self: true}, nil
}

// firstOf returns the results of the first traversal that has any. Each traversal runs at most once, so its writes
// happen once.
type firstOf struct {
	base
	trs        []*traversal
	only, self bool
	t          *trav
	cur        *traversal
}

func (s *firstOf) next(x *exec) (*trav, error) {
	for {
		if s.cur != nil {
			r, err := s.cur.end.next(x)
			if err != nil {
				return nil, err
			}
			if r != nil {
				return s.out(x, r), nil
			}
			s.cur = nil
		}
		t, err := s.prev.next(x)
		if t == nil || err != nil {
			return nil, err
		}
		if err := x.tick(); err != nil {
			return nil, err
		}
		s.t = t
		for _, tr := range s.trs {
			tr.start(t.clone())
			r, err := tr.end.next(x)
			if err != nil {
				return nil, err
			}
			if r != nil {
				s.cur = tr
				return s.out(x, r), nil
			}
		}
		if s.self {
			return t, nil
		}
	}
}

func (s *firstOf) out(x *exec, r *trav) *trav {
	if !s.only {
		return r
	}
	n := s.t.split(x, r.v)
	n.bulk, n.sack = r.bulk, r.sack
	return n
}

func (s *firstOf) reset() {
	if s.cur != nil {
		s.cur.reset()
	}
	s.cur, s.t = nil, nil
}

// option is one branch of choose(). It is taken if its key matches the choice.
type option struct {
	key  any
	pred *predicate
	test *traversal // of branch(): a traversal on the choice
	tr   *traversal
}

// buildChoose makes choose(test, then[, else]), choose(traversal).option(..) and branch(traversal).option(..).
func buildChoose(c *compiler, in *inst) (step, error) {
	opts, err := c.options(in)
	if err != nil {
		return nil, err
	}
	if len(in.args) > 1 {
		if len(opts) > 0 {
			return nil, in.argErr("option() belongs to choose() with one argument")
		}
		return c.chooseIf(in)
	}
	var b *by
	if b, err = c.by(in.args); err != nil {
		return nil, err
	}
	all := in.op == "branch"
	pass := []*traversal{newTraversal()}[:1:1] // without a matching option the traverser passes unchanged
	branches := pass
	for _, o := range opts {
		branches = append(branches, o.tr)
	}
	return newFork(branches, func(x *exec, t *trav) ([]*traversal, error) {
		v, ok, err := b.apply(x, t)
		if err != nil {
			return nil, err
		}
		var out []*traversal
		for _, o := range opts {
			fits, err := o.fits(x, t, v, ok)
			if err != nil {
				return nil, err
			}
			if fits {
				out = append(out, o.tr)
				if !all {
					return out, nil
				}
			}
		}
		for _, o := range opts {
			if o.key == gvalue.PickNone && len(out) == 0 && ok || o.key == gvalue.PickAny && all {
				out = append(out, o.tr)
				if !all {
					return out, nil
				}
			}
		}
		if len(out) == 0 && !all {
			return pass, nil
		}
		return out, nil
	}), nil
}

func (o *option) fits(x *exec, t *trav, v any, ok bool) (bool, error) {
	if p, isPick := o.key.(gvalue.Pick); isPick {
		return p == gvalue.PickUnprod && !ok, nil
	}
	if o.test == nil || !ok {
		return ok && o.pred.holds(v), nil
	}
	return o.test.test(x, t.split(x, v))
}

func (c *compiler) options(in *inst) (out []option, err error) {
	for _, m := range in.mods {
		if m.Op != "option" {
			continue
		}
		mi := &inst{op: "option", args: m.Args}
		var o option
		switch len(m.Args) {
		case 1:
			o.key = gvalue.PickAny
		case 2:
			o.key = m.Args[0]
		default:
			return nil, mi.argErr("a choice and a traversal are expected")
		}
		if _, isPick := o.key.(gvalue.Pick); !isPick {
			b, isTest := o.key.(*gvalue.Bytecode)
			switch {
			case isTest && in.op != "branch":
				return nil, errf(Compile, "Traversal is not allowed as a Pick token for choose().option()")
			case isTest:
				o.test, err = c.traversal(b)
			default:
				o.pred, err = c.predicateOf(o.key)
			}
			if err != nil {
				return nil, err
			}
		}
		tr, err := c.child(mi, m.Args[len(m.Args)-1])
		if err != nil {
			return nil, err
		}
		o.tr = tr
		out = append(out, o)
	}
	return out, nil
}

// chooseIf makes choose(traversal or predicate, then[, else]).
func (c *compiler) chooseIf(in *inst) (step, error) {
	var test func(x *exec, t *trav) (bool, error)
	switch a := in.args[0].(type) {
	case *gvalue.P:
		p, err := c.compileP(a)
		if err != nil {
			return nil, err
		}
		test = func(_ *exec, t *trav) (bool, error) { return p.holds(t.v), nil }
	case gvalue.T:
		test = func(_ *exec, t *trav) (bool, error) { _, ok, err := tokenOf(t.v, a); return ok, err }
	default:
		cond, err := c.condition(in, a)
		if err != nil {
			return nil, err
		}
		test = cond.test
	}
	rest := &inst{op: in.op, args: in.args[1:]}
	trs, err := c.children(rest)
	if err != nil {
		return nil, err
	}
	if len(trs) == 1 {
		trs = append(trs, newTraversal())
	}
	then, other := trs[:1], trs[1:]
	return newFork(trs, func(x *exec, t *trav) ([]*traversal, error) {
		ok, err := test(x, t)
		if ok {
			return then, err
		}
		return other, err
	}), nil
}
