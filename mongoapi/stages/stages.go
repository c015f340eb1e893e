// Package stages writes plans of the core as MongoDB shows them: stages, with the bounds of each index. It knows no
// command and no collection.
package stages

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/collate"
	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
)

// Plan says what the stages of a plan show beside it.
type Plan struct {
	Filter   value.Value           // of the command
	Indexes  []value.Value         // the declared ones, as they are listed
	Descends bool                  // the first key of the sort descends
	Newest   bool                  // the order is that of creation, reversed
	Several  map[*access.Pred]bool // leaves whose paths lead to arrays
	// Listed returns a collation as it is listed.
	Listed func(*collate.Collation) value.Value
}

// Write appends the fields of a node's stage to an object that is open. ran says that the figures of a run are written,
// too.
//
// Example: {a: 1} with a limit is LIMIT over FETCH over IXSCAN. A filter is no stage of its own there: FETCH and
// COLLSCAN have it. An order that the entries give has no stage either.
func (p *Plan) Write(dst []byte, n *plan.Node, ran bool) []byte {
	s := writer{p: p, ran: ran}
	return s.write(dst, n, -1)
}

// Summary returns the stages of a plan that read something, in a line, as logs show them.
//
// Example: FETCH over IXSCAN of {a: 1, b: -1} is "IXSCAN { a: 1, b: -1 }".
func Summary(stage value.Value) string {
	if in := stage.Get("inputStage"); in.IsDefined() {
		return Summary(in)
	}
	if several := stage.Get("inputStages"); several.IsDefined() {
		var all []string
		for _, s := range value.Elements(several) {
			all = append(all, Summary(s))
		}
		return strings.Join(all, ", ")
	}
	name := stage.Get("stage").Str()
	if !stage.Get("keyPattern").IsDefined() {
		return name
	}
	var columns []string
	for it := stage.Get("keyPattern").Iter(); it.Next(); {
		columns = append(columns, string(it.Key())+": "+strconv.FormatInt(it.Value().Int(), 10))
	}
	return name + " { " + strings.Join(columns, ", ") + " }"
}

// Head begins a stage that isn't one of the core's. given is how many documents it gave.
func Head(dst []byte, name string, given int64, ran bool) []byte {
	s := writer{ran: ran}
	return s.head(dst, name, given)
}

// Input appends the stage below one that Head has begun.
func (p *Plan) Input(dst []byte, n *plan.Node, ran bool) []byte {
	s := writer{p: p, ran: ran}
	return s.input(dst, n, -1)
}

// writer writes a plan in MongoDB's names: a stage with its inputStage.
type writer struct {
	p        *Plan
	ran      bool
	backward bool // the entries are walked backwards
}

// write appends the fields of a node's stage to an object that is open. given is what the filter on top let pass, below
// 0 without one.
func (s *writer) write(dst []byte, n *plan.Node, given int64) []byte {
	switch n.Op {
	case plan.Filter:
		return s.write(dst, n.Kids[0], n.Given)
	case plan.Limit:
		dst = s.head(dst, "LIMIT", n.Given)
		return s.input(bson.AppendInt64(dst, "limitAmount", int64(n.Count)), n.Kids[0], given)
	case plan.Sort, plan.TopK, plan.NameOrder, plan.KeyOrder:
		return s.input(s.head(dst, "SORT", n.Given), n.Kids[0], given)
	case plan.Rings:
		return s.input(s.head(dst, "GEO_NEAR_2DSPHERE", n.Given), n.Kids[0], given)
	case plan.Merge:
		if c := n.Kids[0].Leaf.Comp; c != nil && c.Merged() {
			s.backward = c.Reverse
			return s.input(s.head(dst, "SORT_MERGE", n.Given), n.Kids[0], given)
		}
		if s.backward = s.p.Descends; n.Kids[0].Leaf.Comp != nil {
			s.backward = n.Kids[0].Leaf.Comp.Reverse
		}
		return s.write(dst, n.Kids[0], given)
	case plan.IDOrder, plan.CreationOrder, plan.Missing:
		return s.write(dst, n.Kids[0], given)
	case plan.Nothing:
		return s.head(dst, "EOF", 0)
	case plan.Points:
		return s.documents(dst, "IDHACK", n, given)
	case plan.Scan, plan.PartitionScan:
		return bson.AppendString(s.documents(dst, "COLLSCAN", n, given), "direction", direction(s.p.Newest))
	}
	if n.Covered {
		dst = s.head(dst, "PROJECTION_COVERED", n.Given)
	} else {
		dst = s.documents(dst, "FETCH", n, given)
	}
	at, dst := bson.BeginObject(dst, "inputStage")
	return bson.End(s.entries(dst, n), at)
}

