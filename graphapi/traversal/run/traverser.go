package run

import (
	"context"
	"errors"

	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// trav is a traverser: a value with a bulk. The step that pulled a trav owns it and may change its fields. Its path and
// loop nodes are shared and immutable.
type trav struct {
	v     any
	bulk  int64
	path  *pathNode // nil if the traversal doesn't need paths
	loops *loopNode
	sack  any
	taken bool  // it has left its queue
	cost  int64 // the bytes that its holder has counted
}

// pathNode is one object of a path with its labels. prev is the previous object.
type pathNode struct {
	v      any
	labels []string
	prev   *pathNode
	n      int
}

// loopNode counts the rounds of one repeat(). prev belongs to the surrounding repeat().
type loopNode struct {
	n    int
	name string
	prev *loopNode
}

// split returns the traverser that a step derives from t: with value v and a path that is one object longer.
func (t *trav) split(x *exec, v any) *trav {
	n := *t
	n.v, n.cost = v, 0
	if x.paths {
		n.path = t.path.extend(v)
	}
	return &n
}

// clone returns another traverser at the same place.
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

// label adds a label to the traverser's current object.
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

// get returns the objects with a label, selected by pop. ok is false if there are none.
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
	// reset prepares the step for new input and releases what it keeps.
	reset()
	link(prev step)
}

// base links a step to the previous one.
type base struct{ prev step }

func (b *base) link(p step) { b.prev = p }
func (b *base) reset()      {}

// traversal is a chain of steps after a queue of starts.
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

// start resets the traversal and gives it one traverser as input.
func (tr *traversal) start(t *trav) {
	tr.reset()
	tr.head.add(t)
}

// first runs the traversal for one traverser and returns its first value. ok is false if it has none.
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

// rounder is a step with state across traversers, which it resets when a surrounding repeat() begins another round.
type rounder interface{ nextRound() }

// nextRound prepares the traversal for the traversers of another round.
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
	held *holder // counts the queue; nil: it isn't counted
}

func (s *startStep) add(t *trav) { s.q = append(s.q, t) }

func (s *startStep) next(*exec) (*trav, error) {
	if s.i == len(s.q) {
		s.q, s.i = s.q[:0], 0
		return nil, nil
	}
	t := s.q[s.i]
	t.taken = true
	if s.held != nil && t.path == nil { // with paths, later objects still refer to it
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
	whole   bool // a step reads objects of paths that have no label
	cosmos  bool
	tokens  bool // results have only id and label
	ticks   uint32
	cut     bool // the request ended during a match
	mem     memory
	weighed any // the last map or side effect that was weighed, and its size then
	weight  int
	files   files
	writes  bool // a step writes to the graph
	lazy    bool // a result may be a LazyMap
	ends    ends
	side    map[string]*sideEffect
	open    []*rowIter
	stats   Stats
	ops     storeOps
	probe   *probe // of the step that runs, in a profiled traversal
	noBulk  bool
	seeded  *seededRandom // SeedStrategy's; nil: the clock's
	sack    any
	hasSack bool
	sackOp  gvalue.Operator // how the sacks of merged traversers are combined; "": traversers with sacks aren't merged
}

// tick is called once for each unit of work. Regularly it checks whether the request has ended.
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

// closeAll closes all open look-ups.
func (x *exec) closeAll() {
	for len(x.open) > 0 {
		x.open[len(x.open)-1].close()
	}
	x.files.close()
	x.mem.close()
}
