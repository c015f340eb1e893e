package model

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/conformance/harness"
)

// fullKey is an API's way to write to a logical partition. Items have some 2 KB.
type fullKey struct {
	write  func(key, id string) error
	batch  func(key string, ids ...string) error // all or none
	remove func(key, id string) error
	count  func(key string) int
	told   func(err error) string // what the API's error says, in one line
	want   string
}

// P6: a logical partition at its limit (20 GB by default, 20 KB here) takes no more data. Each API says so in its own
// form. What is there can be read, other keys take data, and a delete makes room.
func TestP6FullKey(t *testing.T) {
	cfg := server.Ephemeral()
	cfg.Strict = nil
	cfg.LogicalGB = 20.0 / (1 << 20)
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	s := harness.StartWith(t, cfg)
	for name, api := range map[string]func(*testing.T, *harness.Server) *fullKey{
		"NoSQL": fullNoSQL, "Table": fullTable, "Mongo": fullMongo, "Gremlin": fullGremlin} {
		t.Run(name, func(t *testing.T) {
			api(t, s).run(t)
		})
	}
}

func (f *fullKey) run(t *testing.T) {
	var err error
	n := 0
	for ; err == nil && n < 100; n++ {
		err = f.write("full", fmt.Sprint("i", n))
	}
	n--
	if n < 6 || n > 10 {
		t.Fatalf("refused after %d items of 2 KB: %v", n, err)
	}
	if got := f.told(err); !strings.Contains(got, f.want) || !strings.Contains(got, "reached") {
		t.Errorf("the error says %s, want %s", got, f.want)
	}
	if got := f.count("full"); got != n {
		t.Errorf("%d items, want %d", got, n)
	}
	ok(t, f.write("other", "i0"))
	if f.batch != nil {
		ok(t, f.batch("other", "b0", "b1"))
		if f.batch("full", "b0", "b1") == nil || f.count("full") != n {
			t.Errorf("a batch was applied in part or as a whole: %d items", f.count("full"))
		}
	}
	ok(t, f.remove("full", "i0"))
	ok(t, f.write("full", "again"))
	if got := f.count("full"); got != n {
		t.Errorf("%d items after one took the place of another, want %d", got, n)
	}
}

var twoKB = strings.Repeat("x", 2000)

func fullNoSQL(t *testing.T, s *harness.Server) *fullKey {
	c := harness.Container(t, s.Database(t), "c", 0, "/k")
	item := func(key, id string) []byte { return []byte(fmt.Sprintf(`{"id":%q,"k":%q,"pad":%q}`, id, key, twoKB)) }
	return &fullKey{
		write: func(key, id string) error {
			_, err := c.CreateItem(bg, str(key), item(key, id), nil)
			return err
		},
		batch: func(key string, ids ...string) error {
			b := c.NewTransactionalBatch(str(key))
			for _, id := range ids {
				b.CreateItem(item(key, id), nil)
			}
			r, err := c.ExecuteTransactionalBatch(bg, b, nil)
			if err == nil && !r.Success {
				err = fmt.Errorf("%+v", r.OperationResults)
			}
			return err
		},
		remove: func(key, id string) error {
			_, err := c.DeleteItem(bg, str(key), id, nil)
			return err
		},
		count: func(key string) int { return len(harness.Query(t, c, str(key), "SELECT VALUE c.id FROM c")) },
		told: func(err error) string {
			re := refused(t, err, 403)
			return fmt.Sprint(re.StatusCode, "/", re.RawResponse.Header.Get("x-ms-substatus"), " ", re.Error())
		},
		want: "403/1014",
	}
}

func fullTable(t *testing.T, s *harness.Server) *fullKey {
	table := s.Tables.NewClient("full")
	_, err := table.CreateTable(bg, nil)
	ok(t, err)
	entity := func(key, id string) []byte {
		return []byte(fmt.Sprintf(`{"PartitionKey":%q,"RowKey":%q,"Pad":%q}`, key, id, twoKB))
	}
	return &fullKey{
		write: func(key, id string) error {
			_, err := table.AddEntity(bg, entity(key, id), nil)
			return err
		},
		batch: func(key string, ids ...string) error {
			var as []aztables.TransactionAction
			for _, id := range ids {
				as = append(as, aztables.TransactionAction{
					ActionType: aztables.TransactionTypeAdd, Entity: entity(key, id)})
			}
			_, err := table.SubmitTransaction(bg, as, nil)
			return err
		},
		remove: func(key, id string) error {
			_, err := table.DeleteEntity(bg, key, id, nil)
			return err
		},
		count: func(key string) (n int) {
			filter := "PartitionKey eq '" + key + "'"
			for p := table.NewListEntitiesPager(&aztables.ListEntitiesOptions{Filter: &filter}); p.More(); {
				r, err := p.NextPage(bg)
				ok(t, err)
				n += len(r.Entities)
			}
			return n
		},
		told: func(err error) string {
			var re *azcore.ResponseError
			if !errors.As(err, &re) {
				return err.Error()
			}
			return fmt.Sprint(re.StatusCode, " ", re.ErrorCode, " ", re.Error())
		},
		want: "403 PartitionKeyReachedMaximumSize",
	}
}

func fullMongo(t *testing.T, s *harness.Server) *fullKey {
	db := s.Mongo.Database(harness.Unique("m"))
	ok(t, db.RunCommand(bg, bson.D{{Key: "customAction", Value: "CreateCollection"}, {Key: "collection", Value: "c"},
		{Key: "shardKey", Value: "k"}}).Err())
	c := db.Collection("c")
	return &fullKey{
		write: func(key, id string) error {
			_, err := c.InsertOne(bg, bson.D{
				{Key: "_id", Value: id}, {Key: "k", Value: key}, {Key: "pad", Value: twoKB}})
			return err
		},
		remove: func(key, id string) error {
			_, err := c.DeleteOne(bg, bson.D{{Key: "_id", Value: id}, {Key: "k", Value: key}})
			return err
		},
		count: func(key string) int {
			n, err := c.CountDocuments(bg, bson.D{{Key: "k", Value: key}})
			ok(t, err)
			return int(n)
		},
		told: func(err error) string {
			var we mongo.WriteException
			if !errors.As(err, &we) || len(we.WriteErrors) != 1 {
				return err.Error()
			}
			return fmt.Sprint(we.WriteErrors[0].Code, " ", we.WriteErrors[0].Message)
		},
		want: "13 Error=13, Details='Response status code does not indicate success: Forbidden (403); Substatus: 1014;",
	}
}

func fullGremlin(t *testing.T, s *harness.Server) *fullKey {
	db := s.Database(t)
	harness.Container(t, db, "g", 0, "/k")
	g := s.Gremlin(t, db.ID(), "g")
	return &fullKey{
		write: func(key, id string) error {
			_, err := harness.Submit(g, "g.addV('v').property('id', id).property('k', key).property('pad', pad)",
				"id", id, "key", key, "pad", twoKB)
			return err
		},
		remove: func(key, id string) error {
			_, err := harness.Submit(g, "g.V([key, id]).drop()", "id", id, "key", key)
			return err
		},
		count: func(key string) int {
			vs, err := harness.Submit(g, "g.V().has('k', key).count()", "key", key)
			ok(t, err)
			return int(vs[0].(int64))
		},
		told: func(err error) string { return err.Error() },
		want: "403",
	}
}
