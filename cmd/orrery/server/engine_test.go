package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// sharedKind opens the engines of further processes over one store, whatever the rest of the address is.
func sharedKind(of *kvtest.Shared) EngineKind {
	open := func(_ context.Context, _ string, o EngineOptions) (kv.Engine, error) {
		if o.Logger == nil {
			return nil, errors.New("no logger was given")
		}
		return of.Engine(), nil
	}
	return EngineKind{Scheme: "test", Open: open}
}

// over is the configuration of one more process over a store.
func over(of *kvtest.Shared) func(*Config) {
	return func(c *Config) {
		c.Memory, c.Engine, c.Engines = false, "test://member/main?key=secret", []EngineKind{sharedKind(of)}
	}
}

// Two servers have one store: each API of the second one reads what the APIs of the first one have written.
func TestTwoServersOverOneStore(t *testing.T) {
	store := kvtest.NewShared(memkv.New(), 1)
	a, ctx := whole(t, over(store))
	b, _ := whole(t, over(store))
	if err := a.LoadDemo(ctx); err != nil {
		t.Fatal(err)
	}
	for name, items := range map[string]int64{"shop/products": 12, "shop/customers": 3, "TablesDB/devicelog": 144,
		"graphs/g": 38} {
		db, id, _ := strings.Cut(name, "/")
		c, err := b.Engine().Container(db, id)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := c.Count(ctx); err != nil || n != items {
			t.Errorf("%s has %d items, want %d, %v", name, n, items, err)
		}
	}
	if err := b.nosql(ctx, http.MethodGet, "docs", "dbs/shop/colls/products", nil, nil); err != nil {
		t.Error(err)
	}
	if err := b.table(ctx, http.MethodGet, "/devicelog(PartitionKey='boiler',RowKey='0000999999')", nil); err != nil {
		t.Error(err)
	}
	m, err := b.dialMongo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	reply, err := m.run(`{"count":"products","query":{"category":"kitchen","stock":{"$gt":0}},"$db":"shop"}`)
	if err != nil || doc.Get(reply, "n").Float() != 3 {
		t.Errorf("Mongo counts %v kitchen products in stock, %v", doc.Get(reply, "n").Float(), err)
	}
	if problems, err := b.Engine().Check(ctx); err != nil || len(problems) > 0 {
		t.Errorf("check: %v %v", problems, err)
	}
	st := b.status(context.Background())
	if st.Engine != "test" || st.Data != "test://member/main" || b.Connections(false).Data != st.Data {
		t.Errorf("the store is shown as %q, %q and %q", st.Engine, st.Data, b.Connections(false).Data)
	}
	stop(t, a, 5*time.Second) // the other process goes on
	if err := b.nosql(ctx, http.MethodPost, "dbs", "", nil, []byte(`{"id":"later"}`)); err != nil {
		t.Error(err)
	}
}

// A server over a shared store keeps its certificate in the data directory, where no second server may run. Without a
// directory it keeps nothing.
func TestDirectoryOfASharedStore(t *testing.T) {
	store, dir := kvtest.NewShared(memkv.New(), 1), t.TempDir()
	with := func(c *Config) {
		over(store)(c)
		c.Data = dir
	}
	a, ctx := whole(t, with)
	first := string(a.CertificatePEM())
	if conns, err := ReadConnections(dir); err != nil || conns.Admin == nil {
		t.Errorf("%+v, %v", conns, err)
	}
	cfg := Ephemeral()
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	with(&cfg)
	if _, err := Start(cfg); err == nil || !strings.Contains(err.Error(), "in use by another server") {
		t.Errorf("a second server in the directory: %v", err)
	}
	// The failed start has left the first server's temporary files and connection strings alone.
	if _, err := ReadConnections(dir); err != nil {
		t.Error(err)
	}
	stop(t, a, 5*time.Second)
	b, _ := whole(t, with)
	if string(b.CertificatePEM()) != first {
		t.Error("the certificate has changed")
	}
	if err := b.nosql(ctx, http.MethodGet, "dbs", "", nil, nil); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(StoreDir(dir)); !os.IsNotExist(err) {
		t.Errorf("there is a store in the directory: %v", err)
	}
}

