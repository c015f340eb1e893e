package explorer

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
)

// forwarded are the headers of the page's requests that the doors get, besides those that begin with X-Ms-.
var forwarded = []string{"Accept", "Content-Type", "Content-Length", "If-Match", "If-None-Match", "If-Modified-Since",
	"Prefer", "A-Im", "Dataserviceversion", "Maxdataserviceversion", "X-Http-Method", "X-Orrery-Explain",
	"X-Orrery-Strict"}

// bridge sends a request of the page to a door. rest is the decoded path of the door's request, without its first
// slash.
func (e *Explorer) bridge(w http.ResponseWriter, r *http.Request, door, rest string, access Access) {
	var to http.Handler
	switch door {
	case "nosql":
		to = e.o.NoSQL
	case "table":
		to = e.o.Table
	case "gremlin":
		to = e.o.Gremlin
	case "admin":
		to = e.o.Admin
	case "mongo":
		if e.o.Mongo != nil {
			e.mongo(w, r, rest, access)
			return
		}
	}
	if to == nil {
		(&refused{http.StatusNotFound, "NoSuchDoor", "This server doesn't serve the API " + door + "."}).write(w)
		return
	}
	asked, err := inner(r, Prefix+"api/"+door)
	if err != nil {
		(&refused{http.StatusBadRequest, "BadPath", "The path can't be read."}).write(w)
		return
	}
	if access == Reads {
		if why := mayRead(door, asked); why != nil {
			why.write(w)
			return
		}
	}
	if door == "admin" && !adminPath(asked.URL.Path) {
		http.NotFound(w, r)
		return
	}
	e.sign(door, asked)
	if door == "admin" && (access == Reads || !e.o.Auth) {
		asked.Header.Set(HideKey, "true")
	}
	to.ServeHTTP(w, asked)
}

// HideKey is the header of a request to the admin port whose reply shows no key, though the request has it. The page
// signs all of its requests with the account's key, which is not for sessions that may only read, and not for those
// that have shown none.
const HideKey = "X-Orrery-Hide-Key"

// inner returns the door's request inside a request of the page: its path without a prefix, and the headers that doors
// know. What browsers add for the page's own server, such as cookies, isn't passed on.
func inner(r *http.Request, prefix string) (*http.Request, error) {
	target := strings.TrimPrefix(r.URL.EscapedPath(), prefix)
	if target == "" {
		target = "/"
	}
	if r.URL.RawQuery != "" {
		target += "?" + r.URL.RawQuery
	}
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return nil, err
	}
	out := r.WithContext(bare{r.Context()})
	out.URL, out.RequestURI, out.Header = u, target, http.Header{}
	for name, values := range r.Header {
		if strings.HasPrefix(name, "X-Ms-") {
			out.Header[name] = values
		}
	}
	for _, name := range forwarded {
		if v := r.Header[name]; v != nil {
			out.Header[name] = v
		}
	}
	return out, nil
}

// bare is a request's context without its values: a door must not find the connection of the page's listener in it.
type bare struct{ context.Context }

// Value implements context.Context.
func (bare) Value(any) any { return nil }

// sign adds the credentials of the account.
func (e *Explorer) sign(door string, r *http.Request) {
	date := e.o.Clock.Now().Format(http.TimeFormat)
	switch door {
	case "nosql":
		r.Header.Set("X-Ms-Date", date)
		if r.Header.Get("X-Ms-Version") == "" {
			r.Header.Set("X-Ms-Version", "2020-07-15")
		}
		kind, link := resource(r.URL.EscapedPath())
		text := strings.ToLower(r.Method) + "\n" + kind + "\n" + link + "\n" + strings.ToLower(date) + "\n\n"
		r.Header.Set("Authorization", url.QueryEscape("type=master&ver=1.0&sig="+e.mac(text)))
	case "table":
		r.Header.Set("X-Ms-Date", date)
		if r.Header.Get("X-Ms-Version") == "" {
			r.Header.Set("X-Ms-Version", "2019-02-02")
		}
		path := r.URL.EscapedPath()
		r.Header.Set("Authorization", "SharedKeyLite "+e.o.Account+":"+e.mac(date+"\n/"+e.o.Account+path))
	case "gremlin":
		r.SetBasicAuth(e.o.Account, e.o.Key)
	case "admin":
		r.Header.Set("Authorization", "Bearer "+e.o.Key)
	}
	if !e.o.Auth && door != "admin" {
		r.Header.Del("Authorization")
	}
}

// mac returns the HMAC-SHA256 of a text under the account's key, in base64.
func (e *Explorer) mac(text string) string {
	key, _ := base64.StdEncoding.DecodeString(e.o.Key) // the server's configuration has been checked
	m := hmac.New(sha256.New, key)
	m.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(m.Sum(nil))
}

// resource returns the kind of resource and the link that a signature of the NoSQL API is about. The path is escaped,
// because an id may contain a slash; the link is signed as it is sent.
//
//	/dbs/shop/colls            colls, dbs/shop: the feed of a database
//	/dbs/shop/colls/products   colls, dbs/shop/colls/products
//	/offers/x1y2               offers, x1y2: an offer is signed by its id alone
func resource(path string) (kind, link string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	n := len(parts)
	switch {
	case path == "/":
		return "", ""
	case parts[0] == "offers" && n == 2:
		return "offers", strings.ToLower(parts[1])
	case n%2 == 0:
		return parts[n-2], strings.Join(parts, "/")
	}
	return parts[n-1], strings.Join(parts[:n-1], "/")
}

// adminPath reports whether the page may use a path of the admin port: its profiles are for the shell.
func adminPath(path string) bool {
	switch path {
	case "/status", "/metrics", "/orrery/connect", "/orrery/partitions", "/orrery/requests":
		return true
	}
	return false
}
