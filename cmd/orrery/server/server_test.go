package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/internal/observe"
	"github.com/orrerydb/orrery/internal/testlog"
)

func TestValidate(t *testing.T) {
	for _, tc := range []struct {
		name string
		set  func(*Config)
		want string // part of the message, "" = valid
	}{
		{"defaults", func(*Config) {}, ""},
		{"all off", func(c *Config) { c.NoSQLAddr, c.TableAddr, c.GremlinAddr, c.MongoAddr = Off, Off, Off, Off },
			"every API is off"},
		{"one on", func(c *Config) { c.NoSQLAddr, c.TableAddr, c.GremlinAddr, c.AdminAddr = Off, Off, Off, Off }, ""},
		{"no port", func(c *Config) { c.TableAddr = "127.0.0.1" }, "--table-addr"},
		{"loopback v6 without auth", func(c *Config) { c.Auth, c.MongoAddr = false, "[::1]:0" }, ""},
		{"no auth for all", func(c *Config) { c.Auth, c.MongoAddr = false, ":10255" },
			"--auth=false with --mongo-addr on all interfaces"},
		{"no auth for a network", func(c *Config) { c.Auth, c.NoSQLAddr = false, "192.168.0.5:8081" }, "--insecure"},
		{"no auth for all, said so", func(c *Config) { c.Auth, c.MongoAddr, c.Insecure = false, ":10255", true }, ""},
		{"well-known key for all", func(c *Config) { c.GremlinAddr = "0.0.0.0:8901" }, "well-known key"},
		{"users of MongoDB with a password", func(c *Config) {
			c.MongoAddr, c.MongoUser, c.MongoPassword = "0.0.0.0:27017", "root", "secret"
		}, ""},
		{"own key for all", func(c *Config) { c.GremlinAddr, c.Key = "0.0.0.0:8901", "c2VjcmV0" }, ""},
		{"admin for all", func(c *Config) { c.AdminAddr = "0.0.0.0:8080" }, ""},
		{"key not base64", func(c *Config) { c.Key = "secret!" }, "--key"},
		{"empty key", func(c *Config) { c.Key = "" }, "--key"},
		{"account with a slash", func(c *Config) { c.Account = "a/b" }, "--account"},
		{"durability", func(c *Config) { c.Durability = "maybe" }, "--durability"},
		{"cache", func(c *Config) { c.CacheMB = 0 }, "--cache-mb"},
		{"public host", func(c *Config) { c.PublicHosts = []string{"cosmos.example"} }, ""},
		{"public host with a scheme", func(c *Config) { c.PublicHosts = []string{"http://cosmos.example"} },
			"--public-host"},
		{"strict for an API that has no strictness", func(c *Config) { c.Strict = []string{"table"} }, "--strict"},
		{"nowhere to store", func(c *Config) { c.Data = "" }, "--memory"},
		{"source", func(c *Config) { c.GremlinSources = map[string]string{"t": "db/graph"} }, ""},
		{"source without graph", func(c *Config) { c.GremlinSources = map[string]string{"t": "db"} },
			"--gremlin-source"},
	} {
		c := Default()
		tc.set(&c)
		err := c.Validate()
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
}

func TestParseSources(t *testing.T) {
	got, err := ParseSources([]string{"g1=db/a", "g2=db/b", "g1=db/a"})
	if err != nil || fmt.Sprint(got) != "map[g1:db/a g2:db/b]" {
		t.Fatal(got, err)
	}
	for _, bad := range [][]string{{"g1"}, {"g1=db/a", "g1=db/b"}} {
		if _, err := ParseSources(bad); err == nil {
			t.Errorf("%v accepted", bad)
		}
	}
}

// fakes is a server whose APIs are one handler each. ok says whether their probes succeed.
type fakes struct {
	ok     atomic.Bool
	closed atomic.Bool
	h      http.Handler
}

func (f *fakes) Status() any { return map[string]int{"containers": 7} }
func (f *fakes) Figures() []figure {
	return []figure{{"orrery_test_gauge", "A figure.", gauge, 42, nil}}
}
func (f *fakes) Close() error { f.closed.Store(true); return nil }

func (f *fakes) start(t *testing.T, set func(*Config)) *Server {
	t.Helper()
	cfg := Ephemeral()
	cfg.Version = "v-test"
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	if set != nil {
		set(&cfg)
	}
	if f.h == nil {
		f.h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "tls=", r.TLS != nil) })
	}
	p := parts{
		open: func(*Config) (backend, error) { return f, nil },
		doors: func(s *Server) (map[string]door, error) {
			out := map[string]door{}
			for _, n := range []string{NoSQL, Table, Gremlin, Mongo} {
				out[n] = s.httpDoor(n, telling(s.seen, n, s.withCertificate(f.h)))
			}
			return out, nil
		},
		probes: map[string]probe{},
	}
	for _, n := range []string{NoSQL, Table, Gremlin, Mongo} {
		p.probes[n] = func(context.Context, *Server) error {
			if f.ok.Load() || n != Mongo {
				return nil
			}
			return errors.New("not yet")
		}
	}
	s, err := start(cfg, p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !s.stopping.Load() {
			stop(t, s, time.Second)
		}
	})
	return s
}

