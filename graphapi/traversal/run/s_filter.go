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
		p, err := c.anyOf(in.args)
		if err != nil {
			return nil, err
		}
		return tokenTest(gvalue.TLabel, p), nil
	case "hasId":
		return c.idTest(in.args)
	case "hasKey", "hasValue":
		p, err := c.anyOf(in.args)
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
func (c *compiler) anyOf(args []any) (*predicate, error) {
	args = flatten(args)
	if len(args) == 1 {
		return c.predicateOf(args[0])
	}
	or := &predicate{op: "or"}
	for _, a := range args {
		p, err := c.predicateOf(a)
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

// idTest compares ids as idValue says.
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
	p, err := c.anyOf(texts)
	if err != nil {
		return nil, err
	}
	return func(_ *exec, v any) (bool, error) {
		id, ok := idOfElement(v)
		if !ok {
			return false, notElement(v)
		}
		s, _ := idText(id)
		return p.holds(idValue{id, s}), nil
	}, nil
}

func idTextsOfP(p *gvalue.P) *gvalue.P {
	out := &gvalue.P{Op: p.Op, Text: p.Text}
	for _, a := range p.Args {
		if sub, ok := a.(*gvalue.P); ok {
			out.Args = append(out.Args, idTextsOfP(sub))
		} else if orders(p.Op) && family(a) == famNumber {
			out.Args = append(out.Args, a)
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
		p, err := c.predicateOf(args[0])
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
	p, err := c.predicateOf(val)
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
	p, err := c.predicateOf(in.args[0])
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
