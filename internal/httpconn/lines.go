package httpconn

import (
	"bytes"
	"errors"
	"net"
	"sync"
)

// lines are the header lines that a handler has given for the next reply. net/http takes headers in a map, copies the
// map, sorts the copy and writes it. For the ten headers of a point read this is more work than its routing, signature
// and JSON together. Lines are written directly before the Date header, which net/http adds if the map has none.
// net/http still does everything else: status line, framing, keep-alive, replies to HEAD and HTTP/1.0.
//
// Example: a handler gives the line "etag: x", and net/http writes the head of the reply:
//
//	net/http writes   HTTP/1.1 200 OK\r\nContent-Length: 2\r\nDate: ...\r\n\r\n{}
//	the client reads  HTTP/1.1 200 OK\r\nContent-Length: 2\r\netag: x\r\nDate: ...\r\n\r\n{}
//
// If the body is larger than net/http's buffer, net/http writes head and body separately. Conn then holds the head back
// and sends it together with the body in one system call. The invariants:
//  1. A handler gives the lines before its reply begins. net/http writes the replies of a connection one after another,
//     on the goroutine that runs the handlers. So no lock is needed, and the next write that begins a reply begins the
//     right one.
//  2. If the lines can't be sent with their reply, nothing more is sent on the connection.
//  3. A head is held back only if the next write must follow, and is sent with it.
type lines struct {
	next []byte    // of the next reply
	body int       // length of its body in bytes
	held *[]byte   // the head that is held back, from heads; nil: none
	both [2][]byte // memory for a write of two buffers
}

// Next gives the header lines for the reply to the current request: complete lines with their line ends. Names must be
// tokens and values must not contain control characters, because nothing checks them again. The header map must not
// suppress the Date header. body is the length in bytes of the body that the handler writes next, in one piece. It is 0
// if there is no body, or if net/http will omit it.
//
// The lines' memory becomes the connection's, because net/http may write the reply after the handler has begun another
// one. In exchange Next returns the memory of the lines before, which have been written.
func (c *Conn) Next(lines []byte, body int) (free []byte) {
	free = c.next[:0]
	c.next, c.body = lines, body
	return free
}

var (
	final   = []byte("HTTP/1.")
	interim = []byte("HTTP/1.1 1") // 100 Continue: the reply follows later
	date    = []byte("\r\nDate: ")
	end     = []byte("\r\n\r\n")

	errNoHead = errors.New("httpconn: the written bytes don't begin with the head of a reply")
)

// heads are buffers for one write of net/http (its buffer has 4 KB) and the lines.
var heads = sync.Pool{New: func() any { b := make([]byte, 0, 6<<10); return &b }}

// Write implements net.Conn.
func (c *Conn) Write(p []byte) (int, error) {
	if c.held != nil {
		return c.release(p)
	}
	if len(c.next) == 0 || bytes.HasPrefix(p, interim) {
		return c.Conn.Write(p)
	}
	at := bytes.Index(p, date)
	if at < 0 || !bytes.HasPrefix(p, final) {
		return 0, errNoHead
	}
	at += len("\r\n")
	b := heads.Get().(*[]byte)
	*b = append(append(append((*b)[:0], p[:at]...), c.next...), p[at:]...)
	c.next = c.next[:0]
	if i := bytes.Index(p[at:], end); i >= 0 && len(p)-at-i-len(end) < c.body {
		c.held = b
		return len(p), nil
	}
	n, err := c.Conn.Write(*b)
	heads.Put(b)
	if err != nil {
		return min(n, len(p)), err
	}
	return len(p), nil
}

// vectored is a connection other than *net.TCPConn that can write several buffers in one call.
type vectored interface {
	WriteBuffers(b *net.Buffers) (int64, error)
}

// release writes the head that is held back, and p.
func (c *Conn) release(p []byte) (int, error) {
	b := c.held
	c.both = [2][]byte{*b, p}
	pieces := net.Buffers(c.both[:])
	var err error
	if v, ok := c.Conn.(vectored); ok {
		_, err = v.WriteBuffers(&pieces)
	} else {
		_, err = pieces.WriteTo(c.Conn)
	}
	c.both, c.held = [2][]byte{}, nil
	heads.Put(b)
	if err != nil {
		return 0, err
	}
	return len(p), nil
}
