package run

import (
	"slices"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/graphapi/graph"
	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// propArg is one property() step: what to set. Values may come from traversals.
type propArg struct {
	card  gvalue.Cardinality // "" = not given
	key   string
	tok   gvalue.T   // set instead of key
	keyOf *traversal // gives the key or the token; nil: they are given
	val   operand
	metas []metaArg
	first bool // part of addV() itself, where a repeated key adds another value
}

type metaArg struct {
	key string
	val operand
}

// operand is a constant, or a traversal that computes the value.
type operand struct {
	v  any
	tr *traversal
}

func (c *compiler) operand(v any) (operand, error) {
	switch b := v.(type) {
	case *gvalue.Bytecode:
		tr, err := c.traversal(b)
		return operand{tr: tr}, err
	case *gvalue.Lambda:
		return operand{}, errf(Unsupported, "Lambdas are not supported")
	}
	return operand{v: v}, nil
}

// eval returns the value for a traverser. ok is false if the traversal has no result.
func (o *operand) eval(x *exec, t *trav) (any, bool, error) {
	if o.tr == nil {
		return o.v, true, nil
	}
	return o.tr.first(x, t)
}

// propSet is a property() with its value.
type propSet struct {
	card  gvalue.Cardinality
	key   string
	val   any
	metas []gvalue.Property
}

// propArgs appends the compiled arguments of one property() step to dst. A map gives several properties.
func (c *compiler) propArgs(dst []propArg, args []any) ([]propArg, error) {
	in := &inst{op: "property", args: args}
	var p propArg
	if len(args) > 0 {
		if card, ok := args[0].(gvalue.Cardinality); ok {
			p.card, args = card, args[1:]
		}
	}
	if len(args) == 1 {
		if args[0] == nil { // a map without entries
			return dst, nil
		}
		m, ok := args[0].(*gvalue.Map)
		if !ok {
			return nil, in.argErr("a key and a value are expected")
		}
		for _, e := range m.Entries() {
			q, err := c.propArg(in, propArg{card: p.card}, e.Key, e.Value)
			if err != nil {
				return nil, err
			}
			dst = append(dst, q)
		}
		return dst, nil
	}
	if len(args) < 2 || len(args)%2 != 0 {
		return nil, in.argErr("a key and a value are expected")
	}
	p, err := c.propArg(in, p, args[0], args[1])
	if err != nil {
		return nil, err
	}
	for i := 2; i < len(args); i += 2 {
		k, ok := args[i].(string)
		if !ok || k == "" || !graph.ValidKey(k) {
			return nil, in.argErr("the key of a meta-property is a string")
		}
		o, err := c.operand(args[i+1])
		if err != nil {
			return nil, err
		}
		p.metas = append(p.metas, metaArg{k, o})
	}
	return append(dst, p), nil
}

func (c *compiler) propArg(in *inst, p propArg, key, val any) (propArg, error) {
	if b, ok := key.(*gvalue.Bytecode); ok {
		tr, err := c.traversal(b)
		if err != nil {
			return p, err
		}
		p.keyOf = tr
	} else if wrong, err := p.setKey(key); err != nil || wrong != "" {
		if err == nil {
			err = in.argErr(wrong)
		}
		return p, err
	}
	if cv, ok := val.(gvalue.CardinalityValue); ok {
		p.card, val = cv.Cardinality, cv.Value
	}
	o, err := c.operand(val)
	p.val = o
	return p, err
}

// setKey sets the key or the token. wrong says what is wrong with an argument that is none.
func (p *propArg) setKey(key any) (wrong string, err error) {
	switch k := key.(type) {
	case gvalue.T:
		if k != gvalue.TID && k != gvalue.TLabel {
			return "only T.id and T.label can be set", nil
		}
		p.tok = k
	case string:
		switch {
		case k == "id":
			p.tok = gvalue.TID
		case k == "label":
			p.tok = gvalue.TLabel
		case k == "" || !graph.ValidKey(k):
			return "Property key can not be empty", nil
		case graph.IsReserved(graph.StoredKey(k)):
			return "", errf(Runtime, "Property key '%s' is reserved", k)
		default:
			p.key = k
		}
	default:
		return "a property key is expected, not a " + typeName(key), nil
	}
	return "", nil
}

// keyFor returns the property with the key that its traversal gives for a traverser.
func (p *propArg) keyFor(x *exec, t *trav) (*propArg, error) {
	if p.keyOf == nil {
		return p, nil
	}
	k, ok, err := p.keyOf.first(x, t)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errf(Runtime, "The provided traverser does not map to a value: property() needs a key")
	}
	q := *p
	wrong, err := q.setKey(k)
	if wrong != "" {
		err = errf(Runtime, "The step property(): %s", wrong)
	}
	return &q, err
}

// hasTraversal reports whether a traversal computes a value of the property.
func (p *propArg) hasTraversal() bool {
	if p.val.tr != nil || p.keyOf != nil {
		return true
	}
	for _, m := range p.metas {
		if m.val.tr != nil {
			return true
		}
	}
	return false
}

