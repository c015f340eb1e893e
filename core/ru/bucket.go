package ru

import (
	"sync/atomic"
	"time"
)

// burst is how much of its rate a bucket holds: as much as one second gives.
const burst = time.Second

// Bucket limits consumption to a rate. It holds at most what one second gives, and is full at first. A request is
// admitted while anything is left, and its charge is taken after its work, when it is known. So the level may fall
// below zero, and no request is admitted until time has filled it again. The zero value is full. Safe for concurrent
// use.
//
// The level is kept as the time at which the bucket will be full. So a change of the rate needs no change of the
// bucket, and a bucket that nobody uses needs no work.
//
// Example: at 400 RU/s a query of 1,000 RU is admitted. The level is then -600 RU: for 1.5 seconds everything is
// refused.
type Bucket struct{ full atomic.Int64 } // nanoseconds since a time that the caller chooses

// Wait returns how long a request has to wait, 0 if it is admitted. now is the time since a fixed moment.
func (b *Bucket) Wait(now time.Duration) time.Duration {
	return max(0, time.Duration(b.full.Load())-now-burst+1)
}

// Take takes a charge in RU from a bucket that rate RU/s fill.
func (b *Bucket) Take(now time.Duration, charge float64, rate int) {
	cost := int64(charge / float64(rate) * float64(time.Second))
	for {
		old := b.full.Load()
		if b.full.CompareAndSwap(old, max(old, int64(now))+cost) {
			return
		}
	}
}
