package wire

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"io"
	"sync"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/zstd"
)

// An OP_COMPRESSED contains another message. Its content is compressed, and its header is not:
//
//	header                    op code 2012
//	int32 original op code    2013 for an OP_MSG
//	int32 uncompressed size   of the content, without the header
//	byte  compressor          its id
//	content of the message, compressed
//
// The uncompressed size is what a client claims. So it is checked before memory is allocated for it, and a compressor
// never writes more than that.

// Compressor is the id of a compressor in messages.
type Compressor byte

// The compressors.
const (
	Noop   Compressor = 0 // copies
	Snappy Compressor = 1 // the block format
	Zlib   Compressor = 2
	Zstd   Compressor = 3
)

// compressedHead is the length of an OP_COMPRESSED without the compressed content.
const compressedHead = HeaderSize + 9

// leastCompressed is the least length of a reply that is compressed, in bytes. It fits into one packet.
const leastCompressed = 1 << 10

// CompressorNamed returns the compressor that a client offers under a name.
func CompressorNamed(name string) (c Compressor, ok bool) {
	switch name {
	case "snappy":
		return Snappy, true
	case "zlib":
		return Zlib, true
	case "zstd":
		return Zstd, true
	}
	return Noop, false
}

// Compressed is a parsed OP_COMPRESSED.
type Compressed struct {
	Compressor Compressor
	Header     Header // of the message that it contains
	data       []byte
}

// ParseCompressed parses an OP_COMPRESSED (with its header h). most is the largest length of the message in it, with
// its header.
func ParseCompressed(h Header, msg []byte, most int32) (c Compressed, err error) {
	if len(msg) < compressedHead {
		return c, Malformed("Invalid compressed message header")
	}
	b := msg[HeaderSize:]
	op, size := int32(binary.LittleEndian.Uint32(b)), int32(binary.LittleEndian.Uint32(b[4:]))
	c.Compressor, c.data = Compressor(b[8]), b[9:]
	switch {
	case c.Compressor > Zstd:
		return c, Malformed("Compression algorithm specified in message is not available")
	case op == OpCompressed:
		return c, Malformed("A compressed message contains another one")
	case size < 0:
		return c, Malformed("Decompressed message would be negative in size")
	case size > most-HeaderSize:
		return c, Malformed("Decompressed message would be larger than maximum message size")
	}
	c.Header = Header{Length: HeaderSize + size, RequestID: h.RequestID, ResponseTo: h.ResponseTo, OpCode: op}
	return c, nil
}

var errContent = Malformed("The content of a compressed message is damaged, or has another size than its header says")

// Append appends the message that c contains, with its header. dst must have room for it.
func (c *Compressed) Append(dst []byte) ([]byte, error) {
	at := len(dst)
	dst = appendHeader(dst, c.Header.RequestID, c.Header.ResponseTo, c.Header.OpCode)
	binary.LittleEndian.PutUint32(dst[at:], uint32(c.Header.Length))
	from, to := len(dst), at+int(c.Header.Length)
	if cap(dst) < to {
		return dst, errors.New("wire: no room for a message")
	}
	content := dst[from:to:to]
	switch c.Compressor {
	case Noop:
		if len(c.data) != len(content) {
			return dst, errContent
		}
		copy(content, c.data)
	case Snappy:
		if n, err := snappy.DecodedLen(c.data); err != nil || n != len(content) {
			return dst, errContent
		}
		if _, err := snappy.Decode(content, c.data); err != nil {
			return dst, errContent
		}
	case Zlib:
		if err := inflate(content, c.data); err != nil {
			return dst, errContent
		}
	case Zstd:
		out, err := zstdCoders().dec.DecodeAll(c.data, content[:0])
		if err != nil || len(out) != len(content) {
			return dst, errContent
		}
	}
	return dst[:to], nil
}

// inflate decompresses data, which must have the length of dst.
func inflate(dst, data []byte) error {
	r := inflaters.Get().(*inflater)
	defer inflaters.Put(r)
	r.in.Reset(data)
	var err error
	if r.z == nil {
		r.z, err = zlib.NewReader(&r.in)
	} else {
		err = r.z.(zlib.Resetter).Reset(&r.in, nil)
	}
	if err != nil {
		return err
	}
	if _, err := io.ReadFull(r.z, dst); err != nil {
		return err
	}
	var more [1]byte
	if _, err := io.ReadFull(r.z, more[:]); err != io.EOF { // the checksum is read, too
		return errContent
	}
	return nil
}

// inflater is a reusable reader of zlib.
type inflater struct {
	in bytes.Reader
	z  io.ReadCloser
}

var (
	inflaters = sync.Pool{New: func() any { return new(inflater) }}
	deflaters = sync.Pool{New: func() any { return zlib.NewWriter(nil) }}
)

// coders are the coders of zstd. Both can be used by several goroutines at a time.
type coders struct {
	dec *zstd.Decoder
	enc *zstd.Encoder
}

// zstdCoders returns the coders of zstd, which the first call makes. They decompress no more than there is room for.
var zstdCoders = sync.OnceValue(func() (c coders) {
	var err error
	if c.dec, err = zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(MaxMessage),
		zstd.WithDecoderConcurrency(0)); err != nil {
		panic(err) // an option is wrong
	}
	if c.enc, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false),
		zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true)); err != nil {
		panic(err)
	}
	return c
})

// Compressible reports whether a reply is long enough to be compressed.
func Compressible(msg []byte) bool { return len(msg) >= leastCompressed }

// AppendCompressed appends a message as an OP_COMPRESSED. ok is false, and dst unchanged, if that isn't shorter.
func AppendCompressed(dst, msg []byte, c Compressor) (out []byte, ok bool) {
	h, err := ParseHeader(msg, int32(len(msg)))
	if err != nil || h.OpCode == OpCompressed {
		return dst, false
	}
	at, content := len(dst), msg[HeaderSize:]
	out = appendHeader(dst, h.RequestID, h.ResponseTo, OpCompressed)
	out = binary.LittleEndian.AppendUint32(out, uint32(h.OpCode))
	out = binary.LittleEndian.AppendUint32(out, uint32(len(content)))
	out = append(out, byte(c))
	switch c {
	case Snappy:
		from := len(out)
		n := snappy.MaxEncodedLen(len(content))
		if n < 0 {
			return dst, false
		}
		if cap(out)-from < n {
			out = append(make([]byte, 0, from+n), out...)
		}
		out = out[:from+len(snappy.Encode(out[from:from+n], content))]
	case Zlib:
		w := deflaters.Get().(*zlib.Writer)
		defer deflaters.Put(w)
		b := bytes.NewBuffer(out)
		w.Reset(b)
		if _, err := w.Write(content); err != nil || w.Close() != nil {
			return dst, false
		}
		out = b.Bytes()
	case Zstd:
		out = zstdCoders().enc.EncodeAll(content, out)
	default:
		return dst, false
	}
	if len(out)-at >= len(msg) {
		return dst, false
	}
	return EndMsg(out, at), true
}
