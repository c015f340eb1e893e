package sql

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

var (
	oracleQueries = flag.Int("queries", 2000, "random queries of TestOracle")
	oracleSeed    = flag.Uint64("seed", 11, "of TestOracle")
)

// naiveQueryText returns a random query of the oracle's language. ordered says that it determines the order of its
// rows.
func (g generator) naiveQueryText() (text string, ordered bool) {
	where := g.pick("", " WHERE "+g.simple(2), " WHERE "+g.simple(2), " WHERE "+g.simple(0))
	dir := func() string { return g.pick("", " ASC", " DESC") }
	path := func() string { return g.pick("c.a", "c.b", "c.n", "c.n", "c.o.x", "c.pk", "c.m") }
	cut := g.pick("", "", " OFFSET 0 LIMIT 4", " OFFSET 3 LIMIT 5", " OFFSET 500 LIMIT 1")
	agg := func() string {
		return g.pick("COUNT(1)", "COUNT(c.a)", "SUM(c.n)", "SUM(c.a)", "AVG(c.n)", "AVG(c.b)", "MIN(c.a)", "MAX(c.b)",
			"MIN(c.arr)", "MAX(c.n)", "MIN(c.n)", "MIN(c.o.x)",
			"MAX(c.o.x)", "COUNT(c.o.x)", "COUNTIF(c.n > 2)", "ARRAY_LENGTH(MAKELIST(c.a))",
			"ARRAY_LENGTH(MAKESET(c.a))", "SUM(c.n) + COUNT(1)", "(MAX(c.n) ?? -1)")
	}
	switch g.IntN(19) {
	case 16: // orders after several values of a composite index's first column, by its columns and with items
		return "SELECT " + g.pick("", "TOP 5 ") + "c.m AS p, c." + g.pick("m", "none") + " AS q FROM c WHERE c.n IN (" +
			g.pick("1, 3", "0, 2, 4", "1, 1, 9") + ")" + g.pick("", " AND c.m > 2") + " ORDER BY c.m" + dir(), true
	case 17: // minimum, maximum and counts from an index
		p := g.pick("c.n", "c.m", "c.u", "c.id")
		return "SELECT MIN(" + p + ") AS a, MAX(" + p + ") AS b, COUNT(" + p + ") AS k" +
			g.pick("", ", COUNT(1) AS n") + " FROM c", true
	case 18:
		return "SELECT c.id, " + g.pick("c.m", "c.u", "c.w", "c.n", "[c.m, c.n]") + " AS k FROM c" +
			g.pick("", where), false
	case 0:
		return "SELECT c.id, c.a FROM c" + where + " ORDER BY " + path() + dir() + ", " + path() + dir() + ", c.id" +
			dir() + cut, true
	case 1:
		return "SELECT TOP " + g.pick("1", "3", "0") + " VALUE c.id FROM c" + where + " ORDER BY " + path() + dir() +
			", c.n" + dir() + ", c.id", true
	case 2:
		return "SELECT " + agg() + " AS x, " + agg() + " AS y, " + agg() + " AS z FROM c" + where, true
	case 3:
		key := g.pick("c.a", "c.pk", "c.o.x", "c.n > 1", "c.o", "c.n", "c.m")
		return "SELECT " + key + " AS k, " + agg() + " AS x, " + agg() + " AS y FROM c" + where +
			" GROUP BY " + key, false
	case 4:
		return "SELECT c.pk, c.a, " + agg() + " AS x FROM c" + where + " GROUP BY c.pk, c.a ORDER BY c.pk" + dir() +
			", c.a" + dir() + cut, true
	case 5:
		return "SELECT DISTINCT " + g.pick("VALUE c.a", "VALUE [c.a, c.b]", "c.a, c.pk", "VALUE c.o", "VALUE c.arr",
			"VALUE c.n", "c.o.x") + " FROM c" + where, false
	case 6:
		p := path()
		return "SELECT DISTINCT VALUE " + p + " FROM c" + where + " ORDER BY " + p + dir() + cut, true
	case 7:
		return "SELECT VALUE {\"i\": c.id, \"t\": t, \"u\": u} FROM c JOIN t IN c.arr JOIN u IN c.arr" +
			strings.ReplaceAll(where, "c.b", "t"), false
	case 8:
		return "SELECT t, COUNT(1) AS x, " + agg() + " AS y FROM c JOIN t IN c.arr" + where + " GROUP BY t ORDER BY t" +
			dir(), true
	case 9: // the rows are their sort keys, so ties are invisible
		p, q := path(), path()
		d := dir()
		return "SELECT " + p + " AS p, " + q + " AS q FROM c" + where + " ORDER BY " + p + d + ", " + q +
			g.pick(d, dir()) + cut, true
	case 10:
		p := path()
		return "SELECT " + g.pick("", "TOP 5 ") + p + " AS p FROM c" + where + " ORDER BY " + p + dir(), true
	case 11:
		return "SELECT VALUE " + g.pick("COUNT(1)", "COUNT(1)", "COUNT(c.n)", "MIN(c.n)", "MAX(c.n)", "MIN(c.a)",
			"MAX(c.m)") + " FROM c" + where, true
	case 12:
		p := path()
		return "SELECT " + p + " AS p, COUNT(1) AS n FROM c" + where + " GROUP BY " + p +
			g.pick("", " ORDER BY "+p+dir()), false
	case 13:
		return "SELECT VALUE {\"i\": c.id, \"k\": k.g} FROM c JOIN k IN c.kids" +
			g.pick(" WHERE k.g = \"m\"", " WHERE k.age > 1 AND c.n < 3", " WHERE k.g = \"f\" OR c.a = 1", where), false
	case 14:
		return "SELECT VALUE {\"i\": c.id, \"l\": ARRAY(SELECT VALUE k.age FROM k IN c.kids WHERE k.g = " +
			g.pick("\"m\"", "c.a") + "), \"n\": (SELECT VALUE COUNT(1) FROM t IN c.arr)} FROM c" + where, false
	}
	return "SELECT VALUE " + g.pick("c.id", "c.n", "c.a", "c.o.x", "c.arr[0]", "{\"n\": c.n, \"p\": c.pk}") +
		" FROM c" + where, false
}

