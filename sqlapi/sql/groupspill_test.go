package sql

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/spill"
	"github.com/orrerydb/orrery/core/status"
)

// grouped is a container of items on an engine with a budget and a space for files. k has a quarter as many values as
// there are items, of several kinds and sometimes none. n is the number of the item.
func grouped(t *testing.T, items int, b *budget.Budget, o spill.Options) (*core.Engine, *core.Container, *spill.Space) {
	t.Helper()
	files, err := spill.Open(filepath.Join(t.TempDir(), "spill"), o)
	if err != nil {
		t.Fatal(err)
	}
	e, err := core.Open(context.Background(), memkv.New(), core.Options{MinSlots: 1, Budget: b, Spill: files})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = e.Close()
		if files.Files() != 0 || files.Used() != 0 || b.Used() != 0 {
			t.Errorf("left over: %d files, %d bytes of them, %d bytes of memory", files.Files(), files.Used(), b.Used())
		}
	})
	if _, err := e.CreateDatabase(context.Background(), core.DatabaseSpec{ID: "d"}); err != nil {
		t.Fatal(err)
	}
	spec := core.ContainerSpec{ID: "c", PartitionKey: core.PartitionKeyDef{Paths: []string{"/id"}},
		IndexingPolicy: []byte(`{"indexingMode":"none","automatic":false}`)}
	c, err := e.CreateContainer(context.Background(), "d", spec)
	if err != nil {
		t.Fatal(err)
	}
	for i := range items {
		k := ""
		switch g := i * 7919 % (items / 4); g % 5 {
		case 0:
			k = fmt.Sprintf(`"k":%d,`, g)
		case 1:
			k = fmt.Sprintf(`"k":"key %d",`, g)
		case 2:
			k = fmt.Sprintf(`"k":[%d,{"a":%d.0}],`, g, g)
		case 3:
			k = fmt.Sprintf(`"k":{"b":%d},`, g)
		}
		insertJSON(t, c, fmt.Sprintf(`{"id":"%05d",%s"n":%d,"m":%d}`, i, k, i, i%3))
	}
	return e, c, files
}

func insertJSON(t *testing.T, c *core.Container, text string) {
	t.Helper()
	d, err := doc.FromJSON(nil, []byte(text), doc.JSONOptions{Names: doc.NoSQL})
	if err != nil {
		t.Fatal(err)
	}
	insert(t, c, d)
}

// allPages reads a query in pages and calls between after each.
func allPages(t *testing.T, c *core.Container, text string, req Request, between func()) (rows string,
	charges []float64) {
	t.Helper()
	pl, err := Compile(text, nil, testEnv)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for {
		out := &Page{}
		if err := pl.Execute(context.Background(), c, req, out); err != nil {
			t.Fatalf("%s: page %d: %v", text, len(charges), err)
		}
		if charges = append(charges, out.Charge); out.Count > 0 {
			all = append(all, string(out.Body))
		}
		if out.Continuation == "" {
			return strings.Join(all, ","), charges
		}
		if req.Continuation = out.Continuation; between != nil {
			between()
		}
	}
}

