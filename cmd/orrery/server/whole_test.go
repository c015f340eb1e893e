package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/orrerydb/orrery/core/doc"
)

// These tests run the complete server: core, all four APIs, credentials.

func whole(t *testing.T, set func(*Config)) (*Server, context.Context) {
	t.Helper()
	cfg := Ephemeral()
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	if set != nil {
		set(&cfg)
	}
	s, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !s.stopping.Load() {
			stop(t, s, 5*time.Second)
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	if err := s.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	return s, ctx
}

func TestEveryAPIAnswersWithAndWithoutCredentials(t *testing.T) {
	for _, auth := range []bool{true, false} {
		whole(t, func(c *Config) { c.Auth = auth })
	}
}

func TestWrongKeyIsRefusedEverywhere(t *testing.T) {
	s, ctx := whole(t, nil)
	s.cfg.Key = "d3Jvbmc=" // the test clients sign with it; the APIs have their own copy
	for name, p := range probes {
		if err := p(ctx, s); err == nil {
			t.Errorf("%s lets a wrong key in", name)
		}
	}
}

func TestEveryAPIAnswersOverTLS(t *testing.T) {
	s, ctx := whole(t, func(c *Config) { c.Auth = false })
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.CertificatePEM())
	conf := &tls.Config{RootCAs: pool}
	tr := &http.Transport{TLSClientConfig: conf}
	defer tr.CloseIdleConnections()
	for _, url := range []string{"https://" + s.Addr(NoSQL) + "/dbs", "https://" + s.Addr(Table) + "/Tables"} {
		if code, body := get(t, &http.Client{Transport: tr}, url); code != http.StatusOK {
			t.Errorf("%s: %d %s", url, code, body)
		}
	}
	for _, api := range []string{NoSQL, Table, Gremlin, Admin} { // HTTP/2 is no door's: the binary is built without it
		offer := &tls.Config{RootCAs: pool, NextProtos: []string{"h2", "http/1.1"}}
		c, err := tls.Dial("tcp", s.Addr(api), offer)
		if err != nil {
			t.Fatal(api, err)
		}
		if p := c.ConnectionState().NegotiatedProtocol; p == "h2" {
			t.Errorf("%s speaks %s", api, p)
		}
		_ = c.Close()
	}
	ws, _, err := (&websocket.Dialer{TLSClientConfig: conf}).DialContext(ctx, "wss://"+s.Addr(Gremlin)+"/gremlin", nil)
	if err != nil {
		t.Fatal(err)
	}
	g := &gremlinConn{s, ws}
	defer g.close()
	if err := g.eval("graphs/g", "g.V().count()", nil); err != nil {
		t.Error("wss:", err)
	}
	tc, err := tls.Dial("tcp", s.Addr(Mongo), conf)
	if err != nil {
		t.Fatal(err)
	}
	m := &mongoConn{tc}
	defer m.Close()
	if _, err := m.run(`{"ping":1,"$db":"admin"}`); err != nil {
		t.Error("mongo over TLS:", err)
	}
}

func TestSourcesAreMade(t *testing.T) {
	s, _ := whole(t, func(c *Config) { c.GremlinSources = map[string]string{"roads": "geo/roads"} })
	for _, name := range [][2]string{{"graphs", "g"}, {"geo", "roads"}} {
		if _, err := s.Engine().Container(name[0], name[1]); err != nil {
			t.Errorf("%v: %v", name, err)
		}
	}
}

// The sample data is where the README says, each API sees the data of the others, and the store has no problems.
func TestDemoData(t *testing.T) {
	s, ctx := whole(t, nil)
	if err := s.LoadDemo(ctx); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		db, container string
		items         int64
	}{
		{"shop", "products", 12}, {"shop", "orders", 4}, {"shop", "customers", 3}, {"TablesDB", "devicelog", 144},
		{"graphs", "g", 7 + 7 + 1 + 12 + 4 + 7}, // airports, their cities, Cologne, flights, roads, serves
	} {
		c, err := s.Engine().Container(want.db, want.container)
		if err != nil {
			t.Errorf("%s/%s: %v", want.db, want.container, err)
			continue
		}
		if n, err := c.Count(ctx); n != want.items || err != nil {
			t.Errorf("%s/%s has %d items (%v), want %d", want.db, want.container, n, err, want.items)
		}
	}
	m, err := s.dialMongo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	reply, err := m.run(`{"count":"products","query":{"category":"kitchen","stock":{"$gt":0}},"$db":"shop"}`)
	if err != nil || doc.Get(reply, "n").Float() != 3 {
		t.Errorf("Mongo counts %v kitchen products in stock, %v", doc.Get(reply, "n").Float(), err)
	}
	problems, err := s.Engine().Check(ctx)
	if err != nil || len(problems) > 0 {
		t.Errorf("check: %v %v", problems, err)
	}
}

// Stop with open connections of every kind returns soon and closes the store.
func TestStopWithOpenConnections(t *testing.T) {
	s, ctx := whole(t, nil)
	g, err := s.dialGremlin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	if err := g.eval("graphs/g", "g.V().count()", nil); err != nil {
		t.Fatal(err)
	}
	m, err := s.dialMongo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	begin := time.Now()
	stop(t, s, 10*time.Second)
	if d := time.Since(begin); d > 3*time.Second {
		t.Errorf("took %v", d)
	}
	if err := s.Engine().Close(); err == nil {
		t.Error("the store was still open")
	}
}
