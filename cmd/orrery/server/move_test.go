package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// unlogged is the log of commands in tests.
var unlogged = slog.New(slog.NewTextHandler(io.Discard, nil))

// holder is a client that goes on at each place where the store is.
type holder struct {
	t *testing.T
	s *Server

	etag, session, feed, continuation string
	read                              int // documents of the query's pages so far
	n                                 int // documents
}

const heldDocs = 20

// do sends a request, and returns the reply and its body.
func (h *holder) do(method, path, body string, header ...string) (*http.Response, string) {
	h.t.Helper()
	req, err := http.NewRequest(method, "http://"+h.s.Addr(NoSQL)+"/"+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("x-ms-version", "2018-12-31")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return res, string(b)
}

// create adds a document.
func (h *holder) create() {
	h.n++
	res, text := h.do("POST", "dbs/d/colls/c/docs", fmt.Sprintf(`{"id":"i%d","pk":"a"}`, h.n),
		"x-ms-documentdb-partitionkey", `["a"]`)
	if res.StatusCode != http.StatusCreated {
		h.t.Fatal(res.StatusCode, text)
	}
	h.session = res.Header.Get("x-ms-session-token")
}

// begin makes the container, and gets the etag of a document.
func (h *holder) begin() {
	for _, r := range [][2]string{{"dbs", `{"id":"d"}`}, {"dbs/d/users", `{"id":"ann"}`},
		{"dbs/d/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}`},
		{"dbs/d/colls/c/sprocs", `{"id":"twice","body":"function () { getContext().getResponse().setBody(2) }"}`}} {
		if res, text := h.do("POST", r[0], r[1]); res.StatusCode != http.StatusCreated {
			h.t.Fatal(res.StatusCode, text)
		}
	}
	for range heldDocs {
		h.create()
	}
	res, _ := h.do("GET", "dbs/d/colls/c/docs/i1", "", "x-ms-documentdb-partitionkey", `["a"]`)
	h.etag = res.Header.Get("Etag")
	h.follow(heldDocs)
	h.page()
}

// follow reads the change feed, which must have so many documents since the last time.
func (h *holder) follow(want int) {
	h.t.Helper()
	for {
		res, text := h.do("GET", "dbs/d/colls/c/docs", "", "A-IM", "Incremental Feed",
			"x-ms-documentdb-partitionkeyrangeid", "0", "If-None-Match", h.feed)
		want -= strings.Count(text, `"id":`)
		h.feed = res.Header.Get("Etag")
		if res.StatusCode == http.StatusNotModified {
			break
		}
		if res.StatusCode != http.StatusOK {
			h.t.Fatal(res.StatusCode, text)
		}
	}
	if want != 0 {
		h.t.Errorf("%d documents are missing in the feed", want)
	}
}

// page reads the next page of a query.
func (h *holder) page() {
	h.t.Helper()
	header := []string{"Content-Type", "application/query+json", "x-ms-documentdb-isquery", "true",
		"x-ms-documentdb-partitionkey", `["a"]`, "x-ms-max-item-count", "6", "x-ms-continuation", h.continuation}
	if h.continuation == "" {
		header = header[:len(header)-2]
	}
	res, text := h.do("POST", "dbs/d/colls/c/docs", `{"query":"SELECT c.id FROM c"}`, header...)
	if res.StatusCode != http.StatusOK {
		h.t.Fatal(res.StatusCode, text)
	}
	h.read += strings.Count(text, `"id":`)
	h.continuation = res.Header.Get("x-ms-continuation")
}

// goOn uses everything that the client holds, and then writes.
func (h *holder) goOn() {
	h.t.Helper()
	key := []string{"x-ms-documentdb-partitionkey", `["a"]`}
	if res, text := h.do("GET", "dbs/d/colls/c/docs/i1", "", append(key, "If-None-Match", h.etag,
		"x-ms-session-token", h.session)...); res.StatusCode != http.StatusNotModified {
		h.t.Errorf("a read with etag and session: %d %s", res.StatusCode, text)
	}
	h.follow(0)
	h.page()
	for _, path := range []string{"dbs/d/users/ann", "dbs/d/colls/c/sprocs/twice"} {
		if res, text := h.do("GET", path, ""); res.StatusCode != http.StatusOK {
			h.t.Errorf("%s: %d %s", path, res.StatusCode, text)
		}
	}
	res, text := h.do("PUT", "dbs/d/colls/c/docs/i1", `{"id":"i1","pk":"a","again":true}`, append(key, "If-Match",
		h.etag)...)
	if res.StatusCode != http.StatusOK {
		h.t.Errorf("a replace with the etag: %d %s", res.StatusCode, text)
	}
	h.etag = res.Header.Get("Etag")
	h.create()
	h.follow(2)
}

// A store is moved from a directory to an address and back. The same client goes on at each place, with its etag,
// session token, position in the feed and continuation. The places where the store was are refused.
func TestMove(t *testing.T) {
	of, dir := kvtest.NewShared(memkv.New(), 1), t.TempDir()
	kinds := []EngineKind{sharedKind(of)}
	first, second, address := filepath.Join(dir, "first"), filepath.Join(dir, "second"), "test://m/main?key=secret"
	h := &holder{t: t, s: onDisk(t, first)}
	h.begin()
	ctx := context.Background()
	if _, err := Move(ctx, first, address, kinds, unlogged, silent{}); err == nil ||
		!strings.Contains(err.Error(), "in use by another server") {
		t.Errorf("a store that is served: %v", err)
	}
	stop(t, h.s, 5*time.Second)

	m, err := Move(ctx, first, address, kinds, unlogged, silent{})
	if err != nil || m.Items != heldDocs || m.To != "test://m/main" {
		t.Fatal(m, err)
	}
	h.s, _ = whole(t, func(c *Config) { over(of)(c); c.Auth = false })
	h.goOn()
	stop(t, h.s, 5*time.Second)
	refused(t, first, "was moved to test://m/main")

	if m, err = Move(ctx, address, second, kinds, unlogged, silent{}); err != nil || m.Items != heldDocs+1 {
		t.Fatal(m, err)
	}
	h.s = onDisk(t, second)
	h.goOn()
	for h.continuation != "" {
		h.page()
	}
	if h.read != heldDocs+2 {
		t.Errorf("the pages of the query have %d documents", h.read)
	}
	stop(t, h.s, 5*time.Second)
	if s, err := Start(func() Config { c := Ephemeral(); over(of)(&c); c.Logger = unlogged; return c }()); err == nil ||
		!strings.Contains(err.Error(), "was moved to "+second) {
		t.Errorf("a server over the store that has left: %v, %v", s, err)
	}
	for _, d := range []string{first, second} {
		e, err := OpenForReading(ctx, d) // as a check does
		if err != nil {
			t.Fatal(err)
		}
		if problems, err := e.Check(ctx); len(problems) > 0 || err != nil {
			t.Error(problems, err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := AbandonMove(ctx, first, kinds, unlogged); err != nil {
		t.Error(err)
	}
	stop(t, onDisk(t, first), 5*time.Second)
}

// refused checks that no server opens the store of a directory.
func refused(t *testing.T, data, want string) {
	t.Helper()
	c := Ephemeral()
	c.Memory, c.Data, c.Logger = false, data, unlogged
	if _, err := Start(c); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a server on %s: %v, want %s", data, err, want)
	}
}

// An interrupted move leaves stores that aren't served, and the target isn't read as a store either. The same call
// completes it. What is wrong with the places is told in a sentence.
func TestPlacesOfAMove(t *testing.T) {
	dir := t.TempDir()
	from, to, other := filepath.Join(dir, "from"), filepath.Join(dir, "to"), filepath.Join(dir, "other")
	h := &holder{t: t, s: onDisk(t, from)}
	h.begin()
	stop(t, h.s, 5*time.Second)
	ctx := context.Background()
	if err := os.MkdirAll(filepath.Join(other, "mine"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, want string }{
		{from, from, "the same place"},
		{filepath.Join(dir, "none"), to, "holds no store"},
		{from, other, "isn't empty"},
		{filepath.Join(from, "store"), to, "inside of a data directory"},
		{from, "tikv://pd:1/main", "orrery-tikv"},
		{"tikv://pd:1/main", to, "orrery-tikv"},
	} {
		_, err := Move(ctx, c.from, c.to, nil, unlogged, silent{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s to %s: %v, want %s", c.from, c.to, err, c.want)
		}
	}
	if _, err := os.Stat(to); err == nil {
		t.Error("a move that was refused has made its target")
	}
	cut, cancel := context.WithCancel(ctx)
	if _, err := Move(cut, from, to, nil, unlogged, cutting{cancel, "comparing items"}); err == nil {
		t.Fatal("the move wasn't cut off")
	}
	refused(t, from, "is being moved to "+to)
	refused(t, to, "an incomplete copy of the store "+from)
	if _, err := OpenForReading(ctx, to); err == nil || !strings.Contains(err.Error(), "an incomplete copy") {
		t.Errorf("an incomplete copy is read: %v", err)
	}
	m, err := Move(ctx, from, to, nil, unlogged, silent{})
	if err != nil || !m.Resumed || m.Items != heldDocs {
		t.Fatal(m, err)
	}
	if b, err := json.Marshal(m); err != nil || !strings.Contains(string(b), `"items":20`) {
		t.Error(string(b), err)
	}
	if m, err = Move(ctx, from, to, nil, unlogged, silent{}); err != nil || !m.Done {
		t.Error(m, err)
	}
	h.s = onDisk(t, to)
	h.goOn()
}

// cutting cancels a move when a task begins.
type cutting struct {
	cancel context.CancelFunc
	at     string
}

func (c cutting) Task(name string, _ bool) {
	if name == c.at {
		c.cancel()
	}
}

func (cutting) Set(int64, int64) {}