// grouping are queries whose groups, or whose distinct rows, are kept between pages. Those with written have more than
// budget.Floor.
var grouping = []struct {
	text    string
	written bool
}{
	{`SELECT c.k, COUNT(1) AS n, SUM(c.n) AS s, AVG(c.n) AS a, MIN(c.n) AS l, MAX(c.n) AS h FROM c GROUP BY c.k`, true},
	{`SELECT c.k, c.m, MAKELIST(c.n) AS l, MAKESET(c.m) AS s, COUNTIF(c.n > 700) AS i FROM c GROUP BY c.k, c.m`, true},
	{`SELECT c.k, MIN(c.k) AS lo, MAX(c.k) AS hi, SUM(c.k) AS s FROM c GROUP BY c.k`, true},
	{`SELECT c.k, COUNT(1) AS n, MAX(c.n) AS hi FROM c GROUP BY c.k ORDER BY MAX(c.n) DESC`, true},
	{`SELECT c.k, SUM(c.n) AS s FROM c GROUP BY c.k OFFSET 30 LIMIT 170`, false},
	{`SELECT TOP 170 c.k, SUM(c.n) AS s FROM c GROUP BY c.k`, false},
	{`SELECT VALUE c.k FROM c GROUP BY c.k`, false},
	{`SELECT DISTINCT c.m, COUNT(1) AS n FROM c GROUP BY c.k, c.m`, true},
	{`SELECT DISTINCT c.k, c.n, COUNT(1) AS rows FROM c GROUP BY c.k, c.n, c.m`, true},
	{`SELECT DISTINCT c.k, MAKELIST(c.n) AS l, MAKELIST(c.m) AS s FROM c GROUP BY c.k`, true},
	{`SELECT x.k, MAKELIST(x.l) AS l FROM (SELECT c.k, MAKELIST(c.n) AS l FROM c GROUP BY c.k) x GROUP BY x.k`, true},
	{`SELECT COUNT(1) AS n FROM c JOIN x IN c.k GROUP BY x`, false},
	{`SELECT DISTINCT c.k, c.m FROM c`, false},
	{`SELECT DISTINCT VALUE c.k FROM c OFFSET 20 LIMIT 400`, false},
	{`SELECT DISTINCT VALUE c.n % 2000 FROM c`, false},
	{`SELECT DISTINCT c.n, c.k, c.id, c.m FROM c`, true},
	{`SELECT DISTINCT c.n, c.k, x FROM c JOIN x IN c.k`, false},
	{`SELECT DISTINCT c.n, c.k, x FROM c JOIN x IN (SELECT VALUE [1, c.m, 2])`, true},
	{`SELECT DISTINCT TOP 1900 c.n, c.k, c.id, c.m FROM c`, true},
	{`SELECT DISTINCT c.n, c.k FROM c OFFSET 1700 LIMIT 200`, true},
	{`SELECT DISTINCT c.n, c.k FROM c ORDER BY c.k`, true},
	{`SELECT DISTINCT c.n % 1900 AS n, c.k FROM c ORDER BY c.m DESC`, true},
	{`SELECT DISTINCT VALUE c.n FROM c ORDER BY c.n DESC`, false},
	{`SELECT DISTINCT VALUE x FROM (SELECT c.k, c.n FROM c GROUP BY c.k, c.n) x`, true},
	{`SELECT VALUE COUNT(1) FROM (SELECT DISTINCT c.n, c.k FROM c)`, true},
	{`SELECT x.k, COUNT(1) AS n FROM (SELECT DISTINCT c.n, c.k FROM c) x GROUP BY x.k`, true},
	{`SELECT x.k, COUNT(1) AS n FROM (SELECT DISTINCT TOP 1800 c.n % 1900 AS n, c.k FROM c) x GROUP BY x.k`, true},
	{`SELECT VALUE x FROM (SELECT c.k, SUM(c.n) AS s, MAKELIST(c.n) AS l FROM c GROUP BY c.k, c.m) x WHERE x.s > 9`,
		true},
	{`SELECT x.n, MAX(x.k) AS k FROM (SELECT c.k, c.n FROM c GROUP BY c.k, c.n ORDER BY c.n) x GROUP BY x.n`, true},
	{`SELECT c.k, SUM(ARRAY_LENGTH(ARRAY(SELECT DISTINCT VALUE x FROM x IN (SELECT VALUE [c.n, c.m, c.k, 1, 2, 3])))) ` +
		`AS s FROM c GROUP BY c.k, c.m`, true},
	{`SELECT x.k, MIN(x.n) FROM (SELECT c.k, c.n FROM c ORDER BY c.m, c.n OFFSET 1 LIMIT 1900) x GROUP BY x.k`, true},
	{`SELECT VALUE x FROM (SELECT c.k, c.n FROM c ORDER BY c.k, c.n DESC) x`, true},
	{`SELECT DISTINCT x.k, x.n FROM (SELECT DISTINCT c.k, c.n, c.m FROM c ORDER BY c.m OFFSET 5 LIMIT 1900) x`, true},
	{`SELECT c.m, COUNT(1) AS n FROM c JOIN (SELECT x, COUNT(1) AS n FROM x IN c.k GROUP BY x) g WHERE g.n = 1 ` +
		`GROUP BY c.m, c.k`, false},
}

