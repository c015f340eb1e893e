package sqlapi

import (
	"net/http"
	"net/url"
	"strings"
)

// tidy returns a request whose path has no empty segments. SDKs and the service accept leading, trailing and doubled
// slashes in links. If the path has none, which is nearly always so, tidy returns r itself.
func tidy(r *http.Request) *http.Request {
	if isTidy(r.URL.Path) && (r.URL.RawPath == "" || isTidy(r.URL.RawPath)) {
		return r
	}
	u, next := *r.URL, *r
	if u.RawPath != "" {
		u.RawPath = tidied(u.RawPath)
		u.Path, _ = url.PathUnescape(u.RawPath) // net/url has parsed it already
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

// segments splits a path into decoded segments. Each segment is decoded separately, so an encoded '/' stays part of its
// id. It is used for links in bodies and for rare requests. The router splits the paths of other requests.
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

// signed is the type and the link that a request's signature covers. The link is that of the resource itself, or for a
// feed that of its parent. Names keep their case.
type signed struct{ typ, link string }

// signedOf returns type and link of a tidy path. They are substrings of the path; only a path with encoded characters
// is copied.
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

// cutSigned returns type and link of a path. Examples: "/dbs/d/colls" gives {"colls", "dbs/d"}, and "/dbs/d/colls/c"
// gives {"colls", "dbs/d/colls/c"}.
func cutSigned(p string) signed {
	p = strings.Trim(p, "/")
	last := strings.LastIndexByte(p, '/')
	if strings.Count(p, "/")%2 == 0 { // the last segment is a type: a feed, or the account
		return signed{p[last+1:], p[:max(last, 0)]}
	}
	return signed{p[strings.LastIndexByte(p[:last], '/')+1 : last], p}
}
