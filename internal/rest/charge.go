package rest

import (
	"bytes"
	"strconv"
)

// AppendCharge appends a charge in request units as replies show it: with two decimals, or with up to four if they are
// needed.
func AppendCharge(dst []byte, charge float64) []byte {
	dst = strconv.AppendFloat(dst, charge, 'f', 4, 64)
	if short, ok := bytes.CutSuffix(dst, []byte("00")); ok {
		return short
	}
	return bytes.TrimSuffix(dst, []byte("0"))
}
