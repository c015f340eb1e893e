package tikvkv

import (
	"context"
	"errors"
	"fmt"

	"github.com/orrerydb/orrery/core/kv"
	tikverr "github.com/tikv/client-go/v2/error"
)

// fail returns the error of the seam for an error of the client. Of a call that writes, it may be used only if the
// write was certainly not applied.
func (e *Engine) fail(ctx context.Context, err error) error {
	var aborted *tikverr.ErrTxnAbortedByGC
	var early *tikverr.ErrGCTooEarly
	switch {
	case err == nil:
		return nil
	case e.closed.Load():
		return kv.ErrClosed
	case errors.Is(err, kv.ErrCorruption), errors.Is(err, kv.ErrClosed), errors.Is(err, kv.ErrSnapshotTooOld):
		return err
	case errors.As(err, &aborted), errors.As(err, &early):
		return fmt.Errorf("%w: %w", kv.ErrSnapshotTooOld, err)
	case errors.Is(err, tikverr.ErrTiKVDiskFull):
		return fmt.Errorf("%w: %w", kv.ErrFull, err)
	}
	return unavailable(ctx, err)
}

// unavailable is ErrUnavailable. It wraps the error of ctx if ctx has ended, as rule 7 of the seam says, and only the
// text of the client's errors: a timeout of the client is none of the caller.
func unavailable(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		return fmt.Errorf("%w: %w", kv.ErrUnavailable, ended)
	}
	if errors.Is(err, context.Canceled) { // by lasting: nobody else has
		err = errors.New("there was no answer in time")
	}
	return fmt.Errorf("%w: %s", kv.ErrUnavailable, err)
}

// refused is ErrUnavailable with a sentence for the operator.
func refused(format string, args ...any) error {
	return &kv.Refusal{Kind: kv.ErrUnavailable, Sentence: fmt.Sprintf(format, args...)}
}

// conflicts reports whether another transaction was faster. The transaction was not applied.
func conflicts(err error) bool {
	var retry *tikverr.ErrRetryable
	return tikverr.IsErrWriteConflict(err) || tikverr.IsErrKeyExist(err) || errors.As(err, &retry)
}