// Groups that don't fit into memory, and groups and rows that are kept between pages, are the same in the same order as
// in one page in memory. That holds if the kept state is found and if it is lost after every page.
func TestGroupsSpillAndAreKept(t *testing.T) {
	const items = 2000
	_, plain, _ := grouped(t, items, budget.New(64<<20, 0), spill.Options{})
	e, tight, files := grouped(t, items, budget.New(300<<10, 0), spill.Options{})
	roomy, wide, _ := grouped(t, items, budget.New(64<<20, 0), spill.Options{})
	for _, q := range grouping {
		want, _ := allPages(t, plain, q.text, Request{}, nil)
		for name, tc := range map[string]struct {
			e       *core.Engine
			c       *core.Container
			size    int
			between func()
		}{
			"spilled":               {e, tight, 0, nil},
			"spilled, by pages":     {e, tight, 70, nil},
			"spilled, kept is lost": {e, tight, 400, e.Kept().Drop},
			"by pages":              {roomy, wide, 70, nil},
			"kept is lost":          {roomy, wide, 400, roomy.Kept().Drop},
		} {
			before := files.Written()
			got, _ := allPages(t, tc.c, q.text, Request{PageSize: tc.size}, tc.between)
			if got != want {
				t.Errorf("%s, %s:\n got %.300s\nwant %.300s", q.text, name, got, want)
			}
			if tc.c == tight && files.Written() == before && q.written {
				t.Errorf("%s, %s: nothing was written", q.text, name)
			}
			if n := tc.e.Kept().Len(); n != 0 {
				t.Errorf("%s, %s: %d states are kept behind the last page", q.text, name, n)
			}
		}
		if files.Files() != 0 {
			t.Errorf("%s: %d files are left", q.text, files.Files())
		}
	}
}

// The pages of a query that must see all items first cost about as much as one page with everything, also when what it
// has gathered doesn't fit into memory.
func TestGroupPagesCostOnePass(t *testing.T) {
	const items = 4000
	for _, limit := range []int64{64 << 20, 400 << 10} {
		e, c, _ := grouped(t, items, budget.New(limit, 0), spill.Options{})
		for _, text := range []string{grouping[0].text, grouping[3].text, `SELECT DISTINCT c.k, c.n FROM c`,
			`SELECT DISTINCT c.k, c.n FROM c ORDER BY c.k`,
			`SELECT DISTINCT c.k, COUNT(1) AS n FROM c GROUP BY c.k, c.m`,
			`SELECT DISTINCT x.k, x.n FROM (SELECT c.k, c.n FROM c ORDER BY c.n OFFSET 0 LIMIT 900) x`} {
			_, whole := allPages(t, c, text, Request{}, nil)
			_, charges := allPages(t, c, text, Request{PageSize: 100}, nil)
			all := 0.0
			for _, n := range charges {
				all += n
			}
			if len(charges) < 9 || all > whole[0]+float64(len(charges))*2.5 {
				t.Errorf("%s: %d pages cost %.1f, one page %.1f", text, len(charges), all, whole[0])
			}
			if strings.Contains(text, "ORDER BY") {
				continue // lost rows of a sort go on by position
			}
			_, lost := allPages(t, c, text, Request{PageSize: 100}, e.Kept().Drop)
			if len(lost) != len(charges) || lost[len(lost)-1] < whole[0] {
				t.Errorf("%s: %d pages, the last one costs %.1f without what was kept", text, len(lost),
					lost[len(lost)-1])
			}
		}
	}
}

