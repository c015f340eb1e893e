package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/conformance/harness"
)

// fullKey is an API's way to write to a logical partition. Items have some 2 KB.
type fullKey struct {
	database string
	write    func(key, id string) error
	batch    func(key string, ids ...string) error // all or none
	remove   func(key, id string) error
	count    func(key string) int
	told     func(err error) string // what the API's error says, in one line
	want     string
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
	db := s.Database(t)
	c := harness.Container(t, db, "c", 0, "/k")
	item := func(key, id string) []byte { return []byte(fmt.Sprintf(`{"id":%q,"k":%q,"pad":%q}`, id, key, twoKB)) }
	return &fullKey{
		database: db.ID(),
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
	_, err := table.Delete(bg, nil)
	if err != nil {
		refused(t, err, 404)
	}
	_, err = table.CreateTable(bg, nil)
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
		database: db.Name(),
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
		database: db.ID(),
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

// P6: at the limit no way to write gets around it, none leaves half of what it was to do, and what makes no partition
// larger goes on.
func TestP6FullKeyVariants(t *testing.T) {
	cfg := server.Ephemeral()
	cfg.Strict = nil
	cfg.LogicalGB = 20.0 / (1 << 20)
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	s := harness.StartWith(t, cfg)
	t.Run("NoSQL", func(t *testing.T) { variantsOfSQL(t, s) })
	t.Run("Table", func(t *testing.T) { variantsOfTable(t, s) })
	t.Run("Mongo", func(t *testing.T) { variantsOfMongo(t, s) })
	t.Run("Gremlin", func(t *testing.T) { variantsOfGremlin(t, s) })
}

// full reports whether an error is that of a full logical partition.
func isFull(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "reached maximum size") ||
		strings.Contains(err.Error(), "reached its maximum size"))
}

// variant is something that is done, and whether it may be.
type variant struct {
	what string
	full bool
	err  error
}

func check(t *testing.T, vs ...variant) {
	t.Helper()
	for _, v := range vs {
		if v.full && !isFull(v.err) || !v.full && v.err != nil {
			t.Errorf("%s: %v, full: %v", v.what, v.err, v.full)
		}
	}
}

func variantsOfSQL(t *testing.T, s *harness.Server) {
	f := fullNoSQL(t, s)
	db, err := s.SQL.NewDatabase(f.database)
	ok(t, err)
	c, err := db.NewContainer("c")
	ok(t, err)
	item := func(id string, kb int) []byte {
		return fmt.Appendf(nil, `{"id":%q,"k":"full","pad":%q}`, id, strings.Repeat("x", kb<<10))
	}
	n := 0
	for ; n < 100 && f.write("full", fmt.Sprint("i", n)) == nil; n++ {
	}
	upsert := func(id string, kb int) error { _, err := c.UpsertItem(bg, str("full"), item(id, kb), nil); return err }
	replace := func(id string, kb int) error {
		_, err := c.ReplaceItem(bg, str("full"), id, item(id, kb), nil)
		return err
	}
	patch := func(pad string) error {
		ops := azcosmos.PatchOperations{}
		ops.AppendSet("/more", pad)
		_, err := c.PatchItem(bg, str("full"), "i0", ops, nil)
		return err
	}
	swap := func(first, then func(b *azcosmos.TransactionalBatch)) error {
		b := c.NewTransactionalBatch(str("full"))
		first(&b)
		then(&b)
		r, err := c.ExecuteTransactionalBatch(bg, b, nil)
		if err == nil && !r.Success {
			err = fmt.Errorf("%+v", r.OperationResults)
		}
		return err
	}
	remove := func(id string) func(b *azcosmos.TransactionalBatch) {
		return func(b *azcosmos.TransactionalBatch) { b.DeleteItem(id, nil) }
	}
	add := func(id string) func(b *azcosmos.TransactionalBatch) {
		return func(b *azcosmos.TransactionalBatch) { b.CreateItem(item(id, 1), nil) }
	}
	check(t,
		variant{"an upsert of a new item", true, upsert("new", 2)},
		variant{"an upsert that grows", true, upsert("i0", 6)},
		variant{"a replace that grows", true, replace("i0", 6)},
		variant{"a patch that grows", true, patch(strings.Repeat("x", 4<<10))},
		variant{"a batch that adds", true, swap(add("b1"), add("b2"))},
		variant{"a replace that shrinks", false, replace("i0", 1)},
		variant{"a batch that takes and gives", false, swap(remove("i1"), add("b1"))},
		variant{"a batch that gives and takes", false, swap(add("b2"), remove("i2"))},
	)
	if got := f.count("full"); got != n {
		t.Errorf("%d items, want %d", got, n)
	}
	// The limit is that of a whole hierarchical key.
	h := harness.Container(t, db, "h", 0, "/tenant", "/user")
	for _, user := range []string{"a", "b"} {
		pk := azcosmos.NewPartitionKeyString("t").AppendString(user)
		err, n = nil, 0
		for ; err == nil && n < 100; n++ {
			it := fmt.Appendf(nil, `{"id":"%d","tenant":"t","user":%q,"pad":%q}`, n, user, twoKB)
			_, err = h.CreateItem(bg, pk, it, nil)
		}
		if re := refused(t, err, 403); n < 7 || re.RawResponse.Header.Get("x-ms-substatus") != "1014" {
			t.Errorf("user %s is full after %d items: %v", user, n, re)
		}
	}
}

