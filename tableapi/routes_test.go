package tableapi

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/internal/admit"
	"github.com/orrerydb/orrery/internal/admit/admittest"
	"github.com/orrerydb/orrery/internal/observe"
)

// needs says for each route which signatures permit it: the letters and the resource type that an account SAS needs,
// and whether a table SAS is enough. A new route must be added here.
var needs = map[string]struct {
	types, letters string
	table          bool
}{
	"GET Tables":                            {"c", "l", false},
	"POST Tables":                           {"c", "c", false},
	"GET Tables('t')":                       {"c", "l", false},
	"DELETE Tables('t')":                    {"c", "d", false},
	"GET t()":                               {"o", "r", true},
	"POST t":                                {"o", "a", true},
	"GET t(PartitionKey='p',RowKey='r')":    {"o", "r", true},
	"PUT t(PartitionKey='p',RowKey='r')":    {"o", "au", true},
	"MERGE t(PartitionKey='p',RowKey='r')":  {"o", "au", true},
	"PATCH t(PartitionKey='p',RowKey='r')":  {"o", "au", true},
	"DELETE t(PartitionKey='p',RowKey='r')": {"o", "d", true},
	"POST $batch":                           {"o", "a", true},
	"GET t?comp=acl":                        {"", "", false},
	"HEAD t?comp=acl":                       {"", "", false},
	"PUT t?comp=acl":                        {"", "", false},
}

const batchOfOne = "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nContent-Type: " +
	"application/http\r\n\r\n" +
	"POST http://h/one HTTP/1.1\r\nContent-Type: application/json\r\n\r\n{\"PartitionKey\":\"p\",\"RowKey\":\"x\"}\r\n--c--\r\n--b--\r\n"

// send sends a request for a route on the table "one".
func send(s *Server, r route, query string) (int, string) {
	address := strings.Replace(r.address, "t", "one", 1)
	if strings.HasPrefix(r.address, "Tables") {
		address = strings.Replace(r.address, "'t'", "'one'", 1)
	}
	if r.address == "$batch" {
		address = r.address
	}
	if query != "" {
		if strings.Contains(address, "?") {
			query = "&" + query
		} else {
			query = "?" + query
		}
	}
	body := `{"PartitionKey":"p","RowKey":"r2","TableName":"one"}`
	h := http.Header{"Content-Type": {"application/json"}}
	if r.address == "$batch" {
		body = batchOfOne
		h.Set("Content-Type", "multipart/mixed; boundary=b")
	}
	if r.verb == "DELETE" {
		h.Set("If-Match", "*")
	}
	if r.verb == "PUT" && strings.Contains(r.address, "acl") {
		body = ""
	}
	req := httptest.NewRequest(r.verb, "/", strings.NewReader(body))
	req.RequestURI, req.Header = "/"+address+query, h
	w := httptest.NewRecorder()
	s.ServeHTTP(w, req)
	return w.Code, w.Header().Get("x-ms-error-code") + w.Body.String()
}

