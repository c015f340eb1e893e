package cross

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// TestPolicyReplaced: a policy that the NoSQL client reads and writes back, and one that it changes, keep what the
// text, 2dsphere, 2d and collated indexes of MongoDB need. The NoSQL client sees nothing of it.
func TestPolicyReplaced(t *testing.T) {
	_, ps := places(t)
	p := ps["mongo"]
	english := options.Collation{Locale: "en", Strength: 2}
	_, err := p.mongo.Indexes().CreateMany(bg, []mongo.IndexModel{
		{Keys: bson.D{{Key: "title", Value: "text"}}},
		{Keys: bson.D{{Key: "at", Value: "2dsphere"}}},
		{Keys: bson.D{{Key: "flat", Value: "2d"}}},
		{Keys: bson.D{{Key: "title", Value: 1}}, Options: options.Index().SetCollation(&english)},
	})
	ok(t, err)
	_, err = p.mongo.InsertOne(bg, bson.M{"_id": "a", "title": "brass orreries", "at": bson.A{5, 50},
		"flat": bson.A{5, 50}})
	ok(t, err)
	var others []bson.M // so that an index is worth its reading
	for i := range 20 {
		others = append(others, bson.M{"_id": fmt.Sprint(i), "title": "globes"})
	}
	_, err = p.mongo.InsertMany(bg, others)
	ok(t, err)

	answers := func(when string) {
		t.Helper()
		for name, filter := range map[string]bson.M{
			"text":     {"$text": bson.M{"$search": "orrery"}},
			"2dsphere": {"at": bson.M{"$nearSphere": bson.A{5, 50}}},
			"2d":       {"flat": bson.M{"$near": bson.A{5, 50}}},
		} {
			var got []bson.M
			c, err := p.mongo.Find(bg, filter)
			if err == nil {
				err = c.All(bg, &got)
			}
			if err != nil || len(got) != 1 {
				t.Errorf("%s: %s finds %v, %v", when, name, got, err)
			}
		}
	}
	// stage is the winning stage of a look-up under the collation.
	stage := func() string {
		t.Helper()
		r, err := p.mongo.Database().RunCommand(bg, bson.D{{Key: "explain", Value: bson.D{
			{Key: "find", Value: p.mongo.Name()}, {Key: "filter", Value: bson.M{"title": "BRASS ORRERIES"}},
			{Key: "collation", Value: bson.M{"locale": "en", "strength": 2}}}}}).Raw()
		ok(t, err)
		return r.Lookup("queryPlanner", "winningPlan", "stage").StringValue()
	}
	answers("before")
	r, err := p.sql.Read(bg, nil)
	ok(t, err)
	shown, err := runtime.Payload(r.RawResponse)
	ok(t, err)
	for _, word := range []string{"wordIndexes", "collatedIndexes", "pairs", "boundingBox"} {
		if strings.Contains(string(shown), word) {
			t.Errorf("the definition shows %s", word)
		}
	}
	_, err = p.sql.Replace(bg, *r.ContainerProperties, nil)
	ok(t, err)
	answers("written back")
	r.ContainerProperties.IndexingPolicy = &azcosmos.IndexingPolicy{Automatic: true, IndexingMode: "Consistent",
		IncludedPaths: []azcosmos.IncludedPath{{Path: "/*"}}, ExcludedPaths: []azcosmos.ExcludedPath{{Path: "/big/*"}}}
	_, err = p.sql.Replace(bg, *r.ContainerProperties, nil)
	ok(t, err)
	answers("changed")
	for stage() != "FETCH" { // until the index is built
		time.Sleep(5 * time.Millisecond)
	}
}
