package sql

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/value"
)

// TestSystemProperties: _ts and the other system properties can be read, compared and ordered by. Identities of other
// kinds are shown as text.
func TestSystemProperties(t *testing.T) {
	clk := clock.Fake(time.Unix(1700000000, 0))
	e, err := core.Open(context.Background(), memkv.New(), core.Options{Clock: clk})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := e.CreateDatabase(context.Background(), core.DatabaseSpec{ID: "d"}); err != nil {
		t.Fatal(err)
	}
	c, err := e.CreateContainer(context.Background(), "d",
		core.ContainerSpec{ID: "c", PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		d, err := doc.FromJSON(nil, fmt.Appendf(nil, `{"id":"i%d","pk":"p%d"}`, i, i%3),
			doc.JSONOptions{Names: doc.NoSQL})
		if err != nil {
			t.Fatal(err)
		}
		insert(t, c, d)
		clk.Advance(10 * time.Second)
	}
	var b doc.Builder
	b.BeginObject()
	b.Field("_id", value.ObjectIDOf([]byte("abcdefghijkl")))
	b.Field("id", value.StringOf("own"))
	b.Field("pk", value.StringOf("p0"))
	b.End()
	insert(t, c, b.Doc())

	old := testEnv.SystemJSON
	testEnv.SystemJSON = func(dst []byte, it *core.Item) []byte {
		return fmt.Appendf(dst, `"_rid":"r%d","_self":"s"`, it.Number&0xFF)
	}
	defer func() { testEnv.SystemJSON = old }()
	for _, q := range []struct{ text, want string }{
		{`SELECT VALUE c.id FROM c WHERE c._ts >= 1700000070 AND STARTSWITH(c.id, "i") ORDER BY c._ts DESC`,
			`"i9" "i8" "i7"`},
		{`SELECT TOP 2 c.id, c._ts FROM c ORDER BY c._ts`, `{"id":"i0","_ts":1700000000} {"id":"i1","_ts":1700000010}`},
		{`SELECT VALUE c.id FROM c WHERE c._ts = 1700000030`, `"i3"`},
		{`SELECT VALUE c.id FROM c WHERE c._ts BETWEEN 1700000030 AND 1700000045 ORDER BY c._ts`, `"i3" "i4"`},
		{`SELECT VALUE MAX(c._ts) FROM c`, `1700000100`},
		{`SELECT VALUE IS_STRING(c._rid) AND c._self = "s" AND LENGTH(c._etag) = 38 FROM c WHERE c.id = "i1"`, `true`},
		{`SELECT VALUE c.id FROM c WHERE c.id = "{\"$oid\":\"6162636465666768696a6b6c\"}"`,
			`"{\"$oid\":\"6162636465666768696a6b6c\"}"`},
		{`SELECT VALUE c.id FROM c WHERE c.id = "own"`, ``},
		{`SELECT VALUE ARRAY_LENGTH(ObjectToArray(c)) FROM c WHERE c.id = "i1"`, `6`},
	} {
		for _, size := range []int{0, 1} {
			rows, err := evalCore(c, q.text, nil, size)
			if err != nil || strings.Join(rows, " ") != q.want {
				t.Errorf("%s (pages of %d)\n got %s %v\nwant %s", q.text, size, strings.Join(rows, " "), err, q.want)
			}
		}
	}
}
