package sqlapi

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"hash"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/sqlapi/wire"
)

// maxSkew is the largest allowed difference between a request's date and the server's time.
const maxSkew = 15 * time.Minute

// authority checks the authorization of requests. It has two invariants:
//  1. Signatures are compared in constant time, also those that fail.
//  2. Nothing of a request but its path, verb, headers and date is looked at before it has passed.
type authority struct {
	clock *clock.Clock
	mac   sync.Pool // *keyedMAC
	aad   []byte    // third part of the emulator's own AAD token: base64url of the key's text
	date  atomic.Pointer[parsedDate]

	// byRID reports whether each id of a link is a resource id, and not a name.
	byRID func(ctx context.Context, segments []string) (bool, error)

	tokens *wire.Signer
}

// parsedDate is the last date that was parsed. Clients send the same text for up to a second.
type parsedDate struct {
	text string
	at   time.Time
}

func newAuthority(key string, c *clock.Clock, byRID func(context.Context, []string) (bool, error)) (*authority,
	error) {
	k, err := base64.StdEncoding.DecodeString(key)
	if err != nil || len(k) == 0 {
		return nil, status.New(status.BadRequest, "the account key is not base64")
	}
	a := &authority{clock: c, byRID: byRID, aad: []byte(base64.RawURLEncoding.EncodeToString([]byte(key)))}
	a.tokens = wire.NewSigner(k)
	a.mac.New = func() any { return &keyedMAC{h: hmac.New(sha256.New, k)} }
	return a, nil
}

// keyedMAC is a hash that is keyed with the account key, and the buffers for one check. Reset restores the keyed state,
// so the key is hashed once per keyedMAC and not once per request.
type keyedMAC struct {
	h          hash.Hash
	link, text []byte
	sum        [sha256.Size]byte
	want       [macText]byte
}

// match reports whether sig is the signature of a payload. The comparison takes constant time.
func (k *keyedMAC) match(sig []byte, method, typ string, link []byte, date string) bool {
	k.text = appendPayload(k.text[:0], method, typ, link, date)
	k.h.Reset()
	k.h.Write(k.text)
	base64.StdEncoding.Encode(k.want[:], k.h.Sum(k.sum[:0]))
	return subtle.ConstantTimeCompare(k.want[:], sig) == 1
}

var masterPrefix = []byte("type=master&ver=1.0&sig=")

// macText is the length of an HMAC-SHA-256 in base64.
const macText = 44

// check verifies the authorization of a call.
func (a *authority) check(c *call) error {
	v := header(c.In, hAuthorization)
	if v == "" {
		return status.New(status.Unauthorized, "Required Header authorization is missing. Ensure a valid "+
			"Authorization token is passed.")
	}
	if len(v) > 16<<10 {
		return wire.ErrBadToken
	}
	var room [256]byte
	token, ok := percentDecode(room[:0], v)
	if !ok {
		return wire.ErrBadToken
	}
	if sig, ok := bytes.CutPrefix(token, masterPrefix); ok {
		if len(sig) != macText {
			return wire.ErrBadToken
		}
		return a.checkMaster(c, sig)
	}
	switch {
	case strings.HasPrefix(string(token), "type=aad&"):
		return a.checkAAD(string(token))
	case strings.HasPrefix(string(token), "type=resource&"):
		g, err := a.tokens.Open(string(token), a.clock.Now())
		c.grant = g
		return err
	}
	return wire.ErrBadToken
}

// checkMaster verifies a master-key signature over verb, type, link and date. Example: GET /dbs/d/colls/c is signed as
//
//	get
//	colls
//	dbs/d/colls/c
//	mon, 02 jan 2006 15:04:05 gmt
//	(an empty line)
//
// Clients differ in the link that they sign:
//
//	the decoded link, as it is            every SDK, for names
//	the link as sent, percent-encoded     some, for ids with such characters
//	the link in lower case                by resource ids only: .NET, Java and Python when they follow a _self
//	its last id alone, in lower case      by resource ids only: Java, .NET, and all for offers
//
// A signature over the lower-case link is only accepted when each id in the link is a resource id. A link with a name
// must be signed in its own case. Otherwise a signature for "colls/case" would also be valid for "colls/Case".
func (a *authority) checkMaster(c *call, sig []byte) error {
	date := header(c.In, hDate)
	if date == "" {
		date = header(c.In, hPlainDate)
	}
	if err := a.checkDate(date); err != nil {
		return err
	}
	k := a.mac.Get().(*keyedMAC)
	defer a.mac.Put(k)

	s := signedOf(c.Request.URL)
	k.link = append(k.link[:0], s.link...)
	if k.match(sig, c.Request.Method, s.typ, k.link, date) {
		return nil
	}
	others, byRID, segs := otherForms(c.Request.URL, s)
	matches := func(o signed) bool { return k.match(sig, c.Request.Method, o.typ, []byte(o.link), date) }
	if slices.ContainsFunc(others, matches) {
		return nil
	}
	if slices.ContainsFunc(byRID, matches) {
		if ok, err := a.byRID(c.Ctx(), segs); ok || err != nil {
			return err
		}
	}
	if strings.Trim(c.Request.URL.Path, "/") == "addresses" {
		return errDirect
	}
	return status.New(status.Unauthorized, "The input authorization token can't serve the request. The wrong key is "+
		"being used or the expected payload is not built as per the protocol. "+
		"For more info: https://aka.ms/cosmosdb-tsg-unauthorized. Server used the following payload to sign: '%s'",
		appendPayload(nil, c.Request.Method, s.typ, k.link, date))
}

