package server

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/orrerydb/orrery/cmd/orrery/certs"
)

// This file is what stands before every HTTP door. A browser on this machine, or on one that reaches the server, also
// sends what pages of strangers want it to send. Two checks keep such requests out where a request needs nothing that
// only its sender has:
//   - the name that a request asks for must be the server's: a page may let a name of its own point here (DNS
//     rebinding), and is then of the same origin;
//   - a request that a page makes must come from a page of the server's own.
//
// A signature, a token and a login on a WebSocket are such a thing: no browser adds them by itself. A login by Basic
// isn't.

// guard is what a door asks of a request before anything else.
type guard struct {
	names  []string // names that it may be asked for; nil: any
	sites  bool     // requests of other sites' pages are refused
	visits bool     // a link that somebody follows isn't
	free   []string // paths that anybody may ask for
	login  bool     // a WebSocket has a login of its own
}

// newGuard makes the guard of a door.
func (s *Server) newGuard(door string) *guard {
	anonymous := !s.cfg.Auth || door == Admin
	g := &guard{sites: anonymous || door == Gremlin, visits: door != Gremlin, login: door == Gremlin && s.cfg.Auth}
	if anonymous && !s.cfg.Insecure {
		g.names = s.hostNames()
	}
	if door == Admin {
		g.free = []string{"/alive", "/ready"}
	}
	return g
}

// refuse answers a request that must not come in, and reports whether it did.
func (g *guard) refuse(w http.ResponseWriter, r *http.Request) bool {
	if slices.Contains(g.free, r.URL.Path) {
		return false
	}
	if g.names != nil && !ownHost(r.Host, g.names) {
		w.Header().Set("Connection", "close")
		plain(w, http.StatusMisdirectedRequest, fmt.Sprintf("%.100q is not a name of this server, which asks nobody "+
			"here "+
			"who they are: give --public-host, or ask for it by its address.\n", r.Host))
		return true
	}
	if g.sites && g.foreign(r) {
		plain(w, http.StatusForbidden, "Requests that pages of other sites make are refused here.\n")
		return true
	}
	return false
}

// foreign reports whether a browser sends a request because a page of another site wants it. Current browsers say so
// in Sec-Fetch-Site, which no page can change; where it is missing the page's origin must be the server's.
func (g *guard) foreign(r *http.Request) bool {
	if g.login && strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return false
	}
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "":
	case "same-origin", "none":
		return false
	default:
		return !g.visits || r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Method != http.MethodGet
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	u, err := url.Parse(origin)
	return err != nil || !strings.EqualFold(u.Host, r.Host)
}

// guarded puts a door's guard before its handler, and sees to it that bodies come.
func (s *Server) guarded(door string, h http.Handler) http.Handler {
	g := s.newGuard(door)
	wait := s.cfg.bodyTimeout()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.refuse(w, r) {
			return
		}
		if r.ContentLength == 0 {
			h.ServeHTTP(w, r)
			return
		}
		if r.ContentLength < 0 {
			// It may have had a Content-Length too, which net/http throws away. Somebody between here and the client
			// may have gone by that one, and take what follows for another request (RFC 9112, 6.1): so nothing
			// follows.
			w.Header().Set("Connection", "close")
		}
		b := newSlowBody(w, r, wait)
		r.Body = b
		h.ServeHTTP(w, r)
		b.leave()
	})
}

// hostNames are the names under which a server is asked for that asks for no credentials.
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

// ownHost reports whether a Host header may be meant for this server: addresses can't be rebound, and browsers always
// send one.
func ownHost(host string, names []string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
	return host == "" || net.ParseIP(host) != nil || host == "localhost" || strings.HasSuffix(host, ".localhost") ||
		slices.Contains(names, host)
}
