//go:build unix

package sqlapi

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"

	"github.com/orrerydb/orrery/internal/httpconn"
)

// cpu returns the CPU time of the process, in nanoseconds.
func cpu(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkPointReadOverTCP measures a point read including the HTTP server, with and without formatted header lines,
// and the plain server for comparison. The client is a loop over bytes, whose CPU time is in all three.
func BenchmarkPointReadOverTCP(b *testing.B) {
	a := withContainer(b)
	a.do("POST", docs, benchItem(1), key("p1")).is(201)
	size := len(a.do("GET", docs+"/doc-1", "", key("p1")).is(200).body)
	bare := bytes.Repeat([]byte("x"), size)
	for _, x := range []struct {
		name  string
		lines bool
		h     http.Handler
	}{
		{"lines", true, a.srv},
		{"map", false, a.srv},
		{"bare", false, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(bare) })},
	} {
		b.Run(x.name, func(b *testing.B) {
			s := httptest.NewUnstartedServer(x.h)
			if x.lines {
				s.Listener = httpconn.Listener{Listener: s.Listener}
				s.Config.ConnContext = httpconn.Context
			}
			s.Start()
			defer s.Close()
			c, err := net.Dial("tcp", s.Listener.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			send := []byte(wireRequest(b, "GET", docs+"/doc-1", "HTTP/1.1", "", key("p1")))
			r := bufio.NewReaderSize(c, 16<<10)
			from := cpu(b)
			for b.Loop() {
				if _, err := c.Write(send); err != nil {
					b.Fatal(err)
				}
				for line := []byte{0}; len(line) > 2; {
					if line, err = r.ReadSlice('\n'); err != nil {
						b.Fatal(err)
					}
				}
				if _, err := io.CopyN(io.Discard, r, int64(size)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(cpu(b)-from)/float64(b.N), "cpu-ns/op")
		})
	}
}
