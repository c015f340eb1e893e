package mongo

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// TestVectors: the driver's own helpers declare, list, change and drop an index on vectors, and its binary vectors are
// found.
func TestVectors(t *testing.T) {
	c := start(t).client(t).Database("db").Collection("films")
	float, byte8 := bson.NewVector([]float32{0, 1}), bson.NewVector([]int8{0, 1})
	_, err := c.InsertMany(bg, []any{
		bson.D{{Key: "_id", Value: 1}, {Key: "year", Value: 1990}, {Key: "plot", Value: []float64{1, 0}}},
		bson.D{{Key: "_id", Value: 2}, {Key: "year", Value: 2000}, {Key: "plot", Value: float}},
		bson.D{{Key: "_id", Value: 3}, {Key: "year", Value: 2000}, {Key: "plot", Value: byte8}},
		bson.D{{Key: "_id", Value: 4}, {Key: "year", Value: 2010}, {Key: "plot", Value: []float64{1, 1}}}})
	must(t, err)
	definition := doc(t, `{"fields":[{"type":"vector","path":"plot","numDimensions":2,"similarity":"cosine"},
		{"type":"filter","path":"year"}]}`)
	name, err := c.SearchIndexes().CreateOne(bg, mongo.SearchIndexModel{Definition: definition,
		Options: options.SearchIndexes().SetName("plots").SetType("vectorSearch")})
	if name != "plots" || err != nil {
		t.Fatal(name, err)
	}
	listed := func() (out []bson.M) {
		cur, err := c.SearchIndexes().List(bg, options.SearchIndexes().SetName("plots"))
		must(t, err)
		must(t, cur.All(bg, &out))
		return out
	}
	l := listed()
	if len(l) != 1 || l[0]["queryable"] != true || l[0]["status"] != "READY" || l[0]["type"] != "vectorSearch" {
		t.Fatal(l)
	}
	search := func(v any, filter string) (ids []int32) {
		cur, err := c.Aggregate(bg, mongo.Pipeline{
			{{Key: "$vectorSearch", Value: bson.D{{Key: "index", Value: "plots"}, {Key: "path", Value: "plot"},
				{Key: "queryVector", Value: v}, {Key: "numCandidates", Value: 100}, {Key: "limit", Value: 2},
				{Key: "filter", Value: doc(t, filter)}}}},
			{{Key: "$project", Value: doc(t, `{"plot":0}`)}},
			{{Key: "$addFields", Value: doc(t, `{"score":{"$meta":"vectorSearchScore"}}`)}}})
		must(t, err)
		var found []struct {
			ID    int32   `bson:"_id"`
			Score float64 `bson:"score"`
		}
		must(t, cur.All(bg, &found))
		for i, f := range found {
			if ids = append(ids, f.ID); f.Score <= 0 || f.Score > 1 || i > 0 && f.Score > found[i-1].Score {
				t.Fatal(found)
			}
		}
		return ids
	}
	for _, x := range []struct {
		v      any
		filter string
		want   []int32
	}{
		{[]float64{0.9, 0.1}, `{}`, []int32{1, 4}}, {bson.NewVector([]float32{0, 2}), `{}`, []int32{2, 4}},
		{byte8, `{}`, []int32{3}}, {[]float64{0, 1}, `{"year":{"$gt":2000}}`, []int32{4}},
	} {
		if got := search(x.v, x.filter); len(got) != len(x.want) || got[0] != x.want[0] {
			t.Errorf("%v, %s: %v, wanted %v", x.v, x.filter, got, x.want)
		}
	}
	must(t, c.SearchIndexes().UpdateOne(bg, "plots",
		doc(t, `{"fields":[{"type":"vector","path":"plot","numDimensions":2,"similarity":"euclidean"}]}`)))
	if v := listed()[0]["latestDefinition"].(bson.D)[0].Value.(bson.A)[0].(bson.D); v[3].Value != "euclidean" {
		t.Fatal(v)
	}
	must(t, c.SearchIndexes().DropOne(bg, "plots"))
	if l := listed(); len(l) != 0 {
		t.Fatal(l)
	}
	_, err = c.SearchIndexes().CreateOne(bg, mongo.SearchIndexModel{
		Definition: doc(t, `{"mappings":{"dynamic":true}}`)})
	wantCode(t, err, 115)
}
