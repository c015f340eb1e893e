// Package fault has the failures that tests ask for, as the doors see them. Each door asks a Source about each request,
// if it has one. Without test controls no door has a Source, so nothing is asked.
package fault

import (
	"context"
	"errors"
	"time"
)

// Request is a request that may fail.
type Request struct {
	API       string // as in observe.Request
	Operation string // likewise; in Mongo the name of the command
	Database  string // "" if the request is about none
	Container string
	Key       string // partition key or id, in the form of the protocol; "" if the request names none
	Once      string // the header Header of the request
}

// Header is the request header with a fault for one request. It is read only if the door has a Source.
const Header = "X-Orrery-Fault"

// Loss says what happens to a reply.
type Loss int

// The losses. In all of them the connection ends.
const (
	Kept   Loss = iota
	Before      // nothing is executed, and there is no reply
	After       // the request is executed, and there is no reply
	Cut         // the request is executed, and its HTTP reply ends in the middle; in other protocols the same as After
)

// Effect is what happens to a request.
type Effect struct {
	Delay time.Duration // before everything else
	Err   error         // a *status.Error instead of the execution; nil = none
	Loss  Loss
}

// Source decides about requests. Safe for concurrent use.
type Source interface {
	// Hit returns what happens to a request; nil = nothing.
	Hit(r Request) *Effect
}

// ErrLost is the error for a request whose connection ends without a reply.
var ErrLost = errors.New("fault: the connection ends without a reply")

// Wait waits for the effect's delay, or until ctx ends.
func (e *Effect) Wait(ctx context.Context) error {
	if e.Delay <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(e.Delay)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Do executes a request with its effect. It returns the effect's error, or ErrLost, or the request's error.
func (e *Effect) Do(ctx context.Context, execute func() error) error {
	if err := e.Wait(ctx); err != nil {
		return err
	}
	switch {
	case e.Loss == Before:
		return ErrLost
	case e.Err != nil:
		return e.Err
	}
	err := execute()
	if e.Loss != Kept {
		return ErrLost
	}
	return err
}
