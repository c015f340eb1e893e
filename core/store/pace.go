package store

import (
	"cmp"
	"context"
	"time"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/lease"
)

// pace is the pace of background work that writes: index rebuilds, and copies of slots. It doesn't get far ahead of the
// disk, and after each burst it rests about as long as it has worked. The time of a burst includes its waits for a
// processor, so it works less while requests use the processors.
type pace struct {
	c       *Container
	ctx     context.Context
	lease   *lease.Lease  // nil: the work needs none
	last    kv.Commit     // the last commit that was not waited for
	commits int           // commits since the last wait
	begun   time.Time     // start of the current burst
	burst   time.Duration // least length of a burst; 0 = rebuildBurst
	rests   int           // length of a rest in percent of the burst before it; 0 = 100
	distant bool          // it waits for a network most of the time, and doesn't rest
}

// Pace of a rebuild. After an error it rests for a longer time.
const (
	rebuildBurst = 4 * time.Millisecond
	rebuildRetry = 2 * time.Second
	rebuildSync  = 16 // commits after which it waits for the last to be durable
)

// wrote records a commit.
func (j *pace) wrote(cm kv.Commit) { j.last, j.commits = cm, j.commits+1 }

// settle waits until everything that was written is durable.
func (j *pace) settle() error {
	if j.last == nil {
		return nil
	}
	err := j.last.Wait()
	j.last, j.commits = nil, 0
	return translate(err)
}

// pause waits to keep the pace. It fails when the store is closed or the container dropped.
func (j *pace) pause() error {
	if err := j.follow(); err != nil {
		return err
	}
	if d := realTime.Now().Sub(j.begun); !j.distant && d >= cmp.Or(j.burst, rebuildBurst) {
		j.rest(min(d*time.Duration(cmp.Or(j.rests, 100))/100, rebuildRetry))
		j.begun = realTime.Now()
	}
	return translate(j.ctx.Err())
}

// follow only waits for the disk. It fails as pause does.
func (j *pace) follow() error {
	if err := cmp.Or(j.c.Alive(), translate(j.c.st.work.Context().Err())); err != nil {
		return err
	}
	if j.commits >= rebuildSync {
		if err := j.settle(); err != nil {
			return err
		}
	}
	return translate(j.ctx.Err())
}

// rest waits for a time, or until the store is closed.
func (j *pace) rest(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-j.ctx.Done():
	case <-t.C:
	}
}
