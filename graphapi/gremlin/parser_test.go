package gremlin

import (
	"errors"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// text writes a parsed script in a canonical form.
func text(s *Script) string {
	var parts []string
	for _, st := range s.Stmts {
		p := ""
		if st.Assign != "" {
			p = st.Assign + " = "
		}
		parts = append(parts, p+value(st.Expr))
	}
	return strings.Join(parts, "; ")
}

func value(v any) string {
	switch x := v.(type) {
	case string:
		return "'" + x + "'"
	case Var:
		return "$" + x.Name
	case Now:
		return "now"
	case NewUUID:
		return "uuid"
	case *Arith:
		t := "(" + value(x.Terms[0])
		for i, op := range x.Ops {
			t += " " + string(op) + " " + value(x.Terms[i+1])
		}
		return t + ")"
	case *Expr:
		t := "(" + x.Op
		if x.Name != "" {
			t += " " + x.Name
		}
		for _, a := range x.Args {
			t += " " + value(a)
		}
		return t + ")"
	case *SubQuery:
		return "<" + value(x.Code) + " " + x.Name + ">"
	case *gvalue.Bytecode:
		var b strings.Builder
		for _, in := range append(append([]gvalue.Instruction{}, x.Source...), x.Steps...) {
			b.WriteString("." + in.Op + "(")
			for i, a := range in.Args {
				if i > 0 {
					b.WriteString(", ")
				}
				b.WriteString(value(a))
			}
			b.WriteString(")")
		}
		return b.String()
	case []any:
		var l []string
		for _, e := range x {
			l = append(l, value(e))
		}
		return "[" + strings.Join(l, ", ") + "]"
	case *gvalue.P:
		var l []string
		for _, e := range x.Args {
			l = append(l, value(e))
		}
		return x.Op + "(" + strings.Join(l, ", ") + ")"
	case gvalue.Enum:
		return x.EnumType() + "." + x.EnumName()
	case *gvalue.Strategy:
		return x.Name() + gvalue.Text(x.Config)
	case *gvalue.Map:
		var l []string
		for _, e := range x.Entries() {
			l = append(l, value(e.Key)+": "+value(e.Value))
		}
		return "[" + strings.Join(l, ", ") + "]"
	}
	return gvalue.Text(v)
}

func TestParse(t *testing.T) {
	bound := func(n string) bool { return n == "x" || n == "values" }
	for _, c := range []struct{ in, want string }{
		{"g.V()", ".V()"},
		{"  g . V ( 'a' , \"b\" ) ", ".V('a', 'b')"},
		{"g.V(x).has('name', within(x))", ".V($x).has('name', within($x))"},
		{"g.V().order().by('age', decr)", ".V().order().by('age', Order.decr)"},
		{"g.V().select(values)", ".V().select($values)"}, // bound, so a variable and not a token
		{"g.V().select(keys)", ".V().select(Column.keys)"},
		{"g.V().to(OUT).addE('e').from(__.V('a')).to(g.V('b'))",
			".V().to(Direction.OUT).addE('e').from(.V('a')).to(.V('b'))"},
		{"g.V().where(__.in('knows')).where(in('knows'))", ".V().where(.in('knows')).where(.in('knows'))"},
		{"g.V().not(has('a')).is(not(eq(1))).is(P.not(P.not(gt(1))))",
			".V().not(.has('a')).is(not(eq(1))).is(not(not(gt(1))))"},
		{"g.inject(gt(1).and(lt(5)).or(eq(9)).negate())", ".inject(not(or(and(gt(1), lt(5)), eq(9))))"},
		{"a = 1; g.V(a).next()", "a = 1; <.V($a) next>"},
		{"a = g.V(); b = g.E().toList()\n[a.toList(), b.toList().toList()]",
			"a = .V(); b = <.E() toList>; [(. toList $a), (. toList (. toList $b))]"},
		{"g.inject(g.V().to(g.V('a'))).to(g.V('b'))", ".inject(<.V().to(.V('a')) toList>).to(.V('b'))"},
		{"g.V(g.V(1).next()).toList()", "<.V(<.V(1) next>) toList>"},
		{"g.V()\n.out()\n\ng.E()", ".V().out(); .E()"},
		{"g.withStrategies(PartitionStrategy.build().partitionKey('p').readPartitions('a', 'b').create()).V()",
			".withStrategies(PartitionStrategy{partitionKey=p, readPartitions=[a, b]}).V()"},
		{"g.withStrategies(new SubgraphStrategy(vertices: __.hasLabel('x')), ReadOnlyStrategy).V()",
			".withStrategies(SubgraphStrategy{vertices=[hasLabel(x)]}, ReadOnlyStrategy{}).V()"},
		{"g.addV().property(single, 'a', Cardinality.list('b'))", ".addV().property(Cardinality.single, 'a', list(b))"},
		{"g.mergeV([(T.label): 'p', name: x, \"k\": [1, 2]])", ".mergeV([T.label: 'p', 'name': $x, 'k': [1, 2]])"},
		{"1 + 2 * x - 'a'", "(1 + (2 * $x) - 'a')"},
		{"(1 - 2)*-3/x", "((1 - 2) * -3 / $x)"},
		{"g.V().limit(x - 1).skip(2*\n3)", ".V().limit(($x - 1)).skip((2 * 3))"},
		{"a = x + 1; g.inject([a, a\n+ a], g.V(1).next() + 1)",
			"a = ($x + 1); .inject([$a, ($a + $a)], (<.V(1) next> + 1))"},
		{"x\n-1", "$x; -1"}, // a line break ends a statement
		{"x ? 1 : 2\n[x]\n-x", "(? $x 1 2); [$x]; (- $x)"},
		{"def a = 1; int b = 2; List c = [a]; g\nd = 3",
			"a = 1; b = 2; c = [$a]; 'graphtraversalsource[orrery]'; d = 3"},
		{"a = 1; return a + 1;", "a = 1; ($a + 1)"},
		{"x == 1 && !x || x<=2 ? x : x ?: 3", "(? (|| (&& (== $x 1) (! $x)) (<= $x 2)) $x (?: $x 3))"},
		{"g.V().has('a', x % 2 != 0 ? gt(1) : lt(-x)).limit(x.size())",
			".V().has('a', (? (!= ($x % 2) 0) gt(1) lt((- $x)))).limit((. size $x))"},
		{"x[0] + x[-1].id()\n.trim()", "(([] $x 0) + (. trim (. id ([] $x -1))))"},
		{"[a: x ? 1 : 2, b: x.y?.z?.size()]", "['a': (? $x 1 2), 'b': (?. size (?field z (field y $x)))]"},
		{"'a'.length() + (x as int) in [1..3]", "(in ((. length 'a') + (as int $x)) [1, 2, 3])"},
		{"g.V().count().next() > Math.max(x, 1)", "(> <.V().count() next> (static Math.max $x 1))"},
		{"g.V().where(__.in('a')).has('b', x in [1])", ".V().where(.in('a')).has('b', (in $x [1]))"},
		{"g.inject(datetime(), UUID())", ".inject(now, uuid)"},
		{"g.V('a',).property('k', [1,] , ).where(within('b',))", ".V('a').property('k', [1]).where(within('b'))"},
		{"g.inject([1..3], [[1..2]], [1, 2..3])", ".inject([1, 2, 3], [[1, 2]], [1, [2, 3]])"},
	} {
		s, err := Parse(c.in, bound)
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if got := text(s); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.in, got, c.want)
		}
	}
}

