package server

import (
	"io"
	"net/http"
	"time"
)

// http1Required is what HTTP/2 has for a server that needs HTTP/1.1 (RFC 9113, 7): the server's empty SETTINGS, and a
// GOAWAY with the error HTTP_1_1_REQUIRED.
const http1Required = "\x00\x00\x00\x04\x00\x00\x00\x00\x00" +
	"\x00\x00\x08\x07\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x0d"

// maxPreface is more than a client of HTTP/2 sends before it reads, in bytes.
const maxPreface = 64 << 10

// http1Only refuses connections of clients that begin with HTTP/2 without asking for it, such as the Rust SDK. No door
// speaks it. Such a client goes on with HTTP/1.1 if HTTP/2 itself says so. A reply of HTTP/1.1 isn't enough: depending
// on the moment it is a malformed frame to the client, or a write to a closed connection, which isn't tried again.
func http1Only(h http.Handler, wait time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor < 2 {
			h.ServeHTTP(w, r)
			return
		}
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			w.WriteHeader(http.StatusHTTPVersionNotSupported)
			return
		}
		defer c.Close()
		_ = c.SetDeadline(wall.Now().Add(wait))
		if _, err := io.WriteString(c, http1Required); err != nil {
			return
		}
		if half, ok := c.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
		// What arrives meanwhile is read: a close with unread bytes is a reset, which may overtake the frames.
		_, _ = io.CopyN(io.Discard, c, maxPreface)
	})
}
