package run

import (
	"math"
	"math/bits"
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
	ones := make([]float64, len(ts)) // the weight of each of a traverser's bulk
	s := make(sums, len(ts))
	left := int64(0)
	for i, t := range ts {
		w := 1.0
		if len(bs) > 0 {
			v, ok, err := bs[0].apply(x, t)
			if err != nil {
				return nil, err
			}
			if w = 0; ok && family(v) == famNumber {
				w = min(toFloat(v), math.MaxFloat64/math.MaxInt64/maxHeld) // the sum of all is finite
			}
		}
		if w > 0 {
			ones[i] = w
			left, _ = addBulk(left, t.bulk)
			s.add(i, w*float64(t.bulk))
		}
		if err := x.tick(); err != nil {
			return nil, err
		}
	}
	var out []*trav
	for len(out) < n && left > 0 {
		i := s.find(x.random() * s.total())
		for ones[i] == 0 || ts[i].bulk == 0 { // the sums are rounded
			i = (i + 1) % len(ts)
		}
		c := ts[i].clone()
		c.bulk = 1
		if err := held.keep(x, c); err != nil {
			return nil, err
		}
		out = append(out, c)
		ts[i].bulk--
		left--
		s.add(i, -ones[i])
		if err := x.tick(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// sums are numbers in a Fenwick tree: element i has the sum of as many numbers before the i+1st as the lowest bit of
// i+1 says. So a number changes, and a place is found by the sum of the numbers before it, in logarithmic time.
type sums []float64

func (s sums) add(i int, v float64) {
	for i++; i <= len(s); i += i & -i {
		s[i-1] += v
	}
}

func (s sums) total() (t float64) {
	for i := len(s); i > 0; i -= i & -i {
		t += s[i-1]
	}
	return t
}

// find returns the first place where the sum of the numbers up to it is above v, the last place if there is none.
func (s sums) find(v float64) int {
	at := 0
	for step := 1 << bits.Len(uint(len(s))); step > 0; step >>= 1 {
		if next := at + step; next <= len(s) && s[next-1] <= v {
			at, v = next, v-s[next-1]
		}
	}
	return min(at, len(s)-1)
}

func buildCoin(c *compiler, in *inst) (step, error) {
	if family(in.args[0]) != famNumber {
		return nil, in.argErr("a probability is expected")
	}
	p := toFloat(in.args[0])
	return &effectFilter{f: func(x *exec, t *trav) (bool, error) {
		t.bulk = x.tosses(t.bulk, p)
		return t.bulk > 0, nil
	}}, nil
}

// manyTosses is how many tosses of a coin are made one by one.
const manyTosses = 10_000

// tosses returns how often n tosses of a coin are heads, each with probability p. Of many it draws the number: by the
// distances between heads if there are few, or else from the normal distribution, which is that of so many.
func (x *exec) tosses(n int64, p float64) (heads int64) {
	switch {
	case n <= manyTosses:
		for range n {
			if x.random() < p {
				heads++
			}
		}
		return heads
	case !(p > 0):
		return 0
	case p > 0.5:
		return n - x.tosses(n, 1-p)
	}
	mean := float64(n) * p
	if mean > manyTosses {
		z := math.Sqrt(-2*math.Log1p(-x.random())) * math.Cos(2*math.Pi*x.random())
		return int64(min(max(math.Round(mean+z*math.Sqrt(mean*(1-p))), 0), mean*2))
	}
	for at := 0.0; ; heads++ {
		at += math.Floor(math.Log1p(-x.random())/math.Log1p(-p)) + 1
		if !(at <= float64(n)) {
			return heads
		}
	}
}

// effectFilter is a filterStep that may change the traverser.
type effectFilter = filterStep
