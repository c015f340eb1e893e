// Package wire reads and writes MongoDB's wire messages: the header, OP_MSG, OP_COMPRESSED, and the OP_QUERY and
// OP_REPLY that old handshakes use. Messages are parsed in place: all results point into the message's bytes.
//
// Example, an OP_MSG with the command {ping: 1} (integers are little endian):
//
//	24000000 01000000 00000000 DD070000  header: length 36, request id 1, response to 0, op code 2013
//	00000000                             flags
//	00                                   section of kind 0: one document
//	0F000000 10 "ping" 00 01000000 00    {ping: 1}, 15 bytes
package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// Op codes.
const (
	OpReply      = 1
	OpQuery      = 2004
	OpGetMore    = 2005
	OpCompressed = 2012
	OpMsg        = 2013
)

// Limits that the reply to hello announces.
const (
	MaxDocument   = 16 * 1024 * 1024
	MaxMessage    = 48_000_000
	MaxWriteBatch = 100_000
)

// Flag bits of an OP_MSG.
const (
	FlagChecksum = 1 << 0
	FlagMore     = 1 << 1
	FlagExhaust  = 1 << 16
)

// Flag bits of an OP_REPLY.
const (
	ReplyFailed = 1 << 1 // its document has the error in "$err"
	ReplyAwaits = 1 << 3 // the server can wait for documents
)

// HeaderSize is the length of a message header in bytes.
const HeaderSize = 16

// Header is the beginning of every message.
type Header struct {
	Length     int32 // of the whole message
	RequestID  int32
	ResponseTo int32
	OpCode     int32
}

// ErrMalformed is the error for a message that can't be read. The connection must be closed, because its framing is
// lost.
var ErrMalformed = errors.New("wire: malformed message")

// ErrHTTP is the error for a request in HTTP, which a browser or a probe has sent to the wrong port.
var ErrHTTP = errors.New("wire: an HTTP request")

// Malformed is the error for a message with valid framing and malformed content. The connection can continue.
type Malformed string

