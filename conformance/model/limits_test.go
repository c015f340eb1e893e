package model

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	gremlingo "github.com/apache/tinkerpop/gremlin-go/v3/driver"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/conformance/harness"
)

const (
	twoMiB    = 2 << 20
	mongoSize = 16 << 20
)

// M2: each API takes an item of exactly its limit and refuses one byte more, at its creation and when it grows. The
// item stays as it was.
func TestM2LimitToTheByte(t *testing.T) {
	s := harness.Start(t)
	t.Run("NoSQL", func(t *testing.T) { limitOfSQL(t, s) })
	t.Run("Mongo", func(t *testing.T) { limitOfMongo(t, s) })
	t.Run("Table", func(t *testing.T) { limitOfTable(t, s) })
	t.Run("Gremlin", func(t *testing.T) { limitOfGremlin(t, s) })
}

// limitOfSQL: the limit is that of a request's body, and of what a patch makes of an item.
func limitOfSQL(t *testing.T, s *harness.Server) {
	c := harness.Container(t, s.Database(t), "c", 0, "/k")
	sized := func(n int) []byte {
		const empty = `{"id":"x","k":"a","pad":""}`
		return []byte(`{"id":"x","k":"a","pad":"` + strings.Repeat("x", n-len(empty)) + `"}`)
	}
	_, err := c.CreateItem(bg, str("a"), sized(twoMiB+1), nil)
	refused(t, err, 413)
	_, err = c.CreateItem(bg, str("a"), sized(twoMiB), nil)
	ok(t, err)
	_, err = c.UpsertItem(bg, str("a"), sized(twoMiB+1), nil)
	refused(t, err, 413)
	_, err = c.ReplaceItem(bg, str("a"), "x", sized(twoMiB+1), nil)
	refused(t, err, 413)
	_, err = c.ReplaceItem(bg, str("a"), "x", sized(twoMiB), nil)
	ok(t, err)
	b := c.NewTransactionalBatch(str("a"))
	b.CreateItem([]byte(`{"id":"y","k":"a"}`), nil)
	b.UpsertItem(sized(twoMiB), nil)
	_, err = c.ExecuteTransactionalBatch(bg, b, nil)
	refused(t, err, 413)
	_, err = c.ReadItem(bg, str("a"), "y", nil)
	refused(t, err, 404)

	// An array that grows without bound, a comment at a time.
	list := `"` + strings.Repeat("x", 10_000) + `"`
	create(t, c, "k", `{"id":"post","k":"a","comments":[`+strings.Repeat(list+",", 205)+list+`]}`)
	n := 206
	for ; n < 300; n++ {
		ops := azcosmos.PatchOperations{}
		ops.AppendAdd("/comments/-", strings.Repeat("y", 10_000))
		if _, perr := c.PatchItem(bg, str("a"), "post", ops, nil); perr != nil {
			refused(t, perr, 413)
			break
		}
	}
	if n < 207 || n > 210 {
		t.Errorf("%d comments of 10,000 bytes", n)
	}
	same(t, harness.Query(t, c, str("a"), "SELECT VALUE ARRAY_LENGTH(c.comments) FROM c WHERE c.id = 'post'"),
		fmt.Sprintf("[%d]", n))
}

// limitOfMongo: the limit is that of a document, 16 MiB.
func limitOfMongo(t *testing.T, s *harness.Server) {
	c := s.Mongo.Database(harness.Unique("m")).Collection("c")
	sized := func(id string, n int) bson.D {
		empty, err := bson.Marshal(bson.D{{Key: "_id", Value: id}, {Key: "pad", Value: ""}})
		ok(t, err)
		return bson.D{{Key: "_id", Value: id}, {Key: "pad", Value: strings.Repeat("x", n-len(empty))}}
	}
	_, err := c.InsertOne(bg, sized("a", mongoSize))
	ok(t, err)
	code := func(err error) int {
		var we mongo.WriteException
		var ce mongo.CommandError
		switch {
		case errors.As(err, &we) && len(we.WriteErrors) == 1:
			return we.WriteErrors[0].Code
		case errors.As(err, &ce):
			return int(ce.Code)
		}
		return 0
	}
	if err := c.Database().RunCommand(bg, bson.D{{Key: "insert", Value: "c"},
		{Key: "documents", Value: bson.A{sized("b", mongoSize+1)}}}).Err(); code(err) != 10334 {
		t.Errorf("one byte more: %v", err)
	}
	byID := func(id string) bson.D { return bson.D{{Key: "_id", Value: id}} }
	push := bson.D{{Key: "$push", Value: bson.D{{Key: "comments", Value: "x"}}}}
	if _, err := c.UpdateOne(bg, byID("a"), push); code(err) != 10334 {
		t.Errorf("a push: %v", err)
	}
	if err := c.FindOneAndUpdate(bg, byID("a"), push).Err(); code(err) != 10334 {
		t.Errorf("findAndModify: %v", err)
	}
	_, err = c.UpdateOne(bg, byID("a"), bson.D{{Key: "$set", Value: sized("a", mongoSize)[1:]}})
	ok(t, err)
	more := bson.D{{Key: "$set", Value: sized("a", mongoSize+1)[1:]}}
	if _, err = c.UpdateOne(bg, byID("a"), more); code(err) != 10334 {
		t.Errorf("one byte more by $set: %v", err)
	}
	r, err := c.FindOne(bg, byID("a")).Raw()
	if len(r) != mongoSize || err != nil {
		t.Errorf("the document has %d bytes: %v", len(r), err)
	}
	if n, err := c.CountDocuments(bg, bson.D{}); n != 1 || err != nil {
		t.Errorf("%d documents: %v", n, err)
	}
}