// What is wrong with an address is told in one sentence, before anything is opened.
func TestAddressesOfStores(t *testing.T) {
	own := t.TempDir()
	if err := os.Mkdir(filepath.Join(own, "store"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(own, "store", "000001.log"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	refuses := EngineKind{Scheme: "no", Open: func(context.Context, string, EngineOptions) (kv.Engine, error) {
		return nil, &kv.Refusal{Kind: kv.ErrUnavailable, Sentence: "Nobody\nis there."}
	}}
	fails := EngineKind{Scheme: "bad", Open: func(context.Context, string, EngineOptions) (kv.Engine, error) {
		return nil, fmt.Errorf("%w: a failure", kv.ErrUnavailable)
	}}
	shared := sharedKind(kvtest.NewShared(memkv.New(), 1))
	for _, tc := range []struct {
		name  string
		set   func(*Config)
		kinds []EngineKind
		want  string // the message
	}{
		{"no kinds", func(c *Config) { c.Engine = "tikv://pd:1/main?key=secret" }, nil,
			"--engine tikv://pd:1/main: this binary has stores in directories and in memory only; orrery-tikv, " +
				"which `make build-tikv` makes, opens tikv://"},
		{"another kind", func(c *Config) { c.Engine = "tikv://me:secret@pd:1/main" }, []EngineKind{shared, fails},
			"--engine tikv://pd:1/main: this binary opens test://, bad:// only"},
		{"no address", func(c *Config) { c.Engine = "/var/lib/secret" }, []EngineKind{shared},
			"--engine: want an address such as tikv://pd1:2379,pd2:2379/main"},
		{"a refusal", func(c *Config) { c.Engine = "no://here?key=secret" }, []EngineKind{refuses},
			"the store at no://here can't be opened: Nobody is there."},
		{"a failure", func(c *Config) { c.Engine = "bad://here" }, []EngineKind{fails},
			"the store at bad://here can't be opened: a failure"},
		{"in memory too", func(c *Config) { c.Memory = true }, []EngineKind{shared},
			"--engine and --memory can't be used together"},
		{"relaxed", func(c *Config) { c.Durability = "relaxed" }, []EngineKind{shared},
			"--durability relaxed is for a store in a directory: a store that processes share has every " +
				"acknowledged write in any case"},
		{"room", func(c *Config) { c.MinFree = 1 }, []EngineKind{shared}, "--min-free is for a store in a directory"},
		{"a directory with a store", func(c *Config) { c.Data = own }, []EngineKind{shared},
			own + " holds a store of its own: with --engine give another --data, or none"},
	} {
		c := Ephemeral()
		c.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
		c.Memory, c.Engine, c.Engines = false, "test://main", tc.kinds
		tc.set(&c)
		s, err := Start(c)
		if s != nil {
			t.Fatalf("%s: it starts", tc.name)
		}
		if err == nil || err.Error() != tc.want {
			t.Errorf("%s: %v, want %s", tc.name, err, tc.want)
		}
	}
}

// A backup of a shared store is refused: its engine has tools of its own.
func TestBackupOfASharedStore(t *testing.T) {
	s, ctx := whole(t, over(kvtest.NewShared(memkv.New(), 1)))
	_, err := AskForBackup(ctx, "http://"+s.Addr(Admin), s.Key(), t.TempDir(), func(int64, int64) {})
	if err == nil || !strings.Contains(err.Error(), "several processes share") {
		t.Errorf("%v", err)
	}
}

// older is an engine over a store of an older format, until its upgrade.
type older struct {
	kv.Engine
	format *atomic.Int64
}

func (o older) Identity() kv.Identity { return kv.Identity{Format: int(o.format.Load()), ID: "x"} }

func (o older) Upgrade(context.Context) error {
	o.format.Store(kv.Format)
	return nil
}

// A shared store of an older format gets the present one from a server with --upgrade, if no other server has it.
func TestUpgradeOfASharedStore(t *testing.T) {
	store := kvtest.NewShared(memkv.New(), 1)
	var format atomic.Int64
	format.Store(kv.Format)
	with := func(upgrade bool) (*Server, error) {
		c := Ephemeral()
		c.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
		over(store)(&c)
		c.Upgrade = upgrade
		c.Engines = []EngineKind{{Scheme: "test", Open: func(_ context.Context, _ string, o EngineOptions) (kv.Engine,
			error) {
			if format.Load() < kv.Format && !o.Upgrade {
				return nil, errors.New("an older format")
			}
			return older{store.Engine(), &format}, nil
		}}}
		return Start(c)
	}
	first, err := with(false)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) { // until it has a sign of life
		if all, err := first.Engine().Processes(t.Context()); err != nil || time.Now().After(deadline) {
			t.Fatal("it has no sign of life", err)
		} else if len(all) > 0 {
			break
		}
	}
	format.Store(kv.Format - 1) // as if that server were of the older version
	if _, err := with(false); err == nil {
		t.Error("a server without --upgrade starts")
	}
	if _, err = with(true); err == nil || !strings.Contains(err.Error(), "stop all servers of this store") {
		t.Errorf("beside another server: %v", err)
	}
	if format.Load() == kv.Format {
		t.Error("the format was changed beside another server")
	}
	if err := first.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	for _, upgrade := range []bool{true, false} {
		s, err := with(upgrade)
		if err != nil {
			t.Fatal(err)
		}
		if format.Load() != kv.Format {
			t.Error("the format is an older one")
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
