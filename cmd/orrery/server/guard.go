package server

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/orrerydb/orrery/cmd/orrery/certs"
	"github.com/orrerydb/orrery/core/clock"
)

// This file is what stands before every HTTP door: no request may come by a name that isn't the server's while nobody is asked
// who they are, and none may hold its connection with a body that doesn't come.

// guarded puts both guards before a door's handler.
func (s *Server) guarded(h http.Handler) http.Handler {
	checked := !s.cfg.Auth && !s.cfg.Insecure
	names := s.hostNames()
	wait := s.cfg.BodyTimeout
	if wait <= 0 {
		wait = bodyTimeout
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if checked && !ownHost(r.Host, names) {
			w.Header().Set("Connection", "close")
			plain(w, http.StatusMisdirectedRequest, fmt.Sprintf("%.100q is not a name of this server, which asks nobody who they are: "+
				"give --public-host, or let it ask for credentials.\n", r.Host))
			return
		}
		if r.ContentLength == 0 {
			h.ServeHTTP(w, r)
			return
		}
		b := &slowBody{ReadCloser: r.Body, ctl: *http.NewResponseController(w), clk: s.cfg.Clock, wait: wait}
		b.began = b.clk.Now()
		r.Body = b
		h.ServeHTTP(w, r)
		if !b.ended { // net/http waits for the rest, to find the next request
			_ = b.ctl.SetReadDeadline(b.clk.Now().Add(wait))
		}
	})
}

// hostNames are the names under which a server is asked for that asks for no credentials. A page from elsewhere that a browser
// on this machine shows may let its own name point here (DNS rebinding); then its requests carry that name.
func (s *Server) hostNames() []string {
	names := append([]string{"host.docker.internal"}, certs.Names()...)
	for _, a := range s.cfg.addrs() {
		if host, _, err := net.SplitHostPort(a.addr); err == nil && host != "" {
			names = append(names, host)
		}
	}
	names = append(names, s.cfg.PublicHosts...)
	for i := range names {
		names[i] = strings.ToLower(names[i])
	}
	return names
}

// ownHost reports whether a Host header may be meant for this server: addresses can't be rebound, and browsers always send
// one.
func ownHost(host string, names []string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
	return host == "" || net.ParseIP(host) != nil || host == "localhost" || strings.HasSuffix(host, ".localhost") || slices.Contains(names, host)
}

const (
	bodyTimeout = 30 * time.Second // that a body may pause
	bodyRate    = 1 << 10          // bytes a second that a body brings at least, once it has been coming for twice that long
)

// slowBody is a request body that must go on coming: each read has a deadline. Without it a body that stops half-way holds
// its connection and a goroutine for ever; a fixed limit for the whole would cut large bodies on slow lines.
type slowBody struct {
	io.ReadCloser
	ctl   http.ResponseController
	clk   *clock.Clock
	wait  time.Duration
	began time.Time
	got   int64
	ended bool
}

// Read implements io.Reader. A deadline that passed is os.ErrDeadlineExceeded.
func (b *slowBody) Read(p []byte) (int, error) {
	now := b.clk.Now()
	limit := now.Add(b.wait)
	if slowest := b.began.Add(2*b.wait + time.Duration(b.got)*(time.Second/bodyRate)); slowest.Before(limit) {
		limit = slowest
	}
	_ = b.ctl.SetReadDeadline(limit) // a connection without deadlines is one in a test
	n, err := b.ReadCloser.Read(p)
	b.got += int64(n)
	if err != nil {
		b.end(err)
	}
	return n, err
}

// end takes the deadline away, or what comes after the body would fail by it. A connection whose body didn't come stays dead.
func (b *slowBody) end(err error) {
	if !b.ended && !errors.Is(err, os.ErrDeadlineExceeded) {
		_ = b.ctl.SetReadDeadline(time.Time{})
	}
	b.ended = true
}
