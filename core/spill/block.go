package spill

import (
	"encoding/binary"
	"hash/crc32"
	"io"
)

// A run is a sequence of blocks. Layout of a block: length of its content u32, checksum of the content u32 (CRC-32C),
// content. The content consists of records: length uvarint, bytes. A record never spans two blocks, so a record that is
// larger than blockSize has a block of its own.
//
// Example: a block with the records "abcd" and "efgh":
//
//	00 00 00 0a | crc | 04 'a' 'b' 'c' 'd' | 04 'e' 'f' 'g' 'h'

const (
	blockSize = 16 << 10
	headSize  = 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// run is a part of a file.
type run struct{ from, to int64 }

// writer appends one run to a file.
type writer struct {
	f     *file
	from  int64
	block []byte // head and content of the current block
}

func (w *writer) begin(f *file) {
	w.f, w.from = f, f.size
	w.block = append(w.block[:0], make([]byte, headSize)...)
}

// add appends a record.
func (w *writer) add(rec []byte) error {
	if len(w.block) > headSize && len(w.block)+binary.MaxVarintLen32+len(rec) > blockSize {
		if err := w.flush(); err != nil {
			return err
		}
	}
	w.block = append(binary.AppendUvarint(w.block, uint64(len(rec))), rec...)
	return nil
}

func (w *writer) flush() error {
	body := w.block[headSize:]
	binary.BigEndian.PutUint32(w.block, uint32(len(body)))
	binary.BigEndian.PutUint32(w.block[4:], crc32.Checksum(body, castagnoli))
	err := w.f.append(w.block)
	w.block = w.block[:headSize]
	return err
}

// end writes the last block and completes the run.
func (w *writer) end() (run, error) {
	if len(w.block) > headSize {
		if err := w.flush(); err != nil {
			return run{}, err
		}
	}
	return run{w.from, w.f.size}, nil
}

// reader reads the records of one run.
type reader struct {
	f    *file
	at   int64
	to   int64
	buf  []byte // the content of the block
	rest []byte // the part of it that was not read
}

// next returns the next record, nil at the end. It is valid until the next call.
func (r *reader) next() ([]byte, error) {
	if len(r.rest) == 0 {
		if r.at >= r.to {
			return nil, nil
		}
		if err := r.load(); err != nil {
			return nil, err
		}
	}
	n, k := binary.Uvarint(r.rest)
	if k <= 0 || n > uint64(len(r.rest)-k) {
		return nil, damaged("a record ends behind its block")
	}
	rec := r.rest[k : k+int(n) : k+int(n)]
	r.rest = r.rest[k+int(n):]
	return rec, nil
}

// load reads the next block. The head of the following block is read in the same call, because most blocks are a little
// smaller than blockSize.
func (r *reader) load() error {
	n := min(blockSize, r.to-r.at)
	if err := r.read(0, n); err != nil {
		return err
	}
	if n < headSize {
		return damaged("a block has no head")
	}
	size := int64(binary.BigEndian.Uint32(r.buf)) + headSize
	if size > r.to-r.at {
		return damaged("a block ends behind its run")
	}
	if size > n {
		if err := r.read(n, size); err != nil {
			return err
		}
	}
	body := r.buf[headSize:size]
	if crc32.Checksum(body, castagnoli) != binary.BigEndian.Uint32(r.buf[4:]) {
		return damaged("the checksum of a block is wrong")
	}
	r.at, r.rest = r.at+size, body
	return nil
}

// read reads the bytes from..to of the block into buf.
func (r *reader) read(from, to int64) error {
	if int64(cap(r.buf)) < to {
		r.buf = append(make([]byte, 0, to), r.buf[:from]...)
	}
	r.buf = r.buf[:to]
	switch n, err := r.f.f.ReadAt(r.buf[from:], r.at+from); {
	case n == int(to-from):
		return nil
	case err == io.EOF:
		return damaged("it is shorter than what was written")
	default:
		return translate(err)
	}
}
