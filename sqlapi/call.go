package sqlapi

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/internal/httpconn"
)

// call is one request on its way through the API, and the reply as it grows. Calls are pooled: nothing of one may be kept
// after its handler returned.
type call struct {
	s    *Server
	w    http.ResponseWriter
	r    *http.Request
	in   http.Header // the request's
	path path

	grant *grant // what a resource token allows; nil: everything

	charge float64 // request units of the reply; minCharge when a handler leaves it 0
	sub    int     // sub-status header of the reply, 0: none

	body  []byte // request body
	out   []byte // reply body
	spare []byte // scratch of the handler
	item  core.Item
	mem   core.Mem // what item lives in

	hdr   []byte // values of the reply headers
	slots []hdrSlot
	lines []byte // the same as lines, for replyhead
	sent  bool

	activity [36]byte
}

// hdrSlot is one reply header: its canonical key and where its value is in call.hdr.
type hdrSlot struct {
	key        string
	start, end int
}

// minCharge is what a reply costs at least: clients sum the charges and take 0 for a fault.
const minCharge = 1

// keepBuffer is the largest buffer that goes back to the pool.
const keepBuffer = 256 << 10

var calls = sync.Pool{New: func() any {
	return &call{out: make([]byte, 0, 4<<10), body: make([]byte, 0, 4<<10), hdr: make([]byte, 0, 512), lines: make([]byte, 0, 1<<10), slots: make([]hdrSlot, 0, 24)}
}}

func (s *Server) newCall(w http.ResponseWriter, r *http.Request) *call {
	c := calls.Get().(*call)
	c.s, c.w, c.r, c.in = s, w, r, r.Header
	c.charge, c.sub, c.sent, c.grant = 0, 0, false, nil
	c.body, c.out, c.spare, c.hdr, c.slots = c.body[:0], c.out[:0], c.spare[:0], c.hdr[:0], c.slots[:0]
	c.setActivity()
	return c
}

func (c *call) release() {
	c.s, c.w, c.r, c.in = nil, nil, nil, nil
	c.path = path{}
	for _, b := range []*[]byte{&c.body, &c.out, &c.spare, &c.hdr, &c.lines} {
		if cap(*b) > keepBuffer {
			*b = nil
		}
	}
	c.item = core.Item{}
	if c.mem.Size() > keepBuffer {
		c.mem = core.Mem{}
	}
	calls.Put(c)
}

// ctx is the request's context.
func (c *call) ctx() context.Context { return c.r.Context() }

// setActivity takes the client's activity id when it is a GUID, as the service does, or makes one.
func (c *call) setActivity() {
	if v := header(c.in, hActivityID); isGUID(v) {
		copy(c.activity[:], v)
		return
	}
	id := c.s.ids.next()
	a := &c.activity
	hex.Encode(a[0:8], id[0:4])
	hex.Encode(a[9:13], id[4:6])
	hex.Encode(a[14:18], id[6:8])
	hex.Encode(a[19:23], id[8:10])
	hex.Encode(a[24:36], id[10:16])
	a[8], a[13], a[18], a[23] = '-', '-', '-', '-'
}

