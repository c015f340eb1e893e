package model

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/conformance/harness"
	"github.com/orrerydb/orrery/core/clock"
)

// limited is a server that limits consumption. Its clock stands still: what was used up stays used up until the test
// moves the clock.
func limited(t *testing.T) (*harness.Server, *clock.Clock) {
	t.Helper()
	cfg := server.Ephemeral()
	cfg.Throttle, cfg.Strict, cfg.Clock = true, nil, clock.Fake(time.Now())
	return harness.StartWith(t, cfg), cfg.Clock
}

// until repeats a request until it is refused, and returns that error.
func until(t *testing.T, do func(i int) error) error {
	t.Helper()
	for i := range 1000 {
		if err := do(i); err != nil {
			return err
		}
	}
	t.Fatal("nothing was limited")
	return nil
}

// P10: reading 1 KB is 1 RU, whatever the number of items. Larger items cost more.
func TestP10Charges(t *testing.T) {
	s := harness.Start(t)
	c := harness.Container(t, s.Database(t), "c", 400, "/k")
	item := func(id string, kb int) string {
		return fmt.Sprintf(`{"id":%q,"k":"a","pad":%q}`, id, strings.Repeat("x", kb<<10-100))
	}
	create(t, c, "k", item("small", 1), item("large", 64))
	read := func(id string) float32 {
		r, err := c.ReadItem(bg, str("a"), id, nil)
		ok(t, err)
		return r.RequestCharge
	}
	if got := read("small"); got != 1 {
		t.Errorf("a read of 1 KB costs %v RU", got)
	}
	if got := read("large"); got < 9 || got > 11 {
		t.Errorf("a read of 64 KB costs %v RU", got)
	}
	for i := range 500 {
		create(t, c, "k", item(fmt.Sprint(i), 1))
	}
	if got := read("small"); got != 1 {
		t.Errorf("among 500 items a read of 1 KB costs %v RU", got)
	}
}

// P10: requests above the throughput of a partition are refused with the error of each API, which says when to try
// again. After that time they are served.
func TestP10NoSQL(t *testing.T) {
	s, clk := limited(t)
	c := harness.Container(t, s.Database(t), "c", 400, "/k")
	write := func(i int) error {
		_, err := c.UpsertItem(bg, str("a"), []byte(fmt.Sprintf(`{"id":"%d","k":"a"}`, i)), nil)
		return err
	}
	re := refused(t, until(t, write), 429)
	h := re.RawResponse.Header
	if h.Get("x-ms-substatus") != "3200" || h.Get("x-ms-retry-after-ms") == "" ||
		!strings.Contains(re.Error(), "Request rate is large") {
		t.Errorf("%v: %v", re, h)
	}
	_, err := c.ReadItem(bg, str("a"), "0", nil)
	refused(t, err, 429)
	b := c.NewTransactionalBatch(str("a"))
	b.ReadItem("0", nil)
	_, err = c.ExecuteTransactionalBatch(bg, b, nil)
	refused(t, err, 429)
	_, err = c.NewQueryItemsPager("SELECT * FROM c", str("a"), nil).NextPage(bg)
	refused(t, err, 429)
	if _, err := c.Read(bg, nil); err != nil {
		t.Errorf("metadata: %v", err)
	}
	clk.Advance(time.Second)
	ok(t, write(0))
}

