package mongo

import (
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// TestConcurrentWrites: no update of one document is lost, whether it is found by `_id` or by a field. Upserts of one
// `_id` make one document. Concurrent takers of a queue all get different documents.
func TestConcurrentWrites(t *testing.T) {
	c := start(t).client(t).Database("db").Collection("c")
	const workers, each = 8, 40
	parallel := func(fn func(w, i int) error) {
		t.Helper()
		var wg sync.WaitGroup
		errs := make(chan error, workers)
		for w := range workers {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for i := range each {
					if err := fn(w, i); err != nil {
						errs <- err
						return
					}
				}
			}()
		}
		wg.Wait()
		close(errs)
		for err := range errs {
			t.Fatal(err)
		}
	}
	inc := bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}
	parallel(func(_, _ int) error {
		_, err := c.UpdateOne(bg, bson.D{{Key: "_id", Value: "sum"}}, inc, options.UpdateOne().SetUpsert(true))
		return err
	})
	_, err := c.UpdateOne(bg, bson.D{{Key: "_id", Value: "sum"}}, bson.D{{Key: "$set", Value: bson.D{{Key: "name", Value: "x"}}}})
	must(t, err)
	parallel(func(_, _ int) error {
		_, err := c.UpdateOne(bg, bson.D{{Key: "name", Value: "x"}}, inc)
		return err
	})
	cur, err := c.Find(bg, bson.D{})
	wantDocs(t, all(t, cur, err), `{"_id":"sum","n":640,"name":"x"}`)
	var queue []any
	for i := range workers * each {
		queue = append(queue, bson.D{{Key: "_id", Value: i}, {Key: "free", Value: true}})
	}
	_, err = c.InsertMany(bg, queue)
	must(t, err)
	var mu sync.Mutex
	taken := map[any]bool{}
	parallel(func(_, _ int) error {
		var d bson.D
		err := c.FindOneAndUpdate(bg, bson.D{{Key: "free", Value: true}},
			bson.D{{Key: "$set", Value: bson.D{{Key: "free", Value: false}}}}).Decode(&d)
		if err == nil {
			mu.Lock()
			taken[d[0].Value] = true
			mu.Unlock()
		}
		return err
	})
	if len(taken) != workers*each {
		t.Fatal(len(taken))
	}
}
