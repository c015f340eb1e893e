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

// grouped is a container of items on an engine with a budget and a space for files: k has a quarter as many values, of
// several kinds and sometimes none, n is the number of the item.
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

// allPages reads a query by pages, with between in between.
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

// grouping are queries whose groups, or whose distinct rows, are kept between pages. The first four have more than
// budget.Floor.
var grouping = []string{
	`SELECT c.k, COUNT(1) AS n, SUM(c.n) AS s, AVG(c.n) AS a, MIN(c.n) AS lo, MAX(c.n) AS hi FROM c GROUP BY c.k`,
	`SELECT c.k, c.m, MAKELIST(c.n) AS l, MAKESET(c.m) AS s, COUNTIF(c.n > 700) AS i FROM c GROUP BY c.k, c.m`,
	`SELECT c.k, MIN(c.k) AS lo, MAX(c.k) AS hi, SUM(c.k) AS s FROM c GROUP BY c.k`,
	`SELECT c.k, COUNT(1) AS n, MAX(c.n) AS hi FROM c GROUP BY c.k ORDER BY MAX(c.n) DESC`,
	`SELECT c.k, SUM(c.n) AS s FROM c GROUP BY c.k OFFSET 30 LIMIT 170`,
	`SELECT TOP 170 c.k, SUM(c.n) AS s FROM c GROUP BY c.k`,
	`SELECT VALUE c.k FROM c GROUP BY c.k`,
	`SELECT DISTINCT c.m, COUNT(1) AS n FROM c GROUP BY c.k, c.m`,
	`SELECT COUNT(1) AS n FROM c JOIN x IN c.k GROUP BY x`,
	`SELECT DISTINCT c.k, c.m FROM c`,
	`SELECT DISTINCT VALUE c.k FROM c OFFSET 20 LIMIT 400`,
	`SELECT DISTINCT VALUE c.n % 2000 FROM c`,
}

// Groups that don't fit into memory, and groups and rows that are kept between pages, are the same in the same order as
// those of one page in memory: whether they are found again, or lost after every page.
func TestGroupsSpillAndAreKept(t *testing.T) {
	const items = 2000
	_, plain, _ := grouped(t, items, budget.New(64<<20, 0), spill.Options{})
	e, tight, files := grouped(t, items, budget.New(300<<10, 0), spill.Options{})
	roomy, wide, _ := grouped(t, items, budget.New(64<<20, 0), spill.Options{})
	for i, text := range grouping {
		want, _ := allPages(t, plain, text, Request{}, nil)
		distinct := strings.HasPrefix(text, "SELECT DISTINCT") && !strings.Contains(text, "GROUP")
		for name, tc := range map[string]struct {
			e       *core.Engine
			c       *core.Container
			size    int
			between func()
		}{
			"spilled":               {e, tight, 0, nil},
			"spilled, by pages":     {e, tight, 70, nil},
			"spilled, kept is lost": {e, tight, 150, e.Kept().Drop},
			"by pages":              {roomy, wide, 70, nil},
			"kept is lost":          {roomy, wide, 70, roomy.Kept().Drop},
		} {
			if tc.c == tight && distinct {
				continue // what a DISTINCT has given stays in memory
			}
			before := files.Written()
			got, _ := allPages(t, tc.c, text, Request{PageSize: tc.size}, tc.between)
			if got != want {
				t.Errorf("%s, %s:\n got %.300s\nwant %.300s", text, name, got, want)
			}
			if tc.c == tight && files.Written() == before && i < 4 {
				t.Errorf("%s, %s: nothing was written", text, name)
			}
			if n := tc.e.Kept().Len(); n != 0 {
				t.Errorf("%s, %s: %d states are kept behind the last page", text, name, n)
			}
		}
	}
}

// The pages of a query that must see all items first cost about as much as one page with everything.
func TestGroupPagesCostOnePass(t *testing.T) {
	const items = 4000
	e, c, _ := grouped(t, items, budget.New(64<<20, 0), spill.Options{})
	for _, text := range []string{grouping[0], grouping[3], `SELECT DISTINCT c.k, c.n FROM c`} {
		_, whole := allPages(t, c, text, Request{}, nil)
		_, charges := allPages(t, c, text, Request{PageSize: 100}, nil)
		all := 0.0
		for _, n := range charges {
			all += n
		}
		if len(charges) < 9 || all > whole[0]+float64(len(charges))*2.5 {
			t.Errorf("%s: %d pages cost %.1f, one page %.1f", text, len(charges), all, whole[0])
		}
		_, lost := allPages(t, c, text, Request{PageSize: 100}, e.Kept().Drop)
		if len(lost) != len(charges) || lost[len(lost)-1] < whole[0] {
			t.Errorf("%s: %d pages, the last one costs %.1f without what was kept", text, len(lost), lost[len(lost)-1])
		}
	}
}

// What one has computed for the next page nobody else finds: not by the same query of another caller, and not with
// another query.
func TestKeptGroupsAreTheirOwners(t *testing.T) {
	e, c, _ := grouped(t, 400, budget.New(64<<20, 0), spill.Options{})
	text := grouping[0]
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

// Pages go on behind the last group when the state is lost and there are new groups before it, or fewer.
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

// A full disk is the query's error, and what ends a query that has files removes them.
func TestSpilledGroupsLeaveNothing(t *testing.T) {
	_, c, files := grouped(t, 2000, budget.New(300<<10, 0), spill.Options{Limit: 40 << 10})
	if _, err := firstPage(context.Background(), c, grouping[0]); !status.Is(err, status.StoreFull) {
		t.Errorf("the error is %v", err)
	}
	if files.Files() != 0 || files.Written() == 0 {
		t.Errorf("%d files are left", files.Files())
	}
	_, c, files = grouped(t, 2000, budget.New(300<<10, 0), spill.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := firstPage(ctx, c, grouping[0]); err == nil || files.Files() != 0 {
		t.Errorf("%v, %d files are left", err, files.Files())
	}
}
