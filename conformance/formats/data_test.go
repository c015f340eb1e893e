package formats

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/orrerydb/orrery/conformance/harness"
)

const db = "formats"

// containers are container definitions by id.
var containers = map[string]azcosmos.ContainerProperties{
	"plain": {PartitionKeyDefinition: hash("/city")},
	"byid":  {PartitionKeyDefinition: hash("/id")},
	"levels": {PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{
		Kind: azcosmos.PartitionKeyKindMultiHash, Version: 2, Paths: []string{"/country", "/city", "/n"}}},
	"composite": {PartitionKeyDefinition: hash("/city"), IndexingPolicy: &azcosmos.IndexingPolicy{
		Automatic: true, IndexingMode: azcosmos.IndexingModeConsistent,
		IncludedPaths: []azcosmos.IncludedPath{{Path: "/*"}},
		ExcludedPaths: []azcosmos.ExcludedPath{{Path: "/text/?"}},
		CompositeIndexes: [][]azcosmos.CompositeIndex{
			{{Path: "/country", Order: "ascending"}, {Path: "/n", Order: "descending"}}},
		SpatialIndexes: []azcosmos.SpatialIndex{{Path: "/at/*", SpatialTypes: []azcosmos.SpatialType{"Point"}}}}},
	"unique": {PartitionKeyDefinition: hash("/country"), UniqueKeyPolicy: &azcosmos.UniqueKeyPolicy{
		UniqueKeys: []azcosmos.UniqueKey{{Paths: []string{"/n"}}}}},
	"expiring": {PartitionKeyDefinition: hash("/city"), DefaultTimeToLive: seconds(1 << 30)},
}

// items is the number of items in each container.
const items = 40

func hash(path string) azcosmos.PartitionKeyDefinition {
	return azcosmos.PartitionKeyDefinition{Kind: azcosmos.PartitionKeyKindHash, Version: 2, Paths: []string{path}}
}

func seconds(n int32) *int32 { return &n }

// item returns values of all kinds: texts that an index cuts, arrays, objects in arrays, GeoJSON, names that need
// escapes.
func item(n int) map[string]any {
	it := map[string]any{
		"id": fmt.Sprintf("item %03d", n), "n": n,
		"country": []string{"NL", "DE", "日本"}[n%3], "city": fmt.Sprintf("city %d", n%7),
		"text": strings.Repeat("long ", n%10*n) + "end",
		"half": float64(n) / 2, "big": 9007199254740993 + int64(n), "even": n%2 == 0,
		"tags": []any{n % 5, "t", nil, map[string]any{"a": n, "b": []any{n}}},
		"deep": map[string]any{"a": map[string]any{"b.c": n, "": "x"}},
		"at":   map[string]any{"type": "Point", "coordinates": []any{float64(n), float64(n) / 3}},
	}
	if n%4 == 0 {
		delete(it, "half")
		it["nothing"] = nil
	}
	if n%9 == 0 {
		it["ttl"] = 1 << 29
	}
	return it
}

func keyOf(container string, it map[string]any) azcosmos.PartitionKey {
	text := func(name string) string { return it[name].(string) }
	switch container {
	case "byid":
		return azcosmos.NewPartitionKeyString(text("id"))
	case "unique":
		return azcosmos.NewPartitionKeyString(text("country"))
	case "levels":
		return azcosmos.NewPartitionKeyString(text("country")).AppendString(text("city")).AppendNumber(
			float64(it["n"].(int)))
	}
	return azcosmos.NewPartitionKeyString(text("city"))
}

func upsert(t testing.TB, s *harness.Server, container string, it map[string]any) {
	t.Helper()
	c := must[*azcosmos.ContainerClient](t)(s.SQL.NewContainer(db, container))
	b := must[[]byte](t)(json.Marshal(it))
	if _, err := c.UpsertItem(bg, keyOf(container, it), b, nil); err != nil {
		t.Fatal(container, err)
	}
}

