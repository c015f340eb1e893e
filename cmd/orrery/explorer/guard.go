package explorer

import (
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// The guard of the page. A cookie is no guard on this machine: browsers send a cookie of 127.0.0.1:A to every other
// port of 127.0.0.1, also one with SameSite=Strict, and a page on another port may send requests that carry it. So:
//
//  1. A request of another page is refused, also one that only reads. Browsers say in Sec-Fetch-Site and Origin which
//     page a request comes from; where both are missing, the client is no browser.
//  2. The host name must be one of the server's, unless only a secret key opens the page (DNS rebinding).
//  3. A request for a door needs the token of a log-in in a header, which other pages can't know, and the cookie of the
//     same log-in, which scripts can't read.
//  4. Bodies are JSON: forms and other requests that browsers send without asking have other types.
//  5. The page's own policy forbids code from elsewhere, markup made from text, and frames around it.
//
// Example: a page on http://127.0.0.1:3000 runs fetch("http://127.0.0.1:8080/_explorer/api/nosql/dbs", {credentials:
// "include"}). The browser adds the cookie, and "Sec-Fetch-Site: same-site", for which the request is refused.

// policy is the Content-Security-Policy of the page. The one policy of trusted types is for the address of the worker.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " +
	"connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types orrery-worker"

// secure sets the headers that every reply has.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
}

// refused is the reply to a request that the page's guard doesn't let through.
type refused struct {
	status  int
	code    string
	message string
}

func (f *refused) write(w http.ResponseWriter) {
	writeJSON(w, f.status, map[string]string{"code": f.code, "message": f.message})
}

// refusal returns why a request is refused, or nil.
func (e *Explorer) refusal(r *http.Request) *refused {
	if e.o.Names != nil && !e.o.Names(r.Host) {
		return &refused{http.StatusMisdirectedRequest, "ForeignHost", "This is not a name of the server: open the " +
			"page by its address, or start the server with --public-host."}
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
	default:
		return &refused{http.StatusForbidden, "ForeignPage", "Another page has sent this request. To open this page, " +
			"enter its address in the browser."}
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != scheme(r) || !strings.EqualFold(u.Host, r.Host) {
			return &refused{http.StatusForbidden, "ForeignOrigin", "A page of another origin has sent this request."}
		}
	}
	if r.ContentLength != 0 {
		kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err != nil || kind != "application/json" {
			return &refused{http.StatusUnsupportedMediaType, "NotJSON", "A body must be application/json."}
		}
	}
	return nil
}

// scheme returns the scheme that the browser shows, also behind a proxy that ends TLS.
func scheme(r *http.Request) string {
	if r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") {
		return "https"
	}
	return "http"
}

// overheard reports whether others on the network can read the request: it comes over plain HTTP and not through the
// loopback interface. Then no key is taken.
func overheard(r *http.Request) bool {
	if r.TLS != nil {
		return false
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil {
		return false
	}
	host, _, err := net.SplitHostPort(local.String())
	ip := net.ParseIP(host)
	return err == nil && ip != nil && !ip.IsLoopback()
}