// Only the owner finds the state that was kept for the next page: another caller with the same query doesn't, and
// another query doesn't.
func TestKeptGroupsAreTheirOwners(t *testing.T) {
	e, c, _ := grouped(t, 400, budget.New(64<<20, 0), spill.Options{})
	text := grouping[0].text
	pl, err := Compile(text, nil, testEnv)
	if err != nil {
		t.Fatal(err)
	}
	first, second := &Page{}, &Page{}
	if err := pl.Execute(context.Background(), c, Request{PageSize: 10, Owner: 1}, first); err != nil {
		t.Fatal(err)
	}
	req := Request{PageSize: 10, Owner: 2, Continuation: first.Continuation}
	if err := pl.Execute(context.Background(), c, req, second); err != nil || second.Charge < first.Charge {
		t.Errorf("another caller's page costs %.1f of %.1f: %v", second.Charge, first.Charge, err)
	}
	other, err := Compile(`SELECT c.k FROM c GROUP BY c.k`, nil, testEnv)
	if err != nil {
		t.Fatal(err)
	}
	req.Owner = 1
	if err := other.Execute(context.Background(), c, req, &Page{}); !status.Is(err, status.BadRequest) {
		t.Errorf("another query takes the continuation: %v", err)
	}
	again := &Page{}
	if err := pl.Execute(context.Background(), c, req, again); err != nil || again.Charge > 3 {
		t.Errorf("the caller's own page costs %.1f: %v", again.Charge, err)
	}
	if string(again.Body) != string(second.Body) {
		t.Error("the pages differ")
	}
	e.Kept().Drop()
}

// What is kept is charged with what it holds, and not with what sub-queries have gathered.
func TestKeptRowsAreCharged(t *testing.T) {
	b := budget.New(64<<20, 0)
	e, c, _ := grouped(t, 4000, b, spill.Options{})
	for _, tc := range []struct {
		most int64
		text string
	}{
		{4 << 10, `SELECT DISTINCT VALUE x.m FROM (SELECT DISTINCT TOP 3900 c.n, c.k, c.m FROM c) x`},
		{4 << 10, `SELECT x.m, COUNT(1) FROM (SELECT c.n, c.m FROM c GROUP BY c.n, c.m ORDER BY c.m) x GROUP BY x.m`},
		{400 << 10, `SELECT VALUE c.k FROM c GROUP BY c.k`},
	} {
		pl, err := Compile(tc.text, nil, testEnv)
		if err != nil {
			t.Fatal(err)
		}
		if err := pl.Execute(context.Background(), c, Request{PageSize: 1}, &Page{}); err != nil {
			t.Fatal(err)
		}
		// an account takes steps of 64 KiB
		if most := tc.most + 2*64<<10; e.Kept().Len() != 1 || b.Used() > most {
			t.Errorf("%s: %d states hold %d bytes", tc.text, e.Kept().Len(), b.Used())
		}
		if e.Kept().Drop(); b.Used() != 0 {
			t.Errorf("%s: %d bytes are left", tc.text, b.Used())
		}
	}
}

// If the state is lost, pages continue after the last group, with new groups before it, or fewer.
func TestGroupPagesGoOnBehindTheLastGroup(t *testing.T) {
	e, c, _ := grouped(t, 400, budget.New(64<<20, 0), spill.Options{})
	pl, err := Compile(`SELECT VALUE c.k FROM c GROUP BY c.k ORDER BY c.k`, nil, testEnv)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	req := Request{PageSize: 15}
	for n := 0; ; n++ {
		out := &Page{}
		if err := pl.Execute(context.Background(), c, req, out); err != nil {
			t.Fatal(err)
		}
		for _, row := range strings.Split(strings.ReplaceAll(string(out.Body), `,{"a"`, `;{"a"`), ",") {
			seen[row]++
		}
		if req.Continuation = out.Continuation; out.Continuation == "" {
			break
		}
		e.Kept().Drop()
		insertJSON(t, c, fmt.Sprintf(`{"id":"new %d","k":%d}`, n, -1-n))
	}
	for row, n := range seen {
		if n != 1 {
			t.Errorf("%s was given %d times", row, n)
		}
	}
	if len(seen) < 75 {
		t.Errorf("%d groups", len(seen))
	}
}