// edge returns the greatest n from lo up to hi, not included, that is taken, and the error of n+1. lo is taken.
func edge(t *testing.T, lo, hi int, take func(n int) error) (int, error) {
	t.Helper()
	last := take(hi)
	if last == nil {
		t.Fatalf("%d was taken", hi)
	}
	ok(t, take(lo))
	for hi-lo > 1 {
		mid := (lo + hi) / 2
		if err := take(mid); err != nil {
			hi, last = mid, err
		} else {
			lo = mid
		}
	}
	return lo, last
}

// limitOfTable: the limit is that of an entity as it is stored, which depends on its properties.
func limitOfTable(t *testing.T, s *harness.Server) {
	table := s.Tables.NewClient("limits")
	_, err := table.CreateTable(bg, nil)
	ok(t, err)
	sized := func(key string, n int) []byte {
		var e strings.Builder
		fmt.Fprintf(&e, `{"PartitionKey":"a","RowKey":%q`, key)
		for i := 0; n > 0; i++ {
			part := min(n, 32000)
			fmt.Fprintf(&e, `,"P%d":"%s"`, i, strings.Repeat("x", part))
			n -= part
		}
		return []byte(e.String() + "}")
	}
	n, err := edge(t, twoMiB-4000, twoMiB, func(n int) error {
		o := &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeReplace}
		_, err := table.UpsertEntity(bg, sized("x", n), o)
		return err
	})
	if re := refused(t, err, 400); re.ErrorCode != "EntityTooLarge" {
		t.Errorf("%d bytes: %v", n+1, re)
	}
	_, err = table.AddEntity(bg, sized("y", n+1), nil)
	refused(t, err, 400)
	_, err = table.AddEntity(bg, sized("y", n), nil)
	ok(t, err)
	_, err = table.UpdateEntity(bg, []byte(`{"PartitionKey":"a","RowKey":"y","More":1}`), nil)
	if re := refused(t, err, 400); re.ErrorCode != "EntityTooLarge" {
		t.Errorf("a merge: %v", re)
	}
	_, err = table.SubmitTransaction(bg, []aztables.TransactionAction{
		{ActionType: aztables.TransactionTypeAdd, Entity: []byte(`{"PartitionKey":"a","RowKey":"z"}`)},
		{ActionType: aztables.TransactionTypeUpdateMerge, Entity: []byte(`{"PartitionKey":"a","RowKey":"y","More":1}`)},
	}, nil)
	var re *azcore.ResponseError
	if !errors.As(err, &re) || re.ErrorCode != "EntityTooLarge" {
		t.Errorf("a transaction: %v", err)
	}
	_, err = table.GetEntity(bg, "a", "z", nil)
	refused(t, err, 404)
	r, err := table.GetEntity(bg, "a", "y", nil)
	ok(t, err)
	if e := object(t, r.Value); e["More"] != nil || len(e["P0"].(string)) != 32000 {
		t.Error("the entity has changed")
	}
}

// limitOfGremlin: the limit is that of a vertex as it is stored.
func limitOfGremlin(t *testing.T, s *harness.Server) {
	db := s.Database(t)
	c := harness.Container(t, db, "g", 0, "/k")
	g, err := gremlingo.NewClient("ws://"+s.Addr(server.Gremlin)+"/gremlin", func(o *gremlingo.ClientSettings) {
		o.AuthInfo = gremlingo.BasicAuthInfo("/dbs/"+db.ID()+"/colls/g", s.Key())
		o.LogVerbosity = gremlingo.Off
		o.WriteBufferSize = 4 * twoMiB
	})
	ok(t, err)
	defer g.Close()
	_, err = harness.Submit(g, "g.V()") // a request before the login may have 1 MiB
	ok(t, err)
	i := 0
	n, err := edge(t, twoMiB-2000, twoMiB, func(n int) error {
		i++
		_, err := harness.Submit(g, "g.addV('v').property('id', i).property('k', 'a').property('pad', pad)", "i",
			fmt.Sprintf("v%03d", i), "pad", strings.Repeat("x", n))
		return err
	})
	tooLarge := func(what string, err error) {
		if err == nil || !strings.Contains(err.Error(), "Request size is too large") {
			t.Errorf("%s: %.300s", what, fmt.Sprint(err))
		}
	}
	tooLarge("one byte more", err)
	_, err = harness.Submit(g, "g.addV('v').property('id', 'post').property('k', 'a').property('pad', pad)", "pad",
		strings.Repeat("x", n-100))
	ok(t, err)
	_, err = harness.Submit(g, "g.V(['a', 'post']).property(list, 'comment', 'something useful, I am sure, and more')")
	tooLarge("one more comment", err)
	_, err = harness.Submit(g, "g.V(['a', 'post']).addE('e').to(__.V(['a', 'post'])).property('pad', pad)", "pad",
		strings.Repeat("x", twoMiB))
	tooLarge("an edge", err)
	vs, err := harness.Submit(g, "g.V(['a', 'post']).project('p', 'e').by(__.properties().count())."+
		"by(__.bothE().count())")
	if err != nil || fmt.Sprint(vs) != "[map[e:0 p:2]]" {
		t.Errorf("the vertex has %v: %v", vs, err)
	}
	r, err := c.ReadItem(bg, str("a"), "post", nil)
	ok(t, err)
	if len(r.Value) > twoMiB+1000 || len(r.Value) < twoMiB-1000 {
		t.Errorf("the vertex has %d bytes for NoSQL", len(r.Value))
	}
}
