package run

import (
	"math/big"
	"regexp"
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/graphapi/graph"
	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/internal/regex"
)

// tern is the result of a predicate. A comparison of values that aren't comparable is neither true nor false, also
// after a negation. In the end only yes counts as true.
//
//	gt(1) of "a"       -> unknown
//	not(gt(1)) of "a"  -> unknown, so the filter drops "a" in both cases
type tern int8

const (
	no tern = iota - 1
	unknown
	yes
)

func ternOf(b bool) tern {
	if b {
		return yes
	}
	return no
}

// predicate is a compiled P. With labels (where), its arguments are names that are resolved for each traverser.
type predicate struct {
	op   string
	args []any
	subs []*predicate
	set  map[string]struct{} // for within and without with many arguments
	re   *regexp.Regexp
	x    *exec // ends a match
	// among finds values in the collections of labels.
	among among
}

// arities are the numbers of arguments of predicates, as far as they are fixed.
var arities = map[string]int{
	"eq": 1, "neq": 1, "lt": 1, "lte": 1, "gt": 1, "gte": 1, "inside": 2, "outside": 2, "between": 2, "not": 1,
	"startingWith": 1, "notStartingWith": 1, "endingWith": 1, "notEndingWith": 1, "containing": 1, "notContaining": 1,
	"regex": 1, "notRegex": 1, "typeOf": 1,
}

// compileP checks and prepares a P. Its arguments must be resolved.
func (c *compiler) compileP(p *gvalue.P) (*predicate, error) {
	out := &predicate{op: p.Op, args: p.Args}
	if n, fixed := arities[p.Op]; fixed && len(p.Args) != n {
		return nil, errf(Compile, "The predicate %s takes %d argument(s), not %d", p.Op, n, len(p.Args))
	}
	switch p.Op {
	case "eq", "neq", "lt", "lte", "gt", "gte", "inside", "outside", "between":
	case "within", "without":
		if len(p.Args) > 8 {
			out.set = make(map[string]struct{}, len(p.Args))
			for _, a := range p.Args {
				out.set[string(appendKey(nil, a))] = struct{}{}
			}
		}
	case "and", "or", "not":
		for _, a := range p.Args {
			s, ok := a.(*gvalue.P)
			if !ok {
				return nil, errf(Compile, "The predicate %s takes predicates", p.Op)
			}
			sc, err := c.compileP(s)
			if err != nil {
				return nil, err
			}
			out.subs = append(out.subs, sc)
		}
	case "startingWith", "notStartingWith", "endingWith", "notEndingWith", "containing", "notContaining":
		if _, ok := p.Args[0].(string); !ok {
			return nil, errf(Compile, "The predicate %s takes a string", p.Op)
		}
	case "regex", "notRegex":
		s, ok := p.Args[0].(string)
		if !ok {
			return nil, errf(Compile, "The predicate %s takes a string", p.Op)
		}
		re, err := regexp.Compile(s)
		if err != nil {
			return nil, errf(Compile, "Invalid regular expression in %s: %s", p.Op, err.Error())
		}
		out.re, out.x = re, c.x
	case "typeOf":
		if name, ok := p.Args[0].(string); ok && typeNames[strings.ToLower(name)] == nil {
			return nil, errf(Compile, "%.100s is not a registered type", name)
		}
	default:
		return nil, errf(Unsupported, "The predicate %s is not supported", p.Op)
	}
	return out, nil
}

// eqPredicate is P.eq(v).
func eqPredicate(v any) *predicate { return &predicate{op: "eq", args: []any{v}} }

// holds reports whether v satisfies the predicate.
func (p *predicate) holds(v any) bool { return p.test(v, p.args) == yes }

// test evaluates the predicate with the given arguments instead of p.args (see where).
func (p *predicate) test(v any, args []any) tern {
	switch p.op {
	case "and", "or":
		r := yes
		if p.op == "or" {
			r = no
		}
		for _, s := range p.subs {
			if t := s.test(v, s.args); p.op == "or" {
				r = max(r, t)
			} else {
				r = min(r, t)
			}
		}
		return r
	case "not":
		return -p.subs[0].test(v, p.subs[0].args)
	}
	if id, ok := v.(idValue); ok {
		v = id.as(p.op, args)
	}
	switch p.op {
	case "eq":
		return ternOf(equal(v, args[0]))
	case "neq":
		return ternOf(!equal(v, args[0]))
	case "lt", "lte", "gt", "gte":
		return relation(p.op, v, args[0])
	case "inside":
		return min(relation("gt", v, args[0]), relation("lt", v, args[1]))
	case "between":
		return min(relation("gte", v, args[0]), relation("lt", v, args[1]))
	case "outside":
		return max(relation("lt", v, args[0]), relation("gt", v, args[1]))
	case "within":
		return ternOf(p.member(v, args))
	case "without":
		return ternOf(!p.member(v, args))
	case "typeOf":
		return ternOf(isType(v, args[0]))
	}
	return p.testText(v, args[0])
}

// idValue is the id of an element as predicates see it. It is its text, so that 1 and "1" are the same vertex, but an
// order by numbers is that of numbers.
//
//	eq("7") of 7  ->  yes
//	gt(9) of 10   ->  yes
//	gt("9") of 10 ->  no: "10" comes before "9"
//	gt(9) of "10" ->  unknown: a text and a number aren't comparable
type idValue struct {
	id   any
	text string
}

// as returns the id for a predicate that isn't a combination of others.
func (e idValue) as(op string, args []any) any {
	if orders(op) && !slices.ContainsFunc(args, func(a any) bool { return family(a) != famNumber }) {
		return e.id
	}
	return e.text
}

