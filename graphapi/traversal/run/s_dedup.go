package run

import (
	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// dedupStep passes on the first traverser of each value.
type dedupStep struct {
	base
	labels []string
	bs     []*by
	seen   map[string]struct{}
	mem    stash
	more   *gathering // not nil: keys were written to a file
	ended  bool       // the input has ended
}

func (s *dedupStep) next(x *exec) (*trav, error) {
	for {
		if s.ended && s.more != nil {
			return s.left(x)
		}
		t, err := s.prev.next(x)
		if err != nil {
			return nil, err
		}
		if t == nil {
			if s.more == nil {
				return nil, nil
			}
			s.ended = true
			continue
		}
		key, ok, err := s.key(x, t)
		if err != nil {
			return nil, err
		}
		if ok {
			if fresh, err := s.meet(x, t, key); fresh || err != nil {
				return t, err
			}
		}
		if err := x.tick(); err != nil {
			return nil, err
		}
	}
}

// meet reports whether a traverser is to be passed on now.
func (s *dedupStep) meet(x *exec, t *trav, key []byte) (bool, error) {
	if s.more != nil {
		return false, s.gather(x, t, key)
	}
	if _, dup := s.seen[string(key)]; dup {
		return false, nil
	}
	if err := s.mem.hold(x, 1, entrySize+int64(len(key))); err != nil {
		return false, err
	}
	if s.more != nil { // the keys before it have just been written
		s.mem.release()
		return false, s.gather(x, t, key)
	}
	if s.seen == nil {
		s.seen = map[string]struct{}{}
	}
	s.seen[string(key)] = struct{}{}
	t.bulk = 1
	return true, nil
}

func (s *dedupStep) key(x *exec, t *trav) ([]byte, bool, error) {
	if len(s.labels) == 0 {
		v, ok, err := turn(s.bs, 0).apply(x, t)
		if !ok || err != nil {
			return nil, false, err
		}
		return appendKey(nil, v), true, nil
	}
	var key []byte
	for i, l := range s.labels {
		v, ok := x.scopeValue(t, l, gvalue.Last)
		if !ok {
			return nil, false, nil
		}
		v, ok, err := turn(s.bs, i).applyTo(x, t, v)
		if !ok || err != nil {
			return nil, false, err
		}
		key = append(appendKey(key, v), '/')
	}
	return key, true, nil
}

func (s *dedupStep) reset() {
	s.seen, s.more, s.ended = nil, nil, false
	s.mem.reset()
}

func buildDedup(c *compiler, in *inst) (step, error) {
	scope, args := scopeOf(in.args)
	labels, err := stringsOf(args, in.op)
	if err != nil {
		return nil, err
	}
	b, err := c.oneBy(in)
	if err != nil {
		return nil, err
	}
	bs := []*by{b}
	if scope == gvalue.Local {
		return &mapStep{f: func(_ *exec, t *trav) (any, bool, error) {
			if !isCollection(t.v) {
				return t.v, true, nil
			}
			return gvalue.SetOf(listOf(t.v)...), true, nil
		}}, nil
	}
	s := &dedupStep{labels: labels, bs: bs, mem: stash{what: "dedup"}}
	if c.depth == 1 { // inside a repeat() or union() the step goes on when its input has ended for the moment
		s.mem.write = s.write
	}
	return s, nil
}

// buildBarrier reads all input and then passes it on. Equal traversers are merged.
func buildBarrier(c *compiler, in *inst) (step, error) {
	if len(in.args) == 1 {
		if _, ok := gvalue.Integer(in.args[0]); !ok {
			return nil, errf(Unsupported, "barrier() with %s is not supported", gvalue.Text(in.args[0]))
		}
	}
	return &barrierStep{f: func(x *exec, ts []*trav) ([]*trav, error) {
		if x.paths || x.noBulk && x.sackOp == "" {
			return ts, nil
		}
		var held holder // for the keys
		defer held.release()
		by := make(map[string]*trav, len(ts))
		out := ts[:0]
		var key []byte
		for _, t := range ts {
			if !isMergeable(t.v) {
				out = append(out, t)
				continue
			}
			key = appendKey(key[:0], t.v)
			if have, ok := by[string(key)]; ok && have.loops == t.loops {
				joined, err := x.join(have, t)
				if err != nil {
					return nil, err
				}
				if joined {
					continue
				}
			}
			if err := held.hold(x, 0, entrySize+int64(len(key))); err != nil {
				return nil, err
			}
			by[string(key)] = t
			out = append(out, t)
		}
		return out, nil
	}}, nil
}

// join merges t into an equal traverser if their sacks and bulks allow it.
func (x *exec) join(have, t *trav) (bool, error) {
	if (have.sack != nil || t.sack != nil) && x.sackOp == "" {
		return false, nil
	}
	sum, fits := addBulk(have.bulk, t.bulk)
	if !fits {
		return false, nil
	}
	if x.sackOp != "" {
		sack, err := operate(x.sackOp, have.sack, t.sack)
		if err != nil {
			return false, err
		}
		have.sack = sack
	}
	if !x.noBulk {
		have.bulk = sum
	}
	return true, nil
}
