package cross

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/conformance/shareddata"
)

var rewrite = flag.Bool("rewrite", false, "write what the APIs show into shareddata/values.txt")

// TestEdgeValues stores fixed edge values through Mongo and checks how each API shows them. In the collection, an item
// that is read by NoSQL and replaced with the result keeps its bytes.
func TestEdgeValues(t *testing.T) {
	_, ps := places(t)
	vs := shareddata.Values()
	for i := range vs {
		want := vs[i]
		t.Run(want.Name, func(t *testing.T) {
			var d bson.D
			ok(t, bson.UnmarshalExtJSON([]byte(want.BSON), true, &d))
			id := fmt.Sprint("e", i)
			for _, origin := range []string{"nosql", "mongo", "table"} {
				ok(t, ps[origin].writeMongo(id, d[0].Value))
			}
			p := ps["nosql"]
			got := shareddata.Value{Name: want.Name, BSON: want.BSON, NoSQL: p.readSQL(t, id),
				Relaxed: ps["mongo"].readSQL(t, id),
				Form:    ps["table"].readSQL(t, id), Table: p.readTable(t, id), Gremlin: oneLine(p.readGremlin(id))}
			if *rewrite {
				vs[i] = got
				return
			}
			for _, f := range shareddata.Faces {
				if g, w := *got.Face(f), *want.Face(f); g != w {
					t.Errorf("%s: %s, want %s", f, g, w)
				}
			}
			for origin, p := range map[string]*place{"mongo": ps["mongo"], "table": ps["table"]} {
				p.comesBack(t, origin, id)
			}
		})
	}
	if *rewrite {
		ok(t, os.WriteFile("../shareddata/values.txt", []byte(shareddata.Format(vs)), 0o644))
	}
}

// oneLine escapes characters that can't be on a line.
func oneLine(s string) string {
	q := strconv.Quote(s)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}

// comesBack reads an item by NoSQL, replaces it with the result, and compares the stored value before and after.
func (p *place) comesBack(t *testing.T, origin, id string) {
	t.Helper()
	value := func() bson.RawValue {
		raw, err := p.mongo.FindOne(bg, bson.D{{Key: "_id", Value: id}}).Raw()
		ok(t, err)
		return raw.Lookup("v")
	}
	before := value()
	pk := azcosmos.NewPartitionKeyString(p.pk(id))
	r, err := p.sql.ReadItem(bg, pk, id, nil)
	ok(t, err)
	if _, err := p.sql.ReplaceItem(bg, pk, id, r.Value, nil); err != nil {
		t.Errorf("%s: %v", origin, err)
		return
	}
	after := value()
	if n, ok := before.AsInt64OK(); ok && origin == "mongo" && n == 1 {
		// a number that fits becomes an int32 through JSON
		if m, ok := after.AsInt64OK(); !ok || m != n {
			t.Errorf("%s: %s came back as %s", origin, before, after)
		}
		return
	}
	if !after.Equal(before) {
		t.Errorf("%s: %s came back as %s", origin, before, after)
	}
}
