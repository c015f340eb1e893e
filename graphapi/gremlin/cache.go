package gremlin

import (
	"container/list"
	"sync"
)

// maxCachedScript is the length in bytes of the longest script that is cached. Longer scripts contain literal data and
// are rarely repeated.
const maxCachedScript = 8 << 10

// Cache keeps parsed scripts by their text, because clients send the same text with different bindings. It keeps up to
// n scripts and evicts the least recently used one. Safe for concurrent use.
type Cache struct {
	mu  sync.Mutex
	max int
	by  map[string]*list.Element
	lru *list.List // front: most recently used
}

type cached struct {
	src string
	s   *Script
}

// NewCache makes a Cache of up to n scripts.
func NewCache(n int) *Cache {
	return &Cache{max: n, by: make(map[string]*list.Element), lru: list.New()}
}

// Parse is like the function Parse, but returns the cached script if it is valid for the bindings.
func (c *Cache) Parse(src string, bound func(name string) bool) (*Script, error) {
	c.mu.Lock()
	if e, ok := c.by[src]; ok {
		c.lru.MoveToFront(e)
		s := e.Value.(*cached).s
		c.mu.Unlock()
		if s.Fits(bound) {
			return s, nil
		}
	} else {
		c.mu.Unlock()
	}
	s, err := Parse(src, bound)
	if err != nil || len(src) > maxCachedScript {
		return s, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.by[src]; ok {
		e.Value.(*cached).s = s
		return s, nil
	}
	if c.lru.Len() >= c.max {
		last := c.lru.Back()
		c.lru.Remove(last)
		delete(c.by, last.Value.(*cached).src)
	}
	c.by[src] = c.lru.PushFront(&cached{src, s})
	return s, nil
}