// P10: the SDKs of NoSQL and Table retry what is refused, so that a program gets all of its throughput without an
// error.
func TestP10Retries(t *testing.T) {
	cfg := server.Ephemeral()
	cfg.Throttle, cfg.Strict = true, nil
	s := harness.StartWith(t, cfg)
	db := s.Database(t)
	harness.Container(t, db, "c", 400, "/k")
	cred, err := azcosmos.NewKeyCredential(s.Key())
	ok(t, err)
	client, err := azcosmos.NewClientWithKey("http://"+s.Addr(server.NoSQL), cred, nil) // with retries
	ok(t, err)
	c, err := client.NewContainer(db.ID(), "c")
	ok(t, err)
	for i := range 120 { // about 600 RU
		if _, err := c.CreateItem(bg, str("a"), []byte(fmt.Sprintf(`{"id":"%d","k":"a"}`, i)), nil); err != nil {
			t.Fatal(err)
		}
	}
	refusals := s.Engine().Throttled()
	if refusals == 0 {
		t.Error("nothing was refused, so nothing was tried again")
	}
	tables, err := aztables.NewSharedKeyCredential(s.Account(), s.Key())
	ok(t, err)
	service, err := aztables.NewServiceClientWithSharedKey("http://"+s.Addr(server.Table), tables, nil) // with retries
	ok(t, err)
	table := service.NewClient("retries")
	_, err = table.CreateTable(bg, nil)
	ok(t, err)
	for i := range 120 {
		if _, err := table.AddEntity(bg, fmt.Appendf(nil, `{"PartitionKey":"a","RowKey":"%d"}`, i), nil); err != nil {
			t.Fatal(err)
		}
	}
	if s.Engine().Throttled() == refusals {
		t.Error("nothing was refused to the Table API")
	}
}

func TestP10Mongo(t *testing.T) {
	s, clk := limited(t)
	coll := s.Mongo.Database("db").Collection("coll")
	write := func(i int) error {
		_, err := coll.InsertOne(bg, bson.D{{Key: "_id", Value: i}})
		return err
	}
	retry := regexp.MustCompile(`RetryAfterMs=[1-9]\d*, .*TooManyRequests \(429\).*3200`)
	err := until(t, write)
	var we mongo.WriteException
	if !errors.As(err, &we) || len(we.WriteErrors) != 1 || we.WriteErrors[0].Code != 16500 ||
		!retry.MatchString(we.WriteErrors[0].Message) {
		t.Errorf("insert: %v", err)
	}
	var ce mongo.CommandError
	if err := coll.FindOne(bg, bson.D{{Key: "_id", Value: 0}}).Err(); !errors.As(err, &ce) || ce.Code != 16500 ||
		!retry.MatchString(ce.Message) {
		t.Errorf("find: %v", err)
	}
	if _, err := coll.CountDocuments(bg, bson.D{}); !errors.As(err, &ce) || ce.Code != 16500 {
		t.Errorf("count: %v", err)
	}
	clk.Advance(time.Second)
	_, err = coll.CountDocuments(bg, bson.D{})
	ok(t, err)
	sess, err := s.Mongo.StartSession()
	ok(t, err)
	defer sess.EndSession(bg)
	var page struct {
		Cursor struct {
			ID                    int64
			FirstBatch, NextBatch []bson.Raw
		}
	}
	run := func(cmd bson.D) error {
		return s.Mongo.Database("db").RunCommand(mongo.NewSessionContext(bg, sess), cmd).Decode(&page)
	}
	ok(t, run(bson.D{{Key: "find", Value: "coll"}, {Key: "batchSize", Value: 10}}))
	until(t, func(i int) error { return write(1000 + i) })
	more := bson.D{{Key: "getMore", Value: page.Cursor.ID}, {Key: "collection", Value: "coll"}}
	if err := run(more); !errors.As(err, &ce) || ce.Code != 16500 {
		t.Errorf("getMore: %v", err)
	}
	clk.Advance(time.Second)
	ok(t, run(more)) // the cursor goes on where it was
	if b := page.Cursor.NextBatch; len(b) == 0 || b[0].Lookup("_id").AsInt64() != 10 {
		t.Errorf("the next batch is %v", b)
	}
	n, err := coll.CountDocuments(bg, bson.D{})
	ok(t, err)
	var many []any
	for i := range 200 {
		many = append(many, bson.D{{Key: "_id", Value: fmt.Sprint(i)}})
	}
	r, err := coll.InsertMany(bg, many)
	var be mongo.BulkWriteException
	if !errors.As(err, &be) || len(be.WriteErrors) != 1 || be.WriteErrors[0].Code != 16500 {
		t.Errorf("an ordered insert of 200: %v", err)
	}
	clk.Advance(time.Minute)
	after, err := coll.CountDocuments(bg, bson.D{})
	ok(t, err)
	if len(be.WriteErrors) == 1 && after-n != int64(be.WriteErrors[0].Index) {
		t.Errorf("%d of %d documents are there, the error is of number %d", after-n, len(r.InsertedIDs),
			be.WriteErrors[0].Index)
	}
}

