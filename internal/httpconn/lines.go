package httpconn

import (
	"bytes"
	"errors"
	"net"
	"sync"
)

// lines are what a handler has given for the head of the next reply. net/http takes headers in a map, copies the map,
// sorts the copy and writes it out: for the ten headers of a point read more work than its routing, signature and JSON
// together. What a handler gives here goes out before the Date header, which net/http adds where the map has none.
// Everything else stays net/http's: status line, framing, keep-alive, what a reply to HEAD or to HTTP/1.0 looks like.
//
// A head goes out together with a body that is larger than net/http's buffer; net/http itself makes two writes of them.
// The invariants:
//  1. Lines are given by the handler of a request before its reply begins, and net/http writes the replies of a
//     connection one after another from the goroutine that runs its handlers. So nothing is locked, and the next write
//     that begins a reply begins the right one.
//  2. Lines go out with their reply, or nothing more goes out at all.
//  3. What is held back goes out with the next write, and is only held back when that must come.
type lines struct {
	next []byte    // of the reply that comes next
	body int       // length of its body
	held *[]byte   // beginning of a reply, of heads; nil: nothing is held back
	both [2][]byte // room for one write of two pieces
}

// Next gives lines for the reply to the request that is being handled: whole ones, each with its line end. Names must
// be tokens, and values without control characters, as nobody looks at them again. The header map must not forbid the
// Date header. body is the length of the body that the handler writes next, in one piece; 0 when there is none or when
// net/http will leave it out. lines were appended to Room.
func (c *Conn) Next(lines []byte, body int) { c.next, c.body = lines, body }

// Room returns memory of the connection for the lines of the next reply: net/http may write the reply when the
// handler's own memory is another request's already. Nobody else uses it until Next, or until Room is called again.
func (c *Conn) Room() []byte { return c.next[:0] }

var (
	final   = []byte("HTTP/1.")
	interim = []byte("HTTP/1.1 1") // 100 Continue: the reply comes after it
	date    = []byte("\r\nDate: ")
	end     = []byte("\r\n\r\n")

	errNoHead = errors.New("httpconn: what is written begins no reply")
)

// heads are buffers for what net/http writes at once: its buffer of 4 KB, and the lines.
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

// vectored is a connection that writes several buffers in one call, beside *net.TCPConn.
type vectored interface {
	WriteBuffers(b *net.Buffers) (int64, error)
}

// release writes what is held back and p.
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
