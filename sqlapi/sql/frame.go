package sql

import (
	"context"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/spill"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/shape"

	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
)

// frame is the mutable state of one execution: the current item, the values of aliases, the states of sub-queries. It
// is not safe for concurrent use. Frames are reused through a pool.
//
// Example: for SELECT VALUE t FROM c JOIN t IN c.tags, setRoot puts an item into root. The source of t then sets the
// slot of t to each tag in turn, and for each one the closure of the select list reads the slot.
type frame struct {
	ctx    funcs.Context
	params []value.Value
	slots  []value.Value // values of aliases
	args   []value.Value // stack of function arguments
	subs   []subState    // by query number; 0 is the outermost query
	root   rootRow
	env    *Env
	sys    value.Value // system properties of the current item as the API formats them, filled on first use
	sink   rowFn       // receives the rows of the outermost query
	list   *listSource // the rows of a query over a list; nil for a container
	done   context.Context
	calls  *calls // of user-defined functions; nil: the query has none
	rank   *rankState
	steps  int
	bud    *budget.Budget  // shared by all requests; nil: maxGathered for this execution
	acct   *budget.Account // memory that the query has gathered; nil until it gathers any
	space  *spill.Space    // for temporary files; nil: none may be made
	more   int             // further rows that the current item stands for (exec.Rows.Times - 1)
	err    error           // first error of the evaluation; it ends the execution
}

// rootRow is the current item.
type rootRow struct {
	doc   doc.Doc
	item  *core.Item  // nil for a row of a list
	row   *ListRow    // nil for an item
	whole value.Value // the item as one value with its shown names; Undefined until first use
}

// setRoot makes d the current item.
func (f *frame) setRoot(d doc.Doc, item *core.Item) {
	if item != nil && f.env != nil && f.env.Form != nil {
		d = f.env.Form(d)
	}
	f.root = rootRow{doc: d, item: item}
	if f.list != nil {
		f.root.row = f.list.present()
	}
	f.sys = value.Value{}
}

// system returns a system property of the current item.
func (f *frame) system(name string) value.Value {
	it := f.root.item
	if it == nil {
		if f.root.row != nil {
			return funcs.View(f.root.row.val.Get(name))
		}
		return value.Value{}
	}
	switch name {
	case "_ts":
		return value.IntOf(it.TS())
	case "_etag":
		b := it.AppendETag(append(make([]byte, 0, 40), '"'))
		return value.StringBytes(append(b, '"'))
	}
	if !f.sys.IsDefined() && f.env.SystemJSON != nil {
		b := f.env.SystemJSON([]byte{'{'}, it)
		f.sys, _ = doc.ValueFromJSON(append(b, '}'))
	}
	return f.sys.Get(name)
}

// wholeItem returns the current item as one value: the document with its shown names, then the system properties. It is
// built at most once per item.
func (f *frame) wholeItem() value.Value {
	if f.root.whole.IsDefined() || f.root.doc == nil {
		return f.root.whole
	}
	if f.root.row != nil {
		return f.root.row.val
	}
	var b funcs.Builder
	for it := value.ObjectOf(f.root.doc).Iter(); it.Next(); {
		name, ok := doc.NoSQL.Shown(it.Key())
		if !ok {
			continue
		}
		v := it.Value()
		if string(it.Key()) == "_id" {
			v = identity(v)
		}
		b.Field(string(name), v)
	}
	for _, name := range shape.SystemNames {
		b.Field(name, f.system(name))
	}
	f.root.whole = b.Object()
	return f.root.whole
}

// evalFn is a compiled expression. rowFn is a compiled step of a query that handles one row; it returns false to end
// the iteration.
type (
	evalFn func(f *frame) value.Value
	rowFn  func(f *frame) bool
)

// subState is the state of one query or sub-query while it runs. A query never runs inside itself, so one state per
// query number is enough; it is reset when the query begins.
type subState struct {
	skip, left int64 // rows of OFFSET still to skip, rows of LIMIT or TOP still to return (-1: no limit)
	found      bool
	rows       int   // number of rows returned, or their bytes
	gathered   int   // rows that a sort has read
	held       int64 // bytes that the state has charged to the frame's account
	val        value.Value
	list       funcs.Builder
	seen       *distinctSet
	groups     *groupSet
	ready      ready  // groups or distinct rows that are being passed on, when they can be written to files
	group      *group // the group that the select list reads
	sorted     []sortedRow
	rowRuns    *rowRuns // of sorted; nil: they stay in memory
}

// ready is what a query has gathered and passes on (gathered).
type ready interface {
	write(ctx context.Context) error
	Close()
}
