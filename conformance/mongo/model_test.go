package mongo

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/value"
)

// TestShardCollection is the worked example of the service's modelling documents, with its exact reply. The times of
// every reply follow.
func TestShardCollection(t *testing.T) {
	s := start(t)
	cl := s.client(t)
	raw, err := cl.Database("admin").RunCommand(bg, doc(t, `{"shardCollection":"admin.people",`+
		`"key":{"region":"hashed"}}`)).Raw()
	must(t, err)
	got, _, _ := strings.Cut(raw.String(), `,"$clusterTime":`)
	if got != `{"_t": "ShardCollectionResponse","ok": {"$numberInt":"1"},"collectionsharded": "admin.people"` {
		t.Fatal(got)
	}
	people := cl.Database("admin").Collection("people")
	fill(t, people, `{"_id":1,"region":"LAX","n":1}`, `{"_id":1,"region":"AMS","n":2}`,
		`{"_id":2,"region":"MEL","n":3}`)
	c, err := s.engine.Container("admin", "people")
	must(t, err)
	if p := c.Spec().PartitionKey.Paths; len(p) != 1 || p[0] != "/region" {
		t.Fatal(p)
	}
	it, err := c.Read(bg, core.PartitionKey{value.StringOf("AMS")}, value.Int32Of(1))
	if err != nil || value.ObjectOf(it.Doc).Get("n").Int() != 2 {
		t.Fatal(it, err)
	}
	_, err = people.InsertOne(bg, doc(t, `{"_id":9}`))
	wantCode(t, err, 61)
	_, err = people.InsertOne(bg, doc(t, `{"_id":1,"region":"LAX"}`))
	wantCode(t, err, 11000)
	_, err = people.UpdateOne(bg, doc(t, `{"_id":2,"region":"MEL"}`), doc(t, `{"$set":{"region":"LAX"}}`))
	wantCode(t, err, 66)
	r, err := people.UpdateOne(bg, doc(t, `{"_id":2,"region":"MEL"}`), doc(t, `{"$inc":{"n":10}}`))
	if err != nil || r.ModifiedCount != 1 {
		t.Fatal(r, err)
	}
	cur, err := people.Find(bg, doc(t, `{"region":"LAX"}`))
	wantDocs(t, all(t, cur, err), `{"_id":1,"region":"LAX","n":1}`)
	if n, err := people.CountDocuments(bg, doc(t, `{"_id":1}`)); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	wantCode(t, cl.Database("admin").RunCommand(
		bg, doc(t, `{"shardCollection":"admin.people","key":{"other":"hashed"}}`)).Err(), 20)
}

func TestCustomActions(t *testing.T) {
	db := start(t).client(t).Database("shop")
	run(t, db, `{"customAction":"CreateDatabase","offerThroughput":1000}`)
	if m := run(t, db, `{"customAction":"GetDatabase"}`); m["provisionedThroughput"] != int32(1000) ||
		m["database"] != "shop" {
		t.Fatal(m)
	}
	run(t, db, `{"customAction":"CreateCollection","collection":"coll","shardKey":"deviceId","offerThroughput":20000}`)
	m := run(t, db, `{"customAction":"GetCollection","collection":"coll"}`)
	if m["provisionedThroughput"] != int32(20000) || text(m["shardKeyDefinition"]) != `{"deviceId":"hashed"}` {
		t.Fatal(m)
	}
	run(t, db, `{"customAction":"UpdateCollection","collection":"coll","autoScaleSettings":{"maxThroughput":4000}}`)
	if m = run(t, db, `{"customAction":"GetCollection","collection":"coll"}`); m["provisionedThroughput"] != nil {
		t.Fatal(m)
	}
	wantCode(t, db.RunCommand(bg, doc(t, `{"customAction":"CreateCollection","collection":"coll"}`)).Err(), 48)
	wantCode(t, db.RunCommand(bg, doc(t, `{"customAction":"Nope"}`)).Err(), 2)
}

