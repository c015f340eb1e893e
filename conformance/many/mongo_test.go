package many

import (
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/orrerydb/orrery/core/kv/kvtest"
)

// fill creates the collection "db.c" with n documents {_id, g, tags}.
func (cl *cluster) fill(c *mongo.Client, n int) *mongo.Collection {
	docs := make([]any, n)
	for i := range docs {
		tags := bson.A{}
		for k := range i % 4 {
			tags = append(tags, fmt.Sprintf("t%d", k))
		}
		docs[i] = bson.M{"_id": i, "g": i % 13, "tags": tags}
	}
	coll := c.Database("db").Collection("c")
	_, err := coll.InsertMany(bg, docs)
	ok(cl.t, err)
	return coll
}

// The batches of a cursor come from different servers, and have all documents of the result in its order.
func TestBatchesOfACursor(t *testing.T) {
	for _, servers := range []int{2, 3} {
		cl := start(t, servers)
		coll := cl.fill(cl.client(""), 120)
		small := func() *options.FindOptionsBuilder { return options.Find().SetBatchSize(7) }
		finds := map[string]*options.FindOptionsBuilder{
			"all":              small(),
			"sorted":           small().SetSort(bson.D{{Key: "g", Value: -1}, {Key: "_id", Value: 1}}),
			"backwards":        small().SetSort(bson.D{{Key: "$natural", Value: -1}}),
			"skip and limit":   small().SetSkip(11).SetLimit(60),
			"projection":       small().SetProjection(bson.M{"g": 1}),
			"first batch of 0": options.Find().SetBatchSize(0),
		}
		for name, o := range finds {
			for _, filter := range []bson.M{{}, {"g": bson.M{"$gt": 3}}} {
				got, err := coll.Find(bg, filter, o)
				ok(t, err)
				one := options.Find().SetBatchSize(1000)
				one.Opts = append(one.Opts, o.Opts...)
				one.SetBatchSize(1000)
				want, err := coll.Find(bg, filter, one)
				ok(t, err)
				sameDocuments(t, name, got, want)
			}
		}
		for _, stages := range []string{
			`[{"$match": {"g": {"$lt": 9}}}, {"$sort": {"g": 1, "_id": 1}}, {"$project": {"g": 1}}]`,
			`[{"$unwind": "$tags"}, {"$addFields": {"x": {"$add": ["$g", 1]}}}]`,
			`[{"$lookup": {"from": "c", "localField": "g", "foreignField": "_id", "as": "of"}}, {"$unwind": "$of"}]`,
			`[{"$group": {"_id": "$_id", "n": {"$sum": "$g"}}}, {"$sort": {"n": 1, "_id": 1}}]`,
			`[{"$unwind": "$tags"}, {"$limit": 50}, {"$skip": 3}]`,
			`[{"$project": {"g": 1}}, {"$sort": {"g": -1, "_id": 1}}]`,
			`[{"$documents": [{"a": 1}, {"a": 2}, {"a": 3}, {"a": 4}, {"a": 5}, {"a": 6}, {"a": 7}, {"a": 8}]}]`,
		} {
			var read [2]*mongo.Cursor
			for i, size := range []int32{7, 1000} {
				var p bson.A
				ok(t, bson.UnmarshalExtJSON([]byte(stages), false, &p))
				var err error
				o := options.Aggregate().SetBatchSize(size)
				if read[i], err = coll.Aggregate(bg, p, o); strings.Contains(stages, "$documents") {
					read[i], err = coll.Database().Aggregate(bg, p, o)
				}
				ok(t, err)
			}
			sameDocuments(t, stages, read[0], read[1])
		}
	}
}

// sameDocuments compares what two cursors give. The first one needs several batches.
func sameDocuments(t *testing.T, name string, got, want *mongo.Cursor) {
	t.Helper()
	if got.ID() == 0 {
		t.Errorf("%s: one batch is enough", name)
	}
	var texts [2][]string
	for i, c := range []*mongo.Cursor{got, want} {
		for c.Next(bg) {
			texts[i] = append(texts[i], c.Current.String())
		}
		ok(t, c.Err())
	}
	if len(texts[1]) == 0 || !slices.Equal(texts[0], texts[1]) {
		t.Errorf("%s: in batches\n%q\nin one\n%q", name, texts[0], texts[1])
	}
}

// run runs a command at one server, on a connection of its own and without the driver, which would choose the session.
func (p *process) run(t *testing.T, cmd bson.D) (out bson.D) {
	t.Helper()
	return p.runOn(t, "db", cmd)
}

// runOn is run on a database.
func (p *process) runOn(t *testing.T, db string, cmd bson.D) (out bson.D) {
	t.Helper()
	doc, err := bson.Marshal(append(cmd, bson.E{Key: "$db", Value: db}))
	ok(t, err)
	c, err := net.Dial("tcp", p.addr)
	ok(t, err)
	defer c.Close()
	m := binary.LittleEndian.AppendUint32(nil, uint32(21+len(doc)))
	for _, n := range []uint32{1, 0, opMsg, 0} {
		m = binary.LittleEndian.AppendUint32(m, n)
	}
	_, err = c.Write(append(append(m, 0), doc...))
	ok(t, err)
	reply, _, err := readMessage(c)
	ok(t, err)
	ok(t, bson.Unmarshal(reply[21:], &out))
	return out
}