// eval returns the property for a traverser. ok is false if its traversal has no result.
func (p *propArg) eval(x *exec, t *trav) (propSet, bool, error) {
	s := propSet{card: p.card, key: p.key}
	v, ok, err := p.val.eval(x, t)
	if !ok || err != nil {
		return s, false, err
	}
	s.val = v
	for _, m := range p.metas {
		mv, ok, err := m.val.eval(x, t)
		if err != nil {
			return s, false, err
		}
		if ok {
			s.metas = append(s.metas, gvalue.Property{Key: m.key, Value: mv})
		}
	}
	return s, true, nil
}

// draft is an element to be created.
type draft struct {
	label string
	id    any
	hasID bool
	props []propSet
}

// fill evaluates the property() steps after addV() and addE().
func (d *draft) fill(x *exec, t *trav, props []propArg) error {
	d.props = slices.Grow(d.props, len(props))
	for i := range props {
		p, err := props[i].keyFor(x, t)
		if err != nil {
			return err
		}
		s, ok, err := p.eval(x, t)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		switch p.tok {
		case gvalue.TID:
			d.id, d.hasID = s.val, true
		case gvalue.TLabel:
			l, ok := s.val.(string)
			if !ok {
				return errf(Runtime, "A label is a string, not a %s", typeName(s.val))
			}
			d.label = l
		default:
			if props[i].first && props[i].key != "" && again(props, i) {
				s.card = gvalue.ListCard
			}
			d.props = append(d.props, s)
		}
	}
	return nil
}

// vertexSize returns about how many bytes the document of a vertex has.
func (d *draft) vertexSize() int {
	n := 192 + len(d.label)
	for i := range d.props {
		text, _ := d.props[i].val.(string)
		n += 96 + len(d.props[i].key) + len(text) // the id of the value and the names around it
	}
	return n
}

// again reports whether addV() itself has the key of props[i] more than once.
func again(props []propArg, i int) bool {
	for j := range props {
		if j != i && props[j].first && props[j].key == props[i].key {
			return true
		}
	}
	return false
}

// labelArg compiles the label of addV() and addE(): a string or a traversal.
func (c *compiler) labelArg(in *inst) (operand, error) {
	if len(in.args) == 0 {
		return operand{v: graph.DefaultLabel}, nil
	}
	switch in.args[0].(type) {
	case string, *gvalue.Bytecode:
		return c.operand(in.args[0])
	case nil:
		return operand{v: graph.DefaultLabel}, nil
	}
	return operand{}, in.argErr("a label is expected")
}

func (o *operand) evalLabel(x *exec, t *trav) (string, error) {
	v, ok, err := o.eval(x, t)
	if err != nil {
		return "", err
	}
	s, isString := v.(string)
	if !ok || !isString || s == "" {
		return "", errf(Runtime, "A label is a string that is not empty")
	}
	return s, nil
}