// simple returns a random filter of the oracle's language.
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
	if g.IntN(4) == 0 { // few items match
		u, w := g.IntN(97), g.IntN(97)
		return g.pick(fmt.Sprintf("c.u = %d", u), fmt.Sprintf("c.u BETWEEN %d AND %d", u, u+4),
			fmt.Sprintf("(c.u > %d AND c.u <= %d)", u, u+3), fmt.Sprintf("c.u IN (%d, %d, %d)", u, w, u+1),
			fmt.Sprintf("(c.u = %d OR c.w = \"w%02d\")", u, w),
			fmt.Sprintf("(c.u < %d OR c.o.x = 2.5 AND c.u = %d)", u/20, w),
			fmt.Sprintf("STARTSWITH(c.w, \"w%d\")", u/10), fmt.Sprintf("c.w LIKE \"w%d%%\"", u/10),
			fmt.Sprintf("c.u > %d", 90+u%7), fmt.Sprintf("(c.u >= %d AND c.w < \"w%02d\")", u, w),
			fmt.Sprintf("ARRAY_CONTAINS([%d, %d], c.u)", u, w))
	}
	p := g.pick("c.a", "c.b", "c.o.x", "c.o", "c.arr", "c.arr[0]", "c.pk", "c.n", `c["a"]`, "c.m", "c.o.d.y")
	switch g.IntN(17) {
	case 0:
		return p + g.pick(" IN (", " NOT IN (") + lit() + ", " + lit() + ")"
	case 1:
		return p + g.pick(" BETWEEN ", " NOT BETWEEN ") + lit() + " AND " + lit()
	case 2:
		return g.pick("IS_DEFINED", "IS_NULL", "IS_STRING", "IS_NUMBER", "IS_BOOL", "IS_ARRAY", "IS_OBJECT") +
			"(" + p + ")"
	case 3:
		return "ARRAY_CONTAINS(c.arr, " + g.pick(lit(), "c.a", "c.n") + ")"
	case 4:
		return "EXISTS(SELECT VALUE t FROM t IN c.arr WHERE t " + g.pick("=", "<") + " " + g.pick(lit(), "c.a") + ")"
	case 5:
		return "(" + p + " ?? " + lit() + ") " + g.pick("=", "!=", "<") + " " + lit()
	case 6:
		return g.pick("STARTSWITH", "STARTSWITH", "CONTAINS", "ENDSWITH", "STRINGEQUALS") + "(" + p +
			g.pick(`, "a")`, `, "b")`, `, "AB", true)`, `, "")`)
	case 7:
		return p + g.pick(" LIKE ", " NOT LIKE ") + g.pick(`"a%"`, `"%b"`, `"a"`, `"_"`, `"a_%"`, `"%"`)
	case 8:
		return g.spatial()
	case 9:
		return g.pick("c.kids[0].age", "c.kids[1].g", "c.o.d.y", "c.o.d.l[0]") + " " + g.pick("=", ">") + " " +
			g.pick("1", "2", `"m"`)
	case 10:
		return g.pick(`EXISTS(SELECT VALUE k FROM k IN c.kids WHERE k.age > 1 AND k.g = "m")`,
			`ARRAY_CONTAINS(c.kids, {"g": "m"}, true)`, `ARRAY_CONTAINS(c.kids, {"g": "f", "age": 1})`,
			`EXISTS(SELECT VALUE k FROM k IN c.kids WHERE k.g = c.a)`, `(SELECT VALUE MAX(k.age) FROM k IN c.kids) > 1`,
			`(SELECT VALUE COUNT(1) FROM t IN c.arr WHERE t = 1) = 1`)
	case 11, 12: // conditions on two paths that few items match
		return fmt.Sprintf("(c.n = %d AND c.m %s %d)", g.IntN(5), g.pick("=", ">", "<=", "!="), g.IntN(8))
	case 13: // several logical partitions
		return g.pick(`c.pk IN ("a", "c")`, `c.pk IN ("b", "a")`, `(c.pk = "c" OR c.pk = "b")`)
	}
	return p + " " + g.pick("=", "=", "!=", "<", ">", "<=", ">=") + " " + g.pick(lit(), lit(), "c.b", "c.n + 1")
}

