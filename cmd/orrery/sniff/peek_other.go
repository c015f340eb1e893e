//go:build !unix

package sniff

import (
	"net"
	"time"

	"github.com/orrerydb/orrery/core/clock"
)

var wall = clock.New()

func peek(c net.Conn, wait time.Duration) (net.Conn, byte, error) {
	if err := c.SetReadDeadline(wall.Now().Add(wait)); err != nil {
		return c, 0, err
	}
	defer func() { _ = c.SetReadDeadline(time.Time{}) }()
	return readFirst(c)
}
