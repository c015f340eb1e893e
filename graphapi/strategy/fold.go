package strategy

import (
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// Env is what folding must know of the graph.
type Env struct {
	Vertices bool
	// Key is the property that is the partition key, "" when none is.
	Key string
	// Value makes the stored form of a value; ok is false for values that an index can't be asked for.
	Value func(v any) (sv value.Value, ok bool)
	// Stored is the stored name of a property key; "" for a key that no stored property can have.
	Stored func(key string) string
	// ID makes the stored form of an id; ok is false for what can't be one.
	ID func(id any) (sv value.Value, ok bool)
}

// Access is what the filters right after V() or E() allow the look-up to be narrowed to.
type Access struct {
	Filters []gvalue.Instruction // the filters themselves: they decide, in the end
	Labels  []gvalue.Instruction // as() steps that stood between them
	N       int                  // instructions taken

	HasIDs bool
	IDs    []any // ids of hasId()
	HasPKs bool
	PKs    []value.Value // partitions
	Pred   *Pred
}

// labelOnly is the label that a document without one has: it can't be looked up.
const labelOnly = "vertex"

// Fold reads the filters at the front of ins.
func Fold(ins []gvalue.Instruction, env Env) Access {
	var a Access
	pending := 0
	for i, in := range ins {
		if in.Op == "as" {
			pending++
			continue
		}
		if !a.take(in, env) {
			break
		}
		a.Labels = append(a.Labels, ins[i-pending:i]...)
		pending = 0
		a.Filters = append(a.Filters, in)
		a.N = i + 1
	}
	return a
}

// take narrows the access by one filter; false when it is none.
func (a *Access) take(in gvalue.Instruction, env Env) bool {
	switch in.Op {
	case "hasLabel":
		a.and(labelPred(in.Args))
		return true
	case "hasId":
		if ids, ok := idsOf(in.Args); ok {
			a.narrowIDs(ids)
		}
		return true
	case "hasNot", "hasKey", "hasValue":
		return true
	case "has":
		return a.takeHas(in.Args, env)
	}
	return false
}

func (a *Access) takeHas(args []any, env Env) bool {
	for _, x := range args {
		if _, ok := x.(*gvalue.Bytecode); ok {
			return false
		}
	}
	switch len(args) {
	case 1:
		return true
	case 3:
		a.and(labelPred(args[:1]))
		a.property(args[1], args[2], env)
		return true
	case 2:
		a.property(args[0], args[1], env)
		return true
	}
	return false
}

func (a *Access) property(key, val any, env Env) {
	switch k := key.(type) {
	case gvalue.T:
		switch k {
		case gvalue.TID:
			if ids, ok := idsOf([]any{val}); ok {
				a.narrowIDs(ids)
			}
		case gvalue.TLabel:
			a.and(labelPred([]any{val}))
		}
	case string:
		switch {
		case k == "id":
			if ids, ok := idsOf([]any{val}); ok {
				a.narrowIDs(ids)
			}
		case k == "label":
			a.and(labelPred([]any{val}))
		case k == env.Key && k != "":
			a.keys(val, env)
		default:
			a.and(propertyPred(k, val, env))
		}
	}
}

func (a *Access) and(p *Pred) {
	a.Pred = AndOf(a.Pred, p)
}

// narrowIDs keeps the ids that were allowed before, too.
func (a *Access) narrowIDs(ids []any) {
	if !a.HasIDs {
		a.HasIDs = true
		seen := &gvalue.Set{}
		for _, id := range ids {
			seen.Add(id)
		}
		a.IDs = seen.Items()
		return
	}
	// The filters are checked again: any of the lists will do.
}

// keys narrows to the partitions that the value of the partition key property allows.
func (a *Access) keys(val any, env Env) {
	vals := []any{val}
	if p, ok := val.(*gvalue.P); ok {
		switch p.Op {
		case "eq", "within":
			vals = p.Args
		default:
			return
		}
	}
	if a.HasPKs {
		return
	}
	var pks []value.Value
	for _, v := range vals {
		sv, ok := env.Value(v)
		if !ok {
			return
		}
		switch sv.Kind() {
		case value.String, value.Bool, value.Int32, value.Int64, value.Double:
		default:
			return
		}
		dup := false
		for _, have := range pks {
			dup = dup || have.Kind() == sv.Kind() && have.Raw64() == sv.Raw64() && string(have.Bytes()) == string(sv.Bytes())
		}
		if !dup {
			pks = append(pks, sv)
		}
	}
	if hasMixedNumbers(pks) {
		return
	}
	a.HasPKs, a.PKs = true, pks
}

// hasMixedNumbers sees 1 and 1.0 in one list: they are one partition, which must not be read twice.
func hasMixedNumbers(pks []value.Value) bool {
	for i, p := range pks {
		for _, q := range pks[:i] {
			if p.IsNumber() && q.IsNumber() && p.Float() == q.Float() {
				return true
			}
		}
	}
	return false
}

// idsOf returns the ids of hasId(..) when they are a plain list.
func idsOf(args []any) (ids []any, ok bool) {
	for _, x := range args {
		switch v := x.(type) {
		case *gvalue.P:
			if len(args) != 1 || v.Op != "eq" && v.Op != "within" {
				return nil, false
			}
			ids = append(ids, v.Args...)
		case []any:
			ids = append(ids, v...)
		case *gvalue.Set:
			ids = append(ids, v.Items()...)
		default:
			ids = append(ids, x)
		}
	}
	return ids, true
}

// labelPred is what hasLabel(..) asks of the label field; nil when it can't be asked.
func labelPred(args []any) *Pred {
	var vs []value.Value
	for _, x := range args {
		if p, ok := x.(*gvalue.P); ok {
			if p.Op != "eq" && p.Op != "within" || len(args) != 1 {
				return nil
			}
			return labelPred(p.Args)
		}
		s, ok := x.(string)
		if !ok || s == labelOnly {
			return nil
		}
		vs = append(vs, value.StringOf(s))
	}
	return InOf(vs, "label")
}

// propertyPred asks for a property in both stored forms: the vertex's [{_value}] and the plain field.
func propertyPred(key string, val any, env Env) *Pred {
	name := env.Stored(key)
	if name == "" {
		return nil
	}
	one := leaf(val, env)
	if one == nil {
		return nil
	}
	at := func(element bool, path ...string) *Pred {
		p := *one
		p.Element, p.Path = element, path
		if p.Op == And || p.Op == Or {
			return nil
		}
		return &p
	}
	if !env.Vertices {
		return at(false, name)
	}
	p := OrOf(at(true, name, "_value"), at(true, name))
	return p
}

// leaf is the test of a value without its path; nil when an index can't be asked for it.
func leaf(val any, env Env) *Pred {
	p, ok := val.(*gvalue.P)
	if !ok {
		p = &gvalue.P{Op: "eq", Args: []any{val}}
	}
	values := func(args []any) ([]value.Value, bool) {
		var vs []value.Value
		for _, x := range args {
			v, ok := env.Value(x)
			if !ok || !isScalar(v) {
				return nil, false
			}
			vs = append(vs, v)
		}
		return vs, true
	}
	vs, ok := values(p.Args)
	switch p.Op {
	case "eq", "within", "lt", "lte", "gt", "gte", "inside", "between", "startingWith":
		if !ok || len(vs) == 0 && p.Op != "within" {
			return nil
		}
	default:
		return nil
	}
	switch p.Op {
	case "eq":
		return &Pred{Op: Eq, Values: vs}
	case "within":
		return InOf(vs)
	case "startingWith":
		return &Pred{Op: Prefix, Values: vs}
	}
	for _, v := range vs {
		if v.Kind() == value.Decimal { // ordered by the core's collation, which is ours only for the other scalars
			return nil
		}
	}
	r := &Pred{Op: Range}
	switch p.Op {
	case "lt", "lte":
		r.Hi = &Bound{vs[0], p.Op == "lte"}
	case "gt", "gte":
		r.Lo = &Bound{vs[0], p.Op == "gte"}
	default:
		if len(vs) != 2 {
			return nil
		}
		r.Lo, r.Hi = &Bound{vs[0], p.Op == "between"}, &Bound{vs[1], false}
	}
	return r
}

func isScalar(v value.Value) bool {
	switch v.Kind() {
	case value.Bool, value.Int32, value.Int64, value.String:
		return true
	case value.Double:
		f := v.Float()
		return f == f
	}
	return false
}