// spatial returns a filter on c.loc that avoids the boundaries of the items' places.
func (g generator) spatial() string {
	loc := g.geometry()
	args := "(" + g.pick("c.loc, "+loc, loc+", c.loc") + ")"
	switch g.IntN(3) {
	case 0:
		return "ST_DISTANCE" + args + g.pick(" < ", " <= ", " > ") + g.pick("27750", "66600", "96500", "127600")
	case 1:
		return "ST_INTERSECTS" + args
	}
	x, y := float64(g.IntN(4))-1.5, float64(g.IntN(4))-1.5
	return fmt.Sprintf(`ST_WITHIN(c.loc, {"type": "Polygon", "coordinates": [[[%v, %v], [%v, %v], [%v, %v], [%v,`+
		` %v], [%v, %v]]]})`, x, y, x+2, y, x+2, y+2, x, y+2, x, y)
}

// geometry returns a point on the grid of whole degrees, or a box around one.
func (g generator) geometry() string {
	x, y := float64(g.IntN(5)-2), float64(g.IntN(5)-2)
	if g.IntN(3) > 0 {
		return fmt.Sprintf(`{"type": "Point", "coordinates": [%v, %v]}`, x, y)
	}
	l, r, b, t := x-0.25, x+0.25, y-0.25, y+0.25
	return fmt.Sprintf(`{"type": "Polygon", "coordinates": [[[%v, %v], [%v, %v], [%v, %v], [%v, %v], [%v, %v]]]}`, l, b,
		r, b, r, t, l, t, l, b)
}

