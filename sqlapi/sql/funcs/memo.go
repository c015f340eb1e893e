package funcs

import (
	"bytes"

	"github.com/orrerydb/orrery/core/value"
)

// memo is what an argument was made into the last time.
type memo struct {
	text   []byte
	made   any
	misses int
}

// A value is kept up to maxMemo bytes, and no more after maxMisses others in a row: then it is an item's and not a
// parameter.
const (
	maxMemo   = 256 << 10
	maxMisses = 8
)

// recall returns what the value of an argument was made into the last time at this place of the query; false when it is
// another one.
func recall[T any](c *Context, site *byte, v value.Value) (out T, ok bool) {
	m := c.memos[site]
	if m == nil || !bytes.Equal(m.text, v.Bytes()) {
		return out, false
	}
	m.misses = 0
	return m.made.(T), true
}

// keep makes something of a value that was not recalled.
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
