package run

import (
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/graphapi/graph"
	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/traversal/compile"
)

// mergeArgs is mergeV() or mergeE(): find the elements that the map describes, or create one.
type mergeArgs struct {
	op            string  // mergeV or mergeE
	what          operand // the map that describes the element
	create, match *operand
	outV, inV     *operand
	given         bool
	// cards are the cardinalities for properties in the map of an option that don't have their own.
	cards map[gvalue.Merge]gvalue.Cardinality
	// written are the properties that PartitionStrategy adds to the map of the search, and so to a new element.
	written *gvalue.Map
}

func (m *mergeArgs) edge() bool { return m.op == "mergeE" }

func buildMerge(c *compiler, in *inst) (step, error) {
	m := &mergeArgs{op: in.op, written: c.config.Written()}
	if len(in.args) == 1 {
		o, err := c.operand(in.args[0])
		if err != nil {
			return nil, err
		}
		m.what, m.given = o, true
	}
	for _, mod := range in.mods {
		if len(mod.Args) < 2 || len(mod.Args) > 3 {
			return nil, in.argErr("option() takes onCreate, onMatch, outV or inV and a map or a traversal")
		}
		k, ok := mod.Args[0].(gvalue.Merge)
		if !ok {
			return nil, in.argErr("option() takes onCreate, onMatch, outV or inV")
		}
		if len(mod.Args) == 3 {
			card, ok := mod.Args[2].(gvalue.Cardinality)
			if !ok || m.edge() || k != gvalue.MergeCreate && k != gvalue.MergeMatch {
				return nil, in.argErr("only the maps of onCreate and onMatch of mergeV() have a cardinality")
			}
			if m.cards == nil {
				m.cards = map[gvalue.Merge]gvalue.Cardinality{}
			}
			m.cards[k] = card
		}
		o, err := c.operand(mod.Args[1])
		if err != nil {
			return nil, err
		}
		switch k {
		case gvalue.MergeCreate:
			m.create = &o
		case gvalue.MergeMatch:
			m.match = &o
		case gvalue.MergeOutV:
			m.outV = &o
		case gvalue.MergeInV:
			m.inV = &o
		}
	}
	if err := m.validConstants(); err != nil {
		return nil, err
	}
	return &flatStep{f: func(x *exec, t *trav) (iter, error) {
		if m.edge() {
			return m.mergeE(x, t)
		}
		return m.mergeV(x, t)
	}}, nil
}

// validConstants validates constant maps, also those that may not be used.
func (m *mergeArgs) validConstants() error {
	constant := func(o *operand) *gvalue.Map {
		if o == nil || o.tr != nil {
			return nil
		}
		what, _ := o.v.(*gvalue.Map)
		return what
	}
	what, create := constant(&m.what), constant(m.create)
	for _, c := range []*gvalue.Map{what, create} {
		if err := m.valid(c); err != nil {
			return err
		}
	}
	if what != nil && create != nil {
		if err := noOverrides(what, create); err != nil {
			return err
		}
	}
	return m.validMatch(constant(m.match))
}

// noOverrides refuses a map of onCreate that contradicts the map of the search.
func noOverrides(what, create *gvalue.Map) error {
	for _, e := range create.Entries() {
		if have, ok := what.Get(e.Key); ok && !sameMerge(e.Key, have, e.Value) {
			return errf(Runtime, "option(onCreate) cannot override values from merge() argument: (%s, %s)",
				gvalue.Text(e.Key), gvalue.Text(have))
		}
	}
	return nil
}

// mapOf evaluates an operand that must give a map. null is an empty map. A traversal without a result is refused,
// because an empty map would match every element.
func (x *exec) mapOf(o *operand, t *trav) (*gvalue.Map, error) {
	v, ok, err := o.eval(x, t)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errf(Runtime, "The provided traverser does not map to a value: mergeV() and mergeE() need a map")
	}
	if v == nil {
		return &gvalue.Map{}, nil
	}
	m, isMap := v.(*gvalue.Map)
	if !isMap {
		return nil, errf(Runtime, "mergeV() and mergeE() take a map, not a %s", typeName(v))
	}
	return m, nil
}

