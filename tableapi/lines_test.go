package tableapi

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/internal/httpconn/conntest"
)

// dial returns a connection to a server with its own store.
func dial(t *testing.T, lines bool) net.Conn {
	t.Helper()
	s, _ := newServer(t, false)
	return conntest.Dial(t, s, lines)
}

// ofTheRun matches text that differs between two runs of the same requests.
var ofTheRun = regexp.MustCompile(
	`Date: [^\r]*|RequestId:[-0-9a-f]{36}|X-Ms-Request-Id: [-0-9a-f]{36}|batchresponse_[-0-9a-f]+`)

// The headers of a reply are the same (in any order) whether the door writes their lines itself or net/http writes
// them.
func TestLinesAreThoseOfTheHeaderMap(t *testing.T) {
	a, b := dial(t, true), dial(t, false)
	ra, rb := bufio.NewReader(a), bufio.NewReader(b)
	big := strings.Repeat("x", 6000) // more than net/http's buffer
	entity := func(row, text string) string {
		return fmt.Sprintf(`{"PartitionKey":"p","RowKey":%q,"text":%q}`, row, text)
	}
	const match, content = "If-Match: *", "Prefer: return-content"
	query := "--b\r\nContent-Type: application/http\r\n\r\nGET http://h/data(PartitionKey='p',RowKey='a') " +
		"HTTP/1.1\r\n\r\n\r\n--b--\r\n"
	for _, tc := range []struct {
		method, path, body string
		status             int
		headers            []string
	}{
		{"POST", "/Tables", `{"TableName":"data"}`, 201, nil},
		{"POST", "/Tables", `{"TableName":"data"}`, 409, nil},
		{"POST", "/Tables", `{"TableName":"more"}`, 204, []string{"Prefer: return-no-content"}},
		{"GET", "/Tables?$top=1", "", 200, nil},
		{"POST", "/data", entity("a", "1"), 201, []string{content, "x-ms-client-request-id: of the client"}},
		{"POST", "/data", entity("b", big), 204, []string{"Prefer: return-no-content"}},
		{"POST", "/data", entity("b", big), 409, nil},
		{"GET", "/data(PartitionKey='p',RowKey='a')", "", 200, []string{"x-ms-version: 2014-02-14"}},
		{"GET", "/data(PartitionKey='p',RowKey='b')", "", 200, nil},
		{"GET", "/data(PartitionKey='p',RowKey='c')", "", 404, nil},
		{"GET", "/data(PartitionKey='p',RowKey='a')", "", 400, []string{"x-ms-version: of the client"}},
		{"GET", "/data()?$top=1", "", 200, []string{"Accept: application/json;odata=nometadata"}},
		{"POST", "/$batch", query, 202, []string{"Content-Type: multipart/mixed; boundary=b"}},
		{"PUT", "/data(PartitionKey='p',RowKey='a')", entity("a", "2"), 204, []string{match}},
		{"PUT", "/data(PartitionKey='p',RowKey='a')", entity("a", "2"), 412,
			[]string{`If-Match: W/"datetime'2001-01-01T00%3A00%3A00Z'"`}},
		{"HEAD", "/data?comp=acl", "", 200, nil},
		{"GET", "/data?comp=acl", "", 200, nil},
		{"POST", "/data?comp=acl", "", 405, nil},
		{"TRACE", "/data", "", 405, nil},
		{"OPTIONS", "/data", "", 403, []string{"Origin: http://h"}},
		{"GET", "/?comp=stats", "", 501, nil},
		{"DELETE", "/data(PartitionKey='p',RowKey='a')", "", 204, []string{match}},
		{"DELETE", "/Tables('data')", "", 204, nil},
	} {
		send := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n", tc.method, tc.path, len(tc.body))
		for _, h := range tc.headers {
			send += h + "\r\n"
		}
		send += "\r\n" + tc.body
		got, want := reply(t, a, ra, tc.method, send), reply(t, b, rb, tc.method, send)
		if got != want || !strings.HasPrefix(got, fmt.Sprintf("HTTP/1.1 %d ", tc.status)) ||
			!strings.Contains(got, "\r\nX-Ms-Version: ") {
			t.Errorf("%s %s:\n%s\nby net/http:\n%s", tc.method, tc.path, got, want)
		}
	}
}

// reply sends a request and returns the bytes of its reply, with the headers sorted by name.
func reply(t *testing.T, c net.Conn, r *bufio.Reader, method, send string) string {
	t.Helper()
	if _, err := io.WriteString(c, send); err != nil {
		t.Fatal(err)
	}
	var raw bytes.Buffer
	res, err := http.ReadResponse(bufio.NewReader(io.TeeReader(r, &raw)), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%s: %v", raw.String(), err)
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	head, body, _ := strings.Cut(ofTheRun.ReplaceAllString(raw.String(), "-"), "\r\n\r\n")
	lines := strings.Split(head, "\r\n")
	slices.Sort(lines[1:])
	return strings.Join(lines, "\r\n") + "\r\n" + body
}
