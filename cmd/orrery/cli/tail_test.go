package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/core/clock"
)

// send sends a signed request and fails the test if it isn't answered with a status of 200 to 299.
func send(t *testing.T, endpoint, method, kind, link, path, body string, headers ...string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, endpoint+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	date := clock.New().Now().Format(http.TimeFormat)
	sig, err := masterToken(server.WellKnownKey, strings.ToLower(method)+"\n"+kind+"\n"+link+"\n"+
		strings.ToLower(date)+"\n\n")
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", sig)
	req.Header.Set("x-ms-date", date)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if text, _ := io.ReadAll(res.Body); res.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %d %s", method, path, res.StatusCode, text)
	}
}

const docsKey = "x-ms-documentdb-partitionkey"

// tailing runs a tail and gives the lines that it prints. end stops it, and returns its error.
func tailing(t *testing.T, cmd *tailCmd) (lines <-chan map[string]any, errOut *safeBuffer, end func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	out, done, said := make(chan map[string]any, 1000), make(chan error, 1), &safeBuffer{}
	cmd.Key = server.WellKnownKey
	go func() {
		err := cmd.follow(ctx, &streams{out: w, errOut: said})
		_ = w.Close()
		done <- err
	}()
	go func() {
		defer close(out)
		for s := bufio.NewScanner(r); s.Scan(); {
			var m map[string]any
			if err := json.Unmarshal(s.Bytes(), &m); err != nil {
				t.Errorf("%s: %v", s.Text(), err)
			}
			out <- m
		}
	}()
	return out, said, func() error {
		cancel()
		return <-done
	}
}

// safeBuffer is a buffer that may be read while it is written to.
type safeBuffer struct{ text atomic.Pointer[string] }

func (b *safeBuffer) Write(p []byte) (int, error) {
	s := b.String() + string(p)
	b.text.Store(&s)
	return len(p), nil
}

func (b *safeBuffer) String() string {
	if s := b.text.Load(); s != nil {
		return *s
	}
	return ""
}

// next returns the next line, which must come soon.
func next(t *testing.T, lines <-chan map[string]any) map[string]any {
	t.Helper()
	select {
	case m, ok := <-lines:
		if !ok {
			t.Fatal("the tail has ended")
		}
		return m
	case <-time.After(30 * time.Second):
		t.Fatal("no line")
		return nil
	}
}

// backend is an address at which a server may be replaced by another.
func backend(t *testing.T) (endpoint string, set func(to string)) {
	var at atomic.Pointer[url.URL]
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(at.Load()) }}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if at.Load() == nil {
			panic(http.ErrAbortHandler) // the connection is closed without a reply
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, func(to string) {
		u, err := url.Parse(to)
		if err != nil || to == "" {
			u = nil
		}
		at.Store(u)
	}
}

// A tail from the beginning prints every item once, then what is written. It goes on after a restart of the server.
func TestTailCommand(t *testing.T) {
	dir := t.TempDir()
	at, stop := started(t, dir)
	endpoint, set := backend(t)
	set(at)
	const link, path = "dbs/shop/colls/orders", "/dbs/shop/colls/orders/docs"
	write := func(id string) {
		send(t, endpoint, "POST", "docs", link, path, `{"id":"`+id+`","customer":"ada"}`, docsKey, `["ada"]`)
	}
	lines, said, end := tailing(t, &tailCmd{Endpoint: endpoint, From: "beginning", Container: "shop/orders"})
	fromNow, _, endNow := tailing(t, &tailCmd{Endpoint: endpoint, From: "now", Container: "shop/orders"})
	write("mark")
	seen := map[any]int{}
	for seen["mark"] == 0 {
		seen[next(t, lines)["id"]]++
	}
	for _, n := range seen {
		if n != 1 || len(seen) < 5 {
			t.Errorf("%v", seen)
		}
	}
	for n := 0; ; n++ { // until the tail from now has begun
		write(fmt.Sprint("first", n))
		select {
		case <-fromNow:
		case <-time.After(100 * time.Millisecond):
			continue
		}
		break
	}
	set("")
	stop()
	for !strings.Contains(said.String(), "trying again") {
		time.Sleep(5 * time.Millisecond)
	}
	at, stop = serveDir(t, dir, false)
	defer stop()
	set(at)
	write("later")
	for next(t, lines)["id"] != "later" {
	}
	for next(t, fromNow)["id"] != "later" {
	}
	for !strings.HasSuffix(said.String(), "orrery: the server answers again\n") {
		time.Sleep(5 * time.Millisecond)
	}
	if s := said.String(); !strings.Contains(s, "the answer of "+endpoint+" is incomplete") {
		t.Errorf("%s", s)
	}
	for _, end := range []func() error{end, endNow} {
		if err := end(); err != nil {
			t.Error(err)
		}
	}
}