func (m *mergeArgs) search(x *exec, t *trav) (*gvalue.Map, error) {
	o := &m.what
	if !m.given {
		o = &operand{v: t.v}
	}
	what, err := x.mapOf(o, t)
	if err != nil {
		return nil, err
	}
	if m.written != nil {
		own := what // of the client, or a constant of the traversal
		what = gvalue.NewMap(own.Len() + m.written.Len())
		for _, from := range []*gvalue.Map{own, m.written} {
			for _, e := range from.Entries() {
				what.Put(e.Key, e.Value)
			}
		}
	}
	return what, m.valid(what)
}

// valid validates a map of mergeV(), mergeE() or option(onCreate, ..) like TinkerPop. It refuses keys and values that
// no element can have.
func (m *mergeArgs) valid(what *gvalue.Map) error {
	for _, e := range what.Entries() {
		if e.Value == nil {
			return errf(Runtime, "%s() does not allow null Map values - check: %s", m.op, gvalue.Text(e.Key))
		}
		switch k := e.Key.(type) {
		case string:
			if err := notHidden("Property key", k); err != nil {
				return err
			}
			continue
		case gvalue.T:
			if l, isText := e.Value.(string); k == gvalue.TLabel && isText {
				if err := notHidden("Label", l); err != nil {
					return err
				}
				continue
			}
			if k == gvalue.TLabel {
				return errf(Runtime, "%s() and option(onCreate) args expect T.label value to be of String - found: %s",
					m.op, typeName(e.Value))
			}
			if k == gvalue.TID {
				continue
			}
		case gvalue.Direction:
			if token, isToken := e.Value.(gvalue.Merge); isToken && (token == gvalue.MergeOutV) != (k == gvalue.OUT) {
				return errf(Runtime, "Only Merge.outV may stand for Direction.OUT, and Merge.inV for Direction.IN, "+
					"found: %s for %s", token, k)
			}
			if m.edge() && (k == gvalue.OUT || k == gvalue.IN) {
				continue
			}
		}
		keys := "[T.id, T.label]"
		if m.edge() {
			keys = "[T.id, T.label, Direction.OUT, Direction.IN]"
		}
		return errf(Runtime, "%s() and option(onCreate) args expect keys in Map to be either String or %s - check: %s",
			m.op, keys, gvalue.Text(e.Key))
	}
	return nil
}

// validMatch is valid for option(onMatch, ..). There null removes a property of an edge.
func (m *mergeArgs) validMatch(what *gvalue.Map) error {
	for _, e := range what.Entries() {
		if e.Value == nil && !m.edge() {
			return errf(Runtime, "%s() does not allow null Map values - check: %s", m.op, gvalue.Text(e.Key))
		}
		k, ok := e.Key.(string)
		if !ok {
			return errf(Runtime, "option(onMatch) expects keys in Map to be of String - check: %s", gvalue.Text(e.Key))
		}
		if err := notHidden("Property key", k); err != nil {
			return err
		}
	}
	return nil
}

// notHidden refuses names that TinkerPop reserves.
func notHidden(what, key string) error {
	switch {
	case key == "":
		return errf(Runtime, "%s can not be empty", what)
	case key[0] == '~':
		return errf(Runtime, "%s can not be a hidden key: %s", what, key)
	}
	return nil
}

// withCardinality sets the cardinality of the option for properties of a draft without one.
func (m *mergeArgs) withCardinality(d *draft, option *gvalue.Map, k gvalue.Merge) {
	card, ok := m.cards[k]
	if !ok {
		return
	}
	for i := range d.props {
		if _, in := option.Get(d.props[i].key); in && d.props[i].card == "" {
			d.props[i].card = card
		}
	}
}