// The worked example of tables: `people` is created with 800 RU/s. Then P10.
func TestP10Table(t *testing.T) {
	s, clk := limited(t)
	ctx := context.WithValue(bg, throughputHeader{}, "800")
	cred, err := aztables.NewSharedKeyCredential(s.Account(), s.Key())
	ok(t, err)
	o := &aztables.ClientOptions{}
	o.PerCallPolicies = append(o.PerCallPolicies, withThroughput{})
	o.Retry.MaxRetries = -1
	client, err := aztables.NewServiceClientWithSharedKey("http://"+s.Addr(server.Table), cred, o)
	ok(t, err)
	people := client.NewClient("people")
	_, err = people.CreateTable(ctx, nil)
	ok(t, err)
	_, err = people.CreateTable(ctx, nil) // it is created if absent
	refused(t, err, 409)
	def, err := s.Engine().Container("TablesDB", "people")
	ok(t, err)
	if got := def.Spec().Throughput.Manual; got != 800 {
		t.Errorf("people has %d RU/s", got)
	}
	_, err = client.NewClient("little").CreateTable(context.WithValue(bg, throughputHeader{}, "50"), nil)
	refused(t, err, 400)
	_, err = people.AddEntity(bg, []byte(`{"PartitionKey":"Smith","RowKey":"Ben","Email":"ben@contoso.com"}`), nil)
	ok(t, err)
	re := refused(t, until(t, func(i int) error {
		_, err := people.UpsertEntity(bg, []byte(fmt.Sprintf(`{"PartitionKey":"Smith","RowKey":"%d"}`, i)), nil)
		return err
	}), 429)
	if re.ErrorCode != "TooManyRequests" {
		t.Errorf("%v", re)
	}
	_, err = people.GetEntity(bg, "Smith", "Ben", nil)
	refused(t, err, 429)
	_, err = people.SubmitTransaction(bg, []aztables.TransactionAction{{ActionType: aztables.TransactionTypeAdd,
		Entity: []byte(`{"PartitionKey":"Smith","RowKey":"x"}`)}}, nil)
	var are *azcore.ResponseError
	if !errors.As(err, &are) || are.StatusCode != 429 && are.ErrorCode != "TooManyRequests" {
		t.Errorf("transaction: %v", err)
	}
	clk.Advance(time.Second)
	_, err = people.GetEntity(bg, "Smith", "Ben", nil)
	ok(t, err)
}

func TestP10Gremlin(t *testing.T) {
	s, clk := limited(t)
	db := s.Database(t)
	harness.Container(t, db, "g", 400, "/region")
	g := s.Gremlin(t, db.ID(), "g")
	add := func(i int) error {
		_, err := harness.Submit(g, fmt.Sprintf(
			"g.addV('city').property('id', '%d').property('region', 'USA')", i))
		return err
	}
	err := until(t, add)
	// The driver shows the status attributes in the text of its error. Programs wait for x-ms-retry-after-ms.
	attributes := regexp.MustCompile(`x-ms-retry-after-ms:00:00:0\d\.\d{7}.*x-ms-status-code:429.*` +
		`x-ms-substatus-code:3200`)
	if !attributes.MatchString(err.Error()) || !strings.Contains(err.Error(), "Request rate is large") {
		t.Errorf("addV: %v", err)
	}
	if _, err := harness.Submit(g, "g.V()"); err == nil || !strings.Contains(err.Error(), "429") {
		t.Errorf("V: %v", err)
	}
	clk.Advance(time.Second)
	ok(t, add(999))
}

// throughputHeader is the key of a context value: the throughput that a table is created with. withThroughput sends it.
type throughputHeader struct{}

type withThroughput struct{}

func (withThroughput) Do(r *policy.Request) (*http.Response, error) {
	if v, ok := r.Raw().Context().Value(throughputHeader{}).(string); ok {
		r.Raw().Header.Set("x-ms-offer-throughput", v)
	}
	return r.Next()
}

