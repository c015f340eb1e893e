package pebblekv

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A log and a manifest are runs of records in the format that package record of Pebble documents, LevelDB's: blocks of
// 32 KiB with chunks that don't cross them; a chunk is a checksum u32, length u16, kind u8, for logs the log's number
// u32 and the offset u64 up to which the log was synced before, and the payload (little endian). Pebble reads them too,
// and takes a record that it can't read at the end of the newest log for one that a crash cut off. That is right after
// a crash and wrong after damage, so here the two are told apart.
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

// place is the place of a chunk in its record.
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
	chunkZero            // zeros where a header could be
	logEnd               // the mark that a log was closed
	chunkBad
)

type chunk struct {
	place   int
	synced  uint64
	payload []byte
	next    int // behind it in the block
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

// ending is how a log or manifest ends.
type ending struct {
	how endKind
	at  int64 // where what can be read ends
}

type endKind uint8

const (
	endClosed  endKind = iota // as it should
	endOpen                   // behind its last record, without the mark of a log that was closed
	endTorn                   // with a record that a crash cut off
	endDamaged                // with a record that had been written whole
)

// recordFile reads a log or a manifest.
type recordFile struct {
	f    io.ReaderAt
	size int64
	num  uint32
	mem  [recordBlock]byte
}

// scanFile calls each for every record of a file, with its offset. The record is valid until each returns. With salvage
// it continues after unreadable parts.
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

// block reads the block that begins at an offset.
func (r *recordFile) block(from int64) ([]byte, error) {
	n, err := r.f.ReadAt(r.mem[:min(recordBlock, r.size-from)], from)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return r.mem[:n], err
}

func (r *recordFile) scan(salvage bool, each func(int64, []byte) error) (end ending, err error) {
	var rec []byte
	begin := int64(-1) // of the record under way
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
				if end, err = r.stop(from, at, begin >= 0, st, c.next); err != nil || !salvage {
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

// resync returns the next offset in a block at which a chunk can be read; -1: none.
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

// stop classifies the place at which reading has stopped: at in the block from, within a record or not.
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

// zeroFrom reports whether the file has nothing but zeros from an offset on.
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

// behind reports whether a later chunk says that the place was synced. A manifest is synced record by record. So a
// later chunk that begins a record shows it. Another chunk may be the rest of the record that a crash has cut off.
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
// sectors is empty. A chunk with an empty sector comes from a crash, whatever else it looks like. In a few hundred such
// chunks one has by chance a checksum that is wrong by only one byte.
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

// emptySector reports whether a sector of the disk that b, which lies at an offset, has a part in holds only zeros.
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

// lengthOff returns the end of a chunk whose checksum is right for another length than the header says, one that
// differs in one byte. 0: it is right for none.
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

// oneByteOff reports whether one other byte, in b or in its stored checksum, would make the checksum right. A CRC is
// linear: the difference that a wrong byte makes depends on the byte and on what follows it alone, so it is followed
// back from the end of b.
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

// stepBack finds the entry of the CRC's table by its top byte, in which all entries differ.
var stepBack = func() (t [256]byte) {
	for i, e := range castagnoli {
		t[e>>24] = byte(i)
	}
	return t
}()
