package value

import (
	"encoding/binary"
	"math"
	"math/big"

	"github.com/orrerydb/orrery/core/bson"
)

// ParseDecimal reads a decimal128 from text, see bson.Decimal.Parse. Nothing is rounded.
func ParseDecimal(s string) (v Value, ok bool) {
	var d bson.Decimal
	if !d.Parse(s) {
		return Value{}, false
	}
	return NewDecimal(&d), true
}

// NewDecimal returns a Decimal with its own bytes.
func NewDecimal(d *bson.Decimal) Value { return DecimalOf(d.Append(make([]byte, 0, 16))) }

// DecimalText returns the text of a Decimal, "" for other kinds.
func DecimalText(v Value) string {
	if v.kind != Decimal {
		return ""
	}
	return string(appendDecimal(nil, v.b))
}

// appendDecimal appends the text of a decimal, whose 16 bytes are b.
func appendDecimal(dst, b []byte) []byte {
	var d bson.Decimal
	d.Read(b)
	return d.AppendText(dst)
}

func compareDecFloat(d *bson.Decimal, f float64) int {
	fs := 0
	if f > 0 {
		fs = 1
	} else if f < 0 {
		fs = -1
	}
	switch {
	case d.IsNaN() || math.IsNaN(f):
		return boolInt(math.IsNaN(f)) - boolInt(d.IsNaN())
	case d.Sign() != fs:
		return cmpInt(int64(d.Sign()), int64(fs))
	case fs == 0:
		return 0
	case d.IsInf() || math.IsInf(f, 0):
		return fs * (boolInt(d.IsInf()) - boolInt(math.IsInf(f, 0)))
	case d.Magnitude() > 309: // above every double
		return fs
	case d.Magnitude() < -325: // between 0 and the smallest double
		return -fs
	}
	return d.Rat().Cmp(new(big.Rat).SetFloat64(f))
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// keyOfDecimal returns the position of a finite decimal that no double equals.
func keyOfDecimal(d *bson.Decimal) NumberKey {
	f := d.Float()
	if compareDecFloat(d, f) < 0 {
		f = math.Nextafter(f, math.Inf(-1))
	}
	if math.IsInf(f, -1) {
		return NumberKey{Floor: f, Lossy: true}
	}
	if d.Magnitude() < -400 { // far below the smallest double: a fraction of 0 or 1 is exact enough
		if d.Sign() < 0 {
			return NumberKey{Floor: f, Frac: math.MaxUint64, Lossy: true}
		}
		return NumberKey{Floor: f, Lossy: true}
	}
	ulp := math.Nextafter(f, math.Inf(1)) - f
	if math.IsInf(ulp, 1) { // above the greatest double
		return NumberKey{Floor: f, Frac: math.MaxUint64, Lossy: true}
	}
	q := d.Rat()
	q.Sub(q, new(big.Rat).SetFloat64(f)).Quo(q, new(big.Rat).SetFloat64(ulp))
	q.Mul(q, new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), 64)))
	n := new(big.Int).Quo(q.Num(), q.Denom())
	return NumberKey{Floor: f, Frac: n.Uint64(), Lossy: !q.IsInt()}
}

// DecimalKeySize is the length in bytes of a key of AppendDecimalKey.
const DecimalKeySize = 17

// AppendDecimalKey appends a finite Decimal other than 0 as sortable bytes: the exponent of the first digit and 34
// digits, inverted when negative. Among decimals of one sign, the keys sort by value, and equal decimals have equal
// keys.
func AppendDecimalKey(dst []byte, v Value) []byte {
	var d bson.Decimal
	d.Read(v.b)
	mag := d.Magnitude()
	c := d.Coefficient()
	if n := bson.DecimalDigits - len(c.Text(10)); n > 0 {
		c.Mul(c, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil))
	}
	at := len(dst)
	dst = binary.BigEndian.AppendUint16(dst, uint16(mag+0x4000))
	dst = append(dst, c.FillBytes(make([]byte, DecimalKeySize-2))...)
	if d.Sign() < 0 {
		for i := at; i < len(dst); i++ {
			dst[i] = ^dst[i]
		}
	}
	return dst
}

// DecimalOfKey returns the Decimal of a key that AppendDecimalKey made. neg is its sign. ok is false for bytes that
// AppendDecimalKey never makes.
func DecimalOfKey(key []byte, neg bool) (v Value, ok bool) {
	if len(key) != DecimalKeySize {
		return Value{}, false
	}
	var b [DecimalKeySize]byte
	copy(b[:], key)
	if neg {
		for i := range b {
			b[i] = ^b[i]
		}
	}
	coef := new(big.Int).SetBytes(b[2:])
	exp := int(binary.BigEndian.Uint16(b[:])) - 0x4000 - (bson.DecimalDigits - 1)
	var d bson.Decimal
	if coef.Sign() == 0 || !d.Set(neg, coef, exp) {
		return Value{}, false
	}
	d.Reduce()
	return NewDecimal(&d), true
}
