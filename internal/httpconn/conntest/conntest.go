// Package conntest is for tests of APIs over connections of internal/httpconn.
package conntest

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/orrerydb/orrery/internal/httpconn"
)

// Dial serves h over TCP until the test ends and returns an open connection to it: with lines, a connection that takes
// header lines, otherwise one of net/http.
func Dial(t *testing.T, h http.Handler, lines bool) net.Conn {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if (httpconn.Of(r.Context()) != nil) != lines {
			t.Error("a connection of the other kind")
		}
		h.ServeHTTP(w, r)
	}))
	if lines {
		s.Listener = httpconn.Listener{Listener: s.Listener}
		s.Config.ConnContext = httpconn.Context
	}
	s.Start()
	t.Cleanup(s.Close)
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
