package run

import (
	"cmp"
	"errors"
	"slices"

	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/graphapi/graph"
	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// V() or E() before order().by('p').limit(n) reads only the first n elements, if an index gives the order. order()
// sorts them again, so they may come in any order, and more than n may come.
//
// Example: g.V().hasLabel('person').order().by('age', desc).limit(3) walks the entries of age from the greatest one.
// After three persons the walk ends where the age changes.

// topOfSource returns the order if rest, the steps after V() or E() and its filters, begins with such steps; nil: no.
func (c *compiler) topOfSource(rest []gvalue.Instruction, vertices bool) (*graph.By, error) {
	for len(rest) > 0 && rest[0].Op == "as" {
		rest = rest[1:]
	}
	if len(rest) < 3 || rest[0].Op != "order" || len(rest[0].Args) > 0 {
		return nil, nil
	}
	mods, _, n := modulators(rest[1:], registry["order"].mods)
	if len(mods) != 1 {
		return nil, nil
	}
	top := topOf(mods, rest[1+n:])
	if top == 0 || hasTraversal(mods[0]) {
		return nil, nil
	}
	k, err := c.by(mods[0].Args)
	if err != nil {
		return nil, err
	}
	id := k.kind == byToken && k.tok == gvalue.TID || k.kind == byProperty && k.key == "id"
	switch {
	case id:
		by := graph.ByIDs(vertices, isDesc(k.order), top)
		return &by, nil
	case k.kind != byProperty:
		return nil, nil
	}
	if by, ok := graph.ByProperty(vertices, k.key, isDesc(k.order), top); ok {
		return &by, nil
	}
	return nil, nil
}

func hasTraversal(in gvalue.Instruction) bool {
	return slices.ContainsFunc(in.Args, func(a any) bool { _, ok := a.(*gvalue.Bytecode); return ok })
}

const (
	// maxExceptions is how many documents are read in search of exceptions to the order of the index.
	maxExceptions = 256
	// maxEqual is how many elements with the key of the last one are read in addition, where equal keys are returned in
	// the order of creation.
	maxEqual = 256
	// leastPassed is how many elements a walk passes at least before it is given up, and passedShare the share of all
	// elements: so many cost about as much as a scan and a sort.
	leastPassed = 512
	passedShare = 0.15
)

// top returns at least the first elements of an order, nil if the index doesn't tell them.
func (x *exec) top(s *selection, by *graph.By) (iter, error) {
	it, err := x.topOf(s, by)
	if errors.Is(err, graph.ErrNoOrder) {
		return nil, nil
	}
	return it, err
}

func (x *exec) topOf(s *selection, by *graph.By) (_ iter, err error) {
	t := &topIter{}
	passed, most := 0, leastPassed
	match := x.matcher(s)
	found, err := x.findElements(by.Walk(s.folded, func(d []byte) (bool, error) {
		if passed++; passed > most {
			return false, graph.ErrNoOrder
		}
		return match(d)
	}), s.vertices)
	if err != nil {
		return nil, err
	}
	rows := found.(*rowIter)
	defer rows.close()
	about, ok := rows.rows.(graph.Measured)
	if !ok {
		return nil, graph.ErrNoOrder
	}
	if p, ok := by.Plain(); ok && about.MayHoldElements(p) {
		return nil, graph.ErrNoOrder
	}
	if err := x.noExceptions(by); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	size := about.Size()
	most = max(most, 4*by.Rows, int(passedShare*float64(size)))
	return t, t.gather(x, rows, by, size <= plan.MaxCreation)
}

// noExceptions returns ErrNoOrder if there are exceptions to the order, or if it isn't easy to see that there are none.
func (x *exec) noExceptions(by *graph.By) error {
	f, n := by.Exceptions(), 0
	match := f.Match
	f.Match = func(d []byte) (bool, error) {
		if n++; n > maxExceptions {
			return false, graph.ErrNoOrder
		}
		return match(d)
	}
	it, err := x.find(f, nil)
	if err != nil {
		return err
	}
	it.by = nil // the plan that a profile shows is that of the walk
	defer it.close()
	_, found, err := it.document(x)
	if found && err == nil {
		return graph.ErrNoOrder
	}
	return err
}

// topIter returns the first elements of an order, after all of them have been read.
type topIter struct {
	list []made
	held holder
}

// made is an element with its position in creation order.
type made struct {
	v  any
	at uint64
}

// gather reads by.Rows elements. With whole it also reads those with the key of the last one, and puts all into the
// order of their creation, which is how order() gets them without an index.
func (t *topIter) gather(x *exec, rows *rowIter, by *graph.By, whole bool) error {
	var last any
	for all := false; len(t.list) < by.Rows || whole && !all; {
		v, ok, err := rows.next(x)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		switch n := len(t.list) + 1; {
		case n == by.Rows:
			last = graph.FromValue(by.Key(documentOf(v)))
		case n > by.Rows && compareAll(last, graph.FromValue(by.Key(documentOf(v)))) != 0:
			all = true
			continue
		case n > by.Rows+maxEqual:
			return graph.ErrNoOrder
		}
		if t.held.hold(x, 1, valueSize+int64(len(documentOf(v)))) != nil {
			return graph.ErrNoOrder // a sort can use files
		}
		t.list = append(t.list, made{v, rows.rows.Made()})
	}
	if whole {
		slices.SortFunc(t.list, func(a, b made) int { return cmp.Compare(a.at, b.at) })
	}
	return nil
}

func documentOf(v any) []byte {
	switch e := v.(type) {
	case *gvalue.Vertex:
		return graph.VertexOf(e).Doc
	case *gvalue.Edge:
		return graph.EdgeOf(e).Doc
	}
	return nil
}

func (t *topIter) next(*exec) (any, bool, error) {
	if len(t.list) == 0 {
		t.held.release()
		return nil, false, nil
	}
	v := t.list[0].v
	t.list = t.list[1:]
	return v, true, nil
}

func (t *topIter) close() {
	t.list = nil
	t.held.release()
}
