package compile

import (
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// Env is what folding must know of the graph.
type Env struct {
	// Key is the property that is the partition key, "" when none is.
	Key string
	// Label is where labels are stored; elements with the label Unlabelled may have none.
	Label      access.Path
	Unlabelled string
	// Paths are where the values of a property are stored; none for a key that no property can have.
	Paths func(key string) []access.Path
	// Value makes the stored form of a value; ok is false for values that an index can't be asked for.
	Value func(v any) (sv value.Value, ok bool)
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
	Pred   *access.Pred  // what an index is asked for: a superset of what the filters accept; nil: all
}

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
		a.and(labelPred(in.Args, env))
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
		a.and(labelPred(args[:1], env))
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
			a.and(labelPred([]any{val}, env))
		}
	case string:
		switch {
		case k == "id":
			if ids, ok := idsOf([]any{val}); ok {
				a.narrowIDs(ids)
			}
		case k == "label":
			a.and(labelPred([]any{val}, env))
		case k == env.Key && k != "":
			a.keys(val, env)
		default:
			a.and(propertyPred(k, val, env))
		}
	}
}

// and narrows the predicate; nil is what can't be asked.
func (a *Access) and(p *access.Pred) {
	if p != nil {
		a.Pred = access.And(a.Pred, p)
	}
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
			dup = dup || have.Kind() == sv.Kind() && have.Raw64() == sv.Raw64() &&
				string(have.Bytes()) == string(sv.Bytes())
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

// labelPred is what hasLabel(..) asks of the labels; nil when it can't be asked.
func labelPred(args []any, env Env) *access.Pred {
	var vs []value.Value
	for _, x := range args {
		if p, ok := x.(*gvalue.P); ok {
			if p.Op != "eq" && p.Op != "within" || len(args) != 1 {
				return nil
			}
			return labelPred(p.Args, env)
		}
		s, ok := x.(string)
		if !ok || s == env.Unlabelled {
			return nil
		}
		vs = append(vs, value.StringOf(s))
	}
	return access.In(env.Label, vs...)
}

// propertyPred asks for a property at all places where it may be stored.
func propertyPred(key string, val any, env Env) *access.Pred {
	test := testOf(val, env)
	if test == nil {
		return nil
	}
	var forms []*access.Pred
	for _, at := range env.Paths(key) {
		forms = append(forms, test(at))
	}
	if forms == nil {
		return nil
	}
	return access.Or(forms...)
}

// testOf is the test of a value, for any path; nil when an index can't be asked for it. Values of kinds that JSON lacks
// (an ObjectId, say) are strings to a traversal, so where strings are asked for those kinds are looked at, too.
func testOf(val any, env Env) func(at access.Path) *access.Pred {
	p, ok := val.(*gvalue.P)
	if !ok {
		p = &gvalue.P{Op: "eq", Args: []any{val}}
	}
	var vs []value.Value
	text := false
	for _, x := range p.Args {
		v, ok := env.Value(x)
		if !ok || !isScalar(v) {
			return nil
		}
		vs, text = append(vs, v), text || v.Kind() == value.String
	}
	test := comparison(p.Op, vs)
	if test == nil || !text {
		return test
	}
	return func(at access.Path) *access.Pred { return access.WithForeign(test(at)) }
}

// comparison is testOf for a predicate by its name.
func comparison(op string, vs []value.Value) func(at access.Path) *access.Pred {
	var lo, hi *access.Bound
	switch {
	case op == "eq" && len(vs) > 0, op == "within":
		return func(at access.Path) *access.Pred { return access.In(at, vs...) }
	case op == "startingWith" && len(vs) == 1 && vs[0].Kind() == value.String:
		return func(at access.Path) *access.Pred { return access.Prefix(at, vs[0].Str()) }
	case (op == "lt" || op == "lte") && len(vs) > 0:
		hi = &access.Bound{Value: vs[0], Inclusive: op == "lte"}
	case (op == "gt" || op == "gte") && len(vs) > 0:
		lo = &access.Bound{Value: vs[0], Inclusive: op == "gte"}
	case (op == "between" || op == "inside") && len(vs) == 2:
		lo, hi = &access.Bound{Value: vs[0], Inclusive: op == "between"}, &access.Bound{Value: vs[1]}
	default:
		return nil
	}
	return func(at access.Path) *access.Pred { return access.Range(at, lo, hi) }
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
