package mongo

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

// TestArguments: options of a driver are applied, or refused with the server's code.
func TestArguments(t *testing.T) {
	db := start(t).client(t).Database("db")
	c := db.Collection("c")
	fill(t, c, `{"_id":1,"n":1,"a":5,"l":[1,2]}`, `{"_id":2,"n":2}`, `{"_id":3,"n":3}`)
	var out struct{ Value bson.M }
	must(
		t,
		db.RunCommand(
			bg,
			doc(t, `{"findAndModify":"c","query":{"_id":1},"update":{"$inc":{"n":10}},"new":1}`),
		).Decode(&out),
	)
	if out.Value["n"] != int32(11) {
		t.Errorf("new: 1 shows %v", out.Value)
	}
	for _, x := range []struct {
		command string
		code    int
	}{
		{`{"insert":"c","documents":[{}],"ordered":0}`, 14},
		{`{"update":"c","updates":[{"q":{},"u":{"$set":{"x":1}},"multi":1}]}`, 14},
		{`{"update":"c","updates":[{"q":{},"u":{"$set":{"x":1}},"upsert":1}]}`, 14},
		{`{"find":"c","sort":1}`, 14}, {`{"find":"c","nope":1}`, 40415}, {`{"find":"c","singleBatch":"x"}`, 14},
		{`{"find":"c","hint":1}`, 9},
		{`{"count":"c","query":[]}`, 14}, {`{"distinct":"c","key":1}`, 14},
		{`{"aggregate":"c","pipeline":{},"cursor":{}}`, 14},
		{`{"findAndModify":"c","remove":"x"}`, 14}, {`{"delete":"c","deletes":[{"q":{},"limit":1,"nope":1}]}`, 40415},
		{`{"find":"c","readConcern":{"level":"nope"}}`, 9}, {`{"find":"c","hint":"nope"}`, 2},
		{`{"update":"c","updates":[{"q":{"_id":1},"u":{"$pop":{"a.b":1}}}]}`, 28},
		{`{"update":"c","updates":[{"q":{"_id":1},"u":{"$pull":{"a.b":1}}}]}`, 28},
		{`{"update":"c","updates":[{"q":{"_id":2},"u":{"$set":{"x":1}},"hint":"nope"}]}`, 2},
	} {
		wantCode(t, db.RunCommand(bg, doc(t, x.command)).Err(), x.code)
	}
	if n, err := c.CountDocuments(bg, bson.M{"x": 1}); n != 0 || err != nil {
		t.Errorf("%d documents were changed by what was refused, %v", n, err)
	}
	cur, err := c.Find(bg, bson.M{}, options.Find().SetHint(bson.D{{Key: "b", Value: 1}}))
	if err == nil {
		_ = cur.Close(bg)
	}
	wantCode(t, err, 2)
	_, err = c.UpdateOne(bg, bson.M{"_id": 1}, bson.M{"$pop": bson.M{"a.b": 1}})
	wantCode(t, err, 28)
	snap := db.Collection("c", options.Collection().SetReadConcern(readconcern.Snapshot()))
	must(t, snap.FindOne(bg, bson.M{}).Err())
	_, err = snap.InsertOne(bg, bson.M{}) // the driver sends no read concern with a write
	must(t, err)
	_, err = snap.EstimatedDocumentCount(bg)
	wantCode(t, err, 72)
}

// TestWriteConcernThatCantBeMet: the write is done, and the driver gets an error about the write concern.
func TestWriteConcernThatCantBeMet(t *testing.T) {
	db := start(t).client(t).Database("db")
	for i, x := range []struct {
		w    any
		code int
	}{{50, 100}, {2, 100}, {"rack", 79}} {
		c := db.Collection("c", options.Collection().SetWriteConcern(&writeconcern.WriteConcern{W: x.w}))
		_, err := c.InsertOne(bg, bson.M{"_id": i})
		var we mongo.WriteException
		if !errors.As(err, &we) || we.WriteConcernError == nil || we.WriteConcernError.Code != x.code {
			t.Errorf("w: %v: %v", x.w, err)
		}
		if n, err := db.Collection("c").CountDocuments(bg, bson.M{"_id": i}); n != 1 || err != nil {
			t.Errorf("w: %v: %d documents, %v", x.w, n, err)
		}
	}
	_, err := db.Collection("c", options.Collection().SetWriteConcern(&writeconcern.WriteConcern{W: 51})).InsertOne(
		bg,
		bson.M{"_id": 9},
	)
	wantCode(t, err, 9)
}

// TestDriverGivesUp: when its context ends, a driver closes its connection, and the command ends.
func TestDriverGivesUp(t *testing.T) {
	s := start(t)
	db := s.client(t).Database("admin")
	in := any(bson.D{{Key: "$add", Value: bson.A{"$$value", "$$this"}}})
	for range 3 {
		in = bson.D{
			{
				Key: "$reduce",
				Value: bson.D{
					{Key: "input", Value: bson.D{{Key: "$range", Value: bson.A{0, 5000}}}},
					{Key: "initialValue", Value: 0},
					{Key: "in", Value: bson.D{{Key: "$add", Value: bson.A{"$$value", in}}}},
				},
			},
		}
	}
	ctx, cancel := context.WithTimeout(bg, 200*time.Millisecond)
	defer cancel()
	_, err := db.Aggregate(ctx, bson.A{
		bson.D{{Key: "$documents", Value: bson.A{bson.D{}}}},
		bson.D{{Key: "$project", Value: bson.D{{Key: "x", Value: in}}}},
	})
	if err == nil || !mongo.IsTimeout(err) {
		t.Fatal(err)
	}
	other := s.client(t).Database("admin")
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		ops := running(t, other)
		if ops == 1 { // only this command itself
			return
		}
		if time.Since(began) > 20*time.Second {
			t.Fatalf("%d commands run", ops)
		}
	}
}

// running returns the number of running commands.
func running(t *testing.T, db *mongo.Database) int {
	t.Helper()
	cur, err := db.Aggregate(bg, bson.A{bson.D{{Key: "$currentOp", Value: bson.D{}}}})
	return len(all(t, cur, err))
}