// head begins a stage.
func (s *writer) head(dst []byte, name string, given int64) []byte {
	dst = bson.AppendString(dst, "stage", name)
	if s.ran {
		dst = bson.AppendInt64(dst, "nReturned", given)
	}
	return dst
}

// documents begins a stage that reads documents and filters them.
func (s *writer) documents(dst []byte, name string, n *plan.Node, given int64) []byte {
	read := n.Given
	if given < 0 {
		given = read
	}
	dst = s.head(dst, name, given)
	if name != "IDHACK" && s.p.Filter.Len() > 0 {
		dst = value.AppendElement(dst, "filter", s.p.Filter)
	}
	if s.ran {
		dst = bson.AppendInt64(dst, "docsExamined", read)
	}
	return dst
}

func (s *writer) input(dst []byte, n *plan.Node, given int64) []byte {
	at, dst := bson.BeginObject(dst, "inputStage")
	return bson.End(s.write(dst, n, given), at)
}

// entries writes the stage that walks entries: one index, or several.
func (s *writer) entries(dst []byte, n *plan.Node) []byte {
	if n.Op != plan.Union && n.Op != plan.Intersect {
		return s.scan(dst, n)
	}
	name := "OR"
	if n.Op == plan.Intersect {
		name = "AND_SORTED"
	}
	at, dst := bson.BeginArray(s.head(dst, name, n.Given), "inputStages")
	for i, k := range n.Kids {
		ka, d := bson.Begin(bson.AppendIndexHead(dst, bson.TypeDocument, i))
		dst = bson.End(s.scan(d, k), ka)
	}
	return bson.End(dst, at)
}

// scan writes the stage of one index.
func (s *writer) scan(dst []byte, n *plan.Node) []byte {
	given := max(0, n.Entries)
	stage := "IXSCAN"
	if n.Once {
		stage = "DISTINCT_SCAN"
	}
	dst = s.head(dst, stage, given)
	if s.ran {
		dst = bson.AppendInt64(dst, "keysExamined", given)
	}
	names, descends := Columns(n.Leaf)
	at, dst := bson.BeginObject(dst, "keyPattern")
	var index []string
	for i, name := range names {
		if descends[i] {
			dst = bson.AppendInt32(dst, name, -1)
			index = append(index, name, "-1")
		} else {
			dst = bson.AppendInt32(dst, name, 1)
			index = append(index, name, "1")
		}
	}
	dst = bson.End(dst, at)
	name := strings.Join(index, "_")
	collation := value.Undef()
	for _, spec := range s.p.Indexes { // a declared one may have another name
		if c, ok := s.answers(spec, n.Leaf); ok && bytes.Equal(spec.Get("key").Bytes(), dst[at:]) {
			name, collation = spec.Get("name").Str(), c
		}
	}
	dst = bson.AppendString(dst, "indexName", name)
	if collation.IsDefined() {
		dst = value.AppendElement(dst, "collation", collation)
	}
	dst = bson.AppendBool(dst, "isMultiKey", s.p.Several[n.Leaf])
	dst = bson.AppendString(dst, "direction", direction(s.backward))
	at, dst = bson.BeginObject(dst, "indexBounds")
	for i, texts := range boundsOf(n.Leaf, s.backward) {
		ta, d := bson.BeginArray(dst, names[i])
		for j, text := range texts {
			d = bson.AppendString(d, strconv.Itoa(j), text)
		}
		dst = bson.End(d, ta)
	}
	return bson.End(dst, at)
}

// answers reports whether a declared index has the collation of a leaf's index, which it returns as it is listed.
func (s *writer) answers(spec value.Value, l *access.Pred) (collation value.Value, ok bool) {
	collation = spec.Get("collation")
	if l.Comp == nil || l.Comp.Index.Coll == nil {
		return value.Undef(), !collation.IsDefined()
	}
	return collation, value.CompareBSON(collation, s.p.Listed(l.Comp.Index.Coll)) == 0
}

func direction(backward bool) string {
	if backward {
		return "backward"
	}
	return "forward"
}

// Columns returns the paths of a leaf's index as MongoDB writes them, and which descend.
func Columns(l *access.Pred) (names []string, descends []bool) {
	if l.Comp == nil && l.Path.Segs[0] == core.WordsPath {
		return []string{"_fts"}, []bool{false}
	}
	if l.Comp == nil {
		return []string{strings.Join(l.Path.Segs, ".")}, []bool{false}
	}
	for i := range l.Comp.Index.Columns {
		c := &l.Comp.Index.Columns[i]
		segs := append(l.Comp.Index.Array[:len(l.Comp.Index.Array):len(l.Comp.Index.Array)], c.Field...)
		names, descends = append(names, strings.Join(segs, ".")), append(descends, c.Desc)
	}
	return names, descends
}
