package compile_test

import (
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/graphapi/gremlin"
	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/traversal/compile"
)

// steps parses a script with one traversal.
func steps(t *testing.T, script string) []gvalue.Instruction {
	t.Helper()
	s, err := gremlin.NewCache(1).Parse("g."+script, func(string) bool { return false })
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return s.Stmts[0].Expr.(*gvalue.Bytecode).Steps
}

// env is a graph whose partition key is the property region.
func env(vertices bool) compile.Env {
	return compile.Env{Key: "region", Label: access.NewPath("label"), Unlabelled: "vertex",
		Paths: func(key string) []access.Path {
			switch {
			case strings.HasPrefix(key, "_"):
				return nil
			case vertices:
				return []access.Path{access.NewPath(key, "_value").Element(), access.NewPath(key).Element()}
			}
			return []access.Path{access.NewPath(key)}
		},
		Value: func(v any) (value.Value, bool) {
			switch x := v.(type) {
			case string:
				return value.StringOf(x), true
			case int32:
				return value.Int32Of(x), true
			case bool:
				return value.BoolOf(x), true
			}
			return value.Value{}, false
		}}
}

// text prints a predicate. A * marks one that also includes kinds which JSON lacks.
func text(p *access.Pred) string {
	if p == nil {
		return "all"
	}
	s := p.Path.String()
	switch p.Op {
	case access.OpNone:
		return "none"
	case access.OpAnd, access.OpOr:
		var kids []string
		for _, k := range p.Kids {
			kids = append(kids, text(k))
		}
		return map[access.Op]string{access.OpAnd: "and", access.OpOr: "or"}[p.Op] + "(" + strings.Join(kids, ", ") + ")"
	case access.OpIn:
		s += " in"
	case access.OpExists:
		s = "exists " + s
	case access.OpPrefix:
		s += " begins " + p.Str
	case access.OpRange:
		s += " from " + bound(p.Lo) + " to " + bound(p.Hi)
	}
	for _, v := range p.Vals {
		s += " " + show(v)
	}
	if p.Foreign {
		s += "*"
	}
	return s
}

func bound(b *access.Bound) string {
	switch {
	case b == nil:
		return "-"
	case b.Inclusive:
		return "[" + show(b.Value) + "]"
	}
	return "(" + show(b.Value) + ")"
}

func show(v value.Value) string {
	if v.Kind() == value.String {
		return v.Str()
	}
	return gvalue.Text(v.Int())
}

// TestFold: the index condition for the filters after V() and E(), how many of them are folded, and which logical
// partitions they select.
func TestFold(t *testing.T) {
	for _, c := range []struct {
		script string
		n      int
		want   string
		pks    int
	}{
		{"V()", 0, "all", 0},
		{"V().out()", 0, "all", 0},
		{"V().hasLabel('a')", 1, "/label in a", 0},
		{"V().hasLabel('a','b')", 1, "/label in a b", 0},
		{"V().hasLabel('vertex')", 1, "all", 0},
		{"V().has('n',1)", 1, "or(/n/_value/[] in 1, /n/[] in 1)", 0},
		{"V().has('n','x')", 1, "or(/n/_value/[] in x*, /n/[] in x*)", 0},
		{"V().has('n',within('x',1))", 1, "or(/n/_value/[] in x 1*, /n/[] in x 1*)", 0},
		{"V().has('n',within([]))", 1, "none", 0},
		{"V().has('n',gt(1))", 1, "or(/n/_value/[] from (1) to -, /n/[] from (1) to -)", 0},
		{"V().has('n',lte('x'))", 1, "or(/n/_value/[] from - to [x]*, /n/[] from - to [x]*)", 0},
		{"V().has('n',between(1,5))", 1, "or(/n/_value/[] from [1] to (5), /n/[] from [1] to (5))", 0},
		{"V().has('n',inside(1,5))", 1, "or(/n/_value/[] from (1) to (5), /n/[] from (1) to (5))", 0},
		{"V().has('n',startingWith('x'))", 1, "or(/n/_value/[] begins x*, /n/[] begins x*)", 0},
		{"V().has('n',neq(1))", 1, "all", 0},
		{"V().has('n')", 1, "or(exists /n/_value/[], exists /n/[])", 0},
		{"V().has('region')", 1, "all", 0},
		{"V().and(has('n',1),hasLabel('a').has('region','x')).out()", 1,
			"and(or(/n/_value/[] in 1, /n/[] in 1), /label in a)", 1},
		{"V().where(has('n',1)).filter(and(hasLabel('a')))", 2,
			"and(or(/n/_value/[] in 1, /n/[] in 1), /label in a)", 0},
		{"V().and(has('n',1),out())", 0, "all", 0},
		{"V().where(eq('x'))", 0, "all", 0},
		{"V().hasLabel('a').or(hasLabel('b'),has('n',1)).hasLabel('c')", 1,
			"and(/label in a, or(/label in b, /n/_value/[] in 1, /n/[] in 1))", 0},
		{"V().or(hasLabel('b'),hasId('x'))", 0, "all", 0},
		{"V().or(hasLabel('b'),out())", 0, "all", 0},
		{"V().has('n',containing('x'))", 1, "all", 0},
		{"V().has('_n',1)", 1, "all", 0},
		{"V().has('a','n',1)", 1, "and(/label in a, or(/n/_value/[] in 1, /n/[] in 1))", 0},
		{"V().has('region','x')", 1, "all", 1},
		{"V().has('region',within('x','y','x'))", 1, "all", 2},
		{"V().has('region',gt('x'))", 1, "all", 0},
		{"V().has('n',1).as('x').has('m',2).as('y').out()", 3,
			"and(or(/n/_value/[] in 1, /n/[] in 1), or(/m/_value/[] in 2, /m/[] in 2))", 0},
		{"V().has('n',__.is(1)).has('m',2)", 0, "all", 0},
		{"E().has('n','x')", 1, "/n in x*", 0},
		{"E().has('n',gt(1)).has('n',lt(5))", 2, "/n from (1) to (5)", 0},
		{"E().hasLabel('a').has('n',1)", 2, "and(/label in a, /n in 1)", 0},
	} {
		ins := steps(t, c.script)
		a := compile.Fold(ins[1:], env(ins[0].Op == "V"))
		if a.N != c.n || text(a.Pred) != c.want || len(a.PKs) != c.pks {
			t.Errorf("%s: %d filters, %d partitions, %s", c.script, a.N, len(a.PKs), text(a.Pred))
		}
	}
}

