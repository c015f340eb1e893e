// Package wire has the messages between the server and its script workers, and their framing.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Type says what a frame holds.
type Type byte

// The types of frames. A server sends Limits first, then Run or Call one at a time; a worker answers with Ops, each of
// which the server answers with Answers, and at last with Done, Values or Fault.
const (
	TypeLimits  Type = 'L'
	TypeRun     Type = 'R'
	TypeCall    Type = 'C'
	TypeAnswers Type = 'A'
	TypeOps     Type = 'O'
	TypeDone    Type = 'D'
	TypeValues  Type = 'V'
	TypeFault   Type = 'F'
)

// Frame is one message: a list of byte strings, of which each may be absent (nil).
type Frame struct {
	Type   Type
	Fields [][]byte
}

// MaxFrame is the most bytes of a frame's fields.
const MaxFrame = 128 << 20

// ErrFrame is what a reader answers to bytes that are no frame.
var ErrFrame = errors.New("malformed frame")

// header is the size of a frame's type and length.
const header = 5

// Append appends f's bytes to dst: type, length, and for each field its length plus one (zero: absent) and its bytes.
func (f Frame) Append(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, byte(f.Type), 0, 0, 0, 0)
	for _, b := range f.Fields {
		if b == nil {
			dst = append(dst, 0)
			continue
		}
		dst = binary.AppendUvarint(dst, uint64(len(b))+1)
		dst = append(dst, b...)
	}
	binary.LittleEndian.PutUint32(dst[start+1:], uint32(len(dst)-start-header)) //nolint:gosec // bounded by Write
	return dst
}

// A Writer writes frames, each in one write.
type Writer struct {
	W   io.Writer
	buf []byte
}

// keep is the size up to which buffers are kept for the next frame.
const keep = 1 << 20

// Write writes f.
func (w *Writer) Write(f Frame) error {
	size := header
	for _, b := range f.Fields {
		size += len(b) + binary.MaxVarintLen32
	}
	if size > MaxFrame {
		return fmt.Errorf("%w: %d bytes", ErrFrame, size)
	}
	w.buf = f.Append(slices.Grow(w.buf[:0], size))
	_, err := w.W.Write(w.buf)
	if cap(w.buf) > keep {
		w.buf = nil
	}
	return err
}

// Read reads one frame. Its fields are the caller's. It returns io.EOF at the end between frames.
func Read(r io.Reader) (Frame, error) {
	var head [header]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return Frame{}, err
	}
	size := binary.LittleEndian.Uint32(head[1:])
	if size > MaxFrame {
		return Frame{}, fmt.Errorf("%w: %d bytes", ErrFrame, size)
	}
	body, err := readAll(r, int(size))
	if err != nil {
		return Frame{}, err
	}
	fields, err := split(body)
	return Frame{Type: Type(head[0]), Fields: fields}, err
}

// readAll reads size bytes. It allocates as bytes arrive, so that a false length costs nothing.
func readAll(r io.Reader, size int) ([]byte, error) {
	var b []byte
	for len(b) < size {
		n := min(size-len(b), keep)
		b = slices.Grow(b, n)
		if _, err := io.ReadFull(r, b[len(b):len(b)+n]); err != nil {
			return nil, noEOF(err)
		}
		b = b[:len(b)+n]
	}
	return b, nil
}

// noEOF is err, which was met inside a frame.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// split returns the fields of a frame's body.
func split(b []byte) ([][]byte, error) {
	var fields [][]byte
	for len(b) > 0 {
		n, used := binary.Uvarint(b)
		if used <= 0 || n > uint64(len(b)-used)+1 {
			return nil, ErrFrame
		}
		b = b[used:]
		if n == 0 {
			fields = append(fields, nil)
			continue
		}
		fields = append(fields, b[:n-1:n-1])
		b = b[n-1:]
	}
	return fields, nil
}
