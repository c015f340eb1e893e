package wire

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"strconv"

	"github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/core/status"
)

// binaryJSON is the first byte of JSON in the binary form. No text begins with it.
const binaryJSON = 0x80

// maxBinaryDepth bounds the recursion over the binary form. It is more than an item may have, so that the error about
// the depth comes from where that of text comes from.
const maxBinaryDepth = 1000

var (
	errBadBinary  = status.New(status.BadRequest, "The binary JSON of the request is malformed.")
	errLongBinary = status.New(status.TooLarge, "The JSON of the request is too large.")
)

// systemStrings are the texts that the binary form has a byte for, beginning with 0x20.
var systemStrings = [32]string{"$s", "$t", "$v", "_attachments", "_etag", "_rid", "_self", "_ts", "attachments/",
	"coordinates", "geometry", "GeometryCollection", "id", "url", "Value", "label", "LineString", "link",
	"MultiLineString", "MultiPoint", "MultiPolygon", "name", "Name", "Type", "Point", "Polygon", "properties", "type",
	"value", "Feature", "FeatureCollection", "_id"}

// IsBinaryJSON reports whether a body is JSON in the service's binary form.
func IsBinaryJSON(b []byte) bool { return len(b) > 0 && b[0] == binaryJSON }

// TextOfBinaryJSON returns JSON in the service's binary form as text, which may have limit bytes.
//
// A value is a marker byte and what belongs to it. Numbers and lengths are little-endian:
//
//	00-1F        a small integer
//	20-3F        one of systemStrings
//	71-7F        a string that consists of few different characters, or is base64 or a GUID
//	80-BF        a string of at most 63 bytes
//	C0-C2        a string with a length of 1, 2 or 4 bytes
//	C3-C6        the string at an offset of 1 to 4 bytes
//	C7-CC        a number of JSON
//	CD-CE D7-DC  a number of a certain size
//	D0-D2        null, false, true
//	D3 DD-DF     a GUID, bytes
//	E0-E7        an array: empty, of one value, with its size in bytes, with that and its count
//	E8-EF        an object, likewise
//	F0-F3        an array of numbers of one size, an array of such arrays
func TextOfBinaryJSON(b []byte, limit int) ([]byte, error) {
	r := binaryReader{b: b, pos: 1, limit: limit}
	if err := r.value(0); err != nil {
		return nil, err
	}
	if r.pos != len(b) {
		return nil, errBadBinary
	}
	return r.out, nil
}

type binaryReader struct {
	b     []byte
	pos   int
	out   []byte
	limit int
}

func (r *binaryReader) take(n int) ([]byte, error) {
	if n < 0 || n > len(r.b)-r.pos {
		return nil, errBadBinary
	}
	r.pos += n
	return r.b[r.pos-n : r.pos], nil
}

// uint reads an integer of n bytes.
func (r *binaryReader) uint(n int) (uint64, error) {
	p, err := r.take(n)
	if err != nil {
		return 0, err
	}
	var room [8]byte
	copy(room[:], p)
	return binary.LittleEndian.Uint64(room[:]), nil
}

// length reads a length or a count of n bytes, at most 4.
func (r *binaryReader) length(n int) (int, error) {
	u, err := r.uint(n)
	return int(u), err
}

// value appends the next value as text.
func (r *binaryReader) value(depth int) error {
	if len(r.out) > r.limit {
		return errLongBinary
	}
	head, err := r.take(1)
	if err != nil || depth > maxBinaryDepth {
		return errBadBinary
	}
	switch m := head[0]; {
	case m < 0x20:
		r.out = strconv.AppendInt(r.out, int64(m), 10)
	case m < 0xC7:
		text, err := r.text(m)
		if err != nil {
			return err
		}
		r.out = json.AppendText(r.out, text)
	case m == 0xD0:
		r.out = append(r.out, "null"...)
	case m == 0xD1:
		r.out = append(r.out, "false"...)
	case m == 0xD2:
		r.out = append(r.out, "true"...)
	case m == 0xD3:
		p, err := r.take(16)
		if err != nil {
			return err
		}
		g := slices.Clone(p) // its first three groups are integers
		slices.Reverse(g[:4])
		slices.Reverse(g[4:6])
		slices.Reverse(g[6:8])
		r.out = append(append(append(r.out, '"'), guid(g, false)...), '"')
	case m >= 0xDD && m <= 0xDF:
		n, err := r.length(1 << (m - 0xDD))
		if err != nil {
			return err
		}
		p, err := r.take(n)
		if err != nil {
			return err
		}
		r.out = append(base64.StdEncoding.AppendEncode(append(r.out, '"'), p), '"')
	case m >= 0xE0 && m <= 0xEF:
		return r.members(m, depth)
	case m >= 0xF0 && m <= 0xF3:
		return r.numbers(m)
	default:
		return r.number(m)
	}
	if len(r.out) > r.limit {
		return errLongBinary
	}
	return nil
}

