package model

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/conformance/harness"
)

// keyless makes azcosmos create a container without a partition key, which its types can't say.
type keyless struct{}

func (keyless) Do(r *policy.Request) (*http.Response, error) {
	if r.Raw().Method == http.MethodPost && strings.HasSuffix(r.Raw().URL.Path, "/colls") {
		b, err := io.ReadAll(r.Body())
		if err != nil {
			return nil, err
		}
		b = regexp.MustCompile(`"partitionKey":\{[^}]*\}`).ReplaceAll(b, []byte(`"defaultTtl":-1`))
		if err := r.SetBody(streaming.NopCloser(bytes.NewReader(b)), "application/json"); err != nil {
			return nil, err
		}
	}
	return r.Next()
}

// fixedContainer creates a container without a partition key.
func fixedContainer(t *testing.T, s *harness.Server, db, id string, ru int32) (*azcosmos.ContainerClient, error) {
	t.Helper()
	cred, err := azcosmos.NewKeyCredential(s.Key())
	ok(t, err)
	o := &azcosmos.ClientOptions{}
	o.PerCallPolicies = append(o.PerCallPolicies, keyless{})
	client, err := azcosmos.NewClientWithKey("http://"+s.Addr(server.NoSQL), cred, o)
	ok(t, err)
	d, err := client.NewDatabase(db)
	ok(t, err)
	tp := azcosmos.NewManualThroughputProperties(ru)
	_, err = d.CreateContainer(bg, azcosmos.ContainerProperties{ID: id},
		&azcosmos.CreateContainerOptions{ThroughputProperties: &tp})
	if err != nil {
		return nil, err
	}
	d, err = s.SQL.NewDatabase(db)
	ok(t, err)
	return d.NewContainer(id)
}

// P9: a fixed container has no partition key and at most 10,000 RU/s, whichever API raises them. Its items have no key,
// and each API writes and reads them. The change feed moves them into a container with a key.
func TestP9FixedThroughEachAPI(t *testing.T) {
	s := harness.Start(t)
	db := s.Database(t)
	_, err := fixedContainer(t, s, db.ID(), "old", 10100)
	refused(t, err, 400)
	old, err := fixedContainer(t, s, db.ID(), "old", 10000)
	ok(t, err)
	r, err := old.Read(bg, nil)
	ok(t, err)
	if p := r.ContainerProperties.PartitionKeyDefinition.Paths; len(p) != 1 || p[0] != "/_partitionKey" {
		t.Fatalf("the container has the key %v", p)
	}
	coll, table := s.Mongo.Database(db.ID()).Collection("old"), s.Tables.NewClient(db.ID()+".old")
	graph := s.Gremlin(t, db.ID(), "old")

	_, err = old.ReplaceThroughput(bg, azcosmos.NewManualThroughputProperties(10100), nil)
	refused(t, err, 400)
	_, err = old.ReplaceThroughput(bg, azcosmos.NewAutoscaleThroughputProperties(11000), nil)
	refused(t, err, 400)
	var ce mongo.CommandError
	if err := coll.Database().RunCommand(bg, bson.D{{Key: "customAction", Value: "UpdateCollection"},
		{Key: "collection", Value: "old"}, {Key: "offerThroughput", Value: 10100}}).Err(); !errors.As(err, &ce) ||
		ce.Code != 2 {
		t.Errorf("10,100 RU/s by Mongo: %v", err)
	}

	for i := range 3 {
		_, err := old.CreateItem(bg, all, fmt.Appendf(nil, `{"id":"sql%d","tenant":"t%d"}`, i, i), nil)
		ok(t, err)
	}
	_, err = coll.InsertOne(bg, bson.D{{Key: "_id", Value: "mongo"}, {Key: "tenant", Value: "t0"}})
	ok(t, err)
	_, err = table.AddEntity(bg, []byte(`{"PartitionKey":"","RowKey":"table","tenant":"t1"}`), nil)
	ok(t, err)

	// Each of them is there for each API, by its id alone.
	want := []string{"mongo", "sql0", "sql1", "sql2", "table"}
	for _, id := range want {
		_, err := old.ReadItem(bg, all, id, nil)
		ok(t, err)
		if n, err := coll.CountDocuments(bg, bson.D{{Key: "_id", Value: id}}); n != 1 || err != nil {
			t.Errorf("%s by Mongo: %d %v", id, n, err)
		}
		found := 0
		for p := table.NewListEntitiesPager(&aztables.ListEntitiesOptions{
			Filter: ptr("PartitionKey eq '' and RowKey eq '" + id + "'")}); p.More(); {
			page, err := p.NextPage(bg)
			ok(t, err)
			found += len(page.Entities)
		}
		if found != 1 {
			t.Errorf("%s by Table: %d entities", id, found)
		}
		if vs, err := harness.Submit(graph, "g.V(i).values('tenant')", "i", id); err != nil || len(vs) != 1 {
			t.Errorf("%s by Gremlin: %v %v", id, vs, err)
		}
		_, err = table.AddEntity(bg, fmt.Appendf(nil, `{"PartitionKey":"","RowKey":%q}`, id), nil)
		if re := refused(t, err, 409); re.ErrorCode != "EntityAlreadyExists" {
			t.Errorf("%s again, by Table: %v", id, err)
		}
		if _, err := coll.InsertOne(bg, bson.D{{Key: "_id", Value: id}}); !mongo.IsDuplicateKeyError(err) {
			t.Errorf("%s again, by Mongo: %v", id, err)
		}
		_, err = old.CreateItem(bg, all, fmt.Appendf(nil, `{"id":%q}`, id), nil)
		refused(t, err, 409)
	}
	// All of them are one logical partition, whose key clients write as [] or [{}].
	for _, none := range []string{"[]", "[{}]"} {
		p := old.NewQueryItemsPager("SELECT VALUE c.id FROM c ORDER BY c.id", all,
			&azcosmos.QueryOptions{EnableCrossPartitionQuery: ptr(false)})
		page, err := p.NextPage(policyHeader("x-ms-documentdb-partitionkey", none))
		ok(t, err)
		if got := fmt.Sprintf("%s", page.Items); got != `["mongo" "sql0" "sql1" "sql2" "table"]` {
			t.Errorf("the key %s has %s", none, got)
		}
	}
	b := old.NewTransactionalBatch(all)
	b.ReplaceItem("mongo", []byte(`{"id":"mongo","tenant":"t2"}`), nil)
	b.ReplaceItem("table", []byte(`{"id":"table","tenant":"t2"}`), nil)
	br, err := old.ExecuteTransactionalBatch(bg, b, nil)
	ok(t, err)
	if !br.Success {
		t.Errorf("a batch: %+v", br.OperationResults)
	}
	// A vertex of such a graph has its id as key.
	_, err = harness.Submit(graph, "g.addV('v').property('id','gremlin').property('tenant','t1')")
	ok(t, err)
	_, err = table.GetEntity(bg, "gremlin", "gremlin", nil)
	ok(t, err)
	rd, err := old.ReadItem(bg, str("gremlin"), "gremlin", nil)
	ok(t, err)
	has(t, rd.Value, `{"label":"v"}`)

	to := harness.Container(t, db, "new", 20000, "/tenant")
	copied := moveByFeed(t, old, to, func(it map[string]any) string {
		if list, ok := it["tenant"].([]any); ok { // a property of a vertex
			return list[0].(map[string]any)["_value"].(string)
		}
		return it["tenant"].(string)
	})
	slices.Sort(copied)
	if fmt.Sprint(copied) != "[gremlin mongo sql0 sql1 sql2 table]" {
		t.Errorf("copied %q", copied)
	}
	same(t, harness.Query(t, to, str("t2"), "SELECT VALUE c.id FROM c ORDER BY c.id"), `["mongo","sql2","table"]`)
}