// TestTaken: how many elements of V() and E() are needed. 7 results of the whole traversal are needed.
func TestTaken(t *testing.T) {
	for script, want := range map[string]int{
		"V()":            7,
		"V().id()":       7,
		"V().limit(3)":   3,
		"V().range(2,5)": 5,
		"V().as('a').valueMap().by(unfold()).limit(4)": 4,
		"V().limit(local,3)":                           0,
		"V().range(2,-1)":                              0,
		"V().skip(2)":                                  0,
		"V().out().limit(3)":                           0,
		"V().dedup()":                                  0,
		"V().values('x')":                              0,
	} {
		if got := compile.Taken(steps(t, script)[1:], 7); got != want {
			t.Errorf("%s: %d are taken, not %d", script, got, want)
		}
	}
}

// TestOnlyLabels: whether the steps after V() look at nothing but labels.
func TestOnlyLabels(t *testing.T) {
	for script, want := range map[string]bool{
		"V().groupCount().by(label)":             true,
		"V().groupCount().by(label).select('x')": true,
		"V().groupCount().by(id)":                false,
		"V().groupCount().by('label')":           false,
		"V().groupCount('x').by(label)":          false,
		"V().groupCount()":                       false,
		"V().group().by(label)":                  false,
		"V().out().groupCount().by(label)":       false,
	} {
		if got := compile.OnlyLabels(steps(t, script)[1:]); got != want {
			t.Errorf("%s: %v", script, got)
		}
	}
}

// TestOrders: whether all results of a step are read and their order matters.
func TestOrders(t *testing.T) {
	for script, want := range map[string]string{
		"out()":                        "at the end",
		"out().values('x').dedup()":    "at the end",
		"out().fold().limit(1)":        "yes",
		"out().group().by('x')":        "yes",
		"out().limit(1)":               "partly",
		"out().out().range(1,3)":       "partly",
		"out().order().limit(1)":       "no",
		"out().count()":                "no",
		"out().limit(local,1)":         "at the end",
		"out().aggregate(local,'x')":   "at the end",
		"out().order().by('x').fold()": "no",
		"out().where(out().limit(1))":  "at the end",
	} {
		got := map[compile.Order]string{compile.AsAtEnd: "at the end", compile.Counts: "yes",
			compile.Ignored: "no", compile.Partly: "partly"}[compile.Orders(steps(t, "V()."+script))[2]]
		if got != want {
			t.Errorf("%s: %s, not %s", script, got, want)
		}
	}
}
