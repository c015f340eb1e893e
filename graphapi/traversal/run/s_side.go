package run

import "github.com/orrerydb/orrery/graphapi/gvalue"

// sideEffect is a named value, filled by aggregate(), store(), group('x') or withSideEffect().
type sideEffect struct {
	v     sideValue
	plain any  // the value of withSideEffect()
	own   bool // plain is a list that grows in place: what was seen of it before doesn't change
	op    gvalue.Operator
	cur   *exec
}

// sideValue is a side effect that a step fills.
type sideValue interface {
	value(x *exec) (any, error)
}

// value returns the current value of the name.
func (s *sideEffect) value() any {
	if s.v == nil {
		return s.plain
	}
	v, err := s.v.value(s.cur)
	if err != nil {
		return nil
	}
	return v
}

// declare creates a side effect before the traversal runs, so that it exists, and is empty, even if no traverser
// reaches the step that fills it. The first step with the name determines its kind.
func (x *exec) declare(name string, mk func() sideValue) error {
	if x.side == nil {
		x.side = map[string]*sideEffect{}
	}
	if s, ok := x.side[name]; ok {
		if s.v == nil && s.plain == nil {
			s.v = mk()
		}
		return nil
	}
	x.side[name] = &sideEffect{v: mk(), cur: x}
	return nil
}

// bag is the side effect of aggregate() and store().
type bag struct {
	b  gvalue.BulkSet
	at map[string]int // the places of the values by their keys: those of a partitioned graph have partitions, too
}

func (b *bag) add(x *exec, v any, bulk int64) error {
	if err := notWithin(v, &b.b); err != nil {
		return err
	}
	key := appendKey(nil, v)
	if i, ok := b.at[string(key)]; ok {
		sum, err := addCount(b.b.Items()[i].Bulk, bulk)
		b.b.Items()[i].Bulk = sum
		return err
	}
	if b.at == nil {
		b.at = map[string]int{}
	}
	b.at[string(key)] = b.b.Len()
	b.b.Append(v, bulk)
	return x.mem.grow(1, sizeOf(v)+entrySize+int64(len(key)))
}

func (b *bag) value(*exec) (any, error) { return &b.b, nil }

func (c *compiler) withSideEffect(args []any) error {
	if len(args) < 2 || len(args) > 3 {
		return errf(Compile, "withSideEffect() takes a name and a value")
	}
	name, ok := args[0].(string)
	if !ok {
		return errf(Compile, "withSideEffect() takes the name of the side effect")
	}
	s := &sideEffect{plain: args[1], cur: c.x}
	if len(args) == 3 {
		if s.op, ok = args[2].(gvalue.Operator); !ok {
			return errf(Compile, "withSideEffect() takes an operator as its third argument")
		}
	}
	if c.x.side == nil {
		c.x.side = map[string]*sideEffect{}
	}
	c.x.side[name] = s
	return nil
}

// put adds a value to a side effect of aggregate() or store().
func (s *sideEffect) put(x *exec, v any, bulk int64) error {
	if b, ok := s.v.(*bag); ok {
		return b.add(x, v, bulk)
	}
	if s.v != nil {
		return errf(Runtime, "The side effect is of another kind")
	}
	op := s.op
	if op == "" {
		op = gvalue.OpAddAll
	}
	if op == gvalue.OpAddAll && !isCollection(v) {
		v = []any{v}
	}
	for range bulk {
		if err := x.tick(); err != nil {
			return err
		}
		if op == gvalue.OpAddAll {
			if err := x.hold(v); err != nil {
				return err
			}
		}
		if l, ok := s.plain.([]any); ok && op == gvalue.OpAddAll && s.own {
			s.plain = append(l, listOf(v)...)
			continue
		}
		n, err := operate(op, s.plain, v)
		if err != nil {
			return err
		}
		_, s.own = s.plain.([]any) // a list was copied
		s.plain = n
	}
	return nil
}

// buildAggregate makes aggregate(), which reads all input before it passes anything on, and store() or aggregate(local,
// ..), which don't wait.
func buildAggregate(c *compiler, in *inst) (step, error) {
	scope, args := scopeOf(in.args)
	if len(args) != 1 {
		return nil, in.argErr("the name of the side effect is expected")
	}
	name, ok := args[0].(string)
	if !ok {
		return nil, in.argErr("the name of the side effect is expected")
	}
	b, err := c.oneBy(in)
	if err != nil {
		return nil, err
	}
	if err := c.x.declare(name, func() sideValue { return &bag{} }); err != nil {
		return nil, err
	}
	put := func(x *exec, t *trav) error {
		v, ok, err := b.apply(x, t)
		if err != nil || !ok {
			return err
		}
		return x.side[name].put(x, v, t.bulk)
	}
	if in.op == "store" || scope == gvalue.Local {
		return &effectStep{f: put}, nil
	}
	return eager(put), nil
}

