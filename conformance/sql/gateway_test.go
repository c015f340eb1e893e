package sql

import (
	"encoding/base64"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/sqlapi"
)

// With strictness, this client, which can't plan queries, is refused the same queries as by the service's gateway.
func TestStrictGateway(t *testing.T) {
	e, err := core.Open(ctx, memkv.New(), core.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, e.Close()) })
	h, err := sqlapi.New(e, sqlapi.Options{Account: "localhost", Key: accountKey, Auth: true, Clock: e.Clock(),
		Strict: true})
	check(t, err)
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	cred, err := azcosmos.NewKeyCredential(accountKey)
	check(t, err)
	strict, err := azcosmos.NewClientWithKey(s.URL, cred, nil)
	check(t, err)
	_, err = strict.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: "db"}, nil)
	check(t, err)
	db, err := strict.NewDatabase("db")
	check(t, err)
	c := container(t, db, byKey("c", "/pk"), 20000)
	for _, pk := range []string{"a", "b"} {
		_, err = c.CreateItem(ctx, str(pk), []byte(`{"id":"1","pk":"`+pk+`"}`), nil)
		check(t, err)
	}
	page := func(q string, pk azcosmos.PartitionKey) (azcosmos.QueryItemsResponse, error) {
		return c.NewQueryItemsPager(q, pk, nil).NextPage(ctx)
	}
	for _, q := range []string{"SELECT * FROM c ORDER BY c.n", "SELECT VALUE COUNT(1) FROM c",
		"SELECT DISTINCT c.pk FROM c", "SELECT TOP 1 * FROM c", "SELECT c.pk FROM c GROUP BY c.pk",
		"SELECT * FROM c OFFSET 0 LIMIT 1"} {
		_, err = page(q, all)
		refused(t, err, 400, "cross partition query can not be directly served by the gateway")
		_, err = page(q, str("a"))
		check(t, err)
	}
	whole, err := page("SELECT * FROM c", all)
	check(t, err)
	if len(whole.Items) != 2 {
		t.Errorf("%d items", len(whole.Items))
	}
}

func TestQueryFigures(t *testing.T) {
	c := numbered(t, 200)
	p, err := c.NewQueryItemsPager("SELECT * FROM c WHERE c.n >= 198", all,
		&azcosmos.QueryOptions{PopulateIndexMetrics: true}).NextPage(ctx)
	check(t, err)
	if p.QueryMetrics == nil || !strings.Contains(*p.QueryMetrics, "retrievedDocumentCount=2;") ||
		!strings.Contains(*p.QueryMetrics, "outputDocumentCount=2;") {
		t.Errorf("query metrics %v", p.QueryMetrics)
	}
	if p.IndexMetrics == nil {
		t.Fatal("no index metrics")
	}
	use, err := base64.StdEncoding.DecodeString(*p.IndexMetrics)
	if err != nil || !strings.HasPrefix(string(use), `{"UtilizedSingleIndexes":[{`) ||
		!strings.Contains(string(use), `"IndexSpec":"/n/?"`) {
		t.Errorf("index metrics %s %v", use, err)
	}
}

// The times in the metrics are measured: a scan of many items loads documents without look-ups, an index scan does
// both.
func TestQueryTimes(t *testing.T) {
	c := numbered(t, 2000)
	times := func(q string) map[string]float64 {
		t.Helper()
		p, err := c.NewQueryItemsPager(q, all, &azcosmos.QueryOptions{PageSizeHint: -1}).NextPage(ctx)
		check(t, err)
		out := map[string]float64{}
		for _, kv := range strings.Split(*p.QueryMetrics, ";") {
			k, v, _ := strings.Cut(kv, "=")
			out[k], err = strconv.ParseFloat(v, 64)
			check(t, err)
		}
		return out
	}
	scan := times("SELECT * FROM c WHERE c.n % 2 = 0")
	index := times("SELECT * FROM c WHERE c.n < 100")
	if scan["documentLoadTimeInMs"] <= 0 || scan["indexLookupTimeInMs"] != 0 || scan["writeOutputTimeInMs"] <= 0 ||
		index["indexLookupTimeInMs"] <= 0 || index["documentLoadTimeInMs"] <= 0 {
		t.Errorf("scan %v, index %v", scan, index)
	}
	for _, m := range []map[string]float64{scan, index} {
		if parts := m["documentLoadTimeInMs"] + m["indexLookupTimeInMs"] +
			m["writeOutputTimeInMs"]; parts > m["VMExecutionTimeInMs"]+0.03 ||
			m["VMExecutionTimeInMs"] > m["totalExecutionTimeInMs"] {
			t.Errorf("%v", m)
		}
	}
}
