package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/conformance/harness"
)

// P1: collections, graphs and tables are containers, and items of different shapes share one.
func TestP1Containers(t *testing.T) {
	s := harness.Start(t)
	ok(t, s.Mongo.Database("one").CreateCollection(bg, "documents"))
	db, err := s.SQL.NewDatabase("one")
	ok(t, err)
	harness.Container(t, db, "graph", 0, "/region")
	_, err = s.Tables.NewClient("things").CreateTable(bg, nil)
	ok(t, err)
	if _, err := harness.Submit(s.Gremlin(t, "one", "graph"), "g.addV('city').property('id', "+
		"'Seattle').property('region', 'USA')"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"one": "documents graph", "TablesDB": "things"} {
		db, err := s.SQL.NewDatabase(name)
		ok(t, err)
		var ids []string
		for p := db.NewQueryContainersPager("SELECT * FROM c", nil); p.More(); {
			r, err := p.NextPage(bg)
			ok(t, err)
			for _, c := range r.Containers {
				ids = append(ids, c.ID)
			}
		}
		slices.Sort(ids)
		if strings.Join(ids, " ") != want {
			t.Errorf("containers of %s: %v, want %s", name, ids, want)
		}
	}
	c, err := db.NewContainer("graph")
	ok(t, err)
	create(t, c, "region", `{"id":"1","region":"USA","shape":"round"}`, `{"id":"2","region":"USA",`+
		`"shape":{"corners":[1,2,3]}}`, `{"id":"3","region":"USA"}`)
	same(t, harness.Query(t, c, str("USA"), "SELECT VALUE c.shape FROM c ORDER BY c.id"), `["round",{"corners":[1,2,`+
		`3]}]`)
}

// P2: an item is its partition key and id; LAX, AMS and MEL are three logical partitions, each in one physical
// partition.
func TestP2Identity(t *testing.T) {
	s := harness.Start(t)
	db := s.Database(t)
	c := harness.Container(t, db, "airports", 40000, "/code")
	codes := []string{"LAX", "AMS", "MEL"}
	for _, code := range codes {
		for i := range 20 {
			create(t, c, "code", fmt.Sprintf(`{"id":"%d","code":%q}`, i, code))
		}
	}
	_, err := c.CreateItem(bg, str("LAX"), []byte(`{"id":"1","code":"LAX"}`), nil)
	refused(t, err, 409)
	for _, code := range codes {
		if rows := harness.Query(t, c, str(code), "SELECT VALUE c.id FROM c"); len(rows) != 20 {
			t.Errorf("%s: %d items", code, len(rows))
		}
	}
	used := 0
	for _, p := range bars(t, s, db.ID(), "airports") {
		if p.Items%20 != 0 {
			t.Errorf("a physical partition has %d items: a logical partition is in two", p.Items)
		}
		if p.Items > 0 {
			used++
		}
	}
	if used == 0 || used > 3 {
		t.Errorf("%d physical partitions hold three logical ones", used)
	}
}

