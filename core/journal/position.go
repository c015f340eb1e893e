package journal

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
)

// A reader's position may be a time that no entry has. Should the wall clock be set back while the process restarts,
// what is written then could get a time before that position, and the reader would never be given it. So a time is
// stored that is a little ahead of all positions of this kind, and a process begins its times behind it. It is written
// only while somebody is given such positions, once in keptAhead at most.
//
// Example: it is 100, and 110 is stored. Readers are given positions up to 110. The machine is started again with its
// clock at 50: the next write gets a time above 110.

const (
	// keptAhead is how far the stored time is ahead of the wall clock.
	keptAhead = 10 * time.Second
	// keptTimes is how far the stored time is ahead of a journal's clock that is ahead of the wall clock. It must not
	// be seconds: each restart would move the clock by as much.
	keptTimes = 1 << 20
)

// Keep makes a time up to the mark a position that stays right, however the process ends and whatever the wall clock
// says afterwards. A time of an entry is one anyway. After an error the position must not be given to anybody.
func (j *Journal) Keep(ctx context.Context, t uint64) error {
	if t <= j.kept.Load() || j.shared { // the end of a shared journal is stored
		return nil
	}
	if t > j.Mark() { // the reader has asked for a later time itself, and isn't given it
		return nil
	}
	if j.set.ReadOnly {
		return status.New(status.NotSupported, "The store is only read.")
	}
	if err := j.keptMu.Lock(ctx); err != nil {
		return kv.Status(err)
	}
	defer j.keptMu.Unlock()
	if t <= j.kept.Load() {
		return nil
	}
	next := max(Wall(j.clk.Now().Add(keptAhead)), t+keptTimes)
	b := kv.Batch{Frees: true} // it replaces one time by another
	b.Put(keys.JournalTime(), encodeTime(next))
	w, err := j.eng.Write(ctx, &b, nil)
	if err == nil {
		err = w.Wait()
	}
	if err == nil {
		j.kept.Store(next)
	}
	return kv.Status(err)
}

// formatTime is the first byte of the stored time.
const formatTime = 1

func encodeTime(t uint64) []byte {
	b := binary.BigEndian.AppendUint64([]byte{formatTime}, t)
	return binary.BigEndian.AppendUint32(b, uint32(xxhash.Sum64(b)))
}

// loadTime reads the stored time, and moves the clock behind it.
func (j *Journal) loadTime(snap kv.Snapshot) error {
	b, err := orNil(snap.Get(nil, keys.JournalTime()))
	if b == nil || err != nil {
		return err
	}
	t, err := decodeTime(b)
	j.kept.Store(t)
	j.Clock.Advance(t)
	return err
}

func decodeTime(b []byte) (uint64, error) {
	if len(b) != 13 || b[0] != formatTime || binary.BigEndian.Uint32(b[9:]) != uint32(xxhash.Sum64(b[:9])) {
		return 0, status.New(status.Corruption, "malformed time of the journal")
	}
	return binary.BigEndian.Uint64(b[1:]), nil
}
