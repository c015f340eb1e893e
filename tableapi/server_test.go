package tableapi

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

const testAccount = "localhost"

var testKey = []byte("0123456789abcdef0123456789abcdef")

// newServer returns a server with an empty store. Its clock is frozen at 2024-03-04T05:06:07Z.
func newServer(t testing.TB, auth bool) (*Server, *clock.Clock) {
	t.Helper()
	clk := clock.Fake(time.Date(2024, 3, 4, 5, 6, 7, 0, time.UTC))
	e, err := core.Open(context.Background(), memkv.New(), core.Options{Clock: clk, MinSlots: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if problems, err := e.Check(context.Background()); err != nil || len(problems) > 0 {
			t.Errorf("check: %v, %v", problems, err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return New(e, Options{Account: testAccount, Key: testKey, Auth: auth, Clock: clk, Wall: clk}), clk
}

// TestWire runs the scripts in testdata. Each "http" command is a request as sent (~ marks blank lines, which the
// script can't contain). Its reply is printed with the relevant headers; ids and times of the run are replaced.
// "advance" moves the clock. "container" makes a container as another API would (its name as database.container, then
// the partition key paths) and fills it with the documents in its lines, written as Extended JSON. "stored" prints its
// documents.
func TestWire(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s, clk := newServer(t, false)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "advance":
				clk.Advance(time.Second)
				return ""
			case "container":
				return fill(t, s, d)
			case "stored":
				return stored(t, s, d)
			}
			return wire(t, s, d.Input)
		})
	})
}

// containerOf splits database.container.
func containerOf(d *datadriven.TestData) (db, id string) {
	db, id, _ = strings.Cut(d.CmdArgs[0].Key, ".")
	return db, id
}

func fill(t *testing.T, s *Server, d *datadriven.TestData) string {
	ctx := context.Background()
	db, id := containerOf(d)
	if _, err := s.e.EnsureDatabase(ctx, db); err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, a := range d.CmdArgs[1:] {
		paths = append(paths, a.Key)
	}
	if paths != nil {
		if _, err := s.e.CreateContainer(
			ctx, db, core.ContainerSpec{ID: id, PartitionKey: core.PartitionKeyDef{Paths: paths}}); err != nil {
			t.Fatal(err)
		}
	}
	c, err := s.e.Container(db, id)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(d.Input, "\n") {
		b, err := doc.FromExtJSON(nil, []byte(line))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(ctx, core.Write{Kind: core.Create, Doc: b}); err != nil {
			t.Fatal(err)
		}
	}
	return ""
}

func stored(t *testing.T, s *Server, d *datadriven.TestData) string {
	c, err := s.e.Container(containerOf(d))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := c.Query(context.Background(), &exec.Query{})
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var lines []string
	for rows.Next() {
		lines = append(lines, string(doc.AppendExtJSON(nil, doc.Value(rows.Item().Doc), false)))
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// shownHeaders are the reply headers that scripts print, in this order.
var shownHeaders = []string{"Content-Type", "ETag", "Location", "Preference-Applied", "Allow", "x-ms-error-code",
	"x-ms-continuation-NextTableName", "x-ms-continuation-NextPartitionKey"}

var requestID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

func wire(t *testing.T, s http.Handler, input string) string {
	head, body, _ := strings.Cut(input, "\n~\n")
	line, headers, _ := strings.Cut(head, "\n")
	text := line + " HTTP/1.1\r\nHost: h:8902\r\n"
	for _, h := range strings.Split(headers, "\n") {
		if h != "" {
			text += h + "\r\n"
		}
	}
	if strings.Contains(headers, "multipart") {
		body = strings.ReplaceAll(strings.ReplaceAll(body, "~", ""), "\n", "\r\n")
	}
	text += fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	r.RemoteAddr = "127.0.0.1:5000"
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	var out strings.Builder
	fmt.Fprintln(&out, w.Code)
	for _, h := range shownHeaders {
		if v := w.Header().Get(h); v != "" {
			fmt.Fprintf(&out, "%s: %s\n", h, v)
		}
	}
	if w.Body.Len() > 0 {
		b := strings.ReplaceAll(w.Body.String(), "\r\n", "\n")
		var lines []string
		for _, l := range strings.Split(b, "\n") {
			if l != "" {
				lines = append(lines, l)
			}
		}
		fmt.Fprintln(&out, strings.Join(lines, "\n"))
	}
	return requestID.ReplaceAllString(out.String(), "<id>")
}