// telling reports requests to the observer as an API does.
func telling(seen observe.Observer, api string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Begin(api)
		h.ServeHTTP(w, r)
		seen.Done(&observe.Request{API: api, Operation: "get", Status: "200", Charge: 1.5,
			Duration: 3 * time.Millisecond})
	})
}

func stop(t testing.TB, s *Server, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, c *http.Client, url string) (int, string) {
	t.Helper()
	res, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

func TestReadyOnlyOnceEveryAPIAnswers(t *testing.T) {
	f := &fakes{}
	s := f.start(t, nil)
	admin := "http://" + s.Addr(Admin)
	if code, body := get(t, http.DefaultClient, admin+"/alive"); code != 200 {
		t.Fatal(code, body)
	}
	if code, _ := get(t, http.DefaultClient, admin+"/ready"); code != 503 {
		t.Fatalf("ready before the probes succeeded: %d", code)
	}
	f.ok.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := s.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	if code, _ := get(t, http.DefaultClient, admin+"/ready"); code != 200 {
		t.Fatal(code)
	}
}

func TestAdmin(t *testing.T) {
	f := &fakes{}
	f.ok.Store(true)
	s := f.start(t, func(c *Config) { c.GremlinSources = map[string]string{"roads": "geo/roads"} })
	admin := "http://" + s.Addr(Admin)
	get(t, http.DefaultClient, "http://"+s.Addr(NoSQL)+"/x")

	_, body := get(t, http.DefaultClient, admin+"/status")
	var st Status
	if err := json.Unmarshal([]byte(body), &st); err != nil {
		t.Fatal(err, body)
	}
	if st.Version != "v-test" || st.Data != "memory" || st.APIs[NoSQL].Requests != 1 ||
		st.APIs[NoSQL].Addr != s.Addr(NoSQL) ||
		!strings.Contains(body, `"containers": 7`) {
		t.Fatalf("status %s", body)
	}
	_, body = get(t, http.DefaultClient, admin+"/metrics")
	for _, want := range []string{"orrery_test_gauge 42", `orrery_requests_total{api="nosql"} 1`, "go_goroutines",
		"process_resident_memory_bytes"} {
		if !strings.Contains(body, want) {
			t.Errorf("metrics lack %q", want)
		}
	}
	_, body = get(t, http.DefaultClient, admin+"/orrery/connect")
	var c Connections
	if err := json.Unmarshal([]byte(body), &c); err != nil {
		t.Fatal(err)
	}
	for got, want := range map[string]string{
		c.NoSQL.ConnectionString: "AccountEndpoint=http://" + s.Addr(NoSQL) + "/;AccountKey=" + WellKnownKey + ";",
		c.Table.ConnectionString: "DefaultEndpointsProtocol=http;AccountName=localhost;AccountKey=" + WellKnownKey +
			";TableEndpoint=http://" + s.Addr(Table) + "/localhost;",
		c.Gremlin.Endpoint:         "ws://" + s.Addr(Gremlin) + "/gremlin",
		c.Gremlin.Sources["roads"]: "geo/roads",
		c.Gremlin.Sources["g"]:     "graphs/g",
		c.Mongo.ConnectionString: "mongodb://localhost:C2y6yDjf5%2FR%2Bob0N8A7Cgv30VRDJIWEHLM%2B4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw%2FJw%3D%3D@" +
			s.Addr(Mongo) + "/?directConnection=true",
	} {
		if got != want {
			t.Errorf("connect says %s, want %s", got, want)
		}
	}
}

func TestProfilesAreForThisMachine(t *testing.T) {
	s := (&fakes{}).start(t, nil)
	if code, _ := get(t, http.DefaultClient, "http://"+s.Addr(Admin)+"/debug/pprof/goroutine?debug=1"); code != 200 {
		t.Error("from here:", code)
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/debug/pprof/heap", nil)
	r.RemoteAddr = "10.1.2.3:4"
	s.adminHandler().ServeHTTP(w, r)
	if w.Code != http.StatusForbidden {
		t.Error("from elsewhere:", w.Code)
	}
}

// A secret key is shown only to clients that send it.
func TestConnectAsksForARealKey(t *testing.T) {
	const key = "c2VjcmV0"
	for _, tc := range []struct {
		name  string
		key   string
		auth  bool
		login func(*http.Request)
		code  int
		shown bool
	}{
		{"the well-known key", WellKnownKey, true, nil, 200, true},
		{"nothing", key, true, nil, 401, false},
		{"nothing, and nobody is asked", key, false, nil, 200, false},
		{"the key as a password", key, true, func(r *http.Request) { r.SetBasicAuth("anybody", key) }, 200, true},
		{"the key as a token", key, true, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+key) },
			200, true},
		{"another password", key, true, func(r *http.Request) { r.SetBasicAuth("localhost", "c2Vjcm") }, 401, false},
		{"no password", key, true, func(r *http.Request) { r.SetBasicAuth("localhost", "") }, 401, false},
		{"another token", key, true, func(r *http.Request) { r.Header.Set("Authorization", "Bearer ") }, 401, false},
	} {
		s := (&fakes{}).start(t, func(c *Config) { c.Key, c.Auth = tc.key, tc.auth })
		r, err := http.NewRequest(http.MethodGet, "http://"+s.Addr(Admin)+"/orrery/connect", nil)
		if err != nil {
			t.Fatal(err)
		}
		if tc.login != nil {
			tc.login(r)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != tc.code || strings.Contains(string(text), tc.key) != tc.shown {
			t.Errorf("%s: %d %s", tc.name, res.StatusCode, text)
		}
		if tc.code == 401 && res.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: no challenge", tc.name)
		}
	}
}

