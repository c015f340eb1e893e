package mongo

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

func TestConnect(t *testing.T) {
	s := start(t)
	for name, uri := range map[string]string{
		"direct":             s.uri("directConnection=true"),
		"as the service's":   s.uri("replicaSet=globaldb&retrywrites=false&appName=@localhost@"),
		"replica set, retry": s.uri("replicaSet=globaldb&retryWrites=true"),
		"one seed, no more":  s.uri(""),
		"SCRAM-SHA-1":        s.uri("authMechanism=SCRAM-SHA-1"),
		"SCRAM-SHA-256":      s.uri("authMechanism=SCRAM-SHA-256"),
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, uri)
			must(t, c.Ping(bg, nil))
			_, err := c.Database("connect").Collection("c").InsertOne(bg, bson.D{{Key: "n", Value: name}})
			must(t, err)
		})
	}
	t.Run("wrong password", func(t *testing.T) {
		err := dial(t, strings.Replace(s.uri("serverSelectionTimeoutMS=2000&directConnection=true"), "C2y6", "XXXX",
			1)).Ping(bg, nil)
		if err == nil || !strings.Contains(err.Error(), "AuthenticationFailed") {
			t.Fatal(err)
		}
	})
	t.Run("no credentials", func(t *testing.T) {
		c := dial(t, "mongodb://"+s.addr+"/?directConnection=true")
		must(t, c.Ping(bg, nil))
		wantCode(t, c.Database("x").Collection("c").FindOne(bg, bson.D{}).Err(), 13)
	})
	t.Run("unknown replica set", func(t *testing.T) {
		if err := dial(t, s.uri("replicaSet=other&serverSelectionTimeoutMS=500")).Ping(bg, nil); err == nil {
			t.Fatal("no error")
		}
	})
}

func TestInsertAndFind(t *testing.T) {
	c := start(t).client(t).Database("db").Collection("c")
	r, err := c.InsertOne(bg, doc(t, `{"name":"Thomas","tags":["a","b"],"n":{"$numberLong":"5"}}`))
	must(t, err)
	id := r.InsertedID.(bson.ObjectID)
	var got bson.D
	must(t, c.FindOne(bg, bson.D{{Key: "_id", Value: id}}).Decode(&got))
	if got[0].Key != "_id" || got[3].Value != int64(5) {
		t.Fatal(got)
	}
	if err := c.FindOne(bg, bson.D{{Key: "_id", Value: "nope"}}).Err(); !errors.Is(err, mongo.ErrNoDocuments) {
		t.Fatal(err)
	}
	fill(t, c, `{"_id":1,"a":5,"b":"x"}`, `{"_id":2,"a":7,"b":"y"}`, `{"_id":3,"a":[1,9],"b":null}`,
		`{"_id":4,"b":"xyz","e":{"d":1}}`)
	for _, q := range []struct {
		filter string
		ids    []any
	}{
		{`{"a":5}`, []any{int32(1)}},
		{`{"a":5.0}`, []any{int32(1)}},
		{`{"a":{"$gt":6}}`, []any{int32(2), int32(3)}},
		{`{"a":{"$gt":6,"$lt":8}}`, []any{int32(2), int32(3)}},
		{`{"a":{"$in":[7,9]}}`, []any{int32(2), int32(3)}},
		{`{"b":null,"_id":{"$type":"number"}}`, []any{int32(3)}},
		{`{"b":{"$regex":"^x"}}`, []any{int32(1), int32(4)}},
		{`{"e.d":1}`, []any{int32(4)}},
		{`{"$or":[{"a":5},{"b":"y"}]}`, []any{int32(1), int32(2)}},
		{`{"a":{"$exists":false},"_id":{"$lt":100}}`, []any{int32(4)}},
		{`{"a":{"$size":2}}`, []any{int32(3)}},
		{`{"a":{"$elemMatch":{"$gt":0,"$lt":2}}}`, []any{int32(3)}},
		{`{"_id":{"$in":[1,3,99]}}`, []any{int32(1), int32(3)}},
		{`{"$expr":{"$eq":["$b","y"]}}`, []any{int32(2)}},
		{`{"_id":{"$ne":2,"$lte":3}}`, []any{int32(1), int32(3)}},
	} {
		cur, err := c.Find(bg, doc(t, q.filter), options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}))
		var ids []any
		for _, d := range all(t, cur, err) {
			ids = append(ids, d[0].Value)
		}
		if fmt.Sprint(ids) != fmt.Sprint(q.ids) {
			t.Errorf("%s: %v, want %v", q.filter, ids, q.ids)
		}
	}
}

