package model

import (
	"errors"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/orrerydb/orrery/conformance/harness"
)

// provisioned is a container, or a database, in the two APIs that show a throughput. Table and Gremlin have no request
// for it.
type provisioned struct {
	s        *harness.Server
	database string
	coll     string // "": the database
}

// shown returns the throughput as each of the two APIs tells it: m400 is manual, a4000 scales up to that.
func (p provisioned) shown(t *testing.T) (sql, mongo string) {
	t.Helper()
	db, err := p.s.SQL.NewDatabase(p.database)
	ok(t, err)
	var th azcosmos.ThroughputResponse
	cmd := bson.D{{Key: "customAction", Value: "GetDatabase"}}
	if p.coll == "" {
		th, err = db.ReadThroughput(bg, nil)
	} else {
		c, cerr := db.NewContainer(p.coll)
		ok(t, cerr)
		th, err = c.ReadThroughput(bg, nil)
		cmd = bson.D{{Key: "customAction", Value: "GetCollection"}, {Key: "collection", Value: p.coll}}
	}
	ok(t, err)
	if n, is := th.ThroughputProperties.AutoscaleMaxThroughput(); is {
		sql = fmt.Sprint("a", n)
	} else if n, is := th.ThroughputProperties.ManualThroughput(); is { // of autoscale: what it has at the moment
		sql = fmt.Sprint("m", n)
	}
	var reply struct {
		Manual int `bson:"provisionedThroughput"`
		Auto   struct {
			Max int `bson:"maxThroughput"`
		} `bson:"autoScaleSettings"`
	}
	ok(t, p.s.Mongo.Database(p.database).RunCommand(bg, cmd).Decode(&reply))
	if reply.Auto.Max > 0 {
		return sql, fmt.Sprint("a", reply.Auto.Max)
	}
	return sql, fmt.Sprint("m", reply.Manual)
}

// P7, P10: a throughput that one API sets, manual or autoscale, is what the others show, and what decides the number of
// partitions.
func TestP7ThroughputSeenByTheOthers(t *testing.T) {
	s := harness.Start(t)
	db := s.Database(t)
	m := s.Mongo.Database(db.ID())
	run := func(action, coll string, more ...bson.E) error {
		cmd := bson.D{{Key: "customAction", Value: action}}
		if coll != "" {
			cmd = append(cmd, bson.E{Key: "collection", Value: coll})
		}
		return m.RunCommand(bg, append(cmd, more...)).Err()
	}
	manual := func(n int) bson.E { return bson.E{Key: "offerThroughput", Value: n} }
	auto := func(n int) bson.E {
		return bson.E{Key: "autoScaleSettings", Value: bson.D{{Key: "maxThroughput", Value: n}}}
	}
	shard := bson.E{Key: "shardKey", Value: "k"}
	is := func(step, database, coll, want string, partitions int) {
		t.Helper()
		p := provisioned{s, database, coll}
		if sql, mongo := p.shown(t); sql != want || mongo != want {
			t.Errorf("%s: NoSQL shows %s, MongoDB %s, want %s", step, sql, mongo, want)
		}
		if coll != "" {
			wait(t, step, func() bool { return len(bars(t, s, database, coll)) == partitions })
		}
	}
	c := harness.Container(t, db, "bySQL", 12000, "/k")
	is("created by NoSQL", db.ID(), "bySQL", "m12000", 2)
	ok(t, run("UpdateCollection", "bySQL", manual(24000)))
	is("raised by MongoDB", db.ID(), "bySQL", "m24000", 3)
	ok(t, run("UpdateCollection", "bySQL", auto(30000)))
	is("made autoscale by MongoDB", db.ID(), "bySQL", "a30000", 3)
	_, err := c.ReplaceThroughput(bg, azcosmos.NewAutoscaleThroughputProperties(41000), nil)
	ok(t, err)
	is("raised by NoSQL", db.ID(), "bySQL", "a41000", 5)
	ok(t, run("UpdateCollection", "bySQL", manual(500)))
	is("made manual by MongoDB", db.ID(), "bySQL", "m500", 5)

	ok(t, run("CreateCollection", "byMongo", shard, auto(20000)))
	is("created by MongoDB", db.ID(), "byMongo", "a20000", 2)
	byMongo, err := db.NewContainer("byMongo")
	ok(t, err)
	_, err = byMongo.ReplaceThroughput(bg, azcosmos.NewAutoscaleThroughputProperties(4000), nil)
	ok(t, err)
	is("lowered by NoSQL", db.ID(), "byMongo", "a4000", 2)

	_, err = s.Tables.NewClient("things").CreateTable(policyHeader("x-ms-offer-throughput", "11000"), nil)
	ok(t, err)
	is("created by Table", "TablesDB", "things", "m11000", 2)
	ok(t, s.Mongo.Database("TablesDB").RunCommand(bg, bson.D{{Key: "customAction", Value: "UpdateCollection"},
		{Key: "collection", Value: "things"}, auto(21000)}).Err())
	is("a table changed by MongoDB", "TablesDB", "things", "a21000", 3)

	ok(t, run("UpdateDatabase", "", manual(700)))
	is("of the database, by MongoDB", db.ID(), "", "m700", 0)
	_, err = db.ReplaceThroughput(bg, azcosmos.NewManualThroughputProperties(1500), nil)
	ok(t, err)
	is("of the database, by NoSQL", db.ID(), "", "m1500", 0)

	// What is refused changes nothing, in either API.
	for _, n := range []int32{-1, 0, 399, 450, 1000100} {
		_, err := byMongo.ReplaceThroughput(bg, azcosmos.NewManualThroughputProperties(n), nil)
		refused(t, err, 400)
		_, err = db.ReplaceThroughput(bg, azcosmos.NewManualThroughputProperties(n), nil)
		refused(t, err, 400)
		var ce mongo.CommandError
		if err := run("UpdateCollection", "byMongo", manual(int(n))); !errors.As(err, &ce) || ce.Code != 2 {
			t.Errorf("%d RU/s by MongoDB: %v", n, err)
		}
	}
	is("after refusals", db.ID(), "byMongo", "a4000", 2)
	is("after refusals", db.ID(), "", "m1500", 0)
}