// TestEveryRouteAsksWhoItIs sends requests for all routes with each kind of credential.
func TestEveryRouteAsksWhoItIs(t *testing.T) {
	const until = "2024-03-05T00:00:00Z"
	account := func(types, letters, se string) string {
		return sas(url.Values{"sv": {"2019-02-02"}, "ss": {"t"}, "srt": {types}, "sp": {letters}, "se": {se}})
	}
	table := func(name, letters string) string {
		return sas(url.Values{"sv": {"2019-02-02"}, "tn": {name}, "sp": {letters}, "se": {until}})
	}
	without := func(letters string) string {
		return strings.Map(func(r rune) rune {
			if strings.ContainsRune(letters, r) {
				return -1
			}
			return r
		}, "rwdlacu")
	}
	seen := 0
	for _, r := range surface() {
		name := r.verb + " " + r.address
		n, ok := needs[name]
		if !ok {
			t.Errorf("%s: not declared", name)
			continue
		}
		seen++
		s, _ := newServer(t, false)
		for _, in := range []string{"POST /Tables\n~\n{\"TableName\":\"one\"}",
			"POST /Tables\n~\n{\"TableName\":\"two\"}", "POST /one\n~\n{\"PartitionKey\":\"p\",\"RowKey\":\"r\"}"} {
			if out := wire(t, s, in); !strings.HasPrefix(out, "201") {
				t.Fatal(out)
			}
		}
		s.o.Auth = true
		letters := n.letters + "w" // "w" covers all creations and changes
		if letters == "lw" {
			letters = "lr" // either letter is enough
		}
		refused := map[string]string{
			"nothing":             "",
			"an expired one":      account("sco", "rwdlacu", "2024-03-04T00:00:00Z"),
			"a table's, other":    table("two", "raud"),
			"without the letters": account("sco", without(letters), until),
			"without the type":    account(strings.ReplaceAll("sco", n.types, ""), "rwdlacu", until),
		}
		switch {
		case n.types == "":
			delete(refused, "without the type")
			delete(refused, "without the letters")
			refused["an account's"] = account("sco", "rwdlacu", until)
			fallthrough
		case !n.table:
			refused["a table's"] = table("one", "raud")
		default:
			refused["a table's without the letters"] = table("one", without(letters+"lc"))
		}
		for kind, query := range refused {
			code, text := send(s, r, query)
			if n.types == "c" && kind == "without the type" {
				continue // "s" includes tables
			}
			if r.op == "batch" && code == http.StatusAccepted &&
				strings.Contains(text, "AuthorizationPermissionMismatch") {
				continue // in the part's reply
			}
			if code != 403 && !(kind == "nothing" && code == 401) {
				t.Errorf("%s with %s: got %d %.200s", name, kind, code, text)
			}
		}
		if n.types == "" {
			continue
		}
		if code, text := send(s, r, account(n.types, n.letters, until)); code == 401 || code == 403 {
			t.Errorf("%s with what it needs: got %d %.200s", name, code, text)
		}
		if n.table {
			s.o.Auth = false
			if out := wire(t, s, "POST /one\n~\n{\"PartitionKey\":\"p\",\"RowKey\":\"r\"}"); !strings.HasPrefix(
				out, "201") && !strings.HasPrefix(out, "409") {
				t.Fatal(out)
			}
			s.o.Auth = true
			if code, text := send(s, r, table("ONE", n.letters)); code == 401 || code == 403 {
				t.Errorf("%s with a table's signature: got %d %.200s", name, code, text)
			}
		}
	}
	if seen != len(needs) {
		t.Errorf("%d lines are declared, %d are in the table", len(needs), seen)
	}
}

// told is an observer that records what it is told.
type told struct {
	observe.None
	begun int
	all   []observe.Request
}

func (o *told) Begin(string)            { o.begun++ }
func (o *told) Done(r *observe.Request) { o.all = append(o.all, *r) }

