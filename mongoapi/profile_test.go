package mongoapi

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestProfileIsBounded: system.profile keeps the last megabyte.
func TestProfileIsBounded(t *testing.T) {
	s, addr := serve(t, Options{}, nil)
	c := connect(t, addr)
	if _, e := c.ask(bson.D{{Key: "profile", Value: 2}}); e.OK != 1 {
		t.Fatal(e)
	}
	const n, pad = 400, 10_000
	for i := range n {
		c.ask(bson.D{{Key: "find", Value: "c"}, {Key: "comment", Value: bson.D{{Key: "i", Value: i},
			{Key: "pad", Value: strings.Repeat("x", pad)}}}})
	}
	if d := s.profiles.levels["db"]; d.size > profileBytes || len(d.kept) >= n || len(d.kept) < 50 {
		t.Errorf("%d bytes of %d documents", d.size, len(d.kept))
	}
	c.ask(bson.D{{Key: "profile", Value: 0}})
	for i, want := range map[int]int64{0: 0, n - 1: 1} {
		raw, _ := c.ask(bson.D{{Key: "count", Value: profileCollection},
			{Key: "query", Value: bson.D{{Key: "command.comment.i", Value: i}}}})
		if got := raw.Lookup("n").AsInt64(); got != want {
			t.Errorf("command %d is in %d documents", i, got)
		}
	}
	if s.profiles.on.Load() != 0 {
		t.Error("a database is still profiled")
	}
}

// TestProfileOfGetMore: the document of a getMore has the cursor, the command that opened it and that command's plan.
func TestProfileOfGetMore(t *testing.T) {
	_, addr := serve(t, Options{}, nil)
	c := connect(t, addr)
	c.ask(bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "a", Value: 1}},
		bson.D{{Key: "a", Value: 1}}, bson.D{{Key: "a", Value: 1}}}}})
	c.ask(bson.D{{Key: "profile", Value: 2}})
	raw, _ := c.ask(bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "a", Value: 1}}},
		{Key: "batchSize", Value: 1}})
	id := raw.Lookup("cursor", "id").AsInt64()
	for _, batch := range []int{1, 5} {
		c.ask(bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "c"}, {Key: "batchSize", Value: batch}})
	}
	c.ask(bson.D{{Key: "profile", Value: 0}})
	raw, _ = c.ask(bson.D{{Key: "find", Value: profileCollection},
		{Key: "filter", Value: bson.D{{Key: "ns", Value: "db.c"}}}})
	docs, err := raw.Lookup("cursor", "firstBatch").Array().Values()
	if err != nil || len(docs) != 3 {
		t.Fatalf("%d documents, %v", len(docs), err)
	}
	for i, d := range docs {
		d := d.Document()
		if got := d.Lookup("cursorid").AsInt64(); got != id {
			t.Errorf("document %d: cursorid %d, want %d", i, got, id)
		}
		if _, err := d.LookupErr("cursorExhausted"); (err == nil) != (i == 2) {
			t.Errorf("document %d: %v", i, d)
		}
		_, err := d.LookupErr("originatingCommand", "filter", "a")
		if (err == nil) != (i > 0) || d.Lookup("planSummary").StringValue() != "IXSCAN { a: 1 }" {
			t.Errorf("document %d: %v", i, d)
		}
	}
}
