package cross

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/conformance/harness"
)

// TestNoUpdateIsLost: clients of three APIs increment a number in one item concurrently, each in its API's safe way,
// while a client of the fourth API changes another field.
func TestNoUpdateIsLost(t *testing.T) {
	_, ps := places(t)
	const each = 40
	for _, origin := range []string{"nosql", "mongo", "mongo sharded", "table"} {
		t.Run(origin, func(t *testing.T) {
			p := ps[origin]
			d := bson.D{{Key: "_id", Value: "n"}, {Key: "n", Value: int32(0)}}
			if p.keyField != "" {
				d = append(d, bson.E{Key: p.keyField, Value: "p"})
			}
			_, err := p.mongo.InsertOne(bg, d)
			ok(t, err)
			path := "/n"
			if p.edm {
				path = "/n/$v"
			}
			pk := p.pk("n")
			workers := map[string]func() error{
				"nosql": func() error {
					ops := azcosmos.PatchOperations{}
					ops.AppendIncrement(path, 1)
					_, err := p.sql.PatchItem(bg, azcosmos.NewPartitionKeyString(pk), "n", ops, nil)
					return err
				},
				"mongo": func() error {
					_, err := p.mongo.UpdateOne(bg, bson.D{{Key: "_id", Value: "n"}},
						bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}})
					return err
				},
				"table": func() error {
					for {
						r, err := p.table.GetEntity(bg, pk, "n", nil)
						if err != nil {
							return err
						}
						var e struct{ N int32 }
						if e.N, err = number(r.Value); err != nil {
							return err
						}
						_, err = p.table.UpdateEntity(
							bg, []byte(fmt.Sprintf(`{"PartitionKey":%q,"RowKey":"n","n":%d}`, pk, e.N+1)),
							&aztables.UpdateEntityOptions{IfMatch: &r.ETag, UpdateMode: aztables.UpdateModeMerge})
						if statusOf(err) != 412 {
							return err
						}
					}
				},
				"gremlin": func() error {
					_, err := harness.Submit(p.gremlin, "g.V().hasId('n').property('beside', 1)")
					return err
				},
			}
			var wg sync.WaitGroup
			for by, work := range workers {
				wg.Go(func() {
					for range each {
						if err := work(); err != nil {
							t.Errorf("%s: %v", by, err)
							return
						}
					}
				})
			}
			wg.Wait()
			if n, err := p.mongo.CountDocuments(
				bg, bson.D{{Key: "_id", Value: "n"}, {Key: "n", Value: 3 * each},
					{Key: "beside._value", Value: 1}}); n != 1 || err != nil {
				raw, _ := p.mongo.FindOne(bg, bson.D{{Key: "_id", Value: "n"}}).Raw()
				t.Errorf("the item is %s, want n = %d", raw, 3*each)
			}
		})
	}
}

// number returns the property n of an entity.
func number(e []byte) (int32, error) {
	var m struct {
		N *int32 `json:"n"`
	}
	if err := unmarshal(e, &m); err != nil {
		return 0, err
	}
	if m.N == nil {
		return 0, errors.New("no n")
	}
	return *m.N, nil
}

// TestChangeFeedSeesAll: the change feed of the NoSQL API contains the writes of all APIs.
func TestChangeFeedSeesAll(t *testing.T) {
	_, ps := places(t)
	for _, origin := range origins {
		t.Run(origin, func(t *testing.T) {
			p := ps[origin]
			ok(t, p.writeSQL("by-nosql", `"1"`))
			ok(t, p.writeMongo("by-mongo", "1"))
			ok(t, p.writeTable("by-table", "", `"1"`))
			ok(t, p.writeGremlin("by-gremlin", "1"))
			ok(t, p.writeMongo("gone", "1"))
			_, err := p.mongo.DeleteOne(bg, bson.D{{Key: "_id", Value: "gone"}})
			ok(t, err)
			fr, err := p.sql.ReadFeedRanges(bg, nil)
			ok(t, err)
			var ids []string
			for i := range fr {
				r, err := p.sql.ReadChangeFeed(bg, &azcosmos.ChangeFeedOptions{FeedRange: &fr[i]})
				ok(t, err)
				for _, it := range r.Items {
					var m struct{ ID string }
					ok(t, unmarshal(it, &m))
					ids = append(ids, m.ID)
				}
			}
			slices.Sort(ids)
			if want := []string{"by-gremlin", "by-mongo", "by-nosql", "by-table"}; !slices.Equal(ids, want) {
				t.Errorf("%q, want %q", ids, want)
			}
		})
	}
}