func variantsOfTable(t *testing.T, s *harness.Server) {
	f := fullTable(t, s)
	table := s.Tables.NewClient("full")
	n := 0
	for ; n < 100 && f.write("full", fmt.Sprint("i", n)) == nil; n++ {
	}
	entity := func(id, pad string) []byte {
		return fmt.Appendf(nil, `{"PartitionKey":"full","RowKey":%q,"More":%q}`, id, pad)
	}
	update := func(mode aztables.UpdateMode, pad string) error {
		_, err := table.UpdateEntity(bg, entity("i0", pad), &aztables.UpdateEntityOptions{UpdateMode: mode})
		return err
	}
	upsert := func(id string) error {
		_, err := table.UpsertEntity(bg, entity(id, twoKB), nil)
		return err
	}
	submit := func(kinds ...string) error {
		var as []aztables.TransactionAction
		for _, k := range kinds {
			a := aztables.TransactionAction{ActionType: aztables.TransactionTypeAdd, Entity: entity(k, twoKB)}
			if id, is := strings.CutPrefix(k, "-"); is {
				a = aztables.TransactionAction{ActionType: aztables.TransactionTypeDelete, Entity: entity(id, "")}
			}
			as = append(as, a)
		}
		_, err := table.SubmitTransaction(bg, as, nil)
		return err
	}
	check(t,
		variant{"a merge that grows", true, update(aztables.UpdateModeMerge, twoKB)},
		variant{"a replace that grows", true, update(aztables.UpdateModeReplace, twoKB+twoKB+twoKB)},
		variant{"an upsert of a new entity", true, upsert("new")},
		variant{"a transaction that adds", true, submit("b1", "b2")},
		variant{"a replace that shrinks", false, update(aztables.UpdateModeReplace, "x")},
		variant{"a transaction that takes and gives", false, submit("-i1", "b1")},
	)
	if got := f.count("full"); got != n {
		t.Errorf("%d entities, want %d", got, n)
	}
}