// fill writes the same data through all four APIs at each call.
func fill(t testing.TB, s *harness.Server) {
	t.Helper()
	must[azcosmos.DatabaseResponse](t)(s.SQL.CreateDatabase(bg, azcosmos.DatabaseProperties{ID: db}, nil))
	d := must[*azcosmos.DatabaseClient](t)(s.SQL.NewDatabase(db))
	for id, p := range containers {
		p.ID = id
		must[azcosmos.ContainerResponse](t)(d.CreateContainer(bg, p, nil))
		for n := range items {
			upsert(t, s, id, item(n))
		}
		for n := 0; n < items; n += 10 { // earlier versions, and items that are deleted
			it := item(n)
			it["text"] = "changed"
			upsert(t, s, id, it)
		}
		it := item(7)
		c := must[*azcosmos.ContainerClient](t)(s.SQL.NewContainer(db, id))
		must[azcosmos.ItemResponse](t)(c.DeleteItem(bg, keyOf(id, it), it["id"].(string), nil))
	}
	harness.Container(t, d, "graph", 0, "/city")
	fillTable(t, s)
	fillMongo(t, s)
	fillGraph(t, s)
}

func entity(n int) aztables.EDMEntity {
	return aztables.EDMEntity{
		Entity: aztables.Entity{PartitionKey: fmt.Sprintf("part %d", n%3), RowKey: fmt.Sprintf("row %03d", n)},
		Properties: map[string]any{
			"Text": "t" + fmt.Sprint(n), "Int": int32(n), "Long": aztables.EDMInt64(1 << 40 * int64(n+1)),
			"Half": float64(n) / 2, "Yes": n%2 == 0, "Bytes": aztables.EDMBinary([]byte{byte(n), 0, 255}),
			"When": aztables.EDMDateTime(time.Date(2026, 1, 2, 3, 4, 5, n*1e6, time.UTC)),
			"Who":  aztables.EDMGUID(fmt.Sprintf("00112233-4455-6677-8899-%012d", n)),
		},
	}
}

func fillTable(t testing.TB, s *harness.Server) {
	t.Helper()
	must[aztables.CreateTableResponse](t)(s.Tables.CreateTable(bg, "readings", nil))
	for n := range items {
		b := must[[]byte](t)(json.Marshal(entity(n)))
		must[aztables.AddEntityResponse](t)(s.Tables.NewClient("readings").AddEntity(bg, b, nil))
	}
}

func mongoIDs() []any {
	oid, _ := bson.ObjectIDFromHex("0123456789abcdef01234567")
	dec, _ := bson.ParseDecimal128("12.50")
	return []any{int32(1), int64(1) << 40, 2.5, "text", oid, true, bson.DateTime(1_700_000_000_123), dec,
		bson.D{{Key: "a", Value: int32(1)}}, nil}
}

func fillMongo(t testing.TB, s *harness.Server) {
	t.Helper()
	c := s.Mongo.Database(db).Collection("documents")
	for n, id := range mongoIDs() {
		d := bson.D{{Key: "_id", Value: id}, {Key: "n", Value: int32(n)},
			{Key: "list", Value: bson.A{int32(n), "x", bson.D{{Key: "y", Value: int32(n)}}}}, {Key: "id", Value: "own"},
			{Key: "rx", Value: bson.Regex{Pattern: "^a", Options: "i"}},
			{Key: "b", Value: bson.Binary{Subtype: 4, Data: make([]byte, 16)}}}
		must[*mongo.InsertOneResult](t)(c.InsertOne(bg, d))
	}
	must[string](t)(c.Indexes().CreateOne(bg, mongo.IndexModel{Keys: bson.D{{Key: "n", Value: 1}}}))
}

