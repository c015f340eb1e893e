package sql

import (
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// numbered creates a container of two physical partitions with n items over six keys.
func numbered(t *testing.T, n int) *azcosmos.ContainerClient {
	t.Helper()
	c := container(t, database(t), byKey("c", "/pk"), 20000)
	for i := range n {
		pk := fmt.Sprintf("p%d", i%6)
		body := item{"id": fmt.Sprint("i", i), "pk": pk, "n": i, "tags": []string{fmt.Sprint("t", i%3), "all"},
			"deep": item{"x": item{"y": i % 4}}}
		if i%2 == 1 {
			body["opt"] = nil
		}
		_, err := c.CreateItem(ctx, str(pk), text(t, body), nil)
		check(t, err)
	}
	return c
}

func ints(t *testing.T, rows []string) []int {
	t.Helper()
	out := []int{}
	for _, r := range rows {
		n, err := strconv.Atoi(r)
		check(t, err)
		out = append(out, n)
	}
	return out
}

func TestQueries(t *testing.T) {
	c := numbered(t, 60)
	for q, want := range map[string]int{
		"SELECT * FROM c":                                           60,
		"SELECT * FROM c WHERE c.n = 7":                             1,
		"SELECT * FROM c WHERE c.n = '7'":                           0,
		"SELECT * FROM c WHERE c.n != 7":                            59,
		"SELECT * FROM c WHERE c.n > 57":                            2,
		"SELECT * FROM c WHERE c.n >= 57 AND NOT (c.n = 58)":        2,
		"SELECT * FROM c WHERE c.n < 2 OR c.n > 57":                 4,
		"SELECT * FROM c WHERE c.n IN (1, 2, 3, 'x')":               3,
		"SELECT * FROM c WHERE c.n BETWEEN 10 AND 19":               10,
		"SELECT * FROM c WHERE IS_DEFINED(c.opt)":                   30,
		"SELECT * FROM c WHERE c.opt = null":                        30,
		"SELECT * FROM c WHERE STARTSWITH(c.id, 'i5')":              11,
		"SELECT * FROM c WHERE CONTAINS(c.id, '9')":                 6,
		"SELECT * FROM c WHERE ARRAY_CONTAINS(c.tags, 't1')":        20,
		"SELECT * FROM c WHERE c.deep.x.y = 3":                      15,
		"SELECT * FROM c WHERE c['deep']['x'].y = 3 AND c.n > 30":   8,
		"SELECT * FROM root WHERE root.pk = 'p1'":                   10,
		"SELECT TOP 5 * FROM c":                                     5,
		"SELECT * FROM c OFFSET 50 LIMIT 20":                        10,
		"SELECT c.id, c.n AS number FROM c WHERE c.pk = 'p2'":       10,
		"SELECT VALUE {id: c.id, double: c.n} FROM c WHERE c.n < 3": 3,
	} {
		if rows, _ := query(t, c, q, all, nil); len(rows) != want {
			t.Errorf("%s: %d rows, want %d", q, len(rows), want)
		}
	}
	if rows, _ := query(t, c, "SELECT * FROM c", str("p3"), nil); len(rows) != 10 {
		t.Errorf("one logical partition: %d rows", len(rows))
	}
	if rows, _ := query(t, c, "SELECT c.id, c.n AS number FROM c WHERE c.n = 4", all, nil); !reflect.DeepEqual(
		object(t, []byte(rows[0])), item{"id": "i4", "number": 4.0}) {
		t.Errorf("%s", rows[0])
	}
}

func TestQueryParameters(t *testing.T) {
	c := numbered(t, 12)
	for _, x := range []struct {
		q    string
		v    any
		want int
	}{
		{"SELECT * FROM c WHERE c.n = @p", 3, 1},
		{"SELECT * FROM c WHERE c.pk = @p", "p1", 2},
		{"SELECT * FROM c WHERE c.opt = @p", nil, 6},
		{"SELECT * FROM c WHERE ARRAY_CONTAINS(@p, c.n)", []int{1, 2, 99}, 2},
		{"SELECT * FROM c WHERE c.deep.x = @p", item{"y": 1}, 3},
		{"SELECT TOP @p * FROM c", 4, 4},
	} {
		rows, _ := query(t, c, x.q, all,
			&azcosmos.QueryOptions{QueryParameters: []azcosmos.QueryParameter{{Name: "@p", Value: x.v}}})
		if len(rows) != x.want {
			t.Errorf("%s with %v: %d rows, want %d", x.q, x.v, len(rows), x.want)
		}
	}
}

// azcosmos can't plan queries, so the server computes order, limits and counts over all partitions.
func TestOrderOverPartitions(t *testing.T) {
	c := numbered(t, 60)
	rows, pages := query(t, c, "SELECT VALUE c.n FROM c ORDER BY c.n DESC", all,
		&azcosmos.QueryOptions{PageSizeHint: 7})
	want := []int{}
	for i := 59; i >= 0; i-- {
		want = append(want, i)
	}
	if got := ints(t, rows); !slices.Equal(got, want) || pages < 9 {
		t.Errorf("%v in %d pages", got, pages)
	}
	for q, want := range map[string][]int{
		"SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n":            {0, 1, 2},
		"SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 5 LIMIT 3": {5, 6, 7},
		"SELECT VALUE c.n FROM c WHERE c.n >= 50 ORDER BY c.n": {
			50, 51, 52, 53, 54, 55, 56, 57, 58, 59},
		"SELECT VALUE COUNT(1) FROM c":                                                 {60},
		"SELECT VALUE COUNT(1) FROM c WHERE c.pk = 'p1' AND c.n > 10":                  {8},
		"SELECT VALUE c.n FROM c WHERE c.pk = 'p0' ORDER BY c.n DESC OFFSET 8 LIMIT 5": {6, 0},
	} {
		rows, _ := query(t, c, q, all, nil)
		if got := ints(t, rows); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", q, got, want)
		}
	}
}