func TestFindOptions(t *testing.T) {
	c := start(t).client(t).Database("db").Collection("c")
	fill(t, c, `{"_id":1,"g":"a","n":3,"arr":[1,2,3],"s":[{"k":1},{"k":2}]}`, `{"_id":2,"g":"b","n":1}`,
		`{"_id":3,"g":"a","n":2,"o":{"x":1,"y":2}}`)
	find := func(f string, o *options.FindOptionsBuilder) []bson.D {
		t.Helper()
		cur, err := c.Find(bg, doc(t, f), o)
		return all(t, cur, err)
	}
	asc := bson.D{{Key: "n", Value: 1}}
	wantDocs(t, find(`{}`, options.Find().SetSort(asc).SetProjection(doc(t, `{"n":1,"_id":0}`))), `{"n":1}`,
		`{"n":2}`, `{"n":3}`)
	wantDocs(t, find(`{}`, options.Find().SetSort(doc(t, `{"g":1,"n":-1}`)).SetProjection(doc(t, `{"_id":1}`))),
		`{"_id":1}`, `{"_id":3}`, `{"_id":2}`)
	wantDocs(t, find(`{}`, options.Find().SetSort(asc).SetSkip(1).SetLimit(1).SetProjection(doc(t, `{"_id":1}`))),
		`{"_id":3}`)
	wantDocs(t, find(`{"_id":1}`, options.Find().SetProjection(doc(t, `{"arr":{"$slice":-2},"s":0}`))),
		`{"_id":1,"g":"a","n":3,"arr":[2,3]}`)
	wantDocs(t, find(`{"_id":1}`, options.Find().SetProjection(doc(t, `{"s":{"$elemMatch":{"k":2}}}`))),
		`{"_id":1,"s":[{"k":2}]}`)
	wantDocs(t, find(`{"_id":1,"s.k":2}`, options.Find().SetProjection(doc(t, `{"s.$":1}`))), `{"_id":1,"s":[{"k":2}]}`)
	wantDocs(t, find(`{"_id":3}`, options.Find().SetProjection(doc(t, `{"o.x":1,"sum":{"$add":["$n",1]}}`))),
		`{"_id":3,"o":{"x":1},"sum":3}`)
	_, err := c.Find(bg, bson.D{}, options.Find().SetProjection(doc(t, `{"a":1,"b":0}`)))
	wantCode(t, err, 31254)
	_, err = c.Find(bg, doc(t, `{"a":{"$foo":1}}`))
	wantCode(t, err, 2)
	wantDocs(t, find(`{"g":"A"}`, options.Find().SetCollation(&options.Collation{Locale: "en", Strength: 2}).
		SetSort(asc).SetLimit(1).SetProjection(doc(t, `{"g":1,"_id":0}`))), `{"g":"a"}`)
	if got := find(`{}`, options.Find().SetLimit(-2)); len(got) != 2 {
		t.Fatal(got)
	}
}

