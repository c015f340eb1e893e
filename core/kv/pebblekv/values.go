package pebblekv

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
	"github.com/coocood/freecache"
	"github.com/orrerydb/orrery/core/kv"
)

// values caches the values of keys that are read one by one. Without it a read would search the memtables and every run
// of L0, and then a block. A cached block holds the wanted value and about six others, and each merge moves them to
// blocks that aren't cached. Each write puts its value into this cache.
//
// Its answers equal those of the store. A writer announces the keys of a batch before it applies it (enter), and
// reports the outcome afterwards (leave). Keys are distributed over shards. Invariants:
//
//  1. An entry has the value of its key in every state of the store from the entry's tick until the next writer of the
//     key applies.
//  2. While a writer is between enter and leave, no entry of its shards is read or made. So a reader that has seen a
//     write in the store doesn't find the older value here.
//  3. A snapshot uses an entry only if the entry's tick came before the snapshot's. Then no later write is in it.
//
// Example: a snapshot gets tick 6. The entry of key "k" has tick 4, so the snapshot uses it. A writer enters "k",
// applies and leaves: the new entry has the present tick, 6. The snapshot with tick 6 doesn't use it and reads the
// store. The next snapshot gets tick 7 and uses it.
type values struct {
	cache  *freecache.Cache
	kept   func(key []byte) bool
	ticks  atomic.Uint64 // grows with each snapshot and each dropped range
	drops  dropped
	puts   puts
	hits   atomic.Int64
	misses atomic.Int64
	shards [valueShards]valueShard
}

const (
	valueShards = 1 << 10
	valueHead   = 12      // bytes before the value in an entry: its tick, its length
	valueStep   = 64      // entries have a multiple of this length, so that a slightly longer value fits into its place
	maxValue    = 8 << 10 // longer values aren't cached: a few would take the space of many
)

// valueShard is the state that the writers and readers of a shard share. entered and inside change only while mu is
// held.
type valueShard struct {
	mu      sync.Mutex
	entered atomic.Uint64 // number of writers so far
	inside  atomic.Int32  // number of writers between enter and leave
	tick    uint64        // when the last writer left
	_       [32]byte      // fills a cache line
}

// puts counts the entries that were made. It is the clock by which the cache finds old entries.
type puts struct{ n atomic.Uint64 }

// Now implements freecache.Timer.
func (p *puts) Now() uint32 { return uint32(p.n.Load() >> 10) }

// newValues makes a cache of size bytes for the keys for which kept returns true. Its memory is allocated as it fills.
func newValues(size int, kept func(key []byte) bool) *values {
	v := &values{kept: kept}
	v.cache = freecache.NewCacheCustomTimer(size, &v.puts)
	return v
}

func (v *values) keeps(key []byte) bool { return v != nil && v.kept(key) }

// shard finds the shard of a key's hash. freecache uses other bits of the hash for its segments.
func (v *values) shard(hash uint64) *valueShard { return &v.shards[hash>>32&(valueShards-1)] }

// touch is an operation on a key that may be cached.
type touch struct {
	hash    uint64 // of the key
	op      int    // index in the batch
	late    bool   // the operation is in the late batch
	alone   bool   // no other writer was in the shard
	entered uint64
}

// enter announces the keys of a batch that will be applied next.
func (v *values) enter(ts []touch) {
	for i := range ts {
		t := &ts[i]
		s := v.shard(t.hash)
		s.mu.Lock()
		t.alone = s.inside.Add(1) == 1
		t.entered = s.entered.Add(1)
		s.mu.Unlock()
	}
}

// leave ends what enter began. b and late are the batches of the touches. applied is false when the store's state is
// unknown. If a writer wasn't alone in a shard, it is unknown which value is the last, so the entry is removed.
func (v *values) leave(ts []touch, b, late *kv.Batch, applied bool) {
	for i := range ts {
		t := &ts[i]
		of := b
		if t.late {
			of = late
		}
		op := of.Op(t.op)
		s := v.shard(t.hash)
		s.mu.Lock()
		s.tick = v.ticks.Load()
		if applied && t.alone && s.entered.Load() == t.entered && 0 < len(op.Value) && len(op.Value) <= maxValue {
			v.put(op.Key, op.Value, s.tick)
		} else {
			v.cache.Del(op.Key)
		}
		s.inside.Add(-1)
		s.mu.Unlock()
	}
}

