package server

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/orrerydb/orrery/cmd/orrery/certs"
	"github.com/orrerydb/orrery/cmd/orrery/explorer"
)

// The checks before every HTTP door. A browser that can reach the server also sends requests on behalf of pages of
// other sites. Two checks refuse such requests, unless a request contains a secret that only its sender has:
//
//   - The host name of the request must be one of the server's. A page can let its own host name point to this machine
//     (DNS rebinding), and then has the same origin as the server.
//   - A request that a page sends must come from a page of the server.
//
// Secrets are a signature, a token, and a login on a WebSocket: no browser adds them by itself. Basic authentication
// isn't one, because browsers add it.
//
// Example: a page of evil.example runs fetch("http://localhost:8081/dbs"). The browser adds "Sec-Fetch-Site:
// cross-site", so the request is refused. If evil.example resolves to 127.0.0.1, the request to
// http://evil.example:8081 has the Host evil.example, which isn't a name of the server, and is refused too.

// guard decides whether a request may pass to a door.
type guard struct {
	names  []string // allowed host names; nil = any
	sites  bool     // requests from pages of other sites are refused
	visits bool     // but a link that a user follows is allowed
	free   []string // paths that are allowed for all
	login  bool     // WebSockets are allowed, because they have their own login
}

// newGuard returns the guard of a door.
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

// refuse replies to a request that isn't allowed, and reports whether it did.
func (g *guard) refuse(w http.ResponseWriter, r *http.Request) bool {
	if slices.Contains(g.free, r.URL.Path) {
		return false
	}
	if g.names != nil && !ownHost(r.Host, g.names) {
		w.Header().Set("Connection", "close")
		plain(w, http.StatusMisdirectedRequest, fmt.Sprintf("%.100q is not a name of this server, which asks nobody "+
			"here who they are: give --public-host, or ask for it by its address.\n", r.Host))
		return true
	}
	if g.sites && g.foreign(r) {
		plain(w, http.StatusForbidden, "Requests that pages of other sites make are refused here.\n")
		return true
	}
	return false
}

// foreign reports whether a browser sends the request on behalf of a page of another site. Current browsers say so in
// the header Sec-Fetch-Site, which pages can't set. If it is missing, the page's origin must be the server's.
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

// guarded puts a door's guard before its handler, and limits the time of request bodies.
func (s *Server) guarded(door string, h http.Handler) http.Handler {
	g := s.newGuard(door)
	wait := s.cfg.bodyTimeout()
	guarded := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.refuse(w, r) {
			return
		}
		if r.ContentLength == 0 {
			h.ServeHTTP(w, r)
			return
		}
		if r.ContentLength < 0 {
			// The request may also have had a Content-Length, which net/http drops. An intermediary may have used that
			// one, and would send the rest of the body as another request (RFC 9112, 6.1). So the connection takes no
			// further request.
			w.Header().Set("Connection", "close")
		}
		b := newSlowBody(w, r, wait)
		r.Body = b
		h.ServeHTTP(w, r)
		b.leave()
	})
	if door != NoSQL && door != Table {
		return guarded
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.seen.watch.on.Load() && !explorer.Handles(r) {
			s.seen.watch.recorded(door, guarded, w, r)
			return
		}
		guarded.ServeHTTP(w, r)
	})
}

// hostNames returns the host names that are allowed without credentials.
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

// ownHost reports whether a Host header may name this server. Addresses are allowed, because DNS can't rebind them, and
// so is a missing header, because browsers always send one.
func ownHost(host string, names []string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
	return host == "" || net.ParseIP(host) != nil || host == "localhost" || strings.HasSuffix(host, ".localhost") ||
		slices.Contains(names, host)
}
