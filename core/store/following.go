package store

import (
	"context"
	"time"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/kv"
)

// following is the snapshot that the last commit of a slot has asked for.
type following struct {
	commit kv.Follower
	of     *Slots    // of that commit
	lsn    int64     // of that commit: the slot's last one, as long as nobody else commits
	until  time.Time // when it is too old to be used
}

// snapshot takes the snapshot of a look. The first one may be what the last leader has left.
func (g *jointCommit) snapshot(ctx context.Context) (kv.Snapshot, error) {
	g.begun = catalog.Look{}
	if s := g.hold.look(); s != nil {
		return s, nil
	}
	j := &g.sl.joint
	j.mu.Lock()
	f := j.next
	j.next = nil
	j.mu.Unlock()
	if f != nil && realTime.Now().Before(f.until) && g.c.Slots() == f.of && g.sl.durable.Load() == f.lsn {
		if s, at := f.commit.After(ctx); s != nil {
			g.asked = at
			return s, nil
		}
	}
	g.asked, g.begun = realTime.Now(), g.c.st.cat.BeginLook()
	return g.c.st.eng.Snapshot(ctx)
}

// leave leaves a commit to the next leader. began is when it was begun: what it has asked for is used for as long again
// as it took, because what others write in that time would have met the commit itself as well.
func (g *jointCommit) leave(commit kv.Commit, lsn int64, began time.Time) {
	f, ok := commit.(kv.Follower)
	if !ok {
		return
	}
	now := realTime.Now()
	j := &g.sl.joint
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.waiting) == 0 {
		j.next = &following{f, g.look.of, lsn, now.Add(now.Sub(began))}
	}
}
