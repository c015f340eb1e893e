package peer

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/mongoapi/wire"
)

const (
	// free is the length in bytes of a message or a reply up to which the budget isn't used: a connection's buffers
	// have that size anyway.
	free = 16 << 10
	// window is the number of bytes that must arrive within Stall. Slower clients are disconnected.
	window = 4 << 10
	// piece is the part of a reply in bytes that is written with one deadline.
	piece = 64 << 10
	// budgetWait is the longest wait of a message for memory.
	budgetWait = 10 * time.Second
)

// Rules are the limits for a client's next message.
type Rules struct {
	Login bool          // the client hasn't logged in: messages must be small and arrive soon
	First time.Duration // how long the client may wait before it begins a message; 0 = no limit
	Mem   *budget.Account
}

// Refused is the error for a message that was skipped because there is no memory for it. The connection can continue.
type Refused struct{ Cause error }

// Error implements error.
func (r *Refused) Error() string { return r.Cause.Error() }

// Unwrap returns the error of the budget.
func (r *Refused) Unwrap() error { return r.Cause }

func (c *Conn) readDeadline(d time.Duration) {
	c.rdl = d > 0
	if d > 0 {
		_ = c.nc.SetReadDeadline(time.Now().Add(d))
		return
	}
	_ = c.nc.SetReadDeadline(time.Time{})
}

// Read reads one message into buf, which grows as data arrives, and returns its header and the whole message including
// the header. Memory beyond that of a small message is counted in r.Mem, which the caller closes. For a Refused message
// it returns the first bytes.
func (c *Conn) Read(buf []byte, r Rules) (h wire.Header, msg []byte, err error) {
	if c.rdl || r.First > 0 {
		c.readDeadline(r.First)
	}
	if _, err := c.br.Peek(1); err != nil {
		return h, nil, err
	}
	pace := pace{c: c, login: r.Login}
	for c.br.Buffered() < wire.HeaderSize {
		pace.before()
		if _, err := c.br.Peek(c.br.Buffered() + 1); err != nil {
			return h, nil, err
		}
	}
	head, _ := c.br.Peek(wire.HeaderSize)
	most := int32(wire.MaxMessage)
	if r.Login {
		most = c.l.Small
	}
	if h, err = wire.ParseHeader(head, most); err != nil {
		return h, nil, err
	}
	buf = buf[:0]
	for total := int(h.Length); len(buf) < total; {
		if len(buf) == cap(buf) {
			// Memory is only allocated for data that arrives, not for an announced length.
			n := min(max(2*cap(buf), len(buf)+c.br.Buffered(), 1024), total)
			if err := Take(r.Mem, cap(buf), n); err != nil {
				return h, buf, c.refuse(&pace, total-len(buf), err)
			}
			buf = append(make([]byte, 0, n), buf...)
		}
		to := buf[len(buf):min(cap(buf), total)]
		if c.br.Buffered() == 0 {
			pace.before()
		}
		n, err := c.br.Read(to)
		buf = buf[:len(buf)+n]
		if pace.after(n); err != nil {
			return h, nil, cut(err)
		}
	}
	return h, buf, nil
}

func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Take reserves memory for a message's larger buffer: want bytes instead of have.
func Take(mem *budget.Account, have, want int) error {
	n := int64(want - max(have, free))
	if n <= 0 || mem.Grow(n) == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), budgetWait)
	defer cancel()
	if err := mem.Wait(ctx, n); err == nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return mem.Grow(n) // the error says who uses the memory
}

// refuse skips the rest of a message.
func (c *Conn) refuse(p *pace, rest int, cause error) error {
	for rest > 0 {
		if c.br.Buffered() == 0 {
			p.before()
		}
		n, err := c.br.Discard(min(rest, max(c.br.Buffered(), 1)))
		rest -= n
		if p.after(n); err != nil {
			return cut(err)
		}
	}
	return &Refused{cause}
}

// pace sets the deadlines for one message. Before a login the whole message has one deadline, later each window of it.
type pace struct {
	c     *Conn
	login bool
	set   bool
	got   int // since the deadline was set
}

// before is called when the next read may have to wait.
func (p *pace) before() {
	if p.set && (p.login || p.got < window) {
		return
	}
	p.set, p.got = true, 0
	if p.login {
		p.c.readDeadline(p.c.l.Login)
		return
	}
	p.c.readDeadline(p.c.l.Stall)
}

func (p *pace) after(n int) { p.got += n }

// Write writes a reply. It fails if there is no progress within Stall, because a client that doesn't read occupies
// memory.
func (c *Conn) Write(b []byte) error {
	c.writing.Store(true)
	defer c.writing.Store(false)
	if len(b) <= piece {
		_, err := c.nc.Write(b)
		return err
	}
	for len(b) > 0 {
		c.mu.Lock()
		c.wdl = true
		_ = c.nc.SetWriteDeadline(time.Now().Add(c.l.Stall))
		c.mu.Unlock()
		n, err := c.nc.Write(b[:min(piece, len(b))])
		if b = b[n:]; err != nil && (n == 0 || !errors.Is(err, os.ErrDeadlineExceeded)) {
			return err
		}
	}
	return nil
}
