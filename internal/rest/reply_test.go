package rest

import (
	"testing"
)

// Values that net/http changes when it writes them are sent through net/http: a container's name may end in a space.
func TestHeadersThatAreTrimmed(t *testing.T) {
	c := &Call{}
	c.Set("x-ms-alt-content-path", "dbs/db/colls/c ")
	if c.plain() {
		t.Error("a space at the end")
	}
	c.Discard()
	c.Set("x-ms-continuation", "a\r\nSet-Cookie: b")
	if c.plain() {
		t.Error("a line end inside")
	}
	c.Discard()
	c.Set("x-ms-session-token", "1")
	c.Set("etag", "2")
	c.Set("etag", "3")
	if !c.plain() || string(c.Lines) != "x-ms-session-token: 1\r\netag: 3\r\n" {
		t.Errorf("%q", c.Lines)
	}
}

// A header that is set again replaces the one before, wherever that stands.
func TestHeadersThatAreSetAgain(t *testing.T) {
	c := &Call{}
	for _, v := range []string{"a: 1", "b: 22", "c: 3", "a: 444", "c: ", "b: 5"} {
		c.Set(v[:1], v[3:])
	}
	if got := string(c.Lines); got != "a: 444\r\nc: \r\nb: 5\r\n" || !c.plain() {
		t.Errorf("%q", got)
	}
	h := map[string][]string{} // its keys are as the caller wrote them
	if c.fillMap(h); len(h) != 3 || h["a"][0] != "444" || h["b"][0] != "5" || h["c"][0] != "" {
		t.Error(h)
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
	if v != "" || !c.plain() || string(c.Lines) != "b: 2\r\n" {
		t.Errorf("%q %q", v, c.Lines)
	}
}
