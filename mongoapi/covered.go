package mongoapi

import (
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/indexes"
)

// count and distinct need few values of a document. If index entries have these values, no document is read.
//
// Example: distinct of "city" with the filter {city: {$gt: "M"}} reads only entries of the path /city.

// coverCount tells the core which values a count needs.
func coverCount(q *exec.Query, f *filter.Filter) {
	if paths, ok := f.Reads(); ok && len(paths) > 0 {
		cover(q, paths)
	}
}

// coverDistinct tells the core which values a distinct needs. Documents without the key don't contribute.
func coverDistinct(q *exec.Query, f *filter.Filter, key string) {
	paths, ok := f.Reads()
	segs, plain := filter.PathOf(key)
	if !ok || !plain {
		return
	}
	paths = filter.AddPath(paths, segs)
	cover(q, paths)
	if len(paths) != 1 {
		return
	}
	q.Want = exec.WantValues
	if path := paths[0].Element(); !q.Pred.Demands(path) {
		q.Pred = access.And(q.Pred, access.Exists(path))
	}
}

// cover tells the core which paths a query needs. For a path with one name, a document with a value has an entry, at
// least that of an array. For a longer path there may be arrays on the way, so a document may have values but no entry
// for the path itself.
func cover(q *exec.Query, paths []access.Path) {
	q.Needs = paths
	q.Whole = len(paths) == 1 && len(paths[0].Segs) == 1
	q.Repeat = q.Whole
}

// inOneIndex reports whether a declared compound index has all of several paths. Then a query that looks only at these
// is told to be read whole, which lets the core walk the index instead of the documents.
func (k *coll) inOneIndex(paths []access.Path) bool {
	for _, s := range k.indexSpecs() {
		if indexes.Composite(s) == nil {
			continue
		}
		has := func(p access.Path) bool { return s.Get("key").Get(strings.Join(p.Segs, ".")).IsDefined() }
		if !slices.ContainsFunc(paths, func(p access.Path) bool { return !has(p) }) {
			return true
		}
	}
	return false
}

// count counts the rows of a source that hasn't been read yet.
func (s *source) count() (n int64, err error) {
	defer s.Close()
	if s.done = true; s.err != nil {
		return 0, s.err
	}
	if s.rows, err = s.k.Query(s.run.Context(), s.q); err != nil {
		return 0, err
	}
	for s.rows.Next() {
		if err := s.run.Step(); err != nil {
			return 0, err
		}
		if n += int64(s.rows.Times()); s.left >= 0 && n >= s.skip+s.left {
			break
		}
	}
	if err = s.rows.Err(); err != nil {
		return 0, s.givenUp(err)
	}
	if n = max(0, n-s.skip); s.left >= 0 {
		n = min(n, s.left)
	}
	return n, nil
}
