package sqlapi

import (
	"strings"
	"testing"
)

// The Rust SDK writes items in the binary form of JSON unless it is told not to, and reads both forms.
func TestItemsInBinaryJSON(t *testing.T) {
	a := withContainer(t)
	item := func(n string) string { // {"id":"1","pk":"a","n":n}
		return "\x80\xEA\x0B\x2C\x811\x82pk\x81a\x81n" + n
	}
	a.do("POST", docs, item("\x01"), key("a")).is(201).has(`"id":"1"`).has(`"n":1`)
	a.do("POST", docs, item("\x02"), key("a")).is(409)
	a.do("POST", docs, item("\x03"), key("a"), "x-ms-documentdb-is-upsert: true").is(200).has(`"n":3`)
	a.do("PUT", docs+"/1", item("\x04"), key("a")).is(200).has(`"n":4`)
	a.do("GET", docs+"/1", "", key("a")).is(200).has(`"n":4`)
	a.do("POST", docs, item(""), key("a")).is(400)
	a.do("POST", docs, "\x80\x2C", key("a")).is(400)
	a.do("POST", docs, "\x80", key("a")).is(400)
	// Deeper than an item may be, in the binary form and as text.
	for _, deep := range []string{strings.Repeat("\xE1", 300) + "\xE0", strings.Repeat("\xE1", 5000) + "\xE0"} {
		size := 10 + len(deep)
		a.do("POST", docs, "\x80\xEB"+string([]byte{byte(size), byte(size >> 8)})+"\x2C\x811\x82pk\x81b\x81n"+deep,
			key("b")).is(400)
	}
}
