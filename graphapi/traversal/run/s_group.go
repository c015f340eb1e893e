package run

import (
	"github.com/orrerydb/orrery/core/spill"
	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// grouper groups traversers by key, for group() and groupCount() as a step or as a side effect.
type grouper struct {
	key   *by
	val   *by // the second by() of group(); nil: a list of the values
	count bool
	keys  []any
	index map[string]int
	kb    []byte // the key in its encoded form
	accs  []groupAcc
	fold  bool // the value is a list of the results of val
	fast  func() reducer
	mem   stash
	files bool                   // groups may be written to files
	runs  *spill.Runs[*groupRow] // nil: nothing was written
	found int64                  // groups that were written
	shown any                    // the last result of a side effect; nil: something was added since
}

// groupSize is the approximate size in bytes of a group without its key and values.
const groupSize = 256

// groupAcc is one group.
type groupAcc struct {
	n  int64
	l  []any
	ts []*trav
	r  reducer
}

func (g *grouper) fresh() *grouper {
	n := *g
	n.keys, n.accs, n.kb, n.index, n.shown = nil, nil, nil, map[string]int{}, nil
	if n.mem = (stash{what: "group"}); n.files {
		n.mem.write = n.write
	}
	return &n
}

func (g *grouper) add(x *exec, t *trav) error { return g.addBy(x, t, g.key) }

// addBy is add with the key of another step that fills the same side effect.
func (g *grouper) addBy(x *exec, t *trav, key *by) error {
	g.shown = nil
	k, ok, err := key.apply(x, t)
	if err != nil || !ok {
		return err
	}
	var v any
	cost, n := int64(0), int64(0)
	switch {
	case g.fold:
		v, ok, err = g.val.apply(x, t)
		if err != nil {
			return err
		}
		if ok {
			cost, n = sizeOf(v), t.bulk
		}
	case !g.count && g.fast == nil:
		cost, n = t.size(), 1
	}
	a, err := g.group(x, k, cost, n)
	if err != nil {
		return err
	}
	switch {
	case g.count:
		a.n, err = addCount(a.n, t.bulk)
		return err
	case g.fast != nil:
		if a.r == nil {
			a.r = g.fast()
		}
		return a.r.add(x, t)
	case g.fold:
		for range n {
			a.l = append(a.l, v)
		}
		return nil
	}
	a.ts = append(a.ts, t.clone())
	return nil
}

// group returns the group of a key. It counts n values of the given size that the group is about to keep, and the group
// if it is new. Groups may be written to files before.
func (g *grouper) group(x *exec, k any, cost, n int64) (*groupAcc, error) {
	g.kb = appendKey(g.kb[:0], k)
	i, have := g.index[string(g.kb)]
	own := groupSize + 2*int64(len(g.kb)) + sizeOf(k)
	if n > maxHeld {
		return nil, tooMuch()
	}
	if !have {
		if err := g.mem.hold(x, 1+int(n), own+n*cost); err != nil {
			return nil, err
		}
	} else if n > 0 {
		if err := g.mem.hold(x, int(n), n*cost); err != nil {
			return nil, err
		}
		if i, have = g.index[string(g.kb)]; !have { // it was written
			if err := g.mem.hold(x, 1, own); err != nil {
				return nil, err
			}
		}
	}
	if !have {
		i = len(g.keys)
		g.index[string(g.kb)] = i
		g.keys = append(g.keys, k)
		g.accs = append(g.accs, groupAcc{})
	}
	return &g.accs[i], nil
}

// result returns the finished groups. It may be called more than once (cap()).
func (g *grouper) result(x *exec) (any, bool, error) {
	m := gvalue.NewMap(len(g.keys))
	for i, k := range g.keys {
		v, ok, err := g.valueOf(x, &g.accs[i])
		if err != nil {
			return nil, false, err
		}
		if ok {
			m.Put(k, v)
		}
	}
	return m, true, nil
}

// valueOf returns the value of a finished group. ok is false if it has none.
func (g *grouper) valueOf(x *exec, a *groupAcc) (v any, ok bool, err error) {
	switch {
	case g.count:
		return a.n, true, nil
	case g.fast != nil:
		return a.r.result(x)
	case g.fold:
		if a.l == nil {
			return []any{}, true, nil
		}
		return a.l, true, nil
	}
	g.val.tr.reset()
	for _, t := range a.ts {
		g.val.tr.head.add(t.clone())
	}
	r, err := g.val.tr.end.next(x)
	if err != nil {
		return nil, false, err
	}
	if r != nil {
		v, ok = r.v, true
	}
	g.val.tr.reset()
	return v, ok, nil
}

// value implements sideValue. Traversers that look at the same groups share a map.
func (g *grouper) value(x *exec) (any, error) {
	if g.shown == nil {
		v, _, err := g.result(x)
		if err != nil {
			return nil, err
		}
		g.shown = v
	}
	return g.shown, nil
}

// buildGroup makes group() and groupCount(). With a label they are side effects.
func buildGroup(c *compiler, in *inst) (step, error) {
	bs, err := c.bys(in)
	if err != nil {
		return nil, err
	}
	limit := 2
	if in.op == "groupCount" {
		limit = 1
	}
	if limit == 1 && len(bs) > limit {
		return nil, manyBys(in.op)
	}
	if len(bs) > limit {
		return nil, in.argErr("it has too many by()")
	}
	proto := &grouper{key: identityBy, count: in.op == "groupCount"}
	if len(bs) > 0 {
		proto.key = bs[0]
	}
	if !proto.count {
		proto.val, proto.fold = identityBy, true
		if len(bs) > 1 {
			proto.val = bs[1]
			if bs[1].kind == byTraversal && len(bs[1].tr.steps) > 0 {
				proto.fold = false
				if r, ok := bs[1].tr.end.(*reduceStep); ok && len(bs[1].tr.steps) == 1 {
					proto.reduce(c.x, r)
				}
			}
		}
	}
	if len(in.args) == 0 {
		if c.depth == 1 && proto.canWrite(c.x) {
			proto.files = true
			return &groupStep{proto: proto}, nil
		}
		return &reduceStep{make: func(*exec) reducer { return proto.fresh() }}, nil
	}
	name, ok := in.args[0].(string)
	if !ok {
		return nil, in.argErr("the name of a side effect is a string")
	}
	if err := c.x.declare(name, func() sideValue { return proto.fresh() }); err != nil {
		return nil, err
	}
	return eager(func(x *exec, t *trav) error {
		g, ok := x.side[name].v.(*grouper)
		if !ok {
			return errf(Runtime, "The side effect %s is not a group", name)
		}
		return g.addBy(x, t, proto.key)
	}), nil
}

// reduce makes the groups have the results of a step that reduces, such as count(), and not the traversers.
func (g *grouper) reduce(x *exec, r *reduceStep) {
	if _, fold := r.make(x).(*foldReducer); fold {
		g.fold = true
		g.val = identityBy
		return
	}
	g.fast = func() reducer { return r.make(x) }
}

// treeReducer makes tree().
type treeReducer struct {
	bs   []*by
	root *gvalue.Tree
	kids map[treeKey]*gvalue.Tree
}

// treeKey names a child of a node by the bytes of its value.
type treeKey struct {
	parent *gvalue.Tree
	key    string
}

func newTree(bs []*by) *treeReducer {
	return &treeReducer{bs: bs, root: &gvalue.Tree{}, kids: map[treeKey]*gvalue.Tree{}}
}

func (r *treeReducer) add(x *exec, t *trav) error {
	cur := r.root
	for i, p := range t.path.objects() {
		v, ok, err := turn(r.bs, i).applyTo(x, t, p.v)
		if err != nil {
			return err
		}
		if !ok {
			return nil
		}
		if cur, err = r.childOf(x, cur, v); err != nil {
			return err
		}
	}
	return nil
}

func (r *treeReducer) childOf(x *exec, t *gvalue.Tree, v any) (*gvalue.Tree, error) {
	if err := notWithin(v, r.root); err != nil {
		return nil, err
	}
	k := treeKey{t, string(appendKey(nil, v))}
	if n := r.kids[k]; n != nil && !isNaN(v) {
		return n, nil
	}
	if err := x.mem.grow(1, 2*entrySize+int64(len(k.key))+sizeOf(v)); err != nil {
		return nil, err
	}
	n := &gvalue.Tree{}
	t.Entries = append(t.Entries, gvalue.TreeEntry{Key: v, Child: n})
	r.kids[k] = n
	return n, nil
}

func (r *treeReducer) result(*exec) (any, bool, error) { return r.root, true, nil }

func (r *treeReducer) value(*exec) (any, error) { return r.root, nil }

func buildTree(c *compiler, in *inst) (step, error) {
	bs, err := c.bys(in)
	if err != nil {
		return nil, err
	}
	if len(in.args) == 0 {
		return &reduceStep{make: func(*exec) reducer { return newTree(bs) }}, nil
	}
	name, ok := in.args[0].(string)
	if !ok {
		return nil, in.argErr("the name of a side effect is a string")
	}
	if err := c.x.declare(name, func() sideValue { return newTree(bs) }); err != nil {
		return nil, err
	}
	return eager(func(x *exec, t *trav) error {
		r, ok := x.side[name].v.(*treeReducer)
		if !ok {
			return errf(Runtime, "The side effect %s is not a tree", name)
		}
		return r.add(x, t)
	}), nil
}
