// Package peer is the connection of one client: it reads whole messages and writes answers, both within deadlines,
// and it tells a running command when its client has left.
//
// One goroutine owns a Conn and calls Read, Begin, Write and End in turn. A second one, the server's watcher, calls
// Look from time to time: only a command that a Look finds twice costs more than its own work. Its client is watched
// from then on, by reading ahead into the buffer from which the next message is read, so that nothing that arrives is
// lost.
package peer

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Limits bound what a client may make a server hold or wait for.
type Limits struct {
	// Login is how long a client may take for its first message, for each step of a login, and for a whole message
	// before it has logged in. Idle is how long it may be silent between messages before that: drivers' monitors
	// never log in, and ask every ten seconds or so.
	Login, Idle time.Duration
	// Stall is how long a message or an answer may make no progress.
	Stall time.Duration
	// Small is the longest message before a login, in bytes.
	Small int32
}

// Defaults are the limits of a server that was told none.
var Defaults = Limits{Login: 15 * time.Second, Idle: 3 * time.Minute, Stall: 30 * time.Second, Small: 32 << 10}

// Why a command's context has ended, as context.Cause gives it.
var (
	ErrLeft    = errors.New("peer: the client has left")
	ErrKilled  = errors.New("peer: the command was killed")
	ErrTooLong = errors.New("peer: the command took too long")
)

// readBuffer is the size of a connection's read buffer: most messages fit, and arrive with one system call.
const readBuffer = 16 << 10

// Conn is a connection. See the package's comment for who may call what.
type Conn struct {
	nc  net.Conn
	br  *bufio.Reader
	l   Limits
	rdl bool // a read deadline is set

	writing atomic.Bool // inside of Write

	mu       sync.Mutex
	busy     bool // a command runs, or its answer is being written
	alone    bool // nobody waits for that answer
	stopping bool
	gone     bool   // the client has left
	seq      uint32 // of the command that runs, or ran last
	ctx      context.Context
	cancel   context.CancelCauseFunc
	seen     uint32        // the command that the last Look found
	since    time.Time     // when a Look found that one running
	watch    chan struct{} // closed when the watching of the present command has ended; nil when it isn't watched
	wdl      bool          // a write deadline is set
}

// New returns the Conn of a network connection.
func New(nc net.Conn, l Limits) *Conn {
	return &Conn{nc: nc, br: bufio.NewReaderSize(nc, readBuffer), l: l}
}

// Begin begins a command and returns its context, which ends when the client leaves, at Kill and at a Look that finds
// it too old. With alone the client waits for no answer: it may leave, and what it sent before is worked on all the
// same. ok is false when the connection is to end instead.
func (c *Conn) Begin(alone bool) (ctx context.Context, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping {
		return nil, false
	}
	if c.ctx == nil || c.ctx.Err() != nil {
		c.ctx, c.cancel = context.WithCancelCause(context.Background())
	}
	c.busy, c.alone = true, alone
	c.seq++
	return c.ctx, true
}

// End ends a command whose answer is written. It is false when the connection is to end.
func (c *Conn) End() bool {
	c.mu.Lock()
	c.busy = false
	watch := c.watch
	c.watch = nil
	if c.wdl {
		c.wdl = false
		_ = c.nc.SetWriteDeadline(time.Time{})
	}
	if watch != nil {
		_ = c.nc.SetReadDeadline(time.Unix(1, 0)) // wakes the watch, which reads
		c.rdl = true
	}
	c.mu.Unlock()
	if watch != nil {
		<-watch
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.stopping && !c.gone
}

// Left reports whether the client has left while a command ran.
func (c *Conn) Left() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}

// Finish ends the connection: now when it is idle, else after its command.
func (c *Conn) Finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopping = true
	if !c.busy {
		_ = c.nc.Close()
	}
}

// Close closes the connection and ends its command's context.
func (c *Conn) Close() {
	_ = c.nc.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopping = true
	if c.cancel != nil {
		c.cancel(ErrLeft)
	}
}

// Running returns the number of the command that runs; ok is false when none does.
func (c *Conn) Running() (seq uint32, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seq, c.busy
}

// Kill ends the context of a command if it is still the one that runs.
func (c *Conn) Kill(seq uint32, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy && c.seq == seq {
		c.cancel(cause)
	}
}

// Look is what the server's watcher does from time to time. A command that two Looks find is watched from then on,
// and one that has run for most (0: no limit) loses its context. active reports whether a command runs or ran since
// the last Look.
func (c *Conn) Look(most time.Duration) (active bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	active = c.busy || c.seq != c.seen
	// By the last Look, and running then: a number is seen idle only when its command has ended.
	found := c.seq == c.seen
	c.seen = c.seq
	switch {
	case c.busy && found:
		c.attend(most)
	case c.busy:
		c.since = time.Now()
	}
	return active
}

// attend looks after a command that runs for long; the lock is held.
func (c *Conn) attend(most time.Duration) {
	if c.watch == nil && !c.gone && !c.alone {
		_ = c.nc.SetReadDeadline(time.Time{})
		c.watch = make(chan struct{})
		go c.await(c.watch)
	}
	if most > 0 && time.Since(c.since) >= most {
		c.cancel(ErrTooLong)
	}
	if !c.wdl && c.writing.Load() { // an answer so small that Write set no deadline
		c.wdl = true
		_ = c.nc.SetWriteDeadline(time.Now().Add(c.l.Stall))
	}
}

// await reads ahead until the command ends or the client leaves. A client that has sent readBuffer bytes behind the
// command isn't watched any more: that it has left is seen when the answer is written. Drivers wait for an answer
// before they send more.
func (c *Conn) await(done chan struct{}) {
	defer close(done)
	for {
		_, err := c.br.Peek(c.br.Buffered() + 1)
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, bufio.ErrBufferFull):
			return
		default:
			c.mu.Lock()
			c.gone = true
			c.cancel(ErrLeft)
			c.mu.Unlock()
			return
		}
	}
}
