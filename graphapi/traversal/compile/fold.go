package compile

import (
	"slices"

	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// Env is the information about the graph that folding needs.
type Env struct {
	// Key is the property that is the partition key, "" = none.
	Key string
	// Label is the path of labels. Elements with the label Unlabelled may have no stored label.
	Label      access.Path
	Unlabelled string
	// Paths returns the paths of the values of a property, none for a key that no property can have.
	Paths func(key string) []access.Path
	// Value returns the stored form of a value. ok is false for values that can't be in an index condition.
	Value func(v any) (sv value.Value, ok bool)
	// Begins says that V() or E() begins the request's traversal: no label is bound before it.
	Begins bool
}

// Access is the look-up to which V() or E() is narrowed by the filters directly after it.
//
// Example: V().hasLabel('person').has('age', gt(30)).out() has N = 2 and a Pred of label = 'person' and age > 30 at the
// paths of properties. Both filters are still checked on each element. out() isn't a filter and ends the folding.
//
// and(), filter() and where() with traversals that are only such filters are those filters. or() and match() end the
// folding: they narrow the look-up, and are checked by their steps.
type Access struct {
	Filters []gvalue.Instruction // the filters, which are checked exactly afterwards
	Labels  []gvalue.Instruction // as() steps between them
	N       int                  // number of folded instructions

	HasIDs bool
	IDs    []any // ids of hasId()
	HasPKs bool
	PKs    []value.Value // partitions
	Pred   *access.Pred  // the index condition: it selects a superset of what the filters accept; nil: all
	Loose  bool          // some filter has narrowed nothing: what is selected may be much more
}

// Fold folds the filters at the front of ins.
func Fold(ins []gvalue.Instruction, env Env) Access {
	var a Access
	pending := 0
	for i, in := range ins {
		if in.Op == "as" {
			pending++
			continue
		}
		switch in.Op {
		case "or":
			a.and(anyOf(in, env))
		case "match":
			a.takeMatch(in, env)
		}
		before := a
		if !a.take(in, env) {
			break
		}
		a.Loose = a.Loose || a.Pred == before.Pred && a.HasIDs == before.HasIDs && a.HasPKs == before.HasPKs
		a.Labels = append(a.Labels, ins[i-pending:i]...)
		pending = 0
		a.N = i + 1
	}
	return a
}

// take narrows the access by one filter. It returns false if the instruction isn't a filter.
func (a *Access) take(in gvalue.Instruction, env Env) bool {
	switch in.Op {
	case "and", "filter", "where":
		return a.takeAll(in.Args, env)
	}
	if !a.narrow(in, env) {
		return false
	}
	a.Filters = append(a.Filters, in)
	return true
}

// takeAll narrows the access by the filters of traversals. If one of them is more than filters it does nothing, and
// returns false.
func (a *Access) takeAll(traversals []any, env Env) bool {
	all := *a
	all.Filters = slices.Clip(a.Filters)
	for _, t := range traversals {
		b, ok := t.(*gvalue.Bytecode)
		if !ok || len(b.Steps) == 0 {
			return false
		}
		for _, in := range b.Steps {
			if !all.take(in, env) {
				return false
			}
		}
	}
	*a = all
	return len(traversals) > 0
}

// anyOf returns the index condition of an or(): nil if one of its traversals may not be narrowed by one.
func anyOf(or gvalue.Instruction, env Env) *access.Pred {
	var preds []*access.Pred
	for _, t := range or.Args {
		var kid Access
		if !kid.takeAll([]any{t}, env) || kid.Pred == nil {
			return nil
		}
		preds = append(preds, kid.Pred)
	}
	if preds == nil {
		return nil
	}
	return access.Or(preds...)
}

// takeMatch narrows the access by the filters with which patterns of a match() begin whose variable is the element
// itself. That is the variable at which match() starts, unless an earlier step has bound it to something else.
//
// Example: match(as('a').has('name', 'x'), as('a').hasLabel('p').out().as('b')) narrows to name = 'x' and label = 'p'.
func (a *Access) takeMatch(match gvalue.Instruction, env Env) {
	if !env.Begins {
		return
	}
	patterns := Patterns(match.Args)
	start := MatchStart(patterns)
	for _, p := range patterns {
		if from, _ := PatternEnds(p); from != start || start == "" {
			continue
		}
		steps, err := Infix(p.Steps[1:]) // has(..).or().has(..) doesn't begin with a filter
		if err != nil {
			continue
		}
		var kid Access
		for _, in := range steps {
			if !kid.take(in, env) {
				break
			}
		}
		a.and(kid.Pred)
		if kid.HasIDs {
			a.narrowIDs(kid.IDs)
		}
		if kid.HasPKs && !a.HasPKs {
			a.HasPKs, a.PKs = true, kid.PKs
		}
	}
}

// narrow is take for a single filter.
func (a *Access) narrow(in gvalue.Instruction, env Env) bool {
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
		a.present(args[0], env)
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

// present narrows the access to elements that have a property. The partition key is one that all have.
func (a *Access) present(key any, env Env) {
	k, ok := key.(string)
	if !ok || k == env.Key || k == "id" || k == "label" {
		return
	}
	var forms []*access.Pred
	for _, at := range env.Paths(k) {
		forms = append(forms, access.Exists(at))
	}
	if forms != nil {
		a.and(access.Or(forms...))
	}
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

// and narrows the predicate. nil means that no condition can be added.
func (a *Access) and(p *access.Pred) {
	if p != nil {
		a.Pred = access.And(a.Pred, p)
	}
}

// narrowIDs intersects the ids with those of another filter.
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
	// All filters are checked again, so each of the lists is a correct superset.
}

// keys narrows the access to the partitions that val allows for the partition key property.
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

// hasMixedNumbers reports whether a list has both 1 and 1.0. They are the same partition, which must not be read twice.
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

// idsOf returns the ids of hasId(..) if they are a plain list.
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

// labelPred returns the index condition of hasLabel(..), nil if there is none.
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

// propertyPred returns the condition on a property at all its paths.
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

// testOf returns the condition on a value as a function of the path, nil if there is none. Values of kinds that JSON
// lacks (such as an ObjectId) are strings in a traversal, so a condition on strings includes those kinds.
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

// comparison is testOf for the name of a predicate.
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
