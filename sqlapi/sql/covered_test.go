package sql

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// itemEnv is testEnv for a container whose items the language sees in another form, here unchanged. Then no query is
// covered and no order comes from the index.
var itemEnv = &Env{ItemJSON: testEnv.ItemJSON, SystemJSON: coverEnv.SystemJSON, Form: func(d doc.Doc) doc.Doc {
	return d
}}

var coverEnv = &Env{ItemJSON: testEnv.ItemJSON, SystemJSON: func(dst []byte, it *core.Item) []byte {
	return fmt.Appendf(dst, `"_rid":"r%d","_etag":"e%d"`, it.Number, it.LSN)
}}

func memContainer(t testing.TB, slots int, spec core.ContainerSpec) *core.Container {
	t.Helper()
	e, err := core.Open(context.Background(), kv.Checked(memkv.New()), core.Options{MinSlots: slots})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if problems, err := e.Check(context.Background()); err != nil || len(problems) > 0 {
			t.Errorf("store check: %v %v", problems, err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := e.CreateDatabase(context.Background(), core.DatabaseSpec{ID: "d"}); err != nil {
		t.Fatal(err)
	}
	spec.ID = "c"
	if spec.PartitionKey.Paths == nil {
		spec.PartitionKey = core.PartitionKeyDef{Paths: []string{"/pk"}}
	}
	c, err := e.CreateContainer(context.Background(), "d", spec)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// pages runs a query to its end and adds the numbers of what its pages read.
func pages(t testing.TB, c *core.Container, env *Env, req Request, text string) (rows []string, m Metrics) {
	t.Helper()
	req.Explain = true
	for {
		pl, err := Compile(text, nil, env)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		out := &Page{}
		if err := pl.Execute(context.Background(), c, req, out); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if out.Count > 0 {
			rows = append(rows, splitRows(string(out.Body))...)
		}
		m.ItemsRead += out.Metrics.ItemsRead
		m.IndexReads += out.Metrics.IndexReads
		m.Explain = out.Metrics.Explain
		if req.Continuation = out.Continuation; req.Continuation == "" {
			return rows, m
		}
	}
}

// TestCoveredReadsNoItem: queries that the index answers alone, the number of entries they read at most, and the same
// answer from items.
func TestCoveredReadsNoItem(t *testing.T) {
	const items, slots = 400, 4
	c := memContainer(t, slots, core.ContainerSpec{})
	for i := range items {
		o := fmt.Sprintf(`"o":{"p":%d,"q":"x"},`, i%7)
		if i%10 == 0 {
			o = ""
		}
		insert(t, c, mustJSON(t, fmt.Sprintf(`{"id":"i%03d","pk":"p%d","n":%d,"f":%d.5,%s"color":"color %d","b":%v,`+
			`"same":"s"}`, i, i%5, i, i%50, o, i%10, i%2 == 0)))
	}
	for _, tc := range []struct {
		text    string
		entries int
	}{
		{"SELECT VALUE COUNT(1) FROM c WHERE c.n >= 100 AND c.n < 200", 100 + 2*slots},
		{"SELECT VALUE [{\"item\": COUNT(1)}] FROM c WHERE (c.n >= 100)", 300 + 2*slots},
		{"SELECT COUNT(1) AS n FROM c WHERE c.color IN ('color 1', 'color 3')", 80},
		{"SELECT VALUE COUNT(1) FROM c WHERE STARTSWITH(c.color, 'color 1')", 40},
		{"SELECT VALUE COUNT(c.o.p) FROM c", 360},
		{"SELECT VALUE COUNT(1) FROM c WHERE IS_DEFINED(c.o.p)", 360},
		{"SELECT VALUE COUNT(1) FROM c WHERE NOT IS_DEFINED(c.o.p)", 360},
		{"SELECT VALUE COUNT(1) FROM c WHERE c.n % 2 = 0", 400},
		{"SELECT VALUE COUNT(1) FROM c WHERE c.pk = 'p1'", 80},
		{"SELECT VALUE COUNT(1) FROM c WHERE c.n < 20 OR c.n >= 380", 40 + 4*slots},
		{"SELECT MAX(c.n) AS n FROM c WHERE c.n < 20 OR c.n = 200", 7 * slots},
		{"SELECT VALUE MIN(c.n) FROM c", 2 * slots},
		{"SELECT VALUE MAX(c.f) FROM c", 2 * slots},
		{"SELECT VALUE MAX(c.color) FROM c", 2 * slots},
		{"SELECT VALUE MAX(c._ts) FROM c", 2 * slots},
		{"SELECT VALUE [{\"item\": MAX(c.n)}] FROM c", 2 * slots},
		{"SELECT MIN(c.n) AS a, MAX(c.n) AS b FROM c WHERE c.n > 30 AND c.n <= 300", 2 * slots},
		{"SELECT VALUE [{\"item\": MIN(c.n), \"item2\": {\"min\": MIN(c.n), \"count\": COUNT(c.n)}}] FROM c WHERE " +
			"c.n >= 0", 400 + 2*slots},
		{"SELECT VALUE SUM(c.f) FROM c WHERE c.f < 10", 80 + 2*slots},
		{"SELECT VALUE AVG(c.f) FROM c", 400},
		{"SELECT VALUE [{\"item\": {\"sum\": SUM(c.n), \"count\": COUNT(c.n)}}] FROM c WHERE c.n >= 0", 400 + 2*slots},
		{"SELECT VALUE c.n FROM c WHERE c.n < 50", 50 + 2*slots},
		{"SELECT c.n FROM c WHERE c.n < 50 ORDER BY c.n DESC", 50 + 4*slots},
		{"SELECT c.id, c.n, c.pk FROM c WHERE c.n < 50 ORDER BY c.n", 50 + 4*slots},
		{"SELECT VALUE c.o.q FROM c WHERE c.o.q = 'x'", 360},
		{"SELECT VALUE c.id FROM c", 400},
		{"SELECT c.n, c.id FROM c", 400},
		{"SELECT c.id, c.pk, c._rid FROM c", 400},
		{"SELECT {\"a\": c.n, \"b\": [c.n]} AS x, c.pk FROM c WHERE c.n > 100 OR c.id < 'i100'", 400},
		{"SELECT c.n, c.id FROM c ORDER BY c.n, c.id DESC", 400},
		{"SELECT TOP 5 VALUE c.n FROM c ORDER BY c.n", 40},
		{"SELECT c._rid, [{\"item\": c.n}] AS orderByItems, c.n AS payload FROM c WHERE ((true) AND " +
			"IS_DEFINED(c.n)) ORDER BY c.n", 410},
		{"SELECT DISTINCT VALUE c.color FROM c", 20 * slots},
		{"SELECT DISTINCT VALUE c.color FROM c ORDER BY c.color DESC", 24 * slots},
		{"SELECT DISTINCT VALUE c.same FROM c", 2 * slots},
		{"SELECT DISTINCT c.color FROM c WHERE c.color > 'color 2'", 20 * slots},
		{"SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.color FROM c)", 20 * slots},
		{"SELECT COUNT(d) AS n FROM (SELECT DISTINCT c.color FROM c WHERE c.color > 'color 2') AS d", 20 * slots},
		{"SELECT c.color, COUNT(1) AS n FROM c GROUP BY c.color", 400},
		{"SELECT c.o.p, COUNT(1) AS n, SUM(c.o.p) AS s FROM c GROUP BY c.o.p", 360},
		{"SELECT [{\"item\": c.color}] AS groupByItems, {\"color\": c.color, \"n\": {\"item\": COUNT(1)}} AS " +
			"payload FROM c GROUP BY c.color", 400},
	} {
		want, _ := pages(t, c, itemEnv, Request{}, tc.text)
		for begun := time.Now(); time.Since(begun) < 10*time.Second; time.Sleep(time.Millisecond) {
			// The first query that uses a path makes the slots count it. Without ORDER BY the query doesn't wait for
			// that.
			if _, m := pages(t, c, coverEnv, Request{}, tc.text); strings.HasPrefix(m.Explain, "covered ") &&
				m.ItemsRead == 0 {
				break
			}
		}
		for _, size := range []int{0, 7} {
			got, m := pages(t, c, coverEnv, Request{PageSize: size}, tc.text)
			if !strings.Contains(tc.text, "ORDER BY") {
				slices.Sort(got)
				slices.Sort(want)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %v, from the items %v", tc.text, got, want)
			}
			if !strings.HasPrefix(m.Explain, "covered ") || m.ItemsRead != 0 || size == 0 && m.IndexReads > tc.entries {
				t.Errorf("%s: %d items and %d entries read by %q", tc.text, m.ItemsRead, m.IndexReads, m.Explain)
			}
		}
	}
	for _, text := range []string{"SELECT VALUE COUNT(1) FROM c", "SELECT VALUE COUNT(1) FROM c OFFSET 0 LIMIT 1"} {
		// by the head of the logical partition, or by its items
		req := Request{PK: core.PartitionKey{value.StringOf("p1")}}
		if rows, m := pages(t, c, coverEnv, req, text); !slices.Equal(rows, []string{"80"}) ||
			m.ItemsRead > 0 != strings.Contains(text, "LIMIT") {
			t.Errorf("%s: %v, %d items read", text, rows, m.ItemsRead)
		}
	}
	for _, text := range []string{"SELECT * FROM c WHERE c.n = 5", "SELECT VALUE c FROM c WHERE c.n = 5",
		"SELECT c._etag, c.n FROM c WHERE c.n = 5", "SELECT c.color FROM c WHERE c.n = 5",
		"SELECT VALUE COUNT(1) FROM c JOIN t IN c.tags WHERE c.n = 5",
		"SELECT VALUE DOCUMENTID(c) FROM c WHERE c.n = 5"} {
		if _, m := pages(t, c, coverEnv, Request{}, text); strings.Contains(m.Explain, "covered") {
			t.Errorf("%s: %s", text, m.Explain)
		}
	}
}

// TestCoveredFetchesWhatEntriesDontTell: one long string and one array cost one item each.
func TestCoveredFetchesWhatEntriesDontTell(t *testing.T) {
	c := memContainer(t, 1, core.ContainerSpec{})
	long := strings.Repeat("y", 300)
	for i, v := range []string{`"a"`, `"b"`, `"` + long + `"`, `[1,2]`, `7`, `-0.0`} {
		insert(t, c, mustJSON(t, fmt.Sprintf(`{"id":"%d","pk":"p","v":%s}`, i, v)))
	}
	for text, items := range map[string]int{
		"SELECT VALUE c.v FROM c":                           3,
		"SELECT VALUE COUNT(1) FROM c WHERE c.v > 'a'":      1,
		"SELECT VALUE COUNT(1) FROM c WHERE c.v <= 'b'":     0,
		"SELECT VALUE MAX(c.v) FROM c WHERE IS_STRING(c.v)": 4, // -0, the array, and the long string from either side
	} {
		want, _ := pages(t, c, itemEnv, Request{}, text)
		got, m := pages(t, c, coverEnv, Request{}, text)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) || m.ItemsRead > items {
			t.Errorf("%s: %v with %d items read, wanted %v with %d at most", text, got, m.ItemsRead, want, items)
		}
	}
}

// TestCoveredNotWithTTL: the entries of an expired item exist until it is reaped.
func TestCoveredNotWithTTL(t *testing.T) {
	ttl := int32(1000)
	c := memContainer(t, 1, core.ContainerSpec{DefaultTTL: &ttl})
	insert(t, c, mustJSON(t, `{"id":"1","pk":"p","v":1}`))
	if rows, m := pages(t, c, coverEnv, Request{}, "SELECT VALUE COUNT(1) FROM c WHERE c.v = 1"); m.ItemsRead != 1 ||
		rows[0] != "1" {
		t.Errorf("%v with %d items read: %s", rows, m.ItemsRead, m.Explain)
	}
}

func mustJSON(t testing.TB, s string) doc.Doc {
	t.Helper()
	d, err := doc.FromJSON(nil, []byte(s), doc.JSONOptions{Names: doc.NoSQL})
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return d
}

// bsonDoc returns a document of names and values; a name may occur twice.
func bsonDoc(fields ...any) []byte {
	b := make([]byte, 4)
	for i := 0; i < len(fields); i += 2 {
		v := fields[i+1].(value.Value)
		b = append(append(append(b, value.BSONType(v)), fields[i].(string)...), 0)
		b = value.AppendBSON(b, v)
	}
	b = append(b, 0)
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	return b
}

// oddValue returns values that entries determine, and values of all kinds that they don't.
func oddValue(r *rand.Rand, foreign bool) value.Value {
	n := 15
	if foreign {
		n = 23
	}
	switch r.IntN(n) {
	case 0:
		return value.NullValue()
	case 1:
		return value.BoolOf(r.IntN(2) == 0)
	case 2, 3:
		return value.Int32Of(int32(r.IntN(7) - 3))
	case 4:
		return value.Int64Of(1<<53 + int64(r.IntN(4)))
	case 5:
		return value.Int64Of(int64(r.IntN(4)))
	case 6:
		return value.DoubleOf(float64(r.IntN(8)) / 2)
	case 7:
		return value.DoubleOf([]float64{math.Copysign(0, -1), 1 << 53, 1e300, -2.5, 1 << 60}[r.IntN(5)])
	case 8, 9:
		return value.StringOf([]string{"", "a", "ab", "b\x00c", "zz", "é"}[r.IntN(6)])
	case 10:
		return value.StringOf(strings.Repeat("k", 254+r.IntN(4)) + []string{"", "x", "y"}[r.IntN(3)])
	case 11:
		return value.ArrayOf(bsonDoc("0", value.Int32Of(int32(r.IntN(5))), "1", value.StringOf("a")))
	case 12:
		return value.ObjectOf(bsonDoc("x", value.Int32Of(int32(r.IntN(3)))))
	case 13:
		return value.ArrayOf(bsonDoc("0", value.ObjectOf(bsonDoc("x", value.Int32Of(int32(r.IntN(3)))))))
	case 14:
		return value.Int32Of(int32(r.IntN(100)))
	case 15:
		return value.DateOf(int64(r.IntN(5))*1000, uint16(r.IntN(2)))
	case 16:
		return value.ObjectIDOf([]byte("abcdefghijk" + string(rune('a'+r.IntN(3)))))
	case 17:
		return value.UUIDOf([]byte("abcdefghijklmno" + string(rune('a'+r.IntN(3)))))
	case 18:
		return value.BinaryOf(0, []byte{byte(r.IntN(3))})
	case 19:
		d := make([]byte, 16) // 1 to 3, or a tenth of it
		d[0], d[14], d[15] = byte(1+r.IntN(3)), 0x40, 0x30
		if r.IntN(2) == 0 {
			d[14] = 0x3E
		}
		return value.DecimalOf(d)
	case 20:
		return value.DoubleOf([]float64{math.NaN(), math.Inf(1), math.Inf(-1)}[r.IntN(3)])
	case 21:
		return value.TimestampOf(uint64(r.IntN(3)))
	}
	return value.RawOf(value.Symbol, []byte("a"))
}

// TestCoveredAgainstItems runs queries over random, changing items, with the index alone and with items.
func TestCoveredAgainstItems(t *testing.T) {
	for n, variant := range []struct {
		slots   int
		foreign bool
		twice   bool
	}{{1, false, false}, {16, false, false}, {2, true, false}, {1, false, true}, {4, true, true}} {
		t.Run(fmt.Sprintf("%d slots, foreign %v, twice %v", variant.slots, variant.foreign, variant.twice),
			func(t *testing.T) {
				r := rand.New(rand.NewPCG(uint64(n), 9))
				c := memContainer(t, variant.slots, core.ContainerSpec{})
				covered := 0
				for round := range 3 {
					for range 120 {
						change(t, c, r, variant.foreign && round > 0, variant.twice && round > 1)
					}
					for range 150 {
						covered += compareCovered(t, c, r)
					}
				}
				if covered < 250 {
					t.Errorf("only %d queries were covered", covered)
				}
			})
	}
}

func change(t *testing.T, c *core.Container, r *rand.Rand, foreign, twice bool) {
	t.Helper()
	id, pk := value.StringOf(fmt.Sprintf("i%d", r.IntN(150))), value.StringOf(fmt.Sprintf("p%d", r.IntN(3)))
	if r.IntN(6) == 0 {
		if _, err := c.Write(context.Background(),
			core.Write{Kind: core.Delete, PK: core.PartitionKey{pk}, ID: id}); err != nil &&
			!status.Is(err, status.NotFound) {
			t.Fatal(err)
		}
		return
	}
	fields := []any{"_id", id, "pk", pk}
	for _, name := range []string{"v", "w"} {
		for range 1 + r.IntN(2)*b2i(twice) {
			if r.IntN(5) > 0 {
				fields = append(fields, name, oddValue(r, foreign))
			}
		}
	}
	if r.IntN(2) == 0 {
		fields = append(fields, "o", value.ObjectOf(bsonDoc("v", oddValue(r, foreign))))
	}
	if _, err := c.Write(context.Background(),
		core.Write{Kind: core.Upsert, PK: core.PartitionKey{pk}, ID: id, Doc: bsonDoc(fields...)}); err != nil {
		t.Fatal(err)
	}
}

var spelling = regexp.MustCompile(`(\d)\.0([^\d]|$)`)

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func compareCovered(t *testing.T, c *core.Container, r *rand.Rand) int {
	t.Helper()
	path := []string{"c.v", "c.w", "c.o.v", "c.v.x", "c.id", "c.pk"}[r.IntN(6)]
	text := strings.NewReplacer("PATH", path, "WHERE", filterOn(r, path)).Replace([]string{
		"SELECT VALUE COUNT(1) FROM c WHERE", "SELECT VALUE COUNT(PATH) FROM c WHERE",
		"SELECT VALUE MIN(PATH) FROM c WHERE", "SELECT VALUE MAX(PATH) FROM c WHERE",
		"SELECT MIN(PATH) AS a, MAX(PATH) AS b FROM c WHERE",
		"SELECT ROUND(SUM(PATH) / 1e10) AS a, ROUND(AVG(PATH) / 1e10) AS b, COUNT(1) AS n FROM c WHERE",
		"SELECT MIN(PATH) AS a, MAX(PATH) AS b, COUNT(1) AS n, COUNT(PATH) AS m FROM c",
		"SELECT c.id, PATH AS x FROM c", "SELECT c._rid, PATH AS x FROM c ORDER BY PATH DESC",
		"SELECT VALUE PATH FROM c WHERE", "SELECT PATH FROM c WHERE", "SELECT c.id, PATH AS x FROM c WHERE",
		"SELECT VALUE [PATH, 1] FROM c WHERE", "SELECT VALUE PATH FROM c WHERE ORDER BY PATH",
		"SELECT PATH AS x, c.id FROM c WHERE ORDER BY PATH DESC", "SELECT DISTINCT VALUE PATH FROM c WHERE",
		"SELECT DISTINCT PATH FROM c WHERE", "SELECT DISTINCT VALUE PATH FROM c WHERE ORDER BY PATH",
		"SELECT PATH AS x, COUNT(1) AS n FROM c WHERE GROUP BY PATH",
		"SELECT PATH AS x, MAX(PATH) AS n FROM c WHERE GROUP BY PATH", "SELECT VALUE {r: c._rid, x: PATH} FROM c WHERE",
		"SELECT VALUE MAX(PATH.x) FROM c WHERE", "SELECT VALUE MIN(PATH[0]) FROM c WHERE",
	}[r.IntN(23)])
	return compareRows(t, c, r, text)
}

// compareRows compares the rows of a query by index with those by items. It returns 1 if the index alone gave them.
func compareRows(t *testing.T, c *core.Container, r *rand.Rand, text string) int {
	t.Helper()
	req := Request{PageSize: []int{0, 1, 3, 50}[r.IntN(4)]}
	switch r.IntN(5) {
	case 0:
		req.PK = core.PartitionKey{value.StringOf("p1")}
	case 1:
		cut := fmt.Sprintf("%02X", r.IntN(0x3F))
		req.Ranges = []Range{{"", cut}}
		if r.IntN(2) == 0 {
			req.Ranges = []Range{{cut, "FF"}}
		}
	}
	want, _ := pages(t, c, itemEnv, req, text)
	got, m := pages(t, c, coverEnv, req, text)
	if !strings.Contains(text, "ORDER BY") {
		slices.Sort(got)
		slices.Sort(want)
	}
	if strings.Contains(text, "DISTINCT") || strings.Contains(text, "GROUP") || strings.Contains(text, "MIN(") ||
		strings.Contains(text, "MAX(") {
		for _, rows := range [][]string{got, want} { // equal numbers may be shown as 1 or 1.0
			for i := range rows {
				rows[i] = spelling.ReplaceAllString(strings.ReplaceAll(rows[i], "-0.0", "0"), "$1$2")
			}
			if !strings.Contains(text, "ORDER BY") {
				slices.Sort(rows)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%s (%+v)\nby %s:\n%s\nfrom the items:\n%s", text, req, m.Explain,
			strings.ReplaceAll(strings.Join(got, "\n"), "kkkkkkkk", ""),
			strings.ReplaceAll(strings.Join(want, "\n"), "kkkkkkkk", ""))
	}
	if strings.HasPrefix(m.Explain, "covered") {
		return 1
	}
	return 0
}

func filterOn(r *rand.Rand, path string) string {
	lit := []string{"0", "1", "-2.5", "9007199254740993", "'a'", "'b'", "''", "null", "true", "'i3'", "'p1'", "1.5",
		"[0,'a']"}[r.IntN(13)]
	return strings.NewReplacer("PATH", path, "LIT", lit).Replace(
		[]string{"", "WHERE PATH = LIT", "WHERE PATH > LIT", "WHERE PATH <= LIT", "WHERE PATH != LIT",
			"WHERE IS_DEFINED(PATH)", "WHERE NOT IS_DEFINED(PATH)",
			"WHERE PATH IN (1, 'a', LIT)", "WHERE PATH >= 0 AND PATH < 3", "WHERE STARTSWITH(PATH, 'k')",
			"WHERE IS_NUMBER(PATH) OR PATH = LIT", "WHERE IS_STRING(PATH)", "WHERE PATH = LIT AND c.pk = 'p1'",
			"WHERE IS_ARRAY(PATH) OR IS_OBJECT(PATH)", "WHERE PATH LIKE '%a%'",
			"WHERE PATH < 0 OR PATH = LIT OR PATH > 5"}[r.IntN(16)])
}