// P3, P11: hashing distributes a good key evenly over the partitions, and the admin port's figures show a bad key.
func TestP3P11Bars(t *testing.T) {
	s := harness.Start(t)
	db := s.Database(t)
	good, bad := harness.Container(t, db, "good", 40000, "/user"), harness.Container(t, db, "bad", 40000, "/country")
	const n = 1200
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := w; i < n; i += 4 {
				body := []byte(fmt.Sprintf(`{"id":"%d","user":"user-%d","country":"NZ"}`, i, i))
				if _, err := good.CreateItem(bg, str(fmt.Sprint("user-", i)), body, nil); err != nil {
					t.Error(err)
				}
				if _, err := bad.CreateItem(bg, str("NZ"), body, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	even := bars(t, s, db.ID(), "good")
	if len(even) != 4 {
		t.Fatalf("%d partitions, want 4", len(even))
	}
	for _, p := range even {
		if p.Items < n/4-n/16 || p.Items > n/4+n/16 || p.Bytes < p.Items*30 {
			t.Errorf("partition %s has %d items in %d bytes, want about %d", p.ID, p.Items, p.Bytes, n/4)
		}
	}
	for _, p := range bars(t, s, db.ID(), "bad") {
		if p.Items != 0 && p.Items != n {
			t.Errorf("partition %s has %d items of one key", p.ID, p.Items)
		}
	}
}

// P4 and the first worked example: db, coll, /deviceId, 20,000 RU/s: two partitions.
func TestP4Devices(t *testing.T) {
	s := harness.Start(t)
	_, err := s.SQL.CreateDatabase(bg, azcosmos.DatabaseProperties{ID: "db"}, nil)
	ok(t, err)
	db, err := s.SQL.NewDatabase("db")
	ok(t, err)
	c := harness.Container(t, db, "coll", 20000, "/deviceId")
	fr, err := c.ReadFeedRanges(bg, nil)
	ok(t, err)
	if len(fr) != 2 || len(bars(t, s, "db", "coll")) != 2 {
		t.Fatalf("%d partitions, want 2", len(fr))
	}
	item := `{"id":"XMS-001-FE24C","deviceId":"XMS-0001","metricType":"Temperature","unit":"Celsius",` +
		`"metricValue":46.9}`
	create(t, c, "deviceId", item)
	r, err := c.ReadItem(bg, str("XMS-0001"), "XMS-001-FE24C", nil)
	ok(t, err)
	has(t, r.Value, item)
	for ru, want := range map[int32]int{400: 1, 10000: 1, 10100: 2, 50000: 5} {
		c := harness.Container(t, db, fmt.Sprint("c", ru), ru, "/k")
		if fr, err := c.ReadFeedRanges(bg, nil); err != nil || len(fr) != want {
			t.Errorf("%d RU/s: %d partitions %v, want %d", ru, len(fr), err, want)
		}
	}
}

// P7: throughput can be changed at any time, and all items stay.
func TestP7ChangeThroughput(t *testing.T) {
	s := harness.Start(t)
	c := harness.Container(t, s.Database(t), "c", 400, "/k")
	create(t, c, "k", `{"id":"1","k":"a"}`)
	for _, ru := range []int32{1000, 10000, 400} {
		_, err := c.ReplaceThroughput(bg, azcosmos.NewManualThroughputProperties(ru), nil)
		ok(t, err)
		r, err := c.ReadThroughput(bg, nil)
		ok(t, err)
		if got, _ := r.ThroughputProperties.ManualThroughput(); got != ru {
			t.Errorf("%d RU/s, want %d", got, ru)
		}
		_, err = c.ReadItem(bg, str("a"), "1", nil)
		ok(t, err)
	}
}

// P8 and the worked examples of the other APIs: their keys are partition key and id.
func TestP8KeysOfEachAPI(t *testing.T) {
	s := harness.Start(t)

	t.Run("mongo", func(t *testing.T) {
		raw, err := s.Mongo.Database("admin").RunCommand(
			bg, bson.D{{Key: "shardCollection", Value: "admin.people"},
				{Key: "key", Value: bson.D{{Key: "region", Value: "hashed"}}}}).Raw()
		ok(t, err)
		var reply struct {
			T          string `bson:"_t"`
			OK         int    `bson:"ok"`
			Collection string `bson:"collectionsharded"`
		}
		ok(t, bson.Unmarshal(raw, &reply))
		// These three fields, then the times of every reply.
		if els, _ := raw.Elements(); reply.T != "ShardCollectionResponse" || reply.OK != 1 ||
			reply.Collection != "admin.people" || len(els) < 4 || els[3].Key() != "$clusterTime" {
			t.Errorf("%s", raw)
		}
		_, err = s.Mongo.Database("admin").Collection("people").InsertOne(bg, bson.D{{Key: "_id", Value: "1"}, {Key: "region", Value: "EU"}})
		ok(t, err)
		db, err := s.SQL.NewDatabase("admin")
		ok(t, err)
		c, err := db.NewContainer("people")
		ok(t, err)
		_, err = c.ReadItem(bg, str("EU"), "1", nil)
		ok(t, err)
	})

	t.Run("table", func(t *testing.T) {
		ctx := policyHeader("x-ms-offer-throughput", "800")
		people := s.Tables.NewClient("people")
		_, err := people.CreateTable(ctx, nil)
		ok(t, err)
		_, err = people.CreateTable(ctx, nil) // created if absent
		refused(t, err, 409)
		_, err = people.AddEntity(bg, []byte(`{"PartitionKey":"Smith","RowKey":"Ben","Email":"ben@contoso.com"}`), nil)
		ok(t, err)
		r, err := people.GetEntity(bg, "Smith", "Ben", nil)
		ok(t, err)
		has(t, r.Value, `{"PartitionKey":"Smith","RowKey":"Ben","Email":"ben@contoso.com"}`)
		db, err := s.SQL.NewDatabase("TablesDB")
		ok(t, err)
		c, err := db.NewContainer("people")
		ok(t, err)
		th, err := c.ReadThroughput(bg, nil)
		ok(t, err)
		if ru, _ := th.ThroughputProperties.ManualThroughput(); ru != 800 {
			t.Errorf("%d RU/s, want 800", ru)
		}
		it, err := c.ReadItem(bg, str("Smith"), "Ben", nil)
		ok(t, err)
		has(t, it.Value, `{"$pk":"Smith","$id":"Ben","id":"Ben","Email":{"$t":2,"$v":"ben@contoso.com"}}`)
	})

	t.Run("gremlin", func(t *testing.T) {
		db := s.Database(t)
		harness.Container(t, db, "cities", 0, "/region")
		g := s.Gremlin(t, db.ID(), "cities")
		for _, x := range [][2]string{
			{"g.addV('city').property('id', 'Seattle').property('region', 'USA').property('name', 'Emerald City').id()",
				"Seattle"},
			{"g.addV('city').property('id', 'Portland').property('region', 'USA').id()", "Portland"},
			{"g.V(['USA', 'Seattle']).addE('road').to(g.V(['USA', 'Portland'])).property('id', 'I5').id()", "I5"},
			{"g.V(['USA', 'Seattle']).values('name')", "Emerald City"},
			{"g.E(['USA', 'I5']).inV().id()", "Portland"},
			{"g.V(['NZ', 'Seattle']).count()", "0"},
		} {
			vs, err := harness.Submit(g, x[0])
			if err != nil || len(vs) != 1 || fmt.Sprint(vs[0]) != x[1] {
				t.Errorf("%s: %v %v, want %s", x[0], vs, err, x[1])
			}
		}
	})
}

// policyHeader adds a header to each request of a context.
func policyHeader(name, value string) context.Context {
	return policy.WithHTTPHeader(bg, map[string][]string{name: {value}})
}

// P9: throughput begins at 400 RU/s. A collection without a shard key (one logical partition for each document) is
// moved into one with a key by means of the change feed.
func TestP9FixedAndUnlimited(t *testing.T) {
	s := harness.Start(t)
	db := s.Database(t)
	tp := azcosmos.NewManualThroughputProperties(300)
	_, err := db.CreateContainer(bg, azcosmos.ContainerProperties{
		ID: "small", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/k"}}},
		&azcosmos.CreateContainerOptions{ThroughputProperties: &tp})
	refused(t, err, 400)

	old := s.Mongo.Database(db.ID()).Collection("old")
	for i := range 30 {
		_, err := old.InsertOne(bg, bson.D{
			{Key: "_id", Value: fmt.Sprint(i)}, {Key: "tenant", Value: fmt.Sprint("t", i%3)}})
		ok(t, err)
	}
	from, err := db.NewContainer("old")
	ok(t, err)
	to := harness.Container(t, db, "new", 0, "/tenant")
	ranges, err := from.ReadFeedRanges(bg, nil)
	ok(t, err)
	for i := range ranges {
		var at *string
		for page := 0; page < 50; page++ {
			r, err := from.ReadChangeFeed(
				bg, &azcosmos.ChangeFeedOptions{FeedRange: &ranges[i], Continuation: at, MaxItemCount: 7})
			ok(t, err)
			for _, it := range r.Items {
				_, err := to.UpsertItem(bg, str(object(t, it)["tenant"].(string)), it, nil)
				ok(t, err)
			}
			if len(r.Items) == 0 {
				break
			}
			at = &r.ContinuationToken
		}
	}
	if rows := harness.Query(t, to, str("t1"), "SELECT VALUE c.id FROM c"); len(rows) != 10 {
		t.Errorf("%d items of t1 arrived, want 10", len(rows))
	}
	same(t, harness.Query(t, to, all, "SELECT VALUE COUNT(1) FROM c"), "[30]")
}

// P10: reading 1 KB costs 1 request unit, whatever the number of items and of other readers. Larger items cost more.
func TestP10RequestUnits(t *testing.T) {
	s := harness.Start(t)
	c := harness.Container(t, s.Database(t), "c", 0, "/k")
	sized := func(id string, n int) string {
		return fmt.Sprintf(`{"id":%q,"k":"a","pad":%q}`, id, strings.Repeat("x", n))
	}
	create(t, c, "k", sized("1KB", 900), sized("8KB", 8<<10), sized("100KB", 100<<10))
	charge := func(id string) float32 {
		r, err := c.ReadItem(bg, str("a"), id, nil)
		ok(t, err)
		return r.RequestCharge
	}
	if got := charge("1KB"); got != 1 {
		t.Errorf("1 KB costs %v", got)
	}
	if mid, large := charge("8KB"), charge("100KB"); mid <= 1 || large <= mid {
		t.Errorf("8 KB costs %v, 100 KB %v", mid, large)
	}
	for i := range 300 {
		create(t, c, "k", fmt.Sprintf(`{"id":"i%d","k":"a"}`, i))
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if r, err := c.ReadItem(bg, str("a"), "1KB", nil); err != nil || r.RequestCharge != 1 {
					t.Errorf("1 KB costs %v among others: %v", r.RequestCharge, err)
				}
			}
		})
	}
	wg.Wait()
}

