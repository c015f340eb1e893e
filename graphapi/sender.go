package graphapi

import (
	"bufio"
	"net"
	"net/http"
	"sync/atomic"
)

// pieceBytes is how much of a message is handed to the socket at a time.
const pieceBytes = 64 << 10

// sender is a connection that tells how far a long write has come: a client that reads slowly, but reads, is told from
// one that doesn't.
type sender struct {
	net.Conn
	pieces atomic.Uint64 // that went out
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

// hijacker hands its connection out as a sender.
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