// TestPartitionKeyKinds: all four APIs handle partition keys that aren't strings.
func TestPartitionKeyKinds(t *testing.T) {
	_, ps := places(t)
	p := ps["nosql"]
	for _, x := range []struct {
		json  string
		key   azcosmos.PartitionKey
		bson  any
		table string
		g     any
	}{
		{"5", azcosmos.NewPartitionKeyNumber(5), int64(5), "5", int32(5)},
		{"-2.5", azcosmos.NewPartitionKeyNumber(-2.5), -2.5, "-2.5", -2.5},
		{"true", azcosmos.NewPartitionKeyBool(true), true, "true", true},
		{"null", azcosmos.NullPartitionKey, nil, "null", nil},
		{`"5"`, azcosmos.NewPartitionKeyString("5"), "5", "5", "5"},
	} {
		t.Run(x.json, func(t *testing.T) {
			id := "i" + x.json
			_, err := p.sql.CreateItem(bg, x.key, []byte(fmt.Sprintf(`{"id":%q,"pk":%s,"v":"1"}`, id, x.json)), nil)
			ok(t, err)
			_, err = p.mongo.InsertOne(bg, bson.D{{Key: "_id", Value: "m" + x.json}, {Key: "pk", Value: x.bson}, {Key: "v", Value: "2"}})
			ok(t, err)
			rows := harness.Query(t, p.sql, x.key, "SELECT VALUE c.v FROM c ORDER BY c.v")
			if !slices.Equal(rows, []string{`"1"`, `"2"`}) {
				t.Errorf("by NoSQL: %v", rows)
			}
			if n, err := p.mongo.CountDocuments(bg, bson.D{{Key: "pk", Value: x.bson}}); n != 2 || err != nil {
				t.Errorf("by Mongo: %d %v", n, err)
			}
			if _, err := p.table.GetEntity(bg, x.table, "m"+x.json, nil); err != nil {
				t.Errorf("by Table: %v", err)
			}
			if got := p.findTable(t, "PartitionKey eq '"+x.table+"' and v eq '2'"); !slices.Contains(got, "m"+x.json) {
				t.Errorf("by Table: %q", got)
			}
			if x.g != nil {
				if vs, err := harness.Submit(p.gremlin, "g.V([k, i]).values('v')", "k", x.g, "i", "m"+x.json); err !=
					nil || shown(vs) != "string 2" {
					t.Errorf("by Gremlin: %v %v", vs, err)
				}
			}
		})
	}
}

