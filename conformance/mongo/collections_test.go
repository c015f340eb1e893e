package mongo

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// ids returns the `_id`s of a cursor's documents.
func idsOf(t *testing.T, cur *mongo.Cursor, err error) (out []int32) {
	t.Helper()
	must(t, err)
	var docs []struct {
		ID int32 `bson:"_id"`
	}
	must(t, cur.All(bg, &docs))
	for _, d := range docs {
		out = append(out, d.ID)
	}
	return out
}

func want(t *testing.T, what string, got []int32, ids ...int32) {
	t.Helper()
	if !reflect.DeepEqual(got, ids) {
		t.Errorf("%s: %v, want %v", what, got, ids)
	}
}

// A collation is an option of operations, of indexes and of collections.
func TestCollation(t *testing.T) {
	db := start(t).client(t).Database("db")
	c := db.Collection("c")
	_, err := c.InsertMany(bg, []any{bson.M{"_id": 1, "s": "b10"}, bson.M{"_id": 2, "s": "B9"}, bson.M{"_id": 3, "s": "á"}})
	must(t, err)
	loose := &options.Collation{Locale: "en", Strength: 2}
	cur, err := c.Find(bg, bson.M{"s": "b9"}, options.Find().SetCollation(loose))
	want(t, "find", idsOf(t, cur, err), 2)
	numbers := &options.Collation{Locale: "en", NumericOrdering: true}
	cur, err = c.Find(bg, bson.M{}, options.Find().SetCollation(numbers).SetSort(bson.M{"s": 1}))
	want(t, "sort", idsOf(t, cur, err), 3, 2, 1)
	if n, err := c.CountDocuments(bg, bson.M{"s": "B10"}, options.Count().SetCollation(loose)); n != 1 || err != nil {
		t.Errorf("count: %d, %v", n, err)
	}
	if r, err := c.UpdateOne(bg, bson.M{"s": "B10"}, bson.M{"$set": bson.M{"x": 1}},
		options.UpdateOne().SetCollation(loose)); err != nil || r.ModifiedCount != 1 {
		t.Errorf("update: %v, %v", r, err)
	}
	unique := options.Index().SetUnique(true).SetCollation(loose)
	_, err = c.Indexes().CreateOne(bg, mongo.IndexModel{Keys: bson.D{{Key: "s", Value: 1}}, Options: unique})
	must(t, err)
	if _, err := c.InsertOne(bg, bson.M{"s": "b9"}); !mongo.IsDuplicateKeyError(err) {
		t.Errorf("a second b9: %v", err)
	}
	must(t, db.CreateCollection(bg, "d", options.CreateCollection().SetCollation(loose)))
	d := db.Collection("d")
	_, err = d.InsertMany(bg, []any{bson.M{"_id": 1, "s": "X"}, bson.M{"_id": 2, "s": "y"}})
	must(t, err)
	cur, err = d.Find(bg, bson.M{"s": "x"})
	want(t, "default", idsOf(t, cur, err), 1)
	if _, err := c.Find(bg, bson.M{}, options.Find().SetCollation(&options.Collation{Locale: "xx"})); err == nil {
		t.Error("an unknown locale is accepted")
	}
}

// A document that fails the validator is refused with the details of the failure.
func TestValidator(t *testing.T) {
	db := start(t).client(t).Database("db")
	schema := bson.M{"$jsonSchema": bson.M{"required": bson.A{"name"}, "properties": bson.M{
		"name": bson.M{"bsonType": "string"}, "year": bson.M{"bsonType": "int", "minimum": 2000}}}}
	must(t, db.CreateCollection(bg, "c", options.CreateCollection().SetValidator(schema)))
	c := db.Collection("c")
	_, err := c.InsertOne(bg, bson.M{"_id": 1, "name": "x", "year": int32(2001)})
	must(t, err)
	_, err = c.InsertOne(bg, bson.M{"_id": 2, "year": int32(1999)})
	var we mongo.WriteException
	if !errors.As(err, &we) || len(we.WriteErrors) != 1 || we.WriteErrors[0].Code != 121 {
		t.Fatalf("insert: %v", err)
	}
	details := we.WriteErrors[0].Details
	if n, err := details.LookupErr("details", "schemaRulesNotSatisfied"); err != nil {
		t.Errorf("details: %v", details)
	} else if vs, _ := n.Array().Values(); len(vs) != 2 {
		t.Errorf("rules: %v", n)
	}
	_, err = c.UpdateOne(bg, bson.M{"_id": 1}, bson.M{"$set": bson.M{"name": 5}})
	if !errors.As(err, &we) || we.WriteErrors[0].Code != 121 {
		t.Errorf("update: %v", err)
	}
	_, err = c.UpdateOne(bg, bson.M{"_id": 1}, bson.M{"$set": bson.M{"name": 5}},
		options.UpdateOne().SetBypassDocumentValidation(true))
	must(t, err)
	cur, err := c.Find(bg, schema)
	want(t, "$jsonSchema", idsOf(t, cur, err))
	specs, err := db.ListCollectionSpecifications(bg, bson.M{"name": "c"})
	must(t, err)
	if _, err := specs[0].Options.LookupErr("validator", "$jsonSchema"); err != nil {
		t.Errorf("listed: %v", specs[0].Options)
	}
}

