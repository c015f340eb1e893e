package cross

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/conformance/harness"
	"github.com/orrerydb/orrery/conformance/shareddata"
)

// fill stores all edge values and kinds through Mongo.
func (p *place) fill(t *testing.T) int {
	t.Helper()
	n := 0
	for i, v := range shareddata.Values() {
		var d bson.D
		ok(t, bson.UnmarshalExtJSON([]byte(v.BSON), true, &d))
		ok(t, p.writeMongo(fmt.Sprint("e", i), d[0].Value))
		n++
	}
	for i := range kinds {
		ok(t, p.writeMongo(fmt.Sprint("k", i), kinds[i].bson))
		n++
	}
	return n
}

// scalars returns SQL literals for the stored values, and for values between them.
func scalars(t *testing.T, p *place) []string {
	t.Helper()
	out := []string{`""`, `"1"`, `"2"`, `"2024"`, `"c9"`, `"A"`, "0", "-1", "2.5", "1e300", "true", "false", "null"}
	for _, r := range harness.Query(t, p.sql, allKeys, "SELECT DISTINCT VALUE "+p.path()+" FROM c WHERE IS_PRIMITIVE("+
		p.path()+")") {
		var s string
		if json.Unmarshal([]byte(r), &s) == nil {
			r = sqlText(s)
		}
		out = append(out, r)
	}
	return out
}

// sqlText returns a string literal of the query language.
func sqlText(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// path returns the path at which SQL reads the value of v.
func (p *place) path() string {
	if p.edm {
		return `c.v["$v"]`
	}
	return "c.v"
}

// TestIndexChangesNoAnswerSQL: filters on values of all kinds give the same result with an index and in a form for
// which no index can be used.
func TestIndexChangesNoAnswerSQL(t *testing.T) {
	_, ps := places(t)
	for _, origin := range []string{"nosql", "mongo", "table"} {
		t.Run(origin, func(t *testing.T) {
			p := ps[origin]
			p.fill(t)
			lits := scalars(t, p)
			if len(lits) < 40 {
				t.Fatalf("only %d values: %q", len(lits), lits)
			}
			matched := 0
			for i, lit := range lits {
				v := p.path()
				filters := []string{v + " = " + lit, v + " < " + lit, v + " >= " + lit, v + " != " + lit, v + " IN (" +
					lit + ", " + lits[(i*7+3)%len(lits)] + ")",
					"NOT (" + v + " = " + lit + ")", "c.v = " + lit, v + " = " + lit + " OR c.id = 'e1'"}
				var text string
				if json.Unmarshal([]byte(lit), &text) == nil && len(text) > 1 {
					_, size := utf8.DecodeRuneInString(text)
					filters = append(filters, "STARTSWITH("+v+", "+sqlText(text[:size])+")")
				}
				for _, f := range filters {
					with, without := p.findSQL(t, f), p.findSQL(t, "("+f+" ? 1 : 0) + LENGTH(c.id) - LENGTH(c.id) = 1")
					slices.Sort(with)
					slices.Sort(without)
					if !slices.Equal(with, without) {
						t.Errorf("%s:\nwith an index    %q\nwithout an index %q", f, with, without)
					}
					matched += len(with)
				}
			}
			if matched < 1000 {
				t.Errorf("the filters matched %d items in all", matched)
			}
		})
	}
}

// TestIndexChangesNoAnswerGremlin compares has() directly after V(), which uses the index, with has() on values that
// were read.
func TestIndexChangesNoAnswerGremlin(t *testing.T) {
	_, ps := places(t)
	for _, origin := range []string{"nosql", "mongo", "table", "graph without key"} {
		t.Run(origin, func(t *testing.T) {
			p := ps[origin]
			p.fill(t)
			values, err := harness.Submit(p.gremlin, "g.V().values('v').dedup()")
			ok(t, err)
			matched := 0
			for _, x := range values {
				switch x.(type) {
				case nil, []any, map[any]any:
					continue
				}
				for _, op := range []string{"eq", "lt", "gte", "neq"} {
					with, err := harness.Submit(p.gremlin, "g.V().has('v', "+op+"(x)).id()", "x", x)
					if err != nil {
						t.Errorf("%s(%v): %v", op, x, err)
						continue
					}
					without, err := harness.Submit(p.gremlin, "g.V().filter(__.values('v').is("+op+"(x))).id()", "x", x)
					ok(t, err)
					if a, b := sortedTexts(with), sortedTexts(without); !slices.Equal(a, b) {
						t.Errorf("%s(%T %v):\nwith an index    %q\nwithout an index %q", op, x, x, a, b)
					}
					matched += len(with)
				}
			}
			if matched < 1000 {
				t.Errorf("the filters matched %d vertices in all", matched)
			}
		})
	}
}

func sortedTexts(vs []any) []string {
	out := make([]string, len(vs))
	for i, v := range vs {
		out[i] = fmt.Sprint(v)
	}
	slices.Sort(out)
	return out
}

// TestIndexChangesNoAnswerTable compares a filter with its double negation, which uses no index.
func TestIndexChangesNoAnswerTable(t *testing.T) {
	_, ps := places(t)
	for _, origin := range []string{"nosql", "mongo", "table"} {
		t.Run(origin, func(t *testing.T) {
			p := ps[origin]
			p.fill(t)
			lits := []string{"''", "'a'", "'2024'", "0", "-7", "1", "2147483648L", "9007199254740993L", "0.1", "1e300",
				"true", "false", "datetime'1601-01-01T00:00:00Z'", "datetime'1970-01-01T00:00:00Z'",
				"datetime'9999-12-31T23:59:59.999Z'", "guid'00000000-0000-0000-0000-000000000000'", "X''", "X'0102'"}
			for _, k := range kinds {
				if k.filter != "" {
					lits = append(lits, k.filter[len("v eq "):])
				}
			}
			matched := 0
			for _, lit := range lits {
				for _, op := range []string{"eq", "ne", "lt", "le", "gt", "ge"} {
					f := "v " + op + " " + lit
					with, without := p.findTable(t, f), p.findTable(t, "not (not ("+f+"))")
					slices.Sort(with)
					slices.Sort(without)
					if !slices.Equal(with, without) {
						t.Errorf("%s:\nwith an index    %q\nwithout an index %q", f, with, without)
					}
					matched += len(with)
				}
			}
			if matched < 500 {
				t.Errorf("the filters matched %d entities in all", matched)
			}
		})
	}
}
