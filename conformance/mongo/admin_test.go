package mongo

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

func run(t *testing.T, db *mongo.Database, cmd string) bson.M {
	t.Helper()
	var m bson.M
	must(t, db.RunCommand(bg, doc(t, cmd)).Decode(&m))
	return m
}

func TestIndexes(t *testing.T) {
	c := start(t).client(t).Database("db").Collection("c")
	wantCode(t, c.Database().RunCommand(bg, doc(t, `{"listIndexes":"c"}`)).Err(), 26)
	fill(t, c, `{"_id":1,"a":1}`)
	name, err := c.Indexes().CreateOne(bg, mongo.IndexModel{Keys: doc(t, `{"a":1,"b":-1}`)})
	if name != "a_1_b_-1" || err != nil {
		t.Fatal(name, err)
	}
	_, err = c.Indexes().CreateMany(bg, []mongo.IndexModel{
		{Keys: doc(t, `{"a":1,"b":-1}`)}, {Keys: doc(t, `{"$**":1}`)}})
	must(t, err)
	specs, err := c.Indexes().ListSpecifications(bg)
	must(t, err)
	if len(specs) != 3 || specs[0].Name != "_id_" || specs[1].Name != "a_1_b_-1" || specs[2].Name != "$**_1" {
		t.Fatal(specs)
	}
	_, err = c.Indexes().CreateOne(bg, mongo.IndexModel{Keys: doc(t, `{"u":"geoHaystack"}`)})
	wantCode(t, err, 67)
	_, err = c.Indexes().CreateOne(bg, mongo.IndexModel{
		Keys: doc(t, `{"z":1}`), Options: options.Index().SetName("a_1_b_-1")})
	wantCode(t, err, 86)
	_, err = c.Indexes().CreateOne(bg, mongo.IndexModel{
		Keys: doc(t, `{"a":1,"b":-1}`), Options: options.Index().SetName("other")})
	wantCode(t, err, 85)
	must(t, c.Indexes().DropOne(bg, "a_1_b_-1"))
	wantCode(t, c.Indexes().DropOne(bg, "nope"), 27)
	wantCode(t, c.Indexes().DropOne(bg, "_id_"), 72)
	must(t, c.Indexes().DropAll(bg))
	if specs, err = c.Indexes().ListSpecifications(bg); err != nil || len(specs) != 1 {
		t.Fatal(specs, err)
	}
}