// errDirect is about a request for the addresses of replicas. Clients sign it by rules of their own, with the resource
// that they are about to ask for, so their key seems to be wrong. What is wrong is their connection mode.
var errDirect = status.New(status.Unauthorized, "This server has no replicas to connect to. Connect in gateway mode: "+
	"ConnectionMode.Gateway in .NET, gatewayMode() in Java.")

// appendPayload appends the text that is signed: verb, type, link and date, each on its own line, then an empty line.
func appendPayload(dst []byte, method, typ string, link []byte, date string) []byte {
	dst = appendLower(dst, method)
	dst = append(dst, '\n')
	dst = appendLower(dst, typ)
	dst = append(dst, '\n')
	dst = append(dst, link...)
	dst = append(dst, '\n')
	dst = appendLower(dst, date)
	return append(dst, "\n\n"...)
}

func appendLower(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		ch := s[i]
		if ch >= 'A' && ch <= 'Z' {
			ch |= 0x20
		}
		dst = append(dst, ch)
	}
	return dst
}

// otherForms returns the other types and links that clients sign instead of the plain form, and those that they sign if
// each id of the link segs is a resource id.
func otherForms(u *url.URL, plain signed) (forms, byRID []signed, segs []string) {
	if plain.link == "" {
		return nil, nil, nil
	}
	forms = []signed{{plain.typ, cutSigned(u.EscapedPath()).link}}
	segs, ok := segments(u)
	if !ok {
		return forms, nil, nil
	}
	segs = segs[:len(segs)&^1]
	if len(segs) == 6 && segs[4] == "operations" { // SDKs sign the container's link here, with different types
		segs = segs[:4]
		link := strings.Join(segs, "/")
		forms = append(forms, signed{"colls", link}, signed{"partitionkey", link})
	}
	if len(segs) == 0 {
		return forms, nil, nil
	}
	last := segs[len(segs)-1]
	for _, f := range forms {
		byRID = append(byRID, signed{f.typ, strings.ToLower(f.link)},
			signed{f.typ, strings.ToLower(last)}, signed{f.typ, last})
	}
	return forms, append(byRID, signed{plain.typ, strings.ToLower(plain.link)}), segs
}

// checkDate refuses a date that is missing, malformed or further than maxSkew from the server's time.
func (a *authority) checkDate(text string) error {
	if text == "" {
		return status.New(status.Unauthorized, "The authorization header requires the x-ms-date or date header.")
	}
	d := a.date.Load()
	if d == nil || d.text != text {
		t, err := http.ParseTime(strings.Replace(text, " UTC", " GMT", 1))
		if err != nil {
			if t, err = time.Parse(time.RFC1123, strings.ToUpper(text)); err != nil {
				return status.New(status.Unauthorized, "The date of the request is not in RFC 1123 form.")
			}
		}
		d = &parsedDate{text: strings.Clone(text), at: t}
		a.date.Store(d)
	}
	if skew := a.clock.Now().Sub(d.at); skew > maxSkew || skew < -maxSkew {
		return status.New(status.Unauthorized, "The authorization token is not valid at the current time. Please "+
			"create another token and retry (token time: %s, server time: %s).",
			d.at.UTC().Format(http.TimeFormat), a.clock.Now().Format(http.TimeFormat))
	}
	return nil
}

// checkAAD accepts the emulator's own form of an AAD token: a JWT whose signature part is the account key.
func (a *authority) checkAAD(token string) error {
	const prefix = "type=aad&ver=1.0&sig="
	if !strings.HasPrefix(token, prefix) {
		return wire.ErrBadToken
	}
	jwt := token[len(prefix):]
	i := strings.LastIndexByte(jwt, '.')
	if i < 0 || strings.Count(jwt, ".") != 2 {
		return wire.ErrBadToken
	}
	if subtle.ConstantTimeCompare([]byte(strings.TrimRight(jwt[i+1:], "=")), a.aad) != 1 {
		return status.New(status.Unauthorized, "The token is not one of this account.")
	}
	return nil
}

// percentDecode appends s with each %XX decoded. A '+' is kept, because some clients send base64 without encoding it.
func percentDecode(dst []byte, s string) ([]byte, bool) {
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			dst = append(dst, s[i])
			continue
		}
		if i+2 >= len(s) {
			return nil, false
		}
		hi, ok1 := unhex(s[i+1])
		lo, ok2 := unhex(s[i+2])
		if !ok1 || !ok2 {
			return nil, false
		}
		dst = append(dst, hi<<4|lo)
		i += 2
	}
	return dst, true
}

func unhex(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}