// P4: the number of partitions follows the throughput and what one partition serves: 30,000 RU/s with 6,000 are 5.
func TestP4PartitionLimit(t *testing.T) {
	cfg := server.Ephemeral()
	cfg.PartitionRU = 6000
	s := harness.StartWith(t, cfg)
	for ru, want := range map[int32]int{400: 1, 6000: 1, 6100: 2, 30000: 5} {
		c := harness.Container(t, s.Database(t), "c", ru, "/k")
		if fr, err := c.ReadFeedRanges(bg, nil); err != nil || len(fr) != want {
			t.Errorf("%d RU/s: %d partitions, want %d: %v", ru, len(fr), want, err)
		}
	}
	db := s.Database(t) // a container without a partition key has one
	c, err := fixedContainer(t, s, db.ID(), "old", 10000)
	ok(t, err)
	if fr, err := c.ReadFeedRanges(bg, nil); err != nil || len(fr) != 1 {
		t.Errorf("%d partitions of a container without a partition key: %v", len(fr), err)
	}
}

// P9: a container without a partition key has at most 10,000 RU/s, one with a key at least 400.
func TestP9Limits(t *testing.T) {
	s := harness.Start(t)
	c := harness.Container(t, s.Database(t), "c", 400, "/k")
	for _, n := range []int32{399, 300, 450, 1000100} {
		_, err := c.ReplaceThroughput(bg, azcosmos.NewManualThroughputProperties(n), nil)
		refused(t, err, 400)
	}
	r, err := c.ReplaceThroughput(bg, azcosmos.NewManualThroughputProperties(100000), nil)
	ok(t, err)
	if n, _ := r.ThroughputProperties.ManualThroughput(); n != 100000 || r.MinThroughput == nil ||
		*r.MinThroughput != 1000 {
		t.Errorf("%d RU/s, at least %v", n, r.MinThroughput)
	}
	_, err = c.ReplaceThroughput(bg, azcosmos.NewManualThroughputProperties(900), nil)
	refused(t, err, 400)
	m := s.Mongo.Database("db")
	create := func(name string, more ...bson.E) error {
		return m.RunCommand(bg, append(bson.D{{Key: "customAction", Value: "CreateCollection"},
			{Key: "collection", Value: name}}, more...)).Err()
	}
	var ce mongo.CommandError
	for _, n := range []int{399, 450, 10100, 1000100} {
		if err := create("c", bson.E{Key: "offerThroughput", Value: n}); !errors.As(err, &ce) || ce.Code != 2 {
			t.Errorf("%d RU/s without a shard key: %v", n, err)
		}
	}
	for _, n := range []int{900, 4500, 1001000, 0} {
		auto := bson.E{Key: "autoScaleSettings", Value: bson.D{{Key: "maxThroughput", Value: n}}}
		if err := create("c", auto, bson.E{Key: "shardKey", Value: "user"}); !errors.As(err, &ce) || ce.Code != 2 {
			t.Errorf("autoscale to %d RU/s: %v", n, err)
		}
	}
	ok(t, create("plain", bson.E{Key: "offerThroughput", Value: 10000}))
	ok(t, create("sharded", bson.E{Key: "offerThroughput", Value: 10100}, bson.E{Key: "shardKey", Value: "user"}))
	var got bson.M
	ok(t, m.RunCommand(bg, bson.D{{Key: "customAction", Value: "GetCollection"},
		{Key: "collection", Value: "sharded"}}).Decode(&got))
	if got["provisionedThroughput"] != int32(10100) {
		t.Errorf("%v", got)
	}
	update := func(action string, n int, more ...bson.E) error {
		return m.RunCommand(bg, append(bson.D{{Key: "customAction", Value: action},
			{Key: "offerThroughput", Value: n}}, more...)).Err()
	}
	sharded := bson.E{Key: "collection", Value: "sharded"}
	ok(t, update("UpdateCollection", 200000, sharded))
	if err := update("UpdateCollection", 1900, sharded); !errors.As(err, &ce) || ce.Code != 2 {
		t.Errorf("below a hundredth of the highest: %v", err)
	}
	ok(t, update("UpdateCollection", 2000, sharded))
	ok(t, update("UpdateDatabase", 50000))
	if err := update("UpdateDatabase", 400); !errors.As(err, &ce) || ce.Code != 2 {
		t.Errorf("a database, below a hundredth of the highest: %v", err)
	}
	ok(t, update("UpdateDatabase", 500))
}
