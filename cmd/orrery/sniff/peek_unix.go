//go:build unix

package sniff

import (
	"io"
	"net"
	"syscall"
	"time"

	"github.com/orrerydb/orrery/core/clock"
)

var wall = clock.New()

// peek waits for the first bytes of c and leaves them in the socket. So the connection stays the kernel's own, and writes
// of several buffers need one system call.
func peek(c net.Conn, wait time.Duration) (known net.Conn, secure bool, err error) {
	if err := c.SetReadDeadline(wall.Now().Add(wait)); err != nil {
		return c, false, err
	}
	defer func() { _ = c.SetReadDeadline(time.Time{}) }()
	sc, ok := c.(syscall.Conn)
	if !ok {
		return readFirst(c)
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return c, false, err
	}
	var head [headSize]byte
	var n int
	var perr error
	err = raw.Read(func(fd uintptr) bool {
		for {
			n, _, perr = syscall.Recvfrom(int(fd), head[:], syscall.MSG_PEEK)
			switch {
			case perr == syscall.EINTR:
				continue
			case perr != nil, n == 0:
				return perr != syscall.EAGAIN
			}
			var sure bool
			secure, sure = isTLS(head[:n])
			return sure // otherwise it waits until more bytes arrive
		}
	})
	switch {
	case err != nil:
		return c, false, err
	case perr != nil:
		return c, false, perr
	case n == 0:
		return c, false, io.EOF
	}
	return c, secure, nil
}
