package filter

import (
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// where compiles $where: a function of JavaScript, or the expression that it returns, for which this is the document.
func (c *compiler) where(v value.Value) (node, error) {
	if !c.opts.Run.Scripts() {
		return nil, merr.New(merr.BadValue, "no globalScriptEngine in $where parsing")
	}
	s, ok := expr.NewScript(v)
	switch {
	case v.Kind() == value.CodeScope:
		return nil, merr.New(4649201, "$where no longer supports deprecated BSON type CodeWScope")
	case !ok:
		return nil, merr.New(merr.BadValue, "$where got bad type")
	case c.elements > 0:
		return nil, merr.New(merr.BadValue, "$elemMatch cannot contain $where expression")
	}
	return whereNode{s.Expression(), c.opts.Run}, nil
}

type whereNode struct {
	s   expr.Script
	run *expr.Run
}

func (n whereNode) match(_ *expr.Env, doc value.Value) (bool, error) {
	out, err := n.run.Values(n.s, []value.Value{value.MakeArray([]value.Value{doc})})
	if err != nil {
		return false, err
	}
	return expr.Truthy(out[0]), nil
}
