package run

import (
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/graphapi/graph"
	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// elementTest compiles has() and similar steps to a test of an element. The steps and the filters folded into V() and
// E() use it.
func (c *compiler) elementTest(in *inst) (func(x *exec, v any) (bool, error), error) {
	switch in.op {
	case "hasLabel":
		p, err := anyOf(in.args)
		if err != nil {
			return nil, err
		}
		return tokenTest(gvalue.TLabel, p), nil
	case "hasId":
		return c.idTest(in.args)
	case "hasKey", "hasValue":
		p, err := anyOf(in.args)
		if err != nil {
			return nil, err
		}
		tok := gvalue.TKey
		if in.op == "hasValue" {
			tok = gvalue.TValue
		}
		return func(_ *exec, v any) (bool, error) {
			t, ok, err := tokenOf(v, tok)
			return ok && p.holds(t), err
		}, nil
	case "hasNot":
		if len(in.args) != 1 { // the registry hasn't checked a folded filter
			return nil, errf(Compile, "The step hasNot() is called with %d argument(s)", len(in.args))
		}
		key, ok := in.args[0].(string)
		if !ok {
			return nil, in.argErr("a property key is expected")
		}
		return func(_ *exec, v any) (bool, error) {
			found, err := testProperty(v, key, nil)
			return !found, err
		}, nil
	}
	return c.hasTest(in)
}

// anyOf makes the predicate of hasLabel('a', 'b', P..): a single predicate, or equality with one of the values.
func anyOf(args []any) (*predicate, error) {
	args = flatten(args)
	if len(args) == 1 {
		return predicateOf(args[0])
	}
	or := &predicate{op: "or"}
	for _, a := range args {
		p, err := predicateOf(a)
		if err != nil {
			return nil, err
		}
		or.subs = append(or.subs, p)
	}
	return or, nil
}

func tokenTest(tok gvalue.T, p *predicate) func(x *exec, v any) (bool, error) {
	return func(_ *exec, v any) (bool, error) {
		if !isElement(v) {
			return false, notElement(v)
		}
		t, ok, err := tokenOf(v, tok)
		return ok && p.holds(t), err
	}
}

func notElement(v any) error {
	return errf(Runtime, "The step has() can only be applied to an Element - it is being applied to [%s] "+
		"a %s class instead",
		gvalue.Text(v), typeName(v))
}

// idTest compares ids as text, so that 1 and "1" are the same vertex.
func (c *compiler) idTest(args []any) (func(x *exec, v any) (bool, error), error) {
	args = flatten(args)
	texts := make([]any, len(args))
	for i, a := range args {
		switch e := a.(type) {
		case *gvalue.P:
			texts[i] = idTextsOfP(e)
		default:
			if id, ok := idOfElement(a); ok {
				a = id
			}
			if s, ok := idText(a); ok {
				texts[i] = s
			} else {
				texts[i] = &gvalue.P{Op: "within"} // null and similar values aren't ids, so no element has them
			}
		}
	}
	if len(args) == 0 {
		texts = []any{&gvalue.P{Op: "within"}}
	}
	p, err := anyOf(texts)
	if err != nil {
		return nil, err
	}
	return func(_ *exec, v any) (bool, error) {
		id, ok := idOfElement(v)
		if !ok {
			return false, notElement(v)
		}
		s, _ := idText(id)
		return p.holds(s), nil
	}, nil
}

func idTextsOfP(p *gvalue.P) *gvalue.P {
	out := &gvalue.P{Op: p.Op, Text: p.Text}
	for _, a := range p.Args {
		if sub, ok := a.(*gvalue.P); ok {
			out.Args = append(out.Args, idTextsOfP(sub))
		} else if s, ok := idText(a); ok {
			out.Args = append(out.Args, s)
		} else {
			out.Args = append(out.Args, a)
		}
	}
	return out
}

// hasTest compiles the forms of has().
func (c *compiler) hasTest(in *inst) (func(x *exec, v any) (bool, error), error) {
	args := in.args
	var labels *predicate
	if len(args) == 3 {
		p, err := predicateOf(args[0])
		if err != nil {
			return nil, err
		}
		labels, args = p, args[1:]
	}
	if len(args) == 1 {
		if args[0] == nil { // no element has it
			return func(*exec, any) (bool, error) { return false, nil }, nil
		}
		key, ok := args[0].(string)
		if !ok {
			return nil, in.argErr("a property key is expected")
		}
		return func(_ *exec, v any) (bool, error) { return testProperty(v, key, nil) }, nil
	}
	test, err := c.keyTest(in, args[0], args[1])
	if err != nil || labels == nil {
		return test, err
	}
	isLabel := tokenTest(gvalue.TLabel, labels)
	return func(x *exec, v any) (bool, error) {
		ok, err := isLabel(x, v)
		if !ok || err != nil {
			return false, err
		}
		return test(x, v)
	}, nil
}

func (c *compiler) keyTest(in *inst, key, val any) (func(x *exec, v any) (bool, error), error) {
	if k, ok := key.(string); ok {
		switch k { // the service takes these names as tokens, and no property can have them
		case "id":
			key = gvalue.TID
		case "label":
			key = gvalue.TLabel
		}
	}
	if b, ok := val.(*gvalue.Bytecode); ok {
		return c.hasTraversal(in, key, b)
	}
	if key == gvalue.TID {
		return c.idTest([]any{val})
	}
	p, err := predicateOf(val)
	if err != nil {
		return nil, err
	}
	switch k := key.(type) {
	case nil:
		return func(*exec, any) (bool, error) { return false, nil }, nil
	case gvalue.T:
		return tokenTest(k, p), nil
	case string:
		if s, isString := constString(p); isString {
			return func(_ *exec, v any) (bool, error) { return testString(v, k, s, p) }, nil
		}
		return func(_ *exec, v any) (bool, error) { return testProperty(v, k, p) }, nil
	}
	return nil, in.argErr("a property key is expected, not " + typeName(key))
}

func constString(p *predicate) (string, bool) {
	if p.op != "eq" {
		return "", false
	}
	s, ok := p.args[0].(string)
	return s, ok
}

// testString is testProperty for equality with a string on a stored vertex. It compares bytes in place. p is the same
// test as a predicate.
func testString(v any, key, want string, p *predicate) (bool, error) {
	vx, ok := v.(*gvalue.Vertex)
	if !ok {
		return testProperty(v, key, p)
	}
	n := graph.VertexOf(vx)
	if n == nil {
		return testProperty(v, key, p)
	}
	found := false
	if field := n.Field(key); field.IsDefined() {
		graph.EachValue(field, func(_ int, val, _, _ value.Value) bool {
			switch val.Kind() {
			case value.String:
				found = string(val.Bytes()) == want
			case value.Null, value.Bool, value.Int32, value.Int64, value.Double, value.Array, value.Object, value.Date,
				value.UUID, value.Decimal:
			default: // a kind from another API that is text here
				found = p.holds(graph.FromValue(val))
			}
			return !found
		})
	}
	return found, nil
}

// testProperty reports whether the element has the property with a value for which p is true (nil: any value).
func testProperty(v any, key string, p *predicate) (bool, error) {
	if !isElement(v) {
		return false, notElement(v)
	}
	found := false
	eachProperty(v, key, func(val any) bool {
		found = p == nil || p.holds(val)
		return !found
	})
	return found, nil
}

// hasTraversal is has(key, traversal): each value of the key is the input of the traversal.
func (c *compiler) hasTraversal(in *inst, key any, b *gvalue.Bytecode) (func(x *exec, v any) (bool, error), error) {
	tr, err := c.traversal(b)
	if err != nil {
		return nil, err
	}
	return func(x *exec, v any) (bool, error) {
		found := false
		var fail error
		try := func(val any) bool {
			found, fail = tr.test(x, &trav{v: val, bulk: 1})
			return !found && fail == nil
		}
		switch k := key.(type) {
		case string:
			eachProperty(v, k, try)
		case gvalue.T:
			t, ok, err := tokenOf(v, k)
			if err != nil || !ok {
				return false, err
			}
			try(t)
		default:
			return false, in.argErr("a property key is expected")
		}
		return found, fail
	}, nil
}

func buildHas(c *compiler, in *inst) (step, error) {
	test, err := c.elementTest(in)
	if err != nil {
		return nil, err
	}
	return &filterStep{f: func(x *exec, t *trav) (bool, error) { return test(x, t.v) }}, nil
}

func buildIs(c *compiler, in *inst) (step, error) {
	p, err := predicateOf(in.args[0])
	if err != nil {
		return nil, err
	}
	return &filterStep{f: func(_ *exec, t *trav) (bool, error) { return p.holds(t.v), nil }}, nil
}

// buildLogic makes and(..), or(..) and not(..).
func buildLogic(c *compiler, in *inst) (step, error) {
	subs := make([]*condition, 0, len(in.args))
	for _, a := range in.args {
		cond, err := c.condition(in, a)
		if err != nil {
			return nil, err
		}
		subs = append(subs, cond)
	}
	op := in.op
	return &filterStep{f: func(x *exec, t *trav) (bool, error) {
		for _, s := range subs {
			ok, err := s.test(x, t)
			if err != nil {
				return false, err
			}
			switch {
			case op == "not":
				return !ok, nil
			case op == "or" && ok:
				return true, nil
			case op == "and" && !ok:
				return false, nil
			}
		}
		return op == "and", nil
	}}, nil
}

// condition is a traversal used as a test, optionally between two labels: where(as('a').out().as('b')) starts at the
// value of a and tests whether b is reached.
type condition struct {
	tr       *traversal
	from, to string
}

func (c *compiler) condition(in *inst, a any) (*condition, error) {
	b, ok := a.(*gvalue.Bytecode)
	if !ok {
		if _, err := c.child(in, a); err != nil {
			return nil, err
		}
	}
	return c.conditionOf(b)
}

func (c *compiler) conditionOf(b *gvalue.Bytecode) (*condition, error) {
	cond := &condition{}
	ins := b.Steps
	if !c.labelled { // as() only labels the current object
		tr, err := c.compile(ins, false)
		cond.tr = tr
		return cond, err
	}
	if len(ins) > 0 && ins[0].Op == "as" {
		ls, err := stringsOf(ins[0].Args, "as")
		if err != nil {
			return nil, err
		}
		if len(ls) == 1 {
			cond.from, ins = ls[0], ins[1:]
		}
	}
	if n := len(ins); n > 1 && ins[n-1].Op == "as" {
		ls, err := stringsOf(ins[n-1].Args, "as")
		if err != nil {
			return nil, err
		}
		if len(ls) == 1 {
			cond.to, ins = ls[0], ins[:n-1]
		}
	}
	tr, err := c.compile(ins, false)
	cond.tr = tr
	return cond, err
}

func (cond *condition) test(x *exec, t *trav) (bool, error) {
	if cond.from != "" {
		v, ok := x.scopeValue(t, cond.from, gvalue.Last)
		if !ok {
			return false, nil
		}
		n := t.clone()
		n.v = v
		t = n
	}
	if cond.to == "" {
		return cond.tr.test(x, t)
	}
	want, ok := x.scopeValue(t, cond.to, gvalue.Last)
	if !ok {
		return cond.tr.test(x, t) // the label isn't set yet: any result is enough
	}
	s := t.clone()
	s.bulk = 1
	cond.tr.start(s)
	defer cond.tr.reset()
	for {
		r, err := cond.tr.end.next(x)
		if r == nil || err != nil {
			return false, err
		}
		if equal(r.v, want) {
			return true, nil
		}
	}
}

// scopeValue returns the value of a label for a traverser: a key of its map, a side effect, or a labelled step.
func (x *exec) scopeValue(t *trav, label string, pop gvalue.Pop) (any, bool) {
	if m, ok := t.v.(*gvalue.Map); ok {
		if v, ok := m.Get(label); ok {
			return v, true
		}
	}
	if s, ok := x.side[label]; ok {
		return s.value(), true
	}
	return t.path.get(label, pop)
}

// buildWhere makes where(traversal), where(P) and where('a', P). The predicate's arguments are labels.
func buildWhere(c *compiler, in *inst) (step, error) {
	if _, ok := in.args[0].(*gvalue.Bytecode); ok {
		if len(in.args) > 1 {
			return nil, in.argErr("one traversal is expected")
		}
		outer := c.labelled
		c.labelled = true
		cond, err := c.condition(in, in.args[0])
		c.labelled = outer
		if err != nil {
			return nil, err
		}
		return &filterStep{f: cond.test}, nil
	}
	start := ""
	args := in.args
	if len(args) == 2 {
		s, ok := args[0].(string)
		if !ok {
			return nil, in.argErr("a label is expected")
		}
		start, args = s, args[1:]
	}
	pv, ok := args[0].(*gvalue.P)
	if !ok {
		return nil, in.argErr("a predicate or traversal is expected, not " + typeName(args[0]))
	}
	p, err := compileP(pv)
	if err != nil {
		return nil, err
	}
	bs, err := c.bys(in)
	if err != nil {
		return nil, err
	}
	return &filterStep{f: func(x *exec, t *trav) (bool, error) {
		i := 0
		get := func(label string) (any, bool, error) {
			v, ok := t.v, true
			if label != "" {
				v, ok = x.scopeValue(t, label, gvalue.Last)
			}
			if !ok {
				return nil, false, nil
			}
			b := turn(bs, i)
			i++
			return b.applyTo(x, t, v)
		}
		v, ok, err := get(start)
		if !ok || err != nil {
			return false, err
		}
		r, err := p.testLabels(v, get)
		return r == yes, err
	}}, nil
}

// testLabels is test with the predicate's arguments as labels.
func (p *predicate) testLabels(v any, get func(label string) (any, bool, error)) (tern, error) {
	if len(p.subs) > 0 {
		r := unknown
		for i, s := range p.subs {
			t, err := s.testLabels(v, get)
			if err != nil {
				return no, err
			}
			switch {
			case i == 0:
				r = t
			case p.op == "or":
				r = max(r, t)
			default:
				r = min(r, t)
			}
		}
		if p.op == "not" {
			r = -r
		}
		return r, nil
	}
	args := make([]any, 0, len(p.args))
	for _, a := range p.args {
		label, ok := a.(string)
		if !ok {
			args = append(args, a)
			continue
		}
		w, ok, err := get(label)
		if err != nil {
			return no, err
		}
		if !ok {
			if p.op == "without" {
				continue
			}
			return no, nil
		}
		if (p.op == "within" || p.op == "without") && isCollection(w) {
			args = append(args, listOf(w)...)
		} else {
			args = append(args, w)
		}
	}
	q := *p
	q.set = nil
	return q.test(v, args), nil
}
