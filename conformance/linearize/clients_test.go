package linearize

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/orrerydb/orrery/cmd/orrery/server"
)

const (
	database, container = "lin", "c"
	partitions, each    = 2, 2 // logical partitions, and items in each
)

// place returns the partition key and the id of item n.
func place(n int) (pk, id string) { return fmt.Sprint("p", n/each), fmt.Sprint("k", n) }

// client executes operations on items through one API. It never retries: a request is one operation. Its errors mean
// that there was no reply, or one without information about the item.
type client interface {
	create(ctx context.Context, n, v int) (result, error)
	// read returns the value, 0 if the item is absent, and the etag.
	read(ctx context.Context, n int) (v int, etag string, err error)
	replace(ctx context.Context, n, v, from int, etag string) (result, error)
	remove(ctx context.Context, n int) (result, error)
	// list returns the values of a logical partition's items, by id.
	list(ctx context.Context, pk string) (map[string]int, error)
}

// clients returns a client of each API.
func clients(t *testing.T, at server.Connections) (map[string]client, func()) {
	t.Helper()
	never := policy.RetryOptions{MaxRetries: -1}
	cred, err := azcosmos.NewKeyCredential(at.Key)
	if err != nil {
		t.Fatal(err)
	}
	co := &azcosmos.ClientOptions{}
	co.Retry = never
	cosmos, err := azcosmos.NewClientWithKey(at.NoSQL.Endpoint, cred, co)
	if err != nil {
		t.Fatal(err)
	}
	ct, err := cosmos.NewContainer(database, container)
	if err != nil {
		t.Fatal(err)
	}
	tcred, err := aztables.NewSharedKeyCredential(at.Account, at.Key)
	if err != nil {
		t.Fatal(err)
	}
	to := &aztables.ClientOptions{}
	to.Retry = never
	tables, err := aztables.NewServiceClientWithSharedKey(at.Table.Endpoint, tcred, to)
	if err != nil {
		t.Fatal(err)
	}
	uri, err := url.Parse(at.Mongo.ConnectionString)
	if err != nil {
		t.Fatal(err)
	}
	login := url.UserPassword(at.Account, at.Key)
	mo := options.Client().ApplyURI(fmt.Sprintf("mongodb://%s@%s/?directConnection=true", login, uri.Host)).
		SetRetryReads(false).SetRetryWrites(false).SetServerSelectionTimeout(time.Second)
	mc, err := mongo.Connect(mo)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]client{"nosql": &noSQL{cosmos, ct}, "table": &table{tables.NewClient(database + "." + container)},
		"mongo": &mongoDB{mc.Database(database).Collection(container)}}
	return all, func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = mc.Disconnect(ctx)
	}
}

// told converts the status of a reply to a result.
func told(err error) (result, error) {
	var e *azcore.ResponseError
	switch {
	case err == nil:
		return done, nil
	case !errors.As(err, &e):
		return unknown, err
	case e.StatusCode == 404:
		return absent, nil
	case e.StatusCode == 409:
		return exists, nil
	case e.StatusCode == 412:
		return differs, nil
	}
	return unknown, err
}

// number returns the value in an item's JSON.
func number(b []byte) (id string, v int, err error) {
	var m struct {
		ID, RowKey string
		N          *int
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return "", 0, err
	}
	if m.N == nil {
		return "", 0, fmt.Errorf("no value in %s", b)
	}
	return m.ID + m.RowKey, *m.N, nil
}

type noSQL struct {
	cl *azcosmos.Client
	ct *azcosmos.ContainerClient
}

func (c *noSQL) text(n, v int) (azcosmos.PartitionKey, string, []byte) {
	pk, id := place(n)
	return azcosmos.NewPartitionKeyString(pk), id, fmt.Appendf(nil, `{"id":%q,"pk":%q,"n":%d}`, id, pk, v)
}

func (c *noSQL) create(ctx context.Context, n, v int) (result, error) {
	pk, _, b := c.text(n, v)
	_, err := c.ct.CreateItem(ctx, pk, b, nil)
	return told(err)
}

func (c *noSQL) read(ctx context.Context, n int) (int, string, error) {
	pk, id, _ := c.text(n, 0)
	r, err := c.ct.ReadItem(ctx, pk, id, nil)
	switch res, err := told(err); res {
	case done:
		_, v, err := number(r.Value)
		return v, string(r.ETag), err
	case absent:
		return 0, "", nil
	default:
		return 0, "", cmp.Or(err, errors.New("a read was refused"))
	}
}

func (c *noSQL) replace(ctx context.Context, n, v, _ int, etag string) (result, error) {
	pk, id, b := c.text(n, v)
	_, err := c.ct.ReplaceItem(ctx, pk, id, b, &azcosmos.ItemOptions{IfMatchEtag: (*azcore.ETag)(&etag)})
	return told(err)
}