// Neither the banner nor the log contains a secret key.
func TestARealKeyIsNotPrinted(t *testing.T) {
	const key = "c2VjcmV0"
	for _, memory := range []bool{true, false} {
		var banner, log testlog.Lines
		s := (&fakes{}).start(t, func(c *Config) {
			c.Key, c.Memory, c.Data = key, memory, t.TempDir()
			c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		})
		if err := s.Banner(&banner); err != nil {
			t.Fatal(err)
		}
		get(t, http.DefaultClient, "http://"+s.Addr(Admin)+"/status")
		stop(t, s, time.Second)
		if text := banner.String() + log.String(); strings.Contains(text, key) ||
			!strings.Contains(text, "AccountKey=<key>") {
			t.Error(text)
		}
		if want := "orrery connect --data"; strings.Contains(banner.String(), want) == memory {
			t.Errorf("memory %v: %s", memory, banner.String())
		}
	}
}

// While a server runs, the data directory contains the connection strings, readable only by its owner.
func TestConnectionsAreKeptInTheDataDirectory(t *testing.T) {
	dir := t.TempDir()
	set := func(c *Config) { c.Key, c.Memory, c.Data = "c2VjcmV0", false, dir }
	if _, err := ReadConnections(dir); err == nil || !strings.Contains(err.Error(), "no server serves "+dir) {
		t.Fatal(err)
	}
	s := (&fakes{}).start(t, set)
	c, err := ReadConnections(dir)
	if err != nil || c.NoSQL.ConnectionString != "AccountEndpoint=http://"+s.Addr(NoSQL)+"/;AccountKey=c2VjcmV0;" {
		t.Fatal(c, err)
	}
	file := filepath.Join(dir, connectFile)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info, err)
	}
	left, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	stop(t, s, time.Second)
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Fatal("kept after the end:", err)
	}
	if err := os.WriteFile(file, left, 0o644); err != nil { // as after a kill
		t.Fatal(err)
	}
	if _, err := ReadConnections(dir); err == nil || !strings.Contains(err.Error(), "the last one was killed") {
		t.Fatal(err)
	}
	(&fakes{}).start(t, set)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info, err)
	}
}

