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

// peek waits for the first byte of c and leaves it in the socket. So the connection stays the kernel's own, and writes
// of several buffers need one system call.
func peek(c net.Conn, wait time.Duration) (net.Conn, byte, error) {
	if err := c.SetReadDeadline(wall.Now().Add(wait)); err != nil {
		return c, 0, err
	}
	defer func() { _ = c.SetReadDeadline(time.Time{}) }()
	sc, ok := c.(syscall.Conn)
	if !ok {
		return readFirst(c)
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return c, 0, err
	}
	var one [1]byte
	var n int
	var perr error
	err = raw.Read(func(fd uintptr) bool {
		for {
			n, _, perr = syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK)
			if perr != syscall.EINTR {
				return perr != syscall.EAGAIN
			}
		}
	})
	switch {
	case err != nil:
		return c, 0, err
	case perr != nil:
		return c, 0, perr
	case n == 0:
		return c, 0, io.EOF
	}
	return c, one[0], nil
}
