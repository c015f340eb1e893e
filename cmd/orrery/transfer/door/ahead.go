package door

import "context"

// ahead calls f with the pages that read sends, in their order. While f works read makes the next one. A page is valid
// until f returns: its memory comes back to read by free, which has no page where read must make a new one.
func ahead(ctx context.Context, read func(ctx context.Context, pages chan<- []byte, free <-chan []byte) error,
	f func(page []byte) error) error {
	ctx, stop := context.WithCancel(ctx)
	pages, free := make(chan []byte, 2), make(chan []byte, 4)
	failed, done := make(chan error, 1), make(chan struct{})
	defer func() { stop(); <-done }()
	go func() {
		defer close(done)
		defer close(pages)
		if err := read(ctx, pages, free); err != nil {
			failed <- err
		}
	}()
	for page := range pages {
		if err := f(page); err != nil {
			return err
		}
		select {
		case free <- page:
		default:
		}
	}
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}
