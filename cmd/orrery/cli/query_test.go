package cli

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/cmd/orrery/server"
)

// started serves sample data from a new directory. stop ends the server.
func started(t *testing.T, dir string) (endpoint string, stop func()) { return serveDir(t, dir, true) }

// serveDir serves a directory.
func serveDir(t *testing.T, dir string, demo bool) (endpoint string, stop func()) {
	t.Helper()
	cfg := server.Ephemeral()
	cfg.Memory, cfg.Data = false, dir
	cfg.TableAddr, cfg.GremlinAddr, cfg.MongoAddr = server.Off, server.Off, server.Off
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	s, err := server.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	t.Cleanup(cancel)
	if demo {
		if err := s.LoadDemo(ctx); err != nil {
			t.Fatal(err)
		}
	}
	return "http://" + s.Addr(server.NoSQL), func() {
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	}
}

// The command gives the same result with a server, which is strict, and with the store in its directory.
func TestQueryCommand(t *testing.T) {
	dir := t.TempDir()
	endpoint, stop := started(t, dir)
	cases := []struct {
		args []string
		code int
		out  string   // the complete output
		err  []string // parts of the output
	}{
		{[]string{"SELECT VALUE COUNT(1) FROM c WHERE c.total > 3"}, 0, "4\n", nil},
		{[]string{"--param", "n=3", "--param", "@who=\"ada\"", "SELECT VALUE c.id FROM c WHERE c.total > @n AND " +
			"c.customer = @who ORDER BY c.id"}, 0, "\"o-1001\"\n\"o-1002\"\n", nil},
		{[]string{"--pk", `"linus"`, "SELECT c.id FROM c"}, 0, "{\"id\":\"o-1003\"}\n", nil},
		{[]string{"--pk", `["linus"]`, "SELECT c.id FROM c"}, 0, "{\"id\":\"o-1003\"}\n", nil},
		{[]string{"--explain", "SELECT VALUE c.id FROM c WHERE c.customer = 'linus' AND c.id = 'o-1003'"}, 0,
			"\"o-1003\"\n",
			[]string{"plan    points of 1 keys",
				"        Filter [rows 1, cost 16, gave 1]\n          Points 1 keys [rows 1, ",
				"read    0 index entries, 1 items of ", "kept    1 items, 1 rows\n",
				"charge  2.33 RU: "}},
		{[]string{"--explain", "SELECT TOP 1 VALUE c.id FROM c ORDER BY c.customer, c.id"}, 0, "\"o-1001\"\n",
			[]string{"plan    ", "        Limit 1 [", "          TopK ", ", sorted\n",
				"advice  add composite [/customer asc,/id asc] to compositeIndexes\n"}},
		{[]string{"--pk", "linus", "SELECT c.id FROM c"}, 1, "", []string{"--pk linus: want a JSON value"}},
		{[]string{"--param", "n=x", "SELECT c.id FROM c"}, 1, "", []string{"the value is not JSON"}},
		{[]string{"SELEC"}, 1, "", []string{"the server refuses the query with 400 Bad Request: Syntax error",
			"(SC1001)\n"}},
		{[]string{"--container", "nope", "SELECT c.id FROM c"}, 1, "", []string{"with 404 Not Found: Resource Not " +
			"Found."}},
		{[]string{}, 2, "", []string{"QUERY"}},
	}
	for _, where := range [][]string{{"--endpoint", endpoint}, {"--data", dir}} {
		if where[0] == "--data" {
			var out, errOut bytes.Buffer
			if code :=
				run(append([]string{"query", "--db", "shop", "--container", "orders"},
					append(where, "SELECT * FROM c")...), &out, &errOut); code != 1 ||
				!strings.Contains(errOut.String(), "in use by another server") {
				t.Errorf("a store that is served: exit %d %s", code, errOut.String())
			}
			stop()
		}
		for _, c := range cases {
			var out, errOut bytes.Buffer
			args := append([]string{"query", "--db", "shop", "--container", "orders"}, append(where, c.args...)...)
			if code := run(args, &out, &errOut); code != c.code || out.String() != c.out {
				t.Errorf("%v: exit %d: %s%s", args, code, out.String(), errOut.String())
			}
			for _, part := range c.err {
				if !strings.Contains(errOut.String(), part) {
					t.Errorf("%v: %q is missing in %s", args, part, errOut.String())
				}
			}
		}
	}
	var out, errOut bytes.Buffer
	code := run([]string{"query", "--db", "d", "--container", "c", "--endpoint", "http://127.0.0.1:1", "SELECT 1"},
		&out, &errOut)
	if code != 1 || !strings.HasPrefix(errOut.String(), "orrery: no server answers at http://127.0.0.1:1: ") {
		t.Errorf("no server: exit %d, %s", code, errOut.String())
	}
}