func TestCursors(t *testing.T) {
	cl := start(t).client(t)
	c := cl.Database("db").Collection("c")
	var ds []bson.D
	const n = 537
	for i := range n {
		ds =
			append(
				ds, bson.D{{Key: "_id", Value: i}, {Key: "g", Value: i % 7},
					{Key: "pad", Value: strings.Repeat("x", 100)}})
	}
	_, err := c.InsertMany(bg, ds)
	must(t, err)
	for name, o := range map[string]*options.FindOptionsBuilder{
		"default":       options.Find(),
		"batches of 10": options.Find().SetBatchSize(10),
		"sorted":        options.Find().SetBatchSize(50).SetSort(bson.D{{Key: "g", Value: -1}, {Key: "_id", Value: 1}}),
		"one field":     options.Find().SetBatchSize(33).SetSort(bson.D{{Key: "g", Value: 1}}),
		"projected":     options.Find().SetBatchSize(100).SetProjection(bson.D{{Key: "_id", Value: 1}}),
	} {
		t.Run(name, func(t *testing.T) {
			cur, err := c.Find(bg, bson.D{}, o)
			seen := map[any]bool{}
			for _, d := range all(t, cur, err) {
				seen[d[0].Value] = true
			}
			if len(seen) != n {
				t.Fatalf("%d documents", len(seen))
			}
		})
	}
	t.Run("skip and limit over batches", func(t *testing.T) {
		cur, err := c.Find(bg, bson.D{}, options.Find().SetBatchSize(10).SetSkip(5).SetLimit(55).SetSort(
			bson.D{{Key: "_id", Value: 1}}))
		got := all(t, cur, err)
		if len(got) != 55 || got[0][0].Value != int32(5) || got[54][0].Value != int32(59) {
			t.Fatal(len(got), got[0])
		}
	})
	t.Run("aggregate over batches", func(t *testing.T) {
		cur, err := c.Aggregate(bg, pipeline(t, `[{"$match":{"g":{"$lt":3}}},{"$addFields":{"x":1}}]`),
			options.Aggregate().SetBatchSize(20))
		if got := all(t, cur, err); len(got) != 231 {
			t.Fatal(len(got))
		}
	})
	t.Run("empty first batch", func(t *testing.T) {
		db := cl.Database("db")
		var r bson.M
		must(t, db.RunCommand(bg, doc(t, `{"find":"c","batchSize":0}`)).Decode(&r))
		got := r["cursor"].(bson.D)
		if len(got[0].Value.(bson.A)) != 0 || got[1].Value == int64(0) {
			t.Fatal(r)
		}
		must(
			t, db.RunCommand(bg, bson.D{{Key: "getMore", Value: got[1].Value}, {Key: "collection", Value: "c"}}).Decode(
				&r))
		if got := r["cursor"].(bson.D); len(got[0].Value.(bson.A)) != n || got[1].Value != int64(0) {
			t.Fatal(len(got[0].Value.(bson.A)), got[1])
		}
	})
	t.Run("kill", func(t *testing.T) {
		db := cl.Database("db")
		var r bson.M
		must(t, db.RunCommand(bg, doc(t, `{"find":"c","batchSize":2}`)).Decode(&r))
		id := r["cursor"].(bson.D)[1].Value
		must(t, db.RunCommand(bg, bson.D{{Key: "killCursors", Value: "c"}, {Key: "cursors", Value: bson.A{id}}}).Err())
		wantCode(t, db.RunCommand(bg, bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "c"}}).Err(), 43)
	})
}

func TestWriteErrors(t *testing.T) {
	c := start(t).client(t).Database("db").Collection("c")
	fill(t, c, `{"_id":2}`)
	_, err := c.InsertOne(bg, doc(t, `{"_id":2}`))
	if !mongo.IsDuplicateKeyError(err) ||
		!strings.Contains(err.Error(), "E11000 duplicate key error collection: db.c index: _id_ dup key: { _id: 2 }") {
		t.Fatal(err)
	}
	r, err := c.InsertMany(bg, docs(t, `{"_id":1}`, `{"_id":2}`, `{"_id":3}`))
	if !mongo.IsDuplicateKeyError(err) || len(r.InsertedIDs) != 1 {
		t.Fatal(r, err)
	}
	_, err = c.InsertMany(bg, docs(t, `{"_id":2}`, `{"_id":5}`, `{"_id":6}`), options.InsertMany().SetOrdered(false))
	var bwe mongo.BulkWriteException
	if !errors.As(err, &bwe) || len(bwe.WriteErrors) != 1 || bwe.WriteErrors[0].Index != 0 {
		t.Fatal(err)
	}
	if n, err := c.CountDocuments(bg, bson.D{}); n != 4 || err != nil {
		t.Fatal(n, err)
	}
	_, err = c.InsertOne(bg, bson.D{{Key: "_id", Value: bson.A{1}}})
	wantCode(t, err, 53)
	_, err = c.InsertOne(bg, bson.D{{Key: "_id", Value: 9}, {Key: "$x", Value: 1}}) // allowed since 5.0
	must(t, err)
	_, err = c.InsertOne(bg, bson.D{{Key: "_id", Value: bson.D{{Key: "$x", Value: 1}}}})
	wantCode(t, err, 52)
	_, err = c.UpdateOne(bg, doc(t, `{"_id":2}`), doc(t, `{"$set":{"_id":7}}`))
	wantCode(t, err, 66)
	_, err = c.UpdateOne(bg, doc(t, `{"_id":2}`), doc(t, `{"$set":{"a":1},"$inc":{"a":1}}`))
	wantCode(t, err, 40)
	_, err = c.InsertOne(bg, bson.D{{Key: "_id", Value: "big"}, {Key: "x", Value: strings.Repeat("x", 17<<20)}})
	if err == nil {
		t.Fatal("a document of 17 MiB was stored")
	}
	if n, _ := c.CountDocuments(bg, bson.D{}); n != 5 {
		t.Fatal(n)
	}
}