// TestTTL: documents expire by the time of their last write, as in the service.
func TestTTL(t *testing.T) {
	s := start(t)
	c := s.client(t).Database("db").Collection("c")
	_, err := c.Indexes().CreateOne(bg, mongo.IndexModel{
		Keys: doc(t, `{"_ts":1}`), Options: options.Index().SetExpireAfterSeconds(10)})
	must(t, err)
	fill(t, c, `{"_id":1}`)
	s.engine.Clock().Advance(9 * time.Second)
	if n, err := c.CountDocuments(bg, bson.D{}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	s.engine.Clock().Advance(2 * time.Second)
	if n, err := c.CountDocuments(bg, bson.D{}); n != 0 || err != nil {
		t.Fatal(n, err)
	}
}

func TestCollections(t *testing.T) {
	cl := start(t).client(t)
	db := cl.Database("db")
	must(t, db.CreateCollection(bg, "a"))
	must(t, db.CreateCollection(bg, "a"))
	fill(t, db.Collection("b"), `{"_id":1}`)
	names, err := db.ListCollectionNames(bg, bson.D{})
	if err != nil || len(names) != 2 {
		t.Fatal(names, err)
	}
	if names, err = db.ListCollectionNames(bg, doc(t, `{"name":"b"}`)); err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	must(t, cl.Database("admin").RunCommand(bg, doc(t, `{"renameCollection":"db.b","to":"db.c"}`)).Err())
	wantCode(t, cl.Database("admin").RunCommand(bg, doc(t, `{"renameCollection":"db.c","to":"db.a"}`)).Err(), 48)
	wantCode(t, cl.Database("admin").RunCommand(bg, doc(t, `{"renameCollection":"db.x","to":"db.y"}`)).Err(), 26)
	if n, err := db.Collection("c").CountDocuments(bg, bson.D{}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	dbs, err := cl.ListDatabaseNames(bg, bson.D{})
	if err != nil || len(dbs) != 1 || dbs[0] != "db" {
		t.Fatal(dbs, err)
	}
	must(t, db.Collection("a").Drop(bg))
	must(t, db.Collection("a").Drop(bg))
	must(t, db.CreateCollection(bg, "capped", options.CreateCollection().SetCapped(true).SetSizeInBytes(1000)))
	wantCode(t, db.CreateCollection(bg, "capped", options.CreateCollection().SetCapped(true).SetSizeInBytes(9000)), 48)
	wantCode(t, db.RunCommand(bg, doc(t, `{"insert":"a$b","documents":[{"_id":1}]}`)).Err(), 73)
	must(t, db.Drop(bg))
	if dbs, err = cl.ListDatabaseNames(bg, bson.D{}); err != nil || len(dbs) != 0 {
		t.Fatal(dbs, err)
	}
}

func TestServerCommands(t *testing.T) {
	cl := start(t).client(t)
	admin, db := cl.Database("admin"), cl.Database("db")
	fill(t, db.Collection("c"), `{"_id":1,"a":1}`)
	hello := run(t, admin, `{"hello":1}`)
	if hello["setName"] != "globaldb" || hello["maxWireVersion"] != int32(21) || hello["isWritablePrimary"] != true {
		t.Fatal(hello)
	}
	for cmd, field := range map[string]string{
		`{"ping":1}`: "ok", `{"buildInfo":1}`: "versionArray", `{"getLog":"startupWarnings"}`: "log", `{"hostInfo":1}`: "system",
		`{"getParameter":1,"featureCompatibilityVersion":1}`: "featureCompatibilityVersion", `{"serverStatus":1}`: "connections",
		`{"connectionStatus":1}`: "authInfo", `{"getCmdLineOpts":1}`: "parsed", `{"whatsmyuri":1}`: "you", `{"listCommands":1}`: "commands",
		`{"listDatabases":1}`: "databases", `{"currentOp":1}`: "inprog", `{"replSetGetStatus":1}`: "members", `{"startSession":1}`: "id",
	} {
		if m := run(t, admin, cmd); m[field] == nil {
			t.Errorf("%s: no %s in %v", cmd, field, m)
		}
	}
	for cmd, code := range map[string]int{`{"atlasVersion":1}`: 59, `{"nope":1}`: 59, `{"applyOps":1}`: 115,
		`{"getParameter":"foo"}`: 72, `{"mapReduce":"c","map":"f","reduce":"g","out":{"inline":1}}`: 31264,
		`{"commitTransaction":1}`: 125} {
		wantCode(t, admin.RunCommand(bg, doc(t, cmd)).Err(), code)
	}
	if m := run(t, db, `{"dbStats":1}`); m["objects"] != int64(1) || m["collections"] != int64(1) {
		t.Fatal(m)
	}
	if m := run(t, db, `{"collStats":"c"}`); m["count"] != int32(1) {
		t.Fatal(m)
	}
	cur, err := db.Collection("c").Aggregate(bg, pipeline(t, `[{"$collStats":{"storageStats":{},"count":{}}}]`))
	if got := all(t, cur, err); len(got) != 1 {
		t.Fatal(got)
	}
	// The driver's own connections ask how the server is.
	ops := pipeline(t, `[{"$currentOp":{"allUsers":true,"truncateOps":false}},
		{"$match":{"active":true,"command.helloOk":null}}]`)
	cur, err = db.Client().Database("admin").Aggregate(bg, ops)
	if got := all(t, cur, err); len(got) != 1 || !strings.Contains(text(got[0]), `"command":{"aggregate":`) {
		t.Fatal("nothing runs but the question", got)
	}
	_, err = db.Aggregate(bg, ops)
	wantCode(t, err, 73)
}

// TestExplainStages: a plan has the stages of the real server, and executionStats what they did.
func TestExplainStages(t *testing.T) {
	db := start(t).client(t).Database("db")
	items := []string{`{"_id":1,"a":1,"b":1}`, `{"_id":2,"a":1,"b":2}`, `{"_id":3,"a":2,"b":1}`}
	for i := 4; i <= 60; i++ {
		items = append(items, fmt.Sprintf(`{"_id":%d,"a":9,"b":9}`, i))
	}
	fill(t, db.Collection("c"), items...)
	type stage struct {
		Stage                             string
		NReturned, DocsExamined, NCounted int64
		KeysExamined                      int64
		KeyPattern                        bson.D
		InputStage                        *stage
		InputStages                       []stage
	}
	var names func(s *stage) string
	names = func(s *stage) string {
		switch {
		case s.InputStage != nil:
			return s.Stage + " " + names(s.InputStage)
		case len(s.InputStages) > 0:
			return fmt.Sprintf("%s of %d", s.Stage, len(s.InputStages))
		}
		return s.Stage
	}
	for _, x := range []struct {
		command, stages string
		returned, docs  int64
	}{
		{`{"find":"c","filter":{"_id":1}}`, "IDHACK", 1, 1},
		{`{"find":"c","filter":{"a":1}}`, "FETCH IXSCAN", 2, 2},
		{`{"find":"c","filter":{"a":1,"b":1}}`, "FETCH IXSCAN", 1, 2},
		{`{"find":"c","filter":{"$or":[{"a":2},{"b":2}]}}`, "FETCH OR of 2", 2, 2},
		{`{"find":"c"}`, "COLLSCAN", 60, 60},
		{`{"find":"c","limit":2}`, "LIMIT COLLSCAN", 2, 2},
		{`{"find":"c","filter":{"a":1},"sort":{"b":1}}`, "SORT FETCH IXSCAN", 2, 2},
		{`{"count":"c","query":{"a":1}}`, "COUNT PROJECTION_COVERED IXSCAN", 0, 0},
		{`{"update":"c","updates":[{"q":{"a":1},"u":{"$set":{"b":7}}}]}`, "UPDATE FETCH IXSCAN", 0, 2},
		{`{"delete":"c","deletes":[{"q":{"a":1},"limit":0}]}`, "DELETE FETCH IXSCAN", 0, 2},
		{`{"find":"nothing"}`, "EOF", 0, 0},
	} {
		var e struct {
			QueryPlanner struct {
				WinningPlan   stage
				RejectedPlans []stage
			}
			ExecutionStats struct {
				NReturned, TotalDocsExamined int64
				ExecutionSuccess             bool
				ExecutionStages              stage
			}
		}
		b, _ := bson.Marshal(run(t, db, `{"explain":`+x.command+`,"verbosity":"executionStats"}`))
		must(t, bson.Unmarshal(b, &e))
		if got := names(&e.QueryPlanner.WinningPlan); got != x.stages {
			t.Errorf("%s: %s, want %s", x.command, got, x.stages)
		}
		if s := &e.ExecutionStats; names(&s.ExecutionStages) != x.stages || !s.ExecutionSuccess ||
			s.NReturned != x.returned || s.TotalDocsExamined != x.docs {
			t.Errorf("%s: %+v, want %d of %d documents", x.command, *s, x.returned, x.docs)
		}
		if p := &e.QueryPlanner.WinningPlan; x.stages == "FETCH IXSCAN" && (len(e.QueryPlanner.RejectedPlans) == 0 ||
			len(p.InputStage.KeyPattern) != 1) {
			t.Errorf("%s: %+v", x.command, e.QueryPlanner)
		}
		if m := run(t, db, `{"explain":`+x.command+`,"verbosity":"queryPlanner"}`); m["executionStats"] != nil {
			t.Errorf("%s: it was run", x.command)
		}
	}
	if n, err := db.Collection("c").CountDocuments(bg, bson.D{{Key: "b", Value: 7}}); n != 0 || err != nil {
		t.Errorf("explain has changed %d documents (%v)", n, err)
	}
}

// TestLastRequestStatistics: the charge of the previous operation on the same connection.
func TestLastRequestStatistics(t *testing.T) {
	c := dial(t, start(t).uri("directConnection=true&maxPoolSize=1"))
	db := c.Database("db")
	fill(t, db.Collection("c"), `{"_id":1}`)
	must(t, db.Collection("c").FindOne(bg, doc(t, `{"_id":1}`)).Err())
	m := run(t, db, `{"getLastRequestStatistics":1}`)
	if m["CommandName"] != "find" || m["RequestCharge"].(float64) < 1 {
		t.Fatal(m)
	}
}

func TestSessions(t *testing.T) {
	s := start(t)
	c := dial(t, s.uri("replicaSet=globaldb&retryWrites=true"))
	coll := c.Database("db").Collection("c")
	_, err := coll.InsertOne(bg, doc(t, `{"_id":1}`))
	must(t, err)
	t.Run("a repeated write gives the first reply", func(t *testing.T) {
		sess, err := c.StartSession()
		must(t, err)
		defer sess.EndSession(bg)
		ctx := mongo.NewSessionContext(bg, sess)
		cmd := bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 7}}}},
			{Key: "txnNumber", Value: int64(5)}}
		for range 2 {
			var m bson.M
			must(t, c.Database("db").RunCommand(ctx, cmd).Decode(&m))
			if m["n"] != int32(1) || m["writeErrors"] != nil {
				t.Fatal(m)
			}
		}
		cmd[2].Value = int64(4)
		wantCode(t, c.Database("db").RunCommand(ctx, cmd).Err(), 225)
	})
	t.Run("transactions refuse commands that can't be part of one", func(t *testing.T) {
		c := s.client(t) // the commands above have used numbers of the other client's session
		coll := c.Database("db").Collection(coll.Name())
		sess, err := c.StartSession()
		must(t, err)
		defer sess.EndSession(bg)
		_, err = sess.WithTransaction(bg, func(ctx context.Context) (any, error) {
			if _, err := coll.InsertOne(ctx, doc(t, `{"_id":99}`)); err != nil {
				return nil, err
			}
			return coll.Aggregate(ctx, pipeline(t, `[{"$out": "other"}]`))
		})
		wantCode(t, err, 263)
		if n, err := coll.CountDocuments(bg, doc(t, `{"_id":99}`)); n != 0 || err != nil {
			t.Fatal(n, err)
		}
	})
}

