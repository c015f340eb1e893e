package model

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/conformance/harness"
)

// crowd are clients of the four APIs that write to one container, read what they have written, query all of it page by
// page, and read its feed. No request may fail, and no row of a query may come twice.
type crowd struct {
	*doors
	stop atomic.Bool
	done [6]atomic.Int64
	feed *tail
	wg   sync.WaitGroup
}

const crowdKeys = 61

func (c *crowd) start() {
	c.feed = &tail{c: c.sql}
	for n, step := range []func(i int) error{c.writeSQL, c.writeTable, c.writeMongo, c.writeGremlin, c.query,
		func(int) error { return c.feed.poll(1) }} {
		c.wg.Go(func() {
			for i := 0; !c.stop.Load(); i++ {
				if err := step(i); err != nil {
					c.t.Errorf("client %d: %v", n, err)
					return
				}
				c.done[n].Add(1)
			}
		})
	}
}

// more waits until each client has done something more, so that it meets what has just changed.
func (c *crowd) more() {
	var was [6]int64
	for i := range c.done {
		was[i] = c.done[i].Load()
	}
	wait(c.t, "each client", func() bool {
		for i := range c.done {
			if c.done[i].Load() == was[i] && !c.t.Failed() {
				return false
			}
		}
		return true
	})
}

// end stops the clients. Each API counts what all have written, and the feed has each of it once.
func (c *crowd) end() {
	c.stop.Store(true)
	c.wg.Wait()
	if c.t.Failed() {
		return
	}
	items := int64(0)
	for i := range 4 {
		items += c.done[i].Load()
	}
	n, err := c.coll.CountDocuments(bg, bson.D{})
	ok(c.t, err)
	if n != items {
		c.t.Errorf("%d items, want %d", n, items)
	}
	same(c.t, harness.Query(c.t, c.sql, all, "SELECT VALUE COUNT(1) FROM c"), fmt.Sprintf("[%d]", items))
	if vs, err := harness.Submit(c.graph, "g.V().count()"); err != nil || fmt.Sprint(vs) != fmt.Sprintf("[%d]", items) {
		c.t.Errorf("by Gremlin: %v %v", vs, err)
	}
	rows, err := c.listTable()
	if err != nil || int64(rows) != items {
		c.t.Errorf("by Table: %d %v", rows, err)
	}
	for before := -1; before != len(c.feed.got); {
		before = len(c.feed.got)
		ok(c.t, c.feed.poll(1))
	}
	seen := map[string]bool{}
	for _, id := range c.feed.got {
		seen[id] = true
	}
	if int64(len(seen)) != items {
		c.t.Errorf("the feed has %d different items, want %d", len(seen), items)
	}
}

func crowdKey(i int) string { return fmt.Sprintf("k%d", i%crowdKeys) }

func (c *crowd) writeSQL(i int) error {
	id, key := fmt.Sprintf("s%d", i), crowdKey(i)
	if _, err := c.sql.CreateItem(bg, str(key), fmt.Appendf(nil, `{"id":%q,"k":%q}`, id, key), nil); err != nil {
		return err
	}
	_, err := c.sql.ReadItem(bg, str(key), id, nil)
	return err
}

func (c *crowd) writeTable(i int) error {
	id, key := fmt.Sprintf("t%d", i), crowdKey(i)
	_, err := c.table.AddEntity(bg, fmt.Appendf(nil, `{"PartitionKey":%q,"RowKey":%q}`, key, id), nil)
	if err == nil {
		_, err = c.table.GetEntity(bg, key, id, nil)
	}
	return err
}

func (c *crowd) writeMongo(i int) error {
	d := bson.D{{Key: "_id", Value: fmt.Sprintf("m%d", i)}, {Key: "k", Value: crowdKey(i)}}
	if _, err := c.coll.InsertOne(bg, d); err != nil {
		return err
	}
	return c.coll.FindOne(bg, d).Err()
}

