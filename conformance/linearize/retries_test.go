package linearize

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
)

// counters are the documents of one worker, whom nobody else disturbs. So it knows what each must be.
type counters struct {
	t    *testing.T
	cl   *mongo.Client
	name string
	want [3]int // by document: the increments that were answered
	rows int    // the documents that were inserted
	said struct{ done, unknown int }
}

func (c *counters) coll() *mongo.Collection { return c.cl.Database(database).Collection("counters") }
func (c *counters) list() *mongo.Collection { return c.cl.Database(database).Collection("rows") }
func (c *counters) id(n int) string         { return fmt.Sprint(c.name, "-", n) }

// work makes writes of several statements until the context ends. Each statement changes something whenever it is made,
// so one that is made twice can be seen.
func (c *counters) work(ctx context.Context) {
	up := options.UpdateOne().SetUpsert(true)
	for n := range c.want {
		for { // the first connection may take longer than this client waits
			_, err := c.coll().UpdateByID(ctx, c.id(n), inc(0), up)
			if answered(err) {
				c.t.Error(err)
			}
			if err == nil || ctx.Err() != nil {
				break
			}
		}
	}
	rounds := []func(context.Context) ([3]int, int, error){c.many, c.one, c.insert}
	for n := 0; ctx.Err() == nil; n++ {
		in := context.WithoutCancel(ctx)
		by, rows, err := rounds[n%len(rounds)](in)
		if err != nil {
			c.said.unknown++
			c.settle(in, by, rows, err)
			continue
		}
		c.said.done++
		for n, k := range by {
			c.want[n] += k
		}
		c.rows += rows
	}
}

func inc(n int) bson.M { return bson.M{"$inc": bson.M{"n": n}} }

// many increments all counters with one command.
func (c *counters) many(ctx context.Context) (by [3]int, rows int, err error) {
	var ms []mongo.WriteModel
	for n := range c.want {
		ms = append(ms, mongo.NewUpdateOneModel().SetFilter(bson.M{"_id": c.id(n)}).SetUpdate(inc(1)))
		by[n] = 1
	}
	res, err := c.coll().BulkWrite(ctx, ms)
	if err == nil && (res.MatchedCount != 3 || res.ModifiedCount != 3) {
		c.t.Errorf("%s: %d matched and %d modified, not 3", c.name, res.MatchedCount, res.ModifiedCount)
	}
	return by, 0, err
}

// one increments one counter, and is answered with the result.
func (c *counters) one(ctx context.Context) (by [3]int, rows int, err error) {
	var d struct{ N int }
	after := options.FindOneAndUpdate().SetReturnDocument(options.After)
	err = c.coll().FindOneAndUpdate(ctx, bson.M{"_id": c.id(0)}, inc(1), after).Decode(&d)
	if by[0] = 1; err == nil && d.N != c.want[0]+1 {
		c.t.Errorf("%s: the counter is %d, not %d", c.name, d.N, c.want[0]+1)
	}
	return by, 0, err
}

// insert inserts documents whose ids the server doesn't have yet: one that is made twice would be refused.
func (c *counters) insert(ctx context.Context) (by [3]int, rows int, err error) {
	ds := make([]any, 20)
	for n := range ds {
		ds[n] = bson.M{"_id": fmt.Sprint(c.name, "-", c.rows+n), "by": c.name}
	}
	_, err = c.list().InsertMany(ctx, ds)
	var e mongo.BulkWriteException
	if errors.As(err, &e) && len(e.WriteErrors) > 0 {
		c.t.Errorf("%s: %v", c.name, err)
	}
	return by, len(ds), err
}

// settle finds out what became of a command without an answer. Each statement was made once or not at all, and in
// order.
func (c *counters) settle(ctx context.Context, by [3]int, rows int, err error) {
	if answered(err) {
		c.t.Errorf("%s: %v", c.name, err)
	}
	var got [3]int
	var there int64
	for fail := error(context.Canceled); fail != nil; {
		if got, there, fail = c.state(ctx); fail != nil {
			time.Sleep(5 * time.Millisecond)
		}
	}
	for n, k := range by {
		if d := got[n] - c.want[n]; d < 0 || d > k || n > 0 && d > got[n-1]-c.want[n-1] {
			c.t.Errorf("%s: the counters are %v, they were %v, and %v may have been added", c.name, got, c.want, by)
			break
		}
	}
	if d := int(there) - c.rows; d < 0 || d > rows {
		c.t.Errorf("%s: %d documents, there were %d, and %d may have been inserted", c.name, there, c.rows, rows)
	}
	c.want, c.rows = got, int(there)
}

// state reads the counters, and counts the documents.
func (c *counters) state(ctx context.Context) (got [3]int, rows int64, err error) {
	for n := range got {
		var d struct{ N int }
		if err := c.coll().FindOne(ctx, bson.M{"_id": c.id(n)}).Decode(&d); err != nil {
			return got, 0, err
		}
		got[n] = d.N
	}
	rows, err = c.list().CountDocuments(ctx, bson.M{"by": c.name})
	return got, rows, err
}

// Writes that a driver repeats after the server was killed and started again are made once, statement for statement,
// and answered as if nothing had happened. A write that it has given up was made once or not at all.
func TestRetryableWritesOverKills(t *testing.T) {
	dir, addr := t.TempDir(), freeAddress(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var wg sync.WaitGroup
	var all []*counters
	first := func() {
		for n := range traders {
			c := &counters{t: t, name: fmt.Sprint("w", n)}
			if c.cl = connect(t, addr, 20*time.Second); n == 0 { // it doesn't wait for the next life
				c.cl = connect(t, addr, 50*time.Millisecond)
			}
			all = append(all, c)
			wg.Go(func() { c.work(ctx) })
		}
	}
	lives(t, dir, "sync", addr, first, func() {}, func() {
		cancel()
		wg.Wait()
		for _, c := range all {
			got, rows, err := c.state(context.Background())
			if err != nil || got != c.want || int(rows) != c.rows {
				t.Errorf("%s: the counters are %v and %d documents, not %v and %d: %v", c.name, got, rows, c.want,
					c.rows, err)
			}
			t.Logf("%s: %v counted, %d documents, %d commands done and %d not answered", c.name, got, rows, c.said.done,
				c.said.unknown)
			if c.said.done < 100 {
				t.Errorf("%s: too little was done to find anything", c.name)
			}
		}
	})
}
