package run

import (
	"slices"

	"github.com/orrerydb/orrery/graphapi/gvalue"
)

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
				j := i + int(x.random()*float64(len(l)-i))
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
		r := x.random() * total
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
			if x.random() < p {
				n++
			}
		}
		t.bulk = n
		return n > 0, nil
	}}, nil
}

// effectFilter is a filterStep that may change the traverser.
type effectFilter = filterStep
