package mongo

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestAggregate runs every supported stage on stored documents. mongoapi/agg tests the semantics of expressions.
func TestAggregate(t *testing.T) {
	db := start(t).client(t).Database("db")
	c := db.Collection("orders")
	fill(t, c, `{"_id":1,"cust":"a","total":10,"items":[{"sku":"x","n":1},{"sku":"y","n":2}]}`,
		`{"_id":2,"cust":"b","total":20,"items":[]}`,
		`{"_id":3,"cust":"a","total":30}`)
	fill(t, db.Collection("customers"), `{"_id":"a","name":"Ann"}`, `{"_id":"b","name":"Bob"}`)
	for _, q := range []struct {
		name, pipeline string
		want           []string
	}{
		{"match sort project", `[{"$match":{"total":{"$gte":20}}},{"$sort":{"total":-1}},{"$project":{"total":1}}]`,
			[]string{`{"_id":3,"total":30}`, `{"_id":2,"total":20}`}},
		{"group", `[{"$group":{"_id":"$cust","sum":{"$sum":"$total"},"n":{"$sum":1}}},{"$sort":{"_id":1}}]`,
			[]string{`{"_id":"a","sum":40,"n":2}`, `{"_id":"b","sum":20,"n":1}`}},
		{"unwind", `[{"$unwind":"$items"},{"$group":{"_id":"$items.sku","n":{"$sum":"$items.n"}}},{"$sort":{"_id":1}}]`,
			[]string{`{"_id":"x","n":1}`, `{"_id":"y","n":2}`}},
		{"count", `[{"$match":{"cust":"a"}},{"$count":"n"}]`, []string{`{"n":2}`}},
		{"skip limit", `[{"$sort":{"_id":1}},{"$skip":1},{"$limit":1},{"$project":{"_id":1}}]`, []string{`{"_id":2}`}},
		{"limit then skip", `[{"$sort":{"_id":1}},{"$limit":2},{"$skip":1},{"$project":{"_id":1}}]`,
			[]string{`{"_id":2}`}},
		{"match after limit", `[{"$sort":{"_id":1}},{"$limit":1},{"$match":{"cust":"b"}}]`, nil},
		{"lookup", `[{"$match":{"_id":2}},{"$lookup":{"from":"customers","localField":"cust","foreignField":"_id",` +
			`"as":"c"}},{"$project":{"c":1}}]`, []string{`{"_id":2,"c":[{"_id":"b","name":"Bob"}]}`}},
		{"lookup with a pipeline", `[{"$match":{"_id":1}},{"$lookup":{"from":"customers","let":{"k":"$cust"},` +
			`"pipeline":[{"$match":{"$expr":{"$eq":["$_id","$$k"]}}},{"$project":{"_id":0}}],"as":"c"}},` +
			`{"$project":{"c":1}}]`, []string{`{"_id":1,"c":[{"name":"Ann"}]}`}},
		{"facet", `[{"$facet":{"n":[{"$count":"n"}],"max":[{"$sort":{"total":-1}},{"$limit":1},` +
			`{"$project":{"_id":1}}]}}]`, []string{`{"n":[{"n":3}],"max":[{"_id":3}]}`}},
		{"unionWith", `[{"$match":{"_id":3}},{"$project":{"_id":1}},{"$unionWith":{"coll":"customers",` +
			`"pipeline":[{"$match":{"name":"Bob"}}]}}]`, []string{`{"_id":3}`, `{"_id":"b","name":"Bob"}`}},
		{"replaceRoot", `[{"$match":{"_id":1}},{"$replaceRoot":{"newRoot":{"$first":"$items"}}}]`,
			[]string{`{"sku":"x","n":1}`}},
		{"bucket", `[{"$bucket":{"groupBy":"$total","boundaries":[0,15,100]}}]`,
			[]string{`{"_id":0,"count":1}`, `{"_id":15,"count":2}`}},
		{"bucketAuto", `[{"$bucketAuto":{"groupBy":"$total","buckets":2}}]`,
			[]string{`{"_id":{"min":10,"max":30},"count":2}`, `{"_id":{"min":30,"max":30},"count":1}`}},
		{"graphLookup", `[{"$match":{"_id":2}},{"$graphLookup":{"from":"customers","startWith":"$cust",` +
			`"connectFromField":"next","connectToField":"_id","as":"c","depthField":"d"}},{"$project":{"c":1}}]`,
			[]string{`{"_id":2,"c":[{"_id":"b","name":"Bob","d":{"$numberLong":"0"}}]}`}},
		{"redact", `[{"$redact":{"$cond":[{"$eq":["$sku","x"]},"$$PRUNE","$$DESCEND"]}},{"$match":{"_id":1}},` +
			`{"$project":{"items":1}}]`, []string{`{"_id":1,"items":[{"sku":"y","n":2}]}`}},
		{"setWindowFields", `[{"$setWindowFields":{"partitionBy":"$cust","sortBy":{"_id":1},"output":{"sum":` +
			`{"$sum":"$total","window":{"documents":["unbounded","current"]}}}}},{"$project":{"sum":1}}]`,
			[]string{`{"_id":1,"sum":10}`, `{"_id":3,"sum":40}`, `{"_id":2,"sum":20}`}},
		{"fill", `[{"$match":{"_id":2}},{"$fill":{"output":{"n":{"value":1}}}},{"$project":{"n":1}}]`,
			[]string{`{"_id":2,"n":1}`}},
		{"sortByCount", `[{"$sortByCount":"$cust"}]`, []string{`{"_id":"a","count":2}`, `{"_id":"b","count":1}`}},
	} {
		t.Run(q.name, func(t *testing.T) {
			cur, err := c.Aggregate(bg, pipeline(t, q.pipeline))
			wantDocs(t, all(t, cur, err), q.want...)
		})
	}
	t.Run("out and merge", func(t *testing.T) {
		for range 2 { // in the second round the target exists
			cur, err := c.Aggregate(bg, pipeline(t, `[{"$group":{"_id":"$cust","sum":{"$sum":"$total"}}},`+
				`{"$out":"sums"}]`))
			wantDocs(t, all(t, cur, err))
		}
		cur, err := c.Aggregate(bg, pipeline(t, `[{"$match":{"_id":2}},{"$project":{"_id":"$cust","extra":"yes"}},`+
			`{"$merge":{"into":"sums"}}]`))
		wantDocs(t, all(t, cur, err))
		cur, err = db.Collection("sums").Aggregate(bg, pipeline(t, `[{"$sort":{"_id":1}}]`))
		wantDocs(t, all(t, cur, err), `{"_id":"a","sum":40}`, `{"_id":"b","sum":20,"extra":"yes"}`)
	})
	t.Run("errors", func(t *testing.T) {
		for p, code := range map[string]int{
			`[{"$foo":1}]`: 40324, `[{"$graphLookup":{}}]`: 40105, `[{"$densify":{}}]`: 40414,
			`[{"$group":{"x":{"$sum":1}}}]`:    15955,
			`[{"$limit":0}]`:                   15958,
			`[{"$project":{"x":{"$nope":1}}}]`: 168, `[{"$match":{}},{"$project":{"x":{"$divide":[1,0]}}}]`: 2,
			`[{"$search":{}}]`: 6047401} {
			cur, err := c.Aggregate(bg, pipeline(t, p))
			if err == nil {
				err = cur.All(bg, &[]bson.D{})
			}
			wantCode(t, err, code)
		}
	})
}

func TestCountAndDistinct(t *testing.T) {
	db := start(t).client(t).Database("db")
	c := db.Collection("c")
	if n, err := c.CountDocuments(bg, bson.D{}); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	fill(t, c, `{"_id":1,"g":"a","t":[1,2]}`, `{"_id":2,"g":"b","t":[2,3]}`, `{"_id":3,"g":"a"}`)
	if n, err := c.CountDocuments(bg, doc(t, `{"g":"a"}`)); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := c.EstimatedDocumentCount(bg); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	distinct := func(key, filter string) []any {
		t.Helper()
		var out []any
		must(t, c.Distinct(bg, key, doc(t, filter)).Decode(&out))
		return out
	}
	if got := distinct("g", `{}`); len(got) != 2 {
		t.Fatal(got)
	}
	if got := distinct("t", `{}`); len(got) != 3 {
		t.Fatal(got)
	}
	if got := distinct("t", `{"_id":1}`); len(got) != 2 {
		t.Fatal(got)
	}
}
