// Package httpconn has the connections of an http.Server whose handlers give header lines as bytes (lines), which
// costs less than net/http's map of them.
package httpconn

import (
	"context"
	"crypto/tls"
	"net"
)

// Listener hands out a *Conn for each connection without TLS. Those with TLS stay as they are: their handlers have
// the header map.
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

// CloseWrite ends what goes out, and leaves what comes in: net/http does so after a reply that refuses a request, so
// that a client that still sends gets to read it.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
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