// codeOf returns the code of an error, 0 for a reply that is none.
func codeOf(reply bson.D) int32 {
	code, _ := field(reply, "code").(int32)
	return code
}

func field(d bson.D, name string) any {
	for _, e := range d {
		if e.Key == name {
			return e.Value
		}
	}
	return nil
}

// cursorOf opens a cursor with a first batch of 2 at one server.
func (p *process) cursorOf(t *testing.T) int64 {
	t.Helper()
	out := p.run(t, bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: 2}, {Key: "lsid", Value: session}})
	return field(field(out, "cursor").(bson.D), "id").(int64)
}

// session is a session's id.
var session = bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: []byte("0123456789abcdef")}}}

// A cursor is killed at another server than the one that reads it, alone, or with its session. A dropped collection
// ends it too. Afterwards no server has it.
func TestEndOfACursor(t *testing.T) {
	cl := start(t, 2)
	coll := cl.fill(cl.client(""), 20)
	a, b := cl.all[0], cl.all[1]
	more := func(p *process, id int64) int32 {
		return codeOf(p.run(t, bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "c"},
			{Key: "batchSize", Value: 2}, {Key: "lsid", Value: session}}))
	}
	for name, end := range map[string]func(id int64){
		"killCursors": func(id int64) {
			out := b.run(t, bson.D{{Key: "killCursors", Value: "c"}, {Key: "cursors", Value: bson.A{id, int64(5)}}})
			got := fmt.Sprint(field(out, "cursorsKilled"), field(out, "cursorsNotFound"))
			if got != fmt.Sprintf("[%d] [5]", id) {
				t.Errorf("killed and not found: %s", got)
			}
		},
		"endSessions": func(int64) {
			b.run(t, bson.D{{Key: "endSessions", Value: bson.A{session}}})
		},
		"read to the end": func(id int64) {
			for range 7 {
				if code := more(b, id); code != 0 {
					t.Errorf("getMore: %d", code)
				}
			}
		},
		"drop": func(int64) { ok(t, coll.Drop(bg)); cl.fill(cl.client(""), 20) },
	} {
		id := a.cursorOf(t)
		for i := range 2 {
			if code := more(cl.all[1-i%2], id); code != 0 {
				t.Errorf("getMore: %d", code)
			}
		}
		end(id)
		for i, p := range cl.all {
			if code := more(p, id); code != 43 && (name != "drop" || code != 26) { // CursorNotFound, NamespaceNotFound
				t.Errorf("after %s, server %d: %d", name, i, code)
			}
		}
	}
}

