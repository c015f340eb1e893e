package sql

import (
	"hash/maphash"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/expand"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// planCache caches compiled programs by text. The number of entries and the bytes of text are bounded. When it is full
// the older half of the entries is dropped; a text in use is then compiled once more.
type planCache struct {
	mu       sync.RWMutex
	now, old map[string]*program
	bytes    int
}

const (
	cacheEntries = 1000
	cacheBytes   = 4 << 20
)

// shards split the cache, so that executions of different texts rarely wait for the same lock.
var (
	cacheSeed = maphash.MakeSeed()
	caches    [16]planCache
)

// cached returns the program of a text. It compiles the text when the cache doesn't have it. Refused texts are not
// cached.
func cached(text string) (*program, error) {
	c := cacheOf(text)
	p := c.get(text)
	if p == nil {
		var err error
		if p, err = compile(text, syntax.DefaultLimits()); err != nil {
			return nil, err
		}
		c.put(p)
	}
	return p, nil
}

func cacheOf(key string) *planCache { return &caches[maphash.String(cacheSeed, key)&15] }

// get returns the program under a key; nil when there is none.
func (c *planCache) get(key string) *program {
	c.mu.RLock()
	p := c.now[key]
	c.mu.RUnlock()
	if p != nil {
		return p
	}
	c.mu.Lock()
	p = c.old[key]
	c.mu.Unlock()
	if p != nil {
		c.put(p)
	}
	return p
}

func (c *planCache) put(p *program) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now == nil || len(c.now) >= cacheEntries/16 || c.bytes >= cacheBytes/16 {
		c.old, c.now, c.bytes = c.now, map[string]*program{}, 0
	}
	if c.now[p.key] == nil {
		c.bytes += len(p.key)
		c.now[p.key] = p
	}
}

// cachedFor is cached for a container with computed properties (nil: none). planar says that its geometries lie in a
// plane.
func cachedFor(text string, comp *expand.Computed, planar bool) (*program, error) {
	if comp == nil && !planar {
		return cached(text)
	}
	key := "\x00" + text
	if planar {
		key = "\x00" + key
	}
	if comp != nil {
		key = comp.Key + key
	}
	c := cacheOf(key)
	if p := c.get(key); p != nil {
		return p, nil
	}
	q, err := syntax.Parse(text, syntax.DefaultLimits())
	if err != nil {
		return nil, err
	}
	if comp != nil {
		if q, err = comp.Expand(q); err != nil {
			return nil, err
		}
	}
	p, err := compileQuery(text, q, planar)
	if err != nil {
		return nil, err
	}
	if comp != nil {
		p.hash ^= comp.Hash
	}
	p.key = key
	c.put(p)
	return p, nil
}

// withNames returns the program of the same text in which the parameters that are names of properties have their
// values, so that c[@p] is a path (expand.Names).
func (p *program) withNames(params []Param, env *Env) (*program, error) {
	names := map[string]string{}
	for _, x := range params { // the last one of a name counts
		name := strings.TrimPrefix(x.Name, "@")
		if delete(names, name); slices.Contains(p.named, name) && x.Value.Kind() == value.String {
			names[name] = x.Value.Str()
		}
	}
	if len(names) == 0 {
		return p, nil
	}
	key := "\x01"
	for _, name := range slices.Sorted(maps.Keys(names)) {
		key += name + "\x00" + strconv.Quote(names[name]) + "\x00"
	}
	sum := xxhash.Sum64String(key)
	key += p.key
	c := cacheOf(key)
	if n := c.get(key); n != nil {
		return n, nil
	}
	q, err := syntax.Parse(p.text, syntax.DefaultLimits())
	if err != nil {
		return nil, err
	}
	q = expand.Names(q, func(param string) (string, bool) {
		name, ok := names[param]
		return name, ok
	})
	if env.Computed != nil {
		if q, err = env.Computed.Expand(q); err != nil {
			return nil, err
		}
	}
	n, err := compileQuery(p.text, q, env.Planar)
	if err != nil {
		return nil, err
	}
	n.key, n.hash = key, n.hash^sum
	if env.Computed != nil {
		n.hash ^= env.Computed.Hash
	}
	c.put(n)
	return n, nil
}