func (c *noSQL) remove(ctx context.Context, n int) (result, error) {
	pk, id, _ := c.text(n, 0)
	_, err := c.ct.DeleteItem(ctx, pk, id, nil)
	return told(err)
}

func (c *noSQL) list(ctx context.Context, pk string) (map[string]int, error) {
	p := c.ct.NewQueryItemsPager("SELECT c.id, c.n FROM c", azcosmos.NewPartitionKeyString(pk), nil)
	return gather(ctx, p, func(r azcosmos.QueryItemsResponse) [][]byte { return r.Items })
}

// gather returns the numbers in all rows of a list, by id.
func gather[T any](ctx context.Context, p *runtime.Pager[T], rows func(T) [][]byte) (map[string]int, error) {
	out := map[string]int{}
	for p.More() {
		r, err := p.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, b := range rows(r) {
			id, v, err := number(b)
			if err != nil {
				return nil, err
			}
			out[id] = v
		}
	}
	return out, nil
}

type table struct{ cl *aztables.Client }

func entity(n, v int) []byte {
	pk, id := place(n)
	return fmt.Appendf(nil, `{"PartitionKey":%q,"RowKey":%q,"n":%d}`, pk, id, v)
}

func (c *table) create(ctx context.Context, n, v int) (result, error) {
	_, err := c.cl.AddEntity(ctx, entity(n, v), nil)
	return told(err)
}

func (c *table) read(ctx context.Context, n int) (int, string, error) {
	pk, id := place(n)
	r, err := c.cl.GetEntity(ctx, pk, id, nil)
	switch res, err := told(err); res {
	case done:
		_, v, err := number(r.Value)
		return v, string(r.ETag), err
	case absent:
		return 0, "", nil
	default:
		return 0, "", cmp.Or(err, errors.New("a read was refused"))
	}
}

func (c *table) replace(ctx context.Context, n, v, _ int, etag string) (result, error) {
	o := &aztables.UpdateEntityOptions{IfMatch: (*azcore.ETag)(&etag), UpdateMode: aztables.UpdateModeReplace}
	_, err := c.cl.UpdateEntity(ctx, entity(n, v), o)
	return told(err)
}

func (c *table) remove(ctx context.Context, n int) (result, error) {
	pk, id := place(n)
	_, err := c.cl.DeleteEntity(ctx, pk, id, nil)
	return told(err)
}

func (c *table) list(ctx context.Context, pk string) (map[string]int, error) {
	filter := fmt.Sprintf("PartitionKey eq '%s'", pk)
	p := c.cl.NewListEntitiesPager(&aztables.ListEntitiesOptions{Filter: &filter})
	return gather(ctx, p, func(r aztables.ListEntitiesResponse) [][]byte { return r.Entities })
}

type mongoDB struct{ coll *mongo.Collection }

func key(n int) bson.D {
	pk, id := place(n)
	return bson.D{{Key: "_id", Value: id}, {Key: "pk", Value: pk}}
}

func (c *mongoDB) create(ctx context.Context, n, v int) (result, error) {
	_, err := c.coll.InsertOne(ctx, append(key(n), bson.E{Key: "n", Value: int32(v)}))
	if mongo.IsDuplicateKeyError(err) {
		return exists, nil
	}
	return unknownIf(err)
}

func unknownIf(err error) (result, error) {
	if err != nil {
		return unknown, err
	}
	return done, nil
}

// document is an item in MongoDB's form.
type document struct {
	ID string `bson:"_id"`
	N  int    `bson:"n"`
}

func (c *mongoDB) read(ctx context.Context, n int) (int, string, error) {
	filter := key(n)
	if n%2 == 0 { // by the id only
		filter = filter[:1]
	}
	var d document
	err := c.coll.FindOne(ctx, filter).Decode(&d)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return 0, "", nil
	}
	return d.N, "", err
}

func (c *mongoDB) replace(ctx context.Context, n, v, from int, _ string) (result, error) {
	set := bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: int32(v)}}}}
	r, err := c.coll.UpdateOne(ctx, append(key(n), bson.E{Key: "n", Value: from}), set)
	if err == nil && r.MatchedCount == 0 {
		return missed, nil
	}
	return unknownIf(err)
}

func (c *mongoDB) remove(ctx context.Context, n int) (result, error) {
	r, err := c.coll.DeleteOne(ctx, key(n))
	if err == nil && r.DeletedCount == 0 {
		return absent, nil
	}
	return unknownIf(err)
}

func (c *mongoDB) list(ctx context.Context, pk string) (map[string]int, error) {
	cur, err := c.coll.Find(ctx, bson.D{{Key: "pk", Value: pk}})
	if err != nil {
		return nil, err
	}
	var ds []document
	if err := cur.All(ctx, &ds); err != nil {
		return nil, err
	}
	out := map[string]int{}
	for _, d := range ds {
		out[d.ID] = d.N
	}
	return out, nil
}
