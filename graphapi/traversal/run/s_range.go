package run

import (
	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// rangeStep passes traversers on with the numbers lo <= n < hi (hi -1: no upper bound). In a repeat() it counts from 0
// in each round.
type rangeStep struct {
	base
	lo, hi, n int64
}

func (s *rangeStep) next(x *exec) (*trav, error) {
	for {
		if s.hi >= 0 && s.n >= s.hi {
			return nil, nil
		}
		t, err := s.prev.next(x)
		if t == nil || err != nil {
			return nil, err
		}
		from := max(s.n, s.lo)
		s.n, _ = addBulk(s.n, t.bulk) // after an overflow the count doesn't matter
		to := s.n
		if s.hi >= 0 {
			to = min(to, s.hi)
		}
		if from < to {
			t.bulk = to - from
			return t, nil
		}
		if err := x.tick(); err != nil {
			return nil, err
		}
	}
}

func (s *rangeStep) reset() { s.n = 0 }

func (s *rangeStep) nextRound() { s.reset() }

// buildRange makes limit, skip and range, over the traversers or over the collection of each.
func buildRange(c *compiler, in *inst) (step, error) {
	scope, args := scopeOf(in.args)
	want := 1
	if in.op == "range" {
		want = 2
	}
	if len(args) != want {
		return nil, in.argErr("a number is expected")
	}
	var n [2]int64
	for i, a := range args {
		v, err := in.intArg(a)
		if err != nil {
			return nil, err
		}
		n[i] = v
	}
	lo, hi := n[0], n[1]
	switch in.op {
	case "limit":
		lo, hi = 0, n[0]
	case "skip":
		lo, hi = n[0], -1
	}
	if lo < 0 && in.op == "range" {
		lo = 0
	}
	if hi >= 0 && lo > hi {
		return nil, errf(Compile, "Not a legal range: [%d, %d]", lo, hi)
	}
	if hi < 0 {
		hi = -1
	}
	if scope == gvalue.Local {
		return &mapStep{f: func(_ *exec, t *trav) (any, bool, error) {
			return slicePart(t.v, func(n int) (int, int) {
				a, b := int(min(lo, int64(n))), n
				if hi >= 0 {
					b = int(min(hi, int64(n)))
				}
				return max(a, 0), max(b, a)
			}), true, nil
		}}, nil
	}
	return &rangeStep{lo: lo, hi: hi}, nil
}

// slicePart cuts a collection or map. Other values are returned unchanged.
func slicePart(v any, cut func(n int) (from, to int)) any {
	switch c := v.(type) {
	case *gvalue.Map:
		a, b := cut(c.Len())
		out := gvalue.NewMap(b - a)
		for _, e := range c.Entries()[a:b] {
			out.Append(e.Key, e.Value)
		}
		return out
	case *gvalue.Set:
		a, b := cut(c.Len())
		return gvalue.SetOf(c.Items()[a:b]...)
	}
	if !isCollection(v) {
		return v
	}
	l := listOf(v)
	a, b := cut(len(l))
	return append([]any{}, l[a:b]...)
}

func buildTail(c *compiler, in *inst) (step, error) {
	scope, args := scopeOf(in.args)
	n := int64(1)
	if len(args) > 0 {
		v, err := in.intArg(args[0])
		if err != nil {
			return nil, err
		}
		n = v
	}
	if n < 0 || len(args) > 1 {
		return nil, in.argErr("a number that is not negative is expected")
	}
	if scope == gvalue.Local {
		return &mapStep{f: func(_ *exec, t *trav) (any, bool, error) {
			return slicePart(t.v, func(l int) (int, int) { return max(0, l-int(min(n, int64(l)))), l }), true, nil
		}}, nil
	}
	return &tailStep{n: n}, nil
}

// tailStep keeps only the last n traversers while it reads.
type tailStep struct {
	base
	n    int64
	full bool
	q    []*trav
	held holder
}

func (s *tailStep) next(x *exec) (*trav, error) {
	if !s.full {
		if err := s.fill(x); err != nil {
			return nil, err
		}
	}
	if len(s.q) == 0 {
		return nil, nil
	}
	t := s.q[0]
	s.q = s.q[1:]
	s.held.drop(t)
	return t, nil
}

func (s *tailStep) fill(x *exec) error {
	sum := int64(0)
	for {
		t, err := s.prev.next(x)
		if err != nil {
			return err
		}
		if t == nil {
			break
		}
		if err := x.tick(); err != nil {
			return err
		}
		if err := s.held.keep(x, t); err != nil {
			return err
		}
		s.q = append(s.q, t)
		sum, _ = addBulk(sum, t.bulk) // n is smaller
		for len(s.q) > 0 && sum > s.n {
			over := min(sum-s.n, s.q[0].bulk)
			s.q[0].bulk -= over
			sum -= over
			if s.q[0].bulk > 0 {
				break
			}
			s.held.drop(s.q[0])
			s.q[0] = nil
			s.q = s.q[1:]
		}
	}
	s.full = true
	return nil
}

func (s *tailStep) reset() {
	s.full, s.q = false, nil
	s.held.release()
}

func (s *tailStep) nextRound() { s.reset() }
