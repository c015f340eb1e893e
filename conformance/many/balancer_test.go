package many

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
)

// moreToCome is the bit of a message's flags which says that its sender expects no reply, or sends a further one.
const moreToCome = 2

// balanceMessages serves the MongoDB protocol and hands each message of a connection to the next process. It has a
// connection to each process for every connection of a client.
//
// Example: with two processes a client sends find on a connection and gets cursor 7 from process 0. Its getMore, on the
// same connection, is answered by process 1.
func balanceMessages(t *testing.T, all []*process) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go relay(c, all)
		}
	}()
	return ln.Addr().String()
}

// relay serves one connection until either side ends it.
func relay(client net.Conn, all []*process) {
	defer client.Close()
	to := make([]net.Conn, len(all))
	for i, p := range all {
		c, err := net.Dial("tcp", p.addr)
		if err != nil {
			return
		}
		defer c.Close()
		to[i] = c
	}
	for turn := 0; ; turn = (turn + 1) % len(to) {
		m, flags, err := readMessage(client)
		if err != nil {
			return
		}
		if _, err := to[turn].Write(m); err != nil {
			return
		}
		for more := flags&moreToCome == 0; more; {
			if m, flags, err = readMessage(to[turn]); err != nil {
				return
			}
			if _, err := client.Write(m); err != nil {
				return
			}
			more = flags&moreToCome != 0
		}
	}
}

// opMsg is the opcode of messages with flags.
const opMsg = 2013

// readMessage reads one message. The flags of a message of another opcode are 0.
func readMessage(r io.Reader) (m []byte, flags uint32, err error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, 0, err
	}
	m = make([]byte, binary.LittleEndian.Uint32(size[:]))
	copy(m, size[:])
	if _, err := io.ReadFull(r, m[4:]); err != nil {
		return nil, 0, err
	}
	if binary.LittleEndian.Uint32(m[12:]) == opMsg {
		flags = binary.LittleEndian.Uint32(m[16:])
	}
	return m, flags, nil
}