func TestTailOfAllVersions(t *testing.T) {
	endpoint, stop := started(t, t.TempDir())
	defer stop()
	send(t, endpoint, "POST", "colls", "dbs/shop", "/dbs/shop/colls",
		`{"id":"kept","partitionKey":{"paths":["/pk"],"version":2},"changeFeedPolicy":{"retentionDuration":10}}`)
	const link, path = "dbs/shop/colls/kept", "/dbs/shop/colls/kept/docs"
	lines, _, end := tailing(t, &tailCmd{Endpoint: endpoint, From: "now", AllVersions: true, Container: "shop/kept"})
	for n := 0; ; n++ { // until the tail has begun
		send(t, endpoint, "POST", "docs", link, path, fmt.Sprintf(`{"id":"probe%d","pk":"p"}`, n), docsKey, `["p"]`)
		select {
		case <-lines:
		case <-time.After(100 * time.Millisecond):
			continue
		}
		break
	}
	send(t, endpoint, "POST", "docs", link, path, `{"id":"a","pk":"p","n":1}`, docsKey, `["p"]`)
	send(t, endpoint, "PUT", "docs", link+"/docs/a", path+"/a", `{"id":"a","pk":"p","n":2}`, docsKey, `["p"]`)
	send(t, endpoint, "DELETE", "docs", link+"/docs/a", path+"/a", "", docsKey, `["p"]`)
	var ops []string
	for len(ops) < 3 {
		m := next(t, lines)
		current, _ := m["current"].(map[string]any)
		previous, _ := m["previous"].(map[string]any)
		if id, _ := current["id"].(string); !strings.HasPrefix(id, "probe") {
			ops = append(ops, fmt.Sprint(m["metadata"].(map[string]any)["operationType"], previous["n"], current["n"]))
		}
	}
	if got := strings.Join(ops, " "); got != "create<nil> 1 replace1 2 delete2 <nil>" {
		t.Error(got)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}

func TestTailRefusals(t *testing.T) {
	t.Setenv("ORRERY_TEST_KEY", "!")
	endpoint, stop := started(t, t.TempDir())
	defer stop()
	for _, c := range []struct {
		args []string
		err  string
	}{
		{[]string{"shop"}, "shop: want DATABASE/CONTAINER"},
		{[]string{"shop/"}, "shop/: want DATABASE/CONTAINER"},
		{[]string{"shop/nope"}, "the server refuses the feed with 404 Not Found"},
		{[]string{"shop/orders", "--from", "yesterday"}, "--from yesterday: want beginning, now, or a time"},
		{[]string{"shop/orders", "--all-versions"}, "retentionDuration"},
		{[]string{"shop/orders", "--all-versions", "--from", "beginning"}, "the feed of all versions begins now"},
		{[]string{"shop/orders", "--key", "env:ORRERY_TEST_KEY"}, "--key: want base64"},
		{[]string{"shop/orders", "--endpoint", "http://127.0.0.1:1"}, "no server answers at http://127.0.0.1:1"},
	} {
		var out, errOut bytes.Buffer
		args := append([]string{"tail", "--endpoint", endpoint}, c.args...)
		if code := run(args, &out, &errOut); code != 1 || !strings.Contains(errOut.String(), c.err) || out.Len() > 0 {
			t.Errorf("%v: exit %d: %s%s", c.args, code, out.String(), errOut.String())
		}
	}
}
