package sql

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
	"github.com/orrerydb/orrery/sqlapi/sql/shape"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// The oracle: an interpreter over plain Go values that knows only the language's tables. It shares only the syntax tree
// with the engine: no closures, no BSON, no indexes, no pages.

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

// naiveText returns a text for a value: equal values have equal texts.
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

// naiveCompare has the order of types, and of the values of a type. Arrays and objects don't occur as keys here.
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

// naiveEval evaluates e. group, when set, has the rows of the current group, for aggregates.
func naiveEval(e syntax.Expr, en env, group []env) any {
	ev := func(x syntax.Expr) any { return naiveEval(x, en, group) }
	switch e := e.(type) {
	case *syntax.Lit:
		var v any = undef{}
		if e.Val.IsDefined() {
			if err := json.Unmarshal(doc.AppendJSON(nil, e.Val), &v); err != nil {
				panic(err)
			}
		}
		return v
	case *syntax.Ident:
		return en[e.Name]
	case *syntax.Prop:
		return naiveGet(ev(e.Base), e.Name)
	case *syntax.Index:
		return naiveGet(ev(e.Base), ev(e.At))
	case *syntax.Unary:
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
	case *syntax.Binary:
		return naiveBinary(e.Op, ev(e.L), ev(e.R))
	case *syntax.Chain:
		var vs []any
		for _, x := range e.Xs {
			vs = append(vs, ev(x))
		}
		return naiveLogic(e.Op, vs)
	case *syntax.Cond:
		if ev(e.C) == true {
			return ev(e.A)
		}
		return ev(e.B)
	case *syntax.Between:
		v := naiveLogic("AND", []any{naiveRelation(">=", ev(e.X), ev(e.Lo)), naiveRelation("<=", ev(e.X), ev(e.Hi))})
		if b, ok := v.(bool); ok {
			return b != e.Not
		}
		return v
	case *syntax.In:
		x := ev(e.X)
		if _, ok := x.(undef); ok {
			return x
		}
		found := false
		for _, l := range e.List {
			found = found || naiveRelation("=", x, ev(l)) == true
		}
		return found != e.Not
	case *syntax.ObjectExpr:
		out := map[string]any{}
		for i, k := range e.Keys {
			if v := ev(e.Vals[i]); naiveRank(v) > 0 {
				out[k] = v
			}
		}
		return out
	case *syntax.ArrayExpr:
		out := []any{}
		for _, x := range e.Elems {
			if v := ev(x); naiveRank(v) > 0 {
				out = append(out, v)
			}
		}
		return out
	case *syntax.Like:
		return naiveLike(ev(e.X), ev(e.Pattern), e.Not)
	case *syntax.SubqueryExpr:
		return naiveSubquery(e, en)
	case *syntax.Call:
		if funcs.AggregateOf(e.Name) != nil {
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
	case "+", "*", "-":
		x, ok1 := a.(float64)
		y, ok2 := b.(float64)
		if !ok1 || !ok2 {
			return undef{}
		}
		switch op {
		case "+":
			return x + y
		case "-":
			return x - y
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
	case "IS_BOOL":
		return naiveRank(a[0]) == 2
	case "IS_ARRAY":
		return naiveRank(a[0]) == 5
	case "IS_OBJECT":
		return naiveRank(a[0]) == 6
	case "ARRAY_CONTAINS":
		l, ok := a[0].([]any)
		if !ok || naiveRank(a[1]) == 0 {
			return undef{}
		}
		return slices.ContainsFunc(l, func(x any) bool {
			return naiveText(x) == naiveText(a[1]) || len(a) == 3 && naiveCovers(x, a[1])
		})
	case "STARTSWITH", "CONTAINS", "ENDSWITH", "STRINGEQUALS":
		s, ok1 := a[0].(string)
		t, ok2 := a[1].(string)
		if !ok1 || !ok2 {
			return undef{}
		}
		if len(a) == 3 && a[2] == true {
			s, t = strings.ToLower(s), strings.ToLower(t)
		}
		return map[string]func(s, t string) bool{"STARTSWITH": strings.HasPrefix, "CONTAINS": strings.Contains,
			"ENDSWITH":     strings.HasSuffix,
			"STRINGEQUALS": func(s, t string) bool { return s == t }}[name](s, t)
	case "ST_DISTANCE", "ST_WITHIN", "ST_INTERSECTS":
		return naiveSpatial(name, a[0], a[1])
	}
	panic("no rule for " + name)
}

// naiveCovers reports whether v is an object with all members of pattern, as for a partial ARRAY_CONTAINS.
func naiveCovers(v, pattern any) bool {
	m, ok1 := v.(map[string]any)
	p, ok2 := pattern.(map[string]any)
	if !ok1 || !ok2 {
		return false
	}
	for k, x := range p {
		if naiveText(naiveGet(m, k)) != naiveText(x) {
			return false
		}
	}
	return true
}

// naiveLike supports % and _ in ASCII texts.
func naiveLike(v, pattern any, not bool) any {
	s, ok1 := v.(string)
	p, ok2 := pattern.(string)
	if !ok1 || !ok2 {
		return undef{}
	}
	var match func(s, p string) bool
	match = func(s, p string) bool {
		switch {
		case p == "":
			return s == ""
		case p[0] == '%':
			return match(s, p[1:]) || s != "" && match(s[1:], p)
		}
		return s != "" && (p[0] == '_' || p[0] == s[0]) && match(s[1:], p[1:])
	}
	return match(s, p) != not
}

func naiveSubquery(e *syntax.SubqueryExpr, en env) any {
	rows := naiveRows(e.Q, en)
	if e.Kind == "EXISTS" {
		return len(rows) > 0
	}
	groups := make([][]env, len(rows))
	if shape.IsGrouped(e.Q) {
		rows, groups = []env{en}, [][]env{rows}
	}
	out := []any{}
	for i, r := range rows {
		if v := naiveEval(e.Q.Value, r, groups[i]); naiveRank(v) > 0 {
			out = append(out, v)
		}
	}
	switch {
	case e.Kind == "ARRAY":
		return out
	case len(out) == 1:
		return out[0]
	case len(out) > 1:
		panic("a scalar sub-query with many rows")
	}
	return undef{}
}

// naiveSpatial supports points and boxes of a few degrees around the origin, where degrees can replace metres. The
// queries avoid every boundary.
func naiveSpatial(name string, a, b any) any {
	x0, y0, x1, y1, ok1 := naiveBox(a)
	u0, v0, u1, v1, ok2 := naiveBox(b)
	if !ok1 || !ok2 {
		return undef{}
	}
	switch name {
	case "ST_WITHIN":
		return x0 >= u0 && x1 <= u1 && y0 >= v0 && y1 <= v1
	case "ST_INTERSECTS":
		return x0 <= u1 && u0 <= x1 && y0 <= v1 && v0 <= y1
	}
	return 111000 * math.Hypot(max(0, u0-x1, x0-u1), max(0, v0-y1, y0-v1))
}

func naiveBox(v any) (x0, y0, x1, y1 float64, ok bool) {
	at := func(p any, i int) float64 { return p.([]any)[i].(float64) }
	switch c := naiveGet(v, "coordinates"); naiveGet(v, "type") {
	case "Point":
		return at(c, 0), at(c, 1), at(c, 0), at(c, 1), true
	case "Polygon":
		ring := c.([]any)[0].([]any)
		return at(ring[0], 0), at(ring[0], 1), at(ring[2], 0), at(ring[2], 1), true
	}
	return 0, 0, 0, 0, false
}

func naiveAggregate(e *syntax.Call, group []env) any {
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

// naiveRows returns the environments of FROM and WHERE.
func naiveRows(q *syntax.Query, outer env) []env {
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
func naiveQuery(q *syntax.Query, items []any) (out []string) {
	var rows []env
	for _, it := range items {
		rows = append(rows, naiveRows(q, env{"c": it})...)
	}
	groups := make([][]env, len(rows))
	if shape.IsGrouped(q) {
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
			o := &syntax.ObjectExpr{Keys: shape.ItemNames(q.Items)}
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
