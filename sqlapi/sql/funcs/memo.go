package funcs

import (
	"bytes"

	"github.com/orrerydb/orrery/core/value"
)

// memo caches what the last value of an argument was converted to: a parsed geometry or a decoded vector.
//
// Example: ST_DISTANCE(c.place, @p). For the first row the geometry @p is parsed and kept. For each further row recall
// finds that @p has the same bytes and returns the parsed geometry. The argument c.place differs in each row: after
// maxMisses rows it isn't kept any more.
type memo struct {
	text   []byte
	made   any
	misses int
}

// Only values of up to maxMemo bytes are kept. After maxMisses misses in a row nothing more is kept: the argument then
// comes from the items and is no parameter.
const (
	maxMemo   = 256 << 10
	maxMisses = 8
)

// recall returns the cached conversion of an argument. site identifies the argument's place in the query. ok is false
// when the last value at this place was a different one.
func recall[T any](c *Context, site *byte, v value.Value) (out T, ok bool) {
	m := c.memos[site]
	if m == nil || !bytes.Equal(m.text, v.Bytes()) {
		return out, false
	}
	m.misses = 0
	return m.made.(T), true
}

// keep caches made, the conversion of v, for the next recall, and returns it.
func keep[T any](c *Context, site *byte, v value.Value, made T) T {
	m := c.memos[site]
	if m == nil {
		if c.memos == nil {
			c.memos = map[*byte]*memo{}
		}
		m = &memo{}
		c.memos[site] = m
	}
	if m.misses++; m.misses <= maxMisses && len(v.Bytes()) <= maxMemo {
		m.text, m.made = append(m.text[:0], v.Bytes()...), made
	}
	return made
}