func (c *crowd) writeGremlin(i int) error {
	id, key := fmt.Sprintf("g%d", i), crowdKey(i)
	_, err := harness.Submit(c.graph, "g.addV('v').property('id', i).property('k', k)", "i", id, "k", key)
	if err != nil {
		return err
	}
	if vs, err := harness.Submit(c.graph, "g.V([k, i]).count()", "i", id, "k", key); err != nil ||
		fmt.Sprint(vs) != "[1]" {
		return fmt.Errorf("%s: %v %w", id, vs, err)
	}
	return nil
}

// query reads all items through one API after the other.
func (c *crowd) query(i int) error {
	seen := map[string]bool{}
	once := func(id string) error {
		if seen[id] {
			return fmt.Errorf("query %d: %s comes twice", i, id)
		}
		seen[id] = true
		return nil
	}
	switch i % 3 {
	case 0:
		p := c.sql.NewQueryItemsPager("SELECT VALUE c.id FROM c", all, &azcosmos.QueryOptions{PageSizeHint: 50})
		for p.More() {
			r, err := p.NextPage(bg)
			if err != nil {
				return err
			}
			for _, id := range r.Items {
				if err := once(string(id)); err != nil {
					return err
				}
			}
		}
	case 1:
		cur, err := c.coll.Find(bg, bson.D{}, options.Find().SetBatchSize(50))
		if err != nil {
			return err
		}
		for cur.Next(bg) {
			if err := once(cur.Current.Lookup("_id").StringValue()); err != nil {
				return err
			}
		}
		return cur.Err()
	default:
		_, err := c.listTable()
		return err
	}
	return nil
}

func (c *crowd) listTable() (rows int, err error) {
	for p := c.table.NewListEntitiesPager(&aztables.ListEntitiesOptions{Top: ptr(int32(100))}); p.More(); {
		r, err := p.NextPage(bg)
		if err != nil {
			return 0, err
		}
		rows += len(r.Entities)
	}
	return rows, nil
}

// P7: the throughput is raised and lowered, by NoSQL and by MongoDB, while clients of all APIs go on.
func TestP7EachAPIGoesOn(t *testing.T) {
	s := harness.Start(t)
	c := &crowd{doors: newDoors(t, s, 400)}
	c.start()
	db := c.coll.Database()
	for i, x := range []struct{ ru, partitions int }{
		{20000, 2}, {400, 2}, {40000, 4}, {1000, 4}, {90000, 9}, {900, 9}} {
		if i%2 == 0 {
			_, err := c.sql.ReplaceThroughput(bg, azcosmos.NewManualThroughputProperties(int32(x.ru)), nil)
			ok(t, err)
		} else {
			ok(t, db.RunCommand(bg, bson.D{{Key: "customAction", Value: "UpdateCollection"},
				{Key: "collection", Value: "c"}, {Key: "offerThroughput", Value: x.ru}}).Err())
		}
		wait(t, "partitions", func() bool { return len(bars(t, s, db.Name(), "c")) == x.partitions })
		c.more()
		r, err := c.sql.ReadThroughput(bg, nil)
		ok(t, err)
		if n, _ := r.ThroughputProperties.ManualThroughput(); n != int32(x.ru) {
			t.Errorf("%d RU/s, want %d", n, x.ru)
		}
	}
	c.end()
}

// P5: partitions reach their storage limit and split while clients of all APIs go on.
func TestP5EachAPIGoesOn(t *testing.T) {
	cfg := server.Ephemeral()
	cfg.Strict, cfg.PartitionGB, cfg.MinSlots = nil, 32<<10/float64(1<<30), 1
	s := harness.StartWith(t, cfg)
	c := &crowd{doors: newDoors(t, s, 400)}
	c.start()
	deadline := time.Now().Add(time.Minute)
	for len(bars(t, s, c.coll.Database().Name(), "c")) < 4 && !t.Failed() {
		if time.Now().After(deadline) {
			t.Error("there are no four partitions within a minute")
		}
		time.Sleep(5 * time.Millisecond)
	}
	c.more()
	c.end()
}
