package server

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

type silent struct{}

func (silent) Task(string, bool) {}
func (silent) Set(int64, int64)  {}

// onDisk is a complete server with a data directory.
func onDisk(t *testing.T, data string) *Server {
	t.Helper()
	s, _ := whole(t, func(c *Config) { c.Memory, c.Data, c.Auth = false, data, false })
	return s
}

// ask sends a NoSQL request and returns the status, sub-status, etag, session token and body of the reply.
func (s *Server) ask(t *testing.T, method, path, body string, header ...string) (
	code int, sub, etag, session, text string) {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+s.Addr(NoSQL)+"/"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("x-ms-version", "2018-12-31")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	h := res.Header
	return res.StatusCode, h.Get("x-ms-substatus"), h.Get("Etag"), h.Get("x-ms-session-token"), string(b)
}

// makeContainer makes the container c of the database d.
func (s *Server) makeContainer(t *testing.T) {
	t.Helper()
	for _, r := range [][2]string{{"dbs", `{"id":"d"}`},
		{"dbs/d/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}`}} {
		if code, _, _, _, text := s.ask(t, "POST", r[0], r[1]); code != http.StatusCreated {
			t.Fatal(code, text)
		}
	}
}

func (s *Server) create(t *testing.T, id string) (session string) {
	t.Helper()
	body := fmt.Sprintf(`{"id":%q,"pk":"a"}`, id)
	code, _, _, session, text := s.ask(t, "POST", "dbs/d/colls/c/docs", body, "x-ms-documentdb-partitionkey", `["a"]`)
	if code != http.StatusCreated {
		t.Fatal(code, text)
	}
	return session
}

// A reader whose change feed position is after the backup misses nothing that the restored store writes. A session that
// is ahead of the restored store gets an error.
func TestReadersAheadOfABackup(t *testing.T) {
	dir := t.TempDir()
	s := onDisk(t, filepath.Join(dir, "data"))
	s.makeContainer(t)
	s.create(t, "kept")
	if _, err := s.backup(context.Background(), filepath.Join(dir, "backups"), func(int64, int64) {}); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		s.create(t, fmt.Sprint("lost", i))
	}
	session := s.create(t, "lost")
	feed := func(s *Server, etag string) (int, string, string) {
		code, _, next, _, text := s.ask(t, "GET", "dbs/d/colls/c/docs", "", "A-IM", "Incremental Feed",
			"x-ms-documentdb-partitionkeyrangeid", "0", "If-None-Match", etag)
		return code, next, text
	}
	code, etag, text := feed(s, "")
	if code != http.StatusOK || !strings.Contains(text, `"lost"`) {
		t.Fatal(code, text)
	}
	stop(t, s, 5*time.Second)

	restored := filepath.Join(dir, "restored")
	r, err := Restore(context.Background(), filepath.Join(dir, "backups"), restored, silent{})
	if err != nil || r.Items != 1 {
		t.Fatal(r, err)
	}
	s = onDisk(t, restored)
	if code, etag, text = feed(s, etag); code != http.StatusNotModified {
		t.Errorf("nothing is new: %d %s", code, text)
	}
	key := []string{"x-ms-documentdb-partitionkey", `["a"]`, "x-ms-session-token", session}
	if code, sub, _, _, text := s.ask(t, "GET", "dbs/d/colls/c/docs/kept", "", key...); code != http.StatusNotFound ||
		sub != "1002" {
		t.Errorf("a session of the time that is lost: %d/%s %s", code, sub, text)
	}
	s.create(t, "new")
	if code, _, text = feed(s, etag); code != http.StatusOK || !strings.Contains(text, `"new"`) ||
		strings.Contains(text, `"kept"`) {
		t.Errorf("who was ahead gets %d %s", code, text)
	}
}

// endsWith is a context that ends when a file is made.
type endsWith struct {
	context.Context
	file string
}

func (e endsWith) Err() error {
	if _, err := os.Stat(e.file); err == nil {
		return context.Canceled
	}
	return nil
}

// The directory of a repair that was interrupted is no store: it lacks items. The same command completes it.
func TestInterruptedRepair(t *testing.T) {
	data, to := t.TempDir(), filepath.Join(t.TempDir(), "new")
	s := onDisk(t, data)
	s.makeContainer(t)
	s.create(t, "one")
	if err := s.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	_, err := Repair(endsWith{context.Background(), filepath.Join(StoreDir(to), "LOCK")}, data, to,
		func(_, _ int64) {}, nil)
	if err == nil {
		t.Fatal("the repair wasn't interrupted")
	}
	c := Ephemeral()
	c.Memory, c.Data = false, to
	if s, err := Start(c); err == nil || !strings.Contains(err.Error(), "interrupted") {
		if err == nil {
			_ = s.Stop(context.Background())
		}
		t.Errorf("a start of what the repair has left: %v", err)
	}
	if _, err := OpenForReading(context.Background(), to); err == nil {
		t.Error("a check of what the repair has left: no error")
	}
	done, err := Repair(context.Background(), data, to, func(_, _ int64) {}, nil)
	if err != nil || done.Items == 0 {
		t.Fatalf("the second repair: %+v, %v", done, err)
	}
	s = onDisk(t, to)
	if code, _, _, _, text := s.ask(t, "GET", "dbs/d/colls/c/docs/one", "", "x-ms-documentdb-partitionkey",
		`["a"]`); code != http.StatusOK {
		t.Errorf("the item: %d %s", code, text)
	}
	if err := s.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := Repair(context.Background(), data, to, func(_, _ int64) {}, nil); err == nil ||
		!strings.Contains(err.Error(), "isn't empty") {
		t.Errorf("a repair into a store: %v", err)
	}
	if m, err := Move(context.Background(), to, filepath.Join(t.TempDir(), "moved"), nil, slog.New(slog.DiscardHandler),
		silent{}); err != nil || m.Items != done.Items {
		t.Errorf("a move of the repaired store: %+v, %v", m, err)
	}
}
