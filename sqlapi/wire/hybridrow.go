package wire

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"unicode/utf8"

	"github.com/orrerydb/orrery/core/status"
)

// The .NET client sends the operations of batches and bulks as rows (HybridRow), and expects the results as rows.
//
// A body is a stream of rows (RecordIO). It begins with a segment, which tells its own length. Before each operation or
// result is a record, with the length and the checksum of what follows. Example, one operation "read the item 2":
//
//	81 F0D8FF7F 01 0A000000               segment: version, schema, "there is a length", the length of this row
//	81 F1D8FF7F 11000000 61286685         record: version, schema, the length of the row behind it, its CRC-32
//	81 7054E17F 13 02000000 02000000 0132 operation: version, schema, which fields it has, type, resource, id "2"
//
// A row has its fields of fixed size, each in its place; then its fields of any size, with their lengths; then sparse
// fields: type, number, value. Bit i says whether the i-th field that isn't sparse is there. Numbers are little-endian,
// lengths have 7 bits in a byte.

// rowVersion is the first byte of a row. No text begins with it.
const rowVersion = 0x81

// The schemas of rows.
const (
	segmentSchema   = 2147473648
	recordSchema    = 2147473649
	operationSchema = 2145473648
	resultSchema    = 2145473649
)

// The sizes of rows and of their beginnings, in bytes.
const (
	rowHeader   = 1 + 4
	segmentSize = rowHeader + 1 + 4
	recordSize  = rowHeader + 4 + 4
	fixedSize   = rowHeader + 1 + 4 + 4
)

// The types of sparse fields.
const (
	rowFalse   = 2
	rowTrue    = 3
	rowInt32   = 7
	rowUint32  = 11
	rowFloat64 = 16
	rowText    = 20
)

// The fields of an operation. Numbers are those of sparse fields.
const (
	opType = iota + 1
	opResource
	opPartitionKey
	opEffectiveKey
	opID
	opBinaryID
	opBody
	opIndexing
	opIfMatch
	opIfNoneMatch
	opTTL
	opMinimal
)

// The fields of a result.
const (
	resStatus = iota + 1
	resSubStatus
	resETag
	resBody
	resRetryAfter
	resCharge
)

var (
	errBadRow = status.New(status.BadRequest, "The HybridRow encoding of the batch is malformed.")
	errRowTTL = status.New(status.BadRequest, "A batch's operation can't have a time to live of its own: it is the "+
		"item's member ttl.")
	errRowKey = status.New(status.BadRequest, "A batch's operation needs a partition key and an id in readable form.")
)

// RowOperation is an operation of a batch. Texts that are absent are empty.
type RowOperation struct {
	Type         int32  // as the client numbers the types of operations
	PartitionKey string // as in the header x-ms-documentdb-partitionkey
	ID           string
	Body         []byte // a part of the batch's body
	Indexing     string // as in the header x-ms-indexing-directive
	IfMatch      string
	IfNoneMatch  string
	Minimal      bool // the result needs no item
}

// IsRows reports whether a body consists of rows.
func IsRows(b []byte) bool { return len(b) > 0 && b[0] == rowVersion }

// EachOperation calls f for each operation of a body that consists of rows. The operation is the same variable each
// time. An error is f's, or a status BadRequest.
func EachOperation(b []byte, f func(*RowOperation) error) error {
	var op RowOperation
	for first := true; len(b) > 0 || first; first = false {
		switch schema := schemaOf(b); {
		case schema == segmentSchema && len(b) >= segmentSize && b[rowHeader] == 1:
			n := uint64(binary.LittleEndian.Uint32(b[rowHeader+1:]))
			if n < segmentSize || n > uint64(len(b)) {
				return errBadRow
			}
			b = b[n:]
		case schema == recordSchema && len(b) >= recordSize && !first:
			n := uint64(binary.LittleEndian.Uint32(b[rowHeader:]))
			sum := binary.LittleEndian.Uint32(b[rowHeader+4:])
			b = b[recordSize:]
			if n > uint64(len(b)) || crc32.ChecksumIEEE(b[:n]) != sum {
				return errBadRow
			}
			op = RowOperation{}
			if err := op.parse(b[:n]); err != nil {
				return err
			}
			if err := f(&op); err != nil {
				return err
			}
			b = b[n:]
		default:
			return errBadRow
		}
	}
	return nil
}

// schemaOf returns the schema of the row that b begins with, 0 if it begins with none.
func schemaOf(b []byte) uint32 {
	if len(b) < rowHeader || b[0] != rowVersion {
		return 0
	}
	return binary.LittleEndian.Uint32(b[1:])
}

