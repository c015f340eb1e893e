package sql

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
)

// generator makes random documents and queries from a small vocabulary, so that values are often equal.
type generator struct{ *rand.Rand }

func (g generator) pick(xs ...string) string { return xs[g.IntN(len(xs))] }

// literal returns a value as written in a query.
func (g generator) literal() string {
	return g.pick("0", "1", "2", "2.5", "-1", `"a"`, `"b"`, `"ab"`, `""`, "true", "false", "null",
		`"2024-01-01T00:00:00.000Z"`,
		`"00112233-4455-6677-8899-aabbccddeeff"`, `"AQID"`, "[1]", `{"x": 1}`, "undefined", "9007199254740993")
}

func (g generator) path() string {
	return g.pick("c.a", "c.b", "c.o.x", "c.o", "c.arr", "c.arr[0]", "c.pk", "c.id", `c["a"]`, "c._id", "c._ts")
}

// condition returns a random filter of the given depth.
func (g generator) condition(depth int) string {
	if depth > 0 && g.IntN(2) == 0 {
		switch g.IntN(4) {
		case 0:
			return "(" + g.condition(depth-1) + " AND " + g.condition(depth-1) + ")"
		case 1:
			return "(" + g.condition(depth-1) + " OR " + g.condition(depth-1) + ")"
		case 2:
			return "NOT (" + g.condition(depth-1) + ")"
		}
		return "(" + g.condition(depth-1) + " AND " + g.condition(depth-1) + " OR " + g.condition(depth-1) + ")"
	}
	p := g.path()
	switch g.IntN(14) {
	case 0, 1, 2:
		return p + " " + g.pick("=", "!=", "<", ">", "<=", ">=") + " " + g.literal()
	case 3:
		return g.literal() + " " + g.pick("=", "<", ">=") + " " + p
	case 4:
		return p + g.pick(" IN (", " NOT IN (") + g.literal() + ", " + g.literal() + ", " + g.literal() + ")"
	case 5:
		return p + g.pick(" BETWEEN ", " NOT BETWEEN ") + g.literal() + " AND " + g.literal()
	case 6:
		return "STARTSWITH(" + p + ", " + g.pick(`"a"`, `""`, `"2024"`, `"0011"`, "1") + g.pick("", "", ", true") + ")"
	case 7:
		element := g.pick(g.literal(), `{"x": `+g.literal()+`}`, `{"x": `+g.literal()+`, "o": {"y": `+g.literal()+`}}`)
		return "ARRAY_CONTAINS(" + g.pick("c.arr", "c.a", "c.o.x") + ", " + element +
			g.pick("", ", true", ", false") + ")"
	case 8:
		return g.pick("IS_DEFINED", "IS_NULL", "IS_STRING", "IS_NUMBER", "IS_BOOL", "IS_ARRAY", "IS_OBJECT",
			"NOT IS_DEFINED") + "(" + p + ")"
	case 9:
		return p + g.pick(" LIKE ", " NOT LIKE ") + g.pick(`"a%"`, `"%b"`, `"2024%"`, `"a"`, `"_"`)
	case 10:
		return p + " = " + g.path()
	case 11:
		return "EXISTS(SELECT VALUE t FROM t IN c.arr WHERE t = " + g.literal() + ")"
	case 12:
		return "ARRAY_CONTAINS([" + g.literal() + ", " + g.literal() + "], " + p + ")"
	}
	return g.pick("CONTAINS", "ENDSWITH", "STRINGEQUALS") + "(" + p + `, "b")`
}

// query returns a random query. ordered says that it determines the order of its rows.
func (g generator) query() (text string, ordered bool) {
	where := ""
	if g.IntN(10) > 0 {
		where = " WHERE " + g.condition(2)
	}
	lit := g.pick("=", "<", ">=", "!=") + " " + g.literal()
	switch g.IntN(11) {
	case 8:
		return "SELECT VALUE x.x FROM c.o AS x WHERE x.x " + lit +
			g.pick("", " AND IS_STRING(x.x)", " OR NOT IS_DEFINED(x.x)"), false
	case 9:
		return "SELECT VALUE t FROM t IN c.arr WHERE t " + lit + g.pick("", " AND t != 1", " OR t = null"), false
	case 10:
		return "SELECT VALUE {\"i\": c.id, \"t\": t} FROM c JOIN t IN c.arr JOIN x IN (SELECT VALUE c.o) WHERE t " +
			lit + " AND c.a = " + g.literal() + g.pick("", " OR x.x = t"), false
	case 0:
		return "SELECT VALUE t FROM c JOIN t IN c.arr" + strings.ReplaceAll(where, "c.b", "t"), false
	case 1:
		return "SELECT VALUE COUNT(1) FROM c" + where, true
	case 2:
		return "SELECT DISTINCT VALUE " + g.path() + " FROM c" + where, false
	case 3:
		return "SELECT c.pk, COUNT(1) AS n, MAX(c.a) AS m FROM c" + where + " GROUP BY c.pk", false
	case 4, 5:
		return "SELECT c.id FROM c" + where + " ORDER BY " + g.pick("c.a", "c.b", "c.o.x", "c._ts", "c.a, c.b") +
			g.pick("", " DESC") + ", c.id" + g.pick("", " DESC") +
			g.pick("", " OFFSET 2 LIMIT 5"), true
	}
	return "SELECT VALUE c.id FROM c" + where, false
}

