package mongoapi

import (
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/mongoapi/filter"
)

// count and distinct look at few values of a document, which index entries may tell: then no document is read.

// coverCount says what a count looks at.
func coverCount(q *exec.Query, f *filter.Filter) {
	if paths, ok := f.Reads(); ok && len(paths) > 0 {
		cover(q, paths)
	}
}

// coverDistinct says what the values of a key look at. Documents without the key have no part in them.
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

// cover tells the core. A path of one name is at least at its array in every document that has it; of a longer one
// there may be arrays on the way, so that a document has values there and no entry for the path itself.
func cover(q *exec.Query, paths []access.Path) {
	q.Needs = paths
	q.Whole = len(paths) == 1 && len(paths[0].Segs) == 1
	q.Repeat = q.Whole
}

// count counts the rows of a source that was not read yet.
func (s *source) count() (n int64, err error) {
	defer s.Close()
	s.done = true
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
