package run

import (
	"slices"

	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// sorted returns a sorted copy.
func sorted(l []any) []any {
	l = slices.Clone(l)
	slices.SortStableFunc(l, compareAll)
	return l
}

// ranked is a value to sort, with the results of its by() modulators.
type ranked[T any] struct {
	v    T
	keys []any
}

func compareRanked[T any](bs []*by) func(a, b ranked[T]) int {
	return func(a, b ranked[T]) int {
		for i := range a.keys {
			c := compareAll(a.keys[i], b.keys[i])
			if c == 0 {
				continue
			}
			if isDesc(bs[i].order) {
				return -c
			}
			return c
		}
		return 0
	}
}

// sortRanked sorts. It stops if the request ends meanwhile.
func sortRanked[T any](x *exec, rs []ranked[T], bs []*by) error {
	compare, n, over := compareRanked[T](bs), 0, false
	slices.SortStableFunc(rs, func(a, b ranked[T]) int {
		if n++; n&4095 == 0 {
			over = over || x.ctx.Err() != nil
		}
		if over { // makes the rest of the sort fast
			return 0
		}
		return compare(a, b)
	})
	if over {
		return x.timeout()
	}
	return nil
}

func isDesc(o gvalue.Order) bool { return o == gvalue.Desc || o == gvalue.Decr }

// rank evaluates the by() modulators for v. ok is false if one is unproductive.
func rank(x *exec, t *trav, bs []*by, v any) (keys []any, ok bool, err error) {
	keys = make([]any, len(bs))
	for i, b := range bs {
		if b.order == gvalue.Shuffle {
			keys[i] = x.g.clock.Float64()
			continue
		}
		k, ok, err := b.applyTo(x, t, v)
		if !ok || err != nil {
			return nil, false, err
		}
		keys[i] = k
	}
	return keys, true, nil
}

func buildOrder(c *compiler, in *inst) (step, error) {
	scope, rest := scopeOf(in.args)
	if len(rest) > 0 {
		return nil, in.argErr("only a scope may be given")
	}
	bs, err := c.bys(in)
	if err != nil {
		return nil, err
	}
	if len(bs) == 0 {
		bs = []*by{identityBy}
	}
	if scope == gvalue.Local {
		return &mapStep{f: func(x *exec, t *trav) (any, bool, error) {
			v, err := orderLocal(x, t, bs)
			return v, true, err
		}}, nil
	}
	return &barrierStep{f: func(x *exec, ts []*trav) ([]*trav, error) {
		var held holder // for the keys
		defer held.release()
		if err := held.hold(x, 0, int64(len(ts))*rankedSize); err != nil {
			return nil, err
		}
		rs := make([]ranked[*trav], 0, len(ts))
		for _, t := range ts {
			keys, ok, err := rank(x, t, bs, t.v)
			if err == nil {
				err = held.hold(x, 0, sizeOfKeys(keys))
			}
			if err != nil {
				return nil, err
			}
			if ok {
				rs = append(rs, ranked[*trav]{t, keys})
			}
			if err := x.tick(); err != nil {
				return nil, err
			}
		}
		if err := sortRanked(x, rs, bs); err != nil {
			return nil, err
		}
		ts = ts[:0]
		for _, r := range rs {
			ts = append(ts, r.v)
		}
		return ts, nil
	}}, nil
}

// orderLocal sorts the collection or map of a traverser.
func orderLocal(x *exec, t *trav, bs []*by) (any, error) {
	if m, ok := t.v.(*gvalue.Map); ok {
		rs := make([]ranked[gvalue.Entry], 0, m.Len())
		for _, e := range m.Entries() {
			keys, ok, err := rank(x, t, bs, &mapEntry{e.Key, e.Value})
			if err != nil {
				return nil, err
			}
			if ok {
				rs = append(rs, ranked[gvalue.Entry]{e, keys})
			}
		}
		if err := sortRanked(x, rs, bs); err != nil {
			return nil, err
		}
		out := gvalue.NewMap(len(rs))
		for _, r := range rs {
			out.Append(r.v.Key, r.v.Value)
		}
		return out, nil
	}
	if !isCollection(t.v) {
		return t.v, nil
	}
	var rs []ranked[any]
	for _, v := range listOf(t.v) {
		keys, ok, err := rank(x, t, bs, v)
		if err != nil {
			return nil, err
		}
		if ok {
			rs = append(rs, ranked[any]{v, keys})
		}
	}
	if err := sortRanked(x, rs, bs); err != nil {
		return nil, err
	}
	out := make([]any, len(rs))
	for i, r := range rs {
		out[i] = r.v
	}
	return out, nil
}

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

// dedupStep passes on the first traverser of each value.
type dedupStep struct {
	base
	labels []string
	bs     []*by
	seen   map[string]struct{}
	held   holder
}

func (s *dedupStep) next(x *exec) (*trav, error) {
	for {
		t, err := s.prev.next(x)
		if t == nil || err != nil {
			return nil, err
		}
		key, ok, err := s.key(x, t)
		if err != nil {
			return nil, err
		}
		if ok {
			if _, dup := s.seen[string(key)]; !dup {
				if err := s.held.hold(x, 1, entrySize+int64(len(key))); err != nil {
					return nil, err
				}
				if s.seen == nil {
					s.seen = map[string]struct{}{}
				}
				s.seen[string(key)] = struct{}{}
				t.bulk = 1
				return t, nil
			}
		}
		if err := x.tick(); err != nil {
			return nil, err
		}
	}
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
	s.seen = nil
	s.held.release()
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
	return &dedupStep{labels: labels, bs: bs}, nil
}

// buildSample makes a random selection of traversers, weighted if there is a by().
func buildSample(c *compiler, in *inst) (step, error) {
	scope, args := scopeOf(in.args)
	if len(args) != 1 {
		return nil, in.argErr("a number is expected")
	}
	n64, err := in.intArg(args[0])
	if err != nil {
		return nil, err
	}
	n := int(min(max(n64, 0), maxHeld))
	bs, err := c.bys(in)
	if err != nil {
		return nil, err
	}
	if len(bs) > 1 {
		return nil, manyBys(in.op)
	}
	if scope == gvalue.Local {
		return &mapStep{f: func(x *exec, t *trav) (any, bool, error) {
			if !isCollection(t.v) {
				return t.v, true, nil
			}
			l := slices.Clone(listOf(t.v))
			for i := range min(n, len(l)) {
				j := i + int(x.g.clock.Float64()*float64(len(l)-i))
				l[i], l[j] = l[j], l[i]
			}
			return l[:min(n, len(l))], true, nil
		}}, nil
	}
	s := &barrierStep{}
	s.f = func(x *exec, ts []*trav) ([]*trav, error) { return sample(x, ts, bs, n, &s.held) }
	return s, nil
}

// sample selects n of the traversers ts, each as often as its bulk at most. Those that it returns are counted by held.
func sample(x *exec, ts []*trav, bs []*by, n int, held *holder) ([]*trav, error) {
	weights := make([]float64, len(ts))
	total := 0.0
	for i, t := range ts {
		w := 1.0
		if len(bs) > 0 {
			v, ok, err := bs[0].apply(x, t)
			if err != nil {
				return nil, err
			}
			if w = 0; ok && family(v) == famNumber {
				w = toFloat(v)
			}
		}
		weights[i] = w * float64(t.bulk)
		total += weights[i]
	}
	var out []*trav
	for len(out) < n && total > 1e-12 {
		r := x.g.clock.Float64() * total
		for i, w := range weights {
			if w <= 0 {
				continue
			}
			if r -= w; r > 0 {
				continue
			}
			c := ts[i].clone()
			c.bulk = 1
			if err := held.keep(x, c); err != nil {
				return nil, err
			}
			out = append(out, c)
			one := w / float64(ts[i].bulk)
			if ts[i].bulk--; ts[i].bulk == 0 {
				one, weights[i] = w, 0
			} else {
				weights[i] -= one
			}
			total -= one
			break
		}
		if err := x.tick(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func buildCoin(c *compiler, in *inst) (step, error) {
	if family(in.args[0]) != famNumber {
		return nil, in.argErr("a probability is expected")
	}
	p := toFloat(in.args[0])
	return &effectFilter{f: func(x *exec, t *trav) (bool, error) {
		n := int64(0)
		for range min(t.bulk, 10_000) {
			if x.g.clock.Float64() < p {
				n++
			}
		}
		t.bulk = n
		return n > 0, nil
	}}, nil
}

// effectFilter is a filterStep that may change the traverser.
type effectFilter = filterStep

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
