package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core/clock"
)

// testServer is a server with test controls, in memory or in a directory.
func testServer(t *testing.T, dir string) *Server {
	t.Helper()
	c := Ephemeral()
	if dir != "" {
		c.Data, c.Memory = dir, false
	}
	c.TestControls, c.Logger = true, quiet
	s, err := Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !s.stopping.Load() {
			stopNow(t, s)
		}
	})
	return s
}

func stopNow(t *testing.T, s *Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// control sends a request to the test controls and returns its status and reply.
func control(t *testing.T, s *Server, verb, path, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(verb, "http://"+s.Addr(Admin)+TestPath+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.Key())
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// databases returns the names of the databases of an account, without the one of the default graph.
func databases(t *testing.T, s *Server) string {
	t.Helper()
	all, err := s.Engine().Databases(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, d := range all {
		if d.ID != "graphs" {
			names = append(names, d.ID)
		}
	}
	return strings.Join(names, ",")
}

func newDatabase(t *testing.T, s *Server, id string) {
	t.Helper()
	spec := fmt.Appendf(nil, `{"id":%q}`, id)
	if err := s.nosql(context.Background(), http.MethodPost, "dbs", "", nil, spec); err != nil {
		t.Fatal(err)
	}
}

// The controls do the same for a store in memory and for one in a directory.
func TestControls(t *testing.T) {
	for _, kind := range []string{"memory", "directory"} {
		t.Run(kind, func(t *testing.T) {
			dir := ""
			if kind == "directory" {
				dir = t.TempDir()
			}
			s := testServer(t, dir)
			newDatabase(t, s, "one")
			if _, text := control(t, s, "GET", "", ""); !strings.Contains(text, `"snapshots": []`) {
				t.Errorf("no snapshots: %s", text)
			}
			for _, step := range []struct {
				verb, path, body string
				code             int
				after            string // databases of the server's own account
			}{
				{"POST", "/snapshot", `{"name":"base"}`, 204, "one"},
				{"POST", "/snapshot", `{"name":"../base"}`, 400, "one"},
				{"POST", "/snapshot", `{"name":"base","account":"nobody"}`, 404, "one"},
				{"POST", "/reset", ``, 204, ""},
				{"POST", "/restore", `{"name":"base"}`, 204, "one"},
				{"POST", "/restore", `{"name":"other"}`, 404, "one"},
				{"POST", "/accounts", `{"name":"a"}`, 200, "one"},
				{"POST", "/accounts", `{"name":"a"}`, 409, "one"},
				{"POST", "/accounts", `{"name":"A/b"}`, 400, "one"},
				{"POST", "/restore", `{"name":"base","account":"a"}`, 204, "one"},
				{"POST", "/reset", `{"account":"localhost"}`, 204, ""},
				{"POST", "/fork", `{"snapshot":"base","name":"b"}`, 200, ""},
				{"POST", "/fork", `{"account":"b","name":"c"}`, 200, ""},
				{"POST", "/fork", `{"snapshot":"none","name":"d"}`, 404, ""},
				{"DELETE", "/accounts", `{"name":"c"}`, 204, ""},
				{"DELETE", "/accounts", `{"name":"c"}`, 404, ""},
				{"DELETE", "/accounts", `{"name":"localhost"}`, 400, ""},
				{"POST", "/fork", `{"snapshot":"base","account":"a","name":"d"}`, 400, ""},
				{"POST", "/reset", `{"unknown":1}`, 400, ""},
				{"POST", "/restore", `{"name":"base"}`, 204, "one"},
				{"POST", "/reset", `{"name":"a"}`, 400, "one"}, // not all accounts
				{"POST", "/reset", `{"account":1}`, 400, "one"},
				{"POST", "/reset", `{"account":"localhost"} {}`, 400, "one"},
				{"POST", "/reset", `["localhost"]`, 400, "one"},
				{"POST", "/reset", `reset`, 400, "one"},
				{"POST", "/reset", `{"account":"../a"}`, 404, "one"},
				{"POST", "/reset", `{"account":"localhost"}`, 204, ""},
				{"POST", "/faults", `{"fault":"429","account":"nobody"}`, 404, ""},
				{"POST", "/faults", `{"fault":"429","api":"sql"}`, 400, ""},
				{"POST", "/clock", `{"set":"0001-01-01T00:00:00Z"}`, 400, ""},
				{"POST", "/clock", `{"set":"9999-12-31T23:59:59Z"}`, 400, ""},
				{"POST", "/clock", `{"advance":"2540400h"}`, 400, ""},
				{"POST", "/clock", `{"advance":"1h","set":"2026-01-01T00:00:00Z"}`, 400, ""},
				{"POST", "/clock", `{"set":"yesterday"}`, 400, ""},
				{"POST", "/clock", `{"freeze":true,"advance":"1h"}`, 200, ""},
				{"DELETE", "/snapshot", `{"name":"base"}`, 204, ""},
				{"DELETE", "/snapshot", `{"name":"base"}`, 404, ""},
			} {
				code, text := control(t, s, step.verb, step.path, step.body)
				if code != step.code {
					t.Errorf("%s %s %s: %d %s, want %d", step.verb, step.path, step.body, code, text, step.code)
				}
				if got := databases(t, s); got != step.after {
					t.Errorf("%s %s %s: then there is %q, want %q", step.verb, step.path, step.body, got, step.after)
				}
			}
			for name, want := range map[string]string{"a": "one", "b": "one"} {
				if got := databases(t, s.kit.accounts[name]); got != want {
					t.Errorf("account %s has %q, want %q", name, got, want)
				}
			}
			newDatabase(t, s, "last")
			if dir == "" {
				return
			}
			stopNow(t, s)
			if got := databases(t, testServer(t, dir)); got != "last" {
				t.Errorf("after a restart there is %q", got)
			}
		})
	}
}

// Without the flag there are no controls. With it they ask for the key, refuse pages of other sites, and take no
// directory that was made without it.
func TestControlsAreGuarded(t *testing.T) {
	plain := start1(t, Ephemeral())
	if code, _ := control(t, plain, "GET", "", ""); code != http.StatusNotFound {
		t.Errorf("without the flag: %d", code)
	}
	s := testServer(t, "")
	for header, want := range map[string]int{"": 401, "Bearer wrong": 401} {
		r, _ := http.NewRequest("POST", "http://"+s.Addr(Admin)+TestPath+"/reset", nil)
		r.Header.Set("Authorization", header)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("with the authorization %q: %d, want %d", header, res.StatusCode, want)
		}
	}
	r, _ := http.NewRequest("POST", "http://"+s.Addr(Admin)+TestPath+"/reset", nil)
	r.Header.Set("Authorization", "Bearer "+s.Key())
	r.Header.Set("Origin", "http://evil.example")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusForbidden {
		t.Errorf("from a page of another site: %d", res.StatusCode)
	}
	dir := t.TempDir()
	c := Ephemeral()
	c.Data, c.Memory, c.Logger = dir, false, quiet
	made, err := Start(c)
	if err != nil {
		t.Fatal(err)
	}
	stopNow(t, made)
	c.TestControls = true
	if _, err := Start(c); err == nil || !strings.Contains(err.Error(), "was not made with --test-controls") {
		t.Errorf("a directory that was made without the flag: %v", err)
	}
}

func start1(t *testing.T, c Config) *Server {
	t.Helper()
	c.Logger = quiet
	s, err := Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopNow(t, s) })
	return s
}

