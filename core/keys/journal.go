package keys

import "encoding/binary"

// The kinds of keys in the space of the journal (core/journal). The last three are only in stores that several
// processes share.
const (
	journalState   = 0x01
	journalEntry   = 0x02
	journalTime    = 0x03
	journalEnd     = 0x04
	journalPending = 0x05
	journalCatalog = 0x06
)

const (
	journalLen = 2 + 8 + 4
	pendingLen = 2 + 8 + 8 + 4
)

// AppendJournal appends the key of an entry of the journal: its time, and its number among the entries of that time.
func AppendJournal(dst []byte, time uint64, n uint32) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, spaceJournal, journalEntry), time)
	return binary.BigEndian.AppendUint32(dst, n)
}

// ParseJournal reads the time and the number of an entry's key.
func ParseJournal(key []byte) (time uint64, n uint32, ok bool) {
	if !isJournalEntry(key) || len(key) != journalLen {
		return 0, 0, false
	}
	return binary.BigEndian.Uint64(key[2:]), binary.BigEndian.Uint32(key[10:]), true
}

// JournalBounds returns the bounds of all entries of the journal.
func JournalBounds() (lo, hi []byte) {
	return []byte{spaceJournal, journalEntry}, []byte{spaceJournal, journalEntry + 1}
}

// JournalState returns the key of what the journal keeps about itself.
func JournalState() []byte { return []byte{spaceJournal, journalState} }

// JournalTime returns the key of the time behind which the times of the next process begin.
func JournalTime() []byte { return []byte{spaceJournal, journalTime} }

// JournalEnd returns the key of the end of the journal.
func JournalEnd() []byte { return []byte{spaceJournal, journalEnd} }

// JournalCatalog returns the key of the time of the catalog's last recorded change.
func JournalCatalog() []byte { return []byte{spaceJournal, journalCatalog} }

// AppendPending appends the key of a part of a commit that isn't in the journal yet: the commit's time, the process
// that has made it, and the number of the part.
func AppendPending(dst []byte, time, writer uint64, n uint32) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, spaceJournal, journalPending), time)
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(dst, writer), n)
}

// ParsePending reads a key of AppendPending.
func ParsePending(key []byte) (time, writer uint64, n uint32, ok bool) {
	if len(key) != pendingLen || key[0] != spaceJournal || key[1] != journalPending {
		return 0, 0, 0, false
	}
	return binary.BigEndian.Uint64(key[2:]), binary.BigEndian.Uint64(key[10:]), binary.BigEndian.Uint32(key[18:]), true
}

// PendingBounds returns the bounds of all keys of AppendPending.
func PendingBounds() (lo, hi []byte) {
	return []byte{spaceJournal, journalPending}, []byte{spaceJournal, journalPending + 1}
}

func isJournalEntry(key []byte) bool {
	return len(key) >= 2 && key[0] == spaceJournal && key[1] == journalEntry
}
