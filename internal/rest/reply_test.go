package rest

import "testing"

// Values that net/http changes when it writes them are sent through net/http: a container's name may end in a space.
func TestHeadersThatAreTrimmed(t *testing.T) {
	c := &Call{}
	c.Set("x-ms-alt-content-path", "dbs/db/colls/c ")
	if _, ok := c.appendLines(nil); ok {
		t.Error("a space at the end")
	}
	c.Values, c.slots = nil, nil
	c.Set("x-ms-continuation", "a\r\nSet-Cookie: b")
	if _, ok := c.appendLines(nil); ok {
		t.Error("a line end inside")
	}
	c.Values, c.slots = nil, nil
	c.Set("x-ms-session-token", "1")
	c.Set("etag", "2")
	c.Set("etag", "3")
	if lines, ok := c.appendLines(nil); !ok || string(lines) != "etag: 3\r\nx-ms-session-token: 1\r\n" {
		t.Errorf("%q", lines)
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
	v := c.Take("a")
	if lines, ok := c.appendLines(nil); v != "" || !ok || string(lines) != "b: 2\r\n" {
		t.Errorf("%q %q", v, lines)
	}
}
