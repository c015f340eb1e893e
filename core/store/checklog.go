package store

import (
	"bytes"
	"encoding/binary"

	"github.com/orrerydb/orrery/core/keys"
)

// log checks the log of the slot: the shape and the checksums of every entry that readers may read, and that no entry
// is missing. Each version since the log began is either the stored item, or the previous version of a later entry. So
// the current versions of all entries are the items and the previous versions together. As for other kinds, the sums of
// their hashes are compared. Entries below the head's floor are on their way out.
//
// Example: item "x" was created with LSN 1, replaced with LSN 2 and deleted with LSN 3. The entries' current versions
// are 1 and 2, and so are their previous ones. Without the entry of LSN 2 the current version is 1, and the previous
// one is 2.
func (k *checker) log() error {
	before := k.problems
	err := k.entries(keys.KindLog, func(key, val []byte) error {
		if e := k.logEntry(key, val); e != nil {
			k.version(e.suffix, e.Previous, wanted)
			k.version(e.suffix, e.Current, there)
		}
		return nil
	})
	if err == nil && k.sums[keys.KindLog] != (entrySum{}) && !k.unread && k.problems == before {
		k.bad("the log lacks changes since LSN %d, or has some that don't belong to it", k.floor)
	}
	return err
}

// version adds a version of an item to the sum of the versions since the log began.
func (k *checker) version(suffix []byte, it *Item, sign uint64) {
	if it != nil && k.floor != 0 && it.LSN >= k.floor {
		k.sums[keys.KindLog].add(suffix, appendEnvelopeHead(nil, it, checksumDoc(it.Doc)), sign)
	}
}

// logEntry checks one entry of the log. It returns nil if the entry is damaged, or is below the floor.
func (k *checker) logEntry(key, val []byte) *LogEntry {
	lsn, _, ok := keys.Log(key)
	if ok && (k.floor == 0 || int64(lsn) < k.floor) {
		return nil
	}
	var e LogEntry
	if err := k.c.decodeLog(&e, key, val); err != nil {
		k.bad("log entry %x: %v", key[keys.PrefixLen-1:], err)
		return nil
	}
	if problem := k.logProblem(&e, val); problem != "" {
		k.bad("log entry %x %s", key[keys.PrefixLen-1:], problem)
		return nil
	}
	return &e
}

// logProblem says what is wrong with an entry that could be decoded.
func (k *checker) logProblem(e *LogEntry, val []byte) string {
	versions := val[logHead+len(e.suffix):]
	now := int(binary.BigEndian.Uint32(val[logFixed-4:]))
	place, err := k.c.appendPlace(nil, e.suffix[k.c.placeLen():])
	switch {
	case binary.BigEndian.Uint32(val[logFixed:]) != logChecksum(val, e.suffix):
		return "fails its checksum"
	case e.Current != nil && verifyEnvelope(versions[:now]) != nil:
		return "fails the checksum of its current version"
	case e.Previous != nil && verifyEnvelope(versions[now:]) != nil:
		return "fails the checksum of its previous version"
	case err != nil || !bytes.HasPrefix(e.suffix, place):
		return "has another place than its item"
	case !k.sl.holds(place):
		return "stands in the wrong slot"
	case e.LSN > k.lsn:
		return "is above the head's LSN"
	case e.Current != nil && e.Current.LSN != e.LSN:
		return "has another LSN than its current version"
	case e.Previous != nil && e.Previous.LSN >= e.LSN:
		return "has a previous version that is not older"
	}
	return ""
}
