package transfer

import (
	"context"
	"time"
)

// Verdict is what became of a row.
type Verdict uint8

// The verdicts.
const (
	Written Verdict = iota
	Exists          // there is another row with its identity
	Later           // the server is busy: it may be sent again after a pause
	Refused         // it can't be written
)

// Target takes rows. It is used by several goroutines: Prepare by one, Write by all.
type Target interface {
	// Prepare appends to b what has to be sent for a row, which has the number n in its input. The error says why the
	// row is bad.
	Prepare(b *Batch, r *Row, n int64) error
	// Full reports whether a batch has as much as one request takes.
	Full(b *Batch) bool
	// Write sends the rows of b whose numbers are in rows, and calls verdict for each, with the reason for Refused.
	// With replace they replace others of their identity. Sending a row twice does no harm. wait is a pause that the
	// server asks for. The error is that of a request that failed as a whole, after it was tried again.
	Write(ctx context.Context, b *Batch, rows []int, replace bool, verdict func(row int, v Verdict, reason string)) (
		wait time.Duration, err error)
}

// Batch is rows that are sent with one request.
type Batch struct {
	Buf  []byte
	Rows []Sent

	n0     int64 // the number of its first row in the input
	target Target
}

// Sent is a row of a batch.
type Sent struct {
	Line int64
	Body [2]int // in Buf: what is written
	Key  [2]int // in Buf: what tells where

	n int64 // its number in the input
}

// Part returns the bytes of a part of a row.
func (b *Batch) Part(at [2]int) []byte { return b.Buf[at[0]:at[1]] }

// Append adds bytes and returns where they are.
func (b *Batch) Append(p []byte) [2]int {
	from := len(b.Buf)
	b.Buf = append(b.Buf, p...)
	return [2]int{from, len(b.Buf)}
}

// Source yields the rows of a container.
type Source interface {
	// Rows calls f with each row, whose bytes f may use until it returns.
	Rows(ctx context.Context, f func(*Row) error) error
	// Size is the number of rows as far as the server knows it; 0 = unknown.
	Size(ctx context.Context) (int64, error)
}