// parse reads a row.
func (op *RowOperation) parse(row []byte) error {
	if schemaOf(row) != operationSchema || len(row) < fixedSize {
		return errBadRow
	}
	has := row[rowHeader]
	if has>>(opBody) != 0 || has&1 == 0 { // bits without a field; no type
		return errBadRow
	}
	op.Type = int32(binary.LittleEndian.Uint32(row[rowHeader+1:]))
	r := rowReader{row[fixedSize:]}
	for field := opPartitionKey; field <= opBody; field++ {
		if has>>(field-1)&1 == 0 {
			continue
		}
		v, err := r.bytes()
		if err == nil {
			err = op.set(field, v)
		}
		if err != nil {
			return err
		}
	}
	for len(r.b) > 0 {
		if err := op.sparse(&r); err != nil {
			return err
		}
	}
	return nil
}

// set sets a field that has bytes.
func (op *RowOperation) set(field int, v []byte) error {
	var to *string
	switch field {
	case opBody:
		op.Body = v
		return nil
	case opPartitionKey:
		to = &op.PartitionKey
	case opID:
		to = &op.ID
	case opIndexing:
		to = &op.Indexing
	case opIfMatch:
		to = &op.IfMatch
	case opIfNoneMatch:
		to = &op.IfNoneMatch
	case opBinaryID, opEffectiveKey:
		return errRowKey
	default:
		return errBadRow
	}
	if !utf8.Valid(v) {
		return errBadRow
	}
	*to = string(v)
	return nil
}

// sparse reads a sparse field.
func (op *RowOperation) sparse(r *rowReader) error {
	kind := r.b[0]
	r.b = r.b[1:]
	field, err := r.length()
	if err != nil {
		return err
	}
	switch kind {
	case rowText:
		v, err := r.bytes()
		if err != nil || field < opIndexing || field > opIfNoneMatch {
			return errBadRow
		}
		return op.set(int(field), v)
	case rowTrue, rowFalse:
		if field != opMinimal {
			return errBadRow
		}
		op.Minimal = kind == rowTrue
		return nil
	case rowInt32:
		if field == opTTL {
			return errRowTTL
		}
	}
	return errBadRow
}

// rowReader reads the fields of a row.
type rowReader struct{ b []byte }

func (r *rowReader) length() (uint64, error) {
	n, size := binary.Uvarint(r.b)
	if size <= 0 {
		return 0, errBadRow
	}
	r.b = r.b[size:]
	return n, nil
}

func (r *rowReader) bytes() ([]byte, error) {
	n, err := r.length()
	if err != nil || n > uint64(len(r.b)) {
		return nil, errBadRow
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v, nil
}

// RowResult is the result of an operation.
type RowResult struct {
	Status     int
	SubStatus  int
	ETag       []byte // with its quotes; empty: there is none
	Body       []byte // the item as JSON; empty: there is none
	RetryAfter int64  // milliseconds
	Charge     float64
}

// AppendRowSegment appends what a stream of results begins with.
func AppendRowSegment(b []byte) []byte {
	b = append(appendRowHeader(b, segmentSchema), 1)
	return binary.LittleEndian.AppendUint32(b, segmentSize)
}

// Append appends a result with its record.
func (r *RowResult) Append(b []byte) []byte {
	at := len(b)
	b = append(b, make([]byte, recordSize)...)
	b = appendRowHeader(b, resultSchema)
	has := byte(1<<(resStatus-1) | 1<<(resSubStatus-1))
	if len(r.ETag) > 0 {
		has |= 1 << (resETag - 1)
	}
	if len(r.Body) > 0 {
		has |= 1 << (resBody - 1)
	}
	b = append(b, has)
	b = binary.LittleEndian.AppendUint32(b, uint32(r.Status))
	b = binary.LittleEndian.AppendUint32(b, uint32(r.SubStatus))
	for _, v := range [...][]byte{r.ETag, r.Body} {
		if len(v) > 0 {
			b = append(binary.AppendUvarint(b, uint64(len(v))), v...)
		}
	}
	if r.RetryAfter > 0 {
		b = append(b, rowUint32, resRetryAfter)
		b = binary.LittleEndian.AppendUint32(b, uint32(min(r.RetryAfter, math.MaxUint32)))
	}
	b = append(b, rowFloat64, resCharge)
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(r.Charge))
	row := b[at+recordSize:]
	record := appendRowHeader(b[at:at], recordSchema)
	record = binary.LittleEndian.AppendUint32(record, uint32(len(row)))
	binary.LittleEndian.AppendUint32(record, crc32.ChecksumIEEE(row))
	return b
}

func appendRowHeader(b []byte, schema uint32) []byte {
	return binary.LittleEndian.AppendUint32(append(b, rowVersion), schema)
}
