package sqlapi

import (
	"net/http"
	"net/url"
	"strings"
)

// tidy returns a request whose path has no empty segment: SDKs tolerate leading, trailing and doubled slashes in
// links, and so does the service. Nearly every path is as it should be; then it is the request itself.
func tidy(r *http.Request) *http.Request {
	if isTidy(r.URL.Path) && (r.URL.RawPath == "" || isTidy(r.URL.RawPath)) {
		return r
	}
	u, next := *r.URL, *r
	if u.RawPath != "" {
		u.RawPath = tidied(u.RawPath)
		u.Path, _ = url.PathUnescape(u.RawPath) // net/url has parsed it before
	} else {
		u.Path = tidied(u.Path)
	}
	next.URL = &u
	return &next
}

// isTidy reports whether a path is the root or has no empty segment.
func isTidy(p string) bool {
	return p == "/" || p != "" && p[0] == '/' && p[len(p)-1] != '/' && !strings.Contains(p, "//")
}

func tidied(p string) string {
	b := make([]byte, 0, len(p)+1)
	for len(p) > 0 {
		var s string
		if s, p, _ = strings.Cut(p, "/"); s != "" {
			b = append(append(b, '/'), s...)
		}
	}
	if len(b) == 0 {
		return "/"
	}
	return string(b)
}

// segments cuts a path into decoded segments. Each is decoded on its own, so an encoded '/' stays inside its id. It
// is for links in bodies and for what is rare: the router cuts the paths of requests.
func segments(u *url.URL) (segs []string, ok bool) {
	text, encoded := u.Path, false
	if u.RawPath != "" {
		text, encoded = u.RawPath, true
	}
	for s := range strings.SplitSeq(text, "/") {
		if encoded {
			d, err := url.PathUnescape(s)
			if err != nil {
				return nil, false
			}
			s = d
		}
		if s != "" {
			segs = append(segs, s)
		}
	}
	return segs, true
}

// signed is what the signature of a request is about: the type of its resource, and the link of the resource itself
// or of the parent of a feed. Names keep their case.
type signed struct{ typ, link string }

// signedOf gives type and link of a tidy path. It cuts them out: nothing is copied, but where something is encoded.
func signedOf(u *url.URL) signed {
	if u.RawPath == "" {
		return cutSigned(u.Path)
	}
	s := cutSigned(u.RawPath)
	if link, err := url.PathUnescape(s.link); err == nil {
		s.link = link
	}
	return s
}

// cutSigned cuts "/dbs/d/colls" to {"colls", "dbs/d"} and "/dbs/d/colls/c" to {"colls", "dbs/d/colls/c"}.
func cutSigned(p string) signed {
	p = strings.Trim(p, "/")
	last := strings.LastIndexByte(p, '/')
	if strings.Count(p, "/")%2 == 0 { // the last segment is a type: a feed, or the account
		return signed{p[last+1:], p[:max(last, 0)]}
	}
	return signed{p[strings.LastIndexByte(p[:last], '/')+1 : last], p}
}
