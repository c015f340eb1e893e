package sarg

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// params are the state of an execution, with the values of constants.
type params map[string]value.Value

// compiled returns a compiler for the tests' queries, whose constants are literals and parameters.
func compiled(q *syntax.Query) Compiler[params] {
	c := Compiler[params]{From: q.From, Compile: func(e syntax.Expr) Const[params] {
		switch e := e.(type) {
		case *syntax.Lit:
			return func(params) value.Value { return e.Val }
		case *syntax.ParamRef:
			return func(p params) value.Value { return p[e.Name] }
		}
		return func(params) value.Value { return value.Value{} }
	}}
	for i, s := range q.From.Sources {
		c.Vars = append(c.Vars, Alias{Name: s.Alias, IsRoot: i == 0 && !s.In})
	}
	return c
}

var operators = map[access.Op]string{access.OpAll: "all", access.OpNone: "none", access.OpAnd: "and",
	access.OpOr: "or", access.OpIn: "in", access.OpRange: "range", access.OpPrefix: "prefix", access.OpExists: "exists"}

// text prints a predicate without the additions for values of other APIs.
func text(p *access.Pred) string {
	if p == nil {
		return "nothing"
	}
	var parts []string
	bound := func(sign string, b *access.Bound) {
		if b != nil {
			if b.Inclusive {
				sign += "="
			}
			parts = append(parts, sign+string(doc.AppendJSON(nil, b.Value)))
		}
	}
	if len(p.Path.Segs) > 0 {
		parts = append(parts, p.Path.String())
	}
	for _, v := range p.Vals {
		if !v.IsDefined() {
			parts = append(parts, "missing")
			continue
		}
		parts = append(parts, string(doc.AppendJSON(nil, v)))
	}
	if p.Op == access.OpPrefix {
		parts = append(parts, strconv.Quote(p.Str))
	}
	bound(">", p.Lo)
	bound("<", p.Hi)
	for _, k := range p.Kids {
		parts = append(parts, text(k))
	}
	return fmt.Sprintf("%s(%s)", operators[p.Op], strings.Join(parts, " "))
}