// A full disk and a damaged file are the query's errors, and what ends a query that has files removes them, also when
// it ends between pages.
func TestSpilledGroupsLeaveNothing(t *testing.T) {
	texts := []string{grouping[0].text, `SELECT DISTINCT c.n, c.k, c.id, c.m FROM c`,
		`SELECT VALUE COUNT(1) FROM (SELECT DISTINCT c.n, c.k, c.id, c.m FROM c)`}
	for name, tc := range map[string]struct {
		o    spill.Options
		want status.Code
	}{
		"full":    {spill.Options{Limit: 40 << 10}, status.StoreFull},
		"damaged": {spill.Options{Wrap: func(f spill.File) spill.File { return damagedFile{f} }}, status.Corruption},
	} {
		_, c, files := grouped(t, 2000, budget.New(300<<10, 0), tc.o)
		for _, text := range texts {
			before := files.Written()
			pl, err := Compile(text, nil, testEnv)
			if err != nil {
				t.Fatal(err)
			}
			if err := pl.Execute(context.Background(), c, Request{}, &Page{}); !status.Is(err, tc.want) {
				t.Errorf("%s, %s: the error is %v", text, name, err)
			}
			if files.Files() != 0 || files.Written() == before {
				t.Errorf("%s, %s: %d files are left", text, name, files.Files())
			}
		}
	}
	e, c, files := grouped(t, 2000, budget.New(300<<10, 0), spill.Options{})
	for _, text := range texts {
		pl, err := Compile(text, nil, testEnv)
		if err != nil {
			t.Fatal(err)
		}
		for _, end := range []int{0, 1, 10, 1000, 1900, 2010, 2100} {
			n := 0
			ctx, cancel := context.WithCancel(context.Background())
			watched := &watchedContext{Context: ctx, see: func() {
				if n++; n >= end {
					cancel()
				}
			}}
			err := pl.Execute(watched, c, Request{PageSize: 1500}, &Page{})
			cancel()
			e.Kept().Drop()
			if err == nil && n >= end || files.Files() != 0 {
				t.Errorf("%s, ended after %d of %d looks: %v, %d files are left", text, end, n, err, files.Files())
			}
		}
	}
}

// damagedFile is a file whose bytes were changed.
type damagedFile struct{ spill.File }

func (f damagedFile) ReadAt(b []byte, at int64) (int, error) {
	n, err := f.File.ReadAt(b, at)
	if n > 0 {
		b[n-1] ^= 1
	}
	return n, err
}

