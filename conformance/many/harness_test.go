// Package many tests several complete servers over one store, behind a balancer that sends each request to another
// server than the one before: whatever one server begins, another one must be able to go on with.
package many

import (
	"context"
	"encoding/base64"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	gremlingo "github.com/apache/tinkerpop/gremlin-go/v3/driver"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	_ "github.com/orrerydb/orrery/conformance/harness" // this binary is the worker of its servers' programs
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/graphapi"
	"github.com/orrerydb/orrery/mongoapi"
	"github.com/orrerydb/orrery/sqlapi"
	"github.com/orrerydb/orrery/sqlapi/script"
	"github.com/orrerydb/orrery/tableapi"
)

const (
	account = "localhost"
	key     = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
)

var bg = context.Background()

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil)))
	os.Exit(m.Run())
}

// process is one server: an engine of its own over the shared store, and the doors.
type process struct {
	kv      *kvtest.Process
	core    *core.Engine
	sql     http.Handler
	table   http.Handler
	gremlin *graphapi.Server
	mongo   *mongoapi.Server
	addr    string // of mongo
}

// cluster is several processes behind a balancer.
type cluster struct {
	t     *testing.T
	store *kvtest.Shared
	all   []*process
	turn  atomic.Int64 // requests over HTTP so far
	sql   string       // the balancer's addresses
	table string
	graph string
	mongo string
}

// start opens n processes over one store.
func start(t *testing.T, n int) *cluster {
	t.Helper()
	cl := &cluster{t: t, store: kvtest.NewShared(memkv.New(), 1)}
	for range n {
		cl.all = append(cl.all, cl.open(cl.store.Engine()))
	}
	cl.sql = cl.balance(func(p *process) http.Handler { return p.sql })
	cl.table = cl.balance(func(p *process) http.Handler { return p.table })
	cl.graph = cl.balance(func(p *process) http.Handler { return p.gremlin })
	cl.mongo = balanceMessages(t, cl.all)
	return cl
}

// open starts the doors of one process.
func (cl *cluster) open(shared *kvtest.Process) *process {
	t := cl.t
	e, err := core.Open(bg, kv.Checked(shared), core.Options{Lease: 500 * time.Millisecond})
	ok(t, err)
	secret, err := base64.StdEncoding.DecodeString(key)
	ok(t, err)
	pool := script.NewPool(script.Options{Workers: 1, Clock: clock.New()})
	p := &process{kv: shared, core: e}
	p.sql, err = sqlapi.New(e, sqlapi.Options{Account: account, Key: key, Auth: true, Clock: e.Clock(), Scripts: pool})
	ok(t, err)
	p.table = tableapi.New(e, tableapi.Options{Account: account, Key: secret, Auth: true, Clock: e.Clock()})
	p.gremlin = graphapi.NewServer(graphapi.Graphs(e), graphapi.Options{Budget: e.Budget(), Clock: e.Clock(),
		Account: account, Key: key, Auth: true,
		Sources: map[string]graphapi.GraphName{"plain": {Database: "graphdb", Graph: "g"}}})
	ok(t, p.gremlin.Prepare(bg))
	p.mongo = mongoapi.New(e, mongoapi.Options{Account: account, Key: key})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	p.addr = ln.Addr().String()
	served := make(chan error, 1)
	go func() { served <- p.mongo.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(bg, 10*time.Second)
		defer cancel()
		ok(t, p.mongo.Shutdown(ctx))
		ok(t, <-served)
		ok(t, p.gremlin.Shutdown(ctx))
		ok(t, pool.Close())
		if problems, err := e.Check(ctx); err != nil || len(problems) > 0 {
			t.Errorf("the store is not clean: %v %v", err, problems)
		}
		ok(t, e.Close())
	})
	return p
}

// balance serves HTTP and hands each request to the next process. A WebSocket is one request.
func (cl *cluster) balance(of func(*process) http.Handler) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		of(cl.all[cl.turn.Add(1)%int64(len(cl.all))]).ServeHTTP(w, r)
	}))
	cl.t.Cleanup(s.Close)
	return s.URL
}

func (cl *cluster) cosmos() *azcosmos.Client {
	cred, err := azcosmos.NewKeyCredential(key)
	ok(cl.t, err)
	o := &azcosmos.ClientOptions{EnableContentResponseOnWrite: true}
	o.Retry = policy.RetryOptions{MaxRetries: -1}
	c, err := azcosmos.NewClientWithKey(cl.sql, cred, o)
	ok(cl.t, err)
	return c
}

func (cl *cluster) tables() *aztables.ServiceClient {
	cred, err := aztables.NewSharedKeyCredential(account, key)
	ok(cl.t, err)
	o := &aztables.ClientOptions{}
	o.Retry = policy.RetryOptions{MaxRetries: -1}
	c, err := aztables.NewServiceClientWithSharedKey(cl.table, cred, o)
	ok(cl.t, err)
	return c
}

// gremlins returns a client of its own, so a connection of its own, for each process.
func (cl *cluster) gremlins(user string) (out []*gremlingo.Client) {
	for range cl.all {
		c, err := gremlingo.NewClient("ws"+strings.TrimPrefix(cl.graph, "http")+"/gremlin",
			func(o *gremlingo.ClientSettings) {
				o.AuthInfo = gremlingo.BasicAuthInfo(user, key)
				o.LogVerbosity = gremlingo.Off
				o.MaximumConcurrentConnections = 1
				o.NewConnectionThreshold = 0
			})
		ok(cl.t, err)
		cl.t.Cleanup(c.Close)
		out = append(out, c)
	}
	return out
}

// client connects the official MongoDB driver to the balancer. further are more options ("a=b&c=d").
func (cl *cluster) client(further string) *mongo.Client {
	c, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + cl.mongo + "/?directConnection=true&" + further))
	ok(cl.t, err)
	cl.t.Cleanup(func() { ok(cl.t, c.Disconnect(bg)) })
	return c
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
