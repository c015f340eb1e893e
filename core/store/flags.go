package store

import "github.com/orrerydb/orrery/core/index"

// indexFlags describes what a slot's index has ever held. Queries read it. Heads and slots share it, so it isn't
// changed once one of them has it.
type indexFlags struct {
	classes                  uint32      // value classes, of the keys of items too
	elements, lossy, columns index.Bloom // see Head
	bare                     bool        // Head.bare: the index has no information
}

// noFlags are the flags of a slot that never had an item; bareFlags are those of a slot whose index has no information.
var (
	noFlags   = indexFlags{}
	bareFlags = indexFlags{classes: ^uint32(0), elements: index.FullBloom, lossy: index.FullBloom,
		columns: index.FullBloom, bare: true}
)

// flagsOf returns the flags of an item's terms, and the classes of its key.
func flagsOf(t *index.Terms, ident []byte) indexFlags {
	return indexFlags{classes: t.Classes | keyClasses(ident), elements: t.Elements, lossy: t.Lossy, columns: t.Columns}
}

// add adds other flags and reports whether f changed. f must not be shared yet.
func (f *indexFlags) add(o *indexFlags) bool {
	more := o.classes&^f.classes != 0
	f.classes |= o.classes
	more = f.elements.Merge(&o.elements) || more
	more = f.lossy.Merge(&o.lossy) || more
	return f.columns.Merge(&o.columns) || more
}

// with returns f and other flags together. It returns f itself when f has them all.
func (f *indexFlags) with(o *indexFlags) *indexFlags {
	sum := *f
	if !sum.add(o) {
		return f
	}
	wider := sum // the only allocation
	return &wider
}

// held returns what the head says of the slot's index.
func (h *Head) held() *indexFlags {
	switch {
	case h.bare():
		return &bareFlags
	case h.flags == nil:
		return &noFlags
	}
	return h.flags
}

// stored returns the flags that the head is stored with. For a bare slot they describe the entries that it has so far.
func (h *Head) stored() *indexFlags {
	if h.flags == nil {
		return &noFlags
	}
	return h.flags
}

// addFlags adds to what the head says.
func (h *Head) addFlags(o *indexFlags) { h.flags = h.stored().with(o) }

// widen adds the flags of the next head before its commit is visible. A query that sees the commit must not skip its
// entries. The caller holds the latch.
func (s *Slot) widen(h *Head) {
	if f, more := s.flags.Load(), h.stored(); f != more && !f.bare {
		s.flags.Store(f.with(more))
	}
}
