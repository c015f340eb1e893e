// Package replyhead lets a handler give net/http the header lines of a reply as bytes. net/http takes headers in a map, copies the
// map, sorts the copy and writes it out: for the ten headers of a point read more work than its routing, signature and JSON
// together. What a handler gives here goes out before the Date header, which net/http adds where the map has none. Everything else stays net/http's:
// status line, framing, keep-alive, what a reply to HEAD or to HTTP/1.0 looks like.
package replyhead

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
)

// Listener hands out a *Conn for each plain TCP connection. Others, those with TLS above all, stay as they are: their handlers
// have the map.
type Listener struct{ net.Listener }

// Accept implements net.Listener.
func (l Listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		return &Conn{TCPConn: tcp}, err
	}
	return c, err
}

// Conn is a connection of an http.Server that puts lines into the head of the next reply. It has two invariants:
//  1. Lines are given by the handler of a request before its reply begins, and net/http writes the replies of a connection one
//     after another from the goroutine that runs its handlers. So nothing is locked, and the next write that begins a reply begins
//     the right one.
//  2. Lines go out with their reply, or nothing more goes out at all.
type Conn struct {
	*net.TCPConn
	lines []byte // of the reply that comes next
}

type connKey struct{}

// Context is an http.Server's ConnContext: handlers find their connection by it.
func Context(ctx context.Context, c net.Conn) context.Context {
	if own, ok := c.(*Conn); ok {
		return context.WithValue(ctx, connKey{}, own)
	}
	return ctx
}

// Of returns the connection of a request's context, nil when it takes no lines.
func Of(ctx context.Context) *Conn {
	c, _ := ctx.Value(connKey{}).(*Conn)
	return c
}

// Append gives lines for the reply to the request that is being handled: whole ones, each with its line end. Names must be
// tokens, and values without control characters, as nobody looks at them again. The header map must not forbid the Date header.
// lines is copied.
func (c *Conn) Append(lines []byte) { c.lines = append(c.lines, lines...) }

var (
	final   = []byte("HTTP/1.")
	interim = []byte("HTTP/1.1 1") // 100 Continue: the reply comes after it
	date    = []byte("\r\nDate: ")

	errNoHead = errors.New("replyhead: what is written begins no reply")
)

// heads are buffers for what net/http writes at once: its buffer of 4 KB, and the lines.
var heads = sync.Pool{New: func() any { b := make([]byte, 0, 6<<10); return &b }}

// Write implements net.Conn.
func (c *Conn) Write(p []byte) (int, error) {
	if len(c.lines) == 0 || bytes.HasPrefix(p, interim) {
		return c.TCPConn.Write(p)
	}
	at := bytes.Index(p, date)
	if at < 0 || !bytes.HasPrefix(p, final) {
		return 0, errNoHead
	}
	at += len("\r\n")
	b := heads.Get().(*[]byte)
	*b = append(append(append((*b)[:0], p[:at]...), c.lines...), p[at:]...)
	c.lines = c.lines[:0]
	n, err := c.TCPConn.Write(*b)
	heads.Put(b)
	if err != nil {
		return min(n, len(p)), err
	}
	return len(p), nil
}
