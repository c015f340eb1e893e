// Package httpconn has the connections of an http.Server whose replies cost little: handlers give header lines as bytes (lines), and
// what net/http does for each request with deadlines and to notice that its client has gone isn't done where it says nothing (reads).
package httpconn

import (
	"context"
	"net"
)

// Listener hands out a *Conn for each plain TCP connection. Others, those with TLS above all, stay as they are: their handlers
// have the header map.
type Listener struct {
	net.Listener

	// Brief reports by the head of a request, with its request line, whether it ends soon: then its context isn't cancelled when the client
	// goes. nil: none does. A handler must not take the connection over in such a request.
	Brief func(head []byte) bool
}

// Accept implements net.Listener.
func (l Listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		return &Conn{TCPConn: tcp, reads: reads{ends: l.Brief}}, err
	}
	return c, err
}

// Conn is a connection of an http.Server.
type Conn struct {
	*net.TCPConn
	lines
	reads
}

type connKey struct{}

// Context is an http.Server's ConnContext: handlers find their connection by it.
func Context(ctx context.Context, c net.Conn) context.Context {
	if own, ok := c.(*Conn); ok {
		return context.WithValue(ctx, connKey{}, own)
	}
	return ctx
}

// Of returns the connection of a request's context, nil when it takes no lines.
func Of(ctx context.Context) *Conn {
	c, _ := ctx.Value(connKey{}).(*Conn)
	return c
}
