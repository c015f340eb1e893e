package mongoapi

import (
	"errors"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/peer"
	"github.com/orrerydb/orrery/mongoapi/wire"
)

// A client offers compressors in its first hello, and may then compress each message with one of those that the answer
// names. A reply is compressed as its message was, if it is long enough to gain by it.

// appendCompressors appends the compressors that both sides know, in the client's order.
func appendCompressors(dst []byte, offered value.Value) []byte {
	var common []string
	for it := offered.Iter(); offered.Kind() == value.Array && it.Next(); {
		if _, ok := wire.CompressorNamed(it.Value().Str()); ok && len(common) < 3 {
			common = append(common, it.Value().Str())
		}
	}
	if len(common) == 0 {
		return dst
	}
	return bson.AppendStrings(dst, "compression", common...)
}

// unpack returns the message that a compressed one contains. It is valid until the next call.
func (c *conn) unpack(h wire.Header, msg []byte) (wire.Header, []byte, *peer.Refused) {
	most := int32(wire.MaxMessage)
	if !c.authed {
		most = c.s.o.Limits.Small
	}
	z, err := wire.ParseCompressed(h, msg, most)
	if n := int(z.Header.Length); err == nil && cap(c.plain) < n {
		if err = peer.Take(c.mem, cap(c.plain), n); err == nil {
			c.plain = make([]byte, 0, n)
		}
	}
	if err == nil {
		c.plain, err = z.Append(c.plain[:0])
	}
	plain := c.plain
	if cap(plain) > keepBuffer {
		c.plain = nil
	}
	var bad wire.Malformed
	switch {
	case errors.As(err, &bad):
		return h, nil, &peer.Refused{Cause: merr.New(merr.BadValue, "%s", bad)}
	case err != nil:
		return h, nil, &peer.Refused{Cause: err}
	}
	c.zip = z.Compressor
	return z.Header, plain, nil
}

// pack returns a reply as it is sent. It is valid until the next call. If there is no memory for the compressed form,
// the reply is sent as it is.
func (c *conn) pack(reply []byte) []byte {
	if c.zip == wire.Noop || !wire.Compressible(reply) {
		return reply
	}
	if n := len(reply) - keepBuffer; n > 0 && c.mem.Grow(int64(n)) != nil {
		return reply
	}
	packed, ok := wire.AppendCompressed(c.packed[:0], reply, c.zip)
	if c.packed = packed; cap(packed) > keepBuffer {
		c.packed = nil
	}
	if !ok {
		return reply
	}
	return packed
}