func TestUpdates(t *testing.T) {
	c := start(t).client(t).Database("db").Collection("c")
	fill(t, c, `{"_id":1,"n":1,"tags":["a"],"g":"x"}`, `{"_id":2,"n":2,"g":"x"}`, `{"_id":3,"n":3,"g":"y"}`)
	r, err := c.UpdateOne(bg, doc(t, `{"_id":1}`), doc(t, `{"$inc":{"n":5},"$push":{"tags":"b"},"$set":{"o.p":true}}`))
	must(t, err)
	if r.MatchedCount != 1 || r.ModifiedCount != 1 {
		t.Fatal(*r)
	}
	cur, err := c.Find(bg, doc(t, `{"_id":1}`))
	wantDocs(t, all(t, cur, err), `{"_id":1,"n":6,"tags":["a","b"],"g":"x","o":{"p":true}}`)
	if r, err = c.UpdateOne(bg, doc(t, `{"_id":1}`), doc(t, `{"$set":{"n":6}}`)); err != nil || r.MatchedCount != 1 ||
		r.ModifiedCount != 0 {
		t.Fatal(r, err)
	}
	if r, err = c.UpdateMany(bg, doc(t, `{"g":"x"}`), doc(t, `{"$set":{"g":"z"},"$max":{"n":4}}`)); err != nil ||
		r.MatchedCount != 2 || r.ModifiedCount != 2 {
		t.Fatal(r, err)
	}
	if r, err = c.UpdateOne(bg, doc(t, `{"g":"nope"}`), doc(t, `{"$set":{"a":1}}`)); err != nil || r.MatchedCount != 0 {
		t.Fatal(r, err)
	}
	if r, err = c.UpdateOne(bg, doc(t, `{"_id":9,"k":"v"}`), doc(t, `{"$set":{"a":1},"$setOnInsert":{"b":2}}`),
		options.UpdateOne().SetUpsert(true)); err != nil || r.UpsertedID != int32(9) {
		t.Fatal(r, err)
	}
	cur, err = c.Find(bg, doc(t, `{"_id":9}`))
	wantDocs(t, all(t, cur, err), `{"_id":9,"k":"v","a":1,"b":2}`)
	if r, err = c.UpdateOne(bg, doc(t, `{"k":"w"}`), doc(t, `{"$set":{"a":1}}`),
		options.UpdateOne().SetUpsert(true)); err != nil || r.UpsertedCount != 1 {
		t.Fatal(r, err)
	}
	if _, ok := r.UpsertedID.(bson.ObjectID); !ok {
		t.Fatal(r.UpsertedID)
	}
	_, err = c.UpdateOne(bg, doc(t, `{"_id":9,"k":"other"}`), doc(t, `{"$set":{"a":1}}`),
		options.UpdateOne().SetUpsert(true))
	wantCode(t, err, 11000)
	if r, err = c.ReplaceOne(bg, doc(t, `{"_id":3}`), doc(t, `{"only":1}`)); err != nil || r.ModifiedCount != 1 {
		t.Fatal(r, err)
	}
	cur, err = c.Find(bg, doc(t, `{"only":1}`))
	wantDocs(t, all(t, cur, err), `{"_id":3,"only":1}`)
	if r, err = c.UpdateMany(bg, doc(t, `{"_id":{"$lte":2}}`),
		pipeline(t, `[{"$set":{"twice":{"$multiply":["$n",2]}}}]`)); err != nil || r.ModifiedCount != 2 {
		t.Fatal(r, err)
	}
	r, err = c.UpdateOne(bg, doc(t, `{"_id":1}`), doc(t, `{"$set":{"tags.$[e]":"B"}}`),
		options.UpdateOne().SetArrayFilters([]any{doc(t, `{"e":"b"}`)}))
	if err != nil || r.ModifiedCount != 1 {
		t.Fatal(r, err)
	}
	cur, err = c.Find(bg, doc(t, `{"_id":{"$lte":2}}`),
		options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}).SetProjection(doc(t, `{"twice":1,"tags":1}`)))
	wantDocs(t, all(t, cur, err), `{"_id":1,"tags":["a","B"],"twice":12}`, `{"_id":2,"twice":8}`)
}

