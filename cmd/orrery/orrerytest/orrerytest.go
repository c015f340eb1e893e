// Package orrerytest gives Go tests a complete server: all four APIs, in the process of the test, in memory, on free
// ports of this machine. It needs no binary, no container and no network.
//
//	func TestShop(t *testing.T) {
//		srv := orrerytest.Start(t)
//		client, err := azcosmos.NewClientFromConnectionString(srv.NoSQL.ConnectionString, nil)
//		..
//	}
//
// Tests that run side by side share one server, and each has an account of its own in it:
//
//	var srv *orrerytest.Server
//
//	func TestMain(m *testing.M) {
//		srv = orrerytest.New()
//		code := m.Run()
//		srv.Close()
//		os.Exit(code)
//	}
//
//	func TestShop(t *testing.T) {
//		t.Parallel()
//		shop := srv.Account(t) // empty, with ports and a key of its own; removed at the end of the test
//		..
//	}
//
// An account is named by its ports, for every API, and by its key. Each has the test controls: Reset, Snapshot,
// Restore, Fork, and a data clock that can be frozen, set and advanced.
package orrerytest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/sqlapi/script"
	"github.com/orrerydb/orrery/sqlapi/script/engine"
)

// The worker processes of stored procedures and triggers are this binary again, the test's.
func init() {
	script.Served()
	if len(os.Args) == 2 && os.Args[1] == script.WorkerCommand {
		fmt.Fprintln(os.Stderr, engine.Work(os.Stdin, os.Stdout)) // it returns only after an error
		os.Exit(1)
	}
}

// An Option changes the configuration of a server.
type Option func(*server.Config)

// Lenient lets the NoSQL API answer what the service refuses (--strict none).
func Lenient() Option { return func(c *server.Config) { c.Strict = nil } }

// NoAuth lets all clients in, without a key.
func NoAuth() Option { return func(c *server.Config) { c.Auth = false } }

// Logger sets where the server logs. Without it, it logs nothing.
func Logger(l *slog.Logger) Option { return func(c *server.Config) { c.Logger = l } }

// WithoutControls starts a server as production has it: it has no accounts, snapshots, clocks and faults.
func WithoutControls() Option { return func(c *server.Config) { c.TestControls = false } }

// Throttle refuses requests above the provisioned throughput with 429, as the service does.
func Throttle() Option { return func(c *server.Config) { c.Throttle = true } }

// Configure changes any other setting.
func Configure(f func(*server.Config)) Option { return f }

// Account is an account of a server: a store behind four ports.
type Account struct {
	Name, Key string
	NoSQL     *server.NoSQLConn // connection strings
	Table     *server.TableConn
	Gremlin   *server.GremlinConn
	Mongo     *server.MongoConn

	root *server.Server
	self *server.Server
}

// own is the account of a server itself.
type own = Account

// Server is a running server, with the fields and methods of its own account.
type Server struct {
	own
	Admin string       // URL of the admin port
	n     atomic.Int64 // accounts that were added
}

// New starts a server. It panics if that fails, because nothing can be tested then. The caller calls Close.
func New(options ...Option) *Server {
	s, err := start(options)
	if err != nil {
		panic(err)
	}
	return s
}

// Start starts a server, which ends with the test.
func Start(t testing.TB, options ...Option) *Server {
	t.Helper()
	s, err := start(options)
	if err != nil {
		t.Fatalf("orrerytest: %v", err)
	}
	t.Cleanup(s.Close)
	return s
}

func start(options []Option) (*Server, error) {
	c := server.Ephemeral()
	c.TestControls, c.Version = true, "orrerytest"
	c.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	for _, o := range options {
		o(&c)
	}
	s, err := server.Start(c)
	if err != nil {
		return nil, err
	}
	return &Server{own: *account(s, s), Admin: s.Connections(false).Admin.Endpoint}, nil
}

func account(root, self *server.Server) *Account {
	c := self.Connections(true)
	return &Account{Name: c.Account, Key: c.Key, NoSQL: c.NoSQL, Table: c.Table, Gremlin: c.Gremlin, Mongo: c.Mongo,
		root: root, self: self}
}

// stopTime is how long requests may take to end when a server stops.
const stopTime = 2 * time.Second

// Close stops the server with all its accounts.
func (s *Server) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	_ = s.self.Stop(ctx)
}

// Account adds an account, which is removed at the end of the test.
func (s *Server) Account(t testing.TB) *Account {
	t.Helper()
	a, err := s.self.AddAccount(s.name(t))
	return s.added(t, a, err)
}

// Fork adds an account with the content of a snapshot, which is removed at the end of the test. Its cost doesn't depend
// on the number of items.
func (s *Server) Fork(t testing.TB, snapshot string) *Account {
	t.Helper()
	a, err := s.self.Fork(snapshot, "", s.name(t))
	return s.added(t, a, err)
}

func (s *Server) added(t testing.TB, a *server.Server, err error) *Account {
	t.Helper()
	if err != nil {
		t.Fatalf("orrerytest: %v", err)
	}
	out := account(s.self, a)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopTime)
		defer cancel()
		if err := s.self.RemoveAccount(ctx, out.Name); err != nil {
			t.Errorf("orrerytest: %v", err)
		}
	})
	return out
}

// name makes a new name for an account of a test, such as testshop-paid-3.
func (s *Server) name(t testing.TB) string {
	const most = 40
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(t.Name()))
	return fmt.Sprintf("%s-%d", name[:min(len(name), most)], s.n.Add(1))
}

// Reset removes everything from the account. Clients stay connected.
func (a *Account) Reset(t testing.TB) {
	t.Helper()
	a.must(t, a.root.Reset(a.Name))
}

// Snapshot keeps the present content of the account under a name of 1 to 64 characters a-z, 0-9 and -. All accounts of
// the server can be restored to it.
func (a *Account) Snapshot(t testing.TB, name string) {
	t.Helper()
	a.must(t, a.root.Snapshot(a.Name, name))
}

// Restore gives the account the content of a snapshot. Clients stay connected.
func (a *Account) Restore(t testing.TB, name string) {
	t.Helper()
	a.must(t, a.root.Restore(a.Name, name))
}

func (a *Account) must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("orrerytest: %v", err)
	}
}

// Freeze stops the account's data clock: timestamps, times to live, leases and cursors stand still.
func (a *Account) Freeze() { a.self.Freeze() }

// Run lets the account's data clock run from its present time.
func (a *Account) Run() { a.self.Run() }

// SetTime sets the account's data clock.
func (a *Account) SetTime(t time.Time) { a.self.SetTime(t) }

// Advance moves the account's data clock. What has expired is gone when it returns.
func (a *Account) Advance(d time.Duration) { a.self.Advance(d) }

// Fault is a rule for requests that fail; see its fields in docs/testing.md.
type Fault = server.Fault

// Fail adds a rule for requests of the account that fail. It ends with its count, with remove, or with the test.
func (a *Account) Fail(t testing.TB, f Fault) (remove func()) {
	t.Helper()
	f.Account = a.Name
	id, err := a.root.AddFault(f)
	a.must(t, err)
	remove = func() { _ = a.root.RemoveFault(id) }
	t.Cleanup(remove)
	return remove
}
