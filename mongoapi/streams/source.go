// Package streams reads the journal of the store as MongoDB's clients see it: as the events of change streams, and as
// the oplog of a replica set. It knows no command and no cursor. Stream and Oplog are sources of documents, and the
// ends of cursors that go on.
//
// Example: Open finds where a stream begins, for example after the token of an event. Next reads the journal from
// there, and makes an event of each entry that the stream is about. When there is none, it returns no document, and
// Notify tells when there may be one.
package streams

import (
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/journal"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/agg"
	"github.com/orrerydb/orrery/mongoapi/changes"
	"github.com/orrerydb/orrery/mongoapi/expr"
)

// Options are the options of a change stream.
type Options struct {
	NS       journal.Namespace
	After    string // the mode of fullDocument
	Before   string // the mode of fullDocumentBeforeChange
	Expanded bool   // showExpandedEvents
	Split    bool   // large events are split
}

// Stream gives the events of a change stream from the journal. It is an agg.Iter that has no more documents for the
// moment.
type Stream struct {
	eng   *core.Engine
	run   *expr.Run
	o     Options
	topic *journal.Topic

	pos    journal.Position // up to which the journal was read
	page   []*journal.Entry // read, and not yet turned into events
	events []event          // of the last entry
	skip   int              // fragments of the first event that were returned before

	last  changes.Token // of the last event that was given, or from which the stream goes on; zero: none
	shown uint64        // the last position without an event that was given
	ended bool          // the stream was invalidated, and everything is given
}

// event is an event with its token.
type event struct {
	token changes.Token
	doc   value.Value
	ends  bool // nothing follows
}

const (
	// pageSize is the largest number of entries that are read at a time.
	pageSize = 128
	// kept is the largest size of entries in bytes that a stream keeps between batches.
	kept = 64 << 10
)

// Next implements agg.Iter.
func (st *Stream) Next() (value.Value, bool, error) {
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
func (st *Stream) from() uint64 {
	if st.pos.Whole() {
		return st.pos.Time
	}
	return st.pos.Time - 1
}

// read reads the next page. It returns false if there is nothing more now.
func (st *Stream) read() (bool, error) {
	if mark, news := st.topic.News(st.from()); !news {
		if mark > st.pos.Time {
			st.pos = journal.After(mark)
		}
		return false, nil
	}
	p, err := st.eng.Journal().Read(st.run.Context(), st.pos, pageSize, st.wants)
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
func (st *Stream) wants(e *journal.Entry) bool {
	ns := st.o.NS
	switch {
	case e.Op == journal.Mark || ns.DB != "" && e.DB != ns.DB:
		return false
	case SystemCollection(e.Coll):
		return st.o.Expanded && e.Coll == changes.Views && e.Op != journal.Change
	case ns.Coll == "" || e.Coll == ns.Coll:
		return true
	}
	return e.Op == journal.Change // perhaps a rename to it
}

// turn makes the events of an entry.
func (st *Stream) turn(e *journal.Entry) error {
	doc, ok, err := st.eventOf(e)
	if !ok || err != nil {
		return err
	}
	t := changes.Token{Time: e.Time, N: e.N, Kind: changes.Event}
	st.events = append(st.events[:0], event{token: t, doc: doc})
	if st.invalidates(e) {
		st.events = append(st.events, st.invalidate(e))
	}
	return nil
}

// Close implements agg.Iter.
func (st *Stream) Close() {
	if !st.ended || st.topic != nil {
		st.topic.Leave()
	}
	st.ended, st.topic, st.page, st.events = true, nil, nil, nil
}

// Notify has wake called when there may be more. stop ends that; nil: there may be some now.
func (st *Stream) Notify(wake func()) (stop func()) { return st.topic.Notify(st.from(), wake) }

// Over reports whether nothing follows ever.
func (st *Stream) Over() bool { return st.ended }

// TokenAfter returns the position behind what was given, Undefined if there is none. given says that everything was
// given that there was: a batch that ends before that has the token of its last event.
func (st *Stream) TokenAfter(given bool) value.Value {
	if given && len(st.page)+len(st.events) == 0 && st.pos.Whole() && !st.ended &&
		st.eng.Journal().Keep(st.run.Context(), st.pos.Time) == nil {
		st.shown = st.pos.Time
	}
	if st.last.Time <= st.shown {
		return tokenDoc(changes.HighWaterOf(st.shown))
	}
	return tokenDoc(st.last)
}

// Rest prepares for a time without reads: it drops what takes much memory, and will be read again.
func (st *Stream) Rest() {
	size := 0
	for _, e := range st.page {
		size += e.Size()
	}
	if size > kept {
		first := st.page[0]
		st.pos = journal.After(first.Time - 1)
		if first.N > 0 {
			st.pos = journal.Position{Time: first.Time, N: first.N - 1}
		}
		st.page = nil
	}
}

var _ agg.Iter = (*Stream)(nil)

// SystemCollection reports whether a collection belongs to the server.
func SystemCollection(name string) bool { return len(name) >= 7 && name[:7] == "system." }
