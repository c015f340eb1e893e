package wire

import (
	"strconv"
	"strings"
)

// AppendSessionToken appends the token of one partition. It has the id, version -1 and one LSN: both numbers must be
// integers, because SDKs parse them, and there is never a region part. The simple form has the id and the LSN only.
// Clients of the first versions of the protocol know no other.
func AppendSessionToken[ID string | []byte](dst []byte, rangeID ID, lsn int64, simple bool) []byte {
	dst = append(append(dst, rangeID...), ':')
	if !simple {
		dst = append(dst, "-1#"...)
	}
	return strconv.AppendInt(dst, lsn, 10)
}

// SessionLSN reads the LSN of one token: "id:version#lsn" with any number of "#region=lsn" parts, or the simple
// "id:lsn".
func SessionLSN(part string) (int64, bool) {
	i := strings.IndexByte(part, ':')
	if i < 0 {
		return 0, false
	}
	v := part[i+1:]
	if j := strings.IndexByte(v, '#'); j >= 0 {
		v = v[j+1:]
		if k := strings.IndexByte(v, '#'); k >= 0 {
			v = v[:k]
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
	return n, err == nil
}
