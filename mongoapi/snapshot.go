package mongoapi

import (
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// With the read concern snapshot, several reads outside of a transaction see one state. The first one gets a cluster
// time and a snapshot of the store, and the others name that time. The server keeps the snapshot for them. A time for
// which there is none can be read only if it is the present one, and this server has given it: one that a client has
// brought is of another server, or of this one before a restart.
//
// A snapshot has everything that was answered before its time: a write gets a time after its commit, when it is
// answered, and the snapshot is taken after its own time was given. No two first reads get the same time, so none is
// given a snapshot that is older than itself.
//
// Example: find is answered with {atClusterTime: (100, 7)}. Somebody inserts, which gets (100, 8). The client's
// aggregate with atClusterTime (100, 7) reads the same snapshot, without the insert. A find with atClusterTime (99, 1)
// that nobody has read before is refused with SnapshotUnavailable.
//
// Processes over one store have clocks of their own. So that no two of them give one time to two snapshots, the time of
// a snapshot is claimed by a record in the store. It can be read at the process that gave it: elsewhere the present
// time isn't known, and the read is refused.
type keptSnapshot struct {
	at    uint64
	since time.Time
	tx    *core.Transaction
}

const (
	// snapshotLife is how long a snapshot can be read: as long as a server of MongoDB keeps its history by default.
	snapshotLife = 5 * time.Minute
	// maxSnapshots limits the snapshots. Beyond it the oldest one is given up. Each first read adds one.
	maxSnapshots = 1024
)

// snapshots are those that a server keeps, the oldest one first.
type snapshots struct {
	clk    *clock.Clock
	shared bool // there may be other processes
	mu     sync.Mutex
	all    []*keptSnapshot
}

// find returns the snapshot of a time; nil: there is none.
func (ss *snapshots) find(at uint64) *keptSnapshot {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.of(at)
}

func (ss *snapshots) of(at uint64) *keptSnapshot {
	i := slices.IndexFunc(ss.all, func(k *keptSnapshot) bool { return k.at == at })
	if i < 0 {
		return nil
	}
	return ss.all[i]
}

// add keeps a snapshot, unless there is one of its time already, which is returned.
func (ss *snapshots) add(k *keptSnapshot) *keptSnapshot {
	ss.mu.Lock()
	was := ss.of(k.at)
	if was == nil {
		ss.all = append(ss.all, k)
	}
	ss.mu.Unlock()
	if was != nil {
		k.tx.Abort()
		return was
	}
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

// notWithConcern refuses a command because of the level of its read concern.
func (r *request) notWithConcern(why string) error {
	return merr.New(merr.InvalidOptions, "Command %s does not support { readConcern: { level: %q, provenance: "+
		"\"clientSupplied\" } } :: caused by :: %s", r.name, r.concern.Level, why)
}

// atSnapshot runs a command that reads a snapshot.
func (r *request) atSnapshot(dst []byte, def command) ([]byte, error) {
	if r.name == "getMore" { // its cursor has the snapshot
		return r.call(dst, def)
	}
	at := r.concern.At
	if r.kept = r.s.snapshots.find(at); r.kept == nil {
		k, err := r.snapshotOf(at)
		if err != nil {
			return dst, err
		}
		r.kept = r.s.snapshots.add(k)
	}
	return r.call(dst, def)
}

// snapshotOf takes a snapshot: a new one with a time of its own, or one of the time at, which must be the present one
// until the snapshot is taken; 0: a new one.
func (r *request) snapshotOf(at uint64) (*keptSnapshot, error) {
	now := r.s.times.tick(r.start, at == 0)
	if at != 0 && (at != now || at <= r.s.times.told.Load() || r.s.snapshots.shared) {
		return nil, errNoSnapshot(at)
	}
	for claimed := !r.s.snapshots.shared; !claimed; {
		var err error
		if claimed, err = r.claimTime(now); err != nil {
			return nil, err
		}
		if !claimed {
			now = r.s.times.tick(r.start, true)
		}
	}
	if err := r.outlive(now); err != nil {
		return nil, err
	}
	tx, err := r.s.eng.Begin(r.ctx, 2*snapshotLife) // the server's clock counts
	if err != nil {
		return nil, err
	}
	if at != 0 && at != r.s.times.tick(r.start, false) {
		tx.Abort()
		return nil, errNoSnapshot(at)
	}
	return &keptSnapshot{now, r.s.clk.Now(), tx}, nil
}

// claimTime claims a time for a snapshot of this process. It returns false if another process has claimed it. The
// record stays for longer than the snapshot can be read.
func (r *request) claimTime(at uint64) (bool, error) {
	name := core.RecordName{Kind: core.SnapshotRecord, Name: string(binary.BigEndian.AppendUint64(nil, at))}
	_, ok, err := r.s.eng.WriteRecord(r.ctx, name, core.Record{}, nil, 2*snapshotLife)
	return ok, err
}

// outlive waits until all changes up to a time are visible, as far as a change stream gives them times. It also makes
// the next process begin behind this time, so that it isn't the present one there: that process may have lost what the
// snapshot shows, and has what was written after it.
func (r *request) outlive(at uint64) error {
	j := r.s.eng.Journal()
	if r.s.snapshots.shared || j.ReadOnly() {
		return nil
	}
	if err := j.Settle(r.ctx, at); err != nil {
		return err
	}
	return j.Keep(r.ctx, at)
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