// Without an endpoint a query and a tail ask the server of ./data, with its own key.
func TestServerOfDataIsAsked(t *testing.T) {
	t.Chdir(t.TempDir())
	cfg := server.Ephemeral()
	cfg.Memory, cfg.Data = false, "data"
	cfg.Key = base64.StdEncoding.EncodeToString([]byte(strings.Repeat("own key ", 8)))
	cfg.TableAddr, cfg.GremlinAddr, cfg.MongoAddr = server.Off, server.Off, server.Off
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	s, err := server.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Stop(context.Background()) }()
	if err := s.LoadDemo(t.Context()); err != nil {
		t.Fatal(err)
	}
	args := []string{"query", "--db", "shop", "--container", "orders", "SELECT VALUE COUNT(1) FROM c WHERE c.total > 3"}
	var out, errOut bytes.Buffer
	if code := run(args, &out, &errOut); code != 0 || out.String() != "4\n" {
		t.Errorf("exit %d: %s%s", code, out.String(), errOut.String())
	}
	t.Setenv("OTHER", strings.ToLower(server.WellKnownKey))
	errOut.Reset()
	if code := run(append(args, "--key", "env:OTHER"), &out, &errOut); code != 1 ||
		!strings.Contains(errOut.String(), "401") {
		t.Errorf("another key: exit %d: %s", code, errOut.String())
	}
	lines, _, end := tailing(t, &tailCmd{From: "beginning", Container: "shop/orders"})
	if first := next(t, lines); first["customer"] == nil {
		t.Errorf("a tail: %v", first)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}

// A server in memory has no directory: its strings come from the admin port, as long as its key is no secret.
func TestConnectWithoutDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct {
		key, says string
		refused   bool
	}{
		{server.WellKnownKey, "AccountKey=" + server.WellKnownKey + ";", false},
		{base64.StdEncoding.EncodeToString([]byte(strings.Repeat("own key ", 8))), "name its directory with --data",
			true},
	} {
		cfg := server.Ephemeral()
		cfg.Key = c.key
		cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
		s, err := server.Start(cfg)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		err = (&connectCmd{admin: "http://" + s.Addr(server.Admin)}).run(&streams{out: &out, errOut: &out})
		if err != nil {
			out.WriteString(err.Error())
		}
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		if (err != nil) != c.refused || !strings.Contains(out.String(), c.says) {
			t.Errorf("%v: %s", err, out.String())
		}
	}
	odd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"account":"a","key":"\u001b[2J","auth":true}`)
	}))
	defer odd.Close()
	var out bytes.Buffer
	err := (&connectCmd{admin: odd.URL}).run(&streams{out: &out, errOut: &out})
	if err == nil || !strings.Contains(err.Error(), "control characters") || out.Len() > 0 {
		t.Errorf("a program that draws on the terminal: %v %q", err, out.String())
	}
	err = (&connectCmd{admin: "http://127.0.0.1:1"}).run(&streams{out: io.Discard, errOut: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "no server serves data; no server answers at http://127.0.0.1:1") {
		t.Errorf("without a server: %v", err)
	}
}
