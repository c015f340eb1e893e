package tikvkv

import (
	"context"
	"time"
)

// lasting returns the ctx of one call of the client. It ends with ctx, and after d. It then says that it was canceled,
// also if it was the deadline that has passed.
//
// The client tells these two apart. A request that was canceled is over. A request whose deadline has passed is a
// failure of its store: the client forgets where the store's ranges are, and sends the store nothing until the store
// has answered a question for its health, a second later. It has no time for that question, because its ctx has ended.
// So one request of a client with little patience would stop all requests of the process.
//
// Example: a request has 50 ms, and the store takes 60. With the deadline in the client's ctx, all others wait for a
// second. With this ctx they don't notice.
func lasting(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	call, cancel := context.WithCancel(context.WithoutCancel(ctx)) // or the error of ctx would be that of call
	unlink := context.AfterFunc(ctx, cancel)
	timer := time.AfterFunc(d, cancel)
	return call, func() {
		timer.Stop()
		unlink()
		cancel()
	}
}
