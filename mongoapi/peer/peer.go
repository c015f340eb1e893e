// Package peer is the connection of one client. It reads complete messages and writes replies, both with deadlines, and
// it notices when the client disconnects during a command.
//
// One goroutine owns a Conn and calls Read, Begin, Write and End in turn. A second one, the server's watcher, calls
// Look at intervals. A command that ends between two Looks costs nothing extra. If a second Look finds the same
// command, its client is watched from then on: a goroutine reads ahead into the buffer from which the next message is
// read, so no data is lost.
//
// Example: a client sends an aggregate that takes an hour. Look finds command 5, and the next Look finds it again and
// starts the watch, which blocks in a read. The client disconnects, the read returns an error, and the context of the
// command is cancelled.
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

// Limits are the limits of what a client can make a server hold or wait for.
type Limits struct {
	// Login is the time limit for a client's first message, for each step of a login, and for a complete message before
	// the login. Idle is the limit for the pause between messages before the login: drivers' monitors never log in and
	// send a message about every ten seconds.
	Login, Idle time.Duration
	// Stall is the longest time without progress of a message or a reply.
	Stall time.Duration
	// Small is the largest length of a message before the login, in bytes.
	Small int32
}

// Defaults are the limits of a server that sets none.
var Defaults = Limits{Login: 15 * time.Second, Idle: 3 * time.Minute, Stall: 30 * time.Second, Small: 32 << 10}

// The causes with which a command's context ends (context.Cause).
var (
	ErrLeft    = errors.New("peer: the client has left")
	ErrKilled  = errors.New("peer: the command was killed")
	ErrTooLong = errors.New("peer: the command took too long")
)

// readBuffer is the size of a connection's read buffer in bytes. Most messages fit and arrive with one system call.
const readBuffer = 16 << 10

// Conn is a connection. The package comment says which goroutine may call which method.
type Conn struct {
	nc  net.Conn
	br  *bufio.Reader
	l   Limits
	rdl bool // a read deadline is set

	writing atomic.Bool // inside Write
	quiet   atomic.Bool // a Look would find what the last one has found: nothing to watch
	stir    func()      // called when it is quiet no longer; nil: nobody wants to know

	mu       sync.Mutex
	busy     bool // a command runs or its reply is being written
	alone    bool // the client expects no reply
	stopping bool
	gone     bool   // the client has disconnected
	parked   bool   // the command waits in Park
	seq      uint32 // of the command that runs or ran last
	ctx      context.Context
	cancel   context.CancelCauseFunc
	seen     uint32        // the command that the last Look found
	since    time.Time     // when a Look found it running
	watch    chan struct{} // closed when the watch of the current command has ended; nil if it isn't watched
	wdl      bool          // a write deadline is set
}

// New returns the Conn for a network connection. It is quiet at first. stir is called when it needs a Look again, after
// it was quiet; nil: nobody looks.
func New(nc net.Conn, l Limits, stir func()) *Conn {
	c := &Conn{nc: nc, br: bufio.NewReaderSize(nc, readBuffer), l: l, stir: stir}
	c.quiet.Store(true)
	return c
}

// stirred ends the quiet. The caller holds no lock.
func (c *Conn) stirred() {
	if c.quiet.Load() && c.quiet.Swap(false) && c.stir != nil {
		c.stir()
	}
}

// Begin begins a command and returns its context. The context ends when the client disconnects, with Kill, or when a
// Look finds that the command ran for too long. With alone the client expects no reply: it may disconnect, and its
// messages are processed nevertheless. ok is false if the connection should end.
func (c *Conn) Begin(alone bool) (ctx context.Context, ok bool) {
	c.mu.Lock()
	if c.stopping {
		c.mu.Unlock()
		return nil, false
	}
	if c.ctx == nil || c.ctx.Err() != nil {
		c.ctx, c.cancel = context.WithCancelCause(context.Background())
	}
	c.busy, c.alone = true, alone
	c.seq++
	ctx = c.ctx
	c.mu.Unlock()
	c.stirred()
	return ctx, true
}

// End ends a command whose reply is written. It returns false if the connection should end.
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
		_ = c.nc.SetReadDeadline(time.Unix(1, 0)) // interrupts the read of the watch
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

// Pause waits within a command for a time, or until the client sends something or disconnects. Meanwhile the connection
// is idle: nothing watches it, and its command has no time limit. ctx is the command's context from then on. ok is
// false if the connection should end.
func (c *Conn) Pause(d time.Duration) (ctx context.Context, ok bool) {
	alone := c.alone
	if !c.End() {
		return nil, false
	}
	c.readDeadline(max(d, time.Millisecond))
	_, err := c.br.Peek(c.br.Buffered() + 1)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, bufio.ErrBufferFull) {
		return nil, false
	}
	return c.Begin(alone)
}

// Left reports whether the client disconnected during a command.
func (c *Conn) Left() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}

// Finish ends the connection: immediately if it is idle, otherwise after its command.
func (c *Conn) Finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopping = true
	c.unpark()
	if !c.busy {
		_ = c.nc.Close()
	}
}

// Close closes the connection and ends the context of its command.
func (c *Conn) Close() {
	_ = c.nc.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopping, c.busy = true, false
	if c.cancel != nil {
		c.cancel(ErrLeft)
	}
}

// Running returns the number of the running command. ok is false if there is none.
func (c *Conn) Running() (seq uint32, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seq, c.busy
}

// Kill ends the context of a command if it is still running.
func (c *Conn) Kill(seq uint32, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy && c.seq == seq {
		c.cancel(cause)
		c.unpark()
	}
}

// Look is called by the server's watcher at intervals. A command that two Looks find is watched from then on. The
// context of a command that has run for most (0: no limit) is ended. active reports whether a command runs or has run
// since the last Look. again is false for a connection that is idle, or whose command waits for documents: it needs no
// Look until it stirs.
func (c *Conn) Look(most time.Duration) (active, again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	active = c.busy && !c.parked || c.seq != c.seen
	// The last Look found the same command: a number is only seen idle after its command has ended.
	found := c.seq == c.seen
	c.seen = c.seq
	switch {
	case c.parked || !c.busy:
		c.quiet.Store(true)
	case found:
		c.attend(most)
	default:
		c.since = time.Now()
	}
	return active, !c.quiet.Load()
}

// attend handles a command that runs for long: it watches the client, ends the command after most, and sets a write
// deadline if a small reply blocks. The caller holds the lock.
func (c *Conn) attend(most time.Duration) {
	if c.watch == nil && !c.gone && !c.alone {
		_ = c.nc.SetReadDeadline(time.Time{})
		c.watch = make(chan struct{})
		go c.await(c.watch)
	}
	if most > 0 && time.Since(c.since) >= most {
		c.cancel(ErrTooLong)
	}
	if !c.wdl && c.writing.Load() { // the reply is so small that Write set no deadline
		c.wdl = true
		_ = c.nc.SetWriteDeadline(time.Now().Add(c.l.Stall))
	}
}

// await reads ahead until the command ends or the client disconnects. If the client has sent readBuffer bytes after the
// command, it is no longer watched, and its disconnection is noticed when the reply is written. Drivers wait for a
// reply before they send more.
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