// plainItem returns a random item of JSON's kinds, as JSON.
func (g generator) plainItem(i int) map[string]any {
	scalar := func() any {
		return []any{nil, true, false, 0.0, 1.0, 2.5, -1.0, "a", "b", "", "ab"}[g.IntN(11)]
	}
	it := map[string]any{"id": fmt.Sprintf("i%03d", i), "pk": string("abc"[i%3])}
	for _, name := range []string{"a", "b"} {
		if g.IntN(4) > 0 {
			it[name] = scalar()
		}
	}
	if g.IntN(4) > 0 {
		it["n"] = float64(g.IntN(5))
	}
	it["m"], it["u"], it["w"] = float64(g.IntN(8)), float64(i*29%97), fmt.Sprintf("w%02d", g.IntN(97))
	if g.IntN(3) > 0 {
		o := map[string]any{"x": scalar()}
		if g.IntN(2) > 0 {
			o["d"] = map[string]any{"y": scalar(), "l": []any{scalar(), 1.0}}
		}
		it["o"] = o
	}
	if g.IntN(3) > 0 {
		l := []any{}
		for range g.IntN(4) {
			l = append(l, scalar())
		}
		it["arr"] = l
	}
	if g.IntN(2) > 0 {
		l := []any{}
		for range g.IntN(3) {
			l = append(l, map[string]any{"g": g.pick("m", "f"), "age": float64(g.IntN(4))})
		}
		it["kids"] = l
	}
	if g.IntN(2) > 0 {
		v, err := doc.ValueFromJSON([]byte(g.geometry()))
		if err != nil {
			panic(err)
		}
		it["loc"] = naiveEval(&syntax.Lit{Val: v}, nil, nil)
	}
	return it
}

// oracleVariants are the configurations that must not change any answer of the oracle.
var oracleVariants = []variant{
	{"all indexed", "", 16, "/pk", false},
	{"all indexed, one slot", "", 1, "/id", false},
	{"no index", `{"indexingMode":"none","automatic":false}`, 16, "/pk", false},
	{"some indexed", `{"includedPaths":[{"path":"/n/?"},{"path":"/u/?"},{"path":"/w/?"},{"path":"/arr/[]/?"},` +
		`{"path":"/o/x/?"}],"excludedPaths":[{"path":"/*"}]}`, 4, "/pk", false},
	{"arrays and kids", `{"includedPaths":[{"path":"/kids/[]/*"},{"path":"/a/?"},{"path":"/arr/*"}],` +
		`"excludedPaths":[{"path":"/*"}]}`, 1, "/pk", false},
	{"composites", `{"includedPaths":[{"path":"/*"}],"excludedPaths":[],"compositeIndexes":[[{"path":"/a"},` +
		`{"path":"/b"}],[{"path":"/n"},{"path":"/m","order":"descending"}],[{"path":"/a"},{"path":"/n"},{"path":"/id"}],` +
		`[{"path":"/pk"},{"path":"/n"}],[{"path":"/u"},{"path":"/w"}],[{"path":"/m","order":"descending"},` +
		`{"path":"/o/x"}]]}`, 4, "/pk", false},
	{"composites only", `{"includedPaths":[],"excludedPaths":[{"path":"/*"}],"compositeIndexes":[[{"path":"/n"},` +
		`{"path":"/m"}],[{"path":"/n"},{"path":"/m"},{"path":"/a"}],[{"path":"/b"},{"path":"/n","order":"descending"}],` +
		`[{"path":"/o/x"},{"path":"/a"}]]}`, 1, "/nowhere", false},
	{"spatial", `{"includedPaths":[{"path":"/m/?"}],"excludedPaths":[{"path":"/*"}],` +
		`"spatialIndexes":[{"path":"/loc/*","types":["Point","Polygon"]}]}`, 4, "/pk", false},
}

