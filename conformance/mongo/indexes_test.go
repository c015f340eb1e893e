package mongo

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/orrerydb/orrery/core"
)

// createIndexes runs the command with specifications in Extended JSON.
func createIndexes(t *testing.T, c *mongo.Collection, specs ...string) error {
	t.Helper()
	list := bson.A{}
	for _, s := range specs {
		list = append(list, doc(t, s))
	}
	return c.Database().RunCommand(bg, bson.D{{Key: "createIndexes", Value: c.Name()},
		{Key: "indexes", Value: list}}).Err()
}

// listed returns the indexes in Extended JSON, one a line, without the one on _id.
func listed(t *testing.T, c *mongo.Collection) string {
	t.Helper()
	cur, err := c.Indexes().List(bg)
	must(t, err)
	var out []string
	for cur.Next(bg) {
		text, err := bson.MarshalExtJSON(cur.Current, false, false)
		must(t, err)
		out = append(out, string(text))
	}
	must(t, cur.Err())
	return strings.Join(out[1:], "\n")
}

// Every option is listed as it was given: `v`, `key` and `name` come first, and what is switched off isn't there. The
// option background has had no meaning since 4.2, and is listed all the same.
func TestIndexOptions(t *testing.T) {
	db := start(t).client(t).Database("db")
	for i, spec := range []string{
		`{"key":{"b":-1,"a":1},"name":"n"}`,
		`{"key":{"a":1},"name":"n","unique":true}`,
		`{"key":{"a":1},"name":"n","sparse":true}`,
		`{"key":{"a":1},"name":"n","hidden":true}`,
		`{"key":{"a":1},"name":"n","expireAfterSeconds":0}`,
		`{"key":{"a":1},"name":"n","unique":true,"partialFilterExpression":{"a":{"$gt":5}}}`,
		`{"key":{"a":1},"name":"n","partialFilterExpression":{"$or":[{"a":{"$exists":true}},{"b":{"$in":[1,2]}}]}}`,
		`{"key":{"a":"hashed"},"name":"n"}`,
		`{"key":{"$**":1},"name":"n","wildcardProjection":{"a":1}}`,
		`{"key":{"a":1},"name":"n","storageEngine":{"wiredTiger":{}}}`,
	} {
		c := db.Collection("c" + string(rune('a'+i)))
		must(t, createIndexes(t, c, spec))
		if got := listed(t, c); got != `{"v":2,`+spec[1:] {
			t.Errorf("%s\nlisted as %s", spec, got)
		}
	}
	c := db.Collection("off")
	must(t, createIndexes(t, c, `{"key":{"a":1},"name":"n","unique":false,"sparse":0,"background":true,
		"expireAfterSeconds":2.0,"collation":{"locale":"simple"}}`))
	if got := listed(t, c); got != `{"v":2,"key":{"a":1},"name":"n","sparse":false,"background":true,`+
		`"expireAfterSeconds":2}` {
		t.Error(got)
	}
}

