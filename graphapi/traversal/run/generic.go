package run

// The forms of most steps, with one function each.

// mapStep returns one value for each traverser, or none.
type mapStep struct {
	base
	f func(x *exec, t *trav) (v any, ok bool, err error)
}

func (s *mapStep) next(x *exec) (*trav, error) {
	for {
		t, err := s.prev.next(x)
		if t == nil || err != nil {
			return nil, err
		}
		v, ok, err := s.f(x, t)
		if err != nil {
			return nil, err
		}
		if ok {
			if err := x.weigh(v); err != nil {
				return nil, err
			}
			return t.split(x, v), nil
		}
		if err := x.tick(); err != nil {
			return nil, err
		}
	}
}

// filterStep passes traversers on for which its function returns true.
type filterStep struct {
	base
	f func(x *exec, t *trav) (bool, error)
}

func (s *filterStep) next(x *exec) (*trav, error) {
	for {
		t, err := s.prev.next(x)
		if t == nil || err != nil {
			return nil, err
		}
		ok, err := s.f(x, t)
		if err != nil {
			return nil, err
		}
		if ok {
			return t, nil
		}
		if err := x.tick(); err != nil {
			return nil, err
		}
	}
}

// effectStep calls a function for each traverser and passes it on.
type effectStep struct {
	base
	f func(x *exec, t *trav) error
}

func (s *effectStep) next(x *exec) (*trav, error) {
	t, err := s.prev.next(x)
	if t == nil || err != nil {
		return nil, err
	}
	if err := s.f(x, t); err != nil {
		return nil, err
	}
	return t, nil
}

// iter is a sequence of values.
type iter interface {
	next(x *exec) (v any, ok bool, err error)
	close()
}

// sliceIter is an iter over a slice.
type sliceIter struct {
	vs []any
	i  int
}

func (s *sliceIter) next(*exec) (any, bool, error) {
	if s.i == len(s.vs) {
		return nil, false, nil
	}
	s.i++
	return s.vs[s.i-1], true, nil
}

func (s *sliceIter) close() {}

// flatStep returns any number of values for each traverser.
type flatStep struct {
	base
	f   func(x *exec, t *trav) (iter, error) // nil: none
	cur iter
	t   *trav
}

func (s *flatStep) next(x *exec) (*trav, error) {
	for {
		if err := x.tick(); err != nil {
			return nil, err
		}
		if s.cur != nil {
			v, ok, err := s.cur.next(x)
			if err != nil {
				return nil, err
			}
			if ok {
				return s.t.split(x, v), nil
			}
			s.cur = nil
		}
		t, err := s.prev.next(x)
		if t == nil || err != nil {
			return nil, err
		}
		if s.cur, err = s.f(x, t); err != nil {
			return nil, err
		}
		s.t = t
	}
}

func (s *flatStep) reset() {
	if s.cur != nil {
		s.cur.close()
		s.cur = nil
	}
	s.t = nil
}

// reduceStep reads all input and returns one value. make begins a new accumulation. Its result is requested once at the
// end; if ok is false, the step returns nothing.
type reduceStep struct {
	base
	make func(x *exec) (acc reducer)
	done bool
}

// reducer accumulates values.
type reducer interface {
	add(x *exec, t *trav) error
	result(x *exec) (v any, ok bool, err error)
}

func (s *reduceStep) next(x *exec) (*trav, error) {
	if s.done {
		return nil, nil
	}
	acc := s.make(x)
	last, err := readAll(x, s.prev, acc)
	if err != nil {
		return nil, err
	}
	s.done = true
	v, ok, err := acc.result(x)
	if !ok || err != nil {
		return nil, err
	}
	if err := weigh(v); err != nil {
		return nil, err
	}
	return reduced(x, v, last), nil
}

// readAll adds all input to an accumulation. It returns the last traverser, nil if there was none.
func readAll(x *exec, from step, acc reducer) (last *trav, err error) {
	for {
		t, err := from.next(x)
		if t == nil || err != nil {
			return last, err
		}
		if err := acc.add(x, t); err != nil {
			return nil, err
		}
		if err := x.tick(); err != nil {
			return nil, err
		}
		last = t
	}
}

// reduced returns the traverser of a result. last is the last one of the input.
func reduced(x *exec, v any, last *trav) *trav {
	n := &trav{v: v, bulk: 1}
	if last != nil {
		n.loops, n.sack = last.loops, last.sack
	}
	if x.paths {
		n.path = n.path.extend(v)
	}
	return n
}

func (s *reduceStep) reset() { s.done = false }

func (s *reduceStep) nextRound() { s.reset() }

// barrierStep reads all input, calls f with it, and returns the result one by one.
type barrierStep struct {
	base
	f    func(x *exec, ts []*trav) ([]*trav, error)
	full bool
	ts   []*trav
	held holder
}

func (s *barrierStep) next(x *exec) (*trav, error) {
	if !s.full {
		if err := s.fill(x); err != nil {
			return nil, err
		}
	}
	if len(s.ts) == 0 {
		s.held.release()
		return nil, nil
	}
	t := s.ts[0]
	s.ts[0] = nil
	s.ts = s.ts[1:]
	s.held.drop(t)
	return t, nil
}

func (s *barrierStep) fill(x *exec) error {
	for {
		t, err := s.prev.next(x)
		if err != nil {
			return err
		}
		if t == nil {
			break
		}
		if err := s.held.keep(x, t); err != nil {
			return err
		}
		s.ts = append(s.ts, t)
	}
	s.full = true
	var err error
	s.ts, err = s.f(x, s.ts)
	return err
}

func (s *barrierStep) nextRound() { s.reset() }

func (s *barrierStep) reset() {
	s.full, s.ts = false, nil
	s.held.release()
}
