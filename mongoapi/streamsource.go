package mongoapi

import (
	"github.com/orrerydb/orrery/core/journal"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/agg"
	"github.com/orrerydb/orrery/mongoapi/changes"
	"github.com/orrerydb/orrery/mongoapi/expr"
)

// tail is the end of a cursor that goes on when it has no more documents: of a change stream, for example.
type tail interface {
	// notify has wake called when there may be more documents. stop ends that; nil: there may be some now.
	notify(wake func()) (stop func())
	// over reports whether nothing follows ever.
	over() bool
	// tokenAfter returns the position for postBatchResumeToken; Undefined: the cursor has none. given says that
	// everything that was read was also returned.
	tokenAfter(given bool) value.Value
	// rest prepares for the time between batches.
	rest()
}

// stream gives the events of a change stream from the journal. It is an agg.Iter that has no more documents for the
// moment.
type stream struct {
	s     *Server
	run   *expr.Run
	o     streamOptions
	topic *journal.Topic

	pos    journal.Position // up to which the journal was read
	page   []*journal.Entry // read, and not yet turned into events
	events []streamEvent    // of the last entry
	skip   int              // fragments of the first event that were returned before

	last  changes.Token // of the last event that was given, or from which the stream goes on; zero: none
	shown uint64        // the last position without an event that was given
	ended bool          // the stream was invalidated, and everything is given
}

// streamEvent is an event with its token.
type streamEvent struct {
	token changes.Token
	doc   value.Value
	ends  bool // nothing follows
}

const (
	// streamPage is the largest number of entries that are read at a time.
	streamPage = 128
	// streamKept is the largest size of entries in bytes that a stream keeps between batches.
	streamKept = 64 << 10
)

// Next implements agg.Iter.
func (st *stream) Next() (value.Value, bool, error) {
	for {
		if st.ended {
			return value.Undef(), false, nil
		}
		if len(st.events) > 0 {
			e := st.events[0]
			st.events = st.events[1:]
			st.last, st.ended = e.token, e.ends
			return e.doc, true, nil
		}
		if err := st.run.Step(); err != nil {
			return value.Undef(), false, err
		}
		if len(st.page) > 0 {
			e := st.page[0]
			st.page = st.page[1:]
			if err := st.turn(e); err != nil {
				return value.Undef(), false, err
			}
			continue
		}
		if ok, err := st.read(); !ok || err != nil {
			return value.Undef(), false, err
		}
	}
}

// from returns the time after which there may be unread entries.
func (st *stream) from() uint64 {
	if st.pos.Whole() {
		return st.pos.Time
	}
	return st.pos.Time - 1
}

// read reads the next page. It returns false if there is nothing more now.
func (st *stream) read() (bool, error) {
	if mark, news := st.topic.News(st.from()); !news {
		if mark > st.pos.Time {
			st.pos = journal.After(mark)
		}
		return false, nil
	}
	p, err := st.s.eng.Journal().Read(st.run.Context(), st.pos, streamPage, st.wants)
	if status.Is(err, status.Gone) {
		return false, historyLost()
	}
	if err != nil {
		return false, err
	}
	st.page, st.pos = p.Entries, p.Next
	return len(p.Entries) > 0 || p.More, nil
}

// wants reports whether the stream has an event for an entry, as far as its head says.
func (st *stream) wants(e *journal.Entry) bool {
	ns := st.o.ns
	switch {
	case e.Op == journal.Mark || ns.DB != "" && e.DB != ns.DB:
		return false
	case systemCollection(e.Coll):
		return st.o.expanded && e.Coll == viewsCollection && e.Op != journal.Change
	case ns.Coll == "" || e.Coll == ns.Coll:
		return true
	}
	return e.Op == journal.Change // perhaps a rename to it
}

// turn makes the events of an entry.
func (st *stream) turn(e *journal.Entry) error {
	doc, ok, err := st.event(e)
	if !ok || err != nil {
		return err
	}
	t := changes.Token{Time: e.Time, N: e.N, Kind: changes.Event}
	st.events = append(st.events[:0], streamEvent{token: t, doc: doc})
	if st.invalidates(e) {
		st.events = append(st.events, st.invalidate(e))
	}
	return nil
}

// Close implements agg.Iter.
func (st *stream) Close() {
	if !st.ended || st.topic != nil {
		st.topic.Leave()
	}
	st.ended, st.topic, st.page, st.events = true, nil, nil, nil
}

func (st *stream) notify(wake func()) (stop func()) { return st.topic.Notify(st.from(), wake) }

func (st *stream) over() bool { return st.ended }

func (st *stream) tokenAfter(given bool) value.Value {
	if given && len(st.page)+len(st.events) == 0 && st.pos.Whole() && !st.ended &&
		st.s.eng.Journal().Keep(st.run.Context(), st.pos.Time) == nil {
		st.shown = st.pos.Time
	}
	if st.last.Time <= st.shown {
		return tokenDoc(changes.HighWaterOf(st.shown))
	}
	return tokenDoc(st.last)
}

func (st *stream) rest() {
	size := 0
	for _, e := range st.page {
		size += e.Size()
	}
	if size > streamKept {
		first := st.page[0]
		st.pos = journal.After(first.Time - 1)
		if first.N > 0 {
			st.pos = journal.Position{Time: first.Time, N: first.N - 1}
		}
		st.page = nil
	}
}

var (
	_ agg.Iter = (*stream)(nil)
	_ tail     = (*stream)(nil)
)
