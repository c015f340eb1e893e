package kv

import (
	"context"
	"errors"

	"github.com/orrerydb/orrery/core/status"
)

// Status turns an engine's error into a status; a status stays as it is, and so does nil.
func Status(err error) error {
	if err == nil {
		return nil
	}
	var e *status.Error
	var r *Refusal
	switch {
	case errors.As(err, &e):
		return err
	case errors.As(err, &r):
		return r.Status()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		// the engine wraps the error of the ctx: nothing was applied
		return status.Wrap(status.Timeout, err, "The request took too long.")
	case errors.Is(err, ErrTooLarge):
		return status.Wrap(status.TooLarge, err, "Request size is too large")
	case errors.Is(err, ErrFull):
		return status.Wrap(status.StoreFull, err, "The server's disk is full.")
	case errors.Is(err, ErrUnavailable), errors.Is(err, ErrClosed), errors.Is(err, ErrSnapshotTooOld):
		return status.Wrap(status.Unavailable, err, "The store is not available.")
	case errors.Is(err, ErrUnknownOutcome):
		return status.Wrap(status.UnknownOutcome, err, "The outcome of the write is unknown.")
	case errors.Is(err, ErrCorruption):
		return status.Wrap(status.Corruption, err, "Stored data is corrupt.")
	}
	return status.Wrap(status.Internal, err, "internal error")
}