// eager is a step that adds all its input to a side effect before it passes anything on.
func eager(put func(x *exec, t *trav) error) step {
	return &barrierStep{f: func(x *exec, ts []*trav) ([]*trav, error) {
		for _, t := range ts {
			if err := put(x, t); err != nil {
				return nil, err
			}
		}
		return ts, nil
	}}
}

// buildCap reads all input and returns side effects: one value, or a map if there are several names.
func buildCap(c *compiler, in *inst) (step, error) {
	names, err := stringsOf(in.args, in.op)
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		if c.x.side[n] == nil {
			return nil, errf(Compile, "The side effect %s does not exist", n)
		}
	}
	return &reduceStep{make: func(*exec) reducer { return &capReducer{names} }}, nil
}

type capReducer struct{ names []string }

func (r *capReducer) add(*exec, *trav) error { return nil }

func (r *capReducer) result(x *exec) (any, bool, error) {
	m := gvalue.NewMap(len(r.names))
	for _, n := range r.names {
		s := x.side[n]
		v := s.plain
		if s.v != nil {
			var err error
			if v, err = s.v.value(x); err != nil {
				return nil, false, err
			}
		}
		if len(r.names) == 1 {
			return v, true, nil
		}
		m.Put(n, v)
	}
	return m, true, nil
}

// withSack reads withSack(initial) and withSack(initial, operator).
func (c *compiler) withSack(args []any) error {
	if len(args) < 1 || len(args) > 2 {
		return errf(Compile, "withSack() takes a value")
	}
	if _, ok := args[0].(*gvalue.Lambda); ok {
		return errf(Unsupported, "Lambdas are not supported")
	}
	c.x.sackOp = ""
	if len(args) == 2 {
		op, ok := args[1].(gvalue.Operator)
		if !ok {
			return errf(Unsupported, "withSack() with a splitting function is not supported")
		}
		c.x.sackOp = op
	}
	c.x.sack, c.x.hasSack = args[0], true
	return nil
}

func (x *exec) firstSack() any {
	if x.hasSack {
		return x.sack
	}
	return nil
}

// buildSack makes sack(): it returns the sack, or changes it with an operator.
func buildSack(c *compiler, in *inst) (step, error) {
	if len(in.args) == 0 {
		return &mapStep{f: func(_ *exec, t *trav) (any, bool, error) { return t.sack, true, nil }}, nil
	}
	op, ok := in.args[0].(gvalue.Operator)
	if !ok {
		return nil, in.argErr("an operator is expected")
	}
	b, err := c.oneBy(in)
	if err != nil {
		return nil, err
	}
	return &effectFilter{f: func(x *exec, t *trav) (bool, error) {
		// without a value for the sack the traverser is dropped
		v, ok, err := b.apply(x, t)
		if err != nil || !ok {
			return false, err
		}
		t.sack, err = operate(op, t.sack, v)
		return err == nil, err
	}}, nil
}

// buildDiscard makes none() without argument, and discard(): all traversers are dropped.
func buildDiscard(c *compiler, in *inst) (step, error) {
	if in.op != "discard" && len(in.args) == 1 {
		return buildListTest(c, in)
	}
	return &filterStep{f: func(*exec, *trav) (bool, error) { return false, nil }}, nil
}

// buildListTest makes all(P), any(P) and none(P), which test the elements of a list.
func buildListTest(c *compiler, in *inst) (step, error) {
	pv, ok := in.args[0].(*gvalue.P)
	if !ok {
		return nil, in.argErr("a predicate is expected")
	}
	p, err := c.compileP(pv)
	if err != nil {
		return nil, err
	}
	op := in.op
	return &filterStep{f: func(_ *exec, t *trav) (bool, error) {
		if !isCollection(t.v) {
			return false, nil
		}
		for _, v := range listOf(t.v) {
			switch h := p.holds(v); {
			case op == "any" && h:
				return true, nil
			case op == "all" && !h, op == "none" && h:
				return false, nil
			}
		}
		return op != "any", nil
	}}, nil
}

func buildFail(c *compiler, in *inst) (step, error) {
	msg := "fail() step triggered"
	if len(in.args) == 1 {
		s, ok := in.args[0].(string)
		if !ok {
			return nil, in.argErr("a message is expected")
		}
		msg = s
	}
	return &effectStep{f: func(*exec, *trav) error {
		return &Error{Kind: Fail, Msg: msg, FailMessage: msg}
	}}, nil
}
