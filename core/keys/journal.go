package keys

import "encoding/binary"

// The kinds of keys in the space of the journal (core/journal).
const (
	journalState = 0x01
	journalEntry = 0x02
	journalTime  = 0x03
)

const journalLen = 2 + 8 + 4

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

func isJournalEntry(key []byte) bool {
	return len(key) >= 2 && key[0] == spaceJournal && key[1] == journalEntry
}
