package mongoapi

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/spill"
)

// TestAllowDiskUse: sorts, groups and documents to write that need too much memory continue in files, unless the
// command forbids that. The files are removed, also after a cursor was killed.
func TestAllowDiskUse(t *testing.T) {
	files, err := spill.Open(filepath.Join(t.TempDir(), "spill"), spill.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := budget.New(4<<20, 1<<20)
	e, err := core.Open(context.Background(), memkv.New(), core.Options{Budget: b, Spill: files})
	if err != nil {
		t.Fatal(err)
	}
	s := New(e, Options{Account: "localhost", Key: "a2V5"})
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		_ = e.Close()
		if b.Used() != 0 || files.Files() != 0 {
			t.Errorf("left over: %d bytes of memory, %d files", b.Used(), files.Files())
		}
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(ln) }()
	c := connect(t, ln.Addr().String())
	for range 8 {
		docs := bson.A{}
		for i := range 300 {
			docs = append(docs, bson.D{{Key: "k", Value: i}, {Key: "pad", Value: strings.Repeat("x", 1000)}})
		}
		if _, e := c.ask(bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: docs}}); e.OK != 1 {
			t.Fatal(e)
		}
	}
	pipe := func(stages ...any) bson.D {
		return bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A(stages)},
			{Key: "cursor", Value: bson.D{}}}
	}
	by := bson.D{{Key: "pad", Value: 1}, {Key: "k", Value: -1}}
	for name, cmd := range map[string]bson.D{
		"find":  {{Key: "find", Value: "c"}, {Key: "sort", Value: by}},
		"lead":  pipe(bson.D{{Key: "$sort", Value: by}}),
		"$sort": pipe(bson.D{{Key: "$unset", Value: "x"}}, bson.D{{Key: "$sort", Value: by}}),
		"$group": pipe(bson.D{{Key: "$group", Value: bson.D{{Key: "_id", Value: "$_id"},
			{Key: "n", Value: bson.D{{Key: "$first", Value: "$pad"}}}}}}),
	} {
		before := files.Written()
		raw, e := c.ask(cmd)
		if e.OK != 1 || files.Written() == before {
			t.Errorf("%s: %.200s, %d bytes were written", name, raw, files.Written()-before)
		}
		if id, _ := raw.Lookup("cursor", "id").Int64OK(); id == 0 {
			t.Errorf("%s: no cursor: %.200s", name, raw)
		} else {
			c.ask(bson.D{{Key: "killCursors", Value: "c"}, {Key: "cursors", Value: bson.A{id}}})
		}
		if n := files.Files(); n != 0 {
			t.Errorf("%s: %d files are left", name, n)
		}
		before = files.Written()
		_, refused := c.ask(append(cmd, bson.E{Key: "allowDiskUse", Value: false}))
		if e := refused; e.Code != 292 || files.Written() != before {
			t.Errorf("%s without disk: %+v, %d bytes were written", name, e, files.Written()-before)
		}
	}
	facet := pipe(bson.D{{Key: "$facet", Value: bson.D{
		{Key: "n", Value: bson.A{bson.D{{Key: "$count", Value: "n"}}}},
		{Key: "first", Value: bson.A{bson.D{{Key: "$sort", Value: by}}, bson.D{{Key: "$limit", Value: 1}}}},
		{Key: "groups", Value: bson.A{bson.D{{Key: "$group", Value: bson.D{{Key: "_id", Value: "$_id"}, {Key: "n",
			Value: bson.D{{Key: "$first", Value: "$pad"}}}}}}, bson.D{{Key: "$count", Value: "n"}}}}}}})
	for _, tc := range []struct {
		name string
		cmd  bson.D
		from string // where the documents are then
	}{
		{"$out", pipe(bson.D{{Key: "$out", Value: "copy"}}), "copy"},
		{"$out again", pipe(bson.D{{Key: "$out", Value: "copy"}}), "copy"},
		{"$merge", pipe(bson.D{{Key: "$merge", Value: "merged"}}), "merged"},
		{"$merge into itself", pipe(bson.D{{Key: "$merge", Value: "c"}}), "c"},
		{"$facet", facet, "c"},
	} {
		before := files.Written()
		_, refused := c.ask(append(tc.cmd, bson.E{Key: "allowDiskUse", Value: false}))
		if refused.Code != 292 || files.Written() != before {
			t.Errorf("%s without disk: %+v", tc.name, refused)
		}
		raw, e := c.ask(tc.cmd)
		if e.OK != 1 || files.Written() == before || files.Files() != 0 {
			t.Errorf("%s: %.200s, %d bytes were written, %d files are left", tc.name, raw, files.Written()-before,
				files.Files())
		}
		if raw, _ := c.ask(bson.D{{Key: "count", Value: tc.from}}); raw.Lookup("n").AsInt64() != 2400 {
			t.Errorf("%s: %.200s documents", tc.name, raw)
		}
		if tc.name != "$facet" {
			continue
		}
		d := raw.Lookup("cursor", "firstBatch").Array().Index(0).Document()
		if n, g, k := d.Lookup("n", "0", "n"), d.Lookup("groups", "0", "n"), d.Lookup("first", "0", "k"); n.AsInt64() !=
			2400 || g.AsInt64() != 2400 || k.AsInt64() != 299 {
			t.Errorf("$facet gives %.300s", d)
		}
	}
	raw, _ := c.ask(bson.D{{Key: "listCollections", Value: 1}, {Key: "nameOnly", Value: true}})
	names, _ := raw.Lookup("cursor", "firstBatch").Array().Values()
	if len(names) != 3 {
		t.Errorf("%d collections are left: %.500s", len(names), raw)
	}
}
