package rest

import (
	"bytes"
	"net/http"
	"strconv"

	"github.com/orrerydb/orrery/internal/httpconn"
)

// Reply headers are gathered in one buffer, Call.Values: each costs no allocation, and their names go out as they are
// given here, in lower case if so. A header that is added again replaces the one before. A value is set at once, or
// appended and added:
//
//	c.Set("etag", v)
//	from := len(c.Values)
//	c.Values = strconv.AppendInt(c.Values, lsn, 10)
//	c.Add("lsn", from)

// slot is one reply header: its name and where its value is in Call.Values.
type slot struct {
	name       string
	start, end int
}

// Add adds a reply header whose value is what was appended to c.Values since its length was from.
func (c *Call) Add(name string, from int) {
	c.slots = append(c.slots, slot{name, from, len(c.Values)})
}

// Set adds a reply header.
func (c *Call) Set(name, value string) {
	from := len(c.Values)
	c.Values = append(c.Values, value...)
	c.Add(name, from)
}

// SetInt adds a reply header with a number.
func (c *Call) SetInt(name string, v int64) {
	from := len(c.Values)
	c.Values = strconv.AppendInt(c.Values, v, 10)
	c.Add(name, from)
}

// Take removes a reply header that was added and returns its value, "" when there is none.
func (c *Call) Take(name string) (value string) {
	kept := c.slots[:0]
	for _, s := range c.slots {
		if s.name == name {
			value = string(c.Values[s.start:s.end])
		} else {
			kept = append(kept, s)
		}
	}
	c.slots = kept
	return value
}

// Send writes the reply: status, reply headers, and c.Out as body where the status has one. contentType is the
// header's value, shared by all replies of its kind; nil: no header.
func (c *Call) Send(code int, contentType []string) {
	c.sent = true
	c.Finished()
	h := c.Header()
	allowed := code != http.StatusNoContent && code != http.StatusNotModified && code >= 200
	if allowed {
		if contentType != nil {
			h["Content-Type"] = contentType
		}
		h["Content-Length"] = []string{strconv.Itoa(len(c.Out))}
	}
	if !c.giveLines(allowed) {
		c.fillMap(h)
	}
	c.WriteHeader(code)
	c.WriteHeaderNow()
	if allowed && len(c.Out) > 0 {
		if _, err := c.Write(c.Out); err != nil {
			c.left = true
		}
	}
}

// fillMap gives the reply headers to net/http.
func (c *Call) fillMap(h http.Header) {
	text := string(c.Values)
	values := make([]string, len(c.slots))
	for i, s := range c.slots {
		values[i] = text[s.start:s.end]
		h[s.name] = values[i : i+1 : i+1]
	}
}

// giveLines gives the reply headers to the connection, past the map. It reports false when there is no connection that
// takes them, or a value that net/http wouldn't write as it is. body says that the status has a body.
func (c *Call) giveLines(body bool) bool {
	conn := httpconn.Of(c.Request.Context())
	if conn == nil {
		return false
	}
	lines, ok := c.appendLines(conn.Room())
	if !ok {
		return false
	}
	n := len(c.Out)
	if !body || c.Request.Method == http.MethodHead {
		n = 0
	}
	conn.Next(lines, n)
	c.Header()["Date"] = c.door.dated()
	return true
}

// appendLines appends the reply headers as net/http would write them out of the map: in the order of their names, each
// once. ok is false when a value is none that net/http writes as it is.
func (c *Call) appendLines(dst []byte) (lines []byte, ok bool) {
	s := c.slots
	for i := 1; i < len(s); i++ { // few, and nearly in order: the cheapest sort there is, and a stable one
		for j := i; j > 0 && s[j].name < s[j-1].name; j-- {
			s[j], s[j-1] = s[j-1], s[j]
		}
	}
	for i, x := range s {
		if i+1 < len(s) && s[i+1].name == x.name {
			continue // set again later
		}
		v := c.Values[x.start:x.end]
		if len(v) > 0 && (v[0] <= ' ' || v[len(v)-1] <= ' ') {
			return dst, false
		}
		dst = append(dst, x.name...)
		dst = append(dst, ": "...)
		dst = append(dst, v...)
		dst = append(dst, "\r\n"...)
	}
	return dst, bytes.IndexByte(c.Values, '\n') < 0 && bytes.IndexByte(c.Values, '\r') < 0
}

// Discard forgets the reply headers that were set and the body that was made: an error takes their place.
func (c *Call) Discard() {
	c.Values, c.slots, c.Out = c.Values[:0], c.slots[:0], c.Out[:0]
}
