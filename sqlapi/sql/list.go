package sql

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"sort"

	"github.com/cespare/xxhash/v2"
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
)

// ListRow is a row of a list that is queried in place of a container. JSON is its shown form. Continuations identify
// the row by its _rid.
type ListRow struct {
	JSON []byte

	val value.Value // all members, with their shown names
	doc doc.Doc     // the same with stored names
}

// parse reads the JSON.
func (r *ListRow) parse() (err error) {
	if r.val, err = doc.ValueFromJSON(r.JSON); err == nil {
		r.doc, err = doc.FromJSON(nil, r.JSON, doc.JSONOptions{Names: doc.NoSQL})
	}
	return err
}

func (r *ListRow) name() string { return string(r.val.Get("_rid").Bytes()) }

// ExecuteList appends one page of a query over a list to out. Without ORDER BY, rows come in the list's order. list
// names the list; a continuation of another list is refused. A continuation names a row, and the page begins behind
// that row, even if the row has moved in the list. If the row no longer exists, the page begins at its former place.
func (pl *Plan) ExecuteList(ctx context.Context, list string, rows []ListRow, req Request, out *Page) error {
	hash := pl.hash(req) ^ xxhash.Sum64String(list)
	r, _, err := pl.start(ctx, req, hash, out)
	defer pl.p.release(r.f)
	if err != nil {
		return err
	}
	if r.src, err = newListSource(r, rows); err != nil {
		return err
	}
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

// listSource is the rowSource of a list. Its rows are filtered and in the order of ORDER BY.
type listSource struct {
	rows []*ListRow
	i    int // index of the current row
}

func newListSource(r *runner, rows []ListRow) (*listSource, error) {
	s, f, p := &listSource{}, r.f, r.p
	f.list = s
	keys := map[*ListRow][]value.Value{}
	for i := range rows {
		row := &rows[i]
		if err := row.parse(); err != nil {
			return nil, err
		}
		s.rows = append(s.rows, row)
		s.i = len(s.rows) - 1
		f.setRoot(row.doc, nil)
		if p.top.rootOnly && p.top.where != nil && !funcs.IsTrue(p.top.where(f)) {
			s.rows = s.rows[:s.i]
			continue
		}
		for _, o := range p.order {
			keys[row] = append(keys[row], o.key(f).Clone())
		}
		if f.err != nil {
			return nil, f.err
		}
	}
	sort.SliceStable(s.rows, func(i, j int) bool {
		for k, o := range p.order {
			if d := value.CompareCosmos(keys[s.rows[i]][k], keys[s.rows[j]][k]); d != 0 {
				return (d < 0) != o.desc
			}
		}
		return false
	})
	s.i = s.resume(r.st.core)
	return s, nil
}

// resume returns the index of the row that a position names. If the row no longer exists, it returns its former index
// minus one.
func (s *listSource) resume(position string) int {
	b, err := base64.RawURLEncoding.DecodeString(position)
	if err != nil || len(b) == 0 {
		return -1
	}
	at, n := binary.Uvarint(b)
	if n <= 0 {
		return -1
	}
	name := string(b[n:])
	if i := slices.IndexFunc(s.rows, func(r *ListRow) bool { return r.name() == name }); i >= 0 {
		return i
	}
	return int(min(at, uint64(len(s.rows)))) - 1
}

// present returns the current row, nil before the first one.
func (s *listSource) present() *ListRow {
	if s.i < 0 || s.i >= len(s.rows) {
		return nil
	}
	return s.rows[s.i]
}

func (s *listSource) next() bool                  { s.i++; return s.i < len(s.rows) }
func (s *listSource) item() (doc.Doc, *core.Item) { return s.rows[s.i].doc, nil }
func (s *listSource) err() error                  { return nil }
func (s *listSource) position() string {
	if s.i >= len(s.rows)-1 || s.i < 0 {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(append(binary.AppendUvarint(nil, uint64(s.i)), s.rows[s.i].name()...))
}