// moveByFeed copies a container by its change feed and returns the ids. tenant gives the new key, which becomes the
// property tenant.
func moveByFeed(t *testing.T, from, to *azcosmos.ContainerClient, tenant func(map[string]any) string) (ids []string) {
	t.Helper()
	f := &tail{c: from, each: func(b []byte) error {
		it := object(t, b)
		key := tenant(it)
		it["tenant"] = key
		for _, name := range []string{"_rid", "_self", "_etag", "_ts", "_lsn", "_attachments", "_partitionKey"} {
			delete(it, name)
		}
		_, err := to.UpsertItem(bg, str(key), marshal(t, it), nil)
		return err
	}}
	for before := -1; before != len(f.got); {
		before = len(f.got)
		ok(t, f.poll(5))
	}
	return f.got
}

// P9: what a program gives as throughput is what the table has, or the table isn't created.
func TestP9TableThroughput(t *testing.T) {
	s := harness.Start(t)
	for _, h := range []map[string][]string{
		{"x-ms-offer-throughput": {"399"}}, {"x-ms-offer-throughput": {"450"}}, {"x-ms-offer-throughput": {"-400"}},
		{"x-ms-offer-throughput": {"1000100"}}, {"x-ms-offer-throughput": {"0"}}, {"x-ms-offer-throughput": {"many"}},
		{"x-ms-offer-throughput": {"99999999999999999999"}}, {"x-ms-offer-throughput": {"400.5"}},
		{"x-ms-cosmos-throughput": {"50"}}, {"x-ms-cosmos-offer-autopilot-settings": {"{"}},
		{"x-ms-cosmos-offer-autopilot-settings": {`{"maxThroughput":900}`}},
		{"x-ms-cosmos-offer-autopilot-settings": {`{"maxThroughput":4500}`}},
		{"x-ms-cosmos-offer-autopilot-settings": {`{"maxThroughput":"4000"}`}},
		{"x-ms-cosmos-offer-autopilot-settings": {`{"maxThroughput":4000}`}, "x-ms-offer-throughput": {"400"}},
	} {
		_, err := s.Tables.NewClient("people").CreateTable(policy.WithHTTPHeader(bg, h), nil)
		if re := refused(t, err, 400); re.ErrorCode != "InvalidInput" {
			t.Errorf("%v: %v", h, re)
		}
	}
	pages := s.Tables.NewListTablesPager(nil)
	page, err := pages.NextPage(bg)
	ok(t, err)
	if len(page.Tables) != 0 {
		t.Errorf("%d tables were created", len(page.Tables))
	}
	auto := policyHeader("x-ms-cosmos-offer-autopilot-settings", `{"maxThroughput":20000}`)
	_, err = s.Tables.NewClient("people").CreateTable(auto, nil)
	ok(t, err)
	if n := len(bars(t, s, "TablesDB", "people")); n != 2 {
		t.Errorf("%d partitions of a table that scales to 20,000 RU/s", n)
	}
}