var entries = sync.Pool{New: func() any { b := make([]byte, valueHead+maxValue+valueStep); return &b }}

// put makes an entry. The caller holds the shard's mutex.
func (v *values) put(key, value []byte, tick uint64) {
	v.puts.n.Add(1)
	room := entries.Get().(*[]byte)
	e := *room
	binary.LittleEndian.PutUint64(e, tick)
	binary.LittleEndian.PutUint32(e[8:], uint32(len(value)))
	n := valueHead + copy(e[valueHead:], value)
	if v.cache.Set(key, e[:(n+valueStep-1)&^(valueStep-1)], 0) != nil {
		// the entry is too large, and the cache has kept the old one
		v.cache.Del(key)
	}
	entries.Put(room)
}

// take appends the value of a key to dst if there is an entry that is valid for a snapshot with tick before.
func (v *values) take(dst, key []byte, before uint64) ([]byte, bool) {
	n := len(dst)
	e, err := v.cache.GetWithBuf(key, dst[n:cap(dst)])
	if err != nil {
		return dst, false
	}
	if tick := binary.LittleEndian.Uint64(e); tick >= before || v.drops.covers(key, tick) {
		return dst, false
	}
	value := e[valueHead : valueHead+binary.LittleEndian.Uint32(e[8:])]
	if n == 0 && cap(dst) < len(e) { // then e is newly allocated, and the caller may own it
		if dst == nil {
			return value[:len(value):len(value)], true // the capacity is the length, because such a value may be kept
		}
		return append(e[:0], value...), true // with its whole capacity, for the next value of this size
	}
	return append(dst, value...), true
}

// latest is the tick of reads of the current state.
const latest = 1<<64 - 1

// get appends the value of a key to dst. It uses an entry that is valid for a snapshot with tick before. Otherwise it
// reads the store, and caches the value if it is the current one. If v is nil, it reads the store.
func (v *values) get(dst, key []byte, before uint64, stored func(dst, key []byte) ([]byte, error)) ([]byte, error) {
	if !v.keeps(key) {
		return stored(dst, key)
	}
	s := v.shard(xxhash.Sum64(key))
	entered := s.entered.Load()
	quiet := s.inside.Load() == 0 // read before the cache: a writer that enters later is later than this read
	if quiet {
		if b, ok := v.take(dst, key, before); ok {
			v.hits.Add(1)
			return b, nil
		}
	}
	v.misses.Add(1)
	b, err := stored(dst, key)
	if err != nil || !quiet || len(b)-len(dst) > maxValue {
		return b, err
	}
	s.mu.Lock()
	if s.entered.Load() == entered && s.tick < before { // then no writer is inside either
		v.put(key, b[len(dst):], v.ticks.Load())
	}
	s.mu.Unlock()
	return b, nil
}

// look does what get does, but caches nothing.
func (v *values) look(dst, key []byte, before uint64, stored func(dst, key []byte) ([]byte, error)) ([]byte, error) {
	if v.keeps(key) && v.shard(xxhash.Sum64(key)).inside.Load() == 0 {
		if b, ok := v.take(dst, key, before); ok {
			v.hits.Add(1)
			return b, nil
		}
	}
	return stored(dst, key)
}

// snapshot returns the tick for a snapshot. The caller takes the snapshot afterwards.
func (v *values) snapshot() uint64 {
	if v == nil {
		return 0
	}
	return v.ticks.Add(1)
}

// forget invalidates the entries of keys in [lo, hi), also those that are being made.
func (v *values) forget(lo, hi []byte) {
	if v == nil {
		return
	}
	for i := range v.shards {
		s := &v.shards[i]
		s.mu.Lock()
		s.entered.Add(1)
		s.mu.Unlock()
	}
	v.drops.add(lo, hi, v.ticks.Add(1))
}
