// Package httpconn provides connections for an http.Server whose handlers write header lines as bytes (see lines). This
// costs less than net/http's map of headers.
package httpconn

import (
	"context"
	"crypto/tls"
	"net"
)

// Listener wraps each connection without TLS in a *Conn. Connections with TLS are unchanged: their handlers use the
// header map.
type Listener struct{ net.Listener }

// Accept implements net.Listener.
func (l Listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return c, err
	}
	if _, secure := c.(*tls.Conn); secure {
		return c, nil
	}
	return &Conn{Conn: c}, nil
}

// Conn is a connection of an http.Server.
type Conn struct {
	net.Conn
	lines
}

// CloseWrite closes the write side and leaves the read side open. net/http does this after a reply that refuses a
// request, so that a client that still sends can read the reply.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

type connKey struct{}

// Context is for the field ConnContext of an http.Server. It lets handlers find their connection.
func Context(ctx context.Context, c net.Conn) context.Context {
	if own, ok := c.(*Conn); ok {
		return context.WithValue(ctx, connKey{}, own)
	}
	return ctx
}

// Of returns the connection of a request's context, or nil if the connection doesn't take header lines.
func Of(ctx context.Context) *Conn {
	c, _ := ctx.Value(connKey{}).(*Conn)
	return c
}
