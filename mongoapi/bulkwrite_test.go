package mongoapi

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Results that don't fit into the first batch are read by getMore, under the name of the command, also in
// a transaction.
func TestBulkWriteResultsInBatches(t *testing.T) {
	_, addr := serve(t, Options{}, nil)
	c := connect(t, addr)
	in := bson.D{{Key: "lsid", Value: sessionID("a")}, {Key: "txnNumber", Value: int64(1)},
		{Key: "autocommit", Value: false}}
	for _, with := range []bson.D{nil, in} {
		var ops bson.A
		for n := range 5 {
			d := bson.M{"_id": n + 10*len(with)}
			ops = append(ops, bson.D{{Key: "insert", Value: 0}, {Key: "document", Value: d}})
		}
		cmd := bson.D{{Key: "bulkWrite", Value: 1}, {Key: "ops", Value: ops},
			{Key: "nsInfo", Value: bson.A{bson.M{"ns": "db.c"}}}, {Key: "cursor", Value: bson.M{"batchSize": 0}},
			{Key: "$db", Value: "admin"}}
		if with != nil {
			cmd = append(cmd, bson.E{Key: "startTransaction", Value: true})
		}
		var reply struct {
			Inserted int32 `bson:"nInserted"`
			Cursor   struct {
				ID    int64
				First []bson.M `bson:"firstBatch"`
				Next  []bson.M `bson:"nextBatch"`
			}
		}
		decode := func(d bson.D) {
			t.Helper()
			reply.Cursor.First, reply.Cursor.Next = nil, nil
			raw, e := c.ask(append(d, with...))
			if err := bson.Unmarshal(raw, &reply); err != nil || e.OK != 1 {
				t.Fatal(err, e)
			}
		}
		decode(cmd)
		if reply.Inserted != 5 || reply.Cursor.ID == 0 || len(reply.Cursor.First) != 0 {
			t.Fatalf("the command answers %+v", reply)
		}
		for _, want := range []int{2, 3} {
			decode(bson.D{{Key: "getMore", Value: reply.Cursor.ID}, {Key: "collection", Value: bulkCollection},
				{Key: "batchSize", Value: want}, {Key: "$db", Value: "admin"}})
			if len(reply.Cursor.Next) != want || (reply.Cursor.ID == 0) != (want == 3) {
				t.Errorf("a batch of %d: %+v", want, reply.Cursor)
			}
		}
	}
}
