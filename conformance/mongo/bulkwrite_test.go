package mongo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	monitor "go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/orrerydb/orrery/mongoapi"
)

// startRelease starts a server that announces a release of MongoDB, and returns a client that counts its getMores.
func startRelease(t *testing.T, release string) (*mongo.Client, *atomic.Int32) {
	t.Helper()
	s := startWith(t, mongoapi.Options{Account: account, Key: key, Auth: true, Release: release})
	batches := new(atomic.Int32)
	watch := &monitor.CommandMonitor{Started: func(_ context.Context, e *monitor.CommandStartedEvent) {
		if e.CommandName == "getMore" {
			batches.Add(1)
		}
	}}
	o := options.Client().ApplyURI(s.uri("directConnection=true")).SetMonitor(watch)
	c, err := mongo.Connect(o)
	must(t, err)
	t.Cleanup(func() { must(t, c.Disconnect(bg)) })
	return c, batches
}

// writes are writes of one collection.
func writes(db, coll string, ms ...mongo.ClientWriteModel) (out []mongo.ClientBulkWrite) {
	for _, m := range ms {
		out = append(out, mongo.ClientBulkWrite{Database: db, Collection: coll, Model: m})
	}
	return out
}

func insertOf(d bson.D) mongo.ClientWriteModel { return mongo.NewClientInsertOneModel().SetDocument(d) }

// TestClientBulkWrite: several kinds of writes in several databases, with their results.
func TestClientBulkWrite(t *testing.T) {
	c, _ := startRelease(t, "8.0")
	one := func(m *mongo.ClientUpdateOneModel) mongo.ClientWriteModel { return m }
	ws := append(writes("a", "c",
		insertOf(doc(t, `{"_id": 1, "n": 1}`)), insertOf(doc(t, `{"_id": 2, "n": 5}`)),
		one(mongo.NewClientUpdateOneModel().SetFilter(bson.D{}).SetUpdate(doc(t, `{"$set": {"most": true}}`)).
			SetSort(bson.D{{Key: "n", Value: -1}})),
		mongo.NewClientUpdateManyModel().SetFilter(bson.D{}).SetUpdate(doc(t, `{"$inc": {"n": 1}}`)),
		mongo.NewClientDeleteOneModel().SetFilter(doc(t, `{"_id": 1}`))),
		writes("b", "d",
			mongo.NewClientReplaceOneModel().SetFilter(doc(t, `{"_id": 7}`)).SetReplacement(doc(t, `{"r": 1}`)).
				SetUpsert(true),
			mongo.NewClientDeleteManyModel().SetFilter(doc(t, `{"_id": 8}`)))...)
	r, err := c.BulkWrite(bg, ws, options.ClientBulkWrite().SetVerboseResults(true))
	if err != nil {
		t.Fatal(err)
	}
	if r.InsertedCount != 2 || r.MatchedCount != 3 || r.ModifiedCount != 3 || r.UpsertedCount != 1 ||
		r.DeletedCount != 1 {
		t.Errorf("the counts are %+v", r)
	}
	if r.UpdateResults[3].MatchedCount != 2 || r.UpdateResults[5].UpsertedID != int32(7) {
		t.Errorf("the results are %+v", r.UpdateResults)
	}
	cur, err := c.Database("a").Collection("c").Find(bg, bson.D{})
	wantDocs(t, all(t, cur, err), `{"_id":2,"n":6,"most":true}`)
	cur, err = c.Database("b").Collection("d").Find(bg, bson.D{})
	wantDocs(t, all(t, cur, err), `{"_id":7,"r":1}`)
}

// TestClientBulkWriteErrors: an ordered one ends with its first error, and what was done before is told.
func TestClientBulkWriteErrors(t *testing.T) {
	c, _ := startRelease(t, "8.0")
	one := insertOf(doc(t, `{"_id": 1}`))
	ws := writes("db", "c", one, one, insertOf(doc(t, `{"_id": 2}`)), one)
	for _, ordered := range []bool{true, false} {
		must(t, c.Database("db").Drop(bg))
		r, err := c.BulkWrite(bg, ws, options.ClientBulkWrite().SetOrdered(ordered))
		var e mongo.ClientBulkWriteException
		if !errors.As(err, &e) {
			t.Fatalf("ordered %v: %v, %v", ordered, r, err)
		}
		var at []int
		for i, w := range e.WriteErrors {
			if at = append(at, i); w.Code != 11000 {
				t.Errorf("ordered %v: write %d has the error %+v", ordered, i, w)
			}
		}
		slices.Sort(at)
		wantAt, wantDone := []int{1}, int64(1)
		if !ordered {
			wantAt, wantDone = []int{1, 3}, 2
		}
		if !slices.Equal(at, wantAt) || e.PartialResult == nil || e.PartialResult.InsertedCount != wantDone {
			t.Errorf("ordered %v: errors at %v, %+v was done", ordered, at, e.PartialResult)
		}
	}
}

// TestClientBulkWriteResultsInBatches: results that are too large for one reply come with getMore.
func TestClientBulkWriteResultsInBatches(t *testing.T) {
	c, batches := startRelease(t, "8.0")
	const n = 12000
	var ws []mongo.ClientBulkWrite
	for i := range n {
		id := bson.D{{Key: "_id", Value: fmt.Sprint(strings.Repeat("x", 1500), i)}}
		ws = append(ws, writes("db", "c", mongo.NewClientUpdateOneModel().SetFilter(id).
			SetUpdate(doc(t, `{"$set": {"x": 1}}`)).SetUpsert(true))...)
	}
	r, err := c.BulkWrite(bg, ws, options.ClientBulkWrite().SetVerboseResults(true))
	must(t, err)
	if r.UpsertedCount != n || len(r.UpdateResults) != n || batches.Load() != 1 {
		t.Errorf("%d upserts, %d results, %d more batches", r.UpsertedCount, len(r.UpdateResults), batches.Load())
	}
}

// TestClientBulkWriteInTransaction: it is done with the rest of the transaction, or not at all. A server that announces
// an earlier release executes it too, if the driver sends it.
func TestClientBulkWriteInTransaction(t *testing.T) {
	c, _ := startRelease(t, "")
	coll := c.Database("db").Collection("c")
	_, err := coll.InsertOne(bg, doc(t, `{"_id": 0}`))
	must(t, err)
	ws := append(writes("db", "c", insertOf(doc(t, `{"_id": 1}`))),
		writes("other", "c", insertOf(doc(t, `{"_id": 2}`)))...)
	no := errors.New("no")
	err = withTransaction(c, func(ctx context.Context) error {
		if _, err := c.BulkWrite(ctx, ws); err != nil {
			return err
		}
		return no
	})
	if n, cerr := coll.CountDocuments(bg, bson.D{}); n != 1 || cerr != nil || !errors.Is(err, no) {
		t.Errorf("%d documents after the abort: %v, %v", n, cerr, err)
	}
	must(t, withTransaction(c, func(ctx context.Context) error {
		_, err := c.BulkWrite(ctx, ws)
		return err
	}))
	for _, db := range []string{"db", "other"} {
		n, err := c.Database(db).Collection("c").CountDocuments(bg, bson.M{"_id": bson.M{"$gt": 0}})
		if n != 1 || err != nil {
			t.Errorf("%s has %d documents of the transaction: %v", db, n, err)
		}
	}
}