// The effects of the middlewares: a gate, a time limit, a panic, observers.
func TestMiddlewares(t *testing.T) {
	plain, clk := newServer(t, false)
	seen := &told{}
	gate := admit.New(admit.Options{Running: 1, Wait: time.Millisecond})
	s := New(plain.e, Options{Account: testAccount, Key: testKey, Clock: clk, Wall: clk, Gate: gate, Observe: seen,
		MaxTime: 20 * time.Millisecond, Log: slog.New(slog.DiscardHandler)})
	get := func(target string) (int, string) { return answer(s, "GET", target, nil) }
	if code, _ := get("/Tables"); code != 200 {
		t.Errorf("tables: got %d", code)
	}
	if err := gate.Enter(context.Background()); err != nil {
		t.Fatal(err)
	}
	if code, what := get("/Tables"); code != 429 || what != "TooManyRequests" {
		t.Errorf("a gate that is shut: got %d %s", code, what)
	}
	gate.Leave()
	s.o.Auth = true
	if code, _ := get("/Tables"); code != 401 {
		t.Errorf("without a login: got %d", code)
	}
	s.o.Auth = false
	tables := kindOf(t, "Tables")
	defer func() { handlers[tables]["GET"] = lineOf(t, "GET", "Tables") }()
	for _, c := range []struct {
		op    string
		serve func(*call) error
		code  string
	}{
		{"late", func(c *call) error { <-c.Ctx().Done(); return c.Ctx().Err() }, "OperationTimedOut"},
		{"boom", func(*call) error { panic("boom") }, "InternalError"},
	} {
		handlers[tables]["GET"] = &route{op: c.op, serve: c.serve}
		if code, what := get("/Tables"); code != 500 || what != c.code {
			t.Errorf("%s: got %d %s, want %s", c.op, code, what, c.code)
		}
	}
	want := []struct{ op, status string }{{"query tables", "200"}, {"other", "429"}, {"other", "401"}, {"late", "500"},
		{"boom", "500"}}
	if seen.begun != len(want) || len(seen.all) != len(want) {
		t.Fatalf("%d requests began, %d ended, want %d", seen.begun, len(seen.all), len(want))
	}
	for i, w := range want {
		if r := seen.all[i]; r.API != "table" || r.Operation != w.op || r.Status != w.status {
			t.Errorf("request %d: got %s %s %s, want %s %s", i, r.API, r.Operation, r.Status, w.op, w.status)
		}
	}
}

// TestTargetsThatAreNoPath: a request for "*" gets a reply.
func TestTargetsThatAreNoPath(t *testing.T) {
	s, _ := newServer(t, false)
	for _, verb := range []string{"GET", "POST", "DELETE", "BREW"} {
		if code, what := answer(s, verb, "*", nil); code != 400 && code != 405 || what == "" {
			t.Errorf("%s *: got %d %s", verb, code, what)
		}
	}
}

// A client that reads slowly doesn't block others: its request has left the gate when its reply is sent.
func TestSlowReadersKeepNoPlace(t *testing.T) {
	plain, clk := newServer(t, false)
	gate := admit.New(admit.Options{Running: 1})
	s := New(plain.e, Options{Account: testAccount, Key: testKey, Clock: clk, Wall: clk, Gate: gate})
	r := httptest.NewRequest("GET", "/Tables", nil)
	w := admittest.Watch(gate)
	s.ServeHTTP(w, r)
	if w.Code != 200 || len(w.Inside) == 0 || w.Inside[0] != 0 || gate.Running() != 0 {
		t.Errorf("%d, inside while writing %v, after it %d", w.Code, w.Inside, gate.Running())
	}
}

func kindOf(t *testing.T, address string) int {
	t.Helper()
	for k := range handlers {
		for _, r := range handlers[k] {
			if r.address == address {
				return k
			}
		}
	}
	t.Fatalf("no line has the address %s", address)
	return 0
}

func lineOf(t *testing.T, verb, address string) *route {
	t.Helper()
	for _, r := range surface() {
		if r.verb == verb && r.address == address {
			return &r
		}
	}
	t.Fatalf("no line %s %s", verb, address)
	return nil
}

// Errors of the core without a code of their own in the protocol.
func TestErrorsOfTheStore(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		code   string
	}{
		{status.New(status.StoreFull, "The disk is full."), 503, "ServerBusy"},
		{status.New(status.MemoryLimit, "Too much."), 400, "InvalidInput"},
		{context.DeadlineExceeded, 500, "OperationTimedOut"},
		{status.New(status.Unavailable, "Closing."), 503, "ServerBusy"},
	} {
		e := translate(c.err)
		if e.status() != c.status || e.Code != c.code {
			t.Errorf("%v: got %d %s, want %d %s", c.err, e.status(), e.Code, c.status, c.code)
		}
	}
	if e := translate(status.New(status.StoreFull, "The disk is full.")); !strings.Contains(
		e.message(), "disk is full") {
		t.Errorf("a full disk says %q", e.message())
	}
}
