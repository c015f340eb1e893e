package tableapi

import (
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strings"
	"time"
)

// maxSkew is the largest allowed difference between a request's date and our clock.
const maxSkew = 15 * time.Minute

// authenticate checks the request's credentials: SharedKey or SharedKeyLite (header Authorization), or a shared access
// signature (query parameter sig). c.grant says what a SAS permits. The account key permits everything.
//
// Example: the client sends "Authorization: SharedKey acct:c2ln...". The server builds the same string to sign from the
// request, computes its HMAC-SHA256 with the account key, and compares it with the decoded signature. If they differ,
// the reply is 403 AuthenticationFailed.
func (c *call) authenticate() error {
	if !c.s.o.Auth {
		return nil
	}
	header := c.In["Authorization"]
	if len(header) == 0 {
		if c.param("sig") != "" {
			return c.checkSAS()
		}
		c.Set("Www-Authenticate", "SharedKey, SharedKeyLite")
		return authError("NoAuthenticationInformation")
	}
	scheme, cred, ok := strings.Cut(header[0], " ")
	if !ok {
		return authError("InvalidAuthenticationInfo")
	}
	lite := scheme == "SharedKeyLite"
	if !lite && scheme != "SharedKey" {
		if scheme == "Bearer" {
			return authErrorMsg("AuthenticationFailed", "Server failed to authenticate the request. Bearer tokens "+
				"are not supported.")
		}
		return authError("InvalidAuthenticationInfo")
	}
	account, sig, ok := strings.Cut(strings.TrimSpace(cred), ":")
	if !ok {
		return authError("InvalidAuthenticationInfo")
	}
	if account != c.s.o.Account {
		return authErrorMsg("AuthenticationFailed", "Server failed to authenticate the request. The account of the "+
			"Authorization header is not this one.")
	}
	date, err := c.checkDate()
	if err != nil {
		return err
	}
	if !c.signed(c.appendStringToSign(c.Out[:0], date, lite), sig) {
		return authError("AuthenticationFailed")
	}
	return nil
}

// checkDate returns the date that is part of the signed text, and checks it against the clock.
func (c *call) checkDate() (string, error) {
	var date string
	if d := c.In["X-Ms-Date"]; len(d) > 0 {
		date = d[0]
	} else if d := c.In["Date"]; len(d) > 0 {
		date = d[0]
	}
	t, err := http.ParseTime(date)
	if err != nil {
		return "", authErrorMsg("AuthenticationFailed", "Server failed to authenticate the request. The x-ms-date "+
			"or Date header is missing or malformed.")
	}
	if d := c.s.o.Wall.Now().Sub(t); d > maxSkew || d < -maxSkew {
		return "", authErrorMsg("AuthenticationFailed", "Server failed to authenticate the request. The date of the "+
			"request is more than 15 minutes from the server's time.")
	}
	return date, nil
}

// appendStringToSign appends the text that the two schemes sign (Authorize with Shared Key, table service). The
// resource is the account followed by the path as sent, so in path style the account occurs in it twice.
func (c *call) appendStringToSign(dst []byte, date string, lite bool) []byte {
	if !lite {
		dst = append(append(dst, c.Request.Method...), '\n')
		dst = append(append(dst, c.In.Get("Content-Md5")...), '\n')
		dst = append(append(dst, c.In.Get("Content-Type")...), '\n')
	}
	dst = append(append(dst, date...), "\n/"...)
	dst = append(append(dst, c.s.o.Account...), c.path...)
	if c.path == "" {
		dst = append(dst, '/')
	}
	if comp := c.param("comp"); comp != "" {
		dst = append(append(dst, "?comp="...), comp...)
	}
	return dst
}

// signed reports whether sig is the base64 signature of text. text is in c.Out, whose memory is reused.
func (c *call) signed(text []byte, sig string) bool {
	var want, got [48]byte
	c.Out = text
	w := c.s.sign(want[:0], text)
	if len(sig) != base64.StdEncoding.EncodedLen(len(w)) {
		return false
	}
	g, err := base64.StdEncoding.AppendDecode(got[:0], []byte(sig))
	return err == nil && subtle.ConstantTimeCompare(w, g) == 1
}
