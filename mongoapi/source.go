package mongoapi

import (
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/agg"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/order"
)

// source reads the documents of a query in pieces. park releases everything in the store and keeps only a continuation,
// so an idle cursor costs nothing. It implements agg.Iter.
type source struct {
	run     *expr.Run
	k       *coll
	q       *exec.Query
	rows    *exec.Rows
	skip    int64
	left    int64 // documents still to be returned; -1 = all
	done    bool
	token   string // the continuation, taken when the cursor began to rest
	rested  bool   // nothing was read since rest
	paused  bool   // gives nothing, so that the stages behind it return what they still have
	charge  float64
	keys    int                                      // that rows has read, as counted so far, and
	docs    int                                      // documents
	counted bool                                     // its use of indexes
	shape   func(it *core.Item) (value.Value, error) // what is returned of an item; nil: its document
	err     error                                    // why the query can't run
}

// newSource makes the source of a find: filter, sort, skip and limit (0: none). shown is the order without a sort.
func newSource(k *coll, f *filter.Filter, o order.Order, shown exec.Shown, skip, limit int64, e *expr.Env) *source {
	s := &source{run: e.Run, k: k, skip: skip, left: -1}
	want := int64(0)
	if limit > 0 {
		s.left = limit
		if skip+limit > 0 {
			want = skip + limit
		}
	}
	if s.err = k.prepare(f, e); s.err == nil {
		o, s.err = o.Bind(e)
	}
	s.q = k.query(f, o, want, e)
	s.q.Shown = k.shownOf(shown)
	return s
}

// Next implements agg.Iter.
func (s *source) Next() (value.Value, bool, error) {
	if s.paused {
		return value.Undef(), false, nil
	}
	it, err := s.next()
	if it == nil {
		return value.Undef(), false, err
	}
	if s.shape != nil {
		d, err := s.shape(it)
		return d, err == nil, err
	}
	return value.ObjectOf(it.Doc), true, nil
}

// next returns the next item, nil at the end. The item is valid until the following call.
func (s *source) next() (*core.Item, error) {
	if s.done || s.left == 0 {
		s.Close()
		return nil, nil
	}
	if err := s.run.Step(); err != nil {
		return nil, err
	}
	if s.err != nil {
		s.done = true
		return nil, s.err
	}
	if s.rows == nil {
		var err error
		if s.rows, err = s.k.Query(s.run.Context(), s.q); err != nil {
			s.done = !throttled(err)
			return nil, err
		}
	} else if s.rested {
		if err := s.rows.Admit(); err != nil {
			return nil, err
		}
	}
	for {
		more := s.rows.Next()
		if err := s.run.Cut(); err != nil {
			s.Close()
			return nil, err
		}
		if !more {
			err := s.rows.Err()
			if s.rested && status.Is(err, status.Unavailable) {
				// the store has dropped the state that a resting cursor was reading
				s.reopen()
				return s.next()
			}
			s.Close()
			err = s.givenUp(err)
			if len(s.q.OrderBy) > 0 && (status.Is(err, status.TooLarge) || status.Is(err, status.MemoryLimit)) {
				err = merr.New(merr.MemoryLimit, "Executor error during find command :: caused by :: Sort exceeded "+
					"memory limit: %s", status.From(err).Msg)
			}
			return nil, err
		}
		s.rested = false
		if s.skip > 0 {
			s.skip--
			continue
		}
		if s.left > 0 {
			s.left--
		}
		return s.rows.Item(), nil
	}
}

// throttled reports whether a read was refused because request units were used up. It can be tried again later.
func throttled(err error) bool {
	return status.Is(err, status.TooManyRequests) && status.From(err).Sub == status.SubThrottled
}

// givenUp returns the error for rows that ended with err. If only the state that they read was too old, it is the error
// of a lost cursor.
func (s *source) givenUp(err error) error {
	if status.Is(err, status.Unavailable) && s.readable() {
		return merr.New(merr.CursorNotFound, "the cursor was given up: %s", status.From(err).Msg)
	}
	return err
}

// readable reports whether the collection can be read again. If so, only the state of this source was dropped because
// of its age.
func (s *source) readable() bool {
	rows, err := s.k.Query(s.run.Context(), &exec.Query{PlanHash: 1})
	if err != nil {
		return false
	}
	rows.Close()
	return true
}

// exhausted reports whether there are no more documents. The item of the last next must not be used afterwards.
func (s *source) exhausted() bool {
	return s.done || s.left == 0 || s.rows != nil && s.rows.Exhausted()
}

// rest records the continuation while the last item is valid.
func (s *source) rest() {
	if s.rows != nil {
		s.token, s.rested = s.rows.Continuation(), true
		s.tally()
	}
}

// park releases what the store holds. The next read resumes after the last item.
func (s *source) park() {
	if s.rows != nil {
		s.rest()
		s.reopen()
	}
}

// spill releases the memory that the rows don't need. The last item stays valid.
func (s *source) spill() {
	if s.rows != nil {
		s.rows.Spill()
	}
}

// unread returns the last document, which was read after rest: the next read returns it again.
func (s *source) unread() {
	if s.left >= 0 {
		s.left++
	}
	s.done = false
	s.reopen()
}

// reopen makes the next read begin at the recorded position.
func (s *source) reopen() {
	s.q.Continuation = s.token
	if s.rested = false; s.token == "" {
		s.done = true
	}
	s.release()
}

// Close implements agg.Iter.
func (s *source) Close() {
	s.done = true
	s.release()
}

func (s *source) release() {
	if s.rows != nil {
		s.tally()
		s.rows.Close()
		s.rows, s.keys, s.docs = nil, 0, 0
	}
}

// tally counts what the rows have read since it was last called.
func (s *source) tally() {
	s.charge += s.rows.Spend()
	st := s.rows.Stats()
	s.run.Read(st.Entries-s.keys, st.Items-s.docs)
	s.keys, s.docs = st.Entries, st.Items
	if !s.counted {
		s.counted = true
		s.k.uses.query(st.Tree)
	}
}

var _ agg.Iter = (*source)(nil)