func fillGraph(t testing.TB, s *harness.Server) {
	t.Helper()
	g := s.Gremlin(t, db, "graph")
	for n := range 20 {
		must[[]any](t)(harness.Submit(g, "g.addV('person').property('id', i).property('city', c).property('age', a)"+
			".property(list, 'name', m).property(list, 'name', i)",
			"i", fmt.Sprintf("p%02d", n), "c", fmt.Sprintf("city %d", n%3), "a", n, "m", fmt.Sprintf("name %d", n)))
	}
	for n := range 19 {
		must[[]any](t)(harness.Submit(g, "g.V(a).addE('knows').property('since', n).to(__.V(b))",
			"a", fmt.Sprintf("p%02d", n), "b", fmt.Sprintf("p%02d", n+1), "n", 2000+n))
	}
}

// change makes writes that affect all derived data of a store. restore reverses them.
func change(t testing.TB, s *harness.Server) {
	t.Helper()
	for id := range containers {
		it := item(11)
		it["text"], it["half"] = "written later", 100.5
		upsert(t, s, id, it)
		upsert(t, s, id, item(items))
	}
	c := must[*azcosmos.ContainerClient](t)(s.SQL.NewContainer(db, "unique"))
	taken := item(20)
	taken["id"], taken["country"] = "another", item(14)["country"]
	taken["n"] = 14
	if _, err := c.CreateItem(bg, keyOf("unique", taken), must[[]byte](t)(json.Marshal(taken)), nil); err == nil ||
		!strings.Contains(err.Error(), "409") {
		t.Errorf("a second item with a unique value: %v", err)
	}
}

func restore(t testing.TB, s *harness.Server) {
	t.Helper()
	for id := range containers {
		upsert(t, s, id, item(11))
		it := item(items)
		c := must[*azcosmos.ContainerClient](t)(s.SQL.NewContainer(db, id))
		must[azcosmos.ItemResponse](t)(c.DeleteItem(bg, keyOf(id, it), it["id"].(string), nil))
	}
}

// queries are for the items of any container: point reads, orders, ranges, arrays, GeoJSON, counts.
var queries = []string{
	"SELECT VALUE c.id FROM c WHERE c.n >= 10 AND c.n < 20 ORDER BY c.n",
	"SELECT VALUE [c.country, c.n] FROM c ORDER BY c.country ASC, c.n DESC OFFSET 5 LIMIT 20",
	"SELECT VALUE c.id FROM c WHERE c.text = 'changed' ORDER BY c.id",
	"SELECT VALUE c.id FROM c ORDER BY c.half, c.id OFFSET 0 LIMIT 30",
	"SELECT VALUE c.n FROM c WHERE ARRAY_CONTAINS(c.tags, 3) ORDER BY c.n",
	"SELECT VALUE c.n FROM c WHERE c.deep.a[\"b.c\"] = 12",
	"SELECT VALUE c.n FROM c WHERE ST_DISTANCE(c.at, {'type':'Point','coordinates':[12,4]}) < 300000 ORDER BY c.n",
	"SELECT VALUE COUNT(1) FROM c",
	"SELECT VALUE c.n FROM c WHERE NOT IS_DEFINED(c.half) ORDER BY c.n",
	"SELECT VALUE c.n FROM c WHERE c.big > 9007199254741000 AND c.even ORDER BY c.n DESC",
}