func TestErrorsHavePlaces(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", "The script is empty @ line 1, column 1."},
		{"g.V(\n  foo)", "Unable to resolve symbol 'foo' in the current context. @ line 2, column 3."},
		{"g.V('é', $)", "Unable to resolve symbol '$' in the current context. @ line 1, column 10."},
		{"g.V().out(", "Unexpected end of the script: an argument is expected @ line 1, column 11."},
		{"g.V(,)", "Unexpected ',': an argument is expected @ line 1, column 5."},
		{"g.V('a',,)", "Unexpected ',': an argument is expected @ line 1, column 9."},
		{"a = 1; a.", "Unexpected '.': the end of the statement is expected @ line 1, column 9."},
		{"1 == 2 == 3", "Unexpected '==': the end of the statement is expected @ line 1, column 8."},
		{"return 1; 2", "No statement may follow return @ line 1, column 11."},
		{"return", "Unexpected end of the script: an argument is expected @ line 1, column 7."},
		{"true ? 1", "Unexpected end of the script: ':' is expected @ line 1, column 9."},
		{"'a'" + strings.Repeat(".a", 60), "There are more than 50 calls on one value @ line 1, column 104."},
		{strings.Repeat("!", 400), "The script is nested too deeply (more than 300 levels) @ line 1, column 300."},
		{strings.Repeat("true?", 400), "The script is nested too deeply (more than 300 levels) @ line 1, column 1501."},
		{"g.V()]", "Unexpected ']': the end of the statement is expected @ line 1, column 6."},
		{"g.V('\\q')", "Invalid escape in a string @ line 1, column 6."},
		{"/* open", "The comment is not closed @ line 1, column 1."},
		{"g.V().map{it.get()}", "Unexpected '{': '(' is expected after the step map @ line 1, column 10."},
		{strings.Repeat("g.V(", 400), "The script is nested too deeply (more than 300 levels) @ line 1, column 601."},
		{strings.Repeat("[", 400), "The script is nested too deeply (more than 300 levels) @ line 1, column 151."},
		{strings.Repeat("not(", 400), "The script is nested too deeply (more than 300 levels) @ line 1, column 401."},
		{"g.inject(1..1000000)", "The range is too long @ line 1, column 11."},
	} {
		_, err := Parse(c.in, nil)
		var e *Error
		if !errors.As(err, &e) || e.Error() != c.want {
			t.Errorf("%.40s: got %v, want %s", c.in, err, c.want)
		}
	}
}