// With little memory each query with a sub-query gives the right answer, or is refused when the rows of one item need
// more memory than the query may have; nothing is left charged. Sub-queries over all items need no more memory than
// that.
func TestSubqueriesWithLittleMemory(t *testing.T) {
	const each = 5000
	tight := budget.New(600<<10, 300<<10)
	fill := func(b *budget.Budget) *core.Container {
		_, c, _ := grouped(t, 40, b, spill.Options{})
		for i := range 3 {
			var s strings.Builder
			for k := range each {
				fmt.Fprintf(&s, ",%d", i*each+k)
			}
			insertJSON(t, c, fmt.Sprintf(`{"id":"long %d","a":[%s]}`, i, s.String()[1:]))
		}
		return c
	}
	plain, c := fill(budget.New(64<<20, 0)), fill(tight)
	long := strings.Repeat("long", 60_000)
	for _, tc := range []struct {
		text    string
		refused bool
	}{
		{`SELECT x % 500 AS x FROM c JOIN x IN c.a GROUP BY x % 500 ORDER BY ARRAY_LENGTH(ARRAY(SELECT DISTINCT VALUE y ` +
			`FROM y IN (SELECT VALUE [x % 500, "` + long + `"])))`, true},
		{`SELECT x FROM c JOIN x IN c.a GROUP BY x ORDER BY ARRAY_LENGTH(ARRAY(SELECT DISTINCT VALUE y FROM y IN ` +
			`(SELECT VALUE [x, "` + long[:1000] + `"])))`, false},
		{`SELECT VALUE ARRAY_LENGTH(ARRAY(SELECT DISTINCT VALUE x FROM x IN c.a)) FROM c`, true},
		{`SELECT VALUE ARRAY_LENGTH(ARRAY(SELECT DISTINCT VALUE x % 100 FROM x IN c.a)) FROM c`, false},
		{`SELECT VALUE ARRAY_LENGTH(ARRAY(SELECT x, COUNT(1) AS n FROM x IN c.a GROUP BY x)) FROM c`, true},
		{`SELECT VALUE ARRAY(SELECT VALUE x FROM x IN c.a ORDER BY x) FROM c`, true},
		{`SELECT VALUE ARRAY(SELECT TOP 3 VALUE x FROM x IN c.a ORDER BY x DESC) FROM c`, false},
		{`SELECT VALUE c.id FROM c WHERE EXISTS (SELECT DISTINCT VALUE x FROM x IN c.a)`, false},
		{`SELECT VALUE c.id FROM c WHERE EXISTS (SELECT x FROM x IN c.a GROUP BY x)`, true},
		{`SELECT VALUE COUNT(1) FROM c JOIN (SELECT x, COUNT(1) AS n FROM x IN c.a GROUP BY x) g`, true},
		{`SELECT g.k, COUNT(1) AS n FROM c JOIN (SELECT DISTINCT x % 7 AS k FROM x IN c.a) g GROUP BY g.k`, false},
		{`SELECT VALUE (SELECT VALUE SUM(x) FROM x IN c.a) FROM c`, false},
		{`SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE x FROM c JOIN x IN c.a)`, false},
		{`SELECT VALUE SUM(g.n) FROM (SELECT x, COUNT(1) AS n FROM c JOIN x IN c.a GROUP BY x) g`, false},
		{`SELECT TOP 9 VALUE y FROM (SELECT VALUE x FROM c JOIN x IN c.a ORDER BY x % 1000, x DESC) y`, false},
		{`SELECT VALUE COUNT(1) FROM (SELECT VALUE y FROM (SELECT DISTINCT VALUE x FROM c JOIN x IN c.a) y ORDER BY y)`,
			false},
		{`SELECT DISTINCT VALUE x FROM c JOIN x IN c.a OFFSET 14990 LIMIT 7`, false},
		{`SELECT VALUE ARRAY_LENGTH(MAKESET(x)) FROM c JOIN x IN c.a`, false},
	} {
		pl, err := Compile(tc.text, nil, testEnv)
		if err != nil {
			t.Errorf("%.300s: %v", tc.text, err)
			continue
		}
		want, out := &Page{}, &Page{}
		if err := pl.Execute(context.Background(), plain, Request{}, want); err != nil {
			t.Errorf("%.300s: %v", tc.text, err)
		}
		switch err := pl.Execute(context.Background(), c, Request{}, out); {
		case tc.refused != status.Is(err, status.MemoryLimit) || !tc.refused && err != nil:
			t.Errorf("%.300s: %v", tc.text, err)
		case !tc.refused && string(out.Body) != string(want.Body):
			t.Errorf("%s:\n got %.200s\nwant %.200s", tc.text, out.Body, want.Body)
		}
		if tight.Used() != 0 || c.Spill().Files() != 0 {
			t.Errorf("%s: %d bytes and %d files are left", tc.text, tight.Used(), c.Spill().Files())
		}
	}
}
