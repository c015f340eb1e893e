package index

import (
	"bytes"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
)

// Version is a document and the time when it was written.
type Version struct {
	Doc []byte
	TS  int64 // seconds since 1970
}

// CollectChange fills a and b with the index terms of two versions of a document, without the terms of unchanged
// fields. So the cost depends on the size of the change, not of the document. Diff of a and b is the difference of the
// full terms, and so is the difference of their Count. All other methods of a and b are meaningless. shared is
// approximately the number of terms that were left out of each.
//
//	old {"id": "1", "a": 1, "tags": [.. 100 values]}
//	new {"id": "1", "a": 2, "tags": [.. the same]}
//	a has the terms /a = 1 and _ts, b has /a = 2 and _ts, shared is about 100
func (p *Policy) CollectChange(a, b *Terms, old, new Version) (shared int) {
	changedOld, changedNew, shared := p.changed(a.fields[:0], b.fields[:0], old.Doc, new.Doc)
	if shared > 0 {
		a.fields, b.fields = changedOld, changedNew
	}
	p.collect(a, changedOld, old)
	p.collect(b, changedNew, new)
	return shared
}

// wordsWhole is the size in bytes up to which a document with texts has at most MaxTerms terms, with all of its fields:
// its values and its words together are at most half of its bytes.
const wordsWhole = 8 << 10

// maxPairs limits the search for a name that both a changed and an unchanged field have.
const maxPairs = 4096

// changed returns documents of only the fields that differ, built in the memory of two slices, and the number of values
// in the other fields. It returns the whole documents where leaving out fields could change the difference: documents
// that may have more than MaxTerms terms, or more spatial work than spatialWork; an item that becomes an edge or stops
// being one; a document with a duplicate name.
func (p *Policy) changed(memOld, memNew, old, new []byte) (a, b []byte, shared int) {
	const least = 3 // bytes of the smallest BSON element
	size := max(len(old), len(new))
	if size/least+len(p.exact)+MaxTerms/10 > MaxTerms || len(p.spatial) > 0 && size > spatialWhole ||
		(p.words != nil || len(p.texts) > 0) && size > wordsWhole {
		return old, new, 0
	}
	ov, nv := value.ObjectOf(old), value.ObjectOf(new)
	if ov.Get("_isEdge").Bool() != nv.Get("_isEdge").Bool() {
		return old, new, 0
	}
	a, b = append(memOld, 0, 0, 0, 0), append(memNew, 0, 0, 0, 0)
	var keptMem, changedMem [64][]byte
	kept, changed := keptMem[:0], changedMem[:0]
	oi, ni := ov.Iter(), nv.Iter()
	inOld, inNew := oi.Next(), ni.Next()
	for aligned := true; inOld || inNew; {
		aligned = aligned && inOld && inNew && bytes.Equal(oi.Key(), ni.Key())
		if aligned && bytes.Equal(oi.Element(), ni.Element()) {
			kept = append(kept, oi.Key())
			shared += values(oi.Value())
			inOld, inNew = oi.Next(), ni.Next()
			continue
		}
		if inOld {
			a, changed = append(a, oi.Element()...), append(changed, oi.Key())
			inOld = oi.Next()
		}
		if inNew {
			b, changed = append(b, ni.Element()...), append(changed, ni.Key())
			inNew = ni.Next()
		}
	}
	if len(kept)*len(changed) > maxPairs || meet(kept, changed) {
		return old, new, 0
	}
	return bson.End(a, 0), bson.End(b, 0), shared
}

// meet reports whether two lists have a common name.
func meet(a, b [][]byte) bool {
	for _, x := range a {
		for _, y := range b {
			if bytes.Equal(x, y) {
				return true
			}
		}
	}
	return false
}

// values returns the number of values in v: itself and everything below it. Objects in arrays don't count, because they
// have no terms.
func values(v value.Value) int {
	n := 1
	for it := v.Iter(); it.Next(); {
		if n += values(it.Value()); v.Kind() == value.Array && it.Value().Kind() == value.Object {
			n--
		}
	}
	return n
}
