// Package yield tells whoever limits how many requests run at once that one of them only waits: for the disk, which it
// shares with all others that wait for it. Such a request needs no processor, so another one may run meanwhile.
//
// Example: a door lets six requests run. 32 clients write. Six of their writes are on their way to the disk and would
// keep the door shut until it has them; the log would be synced for six at a time. They yield, so the others come in,
// and the next sync is for 26.
package yield

import "context"

// Place is what a request holds that runs. It is safe for concurrent use.
type Place interface {
	// Leave lets another request run. It is false when the request doesn't hold its place now; then nothing is to be
	// returned.
	Leave() bool
	// Return takes the place again, at once: a request that is under way goes on.
	Return()
}

type key struct{}

// With returns a context with the place of its request.
func With(ctx context.Context, p Place) context.Context { return context.WithValue(ctx, key{}, p) }

// Asked reports whether k asks a context for its place. It is for contexts that hold one themselves.
func Asked(k any) bool { return k == key{} }

// While does f, which only waits, without the place of the request, if there is one.
func While(ctx context.Context, f func() error) error {
	p, ok := ctx.Value(key{}).(Place)
	if ok && p.Leave() {
		defer p.Return()
	}
	return f()
}
