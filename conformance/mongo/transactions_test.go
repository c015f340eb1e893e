package mongo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/mongoapi"
)

const directly = "directConnection=true"

// withTransaction runs f in a transaction, which is repeated after transient errors.
func withTransaction(c *mongo.Client, f func(ctx context.Context) error) error {
	s, err := c.StartSession()
	if err != nil {
		return err
	}
	defer s.EndSession(bg)
	_, err = s.WithTransaction(bg, func(ctx context.Context) (any, error) { return nil, f(ctx) })
	return err
}

func inc(n int) bson.M { return bson.M{"$inc": bson.M{"n": n}} }

func id(v any) bson.M { return bson.M{"_id": v} }

// sumOf adds up n of all documents of collections.
func sumOf(ctx context.Context, t *testing.T, cs ...*mongo.Collection) (sum int64) {
	t.Helper()
	for _, c := range cs {
		cur, err := c.Aggregate(ctx, bson.A{bson.M{"$group": bson.M{"_id": nil, "n": bson.M{"$sum": "$n"}}}})
		if err != nil {
			t.Error(err)
			return 0
		}
		var out []struct{ N int64 }
		if err := cur.All(ctx, &out); err != nil {
			t.Error(err)
			return 0
		}
		if len(out) > 0 {
			sum += out[0].N
		}
	}
	return sum
}