// members appends an array or an object.
func (r *binaryReader) members(m byte, depth int) error {
	object := m >= 0xE8
	brackets := "[]"
	if object {
		brackets = "{}"
	}
	var err error
	size, count := -1, -1
	switch form := m & 7; {
	case form < 2:
		count = int(form)
	default:
		width := 1 << ((form - 2) % 3)
		if size, err = r.length(width); err == nil && form >= 5 {
			count, err = r.length(width)
		}
	}
	end := r.pos + size
	if err != nil || size >= 0 && end > len(r.b) {
		return errBadBinary
	}
	r.out = append(r.out, brackets[0])
	n := 0
	for ; size >= 0 && r.pos < end || size < 0 && n < count; n++ {
		if n > 0 {
			r.out = append(r.out, ',')
		}
		if object {
			head, err := r.take(1)
			if err != nil {
				return err
			}
			name, err := r.text(head[0])
			if err != nil {
				return err
			}
			r.out = append(json.AppendText(r.out, name), ':')
		}
		if err := r.value(depth + 1); err != nil {
			return err
		}
	}
	if size >= 0 && r.pos != end || count >= 0 && n != count {
		return errBadBinary
	}
	r.out = append(r.out, brackets[1])
	return nil
}

// numbers appends an array of numbers of one size, or an array of such arrays.
func (r *binaryReader) numbers(m byte) error {
	width, nested := 1+int(m&1), m >= 0xF2
	if nested {
		if inner, err := r.take(1); err != nil || inner[0] != m-2 {
			return errBadBinary
		}
	}
	typ, err := r.take(1)
	if err != nil || typ[0] < 0xCD {
		return errBadBinary
	}
	count, err := r.length(width)
	if err != nil {
		return err
	}
	if !nested {
		return r.sameNumbers(typ[0], count)
	}
	rows, err := r.length(width)
	if err != nil {
		return err
	}
	r.out = append(r.out, '[')
	for i := range rows {
		if i > 0 {
			r.out = append(r.out, ',')
		}
		if err := r.sameNumbers(typ[0], count); err != nil {
			return err
		}
	}
	r.out = append(r.out, ']')
	return nil
}

func (r *binaryReader) sameNumbers(typ byte, count int) error {
	r.out = append(r.out, '[')
	for i := range count {
		if i > 0 {
			r.out = append(r.out, ',')
		}
		if err := r.number(typ); err != nil {
			return err
		}
	}
	r.out = append(r.out, ']')
	return nil
}

// number appends the number whose marker is m.
func (r *binaryReader) number(m byte) error {
	var width int
	switch m {
	case 0xC8, 0xD7, 0xD8:
		width = 1
	case 0xC9, 0xD9:
		width = 2
	case 0xCA, 0xCD, 0xDA, 0xDC:
		width = 4
	case 0xC7, 0xCB, 0xCC, 0xCE, 0xDB:
		width = 8
	default:
		return errBadBinary
	}
	u, err := r.uint(width)
	if err != nil {
		return err
	}
	switch m {
	case 0xC7, 0xC8, 0xD7, 0xDC:
		r.out = strconv.AppendUint(r.out, u, 10)
	case 0xCC, 0xCD, 0xCE:
		f := math.Float64frombits(u)
		if m == 0xCD {
			f = float64(math.Float32frombits(uint32(u)))
		}
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return errBadBinary
		}
		r.out = strconv.AppendFloat(r.out, f, 'g', -1, 64)
	default:
		shift := 64 - 8*width
		r.out = strconv.AppendInt(r.out, int64(u<<shift)>>shift, 10)
	}
	return nil
}

