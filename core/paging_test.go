package core_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

// page reads n rows and returns their ids and the continuation.
func page(t testing.TB, c *core.Container, q exec.Query, n int) (got []string, next string) {
	t.Helper()
	r, err := c.Query(bg, &q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for len(got) < n && r.Next() {
		got = append(got, r.Item().ID().Str())
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	if len(got) == n && r.Exhausted() { // reads ahead before the continuation is taken
		return got, ""
	}
	return got, r.Continuation()
}

// rest reads the remaining rows in pages of n.
func rest(t testing.TB, c *core.Container, q exec.Query, token string, n int) (got []string) {
	t.Helper()
	for token != "" {
		if len(got) > 10000 {
			t.Fatal("the query does not end")
		}
		q.Continuation = token
		var ids []string
		ids, token = page(t, c, q, n)
		got = append(got, ids...)
	}
	return got
}

func orderBy(desc bool, fields ...string) []exec.Order {
	var out []exec.Order
	for _, f := range fields {
		out = append(out, exec.Order{Path: access.NewPath(f), Desc: desc})
	}
	return out
}

func del(t testing.TB, c *core.Container, key, id string) {
	t.Helper()
	if _, err := c.Write(bg, core.Write{Kind: core.Delete, PK: pk(key), ID: value.StringOf(id)}); err != nil {
		t.Fatal(err)
	}
}

func setPolicy(t testing.TB, e *core.Engine, c *core.Container, policy string) {
	t.Helper()
	spec := c.Spec().Clone()
	spec.IndexingPolicy = []byte(policy)
	c, err := e.ReplaceContainer(bg, "db", c.ID(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.WaitIndex(bg); err != nil {
		t.Fatal(err)
	}
}

const noIndex = `{"indexingMode":"none"}`

// few selects the items whose n is 4, 5 or 6, as a range and, with array elements, as MongoDB reads a path. They are
// few enough for the index to be used.
func few(elements bool) *access.Pred {
	p := access.NewPath("n")
	if elements {
		p = p.Element()
	}
	return access.Range(p, &access.Bound{Value: value.Int32Of(4), Inclusive: true},
		&access.Bound{Value: value.Int32Of(7)})
}

// TestPagingOverChanges takes a page, changes the container, and continues: rows that were not changed come exactly
// once and in order, even if the access path has changed.
func TestPagingOverChanges(t *testing.T) {
	race.Alone(t)
	t.Parallel()
	kinds := map[string]access.Kind{"scan": access.Scan, "index": access.Index, "index elements": access.Index,
		"union": access.Index, "partition": access.Scan,
		"points": access.Points, "sort": access.Scan, "sort in windows": access.Scan, "sort down": access.Scan,
		"top": access.Scan, "ordered": access.Ordered, "ordered range": access.Ordered, "by id": access.Scan,
		"covered": access.Index, "covered sort": access.Index}
	needs := []access.Path{access.NewPath("n"), access.ID}
	queries := map[string]exec.Query{
		"scan":           {},
		"index":          {Pred: few(false)},
		"index elements": {Pred: few(true)},
		"union":          {Pred: access.Or(access.Eq(access.NewPath("n"), value.Int32Of(3)), few(false))},
		"partition":      {PK: pk("p1")},
		"points": {
			Pred: access.In(access.NewPath("pk"), value.StringOf("p0"), value.StringOf("p1"), value.StringOf("p2"))},
		"sort":            {OrderBy: orderBy(false, "m", "n"), Compare: value.CompareCosmos},
		"sort in windows": {OrderBy: orderBy(true, "m", "n"), Compare: value.CompareCosmos, Page: 4},
		"sort down":       {OrderBy: orderBy(true, "m", "n"), Compare: value.CompareCosmos},
		"top":             {OrderBy: orderBy(false, "m", "n"), Compare: value.CompareCosmos, Limit: 1000},
		"ordered":         {OrderBy: orderBy(false, "n"), Compare: value.CompareCosmos},
		"ordered range":   {Pred: few(false), OrderBy: orderBy(true, "n"), Compare: value.CompareCosmos},
		"by id":           {PK: pk("p1"), OrderBy: orderBy(false, "_id"), Compare: value.CompareCosmos},
		"covered":         {Needs: needs},
		"covered sort":    {Needs: needs, OrderBy: orderBy(true, "n", "_id"), Compare: value.CompareCosmos},
	}
	changes := map[string]func(t *testing.T, e *core.Engine, c *core.Container, last core.Item, id string){
		"nothing": func(*testing.T, *core.Engine, *core.Container, core.Item, string) {},
		"the last row is deleted": func(t *testing.T, e *core.Engine, c *core.Container, _ core.Item, id string) {
			del(t, c, keyOf(id), id)
		},
		"the last row moves": func(t *testing.T, e *core.Engine, c *core.Container, _ core.Item, id string) {
			put(t, c, core.Replace, fmt.Sprintf(`{"id":%q,"pk":%q,"m":99,"n":6}`, id, keyOf(id)))
		},
		"the index goes": func(t *testing.T, e *core.Engine, c *core.Container, _ core.Item, id string) {
			setPolicy(t, e, c, noIndex)
		},
		"the index changes": func(t *testing.T, e *core.Engine, c *core.Container, _ core.Item, id string) {
			setPolicy(t, e, c, `{"includedPaths":[{"path":"/n/?"}],"excludedPaths":[{"path":"/*"}]}`)
		},
		"arrays come": func(t *testing.T, e *core.Engine, c *core.Container, _ core.Item, id string) {
			for i := range 20 {
				put(t, c, core.Create, fmt.Sprintf(`{"id":"x%d","pk":"p1","m":5,"n":[100,4,5,6]}`, i))
			}
		},
		"an item without the path comes": func(t *testing.T, e *core.Engine, c *core.Container, _ core.Item,
			id string) {
			put(t, c, core.Create, `{"id":"x","pk":"p1"}`)
		},
		"an id of another kind comes": func(t *testing.T, e *core.Engine, c *core.Container, _ core.Item, id string) {
			var b doc.Builder
			b.BeginObject()
			b.Field("_id", value.Int32Of(5))
			b.Field("pk", value.StringOf("p1"))
			b.End()
			if _, err := c.Write(bg, core.Write{Kind: core.Create, Doc: b.Doc()}); err != nil {
				t.Fatal(err)
			}
		},
		"long values come": func(t *testing.T, e *core.Engine, c *core.Container, _ core.Item, id string) {
			put(t, c, core.Create, fmt.Sprintf(`{"id":"x","pk":"p1","m":%q,"n":%[1]q}`, strings.Repeat("z", 2000)))
		},
	}
	all := slices.Sorted(maps.Keys(changes))
	for _, qname := range slices.Sorted(maps.Keys(queries)) {
		q := queries[qname]
		for _, cname := range all {
			change := changes[cname]
			t.Run(qname+"/"+cname, func(t *testing.T) {
				e, _ := hooked(t, core.Options{MinSlots: 4})
				c := newContainer(t, e, core.ContainerSpec{})
				if q.Pred != nil && qname != "points" {
					q.Match = func(it *core.Item) (bool, error) {
						n := doc.Get(it.Doc, "n")
						return n.IsNumber() && (n.Int() >= 4 && n.Int() < 7 || n.Int() == 3 && qname == "union"), nil
					}
				}
				for i := range 160 {
					put(t, c, core.Create, fmt.Sprintf(`{"id":"%03d","pk":"p%d","m":%d,"n":%d}`, i, i%5, i%3, i*7%40))
				}
				waitPlan(t, c, &q, func(p *access.Plan) bool {
					return p.Kind == kinds[qname] && p.Covered == (q.Needs != nil)
				})
				changedBetweenPages(t, c, q, func(last string) { change(t, e, c, core.Item{}, last) })
			})
		}
	}
}

// changedBetweenPages reads a third of the rows of q, calls change with the last id, and reads the rest. Each row comes
// once, except those that change has changed or created, whose ids begin with x.
func changedBetweenPages(t *testing.T, c *core.Container, q exec.Query, change func(last string)) {
	t.Helper()
	want := ids(t, c, &q)
	k := len(want) / 3
	got, token := page(t, c, q, k)
	if k == 0 || !slices.Equal(got, want[:k]) {
		t.Fatalf("the first page is %v, want %v", got, want[:k])
	}
	last := got[k-1]
	change(last)
	for _, n := range []int{1, 7, 1000} {
		var more []string
		for _, id := range rest(t, c, q, token, n) {
			if id != last && id != "" && id[0] != 'x' { // new and changed rows may come or not
				more = append(more, id)
			}
		}
		if len(q.OrderBy) == 0 { // without an order a scan may continue where an index has begun
			slices.Sort(more)
			slices.Sort(want[k:])
		}
		if !slices.Equal(more, want[k:]) {
			t.Fatalf("pages of %d: after %s came\n%v, want\n%v", n, last, more, want[k:])
		}
	}
}

// TestPagingOfEveryEntry reads all items by the entries of a path. A policy that names the path also gives entries to
// items without a value. After the first page the policy changes. Items without a value come once, wherever the page
// ended.
func TestPagingOfEveryEntry(t *testing.T) {
	named := `{"includedPaths":[{"path":"/n/?"}],"excludedPaths":[{"path":"/*"}]}`
	q := exec.Query{Needs: []access.Path{access.ID, access.NewPath("n")}}
	for name, policy := range map[string]string{"stays": named, "goes": noIndex, "is for all": `{"includedPaths":[{"path":"/*"}]}`} {
		for _, k := range []int{3, 17, 60, 95} {
			t.Run(fmt.Sprintf("the index %s after %d", name, k), func(t *testing.T) {
				e, _ := hooked(t, core.Options{MinSlots: 2})
				c := newContainer(t, e, core.ContainerSpec{IndexingPolicy: []byte(named)})
				for i := range 100 {
					n := fmt.Sprintf(`,"n":%d`, i%10)
					if i%3 == 0 {
						n = []string{"", `,"n":null`}[i%2]
					}
					put(t, c, core.Create, fmt.Sprintf(`{"id":"%03d","pk":"p%d"%s}`, i, i%5, n))
				}
				waitPlan(t, c, &q, func(p *access.Plan) bool { return p.Covered && p.Kind == access.Index })
				got, token := page(t, c, q, k)
				setPolicy(t, e, c, policy)
				got = append(got, rest(t, c, q, token, 7)...)
				if slices.Sort(got); len(got) != 100 || len(slices.Compact(got)) != 100 {
					t.Errorf("%d rows, %d of them different", len(got), len(slices.Compact(got)))
				}
			})
		}
	}
}

// keyOf returns the partition key of an item of TestPagingOverChanges.
func keyOf(id string) string {
	n := 0
	fmt.Sscan(strings.TrimLeft(id[:len(id)-1], "0")+id[len(id)-1:], &n)
	return fmt.Sprintf("p%d", n%5)
}

// Ids and sort keys that are too long for a token are cut in it, and the pages are still right.
func TestPagingOverLongKeys(t *testing.T) {
	onEngines(t, core.Options{MinSlots: 2}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		long := strings.Repeat("k", 900)
		var in []value.Value
		for i := range 12 {
			id := fmt.Sprintf("%s%02d", long, i)
			put(t, c, core.Create, fmt.Sprintf(`{"id":%q,"pk":"a","s":"%s%02d","z":"%s%d"}`, id,
				strings.Repeat("s", 1500), 50-i, strings.Repeat(`\u0000`, 800), i))
			in = append(in, value.StringOf(id))
		}
		for name, q := range map[string]exec.Query{
			"scan":   {},
			"points": {PK: pk("a"), Pred: access.In(access.ID, in...)},
			"index":  {Pred: access.Prefix(access.NewPath("s"), "sss")},
			"sort":   {OrderBy: orderBy(false, "s"), Compare: value.CompareCosmos},
			"zeros":  {OrderBy: orderBy(true, "z"), Compare: value.CompareCosmos},
			"by id":  {PK: pk("a"), OrderBy: orderBy(false, "_id"), Compare: value.CompareCosmos},
		} {
			want := ids(t, c, &q)
			for _, n := range []int{1, 5} {
				if got := paged(t, c, q, n); len(want) != 12 || !slices.Equal(got, want) {
					t.Errorf("%s in pages of %d: %d rows, want %d", name, n, len(got), len(want))
				}
			}
		}
	})
}

// A filter that names a partition and an item in it returns the item once.
func TestPointsInsideAPartition(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		for i := range 4 {
			put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"a"}`, i))
		}
		key := access.NewPath("pk")
		q := exec.Query{
			Pred: access.Or(access.And(access.Eq(key, value.StringOf("a")), access.Eq(access.ID, value.StringOf("2"))),
				access.Eq(key, value.StringOf("a")),
				access.And(access.Eq(key, value.StringOf("a")), access.Eq(access.ID, value.StringOf("2"))))}
		for _, n := range []int{1, 2, 100} {
			if got := paged(t, c, q, n); !slices.Equal(got, []string{"0", "1", "2", "3"}) {
				t.Errorf("pages of %d: %v", n, got)
			}
		}
	})
}

// tokenQueries returns a query for each kind of token.
func tokenQueries() []exec.Query {
	return []exec.Query{
		{PlanHash: 1},
		{PlanHash: 1, PK: pk("p1")},
		{PlanHash: 1, Pred: few(false)},
		{PlanHash: 1, Pred: access.Or(access.Eq(access.NewPath("n"), value.Int32Of(3)), few(false))},
		{PlanHash: 1, OrderBy: orderBy(false, "m", "n"), Compare: value.CompareCosmos},
		{PlanHash: 1, Pred: few(false), OrderBy: orderBy(true, "n"), Compare: value.CompareCosmos},
	}
}

func tokenContainer(t testing.TB, e *core.Engine, id string) *core.Container {
	c := newContainer(t, e, core.ContainerSpec{ID: id})
	for i := range 60 {
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%02d","pk":"p%d","m":%d,"n":%d}`, i, i%5, i%3, i%15))
	}
	return c
}

