package mongoapi

import (
	"fmt"
	"testing"
)

// TestIndexUses: $indexStats counts the queries that used an index.
func TestIndexUses(t *testing.T) {
	s, addr := serve(t, Options{}, nil)
	c := connect(t, addr)
	docs := `{"_id":0,"a":0}`
	for i := 1; i < 60; i++ {
		docs += fmt.Sprintf(`,{"_id":%d,"a":%d,"b":%d,"d":%d}`, i, i%20, i%15, i%3)
	}
	c.inDatabase("db", `{"insert":"c","documents":[`+docs+`]}`)
	c.inDatabase("db", `{"createIndexes":"c","indexes":[{"key":{"a":1},"name":"a"},{"key":{"a":1,"d":-1},"name":"ad"},`+
		`{"key":{"b":-1,"d":1},"name":"bd"},{"key":{"d":1,"b":1},"name":"db"},{"key":{"x":1},"name":"x"}]}`)
	uses := func() map[string]int64 {
		t.Helper()
		got := map[string]int64{}
		r := c.inDatabase("db", `{"aggregate":"c","pipeline":[{"$indexStats":{}}],"cursor":{}}`)
		list, err := r.Lookup("cursor", "firstBatch").Array().Values()
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range list {
			if n := v.Document().Lookup("accesses", "ops").Int64(); n != 0 {
				got[v.Document().Lookup("name").StringValue()] = n
			}
		}
		return got
	}
	if got := uses(); len(got) != 0 {
		t.Errorf("before any query: %v", got)
	}
	want := map[string]int64{}
	for _, x := range []struct{ command, index string }{
		{`{"find":"c","filter":{"_id":1}}`, "_id_"},
		{`{"find":"c","filter":{"_id":1,"a":1}}`, "_id_"},
		{`{"update":"c","updates":[{"q":{"_id":1},"u":{"$set":{"z":1}}}]}`, "_id_"},
		{`{"find":"c","filter":{"a":3}}`, "a"},
		{`{"count":"c","query":{"a":3}}`, "a"},
		{`{"aggregate":"c","pipeline":[{"$match":{"a":3}},{"$count":"n"}],"cursor":{}}`, "a"},
		{`{"update":"c","updates":[{"q":{"a":3},"u":{"$set":{"z":1}},"multi":true}]}`, "a"},
		{`{"find":"c","filter":{"b":3}}`, "bd"}, // the first that begins with b
		{`{"find":"c","filter":{"z":{"$exists":false}}}`, ""},
		{`{"explain":{"find":"c","filter":{"a":3}}}`, ""},
	} {
		c.inDatabase("db", x.command)
		if x.index != "" {
			want[x.index]++
		}
		got := uses()
		for _, name := range []string{"_id_", "a", "ad", "bd", "db", "x"} {
			if got[name] != want[name] {
				t.Errorf("after %s: %s has %d uses, want %d", x.command, name, got[name], want[name])
				want[name] = got[name]
			}
		}
	}
	k, err := s.eng.Container("db", "c")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 * maxPaths {
		c.inDatabase("db", fmt.Sprintf(`{"find":"c","filter":{"path%d":1}}`, i))
	}
	if n := len(s.uses.of(k.Num()).m); n != maxPaths {
		t.Errorf("the uses of %d indexes are kept, want %d", n, maxPaths)
	}
	if got := uses(); got["a"] != want["a"] {
		t.Errorf("after queries for many paths a has %d uses, want %d", got["a"], want["a"])
	}
	for i := range 2 * maxUses {
		s.uses.of(uint32(1_000_000 + i)).point()
	}
	if n := len(s.uses.m); n > maxUses {
		t.Errorf("the uses of %d collections are kept", n)
	}
}
