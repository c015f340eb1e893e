package streams

import (
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/journal"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// OplogQuery is what a find on the oplog asks for.
type OplogQuery struct {
	Filter      *filter.Filter
	TS          value.Value // the filter as it is written, for its bounds of ts
	Skip, Limit int64       // Limit 0: none
	Newest      bool        // the newest entry comes first
	Tailable    bool        // it goes on at the end
}

// OpenOplog opens the oplog, which begins at the time since.
func OpenOplog(eng *core.Engine, env *expr.Env, q OplogQuery, since uint64) (*Oplog, error) {
	mark, err := eng.Journal().Now(env.Run.Context())
	if err != nil {
		return nil, err
	}
	o := &Oplog{eng: eng, run: env.Run, env: env, f: q.Filter, skip: q.Skip, left: -1, newest: q.Newest, until: mark}
	if q.Limit > 0 {
		o.left = q.Limit
	}
	o.pos = journal.After(max(since, 1) - 1)
	if from := tsFrom(q.TS); from > since {
		o.pos = journal.After(from - 1)
	}
	if q.Newest {
		o.pos = journal.After(mark)
	}
	o.last = o.pos
	if q.Tailable {
		o.topic = eng.Journal().Watch(journal.Namespace{})
	}
	return o, nil
}

// tsFrom returns a time below which no entry matches a filter; 0: there is none.
func tsFrom(f value.Value) (from uint64) {
	if f.Kind() != value.Object {
		return 0
	}
	for it := f.Iter(); it.Next(); {
		v := it.Value()
		switch string(it.Key()) {
		case "$and":
			for _, x := range value.Elements(v) {
				from = max(from, tsFrom(x))
			}
		case "ts":
			if v.Kind() == value.Timestamp {
				from = max(from, v.Raw64())
			}
			if v.Kind() != value.Object {
				continue
			}
			for _, op := range []string{"$gt", "$gte", "$eq"} {
				if t := v.Get(op); t.Kind() == value.Timestamp {
					from = max(from, t.Raw64())
				}
			}
		}
	}
	return from
}

// Oplog gives the entries of the oplog. It is an agg.Iter that has no more documents for the moment if it has a topic.
type Oplog struct {
	eng    *core.Engine
	run    *expr.Run
	env    *expr.Env
	f      *filter.Filter
	skip   int64
	left   int64 // documents still to be returned; -1 = all
	newest bool
	until  uint64         // the last entry without a topic
	topic  *journal.Topic // nil: the cursor ends at until

	pos  journal.Position // after what was read
	page []*journal.Entry // read, and not yet shown
	docs []value.Value    // of the last entry, or of those of one transaction
	done bool             // nothing more is to be read

	last, before journal.Position // after the entries whose docs were made, and before the last of them
	given, again int              // docs of these that were returned, and of the next ones that were before Resume
}

// Next implements agg.Iter.
func (o *Oplog) Next() (value.Value, bool, error) {
	for {
		if o.left == 0 {
			return value.Undef(), false, nil
		}
		if err := o.run.Step(); err != nil {
			return value.Undef(), false, err
		}
		if len(o.docs) == 0 {
			if ok, err := o.turn(); !ok || err != nil {
				return value.Undef(), false, err
			}
			continue
		}
		d := o.docs[0]
		o.docs, o.given = o.docs[1:], o.given+1
		if ok, err := o.f.Match(o.env, d); err != nil {
			return d, false, err
		} else if !ok {
			continue
		}
		if o.skip > 0 {
			o.skip--
			continue
		}
		if o.left > 0 {
			o.left--
		}
		return d, true, nil
	}
}

// turn makes the documents of the next entry, or of all entries of the next transaction. It returns false if there is
// nothing more now.
func (o *Oplog) turn() (bool, error) {
	for len(o.page) == 0 {
		if ok, err := o.read(); !ok || err != nil {
			return false, err
		}
	}
	first, n := o.page[0], 1
	for first.Together {
		for n < len(o.page) && o.page[n].Time == first.Time {
			n++
		}
		if n < len(o.page) || o.newest && o.page[n-1].N == 0 || !o.newest && o.from() >= first.Time {
			break
		}
		rest := o.page
		o.page = nil
		ok, err := o.read()
		if o.page = append(rest, o.page...); err != nil {
			return false, err
		}
		if !ok {
			break
		}
	}
	if first.Together {
		o.docs = oplogTransaction(o.page[:n], o.newest)
	} else {
		o.docs = append(o.docs[:0], oplogEntry(first))
	}
	o.before, o.last = o.last, o.page[n-1].Position()
	o.given, o.again = min(o.again, len(o.docs)), 0
	o.docs, o.page = o.docs[o.given:], o.page[n:]
	return true, nil
}

// AppendPosition appends the fields of the position to a document. Resume goes on there, also in another process.
func (o *Oplog) AppendPosition(b []byte) []byte {
	at, given := o.last, o.again
	switch {
	case len(o.docs) > 0:
		at, given = o.before, o.given
	case len(o.page) == 0 && at.Before(o.pos): // there was nothing in between
		at = o.pos
	}
	b = value.AppendElement(b, "time", value.TimestampOf(at.Time))
	b = bson.AppendInt64(b, "n", int64(at.N))
	b = bson.AppendInt64(b, "given", int64(given))
	b = bson.AppendInt64(b, "skip", o.skip)
	return bson.AppendInt64(b, "left", o.left)
}

// Resume goes on at the position that a document has. The query is that of the cursor that was there.
func (o *Oplog) Resume(at value.Value) {
	o.pos = journal.Position{Time: at.Get("time").Raw64(), N: uint32(at.Get("n").Int())}
	o.last, o.again = o.pos, int(at.Get("given").Int())
	o.skip, o.left = at.Get("skip").Int(), at.Get("left").Int()
}

// from returns the time after which there may be unread entries.
func (o *Oplog) from() uint64 {
	if o.pos.Whole() {
		return o.pos.Time
	}
	return o.pos.Time - 1
}

func everyEntry(*journal.Entry) bool { return true }

// read reads the next page. It returns false if there is nothing more now.
func (o *Oplog) read() (bool, error) {
	j, ctx := o.eng.Journal(), o.run.Context()
	if o.done {
		return false, nil
	}
	if o.newest {
		page, err := j.Before(ctx, o.pos, pageSize, everyEntry)
		if err != nil || len(page) == 0 {
			o.done = true
			return false, err
		}
		o.page, o.pos = page, page[len(page)-1].Position()
		return true, nil
	}
	if o.topic != nil {
		if mark, news := o.topic.News(o.from()); !news {
			if mark > o.pos.Time {
				o.pos = journal.After(mark)
			}
			return false, nil
		}
	} else if o.from() >= o.until {
		o.done = true
		return false, nil
	}
	p, err := j.Read(ctx, o.pos, pageSize, everyEntry)
	if status.Is(err, status.Gone) {
		return false, merr.New(merr.CappedPositionLost, "CollectionScan died due to position in capped collection "+
			"being deleted. Last seen record id: RecordId(%d)", o.pos.Time)
	}
	if err != nil {
		return false, err
	}
	for o.topic == nil && len(p.Entries) > 0 && p.Entries[len(p.Entries)-1].Time > o.until {
		p.Entries = p.Entries[:len(p.Entries)-1]
	}
	o.page, o.pos = p.Entries, p.Next
	return len(p.Entries) > 0 || p.More, nil
}

// Close implements agg.Iter.
func (o *Oplog) Close() {
	if o.done = true; o.topic != nil {
		o.topic.Leave()
	}
	o.topic, o.page, o.docs = nil, nil, nil
}

// Notify has wake called when there may be more. stop ends that; nil: there may be some now.
func (o *Oplog) Notify(wake func()) (stop func()) { return o.topic.Notify(o.from(), wake) }

// Over reports whether nothing follows ever.
func (o *Oplog) Over() bool { return o.done && len(o.docs) == 0 || o.left == 0 }

// TokenAfter returns the position behind what was given, Undefined if there is none. given says that everything was
// given that there was.
func (o *Oplog) TokenAfter(bool) value.Value { return value.Undef() }

// Rest prepares for a time without reads: it drops what takes much memory, and will be read again.
func (o *Oplog) Rest() {
	size := 0
	for _, e := range o.page {
		size += e.Size()
	}
	if size > kept {
		o.pos, o.page = o.last, nil
	}
}
