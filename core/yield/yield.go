// Package yield lets a request give up its place among the running requests while it waits for the disk. Such a request
// needs no processor, so another request can run meanwhile.
//
// Example: a door runs at most six requests, and 32 clients write. Without yield, six writes wait for the disk and
// block the other 26, so each sync of the log is for six writes. With yield, the six give up their places while they
// wait, the other 26 enter, and the next sync is for 26 writes.
package yield

import "context"

// Place is the right of a request to run. It is safe for concurrent use.
type Place interface {
	// Leave gives up the place, so that another request can run. It returns false if the request doesn't hold its place
	// now; then Return must not be called.
	Leave() bool
	// Return takes the place back without waiting, because a request that has begun must finish.
	Return()
}

type key struct{}

// With returns a context that contains the place of its request.
func With(ctx context.Context, p Place) context.Context { return context.WithValue(ctx, key{}, p) }

// Asked reports whether k is the key of the place in a context. It is for context types that store the place
// themselves.
func Asked(k any) bool { return k == key{} }

// While calls f, which only waits. If the context has a place, the request gives it up meanwhile.
func While(ctx context.Context, f func() error) error {
	p, ok := ctx.Value(key{}).(Place)
	if ok && p.Leave() {
		defer p.Return()
	}
	return f()
}