// A client that fetches the certificate over HTTP and trusts it can connect by HTTPS on the same port.
func TestHTTPSWithTheServedCertificate(t *testing.T) {
	s := (&fakes{}).start(t, nil)
	code, pem := get(t, http.DefaultClient, "http://"+s.Addr(NoSQL)+"/_explorer/emulator.pem")
	pool := x509.NewCertPool()
	if code != 200 || !pool.AppendCertsFromPEM([]byte(pem)) {
		t.Fatal(code, pem)
	}
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	defer tr.CloseIdleConnections()
	c := &http.Client{Transport: tr}
	for _, name := range []string{NoSQL, Table, Gremlin, Mongo} {
		if _, body := get(t, c, "https://"+s.Addr(name)+"/"); body != "tls=true" {
			t.Errorf("%s over TLS: %s", name, body)
		}
	}
	if code, _ := get(t, c, "https://"+s.Addr(Admin)+"/alive"); code != 200 {
		t.Error("admin over TLS:", code)
	}
	_, port, _ := net.SplitHostPort(s.Addr(NoSQL))
	if _, body := get(t, c, "https://localhost:"+port+"/"); body != "tls=true" {
		t.Error("by name:", body)
	}
}

func TestOffMeansOff(t *testing.T) {
	f := &fakes{}
	f.ok.Store(true)
	s := f.start(t, func(c *Config) { c.MongoAddr, c.TableAddr, c.AdminAddr = Off, Off, Off })
	if s.Addr(Mongo) != "" || s.Addr(Admin) != "" || s.Addr(NoSQL) == "" {
		t.Fatal(s.Addr(Mongo), s.Addr(Admin), s.Addr(NoSQL))
	}
	c := s.Connections(true)
	if c.Mongo != nil || c.Table != nil || c.NoSQL == nil {
		t.Fatalf("%+v", c)
	}
}

func TestBannerIsAligned(t *testing.T) {
	s := (&fakes{}).start(t, nil)
	var b strings.Builder
	if err := s.Banner(&b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if lines[0] != "Orrery v-test" || len(lines) < 7 {
		t.Fatal(b.String())
	}
	const column = 2 + len("Gremlin") + 2
	for _, l := range lines[1:] {
		if len(l) <= column || l[column] == ' ' || l[column-1] != ' ' {
			t.Errorf("not aligned: %q", l)
		}
	}
}

func TestStartErrorsNameTheFlag(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	cfg := Ephemeral()
	cfg.TableAddr = taken.Addr().String()
	if _, err := Start(cfg); err == nil || !strings.Contains(err.Error(), "--table-addr "+cfg.TableAddr) {
		t.Fatalf("port in use: %v", err)
	}
	cfg = Ephemeral()
	cfg.Memory, cfg.Data = false, t.TempDir()
	first, err := openKV(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if _, err := Start(cfg); err == nil || !strings.Contains(err.Error(), "in use by another server") {
		t.Fatalf("directory in use: %v", err)
	}
}

func TestStopFinishesRequests(t *testing.T) {
	started := make(chan struct{})
	f := &fakes{h: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(started)
		time.Sleep(100 * time.Millisecond)
		fmt.Fprint(w, "done")
	})}
	s := f.start(t, nil)
	body := make(chan string, 1)
	go func() {
		res, err := http.Get("http://" + s.Addr(NoSQL))
		if err != nil {
			body <- err.Error()
			return
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		body <- string(b)
	}()
	<-started
	stop(t, s, 5*time.Second)
	if got := <-body; got != "done" {
		t.Fatalf("the request in flight got %q", got)
	}
	if !f.closed.Load() {
		t.Fatal("the store is open")
	}
	if _, err := http.Get("http://" + s.Addr(NoSQL)); err == nil {
		t.Fatal("still answers")
	}
	if err := s.Stop(context.Background()); err == nil {
		t.Fatal("a second stop says nothing")
	}
}

func TestStopCutsOffWhatTakesTooLong(t *testing.T) {
	started := make(chan struct{})
	f := &fakes{h: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(started)
		<-r.Context().Done()
	})}
	s := f.start(t, nil)
	go func() {
		if res, err := http.Get("http://" + s.Addr(Table)); err == nil {
			_ = res.Body.Close()
		}
	}()
	<-started
	begin := time.Now()
	stop(t, s, 50*time.Millisecond)
	if d := time.Since(begin); d > 3*time.Second {
		t.Fatalf("took %v", d)
	}
}
