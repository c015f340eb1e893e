package run

import (
	"github.com/orrerydb/orrery/graphapi/gremlin"
	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// resolve replaces the variables in the arguments by their values. Instructions without variables are shared, not
// copied.
func (c *compiler) resolve(ins []gvalue.Instruction) ([]gvalue.Instruction, error) {
	var out []gvalue.Instruction
	for i, in := range ins {
		args, changed, err := c.resolveList(in.Args)
		if err != nil {
			return nil, err
		}
		if changed && out == nil {
			out = append(make([]gvalue.Instruction, 0, len(ins)), ins[:i]...)
		}
		if out != nil {
			out = append(out, gvalue.Instruction{Op: in.Op, Args: args})
		}
	}
	if out == nil {
		return ins, nil
	}
	return out, nil
}

func (c *compiler) resolveList(args []any) ([]any, bool, error) {
	var out []any
	for i, a := range args {
		v, changed, err := c.resolveArg(a)
		if err != nil {
			return nil, false, err
		}
		if changed && out == nil {
			out = append(make([]any, 0, len(args)), args[:i]...)
		}
		if out != nil {
			out = append(out, v)
		}
	}
	if out == nil {
		return args, false, nil
	}
	return out, true, nil
}

func (c *compiler) resolveArg(a any) (any, bool, error) {
	switch v := a.(type) {
	case nil, string, bool, int32, int64, float64, gvalue.T, gvalue.Order, gvalue.Scope:
		return a, false, nil
	case gremlin.Var:
		val, ok := c.binds[v.Name]
		if !ok {
			return nil, false, &Error{Kind: Compile, Msg: "Unable to resolve symbol '" + v.Name +
				"' in the current context.",
				Line: v.Line, Col: v.Col}
		}
		return plain(val), true, nil
	case gremlin.Now:
		return gvalue.OffsetDateTime{Time: c.x.g.clock.Now()}, true, nil
	case gremlin.NewUUID:
		return c.x.g.clock.UUID(), true, nil
	case *gremlin.SubQuery:
		val, err := c.subQuery(v)
		return val, true, err
	case *gremlin.Arith:
		val, err := c.arithmetic(v)
		return val, true, err
	case *gremlin.Expr:
		val, err := c.expression(v)
		return val, true, err
	case *gvalue.Binding:
		val, _, err := c.resolveArg(v.Value)
		return val, true, err
	case int:
		return int64(v), true, nil
	case gvalue.CardinalityValue:
		val, changed, err := c.resolveArg(v.Value)
		return gvalue.CardinalityValue{Cardinality: v.Cardinality, Value: val}, changed, err
	}
	return c.resolveComposite(a)
}

// resolveComposite is resolveArg for values that contain other arguments.
func (c *compiler) resolveComposite(a any) (any, bool, error) {
	if err := c.enter(); err != nil {
		return nil, false, err
	}
	defer func() { c.depth-- }()
	switch v := a.(type) {
	case *gvalue.Bytecode:
		if len(v.Steps) == 0 && len(v.Source) == 1 && v.Source[0].Op == "CardinalityValueTraversal" &&
			len(v.Source[0].Args) == 2 {
			card, _ := v.Source[0].Args[0].(gvalue.Cardinality)
			val, _, err := c.resolveArg(v.Source[0].Args[1])
			return gvalue.CardinalityValue{Cardinality: card, Value: val}, true, err
		}
		ins, err := c.resolve(v.Steps)
		if err != nil {
			return nil, false, err
		}
		return &gvalue.Bytecode{Source: v.Source, Steps: ins}, true, nil
	case *gvalue.P:
		args, changed, err := c.resolveList(v.Args)
		if !changed || err != nil {
			return a, false, err
		}
		if v.Op == "within" || v.Op == "without" {
			args = flatten(args)
		}
		return &gvalue.P{Op: v.Op, Args: args, Text: v.Text}, true, nil
	case []any:
		l, changed, err := c.resolveList(v)
		return l, changed, err
	case *gvalue.Set:
		// always copied: a search changes a Set internally, and requests may run the same script concurrently
		l, _, err := c.resolveList(v.Items())
		if err != nil {
			return a, false, err
		}
		return gvalue.SetOf(l...), true, nil
	case *gvalue.Map:
		m := gvalue.NewMap(v.Len())
		for _, e := range v.Entries() {
			k, _, err := c.resolveArg(e.Key)
			if err != nil {
				return nil, false, err
			}
			val, _, err := c.resolveArg(e.Value)
			if err != nil {
				return nil, false, err
			}
			m.Put(k, val)
		}
		return m, true, nil
	case *gvalue.Strategy:
		m, _, err := c.resolveArg(v.Config)
		if err != nil || v.Config == nil {
			return a, false, err
		}
		return &gvalue.Strategy{Class: v.Class, Config: m.(*gvalue.Map)}, true, nil
	}
	return a, false, nil
}

// plain converts a binding's value: a Go int of an embedding program becomes an Int64.
func plain(v any) any {
	if i, ok := v.(int); ok {
		return int64(i)
	}
	return v
}
