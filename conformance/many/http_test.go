package many

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/orrerydb/orrery/conformance/harness"
)

// container creates a container with 60 items {id, pk, n, g, text} in 6 logical partitions.
func (cl *cluster) container(ru int32) *azcosmos.ContainerClient {
	t, c := cl.t, cl.cosmos()
	_, err := c.CreateDatabase(bg, azcosmos.DatabaseProperties{ID: "db"}, nil)
	ok(t, err)
	db, err := c.NewDatabase("db")
	ok(t, err)
	ct := harness.Container(t, db, "c", ru, "/pk")
	for i := range 60 {
		pk := fmt.Sprintf("p%d", i%6)
		_, err := ct.CreateItem(bg, azcosmos.NewPartitionKeyString(pk), fmt.Appendf(nil,
			`{"id":"%02d","pk":%q,"n":%d,"g":%d,"text":"t%d"}`, i, pk, i, i%7, i%9), nil)
		ok(t, err)
	}
	return ct
}

// Each page of a query is read at another server, and all pages together have the rows of the query in one page: pages
// that a server computes from a position, and those for which it keeps a state that the other server doesn't have.
func TestPagesOfAQuery(t *testing.T) {
	for _, servers := range []int{2, 3} {
		cl := start(t, servers)
		ct := cl.container(400)
		for _, text := range []string{
			"SELECT c.id FROM c",
			"SELECT c.id FROM c WHERE c.n >= 20",
			"SELECT c.id FROM c ORDER BY c.n DESC",
			"SELECT c.id FROM c ORDER BY c.g, c.n",
			"SELECT c.g, COUNT(1) AS n, SUM(c.n) AS s FROM c GROUP BY c.g",
			"SELECT DISTINCT c.text FROM c",
			"SELECT DISTINCT VALUE c.g FROM c ORDER BY c.g",
			"SELECT TOP 25 c.id FROM c ORDER BY c.n",
			"SELECT c.id FROM c ORDER BY c.n OFFSET 7 LIMIT 31",
			"SELECT VALUE COUNT(1) FROM c",
		} {
			for name, pk := range map[string]azcosmos.PartitionKey{
				"all": azcosmos.NewPartitionKey(), "one key": azcosmos.NewPartitionKeyString("p1")} {
				want := queryPages(t, ct, pk, text, 1000)
				got := queryPages(t, ct, pk, text, 4)
				if len(want) == 0 || !sameRows(text, got, want) {
					t.Errorf("%s, %s, %d servers: in pages of 4\n%s\nin one\n%s", text, name, servers, got, want)
				}
			}
		}
	}
}

// sameRows compares rows. Without an order they are compared as sets: a page is in the order of its own plan.
func sameRows(text string, a, b []string) bool {
	if !strings.Contains(text, "ORDER BY") {
		a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	}
	return slices.Equal(a, b)
}

func queryPages(t *testing.T, ct *azcosmos.ContainerClient, pk azcosmos.PartitionKey, text string,
	size int32) (rows []string) {
	t.Helper()
	pages := ct.NewQueryItemsPager(text, pk, &azcosmos.QueryOptions{PageSizeHint: size})
	for pages.More() {
		p, err := pages.NextPage(bg)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for _, r := range p.Items {
			rows = append(rows, string(r))
		}
	}
	return rows
}

// A write is read at the other servers with the session token that it has returned, and a token is never ahead.
func TestSessionTokens(t *testing.T) {
	cl := start(t, 3)
	ct := cl.container(400)
	for i := range 30 {
		pk := azcosmos.NewPartitionKeyString(fmt.Sprintf("p%d", i%6))
		w, err := ct.UpsertItem(bg, pk, fmt.Appendf(nil, `{"id":"s","pk":"p%d","n":%d}`, i%6, i), nil)
		ok(t, err)
		for range cl.all {
			r, err := ct.ReadItem(bg, pk, "s", &azcosmos.ItemOptions{SessionToken: w.SessionToken})
			ok(t, err)
			if !strings.Contains(string(r.Value), fmt.Sprintf(`"n":%d,`, i)) {
				t.Fatalf("write %d: %s", i, r.Value)
			}
		}
	}
}