// Paging returns every item once, and another pager can continue with a continuation.
func TestPaging(t *testing.T) {
	c := numbered(t, 50)
	for _, q := range []string{"SELECT * FROM c", "SELECT * FROM c WHERE c.n >= 0", "SELECT * FROM c ORDER BY c.n",
		"SELECT * FROM c ORDER BY c.pk DESC"} {
		for _, size := range []int32{1, 3, 50, -1} {
			seen := []string{}
			o := &azcosmos.QueryOptions{PageSizeHint: size}
			for {
				p, err := c.NewQueryItemsPager(q, all, o).NextPage(ctx)
				check(t, err)
				if size > 0 && len(p.Items) > int(size) {
					t.Fatalf("%s: a page of %d, asked for %d", q, len(p.Items), size)
				}
				for _, it := range p.Items {
					seen = append(seen, object(t, it)["id"].(string))
				}
				if p.ContinuationToken == nil || *p.ContinuationToken == "" {
					break
				}
				if len(*p.ContinuationToken) > 1024 {
					t.Fatalf("a continuation of %d bytes", len(*p.ContinuationToken))
				}
				o.ContinuationToken = p.ContinuationToken
			}
			sort.Strings(seen)
			if len(slices.Compact(seen)) != 50 || len(seen) != 50 {
				t.Errorf("%s, pages of %d: %d items, want 50 once each", q, size, len(seen))
			}
		}
	}
}

func TestForeignContinuation(t *testing.T) {
	c := numbered(t, 20)
	p, err := c.NewQueryItemsPager("SELECT * FROM c", all, &azcosmos.QueryOptions{PageSizeHint: 3}).NextPage(ctx)
	check(t, err)
	other := "not a token"
	for _, tok := range []*string{p.ContinuationToken, &other} {
		_, err = c.NewQueryItemsPager("SELECT * FROM c WHERE c.n > 1", all,
			&azcosmos.QueryOptions{ContinuationToken: tok}).NextPage(ctx)
		refused(t, err, 400, "BadRequest")
	}
}

func TestRefusedQueries(t *testing.T) {
	c := numbered(t, 6)
	for _, q := range []string{"", "SELEC * FROM c", "SELECT * FROM c WHERE", "SELECT * FROM c WHERE c.n = @absent",
		"SELECT NOSUCH(c.n) FROM c", "SELECT * FROM c WHERE c.n = 'open",
		"SELECT * FROM c WHERE " + strings.Repeat("(", 5000)} {
		_, err := c.NewQueryItemsPager(q, all, nil).NextPage(ctx)
		refused(t, err, 400, "BadRequest")
	}
	no := false
	_, err := c.NewQueryItemsPager("SELECT * FROM c", all, &azcosmos.QueryOptions{EnableCrossPartitionQuery: &no}).
		NextPage(ctx)
	refused(t, err, 400, "BadRequest")
}

// Read-many: up to 1,000 identities in one query with a range id.
func TestReadMany(t *testing.T) {
	c := numbered(t, 60)
	var ids []azcosmos.ItemIdentity
	for i := range 60 {
		ids = append(ids, azcosmos.ItemIdentity{ID: fmt.Sprint("i", i), PartitionKey: str(fmt.Sprintf("p%d", i%6))})
	}
	for i := range 900 {
		ids = append(ids, azcosmos.ItemIdentity{
			ID: fmt.Sprint("absent", i), PartitionKey: str(fmt.Sprintf("p%d", i%6))})
	}
	r, err := c.ReadManyItems(ctx, ids, nil)
	check(t, err)
	if len(r.Items) != 60 || r.RequestCharge <= 0 {
		t.Fatalf("%d items, charge %f", len(r.Items), r.RequestCharge)
	}
}

// The change feed is read to its end by ranges, and later reads continue from there.
func TestChangeFeed(t *testing.T) {
	c := numbered(t, 40)
	ranges, err := c.ReadFeedRanges(ctx, nil)
	check(t, err)
	seen := map[string]bool{}
	tokens := make([]string, len(ranges))
	read := func(i int, fr *azcosmos.FeedRange) {
		for range 100 {
			o := &azcosmos.ChangeFeedOptions{MaxItemCount: 6, FeedRange: fr}
			if tokens[i] != "" {
				o.Continuation, o.FeedRange = &tokens[i], nil
			}
			r, err := c.ReadChangeFeed(ctx, o)
			check(t, err)
			tokens[i] = r.ContinuationToken
			if r.Count == 0 {
				return
			}
			for _, it := range r.Items {
				seen[object(t, it)["id"].(string)] = true
			}
		}
		t.Fatal("the feed does not end")
	}
	for i := range ranges {
		read(i, &ranges[i])
	}
	if len(seen) != 40 {
		t.Fatalf("%d of 40 items", len(seen))
	}
	clear(seen)
	_, err = c.UpsertItem(ctx, str("p1"), []byte(`{"id":"i1","pk":"p1","n":100}`), nil)
	check(t, err)
	for i := range ranges {
		read(i, &ranges[i])
	}
	if len(seen) != 1 || !seen["i1"] {
		t.Fatalf("after one write: %v", seen)
	}
}