// oracleWorld has the same items in plain form and in a container of each variant.
type oracleWorld struct {
	t     testing.TB
	g     generator
	items map[string]any
	cs    []*core.Container
}

func (w *oracleWorld) put(i int) {
	it := w.g.plainItem(i)
	w.items[it["id"].(string)] = it
	d, err := doc.FromJSON(nil, []byte(naiveText(it)), doc.JSONOptions{Names: doc.NoSQL})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, c := range w.cs {
		pk, id, err := c.KeyOf(d)
		if err != nil {
			w.t.Fatal(err)
		}
		if _, err := c.Write(context.Background(), core.Write{Kind: core.Upsert, PK: pk, ID: id, Doc: d}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// plainValue parses JSON into the oracle's values.
func plainValue(t testing.TB, text string) any {
	v, err := doc.ValueFromJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return naiveEval(&syntax.Lit{Val: v}, nil, nil)
}

func (w *oracleWorld) remove(i int) {
	id := fmt.Sprintf("i%03d", i)
	if w.items[id] == nil {
		return
	}
	d, err := doc.FromJSON(nil, []byte(naiveText(w.items[id])), doc.JSONOptions{Names: doc.NoSQL})
	if err != nil {
		w.t.Fatal(err)
	}
	delete(w.items, id)
	for _, c := range w.cs {
		pk, id, err := c.KeyOf(d)
		if err != nil {
			w.t.Fatal(err)
		}
		if _, err := c.Write(context.Background(), core.Write{Kind: core.Delete, PK: pk, ID: id}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// answer returns the oracle's rows. The items are in the order of their ids.
func (w *oracleWorld) answer(text string, ordered bool) []string {
	q, err := syntax.Parse(text, syntax.DefaultLimits())
	if err != nil {
		w.t.Fatalf("%s: %v", text, err)
	}
	var items []any
	for _, id := range slices.Sorted(maps.Keys(w.items)) {
		items = append(items, w.items[id])
	}
	want := naiveQuery(q, items)
	if !ordered {
		slices.Sort(want)
	}
	return want
}

// TestOracle: random queries over random, changing items have the oracle's result, with each configuration of index and
// slots and each page size.
func TestOracle(t *testing.T) {
	t.Parallel()
	w := &oracleWorld{t: t, g: generator{rand.New(rand.NewPCG(*oracleSeed, 3))}, items: map[string]any{}}
	engines := map[int]*core.Engine{}
	for i, v := range oracleVariants {
		w.cs = append(w.cs, v.container(t, engines, i, nil))
	}
	for i := range 60 {
		w.put(i)
	}
	answered, took := 0, plans{}
	for n := range *oracleQueries {
		if n%20 == 19 {
			w.put(w.g.IntN(90))
			w.put(w.g.IntN(90))
			w.remove(w.g.IntN(90))
		}
		text, ordered := w.g.naiveQueryText()
		want := w.answer(text, ordered)
		if len(want) > 0 {
			answered++
		}
		for i, c := range w.cs {
			size := []int{0, 1, 7}[w.g.IntN(3)]
			if size == 1 && len(want) > 20 && w.g.IntN(4) > 0 {
				size = 1000
			}
			rows, err := took.explained(c, text, nil, size)
			if err != nil {
				t.Fatalf("%s: %s: %v", oracleVariants[i].name, text, err)
			}
			got := make([]string, len(rows))
			for j, r := range rows {
				got[j] = naiveText(plainValue(t, r))
			}
			if !ordered {
				slices.Sort(got)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("query %d, %s, pages of %d: %s\n got %v\nwant %v", n, oracleVariants[i].name, size,
					text, got, want)
			}
		}
	}
	t.Logf("%d queries, %d with rows: %v", *oracleQueries, answered, took)
	if answered < *oracleQueries/2 {
		t.Errorf("only %d queries had rows", answered)
	}
	took.check(t, *oracleQueries/100)
}
