package tableapi

import (
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/tableapi/edm"
	"github.com/orrerydb/orrery/tableapi/odata"
)

// A filter is used twice. match decides exactly. predicate is a weaker condition for the core, which an index can
// answer: it selects a superset of the items. Parts of the filter that predicate can't express exactly or weaker are
// left out.
//
// Example: for n eq 5L the predicate is n = 5 for all kinds of numbers, because the index treats them as one class.
// match then drops a Double 5.

// match compiles the exact filter for the items of v.
func (v *view) match(n *odata.Node) func(*core.Item) bool {
	if v.native {
		n = byText(n)
	}
	return odata.Compile(n, v.reader)
}

// rowKeyText is the name of RowKey in the result of byText. No property can have this name.
const rowKeyText = "\x00" + edm.RowKey

// byText returns n with all equality comparisons of RowKey made as text, because MongoDB may have given an entity an id
// of another kind. Range comparisons stay ranges of strings, which are ranges of keys.
func byText(n *odata.Node) *odata.Node {
	if n == nil {
		return nil
	}
	c := *n
	c.Args = make([]*odata.Node, len(n.Args))
	for i, a := range n.Args {
		c.Args[i] = byText(a)
	}
	if n.Kind == odata.Compare && (n.Op == odata.Eq || n.Op == odata.Ne) {
		if c.Left.Prop == edm.RowKey {
			c.Left.Prop = rowKeyText
		}
		if c.Right.Prop == edm.RowKey {
			c.Right.Prop = rowKeyText
		}
	}
	return &c
}

// reader returns the function that reads a property of an item for a filter. Arrays, documents and the kinds that are
// shown as strings are Undefined for filters, because they have no order here.
func (v *view) reader(prop string) func(*core.Item) value.Value {
	switch prop {
	case edm.Timestamp:
		return func(it *core.Item) value.Value { return ticksValue(it.Ticks) }
	case edm.PartitionKey:
		if v.native {
			return func(it *core.Item) value.Value { return value.Lookup(it.Doc, edm.PartitionField) }
		}
		return func(it *core.Item) value.Value { return value.StringBytes(v.keyText(it)) }
	case edm.RowKey, rowKeyText:
		stored := v.native && prop == edm.RowKey
		return func(it *core.Item) value.Value {
			id := value.Lookup(it.Doc, "_id")
			if id.Kind() == value.String || stored {
				return id
			}
			return value.StringOf(core.IdentityText(id))
		}
	case "id":
		if !v.native {
			return func(*core.Item) value.Value { return value.Undef() }
		}
	}
	name := edm.StoredName(prop)
	return func(it *core.Item) value.Value { return value.Lookup(it.Doc, name) }
}

// ticksValue converts a Timestamp to a date.
func ticksValue(ticks int64) value.Value {
	ms := ticks / 10_000
	rest := ticks % 10_000
	if rest < 0 {
		ms, rest = ms-1, rest+10_000
	}
	return value.DateOf(ms, uint16(rest))
}

// plan is the part of a filter that the core uses.
type plan struct {
	pk   core.PartitionKey // the only logical partition, nil = any
	pred *access.Pred
	// natural says that a scan of the logical partition is already in RowKey order: the predicate has only RowKey
	// ranges.
	natural bool
}

// plan determines the logical partition and the predicate of a filter.
func (v *view) plan(n *odata.Node) plan {
	p := plan{pred: access.All(), natural: true}
	if n == nil {
		return p
	}
	conj := []*odata.Node{n}
	if n.Kind == odata.And {
		conj = n.Args
	}
	ps := make([]*access.Pred, 0, len(conj))
	for _, c := range conj {
		prop, op, lit, ok := comparison(c)
		if ok && v.native && prop == edm.PartitionKey && op == odata.Eq && lit.Kind() == value.String && p.pk == nil {
			p.pk = core.PartitionKey{lit}
			continue
		}
		pred := v.predicate(c)
		if !(ok && prop == edm.RowKey && op > odata.Ne) && pred.Op != access.OpAll {
			p.natural = false
		}
		ps = append(ps, pred)
	}
	p.pred = access.And(ps...)
	return p
}

