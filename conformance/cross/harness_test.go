// Package cross writes items through one API and reads them through all four, with the official clients.
package cross

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	gremlingo "github.com/apache/tinkerpop/gremlin-go/v3/driver"
	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/conformance/harness"
)

var (
	bg      = context.Background()
	allKeys = azcosmos.NewPartitionKey()
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil)))
	os.Exit(m.Run())
}

// place is one container with clients of the four APIs. Its origin is the API that made it.
type place struct {
	name      string
	keyField  string // stored field of the partition key; "" if that is the id
	db, coll  string
	sql       *azcosmos.ContainerClient
	table     *aztables.Client
	mongo     *mongo.Collection
	gremlin   *gremlingo.Client
	edm       bool // the NoSQL API shows entities in the service's form
	extended  bool // the NoSQL API shows Extended JSON
	systemKey bool
}

// pk returns the text of the partition key of the item with this id.
func (p *place) pk(id string) string {
	if p.keyField == "" || p.systemKey {
		return id
	}
	return "p"
}

// origins are the kinds of containers in which every item is tested.
var origins = []string{"nosql", "mongo", "mongo sharded", "table", "graph", "graph without key"}

// places makes one container of each origin on a server.
func places(t *testing.T) (*harness.Server, map[string]*place) {
	t.Helper()
	cfg := server.Ephemeral()
	cfg.Strict = nil
	cfg.GremlinSources = map[string]string{"plain": "graphdb/plain"}
	s := harness.StartWith(t, cfg)
	out := map[string]*place{}
	add := func(p *place) {
		db, err := s.SQL.NewDatabase(p.db)
		ok(t, err)
		p.sql, err = db.NewContainer(p.coll)
		ok(t, err)
		name := p.db + "." + p.coll
		if p.edm {
			name = p.coll
		}
		p.table = s.Tables.NewClient(name)
		p.mongo = s.Mongo.Database(p.db).Collection(p.coll)
		p.gremlin = s.Gremlin(t, p.db, p.coll)
		out[p.name] = p
	}
	db := s.Database(t)
	harness.Container(t, db, "c", 0, "/pk")
	add(&place{name: "nosql", keyField: "pk", db: db.ID(), coll: "c"})
	harness.Container(t, db, "g", 0, "/pk")
	add(&place{name: "graph", keyField: "pk", db: db.ID(), coll: "g"})

	ok(t, s.Mongo.Database("m").CreateCollection(bg, "plain"))
	add(&place{name: "mongo", db: "m", coll: "plain", extended: true})
	ok(t, s.Mongo.Database("admin").RunCommand(
		bg, bson.D{{Key: "shardCollection", Value: "m.sharded"},
			{Key: "key", Value: bson.D{{Key: "pk", Value: "hashed"}}}}).Err())
	add(&place{name: "mongo sharded", keyField: "pk", db: "m", coll: "sharded", extended: true})

	_, err := s.Tables.NewClient("people").CreateTable(bg, nil)
	ok(t, err)
	add(&place{name: "table", keyField: "$pk", db: "TablesDB", coll: "people", edm: true})
	add(&place{name: "graph without key", keyField: "_partitionKey", db: "graphdb", coll: "plain", systemKey: true})
	return s, out
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// compact returns the JSON text of a value without blanks.
func compact(t *testing.T, b []byte) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Compact(&out, b); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return out.String()
}

// fields splits a JSON object.
func fields(t *testing.T, b []byte) map[string]json.RawMessage {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return m
}

// The writers write one value as the field v of a new item. They return the API's error.

func (p *place) writeSQL(id, jsonValue string) error {
	body := fmt.Sprintf(`{"id":%q,"v":%s`, id, jsonValue)
	if p.keyField != "" {
		body += fmt.Sprintf(`,%q:%q`, p.keyField, p.pk(id))
	}
	_, err := p.sql.CreateItem(bg, azcosmos.NewPartitionKeyString(p.pk(id)), []byte(body+"}"), nil)
	return err
}

func (p *place) writeMongo(id any, v any) error {
	d := bson.D{{Key: "_id", Value: id}, {Key: "v", Value: v}}
	if p.keyField != "" {
		d = append(d, bson.E{Key: p.keyField, Value: p.pk(fmt.Sprint(id))})
	}
	_, err := p.mongo.InsertOne(bg, d)
	return err
}

// writeTable writes a property with this JSON and Edm type, "" for none.
func (p *place) writeTable(id, edm, jsonValue string) error {
	body := fmt.Sprintf(`{"PartitionKey":%q,"RowKey":%q,"v":%s`, p.pk(id), id, jsonValue)
	if edm != "" {
		body += fmt.Sprintf(`,"v@odata.type":%q`, edm)
	}
	_, err := p.table.AddEntity(bg, []byte(body+"}"), nil)
	return err
}