// merged returns the draft of a new element from the map of the search and that of onCreate, which may add to it but
// not change it.
func (m *mergeArgs) merged(x *exec, t *trav, what *gvalue.Map) (*draft, *gvalue.Map, error) {
	label := graph.DefaultLabel
	if m.edge() {
		label = "edge"
	}
	out := gvalue.NewMap(what.Len())
	for _, e := range what.Entries() {
		out.Put(e.Key, e.Value)
	}
	if m.create == nil {
		d, err := draftOf(out, label)
		return d, out, err
	}
	more, err := x.mapOf(m.create, t)
	if err == nil {
		err = m.valid(more)
	}
	if err != nil {
		return nil, nil, err
	}
	if err := noOverrides(out, more); err != nil {
		return nil, nil, err
	}
	for _, e := range more.Entries() {
		out.Put(e.Key, e.Value)
	}
	d, err := draftOf(out, label)
	if err != nil {
		return nil, nil, err
	}
	m.withCardinality(d, more, gvalue.MergeCreate)
	return d, out, nil
}

// sameMerge reports whether two values are equal as values of a key of a merge map: ids, and vertices by their ids, are
// compared as text.
func sameMerge(key, a, b any) bool {
	_, isEnd := key.(gvalue.Direction)
	if !isEnd && key != gvalue.TID {
		return equal(a, b)
	}
	x, okX := endText(a)
	y, okY := endText(b)
	if okX && okY {
		return x == y
	}
	return equal(a, b)
}

func endText(v any) (string, bool) {
	if vx, ok := v.(*gvalue.Vertex); ok {
		v = vx.ID
	}
	if _, token := v.(gvalue.Merge); token {
		return "", false
	}
	return idText(v)
}

// draftOf reads the map of a new element. The caller handles the directions of an edge.
func draftOf(m *gvalue.Map, label string) (*draft, error) {
	d := &draft{label: label}
	for _, e := range m.Entries() {
		switch k := e.Key.(type) {
		case gvalue.T:
			switch k {
			case gvalue.TID:
				d.id, d.hasID = e.Value, true
			case gvalue.TLabel:
				l, ok := e.Value.(string)
				if !ok {
					return nil, errf(Runtime, "A label is a string, not a %s", typeName(e.Value))
				}
				d.label = l
			default:
				return nil, errf(Runtime, "A merge map does not take T.%s", k)
			}
		case gvalue.Direction:
		case string:
			s := propSet{key: k, val: e.Value}
			if cv, ok := e.Value.(gvalue.CardinalityValue); ok {
				s.card, s.val = cv.Cardinality, cv.Value
			}
			if k == "id" {
				d.id, d.hasID = s.val, true
				continue
			}
			if k == "" || !graph.ValidKey(k) || graph.IsReserved(graph.StoredKey(k)) {
				return nil, errf(Runtime, "Property key '%s' is reserved", k)
			}
			d.props = append(d.props, s)
		default:
			return nil, errf(Runtime, "A merge map takes strings, T and Direction as keys, not a %s", typeName(e.Key))
		}
	}
	return d, nil
}

// fits reports whether an element matches the map.
func (d *draft) fits(el any, hasLabel bool) bool {
	if d.hasID {
		a, _ := idText(elementID(el))
		if b, _ := idText(d.id); a != b {
			return false
		}
	}
	if l, _, _ := tokenOf(el, gvalue.TLabel); hasLabel && l != d.label {
		return false
	}
	for _, p := range d.props {
		if ok, _ := testProperty(el, p.key, eqPredicate(p.val)); !ok {
			return false
		}
	}
	return true
}

