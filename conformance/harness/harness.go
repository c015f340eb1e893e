// Package harness starts complete servers for the conformance tests, with all four APIs and the admin port in this
// process, and connects the official clients to them.
package harness

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	gremlingo "github.com/apache/tinkerpop/gremlin-go/v3/driver"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/orrerydb/orrery/cmd/orrery/server"
)

// Server is a running server, with clients of all APIs.
type Server struct {
	*server.Server
	SQL    *azcosmos.Client
	Tables *aztables.ServiceClient
	Mongo  *mongo.Client
}

// Start starts a server in memory on free ports, without strictness (--strict none). The end of the test stops the
// server and checks its store.
func Start(t testing.TB) *Server {
	t.Helper()
	cfg := server.Ephemeral()
	cfg.Strict = nil // the Go client doesn't merge partitions
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	return StartWith(t, cfg)
}

// StartWith is Start with another configuration.
func StartWith(t testing.TB, cfg server.Config) *Server {
	t.Helper()
	srv, err := server.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Server: srv}
	t.Cleanup(func() { s.stop(t) })
	if s.SQL, err = s.cosmos(); err == nil {
		s.Tables, err = s.tables()
	}
	if err == nil {
		uri := fmt.Sprintf("mongodb://%s@%s/?directConnection=true", url.UserPassword(srv.Account(), srv.Key()),
			srv.Addr(server.Mongo))
		s.Mongo, err = mongo.Connect(options.Client().ApplyURI(uri))
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *Server) stop(t testing.TB) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if s.Mongo != nil {
		if err := s.Mongo.Disconnect(ctx); err != nil {
			t.Error(err)
		}
	}
	if problems, err := s.Engine().Check(ctx); err != nil || len(problems) > 0 {
		t.Errorf("the store is not clean: %v %v", err, problems)
	}
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
}

func (s *Server) cosmos() (*azcosmos.Client, error) {
	cred, err := azcosmos.NewKeyCredential(s.Key())
	if err != nil {
		return nil, err
	}
	o := &azcosmos.ClientOptions{EnableContentResponseOnWrite: true}
	o.Retry = policy.RetryOptions{MaxRetries: -1}
	return azcosmos.NewClientWithKey("http://"+s.Addr(server.NoSQL), cred, o)
}

func (s *Server) tables() (*aztables.ServiceClient, error) {
	cred, err := aztables.NewSharedKeyCredential(s.Account(), s.Key())
	if err != nil {
		return nil, err
	}
	o := &aztables.ClientOptions{}
	o.Retry = policy.RetryOptions{MaxRetries: -1}
	return aztables.NewServiceClientWithSharedKey("http://"+s.Addr(server.Table), cred, o)
}

// Gremlin returns a client for scripts on a container as a graph.
func (s *Server) Gremlin(t testing.TB, database, container string) *gremlingo.Client {
	t.Helper()
	c, err := gremlingo.NewClient("ws://"+s.Addr(server.Gremlin)+"/gremlin", func(o *gremlingo.ClientSettings) {
		o.AuthInfo = gremlingo.BasicAuthInfo("/dbs/"+database+"/colls/"+container, s.Key())
		o.LogVerbosity = gremlingo.Off
		o.NewConnectionThreshold = 0
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Submit runs a script to its end. Bindings are pairs of name and value.
func Submit(c *gremlingo.Client, script string, bindings ...any) ([]any, error) {
	b := map[string]any{}
	for i := 0; i < len(bindings); i += 2 {
		b[bindings[i].(string)] = bindings[i+1]
	}
	rs, err := c.Submit(script, b)
	if err != nil {
		return nil, err
	}
	all, err := rs.All()
	if err != nil {
		return nil, err
	}
	out := make([]any, len(all))
	for i, r := range all {
		out[i] = r.Data
	}
	return out, nil
}

var names atomic.Int64

// Unique returns a different name at each call.
func Unique(prefix string) string { return fmt.Sprintf("%s%d", prefix, names.Add(1)) }

// Database creates a database.
func (s *Server) Database(t testing.TB) *azcosmos.DatabaseClient {
	t.Helper()
	id := Unique("db")
	if _, err := s.SQL.CreateDatabase(context.Background(), azcosmos.DatabaseProperties{ID: id}, nil); err != nil {
		t.Fatal(err)
	}
	db, err := s.SQL.NewDatabase(id)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// Container creates a container with partition key paths and a throughput (0: the default).
func Container(t testing.TB, db *azcosmos.DatabaseClient, id string, ru int32,
	paths ...string) *azcosmos.ContainerClient {
	t.Helper()
	var o *azcosmos.CreateContainerOptions
	if ru > 0 {
		tp := azcosmos.NewManualThroughputProperties(ru)
		o = &azcosmos.CreateContainerOptions{ThroughputProperties: &tp}
	}
	def := azcosmos.PartitionKeyDefinition{Paths: paths, Version: 2, Kind: azcosmos.PartitionKeyKindHash}
	if len(paths) > 1 {
		def.Kind = azcosmos.PartitionKeyKindMultiHash
	}
	if _, err := db.CreateContainer(context.Background(),
		azcosmos.ContainerProperties{ID: id, PartitionKeyDefinition: def}, o); err != nil {
		t.Fatal(err)
	}
	c, err := db.NewContainer(id)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Query returns the rows of a query as JSON texts.
func Query(t testing.TB, c *azcosmos.ContainerClient, pk azcosmos.PartitionKey, text string,
	params ...azcosmos.QueryParameter) []string {
	t.Helper()
	rows := []string{}
	p := c.NewQueryItemsPager(text, pk, &azcosmos.QueryOptions{QueryParameters: params})
	for p.More() {
		r, err := p.NextPage(context.Background())
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for _, it := range r.Items {
			rows = append(rows, string(it))
		}
	}
	return rows
}
