// Package graph tests the Gremlin API with gremlin-go, the official Go client: scripts and bytecode.
package graph

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net/http/httptest"
	"sort"
	"strings"
	"testing"

	gremlingo "github.com/apache/tinkerpop/gremlin-go/v3/driver"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/graphapi"
)

const (
	account = "localhost"
	key     = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
)

var bg = context.Background()

// server is an Orrery in this process whose Gremlin API has its own port. It has the plain graphs graphs/g and
// toy/modern (source gmodern), and traffic/cities, partitioned by /region.
type server struct {
	engine *core.Engine
	url    string
}

func start(t testing.TB) *server {
	t.Helper()
	e, err := core.Open(bg, memkv.New(), core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.CreateDatabase(bg, core.DatabaseSpec{ID: "traffic"}); err != nil {
		t.Fatal(err)
	}
	spec := core.ContainerSpec{ID: "cities", PartitionKey: core.PartitionKeyDef{Paths: []string{"/region"}}, Origin: "nosql"}
	if _, err := e.CreateContainer(bg, "traffic", spec); err != nil {
		t.Fatal(err)
	}
	g := graphapi.NewServer(graphapi.Graphs(e), graphapi.Options{Budget: e.Budget(),
		Account: account, Key: key, Auth: true, Clock: e.Clock(), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Sources: map[string]graphapi.GraphName{"gmodern": {Database: "toy", Graph: "modern"}}})
	if err := g.Prepare(bg); err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(g)
	t.Cleanup(func() {
		if err := g.Shutdown(bg); err != nil {
			t.Error(err)
		}
		h.Close()
		if problems, err := e.Check(bg); err != nil || len(problems) > 0 {
			t.Errorf("check: %v %v", problems, err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return &server{e, "ws" + strings.TrimPrefix(h.URL, "http") + "/gremlin"}
}

// source opens a remote traversal source.
func (s *server) source(t testing.TB, user, source string) *gremlingo.GraphTraversalSource {
	t.Helper()
	c, err := gremlingo.NewDriverRemoteConnection(s.url, func(o *gremlingo.DriverRemoteConnectionSettings) {
		o.AuthInfo = gremlingo.BasicAuthInfo(user, key)
		o.TlsConfig = &tls.Config{}
		o.TraversalSource = source
		o.LogVerbosity = gremlingo.Off
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return gremlingo.Traversal_().With(c)
}

// client opens a client for scripts.
func (s *server) client(t testing.TB, user, password string) *gremlingo.Client {
	t.Helper()
	c, err := gremlingo.NewClient(s.url, func(o *gremlingo.ClientSettings) {
		o.AuthInfo = gremlingo.BasicAuthInfo(user, password)
		o.TlsConfig = &tls.Config{}
		o.LogVerbosity = gremlingo.Off
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// submit runs a script to its end.
func submit(c *gremlingo.Client, script string, bindings ...map[string]any) ([]*gremlingo.Result, error) {
	var b map[string]any
	if len(bindings) > 0 {
		b = bindings[0]
	}
	rs, err := c.Submit(script, b)
	if err != nil {
		return nil, err
	}
	return rs.All()
}

func must(t testing.TB, c *gremlingo.Client, script string, bindings ...map[string]any) []*gremlingo.Result {
	t.Helper()
	r, err := submit(c, script, bindings...)
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return r
}

// modern adds the example graph of TinkerPop's documentation to a graph.
func modern(t testing.TB, g *gremlingo.GraphTraversalSource) {
	t.Helper()
	T := gremlingo.T
	add := func(id int32, label, name, key string, v any) {
		err := <-g.AddV(label).Property(T.Id, id).Property("name", name).Property(key, v).Iterate()
		if err != nil {
			t.Fatal(err)
		}
	}
	add(1, "person", "marko", "age", int32(29))
	add(2, "person", "vadas", "age", int32(27))
	add(3, "software", "lop", "lang", "java")
	add(4, "person", "josh", "age", int32(32))
	add(5, "software", "ripple", "lang", "java")
	add(6, "person", "peter", "age", int32(35))
	link := func(id, from int32, label string, to int32, weight float64) {
		err := <-g.V(from).AddE(label).To(gremlingo.T__.V(to)).Property(T.Id, id).Property("weight", weight).Iterate()
		if err != nil {
			t.Fatal(err)
		}
	}
	link(7, 1, "knows", 2, 0.5)
	link(8, 1, "knows", 4, 1.0)
	link(9, 1, "created", 3, 0.4)
	link(10, 4, "created", 5, 1.0)
	link(11, 4, "created", 3, 0.4)
	link(12, 6, "created", 3, 0.2)
}

// texts returns results as sorted texts.
func texts(rs []*gremlingo.Result) []string {
	out := make([]string, len(rs))
	for i, r := range rs {
		out[i] = r.GetString()
	}
	sort.Strings(out)
	return out
}
