package rest

import (
	"bytes"
	"net/http"
	"strconv"

	"github.com/orrerydb/orrery/internal/httpconn"
)

// Reply headers are collected in one buffer, Call.Lines, as they are sent: a header needs no allocation, and no copy
// until the reply is written. Names are sent as given here, possibly in lower case. Adding a header again replaces the
// previous one. A value is set directly, or appended between BeginLine and EndLine:
//
//	c.Set("etag", v)
//	c.BeginLine("lsn")
//	c.Lines = strconv.AppendInt(c.Lines, lsn, 10)
//	c.EndLine()

// line is one reply header. In Call.Lines its line begins at start, and its value is between value and end.
type line struct {
	name              string
	start, value, end int
}

// BeginLine begins a reply header. Its value is what is appended to c.Lines until EndLine.
//
//go:noinline // called from many places, see decision 41
func (c *Call) BeginLine(name string) {
	start := len(c.Lines)
	c.Lines = append(append(c.Lines, name...), ':', ' ')
	c.open = line{name: name, start: start, value: len(c.Lines)}
}

// EndLine ends the reply header that BeginLine began.
func (c *Call) EndLine() {
	c.remove(c.open.name)
	c.open.end = len(c.Lines)
	c.Lines = append(c.Lines, '\r', '\n')
	c.lines = append(c.lines, c.open)
}

// Set adds a reply header.
func (c *Call) Set(name, value string) {
	c.BeginLine(name)
	c.Lines = append(c.Lines, value...)
	c.EndLine()
}

// SetInt adds a reply header with a number as its value.
func (c *Call) SetInt(name string, v int64) {
	c.BeginLine(name)
	c.Lines = strconv.AppendInt(c.Lines, v, 10)
	c.EndLine()
}

// Take removes a reply header and returns its value, "" if there is none.
func (c *Call) Take(name string) (value string) {
	if at := c.find(name); at >= 0 {
		value = string(c.Lines[c.lines[at].value:c.lines[at].end])
		c.remove(name)
	}
	return value
}

// find returns the index of a reply header in c.lines, -1 if there is none.
func (c *Call) find(name string) int {
	for i := range c.lines {
		if c.lines[i].name == name {
			return i
		}
	}
	return -1
}

// remove removes a reply header if it is there. The lines after it move forward.
func (c *Call) remove(name string) {
	at := c.find(name)
	if at < 0 {
		return
	}
	l := c.lines[at]
	n := l.end + len("\r\n") - l.start
	c.Lines = append(c.Lines[:l.start], c.Lines[l.start+n:]...)
	c.lines = append(c.lines[:at], c.lines[at+1:]...)
	for i := range c.lines[at:] {
		c.lines[at+i].move(n)
	}
	c.open.move(n)
}

// move moves a line n bytes forward.
func (l *line) move(n int) { l.start, l.value, l.end = l.start-n, l.value-n, l.end-n }

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
	text := string(c.Lines)
	values := make([]string, len(c.lines))
	for i, l := range c.lines {
		values[i] = text[l.value:l.end]
		h[l.name] = values[i : i+1 : i+1]
	}
}

// giveLines gives the reply headers to the connection, bypassing the map. It returns false if the connection takes no
// lines, or if net/http would change a value before writing it. body says that the status allows a body.
func (c *Call) giveLines(body bool) bool {
	conn := httpconn.Of(c.Request.Context())
	if conn == nil || !c.plain() {
		return false
	}
	n := len(c.Out)
	if !body || c.Request.Method == http.MethodHead {
		n = 0
	}
	c.Lines, c.lines = conn.Next(c.Lines, n), c.lines[:0]
	c.Header()["Date"] = c.door.dated()
	return true
}

// plain reports whether net/http would write all values as they are: it trims spaces, and replaces line ends.
func (c *Call) plain() bool {
	for _, l := range c.lines {
		if v := c.Lines[l.value:l.end]; len(v) > 0 && (v[0] <= ' ' || v[len(v)-1] <= ' ') {
			return false
		}
	}
	n := len(c.lines)
	return bytes.Count(c.Lines, []byte{'\n'}) == n && bytes.Count(c.Lines, []byte{'\r'}) == n
}

// Discard removes all reply headers and the body, because an error replaces them.
func (c *Call) Discard() {
	c.Lines, c.lines, c.Out = c.Lines[:0], c.lines[:0], c.Out[:0]
}
