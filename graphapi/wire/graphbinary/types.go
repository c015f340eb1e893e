// Package graphbinary reads and writes GraphBinary version 1: requests, responses, and every type of the format.
//
// A fully qualified value is {type code}{type info of Custom only}{value flag}{value}. All numbers are big-endian. A
// String is {int length}{UTF-8}. Source: Apache TinkerPop's IO documentation (graphbinary) and docs/compat/gremlin.md.
//
//	03 00 00000001 67              the String "g": type 03, not null, length 1
//	01 00 00000005                 the Int 5
//	09 00 00000001 01 00 00000005  the List [5]: type 09, one element, fully qualified
package graphbinary

// Type codes.
const (
	tCustom           = 0x00
	tInt              = 0x01
	tLong             = 0x02
	tString           = 0x03
	tDate             = 0x04
	tTimestamp        = 0x05
	tClass            = 0x06
	tDouble           = 0x07
	tFloat            = 0x08
	tList             = 0x09
	tMap              = 0x0a
	tSet              = 0x0b
	tUUID             = 0x0c
	tEdge             = 0x0d
	tPath             = 0x0e
	tProperty         = 0x0f
	tGraph            = 0x10
	tVertex           = 0x11
	tVertexProperty   = 0x12
	tBarrier          = 0x13
	tBinding          = 0x14
	tBytecode         = 0x15
	tCardinality      = 0x16
	tColumn           = 0x17
	tDirection        = 0x18
	tOperator         = 0x19
	tOrder            = 0x1a
	tPick             = 0x1b
	tPop              = 0x1c
	tLambda           = 0x1d
	tP                = 0x1e
	tScope            = 0x1f
	tT                = 0x20
	tTraverser        = 0x21
	tBigDecimal       = 0x22
	tBigInteger       = 0x23
	tByte             = 0x24
	tByteBuffer       = 0x25
	tShort            = 0x26
	tBoolean          = 0x27
	tTextP            = 0x28
	tStrategy         = 0x29
	tBulkSet          = 0x2a
	tTree             = 0x2b
	tMetrics          = 0x2c
	tTraversalMetrics = 0x2d
	tMerge            = 0x2e
	tDT               = 0x2f
	tGType            = 0x30
	tChar             = 0x80
	tDuration         = 0x81
	tInetAddress      = 0x82
	tInstant          = 0x83
	tLocalDate        = 0x84
	tLocalDateTime    = 0x85
	tLocalTime        = 0x86
	tMonthDay         = 0x87
	tOffsetDateTime   = 0x88
	tOffsetTime       = 0x89
	tPeriod           = 0x8a
	tYear             = 0x8b
	tYearMonth        = 0x8c
	tZonedDateTime    = 0x8d
	tZoneOffset       = 0x8e
	tNull             = 0xfe
)

const (
	version   = 0x81 // first byte of a message
	flagValue = 0x00
	flagNull  = 0x01
)

// enumCodes maps each enumeration to its type code; enumTypes is its inverse.
var enumCodes = map[string]byte{
	"Barrier": tBarrier, "Cardinality": tCardinality, "Column": tColumn, "Direction": tDirection, "Operator": tOperator,
	"Order": tOrder, "Pick": tPick, "Pop": tPop, "Scope": tScope, "T": tT, "Merge": tMerge, "DT": tDT, "GType": tGType,
}

var enumTypes = func() map[byte]string {
	m := make(map[byte]string, len(enumCodes))
	for name, code := range enumCodes {
		m[code] = name
	}
	return m
}()
