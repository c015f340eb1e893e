package gremlin

import (
	"strings"

	"github.com/google/uuid"

	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// valueOf returns the value of UUID('..') or datetime('..').
func valueOf(t *token, s string, isUUID bool) (any, error) {
	if isUUID {
		u, err := uuid.Parse(s)
		if err != nil {
			return nil, failAt(t, "Invalid UUID '%s'", s)
		}
		return u, nil
	}
	d, ok := gvalue.ParseOffsetDateTime(s)
	if !ok {
		return nil, failAt(t, "Invalid date '%s'", s)
	}
	return d, nil
}

// constructor reads the text after new: a strategy with its settings, or a reference to an element.
func (p *parser) constructor() (any, error) {
	t := p.next()
	for p.is(".") && p.peekAt(1).kind == tokIdent {
		p.i++
		t = p.next()
	}
	switch {
	case t.kind != tokIdent:
		return nil, failAt(t, "A class is expected after new")
	case strings.HasSuffix(t.text, "Strategy"):
		return p.strategyCall(t)
	case t.text == "Vertex" || t.text == "ReferenceVertex":
		args, err := p.arguments("(", ")")
		if err != nil {
			return nil, err
		}
		v := &gvalue.Vertex{Label: "vertex"}
		if len(args) == 0 || len(args) > 2 {
			return nil, failAt(t, "%s takes an id and a label", t.text)
		}
		v.ID = args[0]
		if len(args) == 2 {
			label, ok := args[1].(string)
			if !ok {
				return nil, failAt(t, "The label of a %s is a string", t.text)
			}
			v.Label = label
		}
		return v, nil
	}
	return nil, unsupportedAt(t, "new %s(..) is not supported", t.text)
}

// strategyCall reads Name(key: value, ..).
func (p *parser) strategyCall(t *token) (any, error) {
	s := &gvalue.Strategy{Class: t.text, Config: &gvalue.Map{}}
	if !p.accept("(") {
		return s, nil
	}
	if p.accept(")") {
		return s, nil
	}
	p.brackets++
	defer func() { p.brackets-- }()
	for {
		k := p.next()
		if k.kind != tokIdent && k.kind != tokString {
			return nil, failAt(k, "A setting of %s is expected", t.text)
		}
		if err := p.expect(":"); err != nil {
			return nil, err
		}
		v, err := p.argument()
		if err != nil {
			return nil, err
		}
		s.Config.Put(k.text, v)
		if p.accept(")") {
			return s, nil
		}
		if err := p.expect(","); err != nil {
			return nil, err
		}
	}
}

// builder reads Name.build().key(value)...create() and Name.instance(). The cursor is at the point after the name.
func (p *parser) builder(t *token) (any, error) {
	s := &gvalue.Strategy{Class: t.text, Config: &gvalue.Map{}}
	for p.accept(".") {
		name := p.next()
		if name.kind != tokIdent {
			return nil, failAt(name, "A setting of %s is expected", t.text)
		}
		args, err := p.arguments("(", ")")
		if err != nil {
			return nil, err
		}
		switch {
		case name.text == "build" && len(args) == 0:
		case (name.text == "create" || name.text == "instance") && len(args) == 0:
			return s, nil
		case name.text == "with" && len(args) == 2:
			s.Config.Put(args[0], args[1])
		case name.text == "addReadPartition" && len(args) == 1:
			old, _ := s.Config.GetString("readPartitions")
			l, _ := old.([]any)
			s.Config.Put("readPartitions", append(l, args[0]))
		case len(args) == 1 && name.text != "readPartitions":
			s.Config.Put(name.text, args[0])
		default:
			s.Config.Put(name.text, append([]any{}, unroll(args)...))
		}
	}
	return nil, failAt(t, "create() is expected at the end of the builder of %s", t.text)
}
