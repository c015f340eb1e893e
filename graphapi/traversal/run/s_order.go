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

// sortRanked sorts. It stops if the request ends meanwhile.
func sortRanked[T any](x *exec, rs []ranked[T], bs []*by) error {
	n, over := 0, false
	slices.SortStableFunc(rs, func(a, b ranked[T]) int {
		if n++; n&4095 == 0 {
			over = over || x.ctx.Err() != nil
		}
		if over { // makes the rest of the sort fast
			return 0
		}
		return compareKeys(a.keys, b.keys, bs)
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
			keys[i] = x.random()
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
	return newOrderStep(bs), nil
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
