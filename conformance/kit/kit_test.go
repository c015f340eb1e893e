// Package kit tests cmd/orrery/orrerytest as its users use it: with the official Go clients of all four APIs.
package kit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	gremlingo "github.com/apache/tinkerpop/gremlin-go/v3/driver"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/orrerydb/orrery/cmd/orrery/orrerytest"
)

var (
	ctx = context.Background()
	srv *orrerytest.Server
)

func TestMain(m *testing.M) {
	srv = orrerytest.New()
	code := m.Run()
	srv.Close()
	os.Exit(code)
}

// clients are the official clients of one account.
type clients struct {
	cosmos  *azcosmos.Client
	tables  *aztables.ServiceClient
	gremlin *gremlingo.Client
	mongo   *mongo.Client
}

// connect makes clients of an account that don't repeat what fails.
func connect(t *testing.T, a *orrerytest.Account) *clients {
	t.Helper()
	once := azcore.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}}
	c := &clients{}
	var err error
	c.cosmos, err = azcosmos.NewClientFromConnectionString(a.NoSQL.ConnectionString,
		&azcosmos.ClientOptions{ClientOptions: once})
	must(t, err)
	c.tables, err = aztables.NewServiceClientFromConnectionString(a.Table.ConnectionString,
		&aztables.ClientOptions{ClientOptions: once})
	must(t, err)
	c.gremlin, err = gremlingo.NewClient(a.Gremlin.Endpoint, func(s *gremlingo.ClientSettings) {
		s.AuthInfo, s.LogVerbosity = gremlingo.BasicAuthInfo(a.Name, a.Key), gremlingo.Off
	})
	must(t, err)
	c.mongo, err = mongo.Connect(options.Client().ApplyURI(a.Mongo.ConnectionString).
		SetServerSelectionTimeout(5 * time.Second))
	must(t, err)
	t.Cleanup(func() {
		c.gremlin.Close()
		_ = c.mongo.Disconnect(ctx)
	})
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// put writes one thing through each API: an item, an entity, a vertex and a document, all called name.
func (c *clients) put(t *testing.T, name string) {
	t.Helper()
	if _, err := c.cosmos.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: "shop"}, nil); !conflict(err) {
		must(t, err)
	}
	db, err := c.cosmos.NewDatabase("shop")
	must(t, err)
	if _, err := db.CreateContainer(ctx, azcosmos.ContainerProperties{ID: "items",
		PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/id"}}}, nil); !conflict(err) {
		must(t, err)
	}
	_, err = c.items(t).CreateItem(ctx, azcosmos.NewPartitionKeyString(name), fmt.Appendf(nil, `{"id":%q}`, name), nil)
	must(t, err)
	if _, err := c.tables.CreateTable(ctx, "entities", nil); !conflict(err) {
		must(t, err)
	}
	_, err = c.tables.NewClient("entities").AddEntity(ctx,
		fmt.Appendf(nil, `{"PartitionKey":"p","RowKey":%q}`, name), nil)
	must(t, err)
	_, err = submit(c.gremlin, "g.addV('thing').property(id, '"+name+"').id()")
	must(t, err)
	_, err = c.mongo.Database("shop").Collection("docs").InsertOne(ctx, bson.M{"_id": name})
	must(t, err)
}

func conflict(err error) bool {
	var re *azcore.ResponseError
	return errors.As(err, &re) && re.StatusCode == http.StatusConflict
}

func (c *clients) items(t *testing.T) *azcosmos.ContainerClient {
	k, err := c.cosmos.NewContainer("shop", "items")
	must(t, err)
	return k
}

func submit(c *gremlingo.Client, script string) ([]*gremlingo.Result, error) {
	rs, err := c.Submit(script)
	if err != nil {
		return nil, err
	}
	return rs.All()
}

// nothing is what seen returns for an empty account.
const nothing = "   "

