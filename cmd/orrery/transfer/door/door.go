// Package door has the clients of the APIs of a running server: what import writes by, and what export reads by. They
// send what any client may send, so logins, limits and charges are those of every request.
package door

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Server says where a server is and how to log in.
type Server struct {
	NoSQL, Table string // URLs
	Mongo        string // host:port
	Gremlin      string // URL of the WebSocket
	Admin        string // URL of the admin port
	Account, Key string

	MongoUser, MongoPassword string // "" = account and key
}

// ErrRedirect is the error of a reply that sends the client elsewhere: a request has the account's signature, which
// nobody else may get.
var ErrRedirect = errors.New("the server sends the client to another address, which is refused")

// refuseRedirect is the CheckRedirect of every client of the command line.
func refuseRedirect(*http.Request, []*http.Request) error { return ErrRedirect }

// Client returns a client for single requests, which follows no redirect either. The time is that of one request; 0 is
// no limit.
func Client(limit time.Duration) *http.Client {
	return &http.Client{Timeout: limit, CheckRedirect: refuseRedirect}
}

// newHTTP returns a client that follows no redirect.
func newHTTP() *http.Client {
	return &http.Client{
		Timeout: 2 * time.Minute,
		Transport: &http.Transport{DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			MaxIdleConnsPerHost: 16, WriteBufferSize: 64 << 10, ReadBufferSize: 64 << 10, DisableCompression: true},
		CheckRedirect: refuseRedirect,
	}
}

// Again says that a request may succeed later: the server is busy, away or starts again.
type Again struct {
	Err  error
	Wait time.Duration // 0 = not said
}

// Error implements error.
func (a *Again) Error() string { return a.Err.Error() }

// Unwrap returns the error.
func (a *Again) Unwrap() error { return a.Err }

// Patience is how long a request without an answer is tried again. A server that is busy is waited for as long as it
// answers.
const Patience = time.Minute

// impatient marks the context of the first requests to a server: if nobody answers, its address is wrong more likely
// than that it starts again.
type impatient struct{}

// first returns a context for the first requests.
func first(ctx context.Context) context.Context { return context.WithValue(ctx, impatient{}, true) }

// tries calls f until it succeeds or fails for good. Pauses double up to two seconds.
func tries(ctx context.Context, f func() error) error {
	pause, waited := 50*time.Millisecond, time.Duration(0)
	for {
		err := f()
		var again *Again
		if err == nil || !errors.As(err, &again) || ctx.Err() != nil || waited > Patience {
			return err
		}
		wait := again.Wait
		if wait == 0 && ctx.Value(impatient{}) != nil {
			return err
		}
		if wait == 0 {
			wait = pause
			waited += pause
			pause = min(2*pause, 2*time.Second)
		}
		if !sleep(ctx, wait) {
			return err
		}
	}
}

// sleep waits. It returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// lost returns the error of a request without a complete answer.
func lost(where string, err error) error {
	if errors.Is(err, ErrRedirect) {
		return fmt.Errorf("%s: %w", where, ErrRedirect)
	}
	var n *net.OpError
	switch {
	case errors.As(err, &n) && n.Op == "dial":
		return &Again{Err: fmt.Errorf("no server answers at %s: %w", where, n.Err)}
	case errors.Is(err, context.Canceled):
		return context.Canceled
	}
	if err := Untrusted(where, err); err != nil {
		return err
	}
	return &Again{Err: fmt.Errorf("the answer of %s is incomplete: %w", where, err)}
}

// Untrusted returns the error of a request whose server has a certificate that isn't trusted, nil for other errors.
func Untrusted(where string, err error) error {
	var c *tls.CertificateVerificationError
	if !errors.As(err, &c) {
		return nil
	}
	return fmt.Errorf("the certificate of %s isn't trusted: %w; `orrery cert trust` says how it is", where, c.Err)
}

// readAll reads a reply into a buffer.
func readAll(buf []byte, r io.Reader) ([]byte, error) {
	buf = buf[:0]
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return buf, err
		}
	}
}
