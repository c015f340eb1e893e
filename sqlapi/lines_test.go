package sqlapi

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/internal/httpconn/conntest"
)

// overWire returns a connection to a new API.
func overWire(t *testing.T, lines bool) net.Conn {
	t.Helper()
	return conntest.Dial(t, withContainer(t).srv, lines)
}

// wireRequest returns the bytes of a signed request. Its activity id is fixed, so the reply is always the same.
func wireRequest(t testing.TB, method, path, proto, body string, headers ...string) string {
	to := signedOf(httptest.NewRequest(method, path, nil).URL)
	date := testNow.Format(http.TimeFormat)
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s\r\nHost: h\r\nx-ms-date: %s\r\nauthorization: %s\r\nx-ms-activity-id: "+
		"00112233-4455-6677-8899-aabbccddeeff\r\n",
		method, path, proto, date, sign(t, testKey, method, to.typ, to.link, date))
	for _, h := range headers {
		b.WriteString(h + "\r\n")
	}
	if body != "" && !strings.Contains(b.String(), "Transfer-Encoding") {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
	}
	return b.String() + "\r\n" + body
}

var (
	dateLine = regexp.MustCompile(`Date: [^\r]*`)
	heads    = regexp.MustCompile(`(?s)HTTP/1\.[01] \d.*?\r\n\r\n`)
)

// Header lines that the handler has formatted arrive as net/http would have written them, byte for byte except for
// their order. The connection works with replies of every kind in sequence.
func TestRepliesAreTheSameWithAndWithoutFinishedLines(t *testing.T) {
	const pk = `x-ms-documentdb-partitionkey: ["p1"]`
	const isQuery = "x-ms-documentdb-isquery: true"
	const v11, v10 = "HTTP/1.1", "HTTP/1.0"
	big := strings.Repeat("x", 6000) // more than net/http buffers
	item := func(id, text string) string { return fmt.Sprintf(`{"id":%q,"pk":"p1","text":%q}`, id, text) }
	query := `{"query":"SELECT * FROM c ORDER BY c.id DESC"}`
	get := wireRequest(t, "GET", docs+"/a", v11, "", pk)
	a, b := overWire(t, true), overWire(t, false)
	ra, rb := bufio.NewReader(a), bufio.NewReader(b)
	for _, tc := range []struct {
		what, method, send string
		replies            int
	}{
		{"create", "POST", wireRequest(t, "POST", docs, v11, item("a", "1"), pk), 1},
		{"create a large one", "POST", wireRequest(t, "POST", docs, v11, item("b", big), pk), 1},
		{"conflict", "POST", wireRequest(t, "POST", docs, v11, item("a", "1"), pk), 1},
		{"minimal", "PUT", wireRequest(t, "PUT", docs+"/a", v11, item("a", "2"), pk, "Prefer: return=minimal"), 1},
		{"read", "GET", get, 1},
		{"read a large one", "GET", wireRequest(t, "GET", docs+"/b", v11, "", pk), 1},
		{"not there", "GET", wireRequest(t, "GET", docs+"/c", v11, "", pk), 1},
		{"not modified", "GET", wireRequest(t, "GET", docs+"/a", v11, "", pk, "If-None-Match: *"), 1},
		{"bad session token", "GET", wireRequest(t, "GET", docs+"/a", v11, "", pk, "x-ms-session-token: 0:-1#99999999"),
			1},
		{"query", "POST", wireRequest(t, "POST", docs, v11, query, pk, isQuery, "x-ms-max-item-count: 1",
			"x-ms-documentdb-populatequerymetrics: true", "x-orrery-explain: true"), 1},
		{"query refused", "POST", wireRequest(t, "POST", docs, v11, `{"query":"SELEC"}`, pk, isQuery), 1},
		{
			"chunked", "POST", wireRequest(t, "POST", docs, v11, "3\r\n{\"i\r\n0\r\n\r\n", pk,
				"Transfer-Encoding: chunked"), 1},
		{"two at once", "GET", get + get, 2},
		{"expects 100", "POST", wireRequest(t, "POST", docs, v11, item("d", "1"), pk, "Expect: 100-continue"), 1},
		{"account", "GET", wireRequest(t, "GET", "/", v11, ""), 1},
		{"container", "GET", wireRequest(t, "GET", "/dbs/db/colls/c", v11, ""), 1},
		{"feed", "GET", wireRequest(t, "GET", docs, v11, ""), 1},
		{"wrong verb", "PATCH", wireRequest(t, "PATCH", "/dbs", v11, "{}"), 1},
		{"HEAD of a large one", "HEAD", wireRequest(t, "HEAD", docs+"/b", v11, "", pk), 1},
		{"HEAD", "HEAD", wireRequest(t, "HEAD", docs+"/a", v11, "", pk), 1},
		{"unsigned", "GET", "GET /dbs HTTP/1.1\r\nHost: h\r\nx-ms-activity-id: " +
			"00112233-4455-6677-8899-aabbccddeeff\r\n\r\n", 1},
		{"HTTP/1.0, kept alive", "GET", wireRequest(t, "GET", docs+"/a", v10, "", pk, "Connection: keep-alive"), 1},
		{"delete", "DELETE", wireRequest(t, "DELETE", docs+"/a", v11, "", pk), 1},
		{"last", "GET", wireRequest(t, "GET", docs+"/b", v11, "", pk, "Connection: close"), 1},
	} {
		got, want := exchange(t, a, ra, tc.method, tc.send, tc.replies),
			exchange(t, b, rb, tc.method, tc.send, tc.replies)
		if got != want {
			t.Errorf("%s:\n%s\nwithout finished lines:\n%s", tc.what, got, want)
		}
		if !strings.Contains(got, "x-ms-activity-id: 00112233") {
			t.Errorf("%s: no reply of ours: %s", tc.what, got)
		}
	}
}

// exchange sends bytes and returns the bytes of the replies.
func exchange(t *testing.T, c net.Conn, r *bufio.Reader, method, send string, replies int) string {
	t.Helper()
	if _, err := io.WriteString(c, send); err != nil {
		t.Fatal(err)
	}
	var raw bytes.Buffer
	keep := bufio.NewReader(io.TeeReader(r, &raw))
	for n := 0; n < replies; {
		res, err := http.ReadResponse(keep, &http.Request{Method: method})
		if err != nil {
			t.Fatalf("%s: %v", raw.String(), err)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			t.Fatal(err)
		}
		if res.StatusCode >= 200 {
			n++
		}
	}
	return heads.ReplaceAllStringFunc(dateLine.ReplaceAllString(raw.String(), "Date: now"), func(head string) string {
		lines := strings.Split(strings.TrimSuffix(head, "\r\n\r\n"), "\r\n")
		slices.Sort(lines[1:])
		return strings.Join(lines, "\r\n") + "\r\n\r\n"
	})
}
