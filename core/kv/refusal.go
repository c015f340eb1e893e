package kv

import (
	"errors"

	"github.com/orrerydb/orrery/core/status"
)

// Refusal is ErrFull or ErrUnavailable with a sentence about the cause that may be shown to a client.
type Refusal struct {
	Kind     error // ErrFull or ErrUnavailable
	Sentence string
}

// Error implements error.
func (e *Refusal) Error() string { return e.Kind.Error() + ": " + e.Sentence }

// Unwrap makes errors.Is find Kind.
func (e *Refusal) Unwrap() error { return e.Kind }

// Status returns the error for clients, with the engine's sentence.
func (e *Refusal) Status() error {
	code := status.Unavailable
	if errors.Is(e.Kind, ErrFull) {
		code = status.StoreFull
	}
	return status.Wrap(code, e, "%s", e.Sentence)
}
