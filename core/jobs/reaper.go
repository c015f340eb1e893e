// Package jobs is background work: paced, resumable by doing it again, and stopped with the engine.
package jobs

import (
	"context"
	"sync"
	"time"

	"github.com/orrerydb/orrery/core/store"
)

// Reaper removes expired items. They are invisible from the second they expire; reaping only frees their space.
//
// It goes round all containers with a time to live, a slot at a time, a bounded number of deletes a step, and pauses between
// steps, so it takes a small share of the machine whatever there is to do.
type Reaper struct {
	containers func() []*store.Container
	stop       context.CancelFunc
	done       sync.WaitGroup
}

// Pace of the reaper.
const (
	reapStep  = 128                   // deletes of one slot before it pauses
	reapPause = 20 * time.Millisecond // between steps that found something
	reapRound = 5 * time.Second       // between rounds
)

// StartReaper starts a reaper over the containers that the function lists.
func StartReaper(containers func() []*store.Container) *Reaper {
	ctx, stop := context.WithCancel(context.Background())
	r := &Reaper{containers: containers, stop: stop}
	r.done.Add(1)
	go func() {
		defer r.done.Done()
		for sleep(ctx, reapRound) {
			r.Round(ctx)
		}
	}()
	return r
}

// Round goes over all containers once and returns how many items it removed. Errors end a container's turn; the next round
// tries again.
func (r *Reaper) Round(ctx context.Context) (n int) {
	for _, c := range r.containers() {
		if c.Def().DefaultTTL == nil {
			continue
		}
		n += reap(ctx, c)
		if ctx.Err() != nil {
			return n
		}
	}
	return n
}

// reap removes what has expired in one container.
func reap(ctx context.Context, c *store.Container) (n int) {
	for slot := range c.SlotCount() {
		for {
			k, err := c.Reap(ctx, slot, reapStep)
			n += k
			if err != nil || ctx.Err() != nil {
				return n
			}
			if k < reapStep {
				break
			}
			if !sleep(ctx, reapPause) {
				return n
			}
		}
	}
	return n
}

// Stop ends the reaper and waits for it.
func (r *Reaper) Stop() {
	r.stop()
	r.done.Wait()
}

// sleep waits for d; false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
