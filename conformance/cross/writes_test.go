package cross

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/orrerydb/orrery/conformance/harness"
)

func quoted(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s)
	return strings.TrimSpace(b.String())
}

// tags are the etags of an item in the two APIs that show them.
type tags struct{ sql, table azcore.ETag }

func (p *place) tags(t *testing.T, id string) tags {
	t.Helper()
	r, err := p.sql.ReadItem(bg, azcosmos.NewPartitionKeyString(p.pk(id)), id, nil)
	ok(t, err)
	e, err := p.table.GetEntity(bg, p.pk(id), id, nil)
	ok(t, err)
	return tags{r.ETag, e.ETag}
}

// changes are updates of one field by each API. A non-nil tag is the condition, in the APIs that support it.
var changes = []struct {
	by     string
	change func(p *place, id string, n int, tag *tags) error
}{
	{"nosql", func(p *place, id string, n int, tag *tags) error {
		ops := azcosmos.PatchOperations{}
		ops.AppendSet("/w", n)
		o := &azcosmos.ItemOptions{}
		if tag != nil {
			o.IfMatchEtag = &tag.sql
		}
		_, err := p.sql.PatchItem(bg, azcosmos.NewPartitionKeyString(p.pk(id)), id, ops, o)
		return err
	}},
	{"table", func(p *place, id string, n int, tag *tags) error {
		o := &aztables.UpdateEntityOptions{UpdateMode: aztables.UpdateModeMerge}
		if tag != nil {
			o.IfMatch = &tag.table
		}
		_, err := p.table.UpdateEntity(bg,
			[]byte(fmt.Sprintf(`{"PartitionKey":%q,"RowKey":%q,"w":%d}`, p.pk(id), id, n)), o)
		return err
	}},
	{"mongo", func(p *place, id string, n int, _ *tags) error {
		r, err := p.mongo.UpdateOne(bg, bson.D{{Key: "_id", Value: id}},
			bson.D{{Key: "$set", Value: bson.D{{Key: "w", Value: int32(n)}}}})
		if err == nil && r.ModifiedCount != 1 {
			err = fmt.Errorf("%d documents changed", r.ModifiedCount)
		}
		return err
	}},
	{"gremlin", func(p *place, id string, n int, _ *tags) error {
		vs, err := harness.Submit(p.gremlin, "g.V().hasId(i).property('g', n)", "i", id, "n", int32(n))
		if err == nil && len(vs) != 1 {
			err = fmt.Errorf("%d vertices changed", len(vs))
		}
		return err
	}},
}

// TestChangesAreSeenByAll: after an update by any API the item has new etags in the others, the old ones are refused,
// and values that the updating API can't show are unchanged.
func TestChangesAreSeenByAll(t *testing.T) {
	_, ps := places(t)
	for _, origin := range origins {
		t.Run(origin, func(t *testing.T) {
			p := ps[origin]
			d := bson.D{{Key: "_id", Value: "x"}, {Key: "v", Value: "1"},
				{Key: "clock", Value: bson.Timestamp{T: 5, I: 6}},
				{Key: "deep", Value: bson.D{{Key: "when", Value: bson.NewDateTimeFromTime(dateMS)}}},
				{Key: "bin", Value: bson.Binary{Subtype: 0x80, Data: []byte{1}}},
				{Key: "re", Value: bson.Regex{Pattern: "a"}}, {Key: "dec", Value: dec}, {Key: "nil", Value: nil},
				{Key: "wide", Value: int64(3)}}
			if p.keyField != "" {
				d = append(d, bson.E{Key: p.keyField, Value: p.pk("x")})
			}
			_, err := p.mongo.InsertOne(bg, d)
			ok(t, err)
			want, err := bson.Marshal(d)
			ok(t, err)
			old := p.tags(t, "x")
			for i, c := range changes {
				ok(t, c.change(p, "x", i, nil))
				now := p.tags(t, "x")
				if now.sql == old.sql || now.table == old.table {
					t.Errorf("after a change by %s the etags are %v, as before", c.by, now)
				}
				for _, other := range changes[:2] {
					if err := other.change(p, "x", 99, &old); statusOf(err) != 412 {
						t.Errorf("after a change by %s, %s with the old etag: %v", c.by, other.by, err)
					}
				}
				p.keeps(t, want, c.by)
				old = now
			}
			// Conditions that are satisfied, one API after another.
			ok(t, changes[0].change(p, "x", 50, &old))
			old = p.tags(t, "x")
			ok(t, changes[1].change(p, "x", 51, &old))
			pk := azcosmos.NewPartitionKeyString(p.pk("x"))
			if _, err := p.sql.DeleteItem(bg, pk, "x", &azcosmos.ItemOptions{IfMatchEtag: &old.sql}); statusOf(
				err) != 412 {
				t.Errorf("delete by NoSQL with the old etag: %v", err)
			}
			if _, err := p.table.DeleteEntity(
				bg, p.pk("x"), "x", &aztables.DeleteEntityOptions{IfMatch: &old.table}); statusOf(err) != 412 {
				t.Errorf("delete by Table with the old etag: %v", err)
			}
			p.keeps(t, want, "all")
		})
	}
}

// keeps checks that the document's fields have the bytes with which they were inserted.
func (p *place) keeps(t *testing.T, want bson.Raw, by string) {
	t.Helper()
	got, err := p.mongo.FindOne(bg, bson.D{{Key: "_id", Value: "x"}}).Raw()
	ok(t, err)
	els, err := want.Elements()
	ok(t, err)
	for _, e := range els {
		if v := got.Lookup(e.Key()); !v.Equal(e.Value()) {
			t.Errorf("after a change by %s: %s is %s, was %s", by, e.Key(), v, e.Value())
		}
	}
}

