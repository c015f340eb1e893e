package rest

import (
	"encoding/binary"
	"encoding/hex"
	"sync/atomic"

	"github.com/gin-gonic/gin"

	"github.com/orrerydb/orrery/core/clock"
)

// ids generates ids of requests. They are unique in the process and need neither a lock nor a system call for each.
type ids struct {
	base [16]byte
	n    atomic.Uint64
}

func (s *ids) seed(c *clock.Clock) {
	u := c.UUID()
	copy(s.base[:], u[:])
}

// next writes a version 4 UUID: the random UUID of the process, with a counter added to its lower half.
func (s *ids) next(text *[36]byte) {
	id := s.base
	low := binary.BigEndian.Uint64(id[8:]) + s.n.Add(1)
	binary.BigEndian.PutUint64(id[8:], low)
	id[8] = id[8]&0x3F | 0x80
	hex.Encode(text[0:8], id[0:4])
	hex.Encode(text[9:13], id[4:6])
	hex.Encode(text[14:18], id[6:8])
	hex.Encode(text[19:23], id[8:10])
	hex.Encode(text[24:36], id[10:16])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
}

// RequestID gives each call its id: the client's, if the request header of this name (in canonical form) has a GUID,
// otherwise a new one. If the name is "", it is always a new one.
func RequestID(header string) gin.HandlerFunc {
	return func(g *gin.Context) {
		c := g.Writer.(Of).base()
		if v := c.In[header]; len(v) > 0 && IsGUID(v[0]) {
			copy(c.ID[:], v[0])
		} else {
			c.door.ids.next(&c.ID)
		}
		g.Next()
	}
}

// IsGUID reports whether s is a GUID of 36 characters.
func IsGUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := 0; i < len(s); i++ {
		switch ch := s[i]; {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if ch != '-' {
				return false
			}
		case ch >= '0' && ch <= '9', ch|0x20 >= 'a' && ch|0x20 <= 'f':
		default:
			return false
		}
	}
	return true
}
