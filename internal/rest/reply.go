package rest

import (
	"bytes"
	"net/http"
	"strconv"

	"github.com/orrerydb/orrery/internal/httpconn"
)

// Reply headers are collected in one buffer, Call.Values, so a header needs no allocation. Names are sent as given
// here, possibly in lower case. Adding a header again replaces the previous one. A value is set directly, or appended
// and then added:
//
//	c.Set("etag", v)
//	from := len(c.Values)
//	c.Values = strconv.AppendInt(c.Values, lsn, 10)
//	c.Add("lsn", from)

// slot is one reply header: its name, and the position of its value in Call.Values.
type slot struct {
	name       string
	start, end int
}

// Add adds a reply header. Its value is the bytes that were appended to c.Values since it had length from.
func (c *Call) Add(name string, from int) {
	c.slots = append(c.slots, slot{name, from, len(c.Values)})
}

// Set adds a reply header.
func (c *Call) Set(name, value string) {
	from := len(c.Values)
	c.Values = append(c.Values, value...)
	c.Add(name, from)
}

// SetInt adds a reply header with a number as its value.
func (c *Call) SetInt(name string, v int64) {
	from := len(c.Values)
	c.Values = strconv.AppendInt(c.Values, v, 10)
	c.Add(name, from)
}

// Take removes a reply header and returns its value, "" if there is none.
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

// Send writes the reply: the status, the reply headers, and c.Out as the body if the status allows one. contentType is
// the header's value, shared by all replies of its kind; nil = no header.
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

// fillMap copies the reply headers to net/http's map.
func (c *Call) fillMap(h http.Header) {
	text := string(c.Values)
	values := make([]string, len(c.slots))
	for i, s := range c.slots {
		values[i] = text[s.start:s.end]
		h[s.name] = values[i : i+1 : i+1]
	}
}

// giveLines gives the reply headers to the connection as lines, bypassing the map. It returns false if the connection
// takes no lines, or if net/http would change a value before writing it. body says that the status allows a body.
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

// appendLines appends the reply headers as net/http would write them from the map: sorted by name, each name once. ok
// is false if net/http would change a value.
func (c *Call) appendLines(dst []byte) (lines []byte, ok bool) {
	s := c.slots
	for i := 1; i < len(s); i++ { // insertion sort: few elements, nearly sorted, and it must be stable
		for j := i; j > 0 && s[j].name < s[j-1].name; j-- {
			s[j], s[j-1] = s[j-1], s[j]
		}
	}
	for i, x := range s {
		if i+1 < len(s) && s[i+1].name == x.name {
			continue // the header is set again later
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

// Discard removes all reply headers and the body, because an error replaces them.
func (c *Call) Discard() {
	c.Values, c.slots, c.Out = c.Values[:0], c.slots[:0], c.Out[:0]
}
