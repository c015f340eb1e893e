package store

import (
	"context"
	"testing"
	"testing/synctest"
)

// A rebuild that lets a waiting move come first doesn't wait for one that sleeps: neither when another process has
// ended the rebuild that the move waits for, nor when the move ends without its turn.
func TestTurnsOfMovesAndRebuilds(t *testing.T) {
	for _, tc := range []struct {
		what  string
		after func(c *Container, cancel func()) // the rebuild of this process has let the lock go
		moves bool
	}{
		{"another process has ended the rebuild", func(c *Container, _ func()) {
			c.defMu.Lock()
			c.followStage(new(stage))
			c.defMu.Unlock()
		}, true},
		{"the move is cancelled", func(_ *Container, cancel func()) { cancel() }, false},
		{"the container is dropped", func(c *Container, _ func()) {
			c.dropped.Store(true)
			c.defMu.Lock()
			c.followStage(new(stage))
			c.defMu.Unlock()
		}, false},
	} {
		t.Run(tc.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &Container{}
				c.rb.wake = make(chan struct{})
				c.rb.to = 2
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				moved := make(chan error, 1)
				go func() {
					err := c.beginMove(ctx)
					if err == nil {
						c.endMove()
					}
					moved <- err
				}()
				synctest.Wait() // the move waits
				tc.after(c, cancel)
				rebuilds := make(chan bool, 1)
				go func() {
					c.awaitMoves(context.Background())
					c.defMu.Unlock()
					rebuilds <- true
				}()
				synctest.Wait()
				if err := <-moved; (err == nil) != tc.moves {
					t.Errorf("the move: %v", err)
				}
				<-rebuilds
			})
		})
	}
}
