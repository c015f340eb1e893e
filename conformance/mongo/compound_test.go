package mongo

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// TestCompoundIndexes: with a compound index, sorts and filters give the same rows in the same order as without it.
func TestCompoundIndexes(t *testing.T) {
	db := dial(t, start(t).uri("directConnection=true")).Database("db")
	c := db.Collection("c")
	var docs []any
	for i := range 300 {
		d := bson.D{{Key: "_id", Value: i}, {Key: "g", Value: fmt.Sprintf("g%d", i%7)}, {Key: "n", Value: i * 31 % 97},
			{Key: "done", Value: i%2 == 0}}
		if i%5 == 0 { // a missing value sorts first
			d = append(d[:2:2], d[3])
		}
		docs = append(docs, d)
	}
	_, err := c.InsertMany(bg, docs)
	must(t, err)
	queries := []struct{ filter, sort string }{
		{`{}`, `{"g":1,"n":-1}`},
		{`{}`, `{"g":-1,"n":1}`},
		{`{"g":"g3"}`, `{"n":1}`},
		{`{"g":"g3"}`, `{"n":-1}`},
		{`{"g":"g3","n":{"$gte":10,"$lt":80}}`, `{"n":-1}`},
		{`{"done":true}`, `{"g":1}`},
		{`{"g":"g3","n":{"$gt":60}}`, ``},
	}
	find := func(filter, sort string) (ids []int32) {
		t.Helper()
		o := options.Find()
		if sort != "" {
			o.SetSort(doc(t, sort))
		}
		cur, err := c.Find(bg, doc(t, filter), o.SetBatchSize(7))
		must(t, err)
		for cur.Next(bg) {
			ids = append(ids, cur.Current.Lookup("_id").Int32())
		}
		must(t, cur.Err())
		return ids
	}
	plan := func(filter, sort string) string {
		t.Helper()
		cmd := `{"explain":{"find":"c","filter":` + filter
		if sort != "" {
			cmd += `,"sort":` + sort
		}
		b, err := bson.MarshalExtJSON(run(t, db, cmd+"}}")["queryPlanner"], false, false)
		must(t, err)
		return string(b)
	}
	before := map[string][]int32{}
	for _, q := range queries {
		before[q.filter+q.sort] = find(q.filter, q.sort)
	}
	names, err := c.Indexes().CreateMany(
		bg, []mongo.IndexModel{{Keys: bson.D{{Key: "g", Value: 1}, {Key: "n", Value: -1}}},
			{Keys: bson.D{{Key: "done", Value: 1}, {Key: "g", Value: 1}}}})
	must(t, err)
	for _, q := range queries {
		p := ""
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			// The index is built in the background.
			if p = plan(q.filter, q.sort); strings.Contains(p, "composite") {
				break
			}
		}
		if !strings.Contains(p, "composite") || !strings.Contains(p, "IXSCAN") {
			t.Errorf("%s %s: %s", q.filter, q.sort, p)
		}
		got := find(q.filter, q.sort)
		if q.sort == "" {
			continue
		}
		if want := before[q.filter+q.sort]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s %s:\n got %v\nwant %v", q.filter, q.sort, got, want)
		}
	}
	if got := len(find(queries[6].filter, "")); got != len(before[queries[6].filter]) {
		t.Errorf("%d rows", got)
	}
	// An array sorts by its elements, which the index doesn't support. The result is then the same as without the
	// index.
	_, err = c.InsertOne(bg, doc(t, `{"_id":1000,"g":"g3","n":[5,200]}`))
	must(t, err)
	if p := plan(`{"g":"g3"}`, `{"n":-1}`); strings.Contains(p, "gives the order") {
		t.Error(p)
	}
	if got := find(`{"g":"g3"}`, `{"n":-1}`); got[0] != 1000 {
		t.Errorf("%v", got)
	}
	for _, n := range names {
		must(t, c.Indexes().DropOne(bg, n))
	}
	if got := find(`{"g":"g3"}`, `{"n":-1}`); got[0] != 1000 || len(got) != len(before[`{"g":"g3"}{"n":-1}`])+1 {
		t.Errorf("%v", got)
	}
}