// Views are read like collections, and refuse writes.
func TestViews(t *testing.T) {
	db := start(t).client(t).Database("db")
	c := db.Collection("c")
	for i := range 300 {
		_, err := c.InsertOne(bg, bson.M{"_id": int32(i), "a": int32(i % 3)})
		must(t, err)
	}
	must(t, db.CreateView(bg, "v", "c", mongo.Pipeline{{{Key: "$match", Value: bson.M{"a": 1}}}}))
	v := db.Collection("v")
	cur, err := v.Find(bg, bson.M{}, options.Find().SetBatchSize(7))
	if n := len(idsOf(t, cur, err)); n != 100 {
		t.Errorf("%d documents in batches", n)
	}
	if n, err := v.CountDocuments(bg, bson.M{"_id": bson.M{"$lt": 10}}); n != 3 || err != nil {
		t.Errorf("count: %d, %v", n, err)
	}
	if n, err := v.EstimatedDocumentCount(bg); n != 100 || err != nil {
		t.Errorf("estimated count: %d, %v", n, err)
	}
	var as []int32
	if err := v.Distinct(bg, "a", bson.M{}).Decode(&as); err != nil || len(as) != 1 {
		t.Errorf("distinct: %v, %v", as, err)
	}
	_, err = v.InsertOne(bg, bson.M{"a": 1})
	var ce mongo.CommandError
	if !errors.As(err, &ce) || ce.Code != 166 {
		t.Errorf("insert: %v", err)
	}
	names, err := db.ListCollectionNames(bg, bson.M{"type": "view"})
	if err != nil || len(names) != 1 {
		t.Errorf("listed: %v, %v", names, err)
	}
	must(t, v.Drop(bg))
	if n, err := v.CountDocuments(bg, bson.M{}); n != 0 || err != nil {
		t.Errorf("after drop: %d, %v", n, err)
	}
}

// Time series and clustered collections are created, written and read.
func TestTimeSeries(t *testing.T) {
	db := start(t).client(t).Database("db")
	series := options.TimeSeries().SetTimeField("at").SetMetaField("from").SetGranularity("minutes")
	must(t, db.CreateCollection(bg, "t", options.CreateCollection().SetTimeSeriesOptions(series).
		SetExpireAfterSeconds(3600*24*365*60)))
	c := db.Collection("t")
	begin := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 10 {
		_, err := c.InsertOne(bg, bson.M{"_id": int32(i), "at": begin.Add(time.Duration(i) * time.Minute),
			"from": bson.M{"s": i % 2}, "v": i})
		must(t, err)
	}
	if _, err := c.InsertOne(bg, bson.M{"v": 1}); err == nil {
		t.Error("a measurement without a time is accepted")
	}
	cur, err := c.Find(bg, bson.M{"at": bson.M{"$gte": begin.Add(8 * time.Minute)}, "from.s": 0})
	want(t, "find", idsOf(t, cur, err), 8)
	must(t, db.CreateCollection(bg, "k", options.CreateCollection().SetClusteredIndex(
		bson.D{{Key: "key", Value: bson.D{{Key: "_id", Value: 1}}}, {Key: "unique", Value: true}})))
	_, err = db.Collection("k").InsertOne(bg, bson.M{"_id": 1})
	must(t, err)
}