// read returns what clients see, by request.
func read(t testing.TB, s *harness.Server) map[string][]string {
	t.Helper()
	got := map[string][]string{}
	for id := range containers {
		c := must[*azcosmos.ContainerClient](t)(s.SQL.NewContainer(db, id))
		for n := range items + 1 {
			it := item(n)
			r, err := c.ReadItem(bg, keyOf(id, it), it["id"].(string), nil)
			if n == 7 || n == items && err != nil {
				continue
			}
			if err != nil {
				t.Fatal(id, n, err)
			}
			got[id] = append(got[id], withoutSystem(t, r.Value))
		}
		for _, q := range queries {
			got[id+": "+q] = harness.Query(t, c, azcosmos.NewPartitionKey(), q)
		}
		p := must[azcosmos.ContainerResponse](t)(c.Read(bg, nil)).ContainerProperties
		policies := must[[]byte](t)(json.Marshal([]any{p.IndexingPolicy, p.UniqueKeyPolicy, p.DefaultTimeToLive}))
		got[id+": policies"] = []string{string(policies)}
	}
	readTable(t, s, got)
	readMongo(t, s, got)
	g := s.Gremlin(t, db, "graph")
	for _, q := range []string{
		"g.V().count()", "g.E().count()", "g.V('p05').properties('name').value()",
		"g.V().has('age', gt(15)).values('age')",
		"g.V('p00').repeat(out('knows')).times(5).id()", "g.E().has('since', lt(2004)).outV().id()",
		"g.V(['city 1', 'p04']).values('age')",
		"g.V('p10').both().id()",
	} {
		got[q] = rows(must[[]any](t)(harness.Submit(g, q)))
	}
	return got
}

// withoutSystem removes the system fields of an item.
func withoutSystem(t testing.TB, b []byte) string {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"_rid", "_self", "_etag", "_ts", "_attachments"} {
		if m[name] == nil {
			t.Errorf("%s is missing in %s", name, b)
		}
		delete(m, name)
	}
	return string(must[[]byte](t)(json.Marshal(m)))
}

func readTable(t testing.TB, s *harness.Server, got map[string][]string) {
	t.Helper()
	c := s.Tables.NewClient("readings")
	filters := []string{"PartitionKey eq 'part 1' and RowKey lt 'row 020'", "Long gt 20000000000000L",
		"When lt datetime'2026-01-02T03:04:05.0200000Z'", "Who eq guid'00112233-4455-6677-8899-000000000012'", ""}
	for _, f := range filters {
		var found []string
		for p := c.NewListEntitiesPager(&aztables.ListEntitiesOptions{Filter: &f}); p.More(); {
			for _, e := range must[aztables.ListEntitiesResponse](t)(p.NextPage(bg)).Entities {
				var m map[string]json.RawMessage
				if err := json.Unmarshal(e, &m); err != nil {
					t.Fatal(err)
				}
				for name := range m {
					if strings.HasPrefix(name, "odata.") || strings.HasPrefix(name, "Timestamp") {
						delete(m, name)
					}
				}
				found = append(found, string(must[[]byte](t)(json.Marshal(m))))
			}
		}
		slices.Sort(found)
		got["entities "+f] = found
	}
}

func readMongo(t testing.TB, s *harness.Server, got map[string][]string) {
	t.Helper()
	c := s.Mongo.Database(db).Collection("documents")
	for name, find := range map[string]struct {
		filter bson.D
		o      *options.FindOptionsBuilder
	}{
		"all": {bson.D{}, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}})},
		"range": {bson.D{{Key: "n", Value: bson.D{{Key: "$gte", Value: 3}}}},
			options.Find().SetSort(bson.D{{Key: "n", Value: -1}})},
		"elements": {bson.D{{Key: "list.y", Value: 4}}, options.Find()},
		"own id": {bson.D{{Key: "id", Value: "own"}},
			options.Find().SetSort(bson.D{{Key: "n", Value: 1}}).SetLimit(3)},
	} {
		var found []bson.D
		if err := must[*mongo.Cursor](t)(c.Find(bg, find.filter, find.o)).All(bg, &found); err != nil {
			t.Fatal(err)
		}
		for _, d := range found {
			got["documents "+name] = append(
				got["documents "+name], string(must[[]byte](t)(bson.MarshalExtJSON(d, true, false))))
		}
	}
	for _, id := range mongoIDs() {
		var d bson.D
		if err := c.FindOne(bg, bson.D{{Key: "_id", Value: id}}).Decode(&d); err != nil {
			t.Errorf("document %v: %v", id, err)
		}
	}
}
