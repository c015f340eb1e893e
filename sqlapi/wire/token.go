package wire

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
	DefaultTokenLife = 3600
	MinTokenLife     = 10
	MaxTokenLife     = 86400
)

// Grant is what a resource token allows.
type Grant struct {
	All    bool // else Read
	Expiry int64
	Coll   [8]byte
	Child  string // "docs/id"; "": the container and all in it
	Key    string // partition key that it is bound to, as the header writes it; "": all
}

// Owner identifies what a token allows; 0 is the master key. Tokens that allow the same have the same.
func (g *Grant) Owner() uint64 {
	if g == nil {
		return 0
	}
	return xxhash.Sum64String(fmt.Sprintf("%t\x00%x\x00%s\x00%s", g.All, g.Coll, g.Child, g.Key))
}

// Signer makes and opens resource tokens. Safe for concurrent use.
type Signer struct{ key []byte }

// NewSigner derives the tokens' own key, so that no signature of a token is ever one of a request.
func NewSigner(accountKey []byte) *Signer {
	m := hmac.New(sha256.New, accountKey)
	m.Write([]byte("orrery resource tokens 1"))
	return &Signer{m.Sum(nil)}
}

func (s *Signer) mac(body []byte) []byte {
	m := hmac.New(sha256.New, s.key)
	m.Write(body)
	return m.Sum(nil)[:tokenMAC]
}

// Seal makes the token of a grant; nonce makes it differ from every other.
func (s *Signer) Seal(g *Grant, nonce [8]byte) string {
	mode := byte('R')
	if g.All {
		mode = 'A'
	}
	b := append(make([]byte, 0, tokenHead+len(g.Child)+len(g.Key)), tokenFormat, mode)
	b = binary.BigEndian.AppendUint64(b, uint64(g.Expiry))
	b = append(b, nonce[:]...)
	b = append(b, g.Coll[:]...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(g.Child)))
	b = append(b, g.Child...)
	b = append(b, g.Key...)
	return "type=resource&ver=1&sig=" + base64.StdEncoding.EncodeToString(s.mac(b)) + ";" +
		base64.StdEncoding.EncodeToString(b) + ";"
}

// Open checks a token, without its percent-encoding, and returns what it allows.
func (s *Signer) Open(token string, now time.Time) (*Grant, error) {
	_, sig, ok := strings.Cut(token, "&sig=")
	if !ok {
		return nil, ErrBadToken
	}
	mac, rest, _ := strings.Cut(sig, ";")
	body, tail, ok := strings.Cut(rest, ";")
	if !ok || tail != "" {
		return nil, ErrBadToken
	}
	m, err1 := base64.StdEncoding.Strict().DecodeString(mac)
	b, err2 := base64.StdEncoding.Strict().DecodeString(body)
	if err1 != nil || err2 != nil {
		return nil, ErrBadToken
	}
	if subtle.ConstantTimeCompare(m, s.mac(b)) != 1 || len(b) < tokenHead || b[0] != tokenFormat {
		return nil, errForeignToken
	}
	n := int(binary.BigEndian.Uint16(b[tokenHead-2:]))
	if len(b) < tokenHead+n {
		return nil, errForeignToken
	}
	g := &Grant{All: b[1] == 'A', Expiry: int64(binary.BigEndian.Uint64(b[2:])),
		Child: string(b[tokenHead : tokenHead+n]), Key: string(b[tokenHead+n:])}
	copy(g.Coll[:], b[18:26])
	if now.Unix() >= g.Expiry {
		return nil, errExpiredToken
	}
	return g, nil
}

var (
	errForeignToken = status.New(status.Unauthorized, "The input authorization token can't serve the request. The "+
		"resource token is not one of this account.")
	errExpiredToken = status.New(status.Forbidden, "The authorization token is not valid at the current time. "+
		"Please create another token and retry.")
)

var ErrBadToken = status.New(status.Unauthorized, "The input authorization token is not of the form "+
	"type={typeoftoken}&ver={version}&sig={hashsignature}, url-encoded.")