// The data clock moves timestamps. Signatures and time limits of requests keep real time, so requests go on.
func TestDataClock(t *testing.T) {
	s := testServer(t, "")
	for _, at := range []time.Time{clock.New().Now().Add(-time.Hour), clock.New().Now().Add(30 * 24 * time.Hour),
		time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC)} {
		s.Freeze()
		s.SetTime(at)
		id := fmt.Sprintf("at-%d", at.Unix())
		newDatabase(t, s, id)
		d, err := s.Engine().Database(id)
		if err != nil {
			t.Fatal(err)
		}
		if d.TS != at.Unix() {
			t.Errorf("a database of %v has the time %d", at, d.TS)
		}
		for name, p := range probes {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			if err := p(ctx, s); err != nil {
				t.Errorf("%s at %v: %v", name, at, err)
			}
			cancel()
		}
	}
}

// A reset takes 5 ms with 50 containers and 100,000 items in memory, and in a directory what closing and opening a
// store takes. The limits are for machines that do other work too.
func TestResetTime(t *testing.T) {
	t.Run("memory", func(t *testing.T) { resetTime(t, "", 50*time.Millisecond) })
	t.Run("directory", func(t *testing.T) { resetTime(t, t.TempDir(), 3*time.Second) })
}

func resetTime(t *testing.T, dir string, limit time.Duration) {
	t.Helper()
	s := testServer(t, dir)
	ctx := context.Background()
	for c := range 50 {
		id := fmt.Sprintf("c%d", c)
		newDatabase(t, s, id)
		if err := s.nosql(ctx, http.MethodPost, "colls", "dbs/"+id, nil,
			[]byte(`{"id":"items","partitionKey":{"paths":["/id"],"kind":"Hash","version":2}}`)); err != nil {
			t.Fatal(err)
		}
	}
	m, err := s.dialMongo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var docs strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&docs, `,{"_id":"%d","name":"item %d"}`, i, i)
	}
	for c := range 50 {
		insert := fmt.Sprintf(`{"insert":"items","documents":[%s],"$db":"c%d"}`, docs.String()[1:], c)
		if _, err := m.run(insert); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	if err := s.Reset(""); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	t.Logf("a reset took %v", took)
	if took > limit {
		t.Errorf("a reset took %v, want at most %v", took, limit)
	}
	if got := databases(t, s); got != "" {
		t.Errorf("there is %q", got)
	}
	if _, err := m.run(`{"insert":"items","documents":[{"_id":1}],"$db":"c0"}`); err != nil {
		t.Errorf("the connection after a reset: %v", err)
	}
}
