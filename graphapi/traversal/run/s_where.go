package run

import (
	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// condition is a traversal used as a test, optionally between two labels: where(as('a').out().as('b')) starts at the
// value of a and tests whether b is reached.
type condition struct {
	tr       *traversal
	from, to string
}

func (c *compiler) condition(in *inst, a any) (*condition, error) {
	b, ok := a.(*gvalue.Bytecode)
	if !ok {
		if _, err := c.child(in, a); err != nil {
			return nil, err
		}
	}
	return c.conditionOf(b)
}

func (c *compiler) conditionOf(b *gvalue.Bytecode) (*condition, error) {
	cond := &condition{}
	ins := b.Steps
	if !c.labelled { // as() only labels the current object
		tr, err := c.compile(ins, false)
		cond.tr = tr
		return cond, err
	}
	if len(ins) > 0 && ins[0].Op == "as" {
		ls, err := stringsOf(ins[0].Args, "as")
		if err != nil {
			return nil, err
		}
		if len(ls) == 1 {
			cond.from, ins = ls[0], ins[1:]
		}
	}
	if n := len(ins); n > 1 && ins[n-1].Op == "as" {
		ls, err := stringsOf(ins[n-1].Args, "as")
		if err != nil {
			return nil, err
		}
		if len(ls) == 1 {
			cond.to, ins = ls[0], ins[:n-1]
		}
	}
	tr, err := c.compile(ins, false)
	cond.tr = tr
	return cond, err
}

func (cond *condition) test(x *exec, t *trav) (bool, error) {
	if cond.from != "" {
		v, ok := x.scopeValue(t, cond.from, gvalue.Last)
		if !ok {
			return false, nil
		}
		n := t.clone()
		n.v = v
		t = n
	}
	if cond.to == "" {
		return cond.tr.test(x, t)
	}
	want, ok := x.scopeValue(t, cond.to, gvalue.Last)
	if !ok {
		return cond.tr.test(x, t) // the label isn't set yet: any result is enough
	}
	s := t.clone()
	s.bulk = 1
	cond.tr.start(s)
	defer cond.tr.reset()
	for {
		r, err := cond.tr.end.next(x)
		if r == nil || err != nil {
			return false, err
		}
		if equal(r.v, want) {
			return true, nil
		}
	}
}

// scopeValue returns the value of a label for a traverser: a key of its map, a side effect, or a labelled step.
func (x *exec) scopeValue(t *trav, label string, pop gvalue.Pop) (any, bool) {
	if m, ok := t.v.(*gvalue.Map); ok {
		if v, ok := m.Get(label); ok {
			return v, true
		}
	}
	if s, ok := x.side[label]; ok {
		return s.value(), true
	}
	return t.path.get(label, pop)
}

// buildWhere makes where(traversal), where(P) and where('a', P). The predicate's arguments are labels.
func buildWhere(c *compiler, in *inst) (step, error) {
	if _, ok := in.args[0].(*gvalue.Bytecode); ok {
		if len(in.args) > 1 {
			return nil, in.argErr("one traversal is expected")
		}
		outer := c.labelled
		c.labelled = true
		cond, err := c.condition(in, in.args[0])
		c.labelled = outer
		if err != nil {
			return nil, err
		}
		return &filterStep{f: cond.test}, nil
	}
	start := ""
	args := in.args
	if len(args) == 2 {
		s, ok := args[0].(string)
		if !ok {
			return nil, in.argErr("a label is expected")
		}
		start, args = s, args[1:]
	}
	pv, ok := args[0].(*gvalue.P)
	if !ok {
		return nil, in.argErr("a predicate or traversal is expected, not " + typeName(args[0]))
	}
	p, err := c.compileP(pv)
	if err != nil {
		return nil, err
	}
	bs, err := c.bys(in)
	if err != nil {
		return nil, err
	}
	return &filterStep{f: func(x *exec, t *trav) (bool, error) {
		i := 0
		get := func(label string) (any, bool, error) {
			v, ok := t.v, true
			if label != "" {
				v, ok = x.scopeValue(t, label, gvalue.Last)
			}
			if !ok {
				return nil, false, nil
			}
			b := turn(bs, i)
			i++
			return b.applyTo(x, t, v)
		}
		v, ok, err := get(start)
		if !ok || err != nil {
			return false, err
		}
		r, err := p.testLabels(x, v, get)
		return r == yes, err
	}}, nil
}

// testLabels is test with the predicate's arguments as labels.
func (p *predicate) testLabels(x *exec, v any, get func(label string) (any, bool, error)) (tern, error) {
	if len(p.subs) > 0 {
		r := unknown
		for i, s := range p.subs {
			t, err := s.testLabels(x, v, get)
			if err != nil {
				return no, err
			}
			switch {
			case i == 0:
				r = t
			case p.op == "or":
				r = max(r, t)
			default:
				r = min(r, t)
			}
		}
		if p.op == "not" {
			r = -r
		}
		return r, nil
	}
	args := make([]any, 0, len(p.args))
	found := false
	for _, a := range p.args {
		label, ok := a.(string)
		if !ok {
			args = append(args, a)
			continue
		}
		w, ok, err := get(label)
		if err != nil {
			return no, err
		}
		if !ok {
			if p.op == "without" {
				continue
			}
			return no, nil
		}
		if (p.op == "within" || p.op == "without") && isCollection(w) {
			in, err := p.among.has(x, w, v)
			if err != nil {
				return no, err
			}
			found = found || in
		} else {
			args = append(args, w)
		}
	}
	if found {
		return ternOf(p.op == "within"), nil
	}
	q := *p
	q.set = nil
	return q.test(v, args), nil
}

// among finds values in a collection that many traversers look at. From the second time on it keeps the keys of a large
// one.
//
// Example: in V().aggregate('x')...where(without('x')) each traverser would look through all vertices.
type among struct {
	id   any // the collection: its pointer, or that of its first element
	n    int // how many of its values have keys
	keys map[string]struct{}
	held holder
}

// fewAmong is the size up to which a collection is looked through.
const fewAmong = 8

// has reports whether v is in the collection c.
func (m *among) has(x *exec, c, v any) (bool, error) {
	var at func(i int) any
	id, n := c, 0
	switch l := c.(type) {
	case []any:
		if len(l) > 0 {
			id = &l[0]
		}
		n, at = len(l), func(i int) any { return l[i] }
	case *gvalue.BulkSet:
		n, at = l.Len(), func(i int) any { return l.Items()[i].Value }
	case *gvalue.Set:
		n, at = l.Len(), func(i int) any { return l.Items()[i] }
	case *gvalue.Path:
		n, at = len(l.Objects), func(i int) any { return l.Objects[i] }
	}
	if n <= fewAmong || m.id != id || m.n > n {
		if n > fewAmong {
			m.held.release()
			m.id, m.n, m.keys = id, 0, map[string]struct{}{}
		}
		for i := range n {
			if equal(v, at(i)) {
				return true, nil
			}
		}
		return false, nil
	}
	for ; m.n < n; m.n++ { // aggregate(local, ..) adds to it
		key := appendKey(nil, at(m.n))
		if err := m.held.hold(x, 0, int64(len(key))+entrySize); err != nil {
			return false, err
		}
		m.keys[string(key)] = struct{}{}
	}
	_, ok := m.keys[string(appendKey(nil, v))]
	return ok && !isNaN(v), nil
}
