package cross

import (
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// TestPolicyReplaced: a policy that the NoSQL client reads and writes back, and one that it changes, keep what the
// text, 2dsphere and 2d indexes of MongoDB need. The NoSQL client sees nothing of it.
func TestPolicyReplaced(t *testing.T) {
	_, ps := places(t)
	p := ps["mongo"]
	_, err := p.mongo.Indexes().CreateMany(bg, []mongo.IndexModel{
		{Keys: bson.D{{Key: "title", Value: "text"}}},
		{Keys: bson.D{{Key: "at", Value: "2dsphere"}}},
		{Keys: bson.D{{Key: "flat", Value: "2d"}}},
	})
	ok(t, err)
	_, err = p.mongo.InsertOne(bg, bson.M{"_id": "a", "title": "brass orreries", "at": bson.A{5, 50},
		"flat": bson.A{5, 50}})
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
	answers("before")
	r, err := p.sql.Read(bg, nil)
	ok(t, err)
	shown, err := runtime.Payload(r.RawResponse)
	ok(t, err)
	for _, word := range []string{"wordIndexes", "pairs", "boundingBox"} {
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
}
