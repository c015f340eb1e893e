package pebblekv

import (
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
)

// bitsPerKey is what a bloom filter spends on a key: one absent key in a hundred reads a block.
const bitsPerKey = 10

// filterPolicy is Pebble's bloom filter over the keys that somebody gets. Most keys of a store are index entries, which
// are only ever scanned: their bits would cost a tenth of what compaction costs, and memory.
//
// A filter that lacks keys must not be asked for them: the policy has a name of its own, so that no table is read under
// another policy than it was written under, and keys outside the filter may always be there.
type filterPolicy struct {
	bloom.FilterPolicy
	scanned func(key []byte) bool // true: nobody gets such a key
}

func newFilterPolicy(scanned func([]byte) bool) pebble.FilterPolicy {
	if scanned == nil {
		return bloom.FilterPolicy(bitsPerKey)
	}
	return filterPolicy{bitsPerKey, scanned}
}

// Name implements pebble.FilterPolicy.
func (filterPolicy) Name() string { return "orrery.BloomOfGotKeys" }

// MayContain implements pebble.FilterPolicy.
func (p filterPolicy) MayContain(t pebble.FilterType, filter, key []byte) bool {
	return p.scanned(key) || p.FilterPolicy.MayContain(t, filter, key)
}

// NewWriter implements pebble.FilterPolicy.
func (p filterPolicy) NewWriter(t pebble.FilterType) pebble.FilterWriter {
	return filterWriter{p.FilterPolicy.NewWriter(t), p.scanned}
}

type filterWriter struct {
	pebble.FilterWriter
	scanned func([]byte) bool
}

// AddKey implements pebble.FilterWriter.
func (w filterWriter) AddKey(key []byte) {
	if !w.scanned(key) {
		w.FilterWriter.AddKey(key)
	}
}