// P12: a transaction on one partition key is applied completely or not at all, in NoSQL and in Table.
func TestP12Transactions(t *testing.T) {
	s := harness.Start(t)
	c := harness.Container(t, s.Database(t), "c", 0, "/k")
	create(t, c, "k", `{"id":"taken","k":"a"}`)
	b := c.NewTransactionalBatch(str("a"))
	b.CreateItem([]byte(`{"id":"new","k":"a"}`), nil)
	b.CreateItem([]byte(`{"id":"taken","k":"a"}`), nil)
	r, err := c.ExecuteTransactionalBatch(bg, b, nil)
	ok(t, err)
	if r.Success || r.OperationResults[0].StatusCode != 424 || r.OperationResults[1].StatusCode != 409 {
		t.Errorf("%+v", r.OperationResults)
	}
	_, err = c.ReadItem(bg, str("a"), "new", nil)
	refused(t, err, 404)

	table := s.Tables.NewClient("transactions")
	_, err = table.CreateTable(bg, nil)
	ok(t, err)
	_, err = table.AddEntity(bg, []byte(`{"PartitionKey":"a","RowKey":"taken"}`), nil)
	ok(t, err)
	_, err = table.SubmitTransaction(bg, []aztables.TransactionAction{
		{ActionType: aztables.TransactionTypeAdd, Entity: []byte(`{"PartitionKey":"a","RowKey":"new"}`)},
		{ActionType: aztables.TransactionTypeAdd, Entity: []byte(`{"PartitionKey":"a","RowKey":"taken"}`)},
	}, nil)
	var re *azcore.ResponseError
	if !errors.As(err, &re) || re.ErrorCode != string(aztables.EntityAlreadyExists) {
		t.Errorf("%v", err)
	}
	_, err = table.GetEntity(bg, "a", "new", nil)
	refused(t, err, 404)
}