func isGUID(s string) bool {
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

// Header building: begin, append to c.hdr, end.

func (c *call) begin() int { return len(c.hdr) }

func (c *call) end(key string, start int) {
	c.slots = append(c.slots, hdrSlot{key, start, len(c.hdr)})
}

// set adds a reply header.
func (c *call) set(key, value string) {
	n := c.begin()
	c.hdr = append(c.hdr, value...)
	c.end(key, n)
}

// setInt adds a reply header with a number.
func (c *call) setInt(key string, v int64) {
	n := c.begin()
	c.hdr = strconv.AppendInt(c.hdr, v, 10)
	c.end(key, n)
}

// setItemETag adds the etag header of an item.
func (c *call) setItemETag(it *core.Item) {
	n := c.begin()
	c.hdr = append(c.hdr, '"')
	c.hdr = it.AppendETag(c.hdr)
	c.hdr = append(c.hdr, '"')
	c.end(hETag, n)
}

// setETag adds the etag header: the quoted etag.
func (c *call) setETag(etag string) {
	n := c.begin()
	c.hdr = append(c.hdr, '"')
	c.hdr = append(c.hdr, etag...)
	c.hdr = append(c.hdr, '"')
	c.end(hETag, n)
}

// send writes the reply: status, the headers gathered so far and those of every reply, and c.out as body.
func (c *call) send(code int) error {
	c.sent = true
	n := c.begin()
	if c.charge < minCharge {
		c.charge = minCharge
	}
	c.hdr = strconv.AppendFloat(c.hdr, c.charge, 'f', 2, 64)
	c.end(hCharge, n)
	n = c.begin()
	c.hdr = append(c.hdr, c.activity[:]...)
	c.end(rActivityID, n)
	if c.sub != 0 {
		c.setInt(hSubStatus, int64(c.sub))
	}

	h := c.w.Header()
	bodyAllowed := code != http.StatusNoContent && code != http.StatusNotModified
	if bodyAllowed {
		h[hContentType] = vJSON
		h[hContentLength] = []string{strconv.Itoa(len(c.out))}
	}
	if conn := httpconn.Of(c.ctx()); conn != nil && c.makeLines() {
		body := len(c.out)
		if !bodyAllowed || c.r.Method == http.MethodHead {
			body = 0
		}
		conn.Next(c.lines, body)
		h[hPlainDate] = c.s.dated()
	} else {
		text := string(c.hdr)
		values := make([]string, len(c.slots))
		for i, sl := range c.slots {
			values[i] = text[sl.start:sl.end]
			h[sl.key] = values[i : i+1 : i+1]
		}
	}
	c.w.WriteHeader(code)
	if bodyAllowed && len(c.out) > 0 {
		_, _ = c.w.Write(c.out) // the client is gone: nothing left to tell it
	}
	return nil
}

// makeLines makes c.lines of the reply headers as net/http would write them out of the map: in the order of their keys, each once.
// It reports false when a value is none that net/http writes as it is.
func (c *call) makeLines() bool {
	s := c.slots
	for i := 1; i < len(s); i++ { // few, and nearly in order: the cheapest sort there is, and a stable one
		for j := i; j > 0 && s[j].key < s[j-1].key; j-- {
			s[j], s[j-1] = s[j-1], s[j]
		}
	}
	b := c.lines[:0]
	for i, sl := range s {
		if i+1 < len(s) && s[i+1].key == sl.key {
			continue // set again later
		}
		v := c.hdr[sl.start:sl.end]
		if len(v) > 0 && (v[0] <= ' ' || v[len(v)-1] <= ' ') {
			return false
		}
		b = append(b, sl.key...)
		b = append(b, ": "...)
		b = append(b, v...)
		b = append(b, "\r\n"...)
	}
	c.lines = b
	return bytes.IndexByte(c.hdr, '\n') < 0 && bytes.IndexByte(c.hdr, '\r') < 0
}

// maxDrain is how much of a body that is too large is read and thrown away.
const maxDrain = 16 << 20

// drainBody reads the rest of a body that is refused: a client that still writes sees its connection reset instead of the
// answer. Beyond maxDrain it does.
func (c *call) drainBody() {
	if c.r.ContentLength > maxDrain {
		c.w.Header()["Connection"] = []string{"close"}
		return
	}
	if _, err := io.CopyN(io.Discard, c.r.Body, maxDrain); err != io.EOF {
		c.w.Header()["Connection"] = []string{"close"}
	}
}

// readBody reads the request body, at most limit bytes.
func (c *call) readBody(limit int) error {
	if c.r.ContentLength > int64(limit) {
		c.drainBody()
		return errTooLarge
	}
	b := c.body[:0]
	if n := int(c.r.ContentLength); n > cap(b) {
		b = make([]byte, 0, n+1)
	}
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		end := min(cap(b), limit+1)
		n, err := c.r.Body.Read(b[len(b):end])
		b = b[:len(b)+n]
		if len(b) > limit {
			c.drainBody()
			return errTooLarge
		}
		if err != nil {
			c.body = b
			if errors.Is(err, os.ErrDeadlineExceeded) {
				c.w.Header()["Connection"] = []string{"close"}
				return status.Wrap(status.Timeout, err, "The request body did not come in time.")
			}
			if err.Error() != "EOF" {
				return status.Wrap(status.BadRequest, err, "The request body could not be read.")
			}
			return nil
		}
	}
}

// minimal reports whether a write should be answered without a body.
func (c *call) minimal() bool {
	return header(c.in, hPrefer) == "return=minimal"
}
