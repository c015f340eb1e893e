package mongo

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// TestCausalSession: a session that is causally consistent reads after its own operations, without an error.
func TestCausalSession(t *testing.T) {
	cl := start(t).client(t)
	s, err := cl.StartSession(options.Session().SetCausalConsistency(true))
	must(t, err)
	defer s.EndSession(bg)
	ctx := mongo.NewSessionContext(bg, s)
	c := cl.Database("db").Collection("c")
	for i := range 3 {
		_, err := c.InsertOne(ctx, bson.D{{Key: "_id", Value: i}})
		must(t, err)
		n, err := c.CountDocuments(ctx, bson.D{}) // with afterClusterTime
		if err != nil || n != int64(i+1) {
			t.Fatal(n, err)
		}
	}
	if s.OperationTime() == nil || s.ClusterTime() == nil {
		t.Fatal("the session has no times")
	}
}

// TestDiscovery: a client without directConnection finds the set's member at the address that it dialled.
func TestDiscovery(t *testing.T) {
	cl := dial(t, start(t).uri("replicaSet=globaldb"))
	_, err := cl.Database("db").Collection("c").InsertOne(bg, bson.D{{Key: "_id", Value: 1}})
	must(t, err)
}