// Clients move amounts between two collections, whose documents are in many partitions. Each transaction sees the whole
// sum, and the sum stays.
func TestTransfersBetweenCollections(t *testing.T) {
	s := start(t)
	db := dial(t, s.uri(directly)).Database("bank")
	a, b := db.Collection("a"), db.Collection("b")
	const accounts, each = 10, 100
	for i := range accounts {
		for _, c := range []*mongo.Collection{a, b} {
			if _, err := c.InsertOne(bg, bson.M{"_id": i, "n": each}); err != nil {
				t.Fatal(err)
			}
		}
	}
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			c := dial(t, s.uri(directly))
			a, b := c.Database("bank").Collection("a"), c.Database("bank").Collection("b")
			for i := range 15 {
				err := withTransaction(c, func(ctx context.Context) error {
					if got := sumOf(ctx, t, a, b); got != 2*accounts*each {
						return fmt.Errorf("a transaction sees the sum %d", got)
					}
					if _, err := a.UpdateOne(ctx, id((w*7+i)%accounts), inc(-1)); err != nil {
						return err
					}
					_, err := b.UpdateOne(ctx, id((w*3+i)%accounts), inc(1))
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got := sumOf(bg, t, a); got != accounts*each-60 {
		t.Errorf("the sum of a is %d", got)
	}
	if got := sumOf(bg, t, a, b); got != 2*accounts*each {
		t.Errorf("the sum is %d", got)
	}
}

// Transactions that read a counter and write it back add up, however many run.
func TestConcurrentIncrementsInTransactions(t *testing.T) {
	s := start(t)
	c := dial(t, s.uri(directly)).Database("db").Collection("counters")
	if _, err := c.InsertOne(bg, bson.M{"_id": "x", "n": 0}); err != nil {
		t.Fatal(err)
	}
	const clients, rounds = 4, 10
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			own := dial(t, s.uri(directly))
			c := own.Database("db").Collection("counters")
			for range rounds {
				err := withTransaction(own, func(ctx context.Context) error {
					var d struct{ N int }
					if err := c.FindOne(ctx, id("x")).Decode(&d); err != nil {
						return err
					}
					_, err := c.ReplaceOne(ctx, id("x"), bson.M{"n": d.N + 1})
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got := sumOf(bg, t, c); got != clients*rounds {
		t.Errorf("the counter is %d, want %d", got, clients*rounds)
	}
}

// labelled reports whether an error has a label.
func labelled(err error, label string) bool {
	var e mongo.LabeledError
	return errors.As(err, &e) && e.HasErrorLabel(label)
}

// Two sessions write one document: the second gets a transient error with code 112. Its transaction is over.
func TestWriteConflictLabels(t *testing.T) {
	s := start(t)
	client := dial(t, s.uri(directly))
	c := client.Database("db").Collection("c")
	if _, err := c.InsertOne(bg, bson.M{"_id": 1, "n": 0}); err != nil {
		t.Fatal(err)
	}
	var sessions []*mongo.Session
	var ctxs []context.Context
	for range 2 {
		x, err := client.StartSession()
		if err != nil {
			t.Fatal(err)
		}
		defer x.EndSession(bg)
		if err := x.StartTransaction(); err != nil {
			t.Fatal(err)
		}
		sessions, ctxs = append(sessions, x), append(ctxs, mongo.NewSessionContext(bg, x))
	}
	if _, err := c.UpdateOne(ctxs[0], id(1), inc(1)); err != nil {
		t.Fatal(err)
	}
	_, err := c.UpdateOne(ctxs[1], id(1), inc(1))
	var e mongo.ServerError
	if !errors.As(err, &e) || !e.HasErrorCode(112) || !labelled(err, "TransientTransactionError") {
		t.Errorf("the second writer: %v", err)
	}
	if err := sessions[0].CommitTransaction(bg); err != nil {
		t.Error(err)
	}
	err = sessions[1].CommitTransaction(bg)
	if !errors.As(err, &e) || !e.HasErrorCode(251) || !labelled(err, "TransientTransactionError") {
		t.Errorf("the commit of the second: %v", err)
	}
	if got := sumOf(bg, t, c); got != 1 {
		t.Errorf("n is %d", got)
	}
}

// An abort leaves nothing: no document, no change, and no collection.
func TestAbortLeavesNothing(t *testing.T) {
	s := start(t)
	client := dial(t, s.uri(directly))
	db := client.Database("db")
	if _, err := db.Collection("c").InsertOne(bg, bson.M{"_id": 1, "n": 1}); err != nil {
		t.Fatal(err)
	}
	stop := errors.New("stop")
	err := withTransaction(client, func(ctx context.Context) error {
		for _, name := range []string{"c", "new"} {
			if _, err := db.Collection(name).InsertOne(ctx, bson.M{"_id": 2, "n": 1}); err != nil {
				return err
			}
		}
		if _, err := db.Collection("c").UpdateMany(ctx, bson.M{}, inc(5)); err != nil {
			return err
		}
		if got := sumOf(ctx, t, db.Collection("c"), db.Collection("new")); got != 13 {
			t.Errorf("the transaction sees %d", got)
		}
		return stop
	})
	if !errors.Is(err, stop) {
		t.Error(err)
	}
	if got := sumOf(bg, t, db.Collection("c")); got != 1 {
		t.Errorf("the sum is %d", got)
	}
	if names, err := db.ListCollectionNames(bg, bson.M{}); err != nil || len(names) != 1 {
		t.Errorf("collections %v, %v", names, err)
	}
}

// A transaction ends after 60 seconds of the server's clock.
func TestTransactionsEndByThemselves(t *testing.T) {
	clk := clock.New()
	s := startWith(t, mongoapi.Options{Account: account, Key: key, Auth: true, Clock: clk})
	client := dial(t, s.uri(directly))
	c := client.Database("db").Collection("c")
	if _, err := c.InsertOne(bg, id(0)); err != nil {
		t.Fatal(err)
	}
	x, err := client.StartSession()
	if err != nil {
		t.Fatal(err)
	}
	defer x.EndSession(bg)
	if err := x.StartTransaction(); err != nil {
		t.Fatal(err)
	}
	ctx := mongo.NewSessionContext(bg, x)
	if _, err := c.InsertOne(ctx, id(1)); err != nil {
		t.Fatal(err)
	}
	clk.Advance(61 * time.Second)
	var e mongo.ServerError
	if err := x.CommitTransaction(bg); !errors.As(err, &e) || !e.HasErrorCode(251) {
		t.Errorf("a commit after 61 seconds: %v", err)
	}
	if n, err := c.CountDocuments(bg, bson.M{}); err != nil || n != 1 {
		t.Errorf("%d documents, %v", n, err)
	}
}

// Reads of a snapshot session see one state of two collections, in pages too.
func TestSnapshotSessions(t *testing.T) {
	s := start(t)
	client := dial(t, s.uri(directly))
	a, b := client.Database("db").Collection("a"), client.Database("db").Collection("b")
	for i := range 20 {
		for _, c := range []*mongo.Collection{a, b} {
			if _, err := c.InsertOne(bg, bson.M{"_id": i, "n": 1}); err != nil {
				t.Fatal(err)
			}
		}
	}
	x, err := client.StartSession(options.Session().SetSnapshot(true))
	if err != nil {
		t.Fatal(err)
	}
	defer x.EndSession(bg)
	ctx := mongo.NewSessionContext(bg, x)
	cur, err := a.Find(ctx, bson.M{}, options.Find().SetBatchSize(3))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*mongo.Collection{a, b} {
		if _, err := c.UpdateMany(bg, bson.M{}, inc(1)); err != nil {
			t.Fatal(err)
		}
	}
	var docs []struct{ N int }
	if err := cur.All(ctx, &docs); err != nil || len(docs) != 20 {
		t.Fatalf("%d documents, %v", len(docs), err)
	}
	for _, d := range docs {
		if d.N != 1 {
			t.Errorf("a page shows %d", d.N)
		}
	}
	if got := sumOf(ctx, t, a, b); got != 40 {
		t.Errorf("the sum of the snapshot is %d", got)
	}
	if got := sumOf(bg, t, a, b); got != 80 {
		t.Errorf("the present sum is %d", got)
	}
}
