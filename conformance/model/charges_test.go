package model

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	gremlingo "github.com/apache/tinkerpop/gremlin-go/v3/driver"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/orrerydb/orrery/conformance/harness"
)

// doors are the clients of one container whose key is /k, and the way in which each of them tells charges.
type doors struct {
	t     *testing.T
	sql   *azcosmos.ContainerClient
	coll  *mongo.Collection
	table *aztables.Client
	graph *gremlingo.Client
}

func newDoors(t *testing.T, s *harness.Server, ru int32) *doors {
	db := s.Database(t)
	return &doors{t, harness.Container(t, db, "c", ru, "/k"), s.Mongo.Database(db.ID()).Collection("c"),
		s.Tables.NewClient(db.ID() + ".c"), s.Gremlin(t, db.ID(), "c")}
}

// byMongo returns the charge of a request of MongoDB.
func (d *doors) byMongo(err error) float64 {
	d.t.Helper()
	ok(d.t, err)
	var stats struct {
		Charge float64 `bson:"RequestCharge"`
	}
	ok(d.t, d.coll.Database().RunCommand(bg, bson.D{{Key: "getLastRequestStatistics", Value: 1}}).Decode(&stats))
	return stats.Charge
}

// byTable returns the charge of a request of Table.
func (d *doors) byTable(do func(*doors) error, response **http.Response) float64 {
	d.t.Helper()
	ok(d.t, do(d))
	f, err := strconv.ParseFloat((*response).Header.Get("x-ms-request-charge"), 64)
	ok(d.t, err)
	return f
}

// byGremlin returns the charge of a script.
func (d *doors) byGremlin(script string) float64 {
	d.t.Helper()
	rs, err := d.graph.Submit(script)
	ok(d.t, err)
	_, err = rs.All()
	ok(d.t, err)
	f, is := rs.GetStatusAttributes()["x-ms-total-request-charge"].(float64)
	if !is {
		d.t.Fatalf("%s: the attributes are %v", script, rs.GetStatusAttributes())
	}
	return f
}

