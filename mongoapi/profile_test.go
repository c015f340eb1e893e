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