func TestBulkWrite(t *testing.T) {
	c := start(t).client(t).Database("db").Collection("c")
	r, err := c.BulkWrite(bg, []mongo.WriteModel{
		mongo.NewInsertOneModel().SetDocument(doc(t, `{"_id":1,"n":1}`)),
		mongo.NewUpdateOneModel().SetFilter(doc(t, `{"_id":1}`)).SetUpdate(doc(t, `{"$inc":{"n":1}}`)),
		mongo.NewUpdateOneModel().SetFilter(doc(t, `{"_id":2}`)).SetUpdate(doc(t, `{"$inc":{"n":1}}`)).SetUpsert(true),
		mongo.NewReplaceOneModel().SetFilter(doc(t, `{"_id":1}`)).SetReplacement(doc(t, `{"n":10}`)),
		mongo.NewDeleteOneModel().SetFilter(doc(t, `{"_id":2}`)),
	})
	if err != nil || r.InsertedCount != 1 || r.MatchedCount != 2 || r.UpsertedCount != 1 || r.DeletedCount != 1 {
		t.Fatal(r, err)
	}
	cur, err := c.Find(bg, bson.D{})
	wantDocs(t, all(t, cur, err), `{"_id":1,"n":10}`)
}

func TestDeleteAndFindAndModify(t *testing.T) {
	c := start(t).client(t).Database("db").Collection("c")
	fill(t, c, `{"_id":1,"g":1,"n":1}`, `{"_id":2,"g":1,"n":2}`, `{"_id":3,"g":2,"n":3}`, `{"_id":4,"g":2,"n":4}`)
	if r, err := c.DeleteOne(bg, doc(t, `{"g":1}`)); err != nil || r.DeletedCount != 1 {
		t.Fatal(r, err)
	}
	if r, err := c.DeleteMany(bg, doc(t, `{"g":1}`)); err != nil || r.DeletedCount != 1 {
		t.Fatal(r, err)
	}
	var d bson.D
	must(t, c.FindOneAndUpdate(bg, doc(t, `{"g":2}`), doc(t, `{"$set":{"seen":true}}`),
		options.FindOneAndUpdate().SetSort(bson.D{{Key: "n", Value: -1}})).Decode(&d))
	wantDocs(t, []bson.D{d}, `{"_id":4,"g":2,"n":4}`)
	must(t, c.FindOneAndUpdate(bg, doc(t, `{"_id":3}`), doc(t, `{"$inc":{"n":1}}`),
		options.FindOneAndUpdate().SetReturnDocument(options.After).SetProjection(doc(t, `{"n":1}`))).Decode(&d))
	wantDocs(t, []bson.D{d}, `{"_id":3,"n":4}`)
	if err := c.FindOneAndUpdate(bg, doc(t, `{"_id":99}`), doc(t, `{"$inc":{"n":1}}`)).Err(); !errors.Is(
		err, mongo.ErrNoDocuments) {
		t.Fatal(err)
	}
	must(t, c.FindOneAndReplace(bg, doc(t, `{"_id":50}`), doc(t, `{"x":1}`),
		options.FindOneAndReplace().SetUpsert(true).SetReturnDocument(options.After)).Decode(&d))
	wantDocs(t, []bson.D{d}, `{"_id":50,"x":1}`)
	must(t, c.FindOneAndDelete(bg, doc(t, `{"_id":4}`)).Decode(&d))
	wantDocs(t, []bson.D{d}, `{"_id":4,"g":2,"n":4,"seen":true}`)
	if n, err := c.CountDocuments(bg, bson.D{}); n != 2 || err != nil {
		t.Fatal(n, err)
	}
}