// TestDeletes: an item that one API deletes doesn't exist for any API.
func TestDeletes(t *testing.T) {
	_, ps := places(t)
	for _, origin := range origins {
		p := ps[origin]
		for by, del := range map[string]func(id string) error{
			"nosql": func(id string) error {
				_, err := p.sql.DeleteItem(bg, azcosmos.NewPartitionKeyString(p.pk(id)), id, nil)
				return err
			},
			"table": func(id string) error { _, err := p.table.DeleteEntity(bg, p.pk(id), id, nil); return err },
			"mongo": func(id string) error {
				_, err := p.mongo.DeleteOne(bg, bson.D{{Key: "_id", Value: id}})
				return err
			},
			"gremlin": func(id string) error {
				_, err := harness.Submit(p.gremlin, "g.V().hasId(i).drop()", "i", id)
				return err
			},
		} {
			t.Run(origin+"/by "+by, func(t *testing.T) {
				id := "gone-" + by
				ok(t, p.writeMongo(id, "1"))
				ok(t, p.writeMongo(id+"-stays", "1"))
				ok(t, del(id))
				if _, err := p.sql.ReadItem(bg, azcosmos.NewPartitionKeyString(p.pk(id)), id, nil); statusOf(
					err) != 404 {
					t.Errorf("NoSQL: %v", err)
				}
				if _, err := p.table.GetEntity(bg, p.pk(id), id, nil); statusOf(err) != 404 {
					t.Errorf("Table: %v", err)
				}
				if err := p.mongo.FindOne(bg, bson.D{{Key: "_id", Value: id}}).Err(); err != mongo.ErrNoDocuments {
					t.Errorf("Mongo: %v", err)
				}
				if got := p.readGremlin(id); got != "" {
					t.Errorf("Gremlin: %s", got)
				}
				if got := p.readGremlin(id + "-stays"); got != "string 1" {
					t.Errorf("its neighbour: %s", got)
				}
			})
		}
	}
}

// TestReplaces: after one API replaces or upserts an item, all APIs see the new one with the same identity.
func TestReplaces(t *testing.T) {
	_, ps := places(t)
	for _, origin := range origins {
		p := ps[origin]
		doc := func(id, v string) bson.D {
			d := bson.D{{Key: "_id", Value: id}, {Key: "v", Value: v}}
			if p.keyField != "" {
				d = append(d, bson.E{Key: p.keyField, Value: p.pk(id)})
			}
			return d
		}
		body := func(id, v string) []byte {
			b := fmt.Sprintf(`{"id":%q,"v":%q`, id, v)
			if p.keyField != "" {
				b += fmt.Sprintf(`,%q:%q`, p.keyField, p.pk(id))
			}
			return []byte(b + "}")
		}
		entity := func(id, v string) []byte {
			return []byte(fmt.Sprintf(`{"PartitionKey":%q,"RowKey":%q,"v":%q}`, p.pk(id), id, v))
		}
		for by, replace := range map[string]func(id, v string) error{
			"nosql replace": func(id, v string) error {
				_, err := p.sql.ReplaceItem(bg, azcosmos.NewPartitionKeyString(p.pk(id)), id, body(id, v), nil)
				return err
			},
			"nosql upsert": func(id, v string) error {
				_, err := p.sql.UpsertItem(bg, azcosmos.NewPartitionKeyString(p.pk(id)), body(id, v), nil)
				return err
			},
			"table replace": func(id, v string) error {
				_, err := p.table.UpdateEntity(
					bg, entity(id, v), &aztables.UpdateEntityOptions{UpdateMode: aztables.UpdateModeReplace})
				return err
			},
			"table upsert": func(id, v string) error {
				_, err := p.table.UpsertEntity(
					bg, entity(id, v), &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeReplace})
				return err
			},
			"mongo replace": func(id, v string) error {
				r, err := p.mongo.ReplaceOne(bg, bson.D{{Key: "_id", Value: id}}, doc(id, v))
				if err == nil && r.ModifiedCount != 1 {
					err = fmt.Errorf("%d documents replaced", r.ModifiedCount)
				}
				return err
			},
		} {
			t.Run(origin+"/"+by, func(t *testing.T) {
				id := by
				_, err := p.mongo.InsertOne(bg, append(doc(id, "old"), bson.E{Key: "gone", Value: 1}))
				ok(t, err)
				ok(t, replace(id, "new"))
				want := `"new"`
				if p.edm {
					want = `{"$t":2,"$v":"new"}`
				}
				if got := p.readSQL(t, id); got != want {
					t.Errorf("by NoSQL: %s", got)
				}
				if got := p.readTable(t, id); got != `"new"` {
					t.Errorf("by Table: %s", got)
				}
				if got := p.readGremlin(id); got != "string new" {
					t.Errorf("by Gremlin: %s", got)
				}
				if n, err := p.mongo.CountDocuments(
					bg, bson.D{{Key: "_id", Value: id}, {Key: "v", Value: "new"},
						{Key: "gone", Value: bson.D{{Key: "$exists", Value: false}}}}); n != 1 || err != nil {
					raw, _ := p.mongo.FindOne(bg, bson.D{{Key: "_id", Value: id}}).Raw()
					t.Errorf("by Mongo: %d %v: %s", n, err, raw)
				}
			})
		}
	}
}
