package mongoapi

import (
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/journal"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/agg"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/project"
)

// local.oplog.rs is a view of the journal in the shape of a replica set's oplog, for programs that tail that. It can
// be read with find, in both natural orders and with tailable cursors. The first find begins to record all changes.
//
// A transaction is one document of the oplog, a command applyOps, as long as it fits. All of its entries in the journal
// have the same time.
//
// Example: a program finds the newest entry with {$natural: -1} and limit 1. It goes on from its ts with the filter
// {ts: {$gt: ts}} and a tailable cursor that awaits data.

const oplogName = "oplog.rs"

func isOplog(db, name string) bool { return db == "local" && name == oplogName }

// oplogCursor makes the cursor of a find on the oplog. It may outlive the request's bytes.
func (r *request) oplogCursor() (*cursor, findArgs, error) {
	if err := r.own(); err != nil {
		return nil, findArgs{}, err
	}
	a, err := r.findArgs()
	if err != nil {
		return nil, a, err
	}
	if r.s.o.Standalone {
		return &cursor{ns: "local." + oplogName, env: r.exprEnv(), src: agg.NewSlice(nil)}, a, nil
	}
	scope, err := r.scope(r.body)
	if err != nil {
		return nil, a, err
	}
	f, err := filter.Compile(a.filter, r.filterOptions(scope))
	if err != nil {
		return nil, a, err
	}
	p, err := project.Compile(a.projection, project.Options{Scope: scope, Find: true, Query: f})
	if err != nil {
		return nil, a, err
	}
	newest, ok := oplogOrder(a)
	if !ok {
		return nil, a, merr.NotSupported("an order of the oplog other than $natural and ts")
	}
	since, err := r.recordChanges(journal.Namespace{})
	if err != nil {
		return nil, a, err
	}
	mark, err := r.s.eng.Journal().Now(r.ctx)
	if err != nil {
		return nil, a, err
	}
	o := &oplog{s: r.s, run: r.exprEnv().Run, env: r.exprEnv(), f: f, skip: a.skip, left: -1, newest: newest,
		until: mark, floor: since}
	if a.limit > 0 {
		o.left = a.limit
	}
	o.pos = journal.After(max(since, 1) - 1)
	if from := tsFrom(a.filter); from > since {
		o.pos = journal.After(from - 1)
	}
	if newest {
		o.pos = journal.After(mark)
	}
	c := &cursor{ns: "local." + oplogName, env: r.exprEnv(), src: o, keep: a.keep}
	if a.tailable {
		o.topic = r.s.eng.Journal().Watch(journal.Namespace{})
		c.tail, c.awaits = o, a.await
	}
	if !p.Plain() {
		c.proj = p
	}
	return c, a, nil
}

// oplogOrder reports whether the newest entry comes first. ok is false for an order that the oplog doesn't have.
func oplogOrder(a findArgs) (newest, ok bool) {
	if a.sort.Len() == 1 && a.sort.Get("ts").IsNumber() {
		n, _ := value.Number(a.sort.Get("ts"))
		return n < 0, true
	}
	return a.shown == exec.Newest, a.sort.Len() == 0 || a.sort.Get("$natural").IsDefined()
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

// oplog gives the entries of the oplog. It is an agg.Iter that has no more documents for the moment if it has a topic.
type oplog struct {
	s      *Server
	run    *expr.Run
	env    *expr.Env
	f      *filter.Filter
	skip   int64
	left   int64 // documents still to be returned; -1 = all
	newest bool
	until  uint64         // the last entry without a topic
	floor  uint64         // entries are after it
	topic  *journal.Topic // nil: the cursor ends at until

	pos  journal.Position
	page []*journal.Entry // read, and not yet shown
	docs []value.Value    // of the last entry, or of those of one transaction
	done bool             // nothing more is to be read
}

// Next implements agg.Iter.
func (o *oplog) Next() (value.Value, bool, error) {
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
		}
		d := o.docs[0]
		o.docs = o.docs[1:]
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
func (o *oplog) turn() (bool, error) {
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
	o.page = o.page[n:]
	return true, nil
}

// from returns the time after which there may be unread entries.
func (o *oplog) from() uint64 {
	if o.pos.Whole() {
		return o.pos.Time
	}
	return o.pos.Time - 1
}

func everyEntry(*journal.Entry) bool { return true }

// read reads the next page. It returns false if there is nothing more now.
func (o *oplog) read() (bool, error) {
	j, ctx := o.s.eng.Journal(), o.run.Context()
	if o.done {
		return false, nil
	}
	if o.newest {
		page, err := j.Before(ctx, o.pos, streamPage, everyEntry)
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
	p, err := j.Read(ctx, o.pos, streamPage, everyEntry)
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
func (o *oplog) Close() {
	if o.done = true; o.topic != nil {
		o.topic.Leave()
	}
	o.topic, o.page, o.docs = nil, nil, nil
}

func (o *oplog) notify(wake func()) (stop func()) { return o.topic.Notify(o.from(), wake) }

func (o *oplog) over() bool { return o.done && len(o.docs) == 0 || o.left == 0 }

func (o *oplog) tokenAfter(bool) value.Value { return value.Undef() }

func (o *oplog) rest() {
	size := 0
	for _, e := range o.page {
		size += e.Size()
	}
	if size > streamKept {
		o.pos = journal.After(o.page[0].Time - 1)
		o.page = nil
	}
}

// appendOplogInfo appends the oplog to the collections of the database local.
func (r *request) appendOplogInfo(docs []value.Value, nameOnly bool) []value.Value {
	at, b := bson.Begin(nil)
	b = bson.AppendString(b, "name", oplogName)
	b = bson.AppendString(b, "type", "collection")
	if !nameOnly {
		oa, ob := bson.BeginObject(b, "options")
		ob = bson.AppendBool(ob, "capped", true)
		b = bson.End(bson.AppendInt64(ob, "size", r.s.eng.Journal().Bytes()), oa)
		ia, ib := bson.BeginObject(b, "info")
		b = bson.End(bson.AppendBool(ib, "readOnly", true), ia)
	}
	return append(docs, value.ObjectOf(bson.End(b, at)))
}