// propertyMods compiles the property() steps among the modulators.
func (c *compiler) propertyMods(in *inst) ([]propArg, error) {
	out := make([]propArg, 0, len(in.mods))
	for _, m := range in.mods {
		if m.Op != "property" {
			continue
		}
		var err error
		if out, err = c.propArgs(out, m.Args); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func buildAddV(c *compiler, in *inst) (step, error) {
	label, err := c.labelArg(in)
	if err != nil {
		return nil, err
	}
	props, err := c.propertyMods(in)
	if err != nil {
		return nil, err
	}
	// The first property with a cardinality or meta-properties is a separate step, and so are all properties after it.
	for i := range props {
		if props[i].card != "" || len(props[i].metas) > 0 {
			break
		}
		props[i].first = true
	}
	return &mapStep{f: func(x *exec, t *trav) (any, bool, error) {
		l, err := label.evalLabel(x, t)
		if err != nil {
			return nil, false, err
		}
		d := draft{label: l}
		if err := d.fill(x, t, props); err != nil {
			return nil, false, err
		}
		v, err := x.createVertex(&d)
		return v, err == nil, err
	}}, nil
}

// edgeEnds are the ends of an addE().
type edgeEnds struct{ from, to *operand }

// endArg compiles the argument of from() and to(): a label, a traversal, or a vertex.
func (c *compiler) endArg(m gvalue.Instruction) (*operand, error) {
	in := &inst{op: m.Op, args: m.Args}
	if len(m.Args) != 1 {
		return nil, in.argErr("a label, a vertex or a traversal is expected")
	}
	a := m.Args[0]
	if s, ok := a.(string); ok {
		a = &gvalue.Bytecode{Steps: []gvalue.Instruction{{Op: "select", Args: []any{s}}}}
	}
	o, err := c.operand(a)
	return &o, err
}

func buildAddE(c *compiler, in *inst) (step, error) {
	label, err := c.labelArg(in)
	if err != nil {
		return nil, err
	}
	props, err := c.propertyMods(in)
	if err != nil {
		return nil, err
	}
	var ends edgeEnds
	for _, m := range in.mods {
		switch m.Op {
		case "from":
			ends.from, err = c.endArg(m)
		case "to":
			ends.to, err = c.endArg(m)
		}
		if err != nil {
			return nil, err
		}
	}
	return &mapStep{f: func(x *exec, t *trav) (any, bool, error) {
		l, err := label.evalLabel(x, t)
		if err != nil {
			return nil, false, err
		}
		out, err := ends.from.vertex(x, t, l, "from")
		if err != nil {
			return nil, false, err
		}
		in, err := ends.to.vertex(x, t, l, "to")
		if err != nil {
			return nil, false, err
		}
		d := draft{label: l}
		if err := d.fill(x, t, props); err != nil {
			return nil, false, err
		}
		e, err := x.createEdge(&d, out, in)
		return e, err == nil, err
	}}, nil
}

// vertex returns an end of a new edge. Without from() or to() it is the current vertex.
func (o *operand) vertex(x *exec, t *trav, label, end string) (*graph.Vertex, error) {
	v, ok := t.v, true
	if o != nil {
		var err error
		if v, ok, err = o.eval(x, t); err != nil {
			return nil, err
		}
	}
	vx, isVertex := v.(*gvalue.Vertex)
	if _, isID := idText(v); !isVertex && ok && o != nil && isID &&
		family(v) != famEdge { // an id instead of a vertex
		vx, isVertex = &gvalue.Vertex{ID: v}, true
	}
	if !ok || !isVertex {
		what := "null"
		if ok && v != nil {
			what = typeName(v)
		}
		return nil, errf(Runtime, "The value given to addE(%s).%s() must resolve to a Vertex or the ID of a Vertex "+
			"present in the graph but %s was specified instead",
			label, end, what)
	}
	n, err := x.node(vx)
	if err != nil {
		return nil, err
	}
	if n == nil {
		return nil, errf(Runtime,
			"The value given to addE(%s).%s() must resolve to a Vertex but there is no vertex with the id %s",
			label, end, gvalue.Text(vx.ID))
	}
	return n, nil
}

// buildProperty makes the step that sets properties of existing elements. Consecutive property() steps with constant
// values are one write.
func buildProperty(c *compiler, in *inst) (step, error) {
	first, err := c.propArgs(nil, in.args)
	if err != nil {
		return nil, err
	}
	more, err := c.propertyMods(in)
	if err != nil {
		return nil, err
	}
	all := append(first, more...)
	var batches [][]propArg
	for i := range all {
		n := len(batches)
		if n > 0 && !all[i].hasTraversal() && !batches[n-1][0].hasTraversal() {
			batches[n-1] = append(batches[n-1], all[i])
			continue
		}
		batches = append(batches, all[i:i+1:i+1])
	}
	return &effectStep{f: func(x *exec, t *trav) error {
		for _, b := range batches {
			var sets []propSet
			for i := range b {
				p, err := b[i].keyFor(x, t)
				if err != nil {
					return err
				}
				s, ok, err := p.eval(x, t)
				if err != nil {
					return err
				}
				switch {
				case !ok:
				case p.tok == "":
					sets = append(sets, s)
				case !sameToken(t.v, p.tok, s.val):
					return errf(Runtime, "The %s of an element that is there can't be changed", p.tok)
				}
			}
			if len(sets) == 0 {
				continue
			}
			if err := x.setProperties(t.v, sets); err != nil {
				return err
			}
		}
		return nil
	}}, nil
}

// sameToken reports whether the id or the label of an element is v. Programs that create an element or take the one
// that is there set both in either case.
func sameToken(element any, tok gvalue.T, v any) bool {
	have, ok, err := tokenOf(element, tok)
	if !ok || err != nil {
		return false
	}
	a, _ := idText(have)
	b, ok := idText(v)
	return ok && a == b
}

func buildDrop(c *compiler, in *inst) (step, error) {
	return &filterStep{f: func(x *exec, t *trav) (bool, error) { return false, x.drop(t.v) }}, nil
}

// newID returns the id of a new element: the given one, or a new GUID.
func (x *exec) newID(d *draft, what string) (id, kept value.Value, err error) {
	if !d.hasID || d.id == nil {
		u := x.g.clock.UUID()
		return value.StringOf(u.String()), value.Value{}, nil
	}
	switch i := d.id.(type) {
	case string:
	case int32, int64, int16, int8:
		if x.g.Mode != graph.KeySystem {
			return id, kept, errf(Runtime, "%s's ID must be a string", what)
		}
		if kept, err = toValue(i); err != nil {
			return id, kept, err
		}
	case gvalue.UUID:
	default:
		return id, kept, errf(Runtime, "%s's ID must be a string", what)
	}
	s, _ := idText(d.id)
	if s == "" {
		return id, kept, errf(Runtime, "%s's ID must be a string that is not empty", what)
	}
	return value.StringOf(s), kept, nil
}
