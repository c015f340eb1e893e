package sqlapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core/status"
)

// A resource token is the _token of a permission: type=resource&ver=1&sig=<base64 of 16 bytes>;<base64 of the body>;
// The body carries all that the token allows, so that no look-up of the permission is needed; the 16 bytes are its
// HMAC. A token therefore lives until it expires, whatever becomes of its permission (the service is the same). Body,
// format 1:
//
//	format u8, mode u8 ('R' or 'A'), expiry in seconds since 1970 u64, 8 random bytes, container's _rid 8 bytes,
//	length of the child's path u16, child's path ("docs/x"; empty: the whole container), partition key as JSON (empty:
//	    all)
const tokenFormat = 1

const tokenHead = 1 + 1 + 8 + 8 + 8 + 2

// tokenMAC is how many bytes of the HMAC stand in a token: as many as the service's.
const tokenMAC = 16

// Lifetime of tokens in seconds.
const (
	defaultTokenLife = 3600
	minTokenLife     = 10
	maxTokenLife     = 86400
)

// grant is what a resource token allows.
type grant struct {
	all    bool // else Read
	expiry int64
	coll   [8]byte
	child  string // "docs/id"; "": the container and all in it
	key    string // partition key that it is bound to, as the header writes it; "": all
}

// id stands for what a token allows; 0 is the master key. Tokens that allow the same have the same.
func (g *grant) id() uint64 {
	if g == nil {
		return 0
	}
	return xxhash.Sum64String(fmt.Sprintf("%t\x00%x\x00%s\x00%s", g.all, g.coll, g.child, g.key))
}

// tokenSigner makes and opens resource tokens. Safe for concurrent use.
type tokenSigner struct{ key []byte }

// newTokenSigner derives the tokens' own key, so that no signature of a token is ever one of a request.
func newTokenSigner(accountKey []byte) *tokenSigner {
	m := hmac.New(sha256.New, accountKey)
	m.Write([]byte("orrery resource tokens 1"))
	return &tokenSigner{m.Sum(nil)}
}

func (s *tokenSigner) mac(body []byte) []byte {
	m := hmac.New(sha256.New, s.key)
	m.Write(body)
	return m.Sum(nil)[:tokenMAC]
}

// seal makes the token of a grant; nonce makes it differ from every other.
func (s *tokenSigner) seal(g *grant, nonce [8]byte) string {
	mode := byte('R')
	if g.all {
		mode = 'A'
	}
	b := append(make([]byte, 0, tokenHead+len(g.child)+len(g.key)), tokenFormat, mode)
	b = binary.BigEndian.AppendUint64(b, uint64(g.expiry))
	b = append(b, nonce[:]...)
	b = append(b, g.coll[:]...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(g.child)))
	b = append(b, g.child...)
	b = append(b, g.key...)
	return "type=resource&ver=1&sig=" + base64.StdEncoding.EncodeToString(s.mac(b)) + ";" +
		base64.StdEncoding.EncodeToString(b) + ";"
}

// open checks a token, of which the percent-encoding is undone, and returns what it allows.
func (s *tokenSigner) open(token string, now time.Time) (*grant, error) {
	_, sig, ok := strings.Cut(token, "&sig=")
	if !ok {
		return nil, errBadToken
	}
	mac, rest, _ := strings.Cut(sig, ";")
	body, tail, ok := strings.Cut(rest, ";")
	if !ok || tail != "" {
		return nil, errBadToken
	}
	m, err1 := base64.StdEncoding.Strict().DecodeString(mac)
	b, err2 := base64.StdEncoding.Strict().DecodeString(body)
	if err1 != nil || err2 != nil {
		return nil, errBadToken
	}
	if subtle.ConstantTimeCompare(m, s.mac(b)) != 1 || len(b) < tokenHead || b[0] != tokenFormat {
		return nil, errForeignToken
	}
	n := int(binary.BigEndian.Uint16(b[tokenHead-2:]))
	if len(b) < tokenHead+n {
		return nil, errForeignToken
	}
	g := &grant{all: b[1] == 'A', expiry: int64(binary.BigEndian.Uint64(b[2:])),
		child: string(b[tokenHead : tokenHead+n]), key: string(b[tokenHead+n:])}
	copy(g.coll[:], b[18:26])
	if now.Unix() >= g.expiry {
		return nil, errExpiredToken
	}
	return g, nil
}

var (
	errForeignToken = status.New(status.Unauthorized, "The input authorization token can't serve the request. The "+
		"resource token is not one of this account.")
	errExpiredToken = status.New(status.Forbidden, "The authorization token is not valid at the current time. "+
		"Please create another token and retry.")
	errNoRight = status.New(status.Forbidden, "Insufficient permissions provided in the authorization header for "+
		"the corresponding request. Please retry with another authorization header.")
)