// stored returns a random stored value: of JSON's kinds, and of those that only other APIs write.
func (g generator) stored() value.Value {
	switch g.IntN(16) {
	case 0:
		return value.NullValue()
	case 1:
		return value.BoolOf(g.IntN(2) == 0)
	case 2, 3, 4:
		return value.Int32Of(int32(g.IntN(4) - 1))
	case 5:
		return value.DoubleOf(2.5)
	case 6:
		return value.DoubleOf(1)
	case 7:
		return value.Int64Of(9007199254740993)
	case 8:
		return value.DateOf(1704067200000, 0)
	case 9:
		return value.UUIDOf([]byte{0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd,
			0xee, 0xff})
	case 10:
		return value.BinaryOf(0, []byte{1, 2, 3})
	case 11:
		return value.ObjectIDOf([]byte("abcdefghijkl"))
	}
	return value.StringOf(g.pick("a", "b", "ab", "", "AQID", "2024-01-01T00:00:00.000Z"))
}

// document returns a random document; foreign allows kinds that JSON lacks.
func (g generator) document(i int, foreign bool) doc.Doc {
	val := func() value.Value {
		for {
			v := g.stored()
			if k := v.Kind(); foreign || k != value.Date && k != value.UUID && k != value.Binary &&
				k != value.ObjectID {
				return v
			}
		}
	}
	var b doc.Builder
	b.BeginObject()
	b.Field("_id", value.StringOf(fmt.Sprintf("%s%03d", g.pick("a", "b"), i)))
	b.Field("pk", value.StringOf(g.pick("a", "b", "ab")))
	for _, name := range []string{"a", "b", "\x01_id"} {
		if g.IntN(4) > 0 {
			b.Field(name, val())
		}
	}
	if g.IntN(3) > 0 {
		b.BeginObjectField("o")
		b.Field("x", val())
		b.End()
	}
	if g.IntN(3) > 0 {
		b.BeginArrayField("arr")
		for range g.IntN(4) {
			if g.IntN(3) > 0 {
				b.Elem(val())
				continue
			}
			b.BeginObject()
			b.Field("x", val())
			if g.IntN(2) == 0 {
				b.BeginObjectField("o")
				b.Field("y", val())
				b.End()
			}
			b.End()
		}
		b.End()
	}
	b.End()
	return append(doc.Doc(nil), b.Doc()...)
}

// plainRows joins rows for comparison.
func plainRows(rows []string, ordered bool) string {
	out := slices.Clone(rows)
	if !ordered {
		slices.Sort(out)
	}
	return strings.Join(out, "\n")
}

// TestMetamorphic runs random queries on random documents. The result must not depend on indexes, slots or page sizes,
// and must be that of the evaluator over plain documents.
func TestMetamorphic(t *testing.T) {
	for _, foreign := range []bool{false, true} {
		t.Run(fmt.Sprintf("foreign=%v", foreign), func(t *testing.T) {
			t.Parallel()
			g := generator{rand.New(rand.NewPCG(7, 7))}
			cs, engines := map[string]*core.Container{}, map[int]*core.Engine{}
			for i, v := range oracleVariants {
				cs[v.name] = v.container(t, engines, i, nil)
			}
			var docs []doc.Doc
			for i := range 120 {
				d := g.document(i, foreign)
				docs = append(docs, d)
				for _, c := range cs {
					insert(t, c, d)
				}
			}
			answered := 0
			for range 500 {
				text, ordered := g.query()
				if strings.Contains(text, "c._ts") { // plain documents have none
					continue
				}
				want, wantErr := evalDocs(text, nil, docs, 0)
				if len(want) > 0 {
					answered++
				}
				for name, c := range cs {
					got, err := evalCore(c, text, nil, []int{0, 1, 7}[g.IntN(3)])
					if (err == nil) != (wantErr == nil) {
						t.Fatalf("%s: %s: error %v, wanted %v", name, text, err, wantErr)
					}
					if plainRows(got, ordered) != plainRows(want, ordered) {
						t.Fatalf("%s: %s\n got %v\nwant %v", name, text, got, want)
					}
				}
			}
			if answered < 130 {
				t.Errorf("only %d queries had rows", answered)
			}
		})
	}
}