// TestBadMessages: a malformed message ends the connection, a valid one with a faulty command gets an error, and a
// browser is told that the port is wrong. The server keeps running.
func TestBadMessages(t *testing.T) {
	s := start(t)
	msg := func(op uint32, body ...byte) []byte {
		b := binary.LittleEndian.AppendUint32(nil, uint32(16+len(body)))
		b = append(b, 1, 0, 0, 0, 0, 0, 0, 0)
		return append(binary.LittleEndian.AppendUint32(b, op), body...)
	}
	for _, c := range []struct {
		name    string
		in      []byte
		answers bool
	}{
		{"HTTP that changes something", []byte("POST / HTTP/1.1\r\nHost: x\r\n\r\n"), false},
		{"HTTP", []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), true}, // in HTTP
		{"length 0", make([]byte, 16), false},
		{"huge length", []byte{0xFF, 0xFF, 0xFF, 0x7F, 0, 0, 0, 0, 0, 0, 0, 0, 0xDD, 7, 0, 0}, false},
		{"unknown opcode", msg(2001, 1, 2, 3), false},
		{"OP_MSG without body", msg(2013, 0, 0, 0, 0), true},
		{"OP_MSG with broken BSON", msg(2013, 0, 0, 0, 0, 0, 9, 0, 0, 0, 2, 'a', 0, 9, 0), true},
		{"OP_MSG with an empty document", msg(2013, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			nc, err := net.Dial("tcp", s.addr)
			must(t, err)
			defer nc.Close()
			must(t, nc.SetDeadline(time.Now().Add(5*time.Second)))
			_, err = nc.Write(c.in)
			must(t, err)
			n, err := io.ReadFull(nc, make([]byte, 16))
			if answered := n == 16 && err == nil; answered != c.answers {
				t.Fatalf("%d bytes, %v", n, err)
			}
		})
	}
	must(t, s.client(t).Ping(bg, nil))
}
