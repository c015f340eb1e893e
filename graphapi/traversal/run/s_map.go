package run

import (
	"slices"

	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// buildSelect makes select(label..), select(pop, ..), select(keys) and select(traversal).
func buildSelect(c *compiler, in *inst) (step, error) {
	args, pop := in.args, gvalue.Last
	if p, ok := args[0].(gvalue.Pop); ok {
		pop, args = p, args[1:]
		if len(args) == 0 {
			return nil, in.argErr("a label is expected")
		}
	}
	bs, err := c.bys(in)
	if err != nil {
		return nil, err
	}
	if col, ok := args[0].(gvalue.Column); ok {
		return &mapStep{f: func(x *exec, t *trav) (any, bool, error) {
			v, ok, err := columnOf(t.v, col)
			if !ok || err != nil {
				return nil, false, err
			}
			return turn(bs, 0).applyTo(x, t, v)
		}}, nil
	}
	if b, ok := args[0].(*gvalue.Bytecode); ok {
		tr, err := c.traversal(b)
		if err != nil {
			return nil, err
		}
		return &mapStep{f: func(x *exec, t *trav) (any, bool, error) {
			k, ok, err := tr.first(x, t)
			if !ok || err != nil {
				return nil, false, err
			}
			v, ok := selectKey(x, t, k, pop)
			if !ok {
				return nil, false, nil
			}
			return turn(bs, 0).applyTo(x, t, v)
		}}, nil
	}
	labels, err := stringsOf(args, in.op)
	if err != nil {
		return nil, err
	}
	if len(labels) == 0 {
		return nil, in.argErr("a label is expected")
	}
	if len(labels) == 1 {
		return &mapStep{f: func(x *exec, t *trav) (any, bool, error) {
			v, ok := x.scopeValue(t, labels[0], pop)
			if !ok {
				return nil, false, nil
			}
			return turn(bs, 0).applyTo(x, t, v)
		}}, nil
	}
	return &mapStep{f: func(x *exec, t *trav) (any, bool, error) {
		m := gvalue.NewMap(len(labels))
		for i, l := range labels {
			v, ok := x.scopeValue(t, l, pop)
			if !ok {
				return nil, false, nil
			}
			r, ok, err := turn(bs, i).applyTo(x, t, v)
			if !ok || err != nil {
				return nil, false, err
			}
			m.Put(l, r)
		}
		return m, true, nil
	}}, nil
}

// selectKey returns the value of a key computed at run time: a key of the current map (of any kind), or a label.
func selectKey(x *exec, t *trav, k any, pop gvalue.Pop) (any, bool) {
	if m, ok := t.v.(*gvalue.Map); ok {
		if v, ok := m.Get(k); ok {
			return v, true
		}
	}
	if s, ok := k.(string); ok {
		return x.scopeValue(t, s, pop)
	}
	return nil, false
}

func buildProject(c *compiler, in *inst) (step, error) {
	keys, err := stringsOf(in.args, in.op)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, k := range keys {
		if seen[k] {
			return nil, in.argErr("the keys must differ")
		}
		seen[k] = true
	}
	bs, err := c.bys(in)
	if err != nil {
		return nil, err
	}
	return &mapStep{f: func(x *exec, t *trav) (any, bool, error) {
		m := gvalue.NewMap(len(keys))
		for i, k := range keys {
			v, ok, err := turn(bs, i).apply(x, t)
			if err != nil {
				return nil, false, err
			}
			if ok {
				m.Append(k, v)
			}
		}
		return m, true, nil
	}}, nil
}

// pathSlice returns the part of a path between from() and to().
func pathSlice(ps []*pathNode, from, to string) []*pathNode {
	has := func(p *pathNode, l string) bool { return slices.Contains(p.labels, l) }
	lo, hi := 0, len(ps)
	if from != "" {
		for i := range ps {
			if has(ps[i], from) {
				lo = i
			}
		}
	}
	if to != "" {
		for i := lo; i < len(ps); i++ {
			if has(ps[i], to) {
				hi = i + 1
			}
		}
	}
	return ps[lo:hi]
}

// ends reads the from() and to() labels of a path step.
func (in *inst) ends() (from, to string, err error) {
	for _, m := range in.mods {
		if m.Op != "from" && m.Op != "to" {
			continue
		}
		if len(m.Args) != 1 {
			return "", "", in.argErr(m.Op + "() takes a label")
		}
		l, ok := m.Args[0].(string)
		if !ok {
			return "", "", in.argErr(m.Op + "() takes a label")
		}
		if m.Op == "from" {
			from = l
		} else {
			to = l
		}
	}
	return from, to, nil
}

func buildPath(c *compiler, in *inst) (step, error) {
	bs, err := c.bys(in)
	if err != nil {
		return nil, err
	}
	from, to, err := in.ends()
	if err != nil {
		return nil, err
	}
	return &mapStep{f: func(x *exec, t *trav) (any, bool, error) {
		ps := pathSlice(t.path.objects(), from, to)
		p := &gvalue.Path{Labels: make([][]string, 0, len(ps)), Objects: make([]any, 0, len(ps))}
		for i, n := range ps {
			v, ok, err := turn(bs, i).applyTo(x, t, n.v)
			if !ok || err != nil {
				return nil, false, err // a path with an object for which by() is unproductive is dropped
			}
			p.Labels = append(p.Labels, n.labels)
			p.Objects = append(p.Objects, v)
		}
		return p, true, nil
	}}, nil
}

// buildSimplePath makes simplePath and cyclicPath.
func buildSimplePath(c *compiler, in *inst) (step, error) {
	bs, err := c.bys(in)
	if err != nil {
		return nil, err
	}
	from, to, err := in.ends()
	if err != nil {
		return nil, err
	}
	simple := in.op == "simplePath"
	return &filterStep{f: func(x *exec, t *trav) (bool, error) {
		seen := map[string]bool{}
		var key []byte
		for i, n := range pathSlice(t.path.objects(), from, to) {
			v, ok, err := turn(bs, i).applyTo(x, t, n.v)
			if err != nil {
				return false, err
			}
			if !ok {
				return false, nil
			}
			key = appendKey(key[:0], v)
			if seen[string(key)] {
				return !simple, nil
			}
			seen[string(key)] = true
		}
		return simple, nil
	}}, nil
}

// buildUnfold opens collections and maps.
func buildUnfold(c *compiler, in *inst) (step, error) {
	return &flatStep{f: func(_ *exec, t *trav) (iter, error) {
		if m, ok := t.v.(*gvalue.Map); ok {
			vs := make([]any, 0, m.Len())
			for _, e := range m.Entries() {
				vs = append(vs, &mapEntry{e.Key, e.Value})
			}
			return &sliceIter{vs: vs}, nil
		}
		if b, ok := t.v.(*gvalue.BulkSet); ok {
			return &bulkIter{items: b.Items()}, nil
		}
		return &sliceIter{vs: listOf(t.v)}, nil
	}}, nil
}

// bulkIter returns the values of a BulkSet, each as often as it is in there.
type bulkIter struct {
	items []gvalue.BulkItem
	n     int64 // how often the first one was returned
}

func (b *bulkIter) next(*exec) (any, bool, error) {
	for len(b.items) > 0 {
		if b.n < b.items[0].Bulk {
			b.n++
			return b.items[0].Value, true, nil
		}
		b.items, b.n = b.items[1:], 0
	}
	return nil, false, nil
}

func (b *bulkIter) close() {}

func buildConstant(c *compiler, in *inst) (step, error) {
	v := in.args[0]
	return &mapStep{f: func(*exec, *trav) (any, bool, error) { return v, true, nil }}, nil
}

func buildIdentity(c *compiler, in *inst) (step, error) {
	return &filterStep{f: func(*exec, *trav) (bool, error) { return true, nil }}, nil
}

func buildLoops(c *compiler, in *inst) (step, error) {
	name := ""
	if len(in.args) == 1 {
		s, ok := in.args[0].(string)
		if !ok {
			return nil, in.argErr("the name of a loop is a string")
		}
		name = s
	}
	return &mapStep{f: func(_ *exec, t *trav) (any, bool, error) {
		for l := t.loops; l != nil; l = l.prev {
			if name == "" || l.name == name {
				return int32(l.n), true, nil
			}
		}
		return nil, false, errf(Runtime, "loops() is not inside of a repeat()")
	}}, nil
}

// buildIndex makes index(): a list of [value, position], or a map with with(indexer, map).
func buildIndex(c *compiler, in *inst) (step, error) {
	asMap := false
	for _, m := range in.mods {
		if len(m.Args) == 2 && m.Args[0] == "~tinkerpop.index.indexer" {
			n, ok := gvalue.Integer(m.Args[1])
			if !ok || n < 0 || n > 1 {
				return nil, in.argErr("the indexer is list or map")
			}
			asMap = n == 1
		}
	}
	return &mapStep{f: func(_ *exec, t *trav) (any, bool, error) {
		vs := listOf(t.v)
		if m, ok := t.v.(*gvalue.Map); ok {
			vs = nil
			for _, e := range m.Entries() {
				vs = append(vs, &mapEntry{e.Key, e.Value})
			}
		}
		if asMap {
			m := gvalue.NewMap(len(vs))
			for i, v := range vs {
				m.Put(int32(i), v)
			}
			return m, true, nil
		}
		out := make([]any, len(vs))
		for i, v := range vs {
			out[i] = []any{v, int32(i)}
		}
		return out, true, nil
	}}, nil
}

// buildInject adds values before the input.
func buildInject(c *compiler, in *inst) (step, error) {
	return &injectStep{vs: in.args, root: in.root}, nil
}

type injectStep struct {
	base
	vs   []any
	i    int
	root bool
	head bool // first step of a nested traversal: the traversal's input comes first
}

func (s *injectStep) link(prev step) {
	s.base.link(prev)
	_, s.head = prev.(*startStep)
}

func (s *injectStep) next(x *exec) (*trav, error) {
	if s.head && !s.root {
		if t, err := s.prev.next(x); t != nil || err != nil {
			return t, err
		}
	}
	if s.i < len(s.vs) {
		s.i++
		t := &trav{bulk: 1, sack: x.firstSack()}
		return t.split(x, s.vs[s.i-1]), nil
	}
	if s.root { // the request's initial traverser only starts the traversal
		return nil, nil
	}
	return s.prev.next(x)
}

func (s *injectStep) reset() { s.i = 0 }
