package plan

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/core/plan/access"
)

// Explanation is a plan in the form that every API shows.
type Explanation struct {
	Plan Step `json:"plan"`
	// Rejected are the access paths that were considered and not chosen.
	Rejected []Step `json:"rejected,omitempty"`
	// Counted is the number of index entries that were counted to choose.
	Counted int `json:"counted"`
}

// Step is a node of a plan. Rows and Cost are estimates, nil without Request.Explain. The unit of Cost is the time to
// walk one index entry. AtLeast says that the entries were counted up to a limit, and there are more. Given and Entries
// are measured: the rows that the node gave, and the index entries that it read. They are nil if the node didn't run or
// doesn't count them.
type Step struct {
	Op      string   `json:"op"`
	What    string   `json:"what,omitempty"`
	Why     string   `json:"why,omitempty"`
	Rows    *float64 `json:"rows,omitempty"`
	Cost    *float64 `json:"cost,omitempty"`
	AtLeast bool     `json:"atLeast,omitempty"`
	Given   *int64   `json:"given,omitempty"`
	Entries *int64   `json:"entries,omitempty"`
	Steps   []Step   `json:"steps,omitempty"`
}

// maxShown is the largest number of alternatives, or of steps of a union, that are shown.
const maxShown = 16

// Explain shows the tree. ran says that the tree was run: then the steps have Given and Entries.
func (t *Tree) Explain(ran bool) *Explanation {
	e := &Explanation{Plan: step(t.Root, ran)}
	for i := range t.Lost {
		l := &t.Lost[i]
		s := Step{Op: opOf(&l.Access).String(), What: what(&l.Access)}
		s.show(&l.Figures, false)
		e.Rejected = append(e.Rejected, s)
	}
	return e
}

func step(n *Node, ran bool) Step {
	s := Step{Op: n.Op.String(), What: n.what(), Why: n.Why.String()}
	s.show(n.Figures, ran)
	for i, k := range n.Kids {
		if i == maxShown {
			s.Steps = append(s.Steps, Step{Op: "..", What: fmt.Sprintf("%d more", len(n.Kids)-i)})
			break
		}
		s.Steps = append(s.Steps, step(k, ran))
	}
	return s
}

// show sets the figures of a step. ran says that it has measured ones.
func (s *Step) show(f *Figures, ran bool) {
	if f == nil {
		return
	}
	rows, cost := math.Round(f.Rows), math.Round(f.Cost)
	s.Rows, s.Cost, s.AtLeast = &rows, &cost, f.AtLeast
	if ran {
		s.Given, s.Entries = told(f.Given), told(f.Entries)
	}
}

func told(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}

// what describes the data that a node works on.
func (n *Node) what() string {
	var parts []string
	if n.Leaf != nil {
		parts = append(parts, whatOf(n.Leaf))
	}
	if n.Op == Points {
		parts = append(parts, fmt.Sprintf("%d keys", n.Count))
	}
	if n.Op == Limit {
		parts = append(parts, strconv.Itoa(n.Count))
	}
	if (n.Op == TopK || n.Op == Sort) && n.Count > 0 {
		parts = append(parts, fmt.Sprintf("%d at a time", n.Count))
	}
	if n.Op == CreationOrder && n.Count > 0 {
		parts = append(parts, fmt.Sprintf("gathered up to %d", n.Count))
	}
	for _, f := range []struct {
		on   bool
		text string
	}{{n.Covered, "covered"}, {n.ByNumber && len(n.Kids) == 0, "by number"}, {n.Once, "each value once"},
		{n.Repeat, "equal rows as one"}, {n.OneValue, "one value"}} {
		if f.on {
			parts = append(parts, f.text)
		}
	}
	return strings.Join(parts, ", ")
}

// whatOf describes a leaf; for a composite index with its columns.
func whatOf(l *access.Pred) string {
	if l.Comp != nil {
		return l.Comp.String() + " " + l.String()
	}
	return l.String()
}

