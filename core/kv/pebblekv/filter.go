package pebblekv

import (
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
)

// bitsPerKey is the size of a bloom filter per key: one look-up of an absent key in a hundred reads a block.
const bitsPerKey = 10

// filterPolicy is Pebble's bloom filter over the keys that are read with gets. Most keys of a store are index entries,
// which are only scanned: their bits would cost memory and a tenth of the cost of compaction.
//
// A filter that lacks keys must not be used for them. So the policy has its own name, and a table is read only under
// the policy under which it was written. For keys that are not in the filter it answers that they may exist.
type filterPolicy struct {
	bloom.FilterPolicy
	scanned func(key []byte) bool // reports whether a key is only scanned
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