func variantsOfMongo(t *testing.T, s *harness.Server) {
	f := fullMongo(t, s)
	db := s.Mongo.Database(f.database)
	c := db.Collection("c")
	n := 0
	for ; n < 100 && f.write("full", fmt.Sprint("i", n)) == nil; n++ {
	}
	byID := func(id string) bson.D { return bson.D{{Key: "_id", Value: id}, {Key: "k", Value: "full"}} }
	set := func(pad string) bson.D { return bson.D{{Key: "$set", Value: bson.D{{Key: "more", Value: pad}}}} }
	doc := func(id, key string) bson.D {
		return bson.D{{Key: "_id", Value: id}, {Key: "k", Value: key}, {Key: "pad", Value: twoKB}}
	}
	_, updated := c.UpdateOne(bg, byID("i0"), set(twoKB))
	_, many := c.UpdateMany(bg, bson.D{{Key: "k", Value: "full"}}, set(twoKB))
	_, upserted := c.UpdateOne(bg, byID("new"), set(twoKB), options.UpdateOne().SetUpsert(true))
	_, replaced := c.ReplaceOne(bg, byID("i0"), append(doc("i0", "full"), bson.E{Key: "more", Value: twoKB}))
	found := c.FindOneAndUpdate(bg, byID("i0"), set(twoKB)).Err()
	_, unordered := c.InsertMany(bg, []any{doc("o1", "other"), doc("f1", "full"), doc("o2", "other")},
		options.InsertMany().SetOrdered(false))
	_, ordered := c.InsertMany(bg, []any{doc("o3", "other"), doc("f2", "full"), doc("o4", "other")})
	transaction := func(do func(ctx context.Context) error) error {
		sess, err := s.Mongo.StartSession()
		ok(t, err)
		defer sess.EndSession(bg)
		_, err = sess.WithTransaction(bg, func(ctx context.Context) (any, error) { return nil, do(ctx) })
		return err
	}
	committed := transaction(func(ctx context.Context) error {
		_, err := db.Collection("log").InsertOne(ctx, bson.D{{Key: "_id", Value: 1}})
		if err == nil {
			_, err = c.InsertOne(ctx, doc("t1", "other"))
		}
		if err == nil {
			_, err = c.InsertOne(ctx, doc("t2", "full"))
		}
		return err
	})
	_, err := db.Collection("source").InsertMany(bg, []any{doc("m1", "full"), doc("m2", "full")})
	ok(t, err)
	_, merged := db.Collection("source").Aggregate(bg, bson.A{bson.D{{Key: "$merge", Value: "c"}}})
	check(t,
		variant{"an update that grows", true, updated}, variant{"an update of many", true, many},
		variant{"an upsert", true, upserted}, variant{"a replace", true, replaced},
		variant{"findAndModify", true, found}, variant{"an unordered insert", true, unordered},
		variant{"an ordered insert", true, ordered}, variant{"a transaction", true, committed},
		variant{"$merge", true, merged},
		variant{"a transaction that takes and gives", false, transaction(func(ctx context.Context) error {
			_, err := c.DeleteOne(ctx, byID("i1"))
			if err == nil {
				_, err = c.InsertOne(ctx, doc("t3", "full"))
			}
			return err
		})},
	)
	if got := f.count("full"); got != n {
		t.Errorf("%d documents of the full key, want %d", got, n)
	}
	// o1 and o2 of the unordered insert, o3 of the ordered one, none of the transaction's.
	if got := f.count("other"); got != 3 {
		t.Errorf("%d documents of the other key, want 3", got)
	}
	if got, err := db.Collection("log").CountDocuments(bg, bson.D{}); got != 0 || err != nil {
		t.Errorf("the transaction has left %d documents: %v", got, err)
	}
	more := bson.D{{Key: "more", Value: bson.D{{Key: "$exists", Value: true}}}}
	if got, err := c.CountDocuments(bg, more); got != 0 || err != nil {
		t.Errorf("%d documents were changed: %v", got, err)
	}
}

func variantsOfGremlin(t *testing.T, s *harness.Server) {
	f := fullGremlin(t, s)
	g := s.Gremlin(t, f.database, "g")
	ok(t, f.write("other", "o"))
	n := 0
	for ; n < 100 && f.write("full", fmt.Sprint("i", n)) == nil; n++ {
	}
	run := func(script string) error {
		_, err := harness.Submit(g, script, "pad", twoKB)
		return err
	}
	check(t,
		variant{"an edge of the full key", true,
			run("g.V(['full', 'i0']).addE('e').to(__.V(['other', 'o'])).property('pad', pad)")},
		variant{"a property", true, run("g.V(['full', 'i0']).property('more', pad)")},
		variant{"two vertices", true, run("g.addV('v').property('id', 'first').property('k', 'other')." +
			"addV('v').property('id', 'then').property('k', 'full').property('pad', pad)")},
		variant{"an edge to the full key", false,
			run("g.V(['other', 'o']).addE('e').to(__.V(['full', 'i0'])).property('pad', pad)")},
		variant{"a drop", false, run("g.V(['full', 'i1']).drop()")},
		variant{"an edge in its place", false,
			run("g.V(['full', 'i0']).addE('e').to(__.V(['other', 'o'])).property('pad', pad)")},
	)
	for script, want := range map[string]string{
		"g.V().has('k', 'full').count()": fmt.Sprint(n - 1), "g.V(['full', 'then']).count()": "0",
		"g.V(['other', 'first']).count()": "1", // a script is not atomic
		"g.E().count()":                   "2", "g.V(['full', 'i0']).values('more').count()": "0",
	} {
		if vs, err := harness.Submit(g, script); err != nil || fmt.Sprint(vs) != "["+want+"]" {
			t.Errorf("%s: %v %v, want %s", script, vs, err, want)
		}
	}
}
