package exec

import "github.com/orrerydb/orrery/core/kv"

// On a local engine a new iterator costs several seeks: it opens every table that it reads. A query often needs several
// iterators in sequence: for each physical partition, for a count and then for the rows. So it keeps one that is not
// used, and the next reader moves it to its own bounds.
//
// Example: an equality over 16 physical partitions gathers the entries of each. One iterator is moved to 16 ranges.

// iter returns an iterator over [lo, hi): the unused one of the query, or a new one. The caller returns it with rest.
func (b *builder) iter(lo, hi []byte) (kv.Iterator, error) {
	it := b.rows.unused
	if it == nil {
		return b.view.Iter(lo, hi)
	}
	b.rows.unused = nil
	it.Reset(lo, hi)
	return it, nil
}

// rest takes an iterator that its reader doesn't need any more. It is closed if another one is kept already. It is also
// closed on an engine over a network, where an iterator has read ahead for its reader.
func (b *builder) rest(it kv.Iterator) {
	if c, ok := it.(*copied); ok { // it returns its own
		_ = c.Close()
		return
	}
	if b.rows.unused == nil && it.Err() == nil && !b.view.Remote() {
		b.rows.unused = it
		return
	}
	_ = it.Close()
}

// closeUnused closes the iterator that is kept. It must be called before the view is closed.
func (r *Rows) closeUnused() {
	if r.unused != nil {
		_ = r.unused.Close()
		r.unused = nil
	}
}

// closeView closes the view and the iterator that is kept.
func (r *Rows) closeView() {
	r.closeUnused()
	r.view.Close()
}