// opOf returns the operation of an access path.
func opOf(a *access.Plan) Op {
	switch {
	case a.Kind == access.Nothing:
		return Nothing
	case a.Kind == access.Points:
		return Points
	case a.Kind == access.Scan:
		return Scan
	case a.Both != nil:
		return Intersect
	case a.Union != nil:
		return Union
	case a.Kind == access.Ordered:
		return Merge
	}
	return scanOf(a.Leaf)
}

// what describes the leaves of an access path.
func what(a *access.Plan) string {
	var parts []string
	leaves := append(a.Union[:len(a.Union):len(a.Union)], a.Both...)
	if a.Leaf != nil {
		leaves = append(leaves, a.Leaf)
	}
	for i, l := range leaves {
		if i == maxShown {
			parts = append(parts, "..")
			break
		}
		parts = append(parts, whatOf(l))
	}
	if a.Kind == access.Points {
		parts = append(parts, fmt.Sprintf("%d keys", len(a.Keys)))
	}
	if a.Covered {
		parts = append(parts, "covered")
	}
	return strings.Join(parts, ", ")
}

// Add adds the measurements of another page of the same query. If that page had another plan, only the steps of the
// first page are kept.
func (e *Explanation) Add(o *Explanation) {
	if e == nil || o == nil {
		return
	}
	e.Counted += o.Counted
	e.Plan.add(&o.Plan)
}

func (s *Step) add(o *Step) {
	if s.Op != o.Op || len(s.Steps) != len(o.Steps) {
		return
	}
	for _, f := range [][2]*int64{{s.Given, o.Given}, {s.Entries, o.Entries}} {
		if f[0] != nil && f[1] != nil {
			*f[0] += *f[1]
		}
	}
	for i := range s.Steps {
		s.Steps[i].add(&o.Steps[i])
	}
}

// Node returns the alternative as nodes: a scan, or one node above several leaves.
func (a *Alternative) Node() *Node {
	f := a.Figures
	n := &Node{Op: opOf(&a.Access), Leaf: a.Access.Leaf, Count: len(a.Access.Keys), Covered: a.Access.Covered,
		Figures: &f}
	for _, l := range append(a.Access.Union[:len(a.Access.Union):len(a.Access.Union)], a.Access.Both...) {
		n.Kids = append(n.Kids, &Node{Op: scanOf(l), Leaf: l, Figures: &Figures{}})
	}
	if n.Op == Merge {
		n.Op = scanOf(n.Leaf)
		return &Node{Op: Merge, Kids: []*Node{n}, Figures: &f}
	}
	return n
}

// String shows the explanation as text: a line for each step with its children indented, then the rejected
// alternatives.
func (e *Explanation) String() string {
	var b strings.Builder
	e.Plan.write(&b, 0)
	for i := range e.Rejected {
		b.WriteString("rejected ")
		e.Rejected[i].write(&b, 0)
	}
	return b.String()
}

func (s *Step) write(b *strings.Builder, depth int) {
	b.WriteString(strings.Repeat("  ", depth) + s.Op)
	if s.What != "" {
		b.WriteString(" " + s.What)
	}
	var figures []string
	if s.Rows != nil {
		least := ""
		if s.AtLeast {
			least = "at least "
		}
		figures = append(figures, fmt.Sprintf("rows %s%.0f, cost %s%.0f", least, *s.Rows, least, *s.Cost))
	}
	for _, f := range []struct {
		name string
		n    *int64
	}{{"gave", s.Given}, {"entries", s.Entries}} {
		if f.n != nil {
			figures = append(figures, fmt.Sprintf("%s %d", f.name, *f.n))
		}
	}
	if len(figures) > 0 {
		b.WriteString(" [" + strings.Join(figures, ", ") + "]")
	}
	if s.Why != "" {
		b.WriteString(": " + s.Why)
	}
	b.WriteByte('\n')
	for i := range s.Steps {
		s.Steps[i].write(b, depth+1)
	}
}