// P10: the same work on the same data costs the same through each door, and a query's pages add up to the whole
// whatever their size.
func TestP10SameChargeInEachAPI(t *testing.T) {
	s := harness.Start(t)
	d := newDoors(t, s, 400)
	pad := strings.Repeat("x", 900)
	item := func(id, k string, n int) []byte {
		return fmt.Appendf(nil, `{"id":%q,"k":%q,"n":%d,"pad":%q}`, id, k, n, pad)
	}
	entity := func(id, k string, n int) []byte {
		return fmt.Appendf(nil, `{"PartitionKey":%q,"RowKey":%q,"n":%d,"pad":%q}`, k, id, n, pad)
	}
	document := func(id, k string, n int) bson.D {
		return bson.D{{Key: "_id", Value: id}, {Key: "k", Value: k}, {Key: "n", Value: n}, {Key: "pad", Value: pad}}
	}
	var resp *http.Response
	ctx := policy.WithCaptureResponse(bg, &resp)
	for i := range 400 {
		_, err := d.sql.CreateItem(bg, str("b"), item(fmt.Sprint(i), "b", i%7), nil)
		ok(t, err)
	}
	c1, err := d.sql.CreateItem(bg, str("a"), item("s", "a", 1), nil)
	ok(t, err)
	r1, err := d.sql.ReadItem(bg, str("a"), "s", nil)
	ok(t, err)
	ops := azcosmos.PatchOperations{}
	ops.AppendSet("/n", 2)
	_, err = d.coll.InsertOne(bg, document("m", "a", 1))
	created := d.byMongo(err)
	read := d.byMongo(d.coll.FindOne(bg, bson.D{{Key: "_id", Value: "s"}, {Key: "k", Value: "a"}}).Err())
	none := d.coll.FindOne(bg, bson.D{{Key: "_id", Value: "none"}, {Key: "k", Value: "a"}}).Err()
	if none != mongo.ErrNoDocuments {
		t.Fatal(none)
	}
	missing := d.byMongo(nil)
	u1, err := d.sql.PatchItem(bg, str("a"), "s", ops, nil)
	ok(t, err)
	_, err = d.coll.UpdateOne(bg, bson.D{{Key: "_id", Value: "m"}, {Key: "k", Value: "a"}}, bson.D{{Key: "$set",
		Value: bson.D{{Key: "n", Value: 2}}}})
	updated := d.byMongo(err)
	for _, x := range []struct {
		what               string
		sql, mongo, graphs float64
		table              func(*doors) error
	}{
		{"create", float64(c1.RequestCharge), created, -1, func(d *doors) error {
			_, err := d.table.AddEntity(ctx, entity("t", "a", 1), nil)
			return err
		}},
		{"read", float64(r1.RequestCharge), read, d.byGremlin("g.V(['a', 's'])"), func(d *doors) error {
			_, err := d.table.GetEntity(ctx, "a", "s", nil)
			return err
		}},
		{"read of none", 1, missing, d.byGremlin("g.V(['a', 'none'])"), func(d *doors) error {
			_, err := d.table.GetEntity(ctx, "a", "none", nil)
			refused(d.t, err, 404)
			return nil
		}},
		{"update", float64(u1.RequestCharge), updated, -1, func(d *doors) error {
			_, err := d.table.UpdateEntity(ctx, []byte(`{"PartitionKey":"a","RowKey":"t","n":2}`), nil)
			return err
		}},
	} {
		got := d.byTable(x.table, &resp)
		if x.sql < 1 || got != x.sql || x.mongo != x.sql || x.graphs >= 0 && x.graphs != x.sql {
			t.Errorf("%s: NoSQL %v, Table %v, MongoDB %v, Gremlin %v RU", x.what, x.sql, got, x.mongo, x.graphs)
		}
	}

	for _, q := range []struct {
		sql, table, gremlin string
		mongo               bson.D
		rows                int
	}{
		{"SELECT * FROM c", "PartitionKey eq 'b'", "g.V().has('k', 'b')", bson.D{{Key: "k", Value: "b"}}, 400},
		{"SELECT * FROM c WHERE c.n = 3", "PartitionKey eq 'b' and n eq 3", "g.V().has('k', 'b').has('n', 3)",
			bson.D{{Key: "k", Value: "b"}, {Key: "n", Value: 3}}, 57},
		{"SELECT * FROM c WHERE c.n > 2", "PartitionKey eq 'b' and n gt 2", "g.V().has('k', 'b').has('n', gt(2))",
			bson.D{{Key: "k", Value: "b"}, {Key: "n", Value: bson.D{{Key: "$gt", Value: 2}}}}, 228},
	} {
		whole := d.byGremlin(q.gremlin)
		if least := 2.3 + 0.03*float64(q.rows); whole < least {
			t.Errorf("%s: %v RU, at least %v", q.gremlin, whole, least)
		}
		for api, read := range map[string]func(page int32) (float64, int){
			"NoSQL":   func(page int32) (float64, int) { return d.pagesOfSQL(q.sql, page) },
			"Table":   func(page int32) (float64, int) { return d.pagesOfTable(q.table, page) },
			"MongoDB": func(page int32) (float64, int) { return d.pagesOfMongo(q.mongo, page) },
		} {
			for _, page := range []int32{7, 60, 90, 1000} {
				if got, rows := read(page); rows != q.rows || math.Abs(got-whole) > 0.011 {
					t.Errorf("%s by %s, in pages of %d: %d rows for %.4f RU, want %d for %.4f", q.sql, api, page, rows,
						got, q.rows, whole)
				}
			}
		}
	}
}

func (d *doors) pagesOfSQL(text string, size int32) (sum float64, rows int) {
	for p := d.sql.NewQueryItemsPager(text, str("b"), &azcosmos.QueryOptions{PageSizeHint: size}); p.More(); {
		r, err := p.NextPage(bg)
		ok(d.t, err)
		sum, rows = sum+float64(r.RequestCharge), rows+len(r.Items)
	}
	return sum, rows
}

func (d *doors) pagesOfTable(filter string, size int32) (sum float64, rows int) {
	o := &aztables.ListEntitiesOptions{Filter: &filter, Top: &size}
	for p := d.table.NewListEntitiesPager(o); p.More(); {
		var resp *http.Response
		sum += d.byTable(func(*doors) error {
			r, err := p.NextPage(policy.WithCaptureResponse(bg, &resp))
			rows += len(r.Entities)
			return err
		}, &resp)
	}
	return sum, rows
}

func (d *doors) pagesOfMongo(filter bson.D, size int32) (sum float64, rows int) {
	var page struct {
		Cursor struct {
			ID                    int64
			FirstBatch, NextBatch []bson.Raw
		}
	}
	s, err := d.coll.Database().Client().StartSession()
	ok(d.t, err)
	defer s.EndSession(bg)
	ctx := mongo.NewSessionContext(bg, s)
	sum = d.byMongo(d.coll.Database().RunCommand(ctx, bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: filter},
		{Key: "batchSize", Value: size}}).Decode(&page))
	rows = len(page.Cursor.FirstBatch)
	for page.Cursor.ID != 0 {
		sum += d.byMongo(d.coll.Database().RunCommand(ctx, bson.D{{Key: "getMore", Value: page.Cursor.ID},
			{Key: "collection", Value: "c"}, {Key: "batchSize", Value: size}}).Decode(&page))
		rows += len(page.Cursor.NextBatch)
	}
	return sum, rows
}