func (m *mergeArgs) mergeV(x *exec, t *trav) (iter, error) {
	what, err := m.search(x, t)
	if err != nil {
		return nil, err
	}
	d, err := draftOf(what, graph.DefaultLabel)
	if err != nil {
		return nil, err
	}
	_, hasLabel := what.Get(gvalue.TLabel)
	found, err := x.findVertices(d, hasLabel)
	if err != nil {
		return nil, err
	}
	if len(found) > 0 {
		return &sliceIter{vs: found}, m.onMatch(x, t, found)
	}
	if d, _, err = m.merged(x, t, what); err != nil {
		return nil, err
	}
	v, err := x.createVertex(d)
	return &sliceIter{vs: []any{v}}, err
}

// findVertices looks up the vertices that the map describes: by id if it has one, otherwise by label and properties.
func (x *exec) findVertices(d *draft, hasLabel bool) ([]any, error) {
	var it iter
	preds, pk, err := x.described(d, true)
	if err != nil {
		return nil, err
	}
	if hasLabel && d.label != graph.DefaultLabel {
		preds = append(preds, graph.Labelled(d.label))
	}
	switch s, ok := idText(d.id); {
	case d.hasID && ok && pk.IsDefined():
		it, err = x.read(true, pk, value.StringOf(s))
	case d.hasID:
		it, err = x.byID(true, d.id)
	default:
		it, err = x.scan(&selection{vertices: true, pred: access.And(preds...)}, pk)
	}
	if it == nil || err != nil {
		return nil, err
	}
	defer it.close()
	var out []any
	for {
		v, ok, err := it.next(x)
		if !ok || err != nil {
			return out, err
		}
		if d.fits(v, hasLabel) {
			if err := x.hold(v); err != nil {
				return nil, err
			}
			out = append(out, v)
		}
	}
}

// described returns the index conditions for the properties of a draft, and the partition that they name.
func (x *exec) described(d *draft, vertices bool) (preds []*access.Pred, pk value.Value, err error) {
	env := (&compiler{x: x}).foldEnv(vertices)
	for _, p := range d.props {
		sv, err := toValue(p.val)
		if err != nil {
			return nil, pk, err
		}
		if x.g.Mode == graph.KeyProperty && p.key == x.g.Key {
			pk = sv
			continue
		}
		has := gvalue.Instruction{Op: "has", Args: []any{p.key, p.val}}
		preds = append(preds, compile.Fold([]gvalue.Instruction{has}, env).Pred)
	}
	return preds, pk, nil
}

// onMatch sets the properties of option(onMatch, ..) on all elements found.
func (m *mergeArgs) onMatch(x *exec, t *trav, found []any) error {
	if m.match == nil {
		return nil
	}
	// all before the first write, so that a value that can't be stored changes nothing
	drafts := make([]*draft, len(found))
	for i, el := range found {
		at := t
		if m.match.tr != nil { // the input of the traversal is the element that was found
			at = t.split(x, el)
		}
		more, err := x.mapOf(m.match, at)
		if err == nil {
			err = m.validMatch(more)
		}
		if err != nil {
			return err
		}
		d, err := draftOf(more, "")
		if err != nil {
			return err
		}
		if d.hasID {
			return errf(Runtime, "option(onMatch) can set properties only")
		}
		m.withCardinality(d, more, gvalue.MergeMatch)
		for _, p := range d.props {
			v, err := toValue(p.val)
			if err != nil {
				return err
			}
			if x.g.Mode == graph.KeyProperty && p.key == x.g.Key && !graph.SameKey(v, keyOfElement(el)) {
				return errf(Runtime, "The partition key property of an element can't be changed")
			}
		}
		drafts[i] = d
	}
	for i, d := range drafts {
		if len(d.props) == 0 {
			continue
		}
		if err := x.setProperties(found[i], d.props); err != nil {
			return err
		}
	}
	return nil
}

// keyOfElement is the partition key of a stored element.
func keyOfElement(el any) value.Value {
	switch e := el.(type) {
	case *gvalue.Vertex:
		if n := graph.VertexOf(e); n != nil {
			return n.PK
		}
	case *gvalue.Edge:
		if n := graph.EdgeOf(e); n != nil {
			return n.PK
		}
	}
	return value.Value{}
}
