package graphapi

import (
	"bufio"
	"net"
	"net/http"
	"sync/atomic"
)

// pieceBytes is the size in bytes of the pieces in which a message is written to the socket.
const pieceBytes = 64 << 10

// sender is a connection that counts the written pieces of a long message. The sweep uses this to distinguish a slow
// client from one that doesn't read at all.
type sender struct {
	net.Conn
	pieces atomic.Uint64 // written pieces
}

// Write implements net.Conn.
func (s *sender) Write(b []byte) (n int, err error) {
	for {
		m, err := s.Conn.Write(b[n:min(n+pieceBytes, len(b))])
		n += m
		s.pieces.Add(1)
		if err != nil || n == len(b) {
			return n, err
		}
	}
}

// hijacker makes its hijacked connection a sender.
type hijacker struct {
	http.ResponseWriter
	sender *sender
}

// Hijack implements http.Hijacker.
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.sender = &sender{Conn: c}
	return h.sender, rw, nil
}
