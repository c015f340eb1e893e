package run

import (
	"context"
	"errors"

	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// trav is a traverser: a value on its way, bulk times. Who pulled a trav owns it and may change its fields; the path
// and loop nodes that it points to are shared and never change.
type trav struct {
	v     any
	bulk  int64
	path  *pathNode // nil unless the traversal needs paths
	loops *loopNode
	sack  any
	taken bool  // it has left the queue that it was put in
	cost  int64 // bytes for which the holder that keeps it was charged
}

// pathNode is one object of a path with its labels; prev is the one before it.
type pathNode struct {
	v      any
	labels []string
	prev   *pathNode
	n      int
}

// loopNode counts the rounds of one repeat(); prev belongs to the repeat around it.
type loopNode struct {
	n    int
	name string
	prev *loopNode
}

// split makes the traverser that a step leads to: value v, path one longer.
func (t *trav) split(x *exec, v any) *trav {
	n := *t
	n.v, n.cost = v, 0
	if x.paths {
		n.path = t.path.extend(v)
	}
	return &n
}

// clone is another traverser at the same place.
func (t *trav) clone() *trav {
	n := *t
	n.cost = 0
	return &n
}

func (p *pathNode) extend(v any) *pathNode {
	n := 1
	if p != nil {
		n = p.n + 1
	}
	return &pathNode{v: v, prev: p, n: n}
}

// label adds a label to the traverser's present object.
func (t *trav) label(l string) {
	if t.path == nil {
		t.path = t.path.extend(t.v)
	}
	for _, have := range t.path.labels {
		if have == l {
			return
		}
	}
	p := *t.path
	p.labels = append(append(make([]string, 0, len(p.labels)+1), p.labels...), l)
	t.path = &p
}

// objects returns the path in order.
func (p *pathNode) objects() []*pathNode {
	if p == nil {
		return nil
	}
	out := make([]*pathNode, p.n)
	for i := p.n - 1; i >= 0; i-- {
		out[i] = p
		p = p.prev
	}
	return out
}

// get finds the objects with a label as pop asks; ok is false when there is none.
func (p *pathNode) get(label string, pop gvalue.Pop) (v any, ok bool) {
	var all []any
	for ; p != nil; p = p.prev {
		for _, l := range p.labels {
			if l != label {
				continue
			}
			if pop == gvalue.Last {
				return p.v, true
			}
			all = append(all, p.v)
		}
	}
	if len(all) == 0 {
		if pop == gvalue.All {
			return []any{}, false
		}
		return nil, false
	}
	for i, j := 0, len(all)-1; i < j; i, j = i+1, j-1 {
		all[i], all[j] = all[j], all[i]
	}
	switch pop {
	case gvalue.First:
		return all[0], true
	case gvalue.Mixed:
		if len(all) == 1 {
			return all[0], true
		}
	}
	return all, true
}

// step is one step of a compiled traversal.
type step interface {
	// next returns the next traverser, nil at the end.
	next(x *exec) (*trav, error)
	// reset makes the step ready for new input and lets go of what it holds.
	reset()
	link(prev step)
}

// base links a step to the one that it pulls from.
type base struct{ prev step }

func (b *base) link(p step) { b.prev = p }
func (b *base) reset()      {}

// traversal is a chain of steps behind a queue of starts.
type traversal struct {
	head  *startStep
	steps []step
	end   step
}

func newTraversal() *traversal {
	h := &startStep{}
	return &traversal{head: h, end: h}
}

func (tr *traversal) add(s step) {
	s.link(tr.end)
	tr.steps = append(tr.steps, s)
	tr.end = s
}

func (tr *traversal) reset() {
	tr.head.reset()
	for _, s := range tr.steps {
		s.reset()
	}
}

// start resets the traversal and gives it one traverser.
func (tr *traversal) start(t *trav) {
	tr.reset()
	tr.head.add(t)
}

// first runs the traversal for one traverser and returns its first value; ok is false when it has none.
func (tr *traversal) first(x *exec, t *trav) (v any, ok bool, err error) {
	if len(tr.steps) == 0 {
		return t.v, true, nil
	}
	c := t.clone()
	c.bulk = 1
	tr.start(c)
	r, err := tr.end.next(x)
	if err != nil || r == nil {
		return nil, false, err
	}
	v = r.v
	tr.reset()
	return v, true, nil
}

// test reports whether the traversal has a result for t.
func (tr *traversal) test(x *exec, t *trav) (bool, error) {
	_, ok, err := tr.first(x, t)
	return ok, err
}

// rounder is a step that keeps something from one traverser to the next, and forgets it when a repeat() around it
// begins another round.
type rounder interface{ nextRound() }

// nextRound makes the traversal ready for the traversers of another round.
func (tr *traversal) nextRound() {
	tr.head.reset()
	for _, s := range tr.steps {
		if r, ok := s.(rounder); ok {
			r.nextRound()
		}
	}
}

// startStep is the queue at the head of a traversal.
type startStep struct {
	base
	q    []*trav
	i    int
	held *holder // what was charged for the queue; nil: nothing was
}

func (s *startStep) add(t *trav) { s.q = append(s.q, t) }

func (s *startStep) next(*exec) (*trav, error) {
	if s.i == len(s.q) {
		s.q, s.i = s.q[:0], 0
		return nil, nil
	}
	t := s.q[s.i]
	t.taken = true
	if s.held != nil && t.path == nil { // where there are paths, what follows it holds it still
		s.held.drop(t)
	}
	s.q[s.i] = nil
	s.i++
	if s.i > 1024 && s.i*2 > len(s.q) {
		n := copy(s.q, s.q[s.i:])
		clear(s.q[n:])
		s.q, s.i = s.q[:n], 0
	}
	return t, nil
}

func (s *startStep) reset() {
	clear(s.q)
	s.q, s.i = s.q[:0], 0
}

// exec is the state of one running request.
type exec struct {
	ctx     context.Context
	g       *Graph
	paths   bool
	cosmos  bool
	tokens  bool // results carry id and label only
	ticks   uint32
	mem     memory
	side    map[string]*sideEffect
	open    []*rowIter
	stats   Stats
	ops     storeOps
	probe   *probe // of the step that runs, in a profiled traversal
	noBulk  bool
	sack    any
	hasSack bool
	sackOp  gvalue.Operator // how the sacks of traversers that become one are joined; "": with sacks they stay apart
}

// tick is called once for each unit of work; now and then it looks whether the request is over.
func (x *exec) tick() error {
	if x.ticks++; x.ticks&63 != 0 {
		return nil
	}
	if x.ctx.Err() != nil {
		return x.timeout()
	}
	return nil
}

func (x *exec) timeout() error {
	if errors.Is(x.ctx.Err(), context.Canceled) {
		return status.New(status.Unavailable, "The request was cancelled.")
	}
	return errf(Timeout,
		"A timeout occurred during traversal evaluation of the request: the evaluation timeout was reached")
}

// closeAll lets go of all look-ups that are still open.
func (x *exec) closeAll() {
	for len(x.open) > 0 {
		x.open[len(x.open)-1].close()
	}
	x.mem.close()
}
