package mongo

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/orrerydb/orrery/core/value"
)

// TestCountAndDistinctAgainstDocuments compares counts and distinct values that the index may answer with those from
// documents. $expr hides the filter's paths from the store, so that documents are read.
func TestCountAndDistinctAgainstDocuments(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	g := gen{rand.New(rand.NewPCG(seed, 2))}
	db := start(t).client(t).Database("db")
	c := db.Collection("c")
	var ds []bson.D
	for i := range 400 {
		d := append(bson.D{{Key: "_id", Value: int32(i)}}, g.object(2)...)
		if i%9 == 0 {
			d = append(d, g.object(0)...) // some names occur twice
		}
		ds = append(ds, d)
	}
	_, err := c.InsertMany(bg, ds)
	must(t, err)
	covered := 0
	for range 500 {
		q := bson.D{{Key: g.path(), Value: g.condition(1)}}
		if g.IntN(5) == 0 {
			q = g.query(1)
		}
		if g.IntN(20) == 0 {
			q = bson.D{}
		}
		hidden := bson.D{{Key: "$and", Value: bson.A{q, bson.D{{Key: "$expr", Value: true}}}}}
		n, err := c.CountDocuments(bg, q)
		m, merr := c.CountDocuments(bg, hidden)
		if n != m || (err == nil) != (merr == nil) {
			t.Fatalf("%s: %d, from the documents %d (%v, %v)", text(q), n, m, err, merr)
		}
		if err != nil {
			continue
		}
		key := g.path()
		if g.IntN(2) == 0 && len(q) > 0 && !strings.HasPrefix(q[0].Key, "$") {
			key = q[0].Key
		}
		got, want := distinct(t, c, key, q), distinct(t, c, key, hidden)
		if !slices.EqualFunc(got, want, value.EqualBSON) {
			t.Fatalf("distinct %s of %s: %d values, from the documents %d", key, text(q), len(got), len(want))
		}
		b, err := bson.MarshalExtJSON(bson.D{
			{Key: "explain", Value: bson.D{{Key: "count", Value: "c"}, {Key: "query", Value: q}}}}, true, false)
		must(t, err)
		if plan, _ := bson.MarshalExtJSON(run(t, db, string(b)), false, false); strings.Contains(
			string(plan), "covered index") {
			covered++
		}
	}
	if covered < 50 {
		t.Errorf("only %d counts were covered", covered)
	}
}

// distinct returns the values in MongoDB's order.
func distinct(t *testing.T, c *mongo.Collection, key string, q bson.D) (vs []value.Value) {
	t.Helper()
	raw, err := c.Distinct(bg, key, q).Raw()
	must(t, err)
	for it := value.ArrayOf(raw).Iter(); it.Next(); {
		vs = append(vs, it.Value())
	}
	slices.SortFunc(vs, value.CompareBSON)
	return vs
}
