package sqlapi

import (
	"bytes"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// maxPartitionKeyHeader is the longest header in bytes. It has room for three values of 2 KB in which every byte is
// escaped.
const maxPartitionKeyHeader = 64 << 10

// parsePartitionKey parses the partition key header, a JSON array with one value per path, and appends the values to
// dst. The values don't refer to text.
//
// Examples: ["a"] is the string a, [{}] is undefined (None), [null] is null. [] has no value: clients send it for
// migrated containers without a partition key.
func parsePartitionKey(dst core.PartitionKey, text string) (core.PartitionKey, error) {
	if v, ok := plainStringKey(text); ok {
		return append(dst, value.StringOf(v)), nil
	}
	if len(text) > maxPartitionKeyHeader {
		return nil, badHeader("x-ms-documentdb-partitionkey", text)
	}
	v, err := doc.ValueFromJSON([]byte(text))
	if err != nil {
		v, err = doc.ValueFromJSON(goEscapes(text))
	}
	if err != nil || v.Kind() != value.Array {
		return nil, status.New(status.BadRequest, "Partition key %s is invalid.", clip(text))
	}
	for it := v.Iter(); it.Next(); {
		switch e := it.Value(); e.Kind() {
		case value.Object:
			if e.Len() > 0 {
				return nil, status.New(status.BadRequest, "Partition key %s is invalid.", clip(text))
			}
			dst = append(dst, value.Undef())
		case value.Array:
			return nil, status.New(status.BadRequest, "Partition key %s is invalid.", clip(text))
		default:
			dst = append(dst, e)
		}
	}
	return dst, nil
}

// goEscapes replaces the escapes of Go string literals that JSON lacks. They occur because azcosmos quotes its keys
// with strconv: control characters and characters above U+FFFF arrive as \x7f, \a, \v or \U0001f600.
func goEscapes(text string) []byte {
	out := make([]byte, 0, len(text)+16)
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			out = append(out, text[i])
			continue
		}
		n := 0 // number of hex digits that follow
		switch i++; text[i] {
		case 'a', 'v':
			out = append(out, "\\u00"...)
			out = append(out, map[byte]string{'a': "07", 'v': "0b"}[text[i]]...)
			continue
		case 'x':
			n = 2
		case 'U':
			n = 8
		default:
			out = append(out, '\\', text[i])
			continue
		}
		if i+n >= len(text) {
			return out
		}
		r, err := strconv.ParseUint(text[i+1:i+1+n], 16, 32)
		if err != nil || r > unicode.MaxRune {
			return nil
		}
		i += n
		if r < 0x20 || r == '"' || r == '\\' {
			out = append(out, "\\u00"...)
			out = append(out, text[i-1:i+1]...)
			continue
		}
		out = utf8.AppendRune(out, rune(r))
	}
	return out
}

// plainStringKey parses the most frequent form: ["text"] without escapes.
func plainStringKey(s string) (string, bool) {
	if len(s) < 4 || s[0] != '[' || s[1] != '"' || s[len(s)-2] != '"' || s[len(s)-1] != ']' {
		return "", false
	}
	in := s[2 : len(s)-2]
	for i := 0; i < len(in); i++ {
		if ch := in[i]; ch == '"' || ch == '\\' || ch < 0x20 || ch >= 0x80 {
			return "", false
		}
	}
	return in, true
}

// keyMode is what a request needs from the partition key header.
type keyMode uint8

const (
	keyFull   keyMode = iota // one value per path
	keyPrefix                // absent, or a prefix of a hierarchical key
)

// partitionKey parses the header for a container. It returns nil without an error when there is no header and mode
// allows that.
func (c *call) partitionKey(dst core.PartitionKey, def *core.PartitionKeyDef, mode keyMode) (core.PartitionKey, error) {
	text := header(c.In, hPartitionKey)
	if mode == keyPrefix && def.SystemKey && text != "" && !isTrue(c.In, hCrossPartition) {
		mode = keyFull // [] is the key None here; azcosmos sends it for all keys too, with the other header
	}
	pk, err := keyOf(dst, text, def, mode)
	if err == nil {
		err = c.s.checkKeySize(pk)
	}
	return pk, err
}

// errFewComponents is for a key that is too short, and for none.
var errFewComponents = status.WithSub(status.BadRequest, status.SubPartitionKeyMismatch, "The partition key supplied "+
	"in x-ms-partitionkey header has fewer components than defined in the the collection.")

// keyOf parses a partition key in the header's form and checks it against a container's definition.
func keyOf(dst core.PartitionKey, text string, def *core.PartitionKeyDef, mode keyMode) (core.PartitionKey, error) {
	if text == "" {
		switch {
		case mode == keyPrefix:
			return nil, nil
		case def.SystemKey: // a container that was created without a key: all items have the key None
			return append(dst, value.Undef()), nil
		}
		return nil, errFewComponents
	}
	pk, err := parsePartitionKey(dst, text)
	if err != nil {
		return nil, err
	}
	if len(pk) == 0 {
		if mode == keyPrefix {
			return nil, nil
		}
		if len(def.Paths) == 1 {
			return append(pk, value.Undef()), nil
		}
	}
	switch {
	case len(pk) > len(def.Paths):
		return nil, status.WithSub(status.BadRequest, status.SubPartitionKeyMismatch, "The partition key supplied "+
			"in x-ms-partitionkey header has more components than defined in the the collection.")
	case len(pk) < len(def.Paths) && mode == keyFull:
		return nil, errFewComponents
	}
	return pk, nil
}

// sameKey reports whether two keys name the same logical partition.
func sameKey(a, b core.PartitionKey) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := a[i], b[i]
		if x.Kind() == value.String && y.Kind() == value.String {
			if !bytes.Equal(x.Bytes(), y.Bytes()) {
				return false
			}
			continue
		}
		if x.IsDefined() != y.IsDefined() || x.IsDefined() && !value.EqualCosmos(x, y) {
			return false
		}
	}
	return true
}
