package sqlapi

import (
	"net/http"
	"net/url"
	"strings"
)

// kind is the type of a resource in a path.
type kind uint8

const (
	kNone kind = iota
	kDatabase
	kContainer
	kItem
	kSproc
	kTrigger
	kUDF
	kUser
	kPermission
	kOffer
	kRange
	kConflict
	kAttachment
	kEncryptionKey
	kOperation
	kAddress
	kSchema
)

// kindOf gives the kind of a path segment.
func kindOf(segment string) kind {
	switch segment {
	case "dbs":
		return kDatabase
	case "colls":
		return kContainer
	case "docs":
		return kItem
	case "pkranges":
		return kRange
	case "offers":
		return kOffer
	case "sprocs":
		return kSproc
	case "triggers":
		return kTrigger
	case "udfs":
		return kUDF
	case "users":
		return kUser
	case "permissions":
		return kPermission
	case "conflicts":
		return kConflict
	case "attachments":
		return kAttachment
	case "clientencryptionkeys":
		return kEncryptionKey
	case "operations":
		return kOperation
	case "addresses":
		return kAddress
	case "schemas":
		return kSchema
	}
	return kNone
}

// maxSegments bounds a path: dbs/d/colls/c/docs/i/attachments/a is the longest.
const maxSegments = 8

// path is a request path cut into decoded segments.
type path struct {
	seg [maxSegments]string
	n   int
	raw string // as sent, without leading and trailing slashes; "" when seg joined by '/' is the same
}

// parsePath cuts a URL's path. Empty segments are dropped: SDKs tolerate leading, trailing and doubled slashes in links,
// and so does the service. Each segment is decoded on its own, so an encoded '/' stays inside its id.
func parsePath(u *url.URL) (p path, ok bool) {
	text, encoded := u.Path, false
	if u.RawPath != "" {
		text, encoded = u.RawPath, true
	}
	p.raw = strings.Trim(u.EscapedPath(), "/")
	for len(text) > 0 {
		s := text
		if i := strings.IndexByte(text, '/'); i >= 0 {
			s, text = text[:i], text[i+1:]
		} else {
			text = ""
		}
		if s == "" {
			continue
		}
		if p.n == maxSegments {
			return p, false
		}
		if encoded {
			d, err := url.PathUnescape(s)
			if err != nil {
				return p, false
			}
			s = d
		}
		p.seg[p.n] = s
		p.n++
	}
	return p, true
}

// key packs the types of a path and whether it ends in an id: what the route table is looked up by.
func (p *path) key() uint32 {
	k := uint32(0)
	for i := 0; i < p.n; i += 2 {
		c := kindOf(p.seg[i])
		if c == kNone {
			return ^uint32(0)
		}
		k = k<<5 | uint32(c)
	}
	k <<= 1
	if p.n%2 == 0 && p.n > 0 {
		k |= 1
	}
	return k
}

// resourceType is the type that a request for this path is signed with: the last type name.
func (p *path) resourceType() string {
	switch {
	case p.n == 0:
		return ""
	case p.n%2 == 1:
		return p.seg[p.n-1]
	}
	return p.seg[p.n-2]
}

// link appends the resource link that a request for this path is signed with: the resource itself, or the parent of a feed.
func (p *path) link(dst []byte) []byte {
	n := p.n &^ 1
	for i := 0; i < n; i++ {
		if i > 0 {
			dst = append(dst, '/')
		}
		dst = append(dst, p.seg[i]...)
	}
	return dst
}

// Methods, as indexes of a route's handlers.
const (
	mGet = iota
	mPost
	mPut
	mPatch
	mDelete
	methods
)

func methodIndex(m string) int {
	switch m {
	case http.MethodGet:
		return mGet
	case http.MethodPost:
		return mPost
	case http.MethodPut:
		return mPut
	case http.MethodPatch:
		return mPatch
	case http.MethodDelete:
		return mDelete
	}
	return -1
}

// handler serves one verb of one resource. What it returns as an error is written by call.fail.
type handler func(c *call) error

// route is one line of the registry: a path pattern, and its verbs' handlers. A resource that we know and do not serve has
// its line too, with unsupported as handler, so that clients get an honest answer and docs/compat/sql-rest.md has a source.
type route struct {
	pattern string
	verbs   [methods]handler
}

// table compiles the registry. Two routes of one key are a fault of ours.
func table(rs []route) map[uint32]*route {
	t := make(map[uint32]*route, len(rs))
	for i := range rs {
		p, ok := parsePath(&url.URL{Path: rs[i].pattern})
		k := p.key()
		if !ok || k == ^uint32(0) || t[k] != nil {
			panic("sqlapi: bad or double route " + rs[i].pattern)
		}
		t[k] = &rs[i]
	}
	return t
}