// comparison returns the parts of a comparison of a property with a literal, with the property on the left.
func comparison(n *odata.Node) (prop string, op odata.Op, lit value.Value, ok bool) {
	if n.Kind != odata.Compare {
		return "", 0, lit, false
	}
	l, r, op := n.Left, n.Right, n.Op
	if l.Prop == "" {
		l, r, op = r, l, odata.Mirror(op)
	}
	return l.Prop, op, r.Lit, l.Prop != "" && r.Prop == ""
}

// predicate returns a condition that every item satisfies that satisfies n.
func (v *view) predicate(n *odata.Node) *access.Pred {
	switch n.Kind {
	case odata.And:
		return access.And(v.predicates(n.Args)...)
	case odata.Or:
		return access.Or(v.predicates(n.Args)...)
	case odata.Truth:
		if n.Left.Prop != "" {
			return v.compared(n.Left.Prop, odata.Eq, value.BoolOf(true))
		}
		if n.Left.Lit.Bool() {
			return access.All()
		}
		return access.None()
	case odata.Compare:
		if prop, op, lit, ok := comparison(n); ok {
			return v.compared(prop, op, lit)
		}
	}
	return access.All() // a negation is true for items without the property
}

func (v *view) predicates(ns []*odata.Node) []*access.Pred {
	out := make([]*access.Pred, len(ns))
	for i, n := range ns {
		out[i] = v.predicate(n)
	}
	return out
}

// compared returns the predicate of one comparison. The index orders all numbers as one class, so the predicate covers
// Int32, Int64 and Double together, and match distinguishes them.
func (v *view) compared(prop string, op odata.Op, lit value.Value) *access.Pred {
	var path access.Path
	switch prop {
	case edm.Timestamp:
		return access.All()
	case edm.PartitionKey, edm.RowKey:
		if !v.native {
			return v.comparedKey(prop, op, lit)
		}
		path = access.NewPath(edm.PartitionField)
		if prop == edm.RowKey {
			if op == odata.Eq && lit.Kind() == value.String {
				return access.In(access.ID, core.IdentityFromText(lit.Str())...)
			}
			path = access.ID
		}
	case "id":
		if !v.native {
			return access.None()
		}
		path = access.NewPath("id")
	default:
		path = access.NewPath(edm.StoredName(prop))
	}
	if lit.Kind() == value.Double && lit.Float() != lit.Float() {
		return access.None() // comparisons with NaN are false
	}
	if lit.Kind() == value.Binary && op != odata.Ne {
		return access.Exists(path) // comparisons here ignore the subtype of a binary, the index doesn't
	}
	switch op {
	case odata.Eq:
		return access.Eq(path, lit)
	case odata.Gt, odata.Ge:
		return access.Range(path, &access.Bound{Value: lit, Inclusive: op == odata.Ge}, nil)
	case odata.Lt, odata.Le:
		return access.Range(path, nil, &access.Bound{Value: lit, Inclusive: op == odata.Le})
	}
	return access.All()
}

// comparedKey is compared for a key in another API's container. A text may represent values of several kinds, whose
// order isn't the order of texts, so only equality becomes a predicate.
func (v *view) comparedKey(prop string, op odata.Op, lit value.Value) *access.Pred {
	if op != odata.Eq || lit.Kind() != value.String {
		return access.All()
	}
	text := lit.Str()
	if prop == edm.RowKey || v.byID() {
		return access.In(access.ID, core.IdentityFromText(text)...)
	}
	pks := v.partitionKeys(text)
	if len(v.paths) != 1 || len(pks) == 0 {
		return access.All()
	}
	vals := make([]value.Value, 0, len(pks))
	for _, pk := range pks {
		if !pk[0].IsDefined() || pk[0].Kind() == value.Null {
			return access.All()
		}
		vals = append(vals, pk[0])
	}
	if text[0] == '{' || text[0] == '[' {
		return access.All() // may be the JSON of a key that isn't a scalar
	}
	return access.In(access.NewPath(v.paths[0]...), vals...)
}