// Tokens of another query, container, partition key or order are refused. So are truncated and changed tokens.
func TestForeignTokens(t *testing.T) {
	e, _ := hooked(t, core.Options{})
	a, b := tokenContainer(t, e, "a"), tokenContainer(t, e, "b")
	refused := func(c *core.Container, q exec.Query, token string) {
		t.Helper()
		q.Continuation = token
		r, err := c.Query(bg, &q)
		if err == nil {
			r.Close()
		}
		wantCode(t, err, status.BadRequest, 0)
	}
	r := rand.New(rand.NewPCG(3, 4))
	for i, q := range tokenQueries() {
		_, token := page(t, a, q, 5)
		if token == "" {
			t.Fatalf("query %d has one page", i)
		}
		refused(b, q, token)
		other := q
		other.PlanHash = 2
		refused(a, other, token)
		other = q
		other.PK = pk("p2")
		refused(a, other, token)
		other = q
		other.OrderBy, other.Compare = orderBy(true, "m"), value.CompareCosmos
		refused(a, other, token)
		raw, _ := base64.RawURLEncoding.DecodeString(token)
		for n := range raw {
			refused(a, q, base64.RawURLEncoding.EncodeToString(raw[:n])+"A")
			flipped := slices.Clone(raw)
			flipped[n] ^= 1 << r.IntN(8)
			refused(a, q, base64.RawURLEncoding.EncodeToString(flipped))
		}
		for _, junk := range []string{"x", "!!!", token + "A", token[1:], strings.Repeat("A", 5000), "\x00"} {
			refused(a, q, junk)
		}
	}
}