// P10, P14: containers without a throughput of their own share that of their database, whichever API made them and
// whichever uses it. One with its own isn't affected.
func TestP14SharedThroughput(t *testing.T) {
	s, clk := limited(t)
	tp := azcosmos.NewManualThroughputProperties(400)
	name := harness.Unique("shared")
	_, err := s.SQL.CreateDatabase(bg, azcosmos.DatabaseProperties{ID: name},
		&azcosmos.CreateDatabaseOptions{ThroughputProperties: &tp})
	ok(t, err)
	db, err := s.SQL.NewDatabase(name)
	ok(t, err)
	bySQL := harness.Container(t, db, "bySQL", 0, "/k")
	own := harness.Container(t, db, "own", 400, "/k")
	m := s.Mongo.Database(name)
	ok(t, m.RunCommand(bg, bson.D{{Key: "customAction", Value: "CreateCollection"},
		{Key: "collection", Value: "byMongo"}, {Key: "shardKey", Value: "k"}}).Err())
	graph := s.Gremlin(t, name, "bySQL")
	_, err = harness.Submit(graph, "g.V().limit(1)") // the login isn't part of the test
	ok(t, err)
	for _, c := range []string{"bySQL", "byMongo"} {
		ct, err := db.NewContainer(c)
		ok(t, err)
		_, err = ct.ReadThroughput(bg, nil)
		if err == nil {
			t.Errorf("%s has a throughput of its own", c)
		}
	}
	clk.Advance(time.Minute)
	until(t, func(i int) error {
		d := bson.D{{Key: "_id", Value: i}, {Key: "k", Value: fmt.Sprint(i)}}
		_, err := m.Collection("byMongo").InsertOne(bg, d)
		return err
	})
	_, err = bySQL.CreateItem(bg, str("a"), []byte(`{"id":"1","k":"a"}`), nil)
	refused(t, err, 429)
	_, err = harness.Submit(graph, "g.addV('v').property('id', '1').property('k', 'a')")
	if statusOfGremlin(err) != 429 {
		t.Errorf("by Gremlin: %v", err)
	}
	_, err = s.Tables.NewClient(name+".bySQL").AddEntity(bg, []byte(`{"PartitionKey":"a","RowKey":"1"}`), nil)
	refused(t, err, 429)
	_, err = own.CreateItem(bg, str("a"), []byte(`{"id":"1","k":"a"}`), nil)
	ok(t, err)
	clk.Advance(time.Second)
	_, err = bySQL.CreateItem(bg, str("a"), []byte(`{"id":"1","k":"a"}`), nil)
	ok(t, err)
	until(t, func(i int) error {
		_, err := bySQL.UpsertItem(bg, str("a"), []byte(`{"id":"1","k":"a"}`), nil)
		return err
	})
	var ce mongo.CommandError
	if err := m.Collection("byMongo").FindOne(bg, bson.D{}).Err(); !errors.As(err, &ce) || ce.Code != 16500 {
		t.Errorf("by MongoDB: %v", err)
	}
	// More throughput is there at once.
	_, err = db.ReplaceThroughput(bg, azcosmos.NewManualThroughputProperties(10000), nil)
	ok(t, err)
	clk.Advance(100 * time.Millisecond) // 1,000 RU
	for i := range 150 {
		_, err := bySQL.UpsertItem(bg, str("a"), fmt.Appendf(nil, `{"id":"%d","k":"a"}`, i), nil)
		ok(t, err)
	}
}

// statusOfGremlin returns the service's status of a script's error, as it is in the driver's text; 0 if there is none.
func statusOfGremlin(err error) (code int) {
	if err == nil {
		return 0
	}
	if m := gremlinStatus.FindStringSubmatch(err.Error()); m != nil {
		fmt.Sscan(m[1], &code)
	}
	return code
}

var gremlinStatus = regexp.MustCompile(`x-ms-status-code:(\d+)`)