// TestHierarchicalKeys: Table's PartitionKey for a key with two levels is a JSON array.
func TestHierarchicalKeys(t *testing.T) {
	s, _ := places(t)
	db := s.Database(t)
	c := harness.Container(t, db, "h", 0, "/tenant", "/user")
	_, err := c.CreateItem(bg, azcosmos.NewPartitionKeyString("a").AppendNumber(7), []byte(`{"id":"1","tenant":"a",`+
		`"user":7,"name":"x"}`), nil)
	ok(t, err)
	coll := s.Mongo.Database(db.ID()).Collection("h")
	_, err = coll.InsertOne(bg, bson.D{{Key: "_id", Value: "2"}, {Key: "tenant", Value: "a"}, {Key: "user", Value: 7.0}, {Key: "name", Value: "y"}})
	ok(t, err)
	table := s.Tables.NewClient(db.ID() + ".h")
	_, err = table.AddEntity(bg, []byte(`{"PartitionKey":"[\"a\",7]","RowKey":"3","name":"z"}`), nil)
	ok(t, err)
	if rows := harness.Query(t, c, azcosmos.NewPartitionKeyString("a").AppendNumber(7), "SELECT VALUE c.name FROM c "+
		"ORDER BY c.id"); !slices.Equal(rows, []string{`"x"`, `"y"`, `"z"`}) {
		t.Errorf("by NoSQL: %v", rows)
	}
	if n, err := coll.CountDocuments(bg, bson.D{{Key: "tenant", Value: "a"}, {Key: "user", Value: 7}}); n != 3 ||
		err != nil {
		t.Errorf("by Mongo: %d %v", n, err)
	}
	for _, id := range []string{"1", "2", "3"} {
		if _, err := table.GetEntity(bg, `["a",7]`, id, nil); err != nil {
			t.Errorf("by Table: %v", err)
		}
	}
	if vs, err := harness.Submit(s.Gremlin(t, db.ID(), "h"), "g.V().has('tenant', 'a').values('name').order()"); err !=
		nil || shown(vs) != "string x, string y, string z" {
		t.Errorf("by Gremlin: %v %v", vs, err)
	}
}

// TestDrops: a container that one API drops doesn't exist for any API, and a new container with its name has no old
// items.
func TestDrops(t *testing.T) {
	for by, drop := range map[string]func(s *harness.Server, p *place) error{
		"nosql": func(_ *harness.Server, p *place) error { _, err := p.sql.Delete(bg, nil); return err },
		"mongo": func(_ *harness.Server, p *place) error { return p.mongo.Drop(bg) },
		"table": func(_ *harness.Server, p *place) error { _, err := p.table.Delete(bg, nil); return err },
	} {
		t.Run("by "+by, func(t *testing.T) {
			s, ps := places(t)
			p := ps["table"]
			ok(t, p.writeTable("x", "", `"1"`))
			ok(t, drop(s, p))
			if _, err := p.sql.Read(bg, nil); statusOf(err) != 404 {
				t.Errorf("NoSQL: %v", err)
			}
			if _, err := p.table.GetEntity(bg, "p", "x", nil); statusOf(err) != 404 {
				t.Errorf("Table: %v", err)
			}
			if n, err := p.mongo.CountDocuments(bg, bson.D{}); n != 0 || err != nil {
				t.Errorf("Mongo: %d %v", n, err)
			}
			if _, err := harness.Submit(p.gremlin, "g.V().count()"); err == nil {
				t.Error("Gremlin still has the graph")
			}
			_, err := p.table.CreateTable(bg, nil)
			ok(t, err)
			if ids := p.findTable(t, "PartitionKey eq 'p'"); len(ids) != 0 {
				t.Errorf("old entities: %q", ids)
			}
		})
	}
}

// TestNoPartitionKey: an item without the partition key of its container, which only MongoDB and Table can write.
func TestNoPartitionKey(t *testing.T) {
	_, ps := places(t)
	p := ps["nosql"]
	_, err := p.mongo.InsertOne(bg, bson.D{{Key: "_id", Value: "m"}, {Key: "v", Value: "1"}})
	ok(t, err)
	_, err = p.table.AddEntity(bg, []byte(`{"PartitionKey":"","RowKey":"t","v":"1"}`), nil)
	ok(t, err)
	ok(t, p.writeMongo("other", "1"))
	if got := p.findSQL(t, "NOT IS_DEFINED(c.pk) ORDER BY c.id"); !slices.Equal(got, []string{"m"}) {
		t.Errorf("by NoSQL: %q", got)
	}
	if got := p.findTable(t, "PartitionKey eq '' and v eq '1'"); len(got) != 2 {
		t.Errorf("found by Table: %q", got)
	}
	if got := p.readGremlin("m"); got != "string 1" {
		t.Errorf("by Gremlin: %s", got)
	}
}
