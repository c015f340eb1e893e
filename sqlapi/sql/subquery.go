package sql

import (
	"strings"

	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// sub is a compiled sub-query. It passes its defined results to sink, which returns false to end it.
type sub struct {
	id                 int
	cq                 *cquery
	top, offset, limit func(f *frame) int64
	sink               func(f *frame, v value.Value) bool
}

// exec runs the sub-query in the current frame.
func (s *sub) exec(f *frame) {
	if s.begin(f); s.each(f) || f.err == nil && s.cq.gathers() {
		s.close(f)
	}
}

// begin resets the state of the sub-query before a run.
func (s *sub) begin(f *frame) {
	st := &f.subs[s.id]
	groups, seen := st.groups, st.seen
	f.drop(st)
	*st = subState{left: -1}
	if !s.cq.once { // it may run for each item
		st.reuse(groups, seen)
	}
	if s.offset != nil {
		st.skip = s.offset(f)
	}
	if s.limit != nil {
		st.left = s.limit(f)
	}
	if s.cq.grouped && st.groups == nil {
		st.groups = s.cq.newGroups(f)
	}
	st.rowRuns = s.cq.newRuns(f)
	s.cq.begin(f)
}

// each processes the rows of the current item. It returns false to end the iteration.
func (s *sub) each(f *frame) bool {
	return f.err == nil && f.subs[s.id].left != 0 && s.cq.each(f) && f.err == nil
}

// close emits the rows that are only known after the last item.
func (s *sub) close(f *frame) {
	if f.err != nil || f.subs[s.id].left == 0 {
		return
	}
	s.cq.close(f)
	st := &f.subs[s.id]
	more := f.err == nil
	if more && s.cq.gathers() {
		more = s.cq.finish(f, s.sink)
	}
	if more && st.seen != nil && st.seen.gathering {
		s.cq.finishDistinct(f, s.sink)
	}
	if s.cq.once {
		f.drop(st)
		st.sorted = nil
	}
}

// gathers reports whether the query must read all rows before it can return one.
func (cq *cquery) gathers() bool { return cq.grouped || len(cq.order) > 0 }

// subRun compiles a sub-query. Its defined results go to sink, which returns false to end it.
func (c *compiler) subRun(q *syntax.Query, sink func(f *frame, v value.Value) bool) *sub {
	sb := &sub{top: c.count(q.Top, "TOP"), offset: c.count(q.Offset, "OFFSET"), limit: c.count(q.Limit, "LIMIT"),
		sink: sink}
	if sb.top != nil {
		sb.limit = sb.top
	}
	sb.cq = c.query(q, false, func(cq *cquery) rowFn {
		switch {
		case cq.grouped:
			return cq.gather
		case len(cq.order) > 0:
			return cq.gatherSorted
		}
		return func(f *frame) bool { return cq.emit(f, cq.project(f), sink) }
	})
	sb.id = sb.cq.id
	return sb
}

// querySource compiles a source that is a sub-query. Each row of the sub-query is a row of the source; with IN each
// element of each row is. first is true when the sub-query's own first source is the container.
func (c *compiler) querySource(cq *cquery, s *syntax.Source, v *variable, first bool) func(rowFn) rowFn {
	slot := c.newSlot(v)
	c.first = first
	var next rowFn
	stopped := -1
	in := s.In
	sub := c.subRun(s.Query, func(f *frame, val value.Value) bool {
		ok := true
		if in {
			ok = eachElement(f, val, slot, next)
		} else if f.slots[slot] = val; f.step() {
			ok = next(f)
		}
		if !ok {
			f.subs[stopped].found = true
		}
		return ok
	})
	stopped, c.first = sub.id, false
	if first {
		cq.base, cq.derived = sub.cq, sub
		if sub.cq.base != nil {
			cq.base = sub.cq.base
		}
		cq.derivedNext = &next
	}
	return func(n rowFn) rowFn {
		next = n
		return func(f *frame) bool {
			sub.exec(f)
			return !f.subs[sub.id].found && f.err == nil
		}
	}
}

// begin, each and close run a query whose first source may be a sub-query over all items. begin is called once, each
// once for every item, close once at the end. each returns false when no further item is needed.
func (cq *cquery) begin(f *frame) {
	if cq.derived != nil {
		cq.derived.begin(f)
	}
}

func (cq *cquery) each(f *frame) bool {
	if cq.derived != nil {
		return cq.derived.each(f)
	}
	return cq.run(f)
}

func (cq *cquery) close(f *frame) {
	if cq.derived != nil {
		cq.derived.close(f)
	}
}

// subquery compiles a sub-query in an expression.
func (c *compiler) subquery(e *syntax.SubqueryExpr) cexpr {
	id := -1
	var s *sub
	size := func(f *frame, v value.Value) bool {
		st := &f.subs[id]
		if st.rows += len(v.Bytes()) + 16; st.rows > maxSubResult {
			f.fail(status.New(status.BadRequest, "The result of a sub-query is larger than %d bytes.", maxSubResult))
		}
		return f.err == nil
	}
	sinks := map[string]func(f *frame, v value.Value) bool{
		"": func(f *frame, v value.Value) bool {
			st := &f.subs[id]
			if st.rows++; st.rows > 1 {
				f.fail(syntax.PlainError("The cardinality of a scalar subquery result set cannot be greater than one."))
				return false
			}
			st.val = v
			return true
		},
		"EXISTS": func(f *frame, _ value.Value) bool { f.subs[id].found = true; return false },
		"FIRST":  func(f *frame, v value.Value) bool { f.subs[id].val = v; return false },
		"LAST":   func(f *frame, v value.Value) bool { f.subs[id].val = v; return true },
		"ALL": func(f *frame, v value.Value) bool {
			f.subs[id].found = !funcs.IsTrue(v)
			return funcs.IsTrue(v)
		},
		"ARRAY": func(f *frame, v value.Value) bool {
			f.subs[id].list.Elem(v)
			return size(f, v)
		},
	}
	s = c.subRun(e.Q, sinks[strings.ToUpper(e.Kind)])
	id = s.id
	switch e.Kind {
	case "EXISTS":
		return cexpr{fn: func(f *frame) value.Value { s.exec(f); return value.BoolOf(f.subs[id].found) }}
	case "ALL":
		return cexpr{fn: func(f *frame) value.Value { s.exec(f); return value.BoolOf(!f.subs[id].found) }}
	case "ARRAY":
		return cexpr{fn: func(f *frame) value.Value { s.exec(f); return f.subs[id].list.Array() }}
	}
	return cexpr{fn: func(f *frame) value.Value { s.exec(f); return f.subs[id].val }}
}