// Tokens stay valid in another process.
func TestTokensSurviveReopen(t *testing.T) {
	dir := t.TempDir()
	open := func() *core.Engine {
		kve, err := pebblekv.Open(dir, pebblekv.Options{Relaxed: true})
		if err != nil {
			t.Fatal(err)
		}
		e, err := core.Open(bg, kve, core.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	e := open()
	c := tokenContainer(t, e, "c")
	var tokens []string
	var want [][]string
	for _, q := range tokenQueries() {
		_, token := page(t, c, q, 5)
		tokens, want = append(tokens, token), append(want, rest(t, c, q, token, 100))
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = open()
	defer e.Close()
	c, err := e.Container("db", "c")
	if err != nil {
		t.Fatal(err)
	}
	for i, q := range tokenQueries() {
		if got := rest(t, c, q, tokens[i], 4); !slices.Equal(got, want[i]) {
			t.Errorf("query %d goes on with %v, want %v", i, got, want[i])
		}
	}
}

// FuzzToken: no token makes a query panic, and the result is rows or BadRequest. The checksum is corrected, so that the
// bytes after it are parsed.
func FuzzToken(f *testing.F) {
	e, err := core.Open(bg, ownEngines["mem"](f), core.Options{MinSlots: 4})
	if err != nil {
		f.Fatal(err)
	}
	defer e.Close()
	c := tokenContainer(f, e, "c")
	qs := tokenQueries()
	const former = 0x80 // a token of format 1
	for i, q := range qs {
		_, token := page(f, c, q, 5)
		raw, _ := base64.RawURLEncoding.DecodeString(token)
		f.Add(uint8(i), raw[9:len(raw)-4])
		f.Add(uint8(i)|former, raw[9:len(raw)-4])
	}
	f.Fuzz(func(t *testing.T, n uint8, body []byte) {
		q := qs[int(n&^former)%len(qs)]
		_, token := page(t, c, q, 5)
		raw, _ := base64.RawURLEncoding.DecodeString(token)
		if n&former != 0 {
			raw[0] = 1
		}
		q.Continuation = base64.RawURLEncoding.EncodeToString(sealed(append(slices.Clone(raw[:9]), body...)))
		r, err := c.Query(bg, &q)
		if err == nil {
			for r.Next() {
			}
			err = r.Err()
			r.Close()
		}
		if err != nil && !status.Is(err, status.BadRequest) {
			t.Fatal(err)
		}
	})
}
