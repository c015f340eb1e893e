//go:build !unix

package sniff

import (
	"net"
	"time"

	"github.com/orrerydb/orrery/core/clock"
)

var wall = clock.New()

func peek(c net.Conn, wait time.Duration) (known net.Conn, secure bool, err error) {
	if err := c.SetReadDeadline(wall.Now().Add(wait)); err != nil {
		return c, false, err
	}
	defer func() { _ = c.SetReadDeadline(time.Time{}) }()
	return readFirst(c)
}