// Error implements error.
func (m Malformed) Error() string { return string(m) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ParseHeader parses a message's header. A length above maxLen or below that of a header is ErrMalformed, or ErrHTTP.
func ParseHeader(b []byte, maxLen int32) (Header, error) {
	h := Header{
		Length:     int32(binary.LittleEndian.Uint32(b)),
		RequestID:  int32(binary.LittleEndian.Uint32(b[4:])),
		ResponseTo: int32(binary.LittleEndian.Uint32(b[8:])),
		OpCode:     int32(binary.LittleEndian.Uint32(b[12:])),
	}
	switch {
	case string(b[:4]) == "GET ":
		return h, ErrHTTP
	case h.Length < HeaderSize || h.Length > maxLen:
		return h, ErrMalformed
	}
	return h, nil
}

// Flags returns the flag bits of an OP_MSG. The first bytes of the message are enough; with too few bytes it returns 0.
func Flags(msg []byte) uint32 {
	if len(msg) < HeaderSize+4 {
		return 0
	}
	return binary.LittleEndian.Uint32(msg[HeaderSize:])
}

// maxSeqs is the largest number of document sequences in a message. No command has more than two. Without the limit, a
// message of minimal sequences would need eight times its size in memory.
const maxSeqs = 16

// Seq is a document sequence (section of kind 1): a list of documents.
type Seq struct {
	Name []byte
	Docs []byte
}

// Next removes the first document from s.Docs. ok is false at the end, or if the rest isn't a document.
func (s *Seq) Next() (doc []byte, ok bool) {
	doc, rest, ok := cutDocument(s.Docs)
	if ok {
		s.Docs = rest
	}
	return doc, ok
}

// Msg is a parsed OP_MSG.
type Msg struct {
	Flags uint32
	Body  []byte
	Seqs  []Seq
}

// ParseMsg parses an OP_MSG (with its header) into m and reuses m's slices. It checks the lengths of all documents, but
// not their content.
func ParseMsg(msg []byte, m *Msg) error {
	m.Body, m.Seqs, m.Flags = nil, m.Seqs[:0], 0
	if len(msg) < HeaderSize+4 {
		return Malformed("OP_MSG without flag bits")
	}
	m.Flags = binary.LittleEndian.Uint32(msg[HeaderSize:])
	if m.Flags&0xFFFF&^(FlagChecksum|FlagMore) != 0 {
		return Malformed("OP_MSG with unknown required flag bits")
	}
	b := msg[HeaderSize+4:]
	if m.Flags&FlagChecksum != 0 {
		if len(b) < 4 {
			return Malformed("OP_MSG without its checksum")
		}
		sum := binary.LittleEndian.Uint32(b[len(b)-4:])
		if crc32.Checksum(msg[:len(msg)-4], castagnoli) != sum {
			return Malformed("OP_MSG checksum does not match contents")
		}
		b = b[:len(b)-4]
	}
	for len(b) > 0 {
		kind := b[0]
		var ok bool
		switch b = b[1:]; kind {
		case 0:
			if m.Body != nil {
				return Malformed("OP_MSG with more than one body section")
			}
			if m.Body, b, ok = cutDocument(b); !ok {
				return Malformed("OP_MSG with a body that is no document")
			}
		case 1:
			var s Seq
			if s, b, ok = cutSeq(b); !ok {
				return Malformed("OP_MSG with a malformed document sequence")
			}
			if len(m.Seqs) == maxSeqs {
				return Malformed("OP_MSG with too many document sequences")
			}
			m.Seqs = append(m.Seqs, s)
		default:
			return Malformed("OP_MSG with a section of unknown kind")
		}
	}
	if m.Body == nil {
		return Malformed("OP_MSG without a body section")
	}
	return nil
}

func cutSeq(b []byte) (s Seq, rest []byte, ok bool) {
	if len(b) < 5 {
		return s, nil, false
	}
	n := int(int32(binary.LittleEndian.Uint32(b)))
	if n < 5 || n > len(b) {
		return s, nil, false
	}
	sec, rest := b[4:n], b[n:]
	i := bytes.IndexByte(sec, 0)
	if i < 0 {
		return s, nil, false
	}
	s = Seq{Name: sec[:i], Docs: sec[i+1:]}
	for d := s.Docs; len(d) > 0; {
		if _, d, ok = cutDocument(d); !ok {
			return s, nil, false
		}
	}
	return s, rest, true
}

// cutDocument splits one BSON document off by its length. Its content isn't checked.
func cutDocument(b []byte) (doc, rest []byte, ok bool) {
	if len(b) < 5 {
		return nil, b, false
	}
	n := int(int32(binary.LittleEndian.Uint32(b)))
	if n < 5 || n > len(b) || b[n-1] != 0 {
		return nil, b, false
	}
	return b[:n:n], b[n:], true
}

// Query is a parsed OP_QUERY.
type Query struct {
	Flags      uint32
	Collection []byte // "db.collection"
	Doc        []byte
}

// ParseQuery parses an OP_QUERY (with its header).
func ParseQuery(msg []byte) (q Query, err error) {
	if len(msg) < HeaderSize+4 {
		return q, Malformed("OP_QUERY without flags")
	}
	q.Flags = binary.LittleEndian.Uint32(msg[HeaderSize:])
	b := msg[HeaderSize+4:]
	i := bytes.IndexByte(b, 0)
	if i < 0 || len(b) < i+1+8 {
		return q, Malformed("OP_QUERY without a collection name")
	}
	q.Collection = b[:i]
	var ok bool
	if q.Doc, _, ok = cutDocument(b[i+9:]); !ok {
		return q, Malformed("OP_QUERY without a query document")
	}
	return q, nil
}

// BeginMsg appends the header and flags of an OP_MSG reply, and the kind of its body section. The caller then appends
// the body document and calls EndMsg.
func BeginMsg(dst []byte, requestID, responseTo int32, flags uint32) []byte {
	dst = appendHeader(dst, requestID, responseTo, OpMsg)
	dst = binary.LittleEndian.AppendUint32(dst, flags)
	return append(dst, 0)
}

// BeginReply appends the header and fixed fields of an OP_REPLY with one document. The caller then appends the document
// and calls EndMsg.
func BeginReply(dst []byte, requestID, responseTo int32, flags uint32) []byte {
	dst = appendHeader(dst, requestID, responseTo, OpReply)
	dst = binary.LittleEndian.AppendUint32(dst, flags)
	dst = binary.LittleEndian.AppendUint64(dst, 0)  // cursor id
	dst = binary.LittleEndian.AppendUint32(dst, 0)  // starting from
	return binary.LittleEndian.AppendUint32(dst, 1) // documents
}

// SetFlags sets the flags of an OP_MSG.
func SetFlags(msg []byte, flags uint32) { binary.LittleEndian.PutUint32(msg[HeaderSize:], flags) }

func appendHeader(dst []byte, requestID, responseTo, op int32) []byte {
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(requestID))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(responseTo))
	return binary.LittleEndian.AppendUint32(dst, uint32(op))
}

// EndMsg sets the length of the message that began at at.
func EndMsg(dst []byte, at int) []byte {
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at))
	return dst
}
