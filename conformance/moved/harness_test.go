package moved

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	gremlingo "github.com/apache/tinkerpop/gremlin-go/v3/driver"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	_ "github.com/orrerydb/orrery/conformance/harness" // this binary is the worker of its servers' programs
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

var bg = context.Background()

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// quiet is the log of servers and moves.
var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// shared is a kind of engine with one store, whose only address is NAME://main.
func shared(name string) server.EngineKind {
	store := kvtest.NewShared(memkv.New(), 1)
	return server.EngineKind{Scheme: name,
		Open: func(context.Context, string, server.EngineOptions) (kv.Engine, error) { return store.Engine(), nil }}
}

// front is an address that stays, and leads to the server of the moment.
type front struct {
	net.Listener
	mu sync.Mutex
	to string // empty: connections end
}

func newFront(t *testing.T) *front {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	f := &front{Listener: ln}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go f.relay(c)
		}
	}()
	return f
}

// relay carries one connection until either side ends it.
func (f *front) relay(client net.Conn) {
	defer client.Close()
	f.mu.Lock()
	to := f.to
	f.mu.Unlock()
	if to == "" {
		return
	}
	s, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer s.Close()
	go func() {
		_, _ = io.Copy(s, client)
		_ = s.Close()
	}()
	_, _ = io.Copy(client, s)
}

// site is the place of a store, with the clients of its servers.
type site struct {
	t      *testing.T
	kinds  []server.EngineKind
	server *server.Server
	fronts map[string]*front
	sql    *azcosmos.Client
	tables *aztables.ServiceClient
	mongo  *mongo.Client
}

func newSite(t *testing.T, kinds ...server.EngineKind) *site {
	s := &site{t: t, kinds: kinds, fronts: map[string]*front{}}
	for _, api := range []string{server.NoSQL, server.Table, server.Mongo, server.Gremlin} {
		s.fronts[api] = newFront(t)
	}
	at := func(api string) string { return s.fronts[api].Addr().String() }
	c := server.Ephemeral()
	key, err := azcosmos.NewKeyCredential(c.Key)
	ok(t, err)
	s.sql, err = azcosmos.NewClientWithKey("http://"+at(server.NoSQL), key,
		&azcosmos.ClientOptions{EnableContentResponseOnWrite: true})
	ok(t, err)
	cred, err := aztables.NewSharedKeyCredential(c.Account, c.Key)
	ok(t, err)
	s.tables, err = aztables.NewServiceClientWithSharedKey("http://"+at(server.Table), cred, nil)
	ok(t, err)
	s.mongo, err = mongo.Connect(options.Client().ApplyURI(fmt.Sprintf("mongodb://%s@%s/?directConnection=true",
		url.UserPassword(c.Account, c.Key), at(server.Mongo))))
	ok(t, err)
	t.Cleanup(func() { ok(t, s.mongo.Disconnect(bg)) })
	t.Cleanup(s.stop)
	return s
}

// serve starts a server over the store at a place: a directory, or an address.
func (s *site) serve(place string) {
	s.t.Helper()
	c := server.Ephemeral()
	c.Strict, c.Logger, c.Engines, c.Memory = nil, quiet, s.kinds, false
	if c.Data = place; strings.Contains(place, "://") {
		c.Data, c.Engine = "", place
	}
	srv, err := server.Start(c)
	ok(s.t, err)
	s.server = srv
	ctx, cancel := context.WithTimeout(bg, 20*time.Second)
	defer cancel()
	ok(s.t, srv.WaitReady(ctx))
	s.lead(func(api string) string { return srv.Addr(api) })
}

// lead has the fronts lead elsewhere.
func (s *site) lead(to func(api string) string) {
	for api, f := range s.fronts {
		f.mu.Lock()
		f.to = to(api)
		f.mu.Unlock()
	}
}

// stop stops the server, whose store must be clean.
func (s *site) stop() {
	if s.server == nil {
		return
	}
	s.lead(func(string) string { return "" })
	ctx, cancel := context.WithTimeout(bg, 20*time.Second)
	defer cancel()
	if problems, err := s.server.Engine().Check(ctx); err != nil || len(problems) > 0 {
		s.t.Errorf("the store is not clean: %v %v", err, problems)
	}
	if err := s.server.Stop(ctx); err != nil {
		s.t.Error(err)
	}
	s.server = nil
}

// unseen watches a move and shows nothing.
type unseen struct{}

func (unseen) Task(string, bool) {}
func (unseen) Set(int64, int64)  {}

// move stops the server, moves its store, and starts a server at the new place.
func (s *site) move(from, to string) {
	s.t.Helper()
	s.stop()
	_, err := server.Move(bg, from, to, s.kinds, quiet, unseen{})
	ok(s.t, err)
	s.serve(to)
}

// graph connects to the graph of a container.
func (s *site) graph(database, container string) *gremlingo.Client {
	c, err := gremlingo.NewClient("ws://"+s.fronts[server.Gremlin].Addr().String()+"/gremlin",
		func(o *gremlingo.ClientSettings) {
			o.AuthInfo = gremlingo.BasicAuthInfo("/dbs/"+database+"/colls/"+container, server.Ephemeral().Key)
			o.LogVerbosity = gremlingo.Off
			o.NewConnectionThreshold = 0
		})
	ok(s.t, err)
	return c
}