// orders reports whether a predicate compares by an order.
func orders(op string) bool {
	switch op {
	case "lt", "lte", "gt", "gte", "inside", "between", "outside":
		return true
	}
	return false
}

// testText evaluates the predicates on text. For other values they are unknown.
func (p *predicate) testText(v, arg any) tern {
	s, ok := v.(string)
	if !ok {
		return unknown
	}
	a, _ := arg.(string)
	switch p.op {
	case "startingWith":
		return ternOf(strings.HasPrefix(s, a))
	case "notStartingWith":
		return ternOf(!strings.HasPrefix(s, a))
	case "endingWith":
		return ternOf(strings.HasSuffix(s, a))
	case "notEndingWith":
		return ternOf(!strings.HasSuffix(s, a))
	case "containing":
		return ternOf(strings.Contains(s, a))
	case "notContaining":
		return ternOf(!strings.Contains(s, a))
	case "regex":
		return p.matches(s)
	case "notRegex":
		return -p.matches(s)
	}
	return unknown
}

// matches reports whether the regular expression matches. If the request ends meanwhile, so does the traversal.
func (p *predicate) matches(s string) tern {
	ok, err := regex.MatchString(p.re, s, p.x.ctx)
	if err != nil {
		p.x.cut = true
		return unknown
	}
	return ternOf(ok)
}

func (p *predicate) member(v any, args []any) bool {
	if p.set != nil {
		_, ok := p.set[string(appendKey(nil, v))]
		return ok && !isNaN(v)
	}
	for _, a := range args {
		if equal(v, a) {
			return true
		}
	}
	return false
}

func relation(op string, a, b any) tern {
	c, ok := compareTyped(a, b)
	if !ok {
		return unknown
	}
	switch op {
	case "lt":
		return ternOf(c < 0)
	case "lte":
		return ternOf(c <= 0)
	case "gt":
		return ternOf(c > 0)
	}
	return ternOf(c >= 0)
}

// equal is the equality of the language. It is gvalue.Equal, except that NaN equals nothing, and that elements of a
// partitioned graph are only equal if their partitions are.
func equal(a, b any) bool {
	if isNaN(a) || isNaN(b) {
		return false
	}
	switch x := a.(type) {
	case string:
		y, ok := b.(string)
		return ok && x == y
	case *gvalue.Vertex, *gvalue.Edge:
		return string(appendKey(nil, a)) == string(appendKey(nil, b))
	}
	return gvalue.Equal(a, b)
}

// appendKey appends bytes that are equal exactly for values that are equal(): those of gvalue, and the partition of an
// element.
func appendKey(dst []byte, v any) []byte {
	switch e := v.(type) {
	case *gvalue.Vertex:
		dst = gvalue.AppendKey(dst, v)
		if n := graph.VertexOf(e); n != nil {
			return appendPartition(dst, n.Partition())
		}
		return dst
	case *gvalue.Edge:
		dst = gvalue.AppendKey(dst, v)
		if n := graph.EdgeOf(e); n != nil {
			return appendPartition(dst, n.Partition())
		}
		return dst
	case *mapEntry:
		return gvalue.AppendKey(gvalue.AppendKey(append(dst, 'E'), e.k), e.v)
	case []any:
		dst = append(dst, '[')
		for _, i := range e {
			dst = append(appendKey(dst, i), ',')
		}
		return append(dst, ']')
	}
	return gvalue.AppendKey(dst, v)
}

func appendPartition(dst []byte, pk value.Value) []byte {
	if !pk.IsDefined() {
		return dst
	}
	return doc.AppendValue(append(dst, '|', byte(pk.Kind())), pk)
}

// typeNames are the names for P.typeOf in lower case. The value tests for the Go types with that name.
var typeNames = map[string]func(v any) bool{
	"string":  func(v any) bool { _, ok := v.(string); return ok },
	"number":  func(v any) bool { return family(v) == famNumber },
	"boolean": func(v any) bool { _, ok := v.(bool); return ok },
	"int":     func(v any) bool { _, ok := v.(int32); return ok },
	"integer": func(v any) bool { _, ok := v.(int32); return ok },
	"long":    func(v any) bool { _, ok := v.(int64); return ok },
	"double":  func(v any) bool { _, ok := v.(float64); return ok },
	"float":   func(v any) bool { _, ok := v.(float32); return ok },
	"short":   func(v any) bool { _, ok := v.(int16); return ok },
	"byte":    func(v any) bool { _, ok := v.(int8); return ok },
	"bigint":  func(v any) bool { _, ok := v.(*big.Int); return ok },
	"bigdecimal": func(v any) bool {
		_, ok := v.(*gvalue.BigDecimal)
		return ok
	},
	"datetime": func(v any) bool { return family(v) == famDate },
	"uuid":     func(v any) bool { return family(v) == famUUID },
	"list":     func(v any) bool { return family(v) == famList },
	"set": func(v any) bool {
		_, bulk := v.(*gvalue.BulkSet)
		return bulk || family(v) == famSet
	},
	"map":      func(v any) bool { return family(v) == famMap },
	"vertex":   func(v any) bool { return family(v) == famVertex },
	"edge":     func(v any) bool { return family(v) == famEdge },
	"path":     func(v any) bool { return family(v) == famPath },
	"property": func(v any) bool { return family(v) == famProperty },
	"vproperty": func(v any) bool {
		return family(v) == famVertexProperty
	},
	"null": func(v any) bool { return v == nil },
	"tree": func(v any) bool { _, ok := v.(*gvalue.Tree); return ok },
}

func isType(v, typ any) bool {
	name := ""
	switch t := typ.(type) {
	case string:
		name = t
	case gvalue.GType:
		name = string(t)
	case gvalue.Class:
		name = string(t)
	}
	f := typeNames[strings.ToLower(name)]
	return f != nil && f(v)
}
