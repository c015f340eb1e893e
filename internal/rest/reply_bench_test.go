package rest

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/internal/httpconn"
)

// deafConn takes what is written.
type deafConn struct{ net.Conn }

func (deafConn) Write(p []byte) (int, error) { return len(p), nil }

// pointReadHeaders are the reply headers of a point read over the NoSQL API.
var pointReadHeaders = [][2]string{
	{"x-ms-documentdb-partitionkeyrangeid", "0"}, {"x-ms-session-token", "0:-1#12345"}, {"lsn", "12345"},
	{"x-ms-content-path", "AbcDefGhIjk="}, {"x-ms-alt-content-path", "dbs/database/colls/container"},
	{"etag", `"00000000-0000-0000-0000-000000003039"`}, {"x-ms-request-charge", "1.00"},
	{"x-ms-activity-id", "01234567-89ab-cdef-0123-456789abcdef"}, {"x-ms-schemaversion", "1.18"},
	{"x-ms-gatewayversion", "2.0.0"}}

// BenchmarkReplyHeaders measures what the headers of a reply cost on their way to the connection, step by step. Each
// line has one step more than the line before. The last one is the way through net/http's map, up to net/http itself.
func BenchmarkReplyHeaders(b *testing.B) {
	head := []byte("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nContent-Type: application/json\r\n" +
		"Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n" + strings.Repeat("x", 1000))
	conn := &httpconn.Conn{Conn: deafConn{}}
	c := &Call{}
	steps := []struct {
		name string
		do   func()
	}{
		{"lines", func() {
			c.Discard()
			for _, h := range pointReadHeaders {
				c.Set(h[0], h[1])
			}
		}},
		{"checked", func() {
			if !c.plain() {
				b.Fatal("not as they are")
			}
			c.Lines = conn.Next(c.Lines, 1000)
		}},
		{"write", func() {
			if _, err := conn.Write(head); err != nil {
				b.Fatal(err)
			}
		}},
	}
	for n := range steps {
		b.Run(steps[n].name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, s := range steps[:n+1] {
					s.do()
				}
			}
		})
	}
	b.Run("map", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			steps[0].do()
			c.fillMap(http.Header{})
		}
	})
}