// Each specification is refused with a code of the server, given an index {a: 1} named a_1.
func TestIndexErrors(t *testing.T) {
	c := start(t).client(t).Database("db").Collection("c")
	must(t, createIndexes(t, c, `{"key":{"a":1},"name":"a_1"}`))
	for spec, code := range map[string]int{
		`{"key":{"a":1},"name":"a_1","unique":true}`:                                              86,
		`{"key":{"b":1},"name":"a_1"}`:                                                            86,
		`{"key":{"a":1},"name":"other"}`:                                                          85,
		`{"key":{"a":1},"name":"a_1","expireAfterSeconds":5}`:                                     85,
		`{"key":{"a":1},"name":"other","expireAfterSeconds":5}`:                                   85,
		`{"key":{"b":1},"name":"n","unique":"yes"}`:                                               14,
		`{"key":{"b":1},"name":"n","partialFilterExpression":5}`:                                  14,
		`{"key":{"b":1},"name":"n","nonsense":1}`:                                                 197,
		`{"key":{"_id":1},"name":"n","unique":true}`:                                              197,
		`{"key":{"_id":1},"name":"n","expireAfterSeconds":1}`:                                     197,
		`{"key":{"b":1},"name":"n","sparse":true,"partialFilterExpression":{"a":1}}`:              67,
		`{"key":{"b":1},"name":"n","partialFilterExpression":{"a":{"$ne":1}}}`:                    67,
		`{"key":{"b":1},"name":"n","partialFilterExpression":{"a":{"$exists":false}}}`:            67,
		`{"key":{"b":1},"name":"n","partialFilterExpression":{"$nor":[{"a":1}]}}`:                 67,
		`{"key":{"b":1},"name":"n","partialFilterExpression":{"a":{"$regex":"x"}}}`:               67,
		`{"key":{"b":1,"c":1},"name":"n","expireAfterSeconds":1}`:                                 67,
		`{"key":{"b":1},"name":"n","expireAfterSeconds":-1}`:                                      67,
		`{"key":{"b":1},"name":"n","expireAfterSeconds":"1"}`:                                     67,
		`{"key":{"b":1},"name":"n","expireAfterSeconds":{"$numberLong":"2147483648"}}`:            67,
		`{"key":{"$**":1},"name":"n","unique":true}`:                                              67,
		`{"key":{"b":"hashed"},"name":"n","unique":true}`:                                         16764,
		`{"key":{"b":1},"name":"n","collation":{"locale":"xx"}}`:                                  2,
		`{"key":{"b":1},"name":"n","wildcardProjection":{"a":1}}`:                                 2,
		`{"key":{},"name":"n"}`:                                                                   67,
		`{"key":{"b":0},"name":"n"}`:                                                              67,
		`{"key":{"b":1}}`:                                                                         9,
		`{"key":{"b":1},"name":"n","unique":true,"partialFilterExpression":{"$and":[]}}`:          2,
		`{"key":{"b":1},"name":"n","unique":true,"partialFilterExpression":{"a":{"$type":"no"}}}`: 2,
	} {
		if err := createIndexes(t, c, spec); err == nil || !hasCode(err, code) {
			t.Errorf("%s: %v, want code %d", spec, err, code)
		}
	}
	if got := listed(t, c); got != `{"v":2,"key":{"a":1},"name":"a_1"}` {
		t.Error(got)
	}
	// Indexes of one key may differ in what is unique, sparse or partial.
	must(t, createIndexes(t, c, `{"key":{"a":1},"name":"u","unique":true}`,
		`{"key":{"a":1},"name":"p","partialFilterExpression":{"b":1}}`))
	must(t, createIndexes(t, c, `{"key":{"a":1},"name":"u","unique":true}`))
	wantCode(t, c.Database().RunCommand(bg, doc(t, `{"dropIndexes":"c","index":{"a":1}}`)).Err(), 181)
}

func hasCode(err error, code int) bool {
	var s mongo.ServerError
	return errors.As(err, &s) && s.HasErrorCode(code)
}

