package httpconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
)

// pair returns a Conn, and a function that returns what its peer reads until the Conn is closed.
func pair(t *testing.T) (*Conn, func() string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	peer, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = peer.Close() })
	c, err := (Listener{Listener: l}).Accept()
	if err != nil {
		t.Fatal(err)
	}
	own := Of(Context(context.Background(), c))
	if own == nil {
		t.Fatalf("%T is not found by its context", c)
	}
	return own, func() string {
		_ = own.Close()
		b, err := io.ReadAll(peer)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
}

func write(t *testing.T, c *Conn, text string) {
	t.Helper()
	if n, err := c.Write([]byte(text)); n != len(text) || err != nil {
		t.Fatalf("%q: %d %v", text, n, err)
	}
}

func TestLinesStandBeforeTheDate(t *testing.T) {
	c, read := pair(t)
	c.Next([]byte("a: 1\r\nb: 2\r\n"), 8)
	write(t, c, "HTTP/1.1 100 Continue\r\n\r\n")
	write(t, c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nDate: now\r\n\r\n\r\nDate: ")
	write(t, c, "x")
	write(t, c, "HTTP/1.1 204 No Content\r\nDate: now\r\n\r\n")
	const want = "HTTP/1.1 100 Continue\r\n\r\n" +
		"HTTP/1.1 200 OK\r\nContent-Length: 9\r\na: 1\r\nb: 2\r\nDate: now\r\n\r\n\r\nDate: x" +
		"HTTP/1.1 204 No Content\r\nDate: now\r\n\r\n"
	if got := read(); got != want {
		t.Errorf("%q", got)
	}
}

// The head of a large body is written together with the next part. Later writes aren't held back.
func TestHeadAndBodyGoTogether(t *testing.T) {
	c, read := pair(t)
	const head = "HTTP/1.1 200 OK\r\nDate: now\r\n\r\n"
	c.Next([]byte("a: 1\r\n"), 9)
	write(t, c, head+"one,")
	if c.held == nil {
		t.Error("the head was not held back")
	}
	write(t, c, "more!")
	c.Next([]byte("a: 2\r\n"), 4)
	write(t, c, head+"last")
	if c.held != nil {
		t.Error("a whole reply is held back")
	}
	want := ""
	for i, body := range []string{"one,more!", "last"} {
		want += strings.ReplaceAll(head, "Date", fmt.Sprintf("a: %d\r\nDate", i+1)) + body
	}
	if got := read(); got != want {
		t.Errorf("%q", got)
	}
}

// A handler gets the memory of lines that have been written, never of those that are still to be written.
func TestMemoryOfLinesIsExchanged(t *testing.T) {
	c, read := pair(t)
	one, two := []byte("a: 1\r\n"), []byte("a: 2\r\n")
	if free := c.Next(one, 0); cap(free) > 0 {
		t.Errorf("%q", free[:cap(free)])
	}
	write(t, c, "HTTP/1.1 200 OK\r\nDate: now\r\n\r\n")
	free := c.Next(two, 0)
	if len(free) != 0 || cap(free) == 0 || &free[:1][0] != &one[0] {
		t.Errorf("%d %q", len(free), free[:cap(free)])
	}
	copy(free[:cap(free)], "xxxxxxx")
	write(t, c, "HTTP/1.1 204 No Content\r\nDate: now\r\n\r\n")
	const want = "HTTP/1.1 200 OK\r\na: 1\r\nDate: now\r\n\r\nHTTP/1.1 204 No Content\r\na: 2\r\nDate: now\r\n\r\n"
	if got := read(); got != want {
		t.Errorf("%q", got)
	}
}

// If the lines can't be inserted, nothing is written.
func TestNothingGoesOutWithoutItsLines(t *testing.T) {
	c, read := pair(t)
	c.Next([]byte("a: 1\r\n"), 0)
	for _, text := range []string{"", "the middle of a body", "HTTP/1.1 200 OK\r\n\r\n"} {
		if _, err := c.Write([]byte(text)); !errors.Is(err, errNoHead) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if got := read(); got != "" {
		t.Errorf("%q", got)
	}
}

func TestOnlyPlainConnectionsTakeLines(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if Of(Context(context.Background(), a)) != nil || Of(context.Background()) != nil {
		t.Error("a connection that takes no lines is found")
	}
}
