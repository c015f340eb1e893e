package sql

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"iter"
	"slices"
	"sort"

	"github.com/cespare/xxhash/v2"
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
)

// ListRow is a row of a list that is queried in place of a container. JSON is its shown form. Num is its number in the
// list, which no other row has had.
type ListRow struct {
	JSON []byte
	Num  uint64

	at  uint64      // for continuations: Num, or with ORDER BY the index
	val value.Value // all members, with their shown names
	doc doc.Doc     // the same with stored names
}

// ListRows gives the rows of a list whose numbers are greater than a number, in the order of their numbers.
type ListRows = func(after uint64) iter.Seq2[ListRow, error]

// parse reads the JSON.
func (r *ListRow) parse() (err error) {
	if r.val, err = doc.ValueFromJSON(r.JSON); err == nil {
		r.doc, err = doc.FromJSON(nil, r.JSON, doc.JSONOptions{Names: doc.NoSQL})
	}
	return err
}

func (r *ListRow) name() string { return string(r.val.Get("_rid").Bytes()) }

// ExecuteList appends one page of a query over a list to out. list names the list; a continuation of another list is
// refused. Without ORDER BY, rows come in the list's order, and the page begins behind the number of the last row of
// the page before, whether that row still exists or not. With ORDER BY all rows are in memory, and the page begins
// behind that row, even if it has moved in the list; if it no longer exists, at its former place.
func (pl *Plan) ExecuteList(ctx context.Context, list string, rows ListRows, req Request, out *Page) error {
	hash := pl.hash(req) ^ xxhash.Sum64String(list)
	r, _, err := pl.start(ctx, req, hash, out)
	defer pl.p.release(r.f)
	if err != nil {
		return err
	}
	src := &listSource{r: r, all: len(r.p.order) > 0}
	r.src, r.f.list = src, src
	if err := src.open(rows); err != nil {
		return err
	}
	defer src.stop()
	r.f.root = rootRow{}
	next, more, err := r.run()
	if err != nil {
		return err
	}
	if more {
		out.Continuation = encodeShort(next, hash, req.MaxToken)
	}
	return r.f.err
}

// listSource is the rowSource of a list. Its rows are filtered, and in the order of their numbers or of ORDER BY.
type listSource struct {
	r     *runner
	pull  func() (ListRow, error, bool)
	stop  func()
	row   *ListRow // the current row, nil before the first one
	ahead *ListRow // the row behind it, nil: it isn't known
	bad   error
	all   bool // of the rows are in sorted
	// sorted are the rows that are still to come, in the order of ORDER BY.
	sorted []*ListRow
}

// open begins to read at the page's position.
func (s *listSource) open(rows ListRows) error {
	position, err := base64.RawURLEncoding.DecodeString(s.r.st.core)
	at, n := binary.Uvarint(position)
	named := err == nil && n > 0
	if !named {
		at = 0
	}
	if s.pull, s.stop = iter.Pull2(rows(at)); !s.all {
		return nil
	}
	s.stop()
	s.pull, s.stop = iter.Pull2(rows(0))
	if err := s.gather(); err != nil {
		s.stop()
		return err
	}
	if named {
		s.skip(at, string(position[n:]))
	}
	return nil
}

// gather reads all rows and sorts them.
func (s *listSource) gather() error {
	f, p, size := s.r.f, s.r.p, 0
	keys := map[*ListRow][]value.Value{}
	for row := s.read(); row != nil; row = s.read() {
		s.sorted = append(s.sorted, row)
		for _, o := range p.order {
			keys[row] = append(keys[row], o.key(f).Clone())
		}
		if size += len(row.JSON); s.r.hold != nil && s.bad == nil {
			s.bad = s.r.hold(listCopies * size)
		}
		if s.err() != nil {
			break
		}
	}
	sort.SliceStable(s.sorted, func(i, j int) bool {
		for k, o := range p.order {
			if d := value.CompareCosmos(keys[s.sorted[i]][k], keys[s.sorted[j]][k]); d != 0 {
				return (d < 0) != o.desc
			}
		}
		return false
	})
	for i, row := range s.sorted {
		row.at = uint64(i)
	}
	s.row = nil
	return s.err()
}

// listCopies is how often a row that is sorted is in memory: as JSON, as a value and as a document.
const listCopies = 3

// skip drops the sorted rows up to the one that a position names, or up to its former place.
func (s *listSource) skip(at uint64, name string) {
	i := slices.IndexFunc(s.sorted, func(r *ListRow) bool { return r.name() == name })
	if i < 0 {
		i = int(min(at, uint64(len(s.sorted)))) - 1
	}
	s.sorted = s.sorted[i+1:]
}

// read reads the next row of the list that passes the filter; nil: there is none.
func (s *listSource) read() *ListRow {
	f, p := s.r.f, s.r.p
	for s.err() == nil {
		row, err, ok := s.pull()
		if err == nil && ok {
			err = row.parse()
		}
		if s.bad = err; err != nil || !ok {
			return nil
		}
		row.at, s.row = row.Num, &row
		f.setRoot(row.doc, nil)
		if !p.top.rootOnly || p.top.where == nil || funcs.IsTrue(p.top.where(f)) {
			return s.row
		}
		f.cancelled()
	}
	return nil
}

// fetch returns the next row, nil when there is none.
func (s *listSource) fetch() (row *ListRow) {
	if !s.all {
		return s.read()
	}
	if len(s.sorted) > 0 {
		row, s.sorted = s.sorted[0], s.sorted[1:]
	}
	return row
}

// present returns the current row, nil before the first one.
func (s *listSource) present() *ListRow { return s.row }

func (s *listSource) next() bool {
	row := s.ahead
	if s.ahead = nil; row == nil {
		row = s.fetch()
	}
	s.row = row
	return row != nil
}

func (s *listSource) item() (doc.Doc, *core.Item) { return s.row.doc, nil }

func (s *listSource) err() error { return cmp.Or(s.bad, s.r.f.err) }

func (s *listSource) position() string {
	row := s.row
	if s.ahead == nil {
		s.ahead = s.fetch()
		s.row = row
	}
	if s.ahead == nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(append(binary.AppendUvarint(nil, row.at), row.name()...))
}