// Batches end at 16 MB, within what a stage has made of one document too, and within the stored result of a pipeline
// that must be computed completely.
func TestLargeBatches(t *testing.T) {
	cl := start(t, 2)
	coll := cl.client("").Database("db").Collection("c")
	large := strings.Repeat("x", 1<<20)
	for i := range 24 {
		_, err := coll.InsertOne(bg, bson.M{"_id": i, "text": large, "n": bson.A{1, 2}})
		ok(t, err)
	}
	for name, p := range map[string]bson.A{"plain": {}, "unwind": {bson.M{"$unwind": "$n"}},
		"added": {bson.M{"$addFields": bson.M{"more": 1}}},
		"grouped": {bson.M{"$group": bson.M{"_id": "$_id", "text": bson.M{"$first": "$text"}}},
			bson.M{"$sort": bson.M{"_id": 1}}}} {
		cur, err := coll.Aggregate(bg, p)
		ok(t, err)
		var got []int
		for cur.Next(bg) {
			got = append(got, int(cur.Current.Lookup("_id").Int32()))
		}
		ok(t, cur.Err())
		if distinct := len(slices.Compact(slices.Clone(got))); distinct != 24 || len(got) != 24 && len(got) != 48 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A retryable write that is repeated at another server gets the result of the first attempt, and is made once.
func TestRetriedWrites(t *testing.T) {
	cl := start(t, 2)
	coll := cl.client("").Database("db").Collection("c")
	for _, c := range []struct{ cmd, left string }{
		{`{"insert": "c", "documents": [{"_id": 1, "n": 1}]}`, `[{"_id":1,"n":1}]`},
		{`{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 10}}}]}`, `[{"_id":1,"n":11}]`},
		{`{"update": "c", "updates": [{"q": {"n": 11}, "u": {"$inc": {"n": 10}}}]}`, `[{"_id":1,"n":21}]`},
		{`{"findAndModify": "c", "query": {"n": 21}, "update": {"$inc": {"n": 10}}}`, `[{"_id":1,"n":31}]`},
		{`{"findAndModify": "c", "query": {"_id": 1}, "update": {"$inc": {"n": 10}}, "new": true}`,
			`[{"_id":1,"n":41}]`},
		{`{"findAndModify": "c", "query": {"n": 41}, "remove": true}`, `[]`},
		{`{"update": "c", "updates": [{"q": {"k": 5}, "u": {"$set": {"_id": 5}, "$inc": {"n": 1}}, "upsert": true}]}`,
			`[{"_id":5,"k":5,"n":1}]`},
		{`{"update": "c", "updates": [{"q": {"_id": 6}, "u": {"$inc": {"n": 1}}, "upsert": true},
			{"q": {"_id": 6}, "u": {"$inc": {"n": 1}}}, {"q": {"_id": 5}, "u": {"$inc": {"n": 1}}}]}`,
			`[{"_id":5,"k":5,"n":2},{"_id":6,"n":2}]`},
		{`{"delete": "c", "deletes": [{"q": {"n": 2}, "limit": 1}]}`, `[{"_id":6,"n":2}]`},
		{`{"insert": "c", "documents": [{"_id": 7}, {"_id": 8}, {"_id": 6}, {"_id": 9}]}`,
			`[{"_id":6,"n":2},{"_id":7},{"_id":8}]`},
		{`{"insert": "c", "documents": [{"_id": 10}, {"_id": 7}, {"_id": 11}], "ordered": false}`,
			`[{"_id":6,"n":2},{"_id":7},{"_id":8},{"_id":10},{"_id":11}]`},
		{`{"update": "c", "updates": [{"q": {"_id": 1000}, "u": {"$inc": {"n": 1}}}]}`,
			`[{"_id":6,"n":2},{"_id":7},{"_id":8},{"_id":10},{"_id":11}]`},
	} {
		var cmd bson.D
		ok(t, bson.UnmarshalExtJSON([]byte(c.cmd), false, &cmd))
		number++
		cmd = append(cmd, bson.E{Key: "lsid", Value: session}, bson.E{Key: "txnNumber", Value: number})
		var replies [3]string
		for i := range replies {
			reply := untimed(cl.all[i%2].run(t, cmd))
			said := len(reply)
			reply = slices.DeleteFunc(reply, func(e bson.E) bool {
				return e.Key == "retriedStmtIds" || e.Key == "retriedStmtId"
			})
			if said = said - len(reply); i == 0 && said > 0 || i == 2 && said == 0 {
				t.Errorf("%s: reply %d names %d lists of repeated statements", c.cmd, i, said)
			}
			replies[i] = extended(t, reply)
		}
		if replies[1] != replies[0] || replies[2] != replies[0] {
			t.Errorf("%s: three replies\n%s", c.cmd, strings.Join(replies[:], "\n"))
		}
		cur, err := coll.Find(bg, bson.M{}, options.Find().SetSort(bson.M{"_id": 1}))
		ok(t, err)
		docs := []bson.D{}
		ok(t, cur.All(bg, &docs))
		if got := extended(t, bson.M{"docs": docs}); got != `{"docs":`+c.left+`}` {
			t.Errorf("%s: afterwards %s", c.cmd, got)
		}
	}
	// The session has gone on, which the other server learns from the store.
	for _, w := range []struct {
		server int
		txn    int64
		code   int32
	}{{0, number + 1, 0}, {0, number + 2, 0}, {1, number + 1, 225}} { // TransactionTooOld
		code := codeOf(cl.all[w.server].run(t, bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{
			bson.M{"q": bson.M{"_id": 6}, "u": bson.M{"$inc": bson.M{"n": 1}}}}}, {Key: "lsid", Value: session},
			{Key: "txnNumber", Value: w.txn}}))
		if code != w.code {
			t.Errorf("write %d at server %d: %d, not %d", w.txn-number, w.server, code, w.code)
		}
	}
}

// number is the last transaction number of the session.
var number int64

// extended returns a document as relaxed Extended JSON.
// untimed returns a reply without the cluster time, which is that of the reply and not of the write.
func untimed(reply bson.D) bson.D {
	return slices.DeleteFunc(reply, func(e bson.E) bool { return e.Key == "$clusterTime" || e.Key == "operationTime" })
}

func extended(t *testing.T, v any) string {
	b, err := bson.MarshalExtJSON(v, false, false)
	ok(t, err)
	return string(b)
}

// Drivers repeat retryable writes whose outcome is unknown, at whatever server the repetition gets to. Each write that
// they report as made was made once.
func TestRetriesOfTheDriver(t *testing.T) {
	cl := start(t, 3)
	c := cl.client("retryWrites=true")
	coll := cl.fill(c, 5)
	cl.store.SetFaults(kvtest.Faults{Unknown: 0.1, Late: time.Millisecond})
	defer cl.store.SetFaults(kvtest.Faults{})
	made, failed := 0, 0
	for range 200 {
		_, err := coll.UpdateOne(bg, bson.M{"_id": 1}, bson.M{"$inc": bson.M{"n": 1}})
		if err == nil {
			made++
		} else {
			failed++
		}
	}
	cl.store.SetFaults(kvtest.Faults{})
	var d struct{ N int }
	ok(t, coll.FindOne(bg, bson.M{"_id": 1}).Decode(&d))
	if made < 150 || d.N < made || d.N > made+failed {
		t.Errorf("n is %d after %d writes; %d more have failed", d.N, made, failed)
	}
}
