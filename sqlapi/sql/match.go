package sql

import (
	"context"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
)

// Match reports whether an item passes the query's WHERE. The condition of a patch is evaluated with it. The query must
// read the item itself, without joins, grouping or sub-queries in FROM; others are refused.
func (pl *Plan) Match(ctx context.Context, it *core.Item) (bool, error) {
	top := pl.p.top
	if !top.rootOnly || top.grouped {
		return false, status.New(status.BadRequest, "A condition is of the form FROM c WHERE <filter>.")
	}
	if top.calls {
		return false, status.New(status.BadRequest, "A condition can't call user defined functions.")
	}
	if top.where == nil {
		return true, nil
	}
	f := pl.p.frame(pl.vals)
	defer pl.p.release(f)
	f.env = pl.env
	clk := pl.env.Clock
	if clk == nil {
		clk = wallClock
	}
	f.ctx.Now, f.ctx.Clock, f.ctx.Random, f.ctx.End = clk.Now(), clk.Now, clk.Float64, ctx
	f.setRoot(it.Doc, it)
	ok := funcs.IsTrue(top.where(f))
	return ok, f.err
}

// Requires returns the string that a property of the root must have so that WHERE can be true. ok is false when the
// filter doesn't say so.
//
// Example: WHERE c.a = "x" AND c.n > 1 requires the string x of the property a.
func (pl *Plan) Requires(property string) (text string, ok bool) {
	return required(pl.predicate(), property)
}

func required(p *access.Pred, property string) (text string, ok bool) {
	if p == nil {
		return "", false
	}
	switch p.Op {
	case access.OpIn:
		at := p.Path
		if len(at.Segs) == 1 && at.Segs[0] == property && !at.Elements && len(p.Vals) == 1 &&
			p.Vals[0].Kind() == value.String {
			return p.Vals[0].Str(), true
		}
	case access.OpAnd:
		for _, k := range p.Kids {
			if text, ok = required(k, property); ok {
				return text, true
			}
		}
	}
	return "", false
}
