package pebblekv

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Logs and manifests are sequences of records in LevelDB's format, which Pebble's package record documents. A file
// consists of blocks of 32 KiB. A record consists of chunks, and no chunk crosses the end of a block. A chunk is,
// little endian:
//
//	checksum u32, length of the payload u16, kind u8
//	in logs: number of the log u32, offset u64 up to which the log was synced before
//	payload
//
// Pebble reads these files too. If it can't read the record at the end of the newest log, it assumes that a crash has
// cut it off. After a crash that is right, and after damage it loses data. So the code here tells the two apart.
//
// Example: the record at byte 600 of a log has a wrong checksum. If a later chunk says that the log was synced up to
// byte 900, the record was complete once and is damaged. If nothing follows and one of its sectors holds only zeros, a
// crash has cut it off, and it was never acknowledged.
const (
	recordBlock  = 32 << 10
	chunkHeader  = 7  // kinds 1 to 4: in manifests
	reusedHeader = 11 // kinds 5 to 8: with the log's number
	syncedHeader = 19 // kinds 9 to 12: with the offset too
	tornSector   = 512
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked returns the stored form of a checksum.
func masked(c uint32) uint32   { return (c>>15 | c<<17) + 0xa282ead8 }
func unmasked(m uint32) uint32 { m -= 0xa282ead8; return m<<15 | m>>17 }

// The place of a chunk in its record.
const (
	wholeChunk = iota
	firstChunk
	middleChunk
	lastChunk
)

type chunkState uint8

const (
	chunkRead chunkState = iota
	blockEnd             // nothing more in this block
	chunkZero            // zeros instead of a header
	logEnd               // the mark at the end of a log that was closed
	chunkBad
)

type chunk struct {
	place   int
	synced  uint64
	payload []byte
	next    int // offset in the block of what follows
}

func headerOf(kind byte) int {
	switch {
	case kind >= 1 && kind <= 4:
		return chunkHeader
	case kind >= 5 && kind <= 8:
		return reusedHeader
	case kind >= 9 && kind <= 12:
		return syncedHeader
	}
	return 0
}

// parseChunk reads the chunk at a place of a block. num is the log's number, 0 for a manifest.
func parseChunk(b []byte, at int, num uint32) (c chunk, st chunkState) {
	left := len(b) - at
	if left < chunkHeader {
		return c, blockEnd
	}
	h := b[at:]
	sum, length, kind := binary.LittleEndian.Uint32(h), int(binary.LittleEndian.Uint16(h[4:])), h[6]
	if sum == 0 && length == 0 && kind == 0 {
		if left < reusedHeader || left < syncedHeader && allZero(h) {
			return c, blockEnd
		}
		return c, chunkZero
	}
	header := headerOf(kind)
	if header == 0 || left < header || (num == 0) != (header == chunkHeader) {
		return c, chunkBad
	}
	if num != 0 {
		n := binary.LittleEndian.Uint32(h[7:])
		if n == num+1 && sum == 0 && length == 0 {
			c.next = at + header
			return c, logEnd
		}
		if n != num {
			return c, chunkBad
		}
	}
	if header+length > left || sum != masked(crc32.Checksum(h[6:header+length], castagnoli)) {
		return c, chunkBad
	}
	if header == syncedHeader {
		c.synced = binary.LittleEndian.Uint64(h[11:])
	}
	c.place, c.payload, c.next = int(kind-1)%4, h[header:header+length], at+header+length
	return c, chunkRead
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// ending says how a log or manifest ends.
type ending struct {
	how endKind
	at  int64 // the readable part ends here: after its last complete record, if how is not endDamaged
}

type endKind uint8

const (
	endClosed  endKind = iota // with the mark of a log that was closed
	endOpen                   // after its last record, without that mark
	endTorn                   // with a record that a crash has cut off
	endDamaged                // with an unreadable record that was written completely
)

// recordFile reads a log or a manifest.
type recordFile struct {
	f    io.ReaderAt
	size int64
	num  uint32
	mem  [recordBlock]byte
}

// scanFile calls each for every record of a file, with the record's offset. The record is valid until each returns.
// With salvage it continues after unreadable parts.
func scanFile(fs vfs.FS, path string, num uint32, salvage bool, each func(at int64, rec []byte) error) (ending, error) {
	f, err := fs.Open(path)
	if err != nil {
		return ending{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ending{}, err
	}
	r := &recordFile{f: f, size: info.Size(), num: num}
	return r.scan(salvage, each)
}

// block reads the block at offset from.
func (r *recordFile) block(from int64) ([]byte, error) {
	n, err := r.f.ReadAt(r.mem[:min(recordBlock, r.size-from)], from)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return r.mem[:n], err
}

func (r *recordFile) scan(salvage bool, each func(int64, []byte) error) (end ending, err error) {
	var rec []byte
	begin := int64(-1) // of the current record
	stopped := false
	for from := int64(0); from < r.size; from += recordBlock {
		b, err := r.block(from)
		if err != nil {
			return end, err
		}
	chunks:
		for at := 0; ; {
			c, st := parseChunk(b, at, r.num)
			switch st {
			case blockEnd:
				break chunks
			case chunkRead:
				if c.place == wholeChunk || c.place == firstChunk {
					begin, rec = from+int64(at), rec[:0]
				}
				if begin >= 0 {
					rec = append(rec, c.payload...)
				}
				if begin >= 0 && (c.place == wholeChunk || c.place == lastChunk) {
					if err := each(begin, rec); err != nil {
						return end, err
					}
					begin = -1
				}
				at = c.next
				continue
			}
			if !stopped {
				stopped = true
				end, err = r.stop(from, at, begin >= 0, st, c.next)
				if end.how == endTorn && begin >= 0 {
					end.at = begin // the chunks before this one are of no use without it
				}
				if err != nil || !salvage {
					return end, err
				}
				if b, err = r.block(from); err != nil {
					return end, err
				}
			}
			begin = -1
			if at = r.resync(b, at+1); at < 0 {
				break
			}
		}
	}
	switch {
	case stopped:
	case begin >= 0:
		end = ending{endTorn, begin}
	default:
		end = ending{endOpen, r.size}
	}
	return end, nil
}

// resync returns the next offset in a block, from at on, at which a chunk can be read; -1: none.
func (r *recordFile) resync(b []byte, at int) int {
	for ; at+chunkHeader <= len(b); at++ {
		if headerOf(b[at+6]) == 0 {
			continue
		}
		if _, st := parseChunk(b, at, r.num); st == chunkRead {
			return at
		}
	}
	return -1
}

// stop classifies the place where reading has stopped: offset at in the block from. within: it is inside a record.
func (r *recordFile) stop(from int64, at int, within bool, st chunkState, next int) (ending, error) {
	stopAt := from + int64(at)
	if st == logEnd {
		if zero, err := r.zeroFrom(from + int64(next)); err != nil || zero {
			return ending{endClosed, stopAt}, err
		}
	}
	if zero, err := r.zeroFrom(stopAt); err != nil || zero {
		how := endOpen
		if within {
			how = endTorn
		}
		return ending{how, stopAt}, err
	}
	promised, err := r.behind(from, at)
	if err != nil {
		return ending{}, err
	}
	b, err := r.block(from)
	if err != nil {
		return ending{}, err
	}
	if promised || st == logEnd || r.wasWhole(b, from, at) {
		return ending{endDamaged, stopAt}, nil
	}
	return ending{endTorn, stopAt}, nil
}

// zeroFrom reports whether everything from an offset to the end of the file is zero.
func (r *recordFile) zeroFrom(from int64) (bool, error) {
	var buf [4 << 10]byte
	for from < r.size {
		n, err := r.f.ReadAt(buf[:min(int64(len(buf)), r.size-from)], from)
		if !allZero(buf[:n]) {
			return false, nil
		}
		if from += int64(n); err != nil && !errors.Is(err, io.EOF) || n == 0 {
			return false, err
		}
	}
	return true, nil
}

// behind reports whether a later chunk shows that the place was synced. A log's chunk has the synced offset. A manifest
// is synced after each record, so there a later chunk shows it if it begins a record. Any other chunk may belong to the
// record that a crash has cut off.
func (r *recordFile) behind(from int64, at int) (bool, error) {
	stop := uint64(from) + uint64(at)
	for start := at + 1; from < r.size; from, start = from+recordBlock, 0 {
		b, err := r.block(from)
		if err != nil {
			return false, err
		}
		for q := r.resync(b, start); q >= 0; {
			c, _ := parseChunk(b, q, r.num)
			if r.num == 0 && (c.place == wholeChunk || c.place == firstChunk) || c.synced > stop {
				return true, nil
			}
			q = r.resync(b, c.next)
		}
	}
	return false, nil
}

// wasWhole reports whether an unreadable chunk had been written completely: its last bytes exist and none of its
// sectors holds only zeros. A chunk with a sector of zeros comes from a crash, even if its checksum is wrong by only
// one byte: that happens by chance in one of a few hundred such chunks.
func (r *recordFile) wasWhole(b []byte, from int64, at int) bool {
	h := b[at:]
	headers := [...]int{syncedHeader, reusedHeader}
	if r.num == 0 {
		headers = [...]int{chunkHeader, chunkHeader}
	}
	sum, length := binary.LittleEndian.Uint32(h), int(binary.LittleEndian.Uint16(h[4:]))
	for _, header := range headers {
		if end := header + length; end <= len(h) && !emptySector(h[:end], from+int64(at)) &&
			(headerOf(h[6]) == header || oneByteOff(h[6:end], sum)) {
			return true
		}
		if end := lengthOff(h, header, length, sum); end > 0 && !emptySector(h[:end], from+int64(at)) {
			return true
		}
	}
	return false
}

// emptySector reports whether b, which begins at an offset of the disk, has only zeros in one of the sectors.
func emptySector(b []byte, at int64) bool {
	for len(b) > 0 {
		n := min(len(b), int(tornSector-at%tornSector))
		if allZero(b[:n]) {
			return true
		}
		b, at = b[n:], at+int64(n)
	}
	return false
}

// lengthOff returns the end of a chunk if its checksum is right for another length, which differs from the length in
// the header in one byte. 0: there is no such length.
func lengthOff(h []byte, header, length int, sum uint32) int {
	if len(h) < header || len(h) < chunkHeader {
		return 0
	}
	c := crc32.Checksum(h[6:header], castagnoli)
	for end := header; ; end++ {
		if other := (end - header) ^ length; masked(c) == sum && (other < 1<<8 || other&0xff == 0) {
			return end
		}
		if end >= len(h) {
			return 0
		}
		c = crc32.Update(c, castagnoli, h[end:end+1])
	}
}

// oneByteOff reports whether changing one byte, of b or of its stored checksum, would make the checksum right. A CRC is
// linear: the difference that a wrong byte makes depends only on the change of that byte and on the number of bytes
// after it. So the difference is calculated backwards from the end of b, until it is one that a single byte makes.
func oneByteOff(b []byte, stored uint32) bool {
	sum := crc32.Checksum(b, castagnoli)
	if diff := masked(sum) ^ stored; diff&(diff-1) == 0 || oneByte(diff) {
		return true
	}
	diff := sum ^ unmasked(stored)
	for range b {
		back := stepBack[diff>>24]
		if before := (diff^castagnoli[back])<<8 | uint32(back); before>>8 == 0 {
			return true
		} else {
			diff = before
		}
	}
	return false
}

func oneByte(diff uint32) bool {
	for s := 0; s < 32; s += 8 {
		if diff&^(0xff<<s) == 0 {
			return true
		}
	}
	return false
}

// stepBack finds an entry of the CRC table by its top byte. The top bytes of all entries differ.
var stepBack = func() (t [256]byte) {
	for i, e := range castagnoli {
		t[e>>24] = byte(i)
	}
	return t
}()
