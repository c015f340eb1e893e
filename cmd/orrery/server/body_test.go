package server

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// The time limit of a body starts with the first read. Before it the body may wait for memory, which isn't the client's
// fault.
func TestABodyThatWaitsToBeReadHasItsTime(t *testing.T) {
	const wait = 50 * time.Millisecond
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := newSlowBody(w, r, wait)
		time.Sleep(3 * wait)
		if _, err := io.ReadAll(b); err != nil {
			http.Error(w, err.Error(), http.StatusRequestTimeout)
		}
	}))
	defer s.Close()
	w := dialWire(t, s.Listener.Addr().String())
	w.head("/", 5)
	_, _ = io.WriteString(w, "whole")
	if code := w.reply(); code != 200 {
		t.Error(code)
	}
}