// Change feeds are read on from another server's position. They give each change once, from the beginning and from now.
func TestFeeds(t *testing.T) {
	cl := start(t, 2)
	ct := cl.container(400)
	ranges, err := ct.ReadFeedRanges(bg, nil)
	ok(t, err)
	var at *string
	read := func() (ids []string) {
		for {
			r, err := ct.ReadChangeFeed(bg, &azcosmos.ChangeFeedOptions{
				FeedRange: &ranges[0], MaxItemCount: 7, Continuation: at})
			ok(t, err)
			token := r.ContinuationToken
			at = &token
			for _, d := range r.Items {
				var it struct{ ID string }
				ok(t, json.Unmarshal(d, &it))
				ids = append(ids, it.ID)
			}
			if len(r.Items) == 0 {
				return ids
			}
		}
	}
	if got := read(); len(got) != 60 || len(slices.Compact(slices.Sorted(slices.Values(got)))) != 60 {
		t.Fatalf("from the beginning: %q", got)
	}
	for i := range 20 {
		id := fmt.Sprintf("new%d", i)
		_, err := ct.CreateItem(bg, azcosmos.NewPartitionKeyString("p1"),
			fmt.Appendf(nil, `{"id":%q,"pk":"p1"}`, id), nil)
		ok(t, err)
		if got := read(); !slices.Equal(got, []string{id}) {
			t.Fatalf("after %s: %q", id, got)
		}
	}
}

// A container that is dropped and created again is the new one at every server, and so are its definition and offer.
func TestDefinitions(t *testing.T) {
	cl := start(t, 2)
	ct := cl.container(400)
	db, err := cl.cosmos().NewDatabase("db")
	ok(t, err)
	for round := range 4 {
		_, err := ct.Delete(bg, nil)
		ok(t, err)
		_, err = ct.ReadItem(bg, azcosmos.NewPartitionKeyString("p1"), "01", nil)
		if statusOf(err) != http.StatusNotFound {
			t.Fatalf("after the drop: %v", err)
		}
		ct = harness.Container(t, db, "c", 400, "/other")
		for i := range 4 {
			if n := queryPages(t, ct, azcosmos.NewPartitionKey(), "SELECT VALUE c.id FROM c", 10); len(n) != i {
				t.Fatalf("round %d: %q", round, n)
			}
			_, err = ct.CreateItem(bg, azcosmos.NewPartitionKeyString("k"),
				fmt.Appendf(nil, `{"id":"%d","other":"k"}`, i), nil)
			ok(t, err)
			ru := int32(400 + 100*i)
			_, err = ct.ReplaceThroughput(bg, azcosmos.NewManualThroughputProperties(ru), nil)
			ok(t, err)
			r, err := ct.ReadThroughput(bg, nil)
			ok(t, err)
			if got, _ := r.ThroughputProperties.ManualThroughput(); got != ru {
				t.Fatalf("throughput %d, not %d", got, ru)
			}
		}
	}
}

// The pages of a table's entities come from different servers, and so do the pages of the list of tables.
func TestPagesOfTables(t *testing.T) {
	cl := start(t, 2)
	s := cl.tables()
	for i := range 9 {
		_, err := s.CreateTable(bg, fmt.Sprintf("table%d", i), nil)
		ok(t, err)
	}
	tb := s.NewClient("table3")
	var want []string
	for i := range 40 {
		_, err := tb.AddEntity(bg, fmt.Appendf(nil, `{"PartitionKey":"p%d","RowKey":"%02d","n":%d}`, i/10, i, i%4), nil)
		ok(t, err)
		want = append(want, fmt.Sprintf("p%d/%02d", i/10, i))
	}
	for filter, keeps := range map[string]func(i int) bool{
		"":                     func(int) bool { return true },
		"PartitionKey eq 'p2'": func(i int) bool { return i/10 == 2 },
		"n eq 1":               func(i int) bool { return i%4 == 1 },
		"PartitionKey ge 'p1' and RowKey lt '25'": func(i int) bool { return i >= 10 && i < 25 },
	} {
		o, size := &aztables.ListEntitiesOptions{}, int32(3)
		if o.Top = &size; filter != "" {
			o.Filter = &filter
		}
		var got, expected []string
		for p := tb.NewListEntitiesPager(o); p.More(); {
			page, err := p.NextPage(bg)
			ok(t, err)
			for _, e := range page.Entities {
				var k struct{ PartitionKey, RowKey string }
				ok(t, json.Unmarshal(e, &k))
				got = append(got, k.PartitionKey+"/"+k.RowKey)
			}
		}
		for i, k := range want {
			if keeps(i) {
				expected = append(expected, k)
			}
		}
		if !slices.Equal(got, expected) {
			t.Errorf("%q: %q\nnot %q", filter, got, expected)
		}
	}
	n, size := 0, int32(2)
	for p := s.NewListTablesPager(&aztables.ListTablesOptions{Top: &size}); p.More(); {
		page, err := p.NextPage(bg)
		ok(t, err)
		n += len(page.Tables)
	}
	if n != 9 {
		t.Errorf("%d tables in pages", n)
	}
}

func statusOf(err error) int {
	var re *azcore.ResponseError
	if errors.As(err, &re) {
		return re.StatusCode
	}
	return 0
}