// TestCache: the same text may have another meaning with other bindings.
func TestCache(t *testing.T) {
	c := NewCache(2)
	none := func(string) bool { return false }
	all := func(string) bool { return true }
	parse := func(src string, bound func(string) bool) string {
		s, err := c.Parse(src, bound)
		if err != nil {
			return err.Error()
		}
		return text(s)
	}
	const src = "g.V().by(id)"
	for _, step := range []struct {
		bound func(string) bool
		want  string
	}{{none, ".V().by(T.id)"}, {all, ".V().by($id)"}, {all, ".V().by($id)"}, {none, ".V().by(T.id)"}} {
		if got := parse(src, step.bound); got != step.want {
			t.Errorf("got %s, want %s", got, step.want)
		}
	}
	parse("g.V(1)", none)
	parse("g.V(2)", none)
	if len(c.by) != 2 || c.lru.Len() != 2 || c.by[src] != nil {
		t.Errorf("the cache holds %d scripts, and the oldest is %v", len(c.by), c.by[src])
	}
}

// TestDatetimeForms: the text of a date may have a zone's name, and seconds in the offset.
func TestDatetimeForms(t *testing.T) {
	for _, in := range []string{"2023-08-02", "2023-08-02T01:02+02:00[Europe/Berlin]", "2023-08-02T01:02:03+01:30:15"} {
		if _, err := Parse("g.inject(datetime('"+in+"'))", nil); err != nil {
			t.Errorf("%s: %v", in, err)
		}
	}
	if _, err := Parse("g.inject(datetime('2023-13-02'))", nil); err == nil {
		t.Error("there is no month 13")
	}
}

// FuzzParse: any text gives a script or an *Error, and never a panic.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"g.V().has('name', within('a', \"b\\u00e9\")).out().order().by('x', decr).limit(2)",
		"x = [a: 1, (T.id): {1, 2}]; g.V(x).repeat(__.out().not(__.in())).until(gt(3).and(lt(-5.5e3)).negate()).next(2)",
		"g.withStrategies(new SubgraphStrategy(vertices: __.hasLabel('x'))).addV().property(single, 'k', datetime('2023-08-02'))",
		"/* c */ g.V(1..3) // d\n;g.E(0x1F, 010, 1L, 1.5m, UUID('41d2e28a-20a4-4ab0-b379-d810dede3786'))",
		"g.withStrategies(PartitionStrategy.build().partitionKey('p').create()).V().option(Pick.none, P.not(P.eq(NaN)))",
		"int a = x == 1 && !y ? [1, 2][-a] : m?.k['z'].size() ?: 3 % -b as Long <=> 'c' in [d: 1]; return Math.max(a, 1)",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		s, err := Parse(src, func(n string) bool { return len(n) == 1 })
		var e *Error
		switch {
		case err == nil:
			if len(s.Stmts) == 0 {
				t.Fatal("a script without statements")
			}
			text(s)
		case !errors.As(err, &e) || e.Line < 1 || e.Col < 1:
			t.Fatalf("error without a place: %v", err)
		}
	})
}