// TestExampleItems: the unchanged items of the service's modelling documents through MongoDB.
func TestExampleItems(t *testing.T) {
	db := start(t).client(t).Database("model")
	people := db.Collection("people")
	fill(t, people, `{"_id":"1","firstName":"Thomas","lastName":"Andersen","addresses":[{"line1":"100 Some Street",`+
		`"line2":"Unit 1","city":"Seattle","state":"WA","zip":98012}],"contactDetails":[{"email":"thomas@andersen.com"},{"phone":"+1 555 555-5555","extension":5555}]}`)
	cur, err := people.Find(
		bg, doc(t, `{"addresses.city":"Seattle","contactDetails":{"$elemMatch":{"extension":5555}}}`))
	if got := all(t, cur, err); len(got) != 1 {
		t.Fatal(got)
	}
	portfolio, stocks := db.Collection("portfolio"), db.Collection("stocks")
	fill(t, portfolio, `{"_id":"p","holdings":[{"numberHeld":100,"stockId":1},{"numberHeld":50,"stockId":2}]}`)
	fill(t, stocks, `{"_id":1,"symbol":"zaza","open":1,"high":2,"low":0.5,"vol":11970000,"mkt-cap":42000000,"pe":5.89}`,
		`{"_id":2,"symbol":"xcxc","open":89,"high":93.24,"low":88.87,"vol":2970200,"mkt-cap":1005000,"pe":75.82}`)
	cur, err = portfolio.Aggregate(
		bg,
		pipeline(
			t,
			`[{"$unwind":"$holdings"},{"$lookup":{"from":"stocks","localField":"holdings.stockId","foreignField":"_id","as":"s"}},
		{"$unwind":"$s"},{"$group":{"_id":"$_id","worth":{"$sum":{"$multiply":["$holdings.numberHeld","$s.open"]}}}}]`))
	wantDocs(t, all(t, cur, err), `{"_id":"p","worth":4550}`)
	authors, books := db.Collection("authors"), db.Collection("books")
	fill(t, authors, `{"_id":"a1","name":"Thomas Andersen","books":["b1","b2","b3"]}`,
		`{"_id":"a2","name":"William Wakefield","books":["b1","b4"]}`)
	fill(t, books, `{"_id":"b1","name":"Azure Cosmos DB 101","authors":["a1","a2"]}`, `{"_id":"b2","authors":["a1"]}`,
		`{"_id":"b3","authors":["a1"]}`, `{"_id":"b4","authors":["a2"]}`)
	if n, err := books.CountDocuments(bg, doc(t, `{"authors":"a1"}`)); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	_, err = authors.UpdateOne(bg, doc(t, `{"_id":"a2"}`), doc(t, `{"$addToSet":{"books":"b5"},`+
		`"$set":{"countOfBooks":3}}`))
	must(t, err)
	cur, err = authors.Find(bg, doc(t, `{"countOfBooks":3}`))
	wantDocs(t, all(t, cur, err), `{"_id":"a2","name":"William Wakefield","books":["b1","b4","b5"],"countOfBooks":3}`)
}

// TestForeignContainer: a container of another API is a collection like any other.
func TestForeignContainer(t *testing.T) {
	s := start(t)
	_, err := s.engine.CreateDatabase(bg, core.DatabaseSpec{ID: "db"})
	must(t, err)
	c, err := s.engine.CreateContainer(bg, "db",
		core.ContainerSpec{ID: "coll", Origin: "nosql", PartitionKey: core.PartitionKeyDef{
			Paths: []string{"/deviceId"}}})
	must(t, err)
	b, err := bson.Marshal(doc(t, `{"_id":"XMS-001-FE24C","deviceId":"XMS-0001","t":21.5}`))
	must(t, err)
	_, err = c.Write(bg, core.Write{Kind: core.Create, Doc: b})
	must(t, err)
	coll := s.client(t).Database("db").Collection("coll")
	cur, err := coll.Find(bg, doc(t, `{"_id":"XMS-001-FE24C","deviceId":"XMS-0001"}`))
	wantDocs(t, all(t, cur, err), `{"_id":"XMS-001-FE24C","deviceId":"XMS-0001","t":21.5}`)
	cur, err = coll.Find(bg, doc(t, `{"_id":"XMS-001-FE24C"}`))
	wantDocs(t, all(t, cur, err), `{"_id":"XMS-001-FE24C","deviceId":"XMS-0001","t":21.5}`)
	_, err = coll.UpdateOne(bg, doc(t, `{"_id":"XMS-001-FE24C"}`), doc(t, `{"$set":{"t":22}}`))
	must(t, err)
	it, err := c.Read(bg, core.PartitionKey{value.StringOf("XMS-0001")}, value.StringOf("XMS-001-FE24C"))
	if err != nil || value.ObjectOf(it.Doc).Get("t").Int() != 22 {
		t.Fatal(it, err)
	}
}
