package mongoapi

import (
	"slices"
	"sync"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// With the read concern snapshot, several reads outside of a transaction see one state. The first one gets a snapshot
// of the store and the cluster time that it stands for, and the others name that time. The server keeps the snapshot
// for them. A time for which there is none can be read only if it is the present one.
//
// Why the snapshot is the state at that time: each write gets a time after its commit, when it is answered. So a write
// that was answered before the snapshot has a time that isn't greater, and is in it. One that is answered later has a
// greater time.
//
// Example: find is answered with {atClusterTime: (100, 7)}. Somebody inserts, which gets (100, 8). The client's
// aggregate with atClusterTime (100, 7) reads the same snapshot, without the insert. A find with atClusterTime (99, 1)
// that nobody has read before is refused with SnapshotUnavailable.
type keptSnapshot struct {
	at    uint64
	since time.Time
	tx    *core.Transaction
}

const (
	// snapshotLife is how long a snapshot can be read: as long as a server of MongoDB keeps its history by default.
	snapshotLife = 5 * time.Minute
	// maxSnapshots limits the snapshots. Beyond it the oldest one is given up.
	maxSnapshots = 64
)

// snapshots are those that a server keeps, the oldest one first.
type snapshots struct {
	clk *clock.Clock
	mu  sync.Mutex
	all []*keptSnapshot
}

// find returns the snapshot of a time; nil: there is none.
func (ss *snapshots) find(at uint64) *keptSnapshot {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	i := slices.IndexFunc(ss.all, func(k *keptSnapshot) bool { return k.at == at })
	if i < 0 {
		return nil
	}
	return ss.all[i]
}

// add keeps a snapshot, unless there is one of its time already, which is returned.
func (ss *snapshots) add(k *keptSnapshot) *keptSnapshot {
	if was := ss.find(k.at); was != nil {
		k.tx.Abort()
		return was
	}
	ss.mu.Lock()
	ss.all = append(ss.all, k)
	ss.mu.Unlock()
	ss.expire()
	return k
}

// expire gives up snapshots that are too old, or too many.
func (ss *snapshots) expire() {
	ss.mu.Lock()
	n, now := max(0, len(ss.all)-maxSnapshots), ss.clk.Now()
	for n < len(ss.all) && now.Sub(ss.all[n].since) > snapshotLife {
		n++
	}
	old := slices.Clone(ss.all[:n])
	ss.all = slices.Delete(ss.all, 0, n)
	ss.mu.Unlock()
	for _, k := range old {
		k.tx.Abort()
	}
}

// closeAll gives up all snapshots.
func (ss *snapshots) closeAll() {
	ss.mu.Lock()
	all := ss.all
	ss.all = nil
	ss.mu.Unlock()
	for _, k := range all {
		k.tx.Abort()
	}
}

// checkSnapshot refuses a command that can't have the read concern snapshot outside of a transaction.
func (r *request) checkSnapshot(def command) error {
	switch {
	case !def.snap:
		return merr.New(merr.InvalidOptions, "Command %s does not support { readConcern: { level: \"snapshot\" } }",
			r.name)
	case r.s.o.Standalone:
		return merr.New(merr.NotAReplicaSet, "node needs to be a replica set member to use read concern")
	}
	return nil
}

// atSnapshot runs a command that reads a snapshot.
func (r *request) atSnapshot(dst []byte, def command) ([]byte, error) {
	if r.name == "getMore" { // its cursor has the snapshot
		return r.call(dst, def)
	}
	at := r.concern.at
	if r.kept = r.s.snapshots.find(at); r.kept == nil {
		if at != 0 && at != r.s.times.tick(r.start, false) {
			return dst, errNoSnapshot(at)
		}
		tx, err := r.s.eng.Begin(r.ctx, 2*snapshotLife) // the server's clock counts
		if err != nil {
			return dst, err
		}
		k := &keptSnapshot{at: r.s.times.tick(r.start, false), since: r.s.clk.Now(), tx: tx}
		if at != 0 && k.at != at {
			tx.Abort()
			return dst, errNoSnapshot(at)
		}
		r.kept = r.s.snapshots.add(k)
	}
	return r.call(dst, def)
}

// errNoSnapshot is the error for a time whose state can't be read.
func errNoSnapshot(at uint64) error {
	return merr.New(merr.SnapshotUnavailable, "Read timestamp %s is not available: no snapshot of it is kept, and it "+
		"isn't the present time", timeText(at))
}

// appendAt appends the time of the snapshot that the command reads.
func (r *request) appendAt(dst []byte) []byte {
	if r.kept == nil {
		return dst
	}
	return value.AppendElement(dst, "atClusterTime", value.TimestampOf(r.kept.at))
}