func (p *place) writeGremlin(id string, v any) error {
	script, args := "g.addV('thing').property(id, i).property('v', x)", []any{"i", id, "x", v}
	if p.keyField != "" && !p.systemKey {
		script, args = "g.addV('thing').property(id, i).property('v', x).property(k, p)",
			append(args, "k", p.keyField, "p", p.pk(id))
	}
	_, err := harness.Submit(p.gremlin, script, args...)
	return err
}

// The readers return the value v of an item as text.

func (p *place) readSQL(t *testing.T, id string) string {
	t.Helper()
	r, err := p.sql.ReadItem(bg, azcosmos.NewPartitionKeyString(p.pk(id)), id, nil)
	if err != nil {
		return err.Error()
	}
	v, there := fields(t, r.Value)["v"]
	if !there {
		return "absent"
	}
	return compact(t, v)
}

func (p *place) readMongo(t *testing.T, id string) string {
	t.Helper()
	raw, err := p.mongo.FindOne(bg, bson.D{{Key: "_id", Value: id}}).Raw()
	if err != nil {
		return err.Error()
	}
	v, err := raw.LookupErr("v")
	if err != nil {
		return "absent"
	}
	return compact(t, []byte(v.String()))
}

func (p *place) readTable(t *testing.T, id string) string {
	t.Helper()
	r, err := p.table.GetEntity(bg, p.pk(id), id, nil)
	if err != nil {
		return err.Error()
	}
	m := fields(t, r.Value)
	v, there := m["v"]
	if !there {
		return "absent"
	}
	return strings.TrimSpace(strings.Trim(string(m["v@odata.type"]), `"`) + " " + compact(t, v))
}

func (p *place) readGremlin(id string) string {
	vs, err := harness.Submit(p.gremlin, "g.V().hasId(i).values('v')", "i", id)
	if err != nil {
		return err.Error()
	}
	return shown(vs)
}

// shown returns a Gremlin result with its Go types.
func shown(vs []any) string {
	texts := make([]string, len(vs))
	for i, v := range vs {
		switch x := v.(type) {
		case time.Time:
			texts[i] = "date " + x.UTC().Format("2006-01-02T15:04:05.999999999Z")
		case uuid.UUID:
			texts[i] = "uuid " + x.String()
		case *gremlingo.BigDecimal:
			texts[i] = fmt.Sprintf("decimal %v scale %d", x.UnscaledValue, x.Scale)
		default:
			texts[i] = fmt.Sprintf("%T %v", v, v)
		}
	}
	return strings.Join(texts, ", ")
}

// The finders return the ids that an equality selects.

func (p *place) findSQL(t *testing.T, filter string) []string {
	t.Helper()
	rows := harness.Query(t, p.sql, azcosmos.NewPartitionKey(), "SELECT VALUE c.id FROM c WHERE "+filter)
	out := make([]string, len(rows))
	for i, r := range rows {
		if err := json.Unmarshal([]byte(r), &out[i]); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func (p *place) findMongo(t *testing.T, filter bson.D) []string {
	t.Helper()
	cur, err := p.mongo.Find(bg, filter)
	ok(t, err)
	var docs []struct {
		ID any `bson:"_id"`
	}
	ok(t, cur.All(bg, &docs))
	out := make([]string, len(docs))
	for i, d := range docs {
		out[i] = fmt.Sprint(d.ID)
	}
	return out
}

func (p *place) findTable(t *testing.T, filter string) []string {
	t.Helper()
	out := []string{}
	pager := p.table.NewListEntitiesPager(&aztables.ListEntitiesOptions{Filter: &filter})
	for pager.More() {
		page, err := pager.NextPage(bg)
		if err != nil {
			t.Fatalf("%s: %v", filter, err)
		}
		for _, e := range page.Entities {
			var rk string
			ok(t, json.Unmarshal(fields(t, e)["RowKey"], &rk))
			out = append(out, rk)
		}
	}
	return out
}

func (p *place) findGremlin(t *testing.T, v any) []string {
	t.Helper()
	vs, err := harness.Submit(p.gremlin, "g.V().has('v', x).id()", "x", v)
	if err != nil {
		t.Fatalf("has('v', %v): %v", v, err)
	}
	out := make([]string, len(vs))
	for i, v := range vs {
		out[i] = fmt.Sprint(v)
	}
	return out
}

// statusOf returns the HTTP status of an error, 0 for none.
func statusOf(err error) int {
	var re *azcore.ResponseError
	if errors.As(err, &re) {
		return re.StatusCode
	}
	return 0
}

func unmarshal(b []byte, v any) error { return json.Unmarshal(b, v) }
