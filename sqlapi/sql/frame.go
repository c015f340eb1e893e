package sql

import (
	"context"

	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/func"
)

// frame is the changing state of one execution: the present item, the values of aliases, the states of sub-queries. It is not
// safe for concurrent use and is reused through a pool.
type frame struct {
	ctx      funcs.Context
	params   []value.Value
	slots    []value.Value // values of aliases
	args     []value.Value // stack of function arguments
	subs     []subState    // by query number; 0 is the query itself
	root     rootRow
	system   func(r *rootRow, name string) value.Value // system properties that the envelope holds; nil: they are fields
	itemJSON func(dst []byte, r *rootRow) []byte       // the item as JSON with its system properties
	sink     rowFn                                     // takes the rows of the query itself
	done     context.Context
	steps    int
	err      error // first error of the evaluation; the execution ends with it
}

// rootRow is the present item.
type rootRow struct {
	doc   doc.Doc
	item  any         // the core's item, for system
	whole value.Value // the item as one value with its shown names; Undefined until asked for
}

// setRoot makes d the present item.
func (f *frame) setRoot(d doc.Doc, item any) {
	f.root = rootRow{doc: d, item: item}
}

// systemNames are the properties of an item that live in its envelope, in the order in which they follow the document.
var systemNames = [...]string{"_rid", "_self", "_etag", "_attachments", "_ts"}

func isSystem(name string) bool {
	if len(name) < 3 || name[0] != '_' {
		return false
	}
	for _, s := range systemNames {
		if s == name {
			return true
		}
	}
	return false
}

// wholeItem returns the present item as one value: shown names, then the system properties. It is built once per item.
func (f *frame) wholeItem() value.Value {
	if f.root.whole.IsDefined() || f.root.doc == nil {
		return f.root.whole
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
	if f.system != nil {
		for _, name := range systemNames {
			b.Field(name, f.system(&f.root, name))
		}
	}
	f.root.whole = b.Object()
	return f.root.whole
}

// evalFn is a compiled expression, rowFn a compiled step of a query: it returns false to end the iteration.
type (
	evalFn func(f *frame) value.Value
	rowFn  func(f *frame) bool
)

// subState is the state of one query or sub-query while it runs. A query never runs inside itself, so one state per query
// number is enough; it is reset when the query begins.
type subState struct {
	skip, left int64 // of OFFSET and of LIMIT or TOP; left -1 is without limit
	found      bool
	rows       int
	val        value.Value
	list       funcs.Builder
	seen       *distinctSet
	groups     *groupSet
	group      *group // the group that is being read
	sorted     []sortedRow
}
