package graphapi

import (
	"bytes"
	"io"
	"net"
	"testing"
)

// TestSender: a long message is written in pieces, completely and in order, and each piece is counted.
func TestSender(t *testing.T) {
	for _, n := range []int{0, 1, pieceBytes, pieceBytes + 1, 5*pieceBytes - 1} {
		a, b := net.Pipe()
		s := &sender{Conn: a}
		msg := make([]byte, n)
		for i := range msg {
			msg[i] = byte(i / 251)
		}
		got := make(chan []byte)
		go func() {
			all, _ := io.ReadAll(b)
			got <- all
		}()
		m, err := s.Write(msg)
		_ = a.Close()
		if m != n || err != nil || !bytes.Equal(<-got, msg) {
			t.Errorf("%d bytes: %d written, %v", n, m, err)
		}
		if want := max(1, (n+pieceBytes-1)/pieceBytes); int(s.pieces.Load()) != want {
			t.Errorf("%d bytes in %d pieces, want %d", n, s.pieces.Load(), want)
		}
	}
}
