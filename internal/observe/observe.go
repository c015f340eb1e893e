// Package observe is what doors tell of their requests: one Request for each, when it has ended. What becomes of it
// (histograms, a request log, a log of slow requests) is the Observer's business.
package observe

import "time"

// Request is a request that has ended.
type Request struct {
	API       string        // nosql, table, gremlin, mongo
	Operation string        // of a small fixed set: "read item", "find"; it labels metrics
	Status    string        // as the protocol has it, of a small fixed set: "200", "11000", "ok"
	Failed    bool          // a fault of the server's
	Left      bool          // the client went away before its answer
	Charge    float64       // request units
	Duration  time.Duration // from the head of the request to the end of its answer
	Client    string        // remote address
	Target    string        // what it was about: a path, a namespace

	// Explain gives the text of a query and its plan for the log of slow requests; nil when there is none. It is
	// called before Done returns, and only where it is wanted.
	Explain func() string
}

// Observer is told of requests. Its methods are safe for concurrent use.
type Observer interface {
	// Begin says that a request of an API has begun.
	Begin(api string)
	// Done says that it has ended. The Request is the caller's again when Done returns.
	Done(r *Request)
	// Waits says that n more requests, or fewer if n is negative, only wait for something to happen, because their
	// clients asked them to. They have begun and aren't done, and are no work.
	Waits(api string, n int)
}

// None is an Observer that looks away.
type None struct{}

// Begin implements Observer.
func (None) Begin(string) {}

// Done implements Observer.
func (None) Done(*Request) {}

// Waits implements Observer.
func (None) Waits(string, int) {}