// P13: a query with a partition key reads only that partition, one without it reads all. A request may weaken the
// consistency.
func TestP13Routing(t *testing.T) {
	s := harness.Start(t)
	c := harness.Container(t, s.Database(t), "c", 30000, "/k")
	for k := range 30 {
		create(t, c, "k", fmt.Sprintf(`{"id":"1","k":"%d","n":%d}`, k, k),
			fmt.Sprintf(`{"id":"2","k":"%d","n":%d}`, k, -k))
	}
	same(t, harness.Query(t, c, str("7"), "SELECT VALUE c.n FROM c ORDER BY c.n"), "[-7,7]")
	same(t, harness.Query(t, c, all, "SELECT VALUE c.n FROM c WHERE c.n > 25 ORDER BY c.n DESC"), "[29,28,27,26]")
	same(t, harness.Query(t, c, all, "SELECT VALUE COUNT(1) FROM c"), "[60]")
	eventual := azcosmos.ConsistencyLevelEventual
	_, err := c.ReadItem(bg, str("7"), "1", &azcosmos.ItemOptions{ConsistencyLevel: &eventual})
	ok(t, err)
	strong := azcosmos.ConsistencyLevelStrong
	_, err = c.ReadItem(bg, str("7"), "1", &azcosmos.ItemOptions{ConsistencyLevel: &strong})
	refused(t, err, 400) // the account has Session
}