// seen returns the names that each API shows, in the order NoSQL, Table, Gremlin, Mongo. What doesn't exist is empty.
func (c *clients) seen(t *testing.T) string {
	t.Helper()
	var out [4][]string
	items := c.items(t).NewQueryItemsPager("SELECT VALUE c.id FROM c", azcosmos.PartitionKey{}, nil)
	for items.More() {
		page, err := items.NextPage(ctx)
		if missing(err) {
			break
		}
		must(t, err)
		for _, raw := range page.Items {
			var id string
			must(t, json.Unmarshal(raw, &id))
			out[0] = append(out[0], id)
		}
	}
	entities := c.tables.NewClient("entities").NewListEntitiesPager(nil)
	for entities.More() {
		page, err := entities.NextPage(ctx)
		if missing(err) {
			break
		}
		must(t, err)
		for _, raw := range page.Entities {
			var e struct{ RowKey string }
			must(t, json.Unmarshal(raw, &e))
			out[1] = append(out[1], e.RowKey)
		}
	}
	vertices, err := submit(c.gremlin, "g.V().hasLabel('thing').id().order()")
	must(t, err)
	for _, v := range vertices {
		out[2] = append(out[2], v.GetString())
	}
	docs, err := c.mongo.Database("shop").Collection("docs").Find(ctx, bson.M{})
	must(t, err)
	for docs.Next(ctx) {
		out[3] = append(out[3], docs.Current.Lookup("_id").StringValue())
	}
	must(t, docs.Err())
	parts := make([]string, len(out))
	for i, names := range out {
		slices.Sort(names)
		parts[i] = strings.Join(names, ",")
	}
	return strings.Join(parts, " ")
}

func missing(err error) bool {
	var re *azcore.ResponseError
	return errors.As(err, &re) && re.StatusCode == http.StatusNotFound
}

// Two accounts of one server have the same names with different contents, through every API.
func TestAccountsAreIsolated(t *testing.T) {
	a, b := srv.Account(t), srv.Account(t)
	ca, cb := connect(t, a), connect(t, b)
	ca.put(t, "of-a")
	cb.put(t, "of-b")
	if got, want := ca.seen(t), "of-a of-a of-a of-a"; got != want {
		t.Errorf("the first account shows %q, want %q", got, want)
	}
	if got, want := cb.seen(t), "of-b of-b of-b of-b"; got != want {
		t.Errorf("the second account shows %q, want %q", got, want)
	}
	a.Reset(t)
	if got, want := ca.seen(t), nothing; got != want {
		t.Errorf("after its reset the first account shows %q, want %q", got, want)
	}
	if got, want := cb.seen(t), "of-b of-b of-b of-b"; got != want {
		t.Errorf("after a reset of the first, the second account shows %q, want %q", got, want)
	}
}

// A client with the key of one account is refused at the ports of another one.
func TestAccountsHaveKeys(t *testing.T) {
	a, b := srv.Account(t), srv.Account(t)
	mixed := *a
	nosql := *b.NoSQL
	mixed.NoSQL = &nosql
	mixed.NoSQL.ConnectionString = strings.ReplaceAll(b.NoSQL.ConnectionString, b.Key, a.Key)
	table := *a.Table
	table.ConnectionString = strings.ReplaceAll(strings.ReplaceAll(b.Table.ConnectionString, b.Key, a.Key), b.Name,
		a.Name)
	mixed.Table = &table
	mixed.Gremlin = b.Gremlin
	m := *a.Mongo
	_, at, _ := strings.Cut(b.Mongo.ConnectionString, "@")
	user, _, _ := strings.Cut(a.Mongo.ConnectionString, "@")
	m.ConnectionString = user + "@" + at
	mixed.Mongo = &m
	c := connect(t, &mixed)
	_, cosmosErr := c.cosmos.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: "shop"}, nil)
	_, tableErr := c.tables.CreateTable(ctx, "entities", nil)
	_, gremlinErr := submit(c.gremlin, "g.V().count()")
	mongoErr := c.mongo.Ping(ctx, nil)
	for api, err := range map[string]error{"NoSQL": cosmosErr, "Table": tableErr, "Gremlin": gremlinErr,
		"Mongo": mongoErr} {
		if err == nil {
			t.Errorf("%s lets the key of another account in", api)
		}
	}
}

// Clients stay connected, and see the new content with their next request.
func TestResetSnapshotRestoreFork(t *testing.T) {
	a := srv.Account(t)
	c := connect(t, a)
	show := func(when, want string) {
		t.Helper()
		if got := c.seen(t); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	c.put(t, "one")
	a.Snapshot(t, "with-one")
	c.put(t, "two")
	show("with two", "one,two one,two one,two one,two")
	a.Restore(t, "with-one")
	show("restored", "one one one one")
	c.put(t, "three")
	show("written after the restore", "one,three one,three one,three one,three")
	a.Restore(t, "with-one")
	show("restored again", "one one one one")
	a.Reset(t)
	show("reset", nothing)
	c.put(t, "four")
	show("written after the reset", "four four four four")

	f := connect(t, srv.Fork(t, "with-one"))
	f.put(t, "five")
	if got, want := f.seen(t), "five,one five,one five,one five,one"; got != want {
		t.Errorf("the fork shows %q, want %q", got, want)
	}
	show("written to its fork", "four four four four")
	a.Restore(t, "with-one")
	show("restored after a fork was written to", "one one one one")
}