// text returns the string whose marker is m.
func (r *binaryReader) text(m byte) ([]byte, error) {
	if m < 0xC3 || m > 0xC6 {
		return r.ownText(m)
	}
	at, err := r.length(int(m) - 0xC2)
	if err != nil || at == 0 {
		return nil, errBadBinary
	}
	there := binaryReader{b: r.b, pos: at}
	head, err := there.take(1)
	if err != nil {
		return nil, err
	}
	return there.ownText(head[0])
}

// ownText is text for a string that isn't a reference to another one.
func (r *binaryReader) ownText(m byte) ([]byte, error) {
	switch {
	case m >= 0x20 && m < 0x40:
		return []byte(systemStrings[m-0x20]), nil
	case m >= 0x80 && m < 0xC0:
		return r.take(int(m & 0x7F))
	case m >= 0xC0 && m <= 0xC2:
		n, err := r.length(1 << (m - 0xC0))
		if err != nil {
			return nil, err
		}
		return r.take(n)
	case m >= 0x71 && m <= 0x74:
		return r.base64Text(m)
	case m >= 0x75 && m <= 0x77:
		p, err := r.take(16)
		if err != nil {
			return nil, err
		}
		g := make([]byte, len(p)) // the low half of each byte is first
		for i, b := range p {
			g[i] = b<<4 | b>>4
		}
		text := guid(g, m == 0x76)
		if m == 0x77 {
			text = slices.Concat([]byte{'"'}, text, []byte{'"'})
		}
		return text, nil
	case m >= 0x78 && m <= 0x7A:
		return r.packed(4, 1, [...]string{"0123456789abcdef", "0123456789ABCDEF", " 0123456789:-.TZ"}[m-0x78])
	case m >= 0x7B && m <= 0x7E:
		return r.packed(int(m)-0x7B+4, 1, "")
	case m == 0x7F:
		return r.packed(7, 2, "")
	}
	return nil, errBadBinary
}

// packed unpacks a string whose characters have a few bits each, the lowest first. They are indexes of an alphabet, or,
// without one, distances from a character that is given if they have less than 7 bits. width is that of the length.
func (r *binaryReader) packed(bits, width int, alphabet string) ([]byte, error) {
	n, err := r.length(width)
	if err != nil {
		return nil, err
	}
	base := 0
	if alphabet == "" && bits < 7 {
		if base, err = r.length(1); err != nil {
			return nil, err
		}
	}
	p, err := r.take((n*bits + 7) / 8)
	if err != nil {
		return nil, err
	}
	text := make([]byte, n)
	for i := range text {
		at := i * bits
		v := int(p[at/8])
		if at/8+1 < len(p) {
			v |= int(p[at/8+1]) << 8
		}
		v = v >> (at % 8) & (1<<bits - 1)
		if alphabet != "" {
			text[i] = alphabet[v]
		} else {
			text[i] = byte(base + v)
		}
	}
	return text, nil
}

// base64Text returns base64 of the bytes that follow. Their count is given by that of the groups of four characters and
// by the padding: that many characters of the last group are '=', or, when it is inverted, are left out.
func (r *binaryReader) base64Text(m byte) ([]byte, error) {
	coding := base64.StdEncoding
	if m >= 0x73 {
		coding = base64.URLEncoding
	}
	groups, err := r.length(2 - int(m&1))
	if err != nil {
		return nil, err
	}
	pad, err := r.take(1)
	if err != nil {
		return nil, err
	}
	n := pad[0]
	if n > 2 {
		n, coding = ^n, coding.WithPadding(base64.NoPadding)
	}
	if n > 2 {
		return nil, errBadBinary
	}
	p, err := r.take(groups*3 - int(n))
	if err != nil {
		return nil, err
	}
	return coding.AppendEncode(nil, p), nil
}

// guid returns 16 bytes in the form of a GUID.
func guid(b []byte, upper bool) []byte {
	var text []byte
	for i, c := range b {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			text = append(text, '-')
		}
		text = hex.AppendEncode(text, []byte{c})
	}
	if upper {
		for i, c := range text {
			if c >= 'a' {
				text[i] = c - 'a' + 'A'
			}
		}
	}
	return text
}