// P14: tenants by key in one container, and a large tenant in its own container with its own throughput.
func TestP14Tenants(t *testing.T) {
	s := harness.Start(t)
	db := s.Database(t)
	shared, own := harness.Container(t, db, "tenants", 1000, "/tenant"),
		harness.Container(t, db, "tenant-large", 20000, "/user")
	create(t, shared, "tenant", `{"id":"1","tenant":"a","secret":1}`, `{"id":"1","tenant":"b","secret":2}`)
	create(t, own, "user", `{"id":"1","user":"u1"}`)
	same(t, harness.Query(t, shared, str("a"), "SELECT VALUE c.secret FROM c"), "[1]")
	for c, want := range map[*azcosmos.ContainerClient]int32{shared: 1000, own: 20000} {
		r, err := c.ReadThroughput(bg, nil)
		ok(t, err)
		if ru, _ := r.ThroughputProperties.ManualThroughput(); ru != want {
			t.Errorf("%s: %d RU/s, want %d", c.ID(), ru, want)
		}
	}
}

// P15: a container for each period. Old containers get less throughput. The host is the key.
func TestP15TimeSeries(t *testing.T) {
	s := harness.Start(t)
	db := s.Database(t)
	for _, month := range []string{"2017-03", "2017-04"} {
		c := harness.Container(t, db, "logs-"+month, 10000, "/host")
		for i := range 10 {
			create(t, c, "host", fmt.Sprintf(`{"id":"%d","host":"h%d","time":"%s-%02dT00:00:00Z"}`, i, i%2, month, i+1))
		}
	}
	c, err := db.NewContainer("logs-2017-03")
	ok(t, err)
	_, err = c.ReplaceThroughput(bg, azcosmos.NewManualThroughputProperties(400), nil)
	ok(t, err)
	same(t, harness.Query(t, c, str("h1"), "SELECT VALUE c.id FROM c WHERE c.time >= '2017-03-05' AND c.time < "+
		"'2017-03-09' ORDER BY c.time"), `["5","7"]`)
	_, err = c.Delete(bg, nil)
	ok(t, err)
}

// P16: a graph can be accessed through the other APIs (conformance/cross tests all kinds).
func TestP16GraphThroughTheOthers(t *testing.T) {
	s := harness.Start(t)
	db := s.Database(t)
	c := harness.Container(t, db, "g", 0, "/region")
	g := s.Gremlin(t, db.ID(), "g")
	_, err := harness.Submit(g, "g.addV('city').property('id', 'Seattle').property('region', "+
		"'USA').property('rain', true)")
	ok(t, err)
	same(t, harness.Query(t, c, str("USA"), "SELECT VALUE c.id FROM c WHERE c.label = 'city' AND c.rain[0]._value"),
		`["Seattle"]`)
	if n, err := s.Mongo.Database(db.ID()).Collection("g").CountDocuments(
		bg, bson.D{{Key: "rain._value", Value: true}}); n != 1 || err != nil {
		t.Errorf("%d %v", n, err)
	}
	e, err := s.Tables.NewClient(db.ID()+".g").GetEntity(bg, "USA", "Seattle", nil)
	ok(t, err)
	if !bytes.Contains(e.Value, []byte(`"label":"city"`)) {
		t.Errorf("%s", e.Value)
	}
}