// A duplicate is E11000 with the index, its key and the values, wherever the write comes from.
func TestUniqueIndex(t *testing.T) {
	s := start(t)
	c := s.client(t).Database("db").Collection("c")
	must(t, createIndexes(t, c, `{"key":{"mail":1,"n":-1},"name":"mail_1_n_-1","unique":true}`))
	fill(t, c, `{"_id":1,"mail":"x","n":1}`, `{"_id":2,"mail":"y"}`)
	_, err := c.InsertOne(bg, doc(t, `{"_id":3,"mail":"x","n":1.0}`))
	var w mongo.WriteException
	if !errors.As(err, &w) || !mongo.IsDuplicateKeyError(err) {
		t.Fatal(err)
	}
	first := w.WriteErrors[0]
	want := `E11000 duplicate key error collection: db.c index: mail_1_n_-1 dup key: { mail: "x", n: 1.0 }`
	if first.Message != want {
		t.Errorf("%s, want %s", first.Message, want)
	}
	if got := first.Raw.Lookup("keyPattern").String() + first.Raw.Lookup("keyValue").String(); got !=
		`{"mail": {"$numberInt":"1"},"n": {"$numberInt":"-1"}}{"mail": "x","n": {"$numberDouble":"1.0"}}` {
		t.Error(got)
	}
	_, err = c.UpdateOne(bg, doc(t, `{"_id":1}`), doc(t, `{"$set":{"mail":"z"}}`))
	must(t, err)
	for name, f := range map[string]func() error{
		"missing is null": func() error { _, err := c.InsertOne(bg, doc(t, `{"mail":"y","n":null}`)); return err },
		"update": func() error {
			_, err := c.UpdateOne(bg, doc(t, `{"_id":2}`), doc(t, `{"$set":{"mail":"z","n":1}}`))
			return err
		},
		"update of several": func() error {
			_, err := c.UpdateMany(bg, doc(t, `{}`), doc(t, `{"$set":{"mail":"z","n":1}}`))
			return err
		},
		"replacement": func() error {
			_, err := c.ReplaceOne(bg, doc(t, `{"_id":2}`), doc(t, `{"mail":"z","n":1}`))
			return err
		},
		"upsert": func() error {
			_, err := c.UpdateOne(bg, doc(t, `{"none":1}`), doc(t, `{"$set":{"mail":"z","n":1}}`),
				options.UpdateOne().SetUpsert(true))
			return err
		},
		"findAndModify": func() error {
			return c.FindOneAndUpdate(bg, doc(t, `{"_id":2}`), doc(t, `{"$set":{"mail":"z","n":1}}`)).Err()
		},
		"insert of several": func() error {
			_, err := c.InsertMany(bg, []any{doc(t, `{"_id":8,"mail":"q"}`), doc(t, `{"_id":9,"mail":"q"}`)})
			return err
		},
	} {
		if err := f(); !mongo.IsDuplicateKeyError(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The other doors meet it too.
	k, err := s.engine.Container("db", "c")
	must(t, err)
	raw, err := bson.Marshal(doc(t, `{"_id":"nosql","mail":"z","n":1}`))
	must(t, err)
	var dup *core.Duplicate
	if _, err := k.Write(bg, core.Write{Kind: core.Create, Doc: raw}); !errors.As(err, &dup) {
		t.Error(err)
	}
	_, err = c.InsertOne(bg, doc(t, `{"mail":[1,2],"n":[3]}`))
	if !hasCode(err, 171) {
		t.Error(err)
	}
	// The build finds duplicates, and leaves nothing.
	fill(t, c, `{"_id":20,"mail":"20","other":1}`, `{"_id":21,"mail":"21","other":1}`)
	before := listed(t, c)
	if err := createIndexes(t, c, `{"key":{"other":1},"name":"o","unique":true}`); !hasCode(err, 11000) ||
		!strings.Contains(err.Error(), `index: o dup key: { other: `) {
		t.Error(err)
	}
	if after := listed(t, c); after != before {
		t.Errorf("%s, before: %s", after, before)
	}
	// A dropped index refuses nothing.
	must(t, c.Indexes().DropOne(bg, "mail_1_n_-1"))
	_, err = c.InsertOne(bg, doc(t, `{"mail":"z","n":1}`))
	must(t, err)
}

// Upserts that race for a unique value make one document.
func TestUniqueUpserts(t *testing.T) {
	c := start(t).client(t).Database("db").Collection("c")
	must(t, createIndexes(t, c, `{"key":{"k":1},"name":"k","unique":true}`))
	var all sync.WaitGroup
	const writers, each = 4, 25
	for range writers {
		all.Go(func() {
			for i := range each {
				_, err := c.UpdateOne(bg, bson.D{{Key: "k", Value: i}}, doc(t, `{"$inc":{"n":1}}`),
					options.UpdateOne().SetUpsert(true))
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	n, err := c.CountDocuments(bg, doc(t, `{"n":4}`))
	if total, err2 := c.CountDocuments(bg, bson.D{}); n != each || total != each || errors.Join(err, err2) != nil {
		t.Error(n, total, err, err2)
	}
}

// Documents expire by a date, also after collMod has changed the time.
func TestDateTTL(t *testing.T) {
	s := start(t)
	c := s.client(t).Database("db").Collection("c")
	must(t, createIndexes(t, c, `{"key":{"at":1},"name":"at_1","expireAfterSeconds":3600}`))
	now := s.engine.Clock().Now()
	_, err := c.InsertMany(bg, []any{
		bson.D{{Key: "_id", Value: 1}, {Key: "at", Value: now.Add(-90 * time.Minute)}},
		bson.D{{Key: "_id", Value: 2}, {Key: "at", Value: bson.A{now, now.Add(-30 * time.Minute)}}},
		bson.D{{Key: "_id", Value: 3}, {Key: "at", Value: now.Add(-10 * time.Minute)}},
		bson.D{{Key: "_id", Value: 4}, {Key: "at", Value: "text"}}})
	must(t, err)
	left := func(want int64) {
		t.Helper()
		s.engine.Reap(bg)
		if n, err := c.CountDocuments(bg, bson.D{}); n != want || err != nil {
			t.Errorf("%d left, want %d, %v", n, want, err)
		}
	}
	left(3)
	var reply bson.M
	must(t, c.Database().RunCommand(bg, doc(t,
		`{"collMod":"c","index":{"keyPattern":{"at":1},"expireAfterSeconds":1200}}`)).Decode(&reply))
	if reply["expireAfterSeconds_old"] != int64(3600) || reply["expireAfterSeconds_new"] != int64(1200) {
		t.Error(reply)
	}
	left(2)
	must(t, c.Database().RunCommand(bg, doc(t, `{"collMod":"c","index":{"name":"at_1","hidden":true}}`)).Err())
	if got := listed(t, c); got != `{"v":2,"key":{"at":1},"name":"at_1","expireAfterSeconds":1200,"hidden":true}` {
		t.Error(got)
	}
	_, err = c.Find(bg, bson.D{}, options.Find().SetHint("at_1"))
	wantCode(t, err, 2)
	for cmd, code := range map[string]int{
		`{"collMod":"c","index":{"name":"no","hidden":true}}`:             27,
		`{"collMod":"no","index":{"name":"at_1","hidden":true}}`:          26,
		`{"collMod":"c","index":{"name":"at_1"}}`:                         72,
		`{"collMod":"c","index":{"hidden":true}}`:                         72,
		`{"collMod":"c","index":{"name":"at_1","x":1}}`:                   40415,
		`{"collMod":"c","index":{"name":"at_1","expireAfterSeconds":-1}}`: 72,
		`{"collMod":"c","validator":{"a":{"$no":1}}}`:                     2,
	} {
		if err := c.Database().RunCommand(bg, doc(t, cmd)).Err(); !hasCode(err, code) {
			t.Errorf("%s: %v, want %d", cmd, err, code)
		}
	}
	must(t, c.Indexes().DropOne(bg, "at_1"))
	s.engine.Clock().Advance(time.Hour)
	left(2)
}

// GridFS makes its unique index of files_id and n, and works.
func TestGridFS(t *testing.T) {
	db := start(t).client(t).Database("db")
	b := db.GridFSBucket(options.GridFSBucket().SetChunkSizeBytes(1000))
	content := bytes.Repeat([]byte("0123456789"), 450)
	id, err := b.UploadFromStream(bg, "file", bytes.NewReader(content))
	must(t, err)
	down, err := b.OpenDownloadStream(bg, id)
	must(t, err)
	got, err := io.ReadAll(down)
	if err != nil || !bytes.Equal(got, content) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if got := listed(t, db.Collection("fs.chunks")); !strings.Contains(got, `"key":{"files_id":1,"n":1}`) ||
		!strings.Contains(got, `"unique":true`) {
		t.Error(got)
	}
	_, err = db.Collection("fs.chunks").InsertOne(bg, bson.D{{Key: "files_id", Value: id}, {Key: "n", Value: 2}})
	if !mongo.IsDuplicateKeyError(err) {
		t.Error(err)
	}
	must(t, b.Delete(bg, id))
	if n, err := db.Collection("fs.chunks").CountDocuments(bg, bson.D{}); n != 0 || err != nil {
		t.Error(n, err)
	}
}
