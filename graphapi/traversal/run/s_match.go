package run

import (
	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/traversal/compile"
)

// matchStep implements match(). Each pattern is a traversal from one variable to another, as('a')...as('b'), or a
// condition on known variables. The result is a map of the variables for each way to satisfy all patterns.
//
// The next pattern is always the first one whose start is known, so the work is that of nested loops.
//
// Example: match(as('a').out().as('b'), as('b').in().as('c')) on a vertex v: a = v. The first pattern binds b to each
// neighbour, and for each of them the second pattern binds c. Each combination is one result {a, b, c}.
type matchStep struct {
	base
	pats  []matchPattern
	start string
	vars  []string // all variables: those that the steps before match() have labelled are bound already
	out   []*trav
	held  holder
}

// matchPattern is one traversal of a match().
type matchPattern struct {
	from, to string // to "": a condition; from "": a condition on variables: where(..), not(..), and(..), or(..)
	tr       *traversal
	needs    []string // the variables of a condition without from
}

func buildMatch(c *compiler, in *inst) (step, error) {
	for _, a := range in.args {
		if b, ok := a.(*gvalue.Bytecode); !ok || len(b.Steps) == 0 {
			return nil, in.argErr("traversals that begin with as() are expected")
		}
	}
	defer func(outer bool) { c.labelled = outer }(c.labelled)
	c.labelled = true
	patterns := compile.Patterns(in.args)
	s := &matchStep{start: compile.MatchStart(patterns)}
	for _, b := range patterns {
		p, err := c.matchPattern(in, b)
		if err != nil {
			return nil, err
		}
		if p.to != "" {
			s.vars = append(s.vars, p.to)
		}
		if p.from != "" {
			s.vars = append(s.vars, p.from)
		}
		s.pats = append(s.pats, p)
	}
	if s.start == "" {
		return nil, in.argErr("a pattern must begin with as()")
	}
	return s, nil
}

func (c *compiler) matchPattern(in *inst, b *gvalue.Bytecode) (matchPattern, error) {
	var p matchPattern
	ins := b.Steps
	if len(ins) == 0 {
		return p, in.argErr("a pattern must begin with as()")
	}
	switch ins[0].Op {
	case "as":
	case "where", "not", "and", "or":
		if len(ins) != 1 {
			return p, in.argErr("a pattern must begin with as()")
		}
		p.needs = variablesOf(ins, nil)
		tr, err := c.compile(ins, false)
		p.tr = tr
		return p, err
	default:
		return p, in.argErr("a pattern must begin with as()")
	}
	if p.from, p.to = compile.PatternEnds(b); p.from == "" {
		return p, in.argErr("as() takes one variable there")
	}
	if ins = ins[1:]; len(ins) > 0 && ins[len(ins)-1].Op == "as" {
		if p.to == "" {
			return p, in.argErr("as() takes one variable there")
		}
		ins = ins[:len(ins)-1]
	}
	var err error
	p.tr, err = c.compile(ins, false)
	return p, err
}

// variablesOf returns the labels that a condition uses.
func variablesOf(ins []gvalue.Instruction, out []string) []string {
	for _, in := range ins {
		for _, a := range in.Args {
			switch v := a.(type) {
			case string:
				if in.Op == "as" || in.Op == "where" {
					out = append(out, v)
				}
			case *gvalue.P:
				if in.Op == "where" {
					out = predicateLabels(v, out)
				}
			case *gvalue.Bytecode:
				out = variablesOf(v.Steps, out)
			}
		}
	}
	return out
}

func predicateLabels(p *gvalue.P, out []string) []string {
	for _, a := range p.Args {
		switch v := a.(type) {
		case string:
			out = append(out, v)
		case *gvalue.P:
			out = predicateLabels(v, out)
		}
	}
	return out
}

func (s *matchStep) next(x *exec) (*trav, error) {
	for len(s.out) == 0 {
		s.held.release()
		t, err := s.prev.next(x)
		if t == nil || err != nil {
			return nil, err
		}
		at := t.clone()
		if _, bound := at.path.get(s.start, gvalue.Last); !bound {
			at.label(s.start)
		}
		vars := gvalue.NewMap(4)
		v, _ := at.path.get(s.start, gvalue.Last)
		vars.Put(s.start, v)
		for _, name := range s.vars {
			if v, bound := t.path.get(name, gvalue.Last); bound {
				vars.Put(name, v)
			}
		}
		if err := s.solve(x, at, vars, make([]bool, len(s.pats))); err != nil {
			return nil, err
		}
	}
	t := s.out[0]
	s.out = s.out[1:]
	return t, nil
}

// solve satisfies the remaining patterns, given the variables so far.
func (s *matchStep) solve(x *exec, t *trav, vars *gvalue.Map, done []bool) error {
	if err := x.tick(); err != nil {
		return err
	}
	i := s.ready(t, vars, done)
	if i < 0 {
		for _, d := range done {
			if !d {
				return errf(Runtime, "The patterns of match() are not connected: a variable is never bound")
			}
		}
		if err := s.held.hold(x, 1, travSize+sizeOf(vars)); err != nil {
			return err
		}
		s.out = append(s.out, t.split(x, vars))
		return nil
	}
	p := &s.pats[i]
	done[i] = true
	defer func() { done[i] = false }()
	from := t.clone()
	if p.from != "" {
		from.v, _ = vars.Get(p.from)
	} else {
		from.v = vars
	}
	if p.to == "" {
		ok, err := p.tr.test(x, from)
		if !ok || err != nil {
			return err
		}
		return s.solve(x, t, vars, done)
	}
	var held holder
	defer held.release()
	ends, err := s.ends(x, p, from, &held)
	if err != nil {
		return err
	}
	want, bound := vars.Get(p.to)
	for _, v := range ends {
		if bound {
			if equal(v, want) {
				if err := s.solve(x, t, vars, done); err != nil {
					return err
				}
			}
			continue
		}
		next := gvalue.NewMap(vars.Len() + 1)
		for _, e := range vars.Entries() {
			next.Append(e.Key, e.Value)
		}
		next.Put(p.to, v)
		n := t.split(x, v)
		n.label(p.to)
		if err := s.solve(x, n, next, done); err != nil {
			return err
		}
	}
	return nil
}

// ends returns the results of a pattern, which held counts. They are collected because the pattern's traversal is
// reused below, so it must finish first.
func (s *matchStep) ends(x *exec, p *matchPattern, from *trav, held *holder) ([]any, error) {
	from.bulk = 1
	p.tr.start(from)
	var out []any
	for {
		r, err := p.tr.end.next(x)
		if err != nil {
			return nil, err
		}
		if r == nil {
			p.tr.reset()
			return out, nil
		}
		for range r.bulk {
			if err := held.hold(x, 1, sizeOf(r.v)); err != nil {
				return nil, err
			}
			out = append(out, r.v)
		}
	}
}

// ready returns the next pattern: one whose variables are known, conditions first.
func (s *matchStep) ready(t *trav, vars *gvalue.Map, done []bool) int {
	best := -1
	for i := range s.pats {
		p := &s.pats[i]
		if done[i] {
			continue
		}
		if p.from != "" {
			if _, ok := vars.Get(p.from); ok && best < 0 {
				best = i
			}
			continue
		}
		known := true
		for _, n := range p.needs {
			if _, ok := vars.Get(n); !ok {
				if _, ok = t.path.get(n, gvalue.Last); !ok {
					known = false
				}
			}
		}
		if known {
			return i
		}
	}
	return best
}

func (s *matchStep) reset() {
	s.out = nil
	s.held.release()
}
