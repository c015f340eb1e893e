package rest

import "testing"

// Values that net/http changes on their way out go through net/http: a container's name may end in a space.
func TestHeadersThatAreTrimmed(t *testing.T) {
	c := &Call{}
	c.Set("x-ms-alt-content-path", "dbs/db/colls/c ")
	if c.makeLines() {
		t.Error("a space at the end")
	}
	c.Values, c.slots = nil, nil
	c.Set("x-ms-continuation", "a\r\nSet-Cookie: b")
	if c.makeLines() {
		t.Error("a line end inside")
	}
	c.Values, c.slots = nil, nil
	c.Set("x-ms-session-token", "1")
	c.Set("etag", "2")
	c.Set("etag", "3")
	if !c.makeLines() || string(c.lines) != "etag: 3\r\nx-ms-session-token: 1\r\n" {
		t.Errorf("%q", c.lines)
	}
}

func TestTake(t *testing.T) {
	c := &Call{}
	for _, v := range []string{"a: 1", "b: 2", "a: 3"} {
		c.Set(v[:1], v[3:])
	}
	if v := c.Take("a"); v != "3" {
		t.Errorf("%q", v)
	}
	if v := c.Take("a"); v != "" || !c.makeLines() || string(c.lines) != "b: 2\r\n" {
		t.Errorf("%q %q", v, c.lines)
	}
}