// The index condition for a filter. It may be weaker than the filter and never stronger.
func TestFilter(t *testing.T) {
	for where, want := range map[string]string{
		`c.a = 1`:                          `in(/a 1)`,
		`1 = c.a`:                          `in(/a 1)`,
		`c.a = @p`:                         `in(/a "x")`,
		`c.a != 1`:                         `exists(/a)`,
		`c.a`:                              `in(/a true)`,
		`NOT c.a`:                          `in(/a false)`,
		`c.a > 1`:                          `range(/a >1)`,
		`5 >= c.a`:                         `range(/a <=5)`,
		`c.a >= 1 AND c.a < 5`:             `range(/a >=1 <5)`,
		`NOT (c.a < 5)`:                    `range(/a >=5)`,
		`c.a BETWEEN 1 AND 5`:              `range(/a >=1 <=5)`,
		`c.a IN (1, "x", undefined)`:       `in(/a 1 "x")`,
		`c.a NOT IN (1)`:                   `exists(/a)`,
		`c.a = 1 OR c.b = 2`:               `or(in(/a 1) in(/b 2))`,
		`c.a = 1 OR LENGTH(c.b) = 2`:       `nothing`,
		`c.a = 1 AND LENGTH(c.b) = 2`:      `in(/a 1)`,
		`c.a = c.b`:                        `exists(/a)`,
		`c.a LIKE "ab%"`:                   `prefix(/a "ab")`,
		`c.a LIKE "%ab"`:                   `exists(/a)`,
		`STARTSWITH(c.a, "ab")`:            `prefix(/a "ab")`,
		`ARRAY_CONTAINS(c.a, 1)`:           `in(/a/[] 1)`,
		`ARRAY_CONTAINS(c.a, 1, true)`:     `in(/a/[] 1)`,
		`ARRAY_CONTAINS(c.a, @o)`:          `and(in(/a/q/[] 7) in(/a/r/s/[] null))`,
		`ARRAY_CONTAINS(c.a.b, @o, true)`:  `and(in(/a/b/q/[] 7) in(/a/b/r/s/[] null))`,
		`ARRAY_CONTAINS(c.a, @none, true)`: `exists(/a)`,
		`ARRAY_CONTAINS(c.a, c.b)`:         `exists(/a)`,
		`IS_DEFINED(c.a)`:                  `exists(/a)`,
		`IS_NULL(c.a)`:                     `in(/a null)`,
		`IS_DEFINED(c.id)`:                 `nothing`,
		`c.id > "a"`:                       `or(range(/_id >"a") range(/_id <"") range(/_id >=[]))`,
		`c.id > 1`:                         `none()`,
		`c.a > null`:                       `in(/a null)`,
		`c.a <= true`:                      `in(/a false true)`,
		`IS_STRING(c.a)`:                   `range(/a >="")`,
		`IS_NUMBER(c.a)`:                   `range(/a >="NaN")`,
		`IS_ARRAY(c.a)`:                    `range(/a >=[])`,
		`IS_OBJECT(c.a)`:                   `range(/a >={})`,
		`IS_PRIMITIVE(c.a)`:                `or(in(/a null) in(/a false true) range(/a >="NaN") range(/a >=""))`,
		`NOT IS_DEFINED(c.a)`:              `in(/a missing)`,
		`NOT IS_DEFINED(c.id)`:             `none()`,
		`IS_STRING(c.id)`:                  `nothing`,
		`IS_NUMBER(c.id)`:                  `none()`,
		`NOT IS_STRING(c.a)`:               `nothing`,
		`ABS(c.a) = 2`:                     `in(/a 2 -2.0)`,
		`udf.f(c.a)`:                       `nothing`,
		`c.a[0] = 1`:                       `in(/a/[] 1)`,
		`EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = 1)`: `in(/tags/[] 1)`,
	} {
		q, err := syntax.Parse("SELECT * FROM c WHERE "+where, syntax.DefaultLimits())
		if err != nil {
			t.Fatal(where, err)
		}
		got := "nothing"
		if f := compiled(q).truth(q.Where); f != nil {
			o, err := doc.FromJSON(nil, []byte(`{"q":7,"r":{"s":null,"$oid":"x"},"l":[1]}`), doc.JSONOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got = text(f(params{"p": value.StringOf("x"), "o": value.ObjectOf(o),
				"none": value.ObjectOf(doc.Empty())}))
		}
		if got != want {
			t.Errorf("%s: %s, wanted %s", where, got, want)
		}
	}
}

// The paths of an item that a query reads: entries that hold them are enough.
func TestCoverageOf(t *testing.T) {
	for query, want := range map[string]string{
		`SELECT c.a FROM c`:                         "[/a]",
		`SELECT c.a, c.b.d FROM c WHERE c.b.d > 1`:  "[/a /b/d]",
		`SELECT c.a.b FROM c WHERE c.a = 1`:         "[/a]",
		`SELECT VALUE c.tags[0] FROM c`:             "[/tags]",
		`SELECT VALUE 1 FROM c`:                     "[/\x00_ts]",
		`SELECT VALUE c FROM c`:                     "[]",
		`SELECT VALUE COUNT(1) FROM c GROUP BY c.g`: "[/g]",
		`SELECT c.a FROM c ORDER BY c.o`:            "[/a /o]",
		`SELECT VALUE (SELECT VALUE 1) FROM c`:      "[]",
		`SELECT c._rid, c.a FROM c`:                 "[/a]",
		`SELECT c._etag FROM c`:                     "[]",
	} {
		q, err := syntax.Parse(query, syntax.DefaultLimits())
		if err != nil {
			t.Fatal(query, err)
		}
		if got := fmt.Sprint(CoverageOf(q, "c", false, true).needs); got != want {
			t.Errorf("%s: %q, wanted %q", query, got, want)
		}
	}
}
