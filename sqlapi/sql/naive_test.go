package sql

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/doc"
)

// The oracle: a tree walker over plain Go values that knows only the language's tables. It shares the syntax tree with the
// engine and nothing else: no closures, no BSON, no indexes, no pages.

// undef is the language's undefined; the other values are those of encoding/json.
type undef struct{}

type env map[string]any

func naiveRank(v any) int {
	switch v.(type) {
	case undef:
		return 0
	case nil:
		return 1
	case bool:
		return 2
	case float64:
		return 3
	case string:
		return 4
	case []any:
		return 5
	}
	return 6
}

// naiveText is one text per value: equal values have equal texts.
func naiveText(v any) string {
	if _, ok := v.(undef); ok {
		return "undefined"
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// naiveCompare is the order of types, and within a type of values; arrays and objects don't occur as keys here.
func naiveCompare(a, b any) int {
	if d := naiveRank(a) - naiveRank(b); d != 0 {
		return d
	}
	switch x := a.(type) {
	case bool:
		if x == b.(bool) {
			return 0
		} else if x {
			return 1
		}
		return -1
	case float64:
		return int(math.Copysign(1, x-b.(float64))) * min(1, int(math.Ceil(math.Abs(x-b.(float64)))))
	case string:
		return strings.Compare(x, b.(string))
	}
	return 0
}

func naiveGet(v any, key any) any {
	switch k := key.(type) {
	case string:
		if m, ok := v.(map[string]any); ok {
			if x, ok := m[k]; ok {
				return x
			}
		}
	case float64:
		if l, ok := v.([]any); ok && k >= 0 && int(k) < len(l) {
			return l[int(k)]
		}
	}
	return undef{}
}

func naiveRelation(op string, a, b any) any {
	_, u1 := a.(undef)
	_, u2 := b.(undef)
	switch {
	case u1 || u2:
		return undef{}
	case op == "=" || op == "!=":
		return (naiveText(a) == naiveText(b)) == (op == "=")
	case naiveRank(a) != naiveRank(b) || naiveRank(a) > 4:
		return undef{}
	}
	d := naiveCompare(a, b)
	switch op {
	case "<":
		return d < 0
	case ">":
		return d > 0
	case "<=":
		return d <= 0
	}
	return d >= 0
}

func naiveLogic(op string, vs []any) any {
	sure := op == "OR"
	var out any = !sure
	for _, v := range vs {
		if b, ok := v.(bool); !ok {
			out = undef{}
		} else if b == sure {
			return sure
		}
	}
	return out
}

// naiveEval evaluates e; group, when set, is the rows of the present group, over which aggregates run.
func naiveEval(e Expr, en env, group []env) any {
	ev := func(x Expr) any { return naiveEval(x, en, group) }
	switch e := e.(type) {
	case *Lit:
		var v any = undef{}
		if e.Val.IsDefined() {
			if err := json.Unmarshal(doc.AppendJSON(nil, e.Val), &v); err != nil {
				panic(err)
			}
		}
		return v
	case *Ident:
		return en[e.Name]
	case *Prop:
		return naiveGet(ev(e.Base), e.Name)
	case *Index:
		return naiveGet(ev(e.Base), ev(e.At))
	case *Unary:
		switch x := ev(e.X).(type) {
		case bool:
			if e.Op == "NOT" {
				return !x
			}
		case float64:
			if e.Op == "-" {
				return -x
			}
		}
		return undef{}
	case *Binary:
		return naiveBinary(e.Op, ev(e.L), ev(e.R))
	case *Chain:
		var vs []any
		for _, x := range e.Xs {
			vs = append(vs, ev(x))
		}
		return naiveLogic(e.Op, vs)
	case *Cond:
		if ev(e.C) == true {
			return ev(e.A)
		}
		return ev(e.B)
	case *Between:
		v := naiveLogic("AND", []any{naiveRelation(">=", ev(e.X), ev(e.Lo)), naiveRelation("<=", ev(e.X), ev(e.Hi))})
		if b, ok := v.(bool); ok {
			return b != e.Not
		}
		return v
	case *In:
		x := ev(e.X)
		if _, ok := x.(undef); ok {
			return x
		}
		found := false
		for _, l := range e.List {
			found = found || naiveRelation("=", x, ev(l)) == true
		}
		return found != e.Not
	case *ObjectExpr:
		out := map[string]any{}
		for i, k := range e.Keys {
			if v := ev(e.Vals[i]); naiveRank(v) > 0 {
				out[k] = v
			}
		}
		return out
	case *ArrayExpr:
		out := []any{}
		for _, x := range e.Elems {
			if v := ev(x); naiveRank(v) > 0 {
				out = append(out, v)
			}
		}
		return out
	case *SubqueryExpr:
		return len(naiveRows(e.Q, en)) > 0
	case *Call:
		if aggregateOf(e.Name) != nil {
			return naiveAggregate(e, group)
		}
		var args []any
		for _, x := range e.Args {
			args = append(args, ev(x))
		}
		return naiveCall(strings.ToUpper(e.Name), args)
	}
	panic(fmt.Sprintf("no rule for %T", e))
}

func naiveBinary(op string, a, b any) any {
	switch op {
	case "??":
		if naiveRank(a) > 0 {
			return a
		}
		return b
	case "+", "*":
		x, ok1 := a.(float64)
		y, ok2 := b.(float64)
		if !ok1 || !ok2 {
			return undef{}
		}
		if op == "+" {
			return x + y
		}
		return x * y
	}
	return naiveRelation(op, a, b)
}

func naiveCall(name string, a []any) any {
	switch name {
	case "IS_DEFINED":
		return naiveRank(a[0]) > 0
	case "IS_NULL":
		return naiveRank(a[0]) == 1
	case "IS_NUMBER":
		return naiveRank(a[0]) == 3
	case "IS_STRING":
		return naiveRank(a[0]) == 4
	case "ARRAY_LENGTH":
		if l, ok := a[0].([]any); ok {
			return float64(len(l))
		}
		return undef{}
	case "ARRAY_CONTAINS":
		l, ok := a[0].([]any)
		if !ok || naiveRank(a[1]) == 0 {
			return undef{}
		}
		return slices.ContainsFunc(l, func(x any) bool { return naiveText(x) == naiveText(a[1]) })
	case "STARTSWITH":
		s, ok1 := a[0].(string)
		t, ok2 := a[1].(string)
		if !ok1 || !ok2 {
			return undef{}
		}
		return strings.HasPrefix(s, t)
	}
	panic("no rule for " + name)
}

func naiveAggregate(e *Call, group []env) any {
	var vs []any
	for _, en := range group {
		if v := naiveEval(e.Args[0], en, nil); naiveRank(v) > 0 {
			vs = append(vs, v)
		}
	}
	switch name := strings.ToUpper(e.Name); name {
	case "COUNT":
		return float64(len(vs))
	case "COUNTIF":
		n := 0.0
		for _, v := range vs {
			if v == true {
				n++
			}
		}
		return n
	case "SUM", "AVG":
		t := 0.0
		for _, v := range vs {
			f, ok := v.(float64)
			if !ok {
				return undef{}
			}
			t += f
		}
		if name == "SUM" {
			return t
		} else if len(vs) == 0 {
			return undef{}
		}
		return t / float64(len(vs))
	case "MIN", "MAX":
		var best any = undef{}
		for _, v := range vs {
			if naiveRank(v) > 4 {
				return undef{}
			}
			if d := naiveCompare(v, best); naiveRank(best) == 0 || name == "MIN" && d < 0 || name == "MAX" && d > 0 {
				best = v
			}
		}
		return best
	case "MAKELIST":
		return append([]any{}, vs...)
	case "MAKESET":
		out := []any{}
		for _, v := range vs {
			if !slices.ContainsFunc(out, func(x any) bool { return naiveText(x) == naiveText(v) }) {
				out = append(out, v)
			}
		}
		return out
	}
	panic("no rule for " + e.Name)
}

// naiveRows gives the environments of FROM and WHERE.
func naiveRows(q *Query, outer env) []env {
	rows := []env{outer}
	for _, s := range q.From.Sources {
		var next []env
		for _, en := range rows {
			v := naiveEval(s.Path, en, nil)
			each := []any{v}
			if s.In {
				each, _ = v.([]any)
			}
			for _, x := range each {
				if naiveRank(x) == 0 {
					continue
				}
				row := env{}
				for k, y := range en {
					row[k] = y
				}
				row[s.Alias] = x
				next = append(next, row)
			}
		}
		rows = next
	}
	return slices.DeleteFunc(rows, func(en env) bool { return q.Where != nil && naiveEval(q.Where, en, nil) != true })
}

// naiveQuery answers a query over items bound to c.
func naiveQuery(q *Query, items []any) (out []string) {
	var rows []env
	for _, it := range items {
		rows = append(rows, naiveRows(q, env{"c": it})...)
	}
	groups := make([][]env, len(rows))
	if isGrouped(q) {
		by := map[string]int{}
		var first []env
		groups = nil
		for _, en := range rows {
			key := ""
			for _, k := range q.GroupBy {
				key += naiveText(naiveEval(k, en, nil)) + "\n"
			}
			i, ok := by[key]
			if !ok {
				i = len(groups)
				by[key], groups, first = i, append(groups, nil), append(first, en)
			}
			groups[i] = append(groups[i], en)
		}
		if len(q.GroupBy) == 0 && len(groups) == 0 {
			groups, first = [][]env{{}}, []env{{}}
		}
		rows = first
	}
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool {
		for _, o := range q.OrderBy {
			x, y := order[a], order[b]
			if d := naiveCompare(naiveEval(o.Expr, rows[x], groups[x]), naiveEval(o.Expr, rows[y], groups[y])); d != 0 {
				return (d < 0) != o.Desc
			}
		}
		return false
	})
	for _, i := range order {
		var v any
		if q.Value != nil {
			v = naiveEval(q.Value, rows[i], groups[i])
		} else {
			o := &ObjectExpr{Keys: itemNames(q.Items)}
			for _, it := range q.Items {
				o.Vals = append(o.Vals, it.Expr)
			}
			v = naiveEval(o, rows[i], groups[i])
		}
		if naiveRank(v) == 0 || q.Distinct && slices.Contains(out, naiveText(v)) {
			continue
		}
		out = append(out, naiveText(v))
	}
	if q.Limit != nil {
		out = out[min(int(q.Offset.N), len(out)):]
		out = out[:min(int(q.Limit.N), len(out))]
	}
	if q.Top != nil {
		out = out[:min(int(q.Top.N), len(out))]
	}
	return out
}

// naiveQueryText is a random query of the oracle's language; ordered says that the order of its rows is given.
func (g generator) naiveQueryText() (text string, ordered bool) {
	where := g.pick("", " WHERE "+g.simple(2), " WHERE "+g.simple(2))
	dir := func() string { return g.pick("", " ASC", " DESC") }
	path := func() string { return g.pick("c.a", "c.b", "c.o.x") }
	cut := g.pick("", " OFFSET 0 LIMIT 4", " OFFSET 3 LIMIT 5", " OFFSET 500 LIMIT 1")
	agg := func() string {
		return g.pick("COUNT(1)", "COUNT(c.a)", "SUM(c.n)", "SUM(c.a)", "AVG(c.n)", "AVG(c.b)", "MIN(c.a)", "MAX(c.b)", "MIN(c.arr)", "MAX(c.n)",
			"COUNTIF(c.n > 2)", "ARRAY_LENGTH(MAKELIST(c.a))", "ARRAY_LENGTH(MAKESET(c.a))", "SUM(c.n) + COUNT(1)", "(MAX(c.n) ?? -1)")
	}
	switch g.IntN(9) {
	case 0:
		return "SELECT c.id, c.a FROM c" + where + " ORDER BY " + path() + dir() + ", " + path() + dir() + ", c.id" + dir() + cut, true
	case 1:
		return "SELECT TOP " + g.pick("1", "3", "0") + " VALUE c.id FROM c" + where + " ORDER BY " + path() + dir() + ", c.n" + dir() + ", c.id", true
	case 2:
		return "SELECT " + agg() + " AS x, " + agg() + " AS y, " + agg() + " AS z FROM c" + where, true
	case 3:
		key := g.pick("c.a", "c.pk", "c.o.x", "c.n > 1", "c.o")
		return "SELECT " + key + " AS k, " + agg() + " AS x, " + agg() + " AS y FROM c" + where + " GROUP BY " + key, false
	case 4:
		return "SELECT c.pk, c.a, " + agg() + " AS x FROM c" + where + " GROUP BY c.pk, c.a ORDER BY c.pk" + dir() + ", c.a" + dir() + cut, true
	case 5:
		return "SELECT DISTINCT " + g.pick("VALUE c.a", "VALUE [c.a, c.b]", "c.a, c.pk", "VALUE c.o", "VALUE c.arr") + " FROM c" + where, false
	case 6:
		return "SELECT DISTINCT VALUE c.a FROM c" + where + " ORDER BY c.a" + dir() + cut, true
	case 7:
		return "SELECT VALUE {\"i\": c.id, \"t\": t, \"u\": u} FROM c JOIN t IN c.arr JOIN u IN c.arr" + strings.ReplaceAll(where, "c.b", "t"), false
	}
	return "SELECT t, COUNT(1) AS x, " + agg() + " AS y FROM c JOIN t IN c.arr" + where + " GROUP BY t ORDER BY t" + dir(), true
}

// simple is a random filter of the oracle's language.
func (g generator) simple(depth int) string {
	if depth > 0 {
		switch g.IntN(5) {
		case 0:
			return "(" + g.simple(depth-1) + " AND " + g.simple(depth-1) + ")"
		case 1:
			return "(" + g.simple(depth-1) + " OR " + g.simple(depth-1) + ")"
		case 2:
			return "NOT (" + g.simple(depth-1) + ")"
		}
	}
	lit := func() string {
		return g.pick("0", "1", "2.5", "-1", `"a"`, `"b"`, "true", "false", "null", "[1]", `{"x": 1}`, "undefined")
	}
	p := g.pick("c.a", "c.b", "c.o.x", "c.o", "c.arr", "c.arr[0]", "c.pk", "c.n", `c["a"]`)
	switch g.IntN(8) {
	case 0:
		return p + g.pick(" IN (", " NOT IN (") + lit() + ", " + lit() + ")"
	case 1:
		return p + g.pick(" BETWEEN ", " NOT BETWEEN ") + lit() + " AND " + lit()
	case 2:
		return g.pick("IS_DEFINED", "IS_NULL", "IS_STRING", "IS_NUMBER") + "(" + p + ")"
	case 3:
		return "ARRAY_CONTAINS(c.arr, " + g.pick(lit(), "c.a", "c.n") + ")"
	case 4:
		return "EXISTS(SELECT VALUE t FROM t IN c.arr WHERE t " + g.pick("=", "<") + " " + g.pick(lit(), "c.a") + ")"
	case 5:
		return "(" + p + " ?? " + lit() + ") " + g.pick("=", "!=", "<") + " " + lit()
	case 6:
		return "STARTSWITH(" + p + `, "a")`
	}
	return p + " " + g.pick("=", "!=", "<", ">", "<=", ">=") + " " + g.pick(lit(), lit(), "c.b", "c.n + 1")
}

// plainItem is a random item of JSON's kinds.
func (g generator) plainItem(i int) map[string]any {
	scalar := func() any {
		return []any{nil, true, false, 0.0, 1.0, 2.5, -1.0, "a", "b", "", "ab"}[g.IntN(11)]
	}
	it := map[string]any{"id": fmt.Sprintf("i%03d", i), "pk": g.pick("a", "b", "c")}
	for _, name := range []string{"a", "b"} {
		if g.IntN(4) > 0 {
			it[name] = scalar()
		}
	}
	if g.IntN(4) > 0 {
		it["n"] = float64(g.IntN(5))
	}
	if g.IntN(3) > 0 {
		it["o"] = map[string]any{"x": scalar()}
	}
	if g.IntN(3) > 0 {
		l := []any{}
		for range g.IntN(4) {
			l = append(l, scalar())
		}
		it["arr"] = l
	}
	return it
}

// TestOracle: random queries over random items are answered as the oracle answers them, under each index and slot
// configuration and page size.
func TestOracle(t *testing.T) {
	g := generator{rand.New(rand.NewPCG(11, 3))}
	cs := containers(t)
	var items []any
	for i := range 60 {
		it := g.plainItem(i)
		items = append(items, it)
		d, err := doc.FromJSON(nil, []byte(naiveText(it)), doc.JSONOptions{Names: doc.NoSQL})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cs {
			insert(t, c, d)
		}
	}
	answered := 0
	for range 600 {
		text, ordered := g.naiveQueryText()
		q, err := Parse(text, DefaultLimits())
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		want := naiveQuery(q, items)
		if len(want) > 0 {
			answered++
		}
		for name, c := range cs {
			rows, err := evalCore(c, text, nil, []int{0, 1, 7}[g.IntN(3)])
			if err != nil {
				t.Fatalf("%s: %s: %v", name, text, err)
			}
			got := make([]string, len(rows))
			for i, r := range rows {
				v, err := doc.ValueFromJSON([]byte(r))
				if err != nil {
					t.Fatal(err)
				}
				got[i] = naiveText(naiveEval(&Lit{Val: v}, nil, nil))
			}
			if !ordered {
				slices.Sort(got)
				want = slices.Sorted(slices.Values(want))
			}
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Fatalf("%s: %s\n got %v\nwant %v", name, text, got, want)
			}
		}
	}
	if answered < 300 {
		t.Errorf("only %d queries had rows", answered)
	}
}
