package streams

import (
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/journal"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/changes"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/update"
)

// Open opens a stream where spec, the argument of $changeStream, says: after a token, at a time, or now. since is the
// time since when the changes are recorded. The caller closes the stream, or what Through has made of it.
func Open(eng *core.Engine, run *expr.Run, o Options, spec value.Value, since uint64) (*Stream, error) {
	st := &Stream{eng: eng, run: run, o: o}
	if err := st.begin(spec, since); err != nil {
		return nil, err
	}
	if st.last.Time == 0 { // it begins at a time
		st.shown = st.pos.Time
		if err := eng.Journal().Keep(run.Context(), st.shown); err != nil {
			return nil, err
		}
	}
	st.topic = eng.Journal().Watch(o.NS)
	return st, nil
}

// begin finds the position at which the stream begins. since is the time since when its changes are recorded.
func (st *Stream) begin(spec value.Value, since uint64) error {
	resume, start := args.Given(spec, "resumeAfter"), args.Given(spec, "startAfter")
	at := args.Given(spec, "startAtOperationTime")
	given := 0
	for _, v := range []value.Value{resume, start, at} {
		if v.IsDefined() {
			given++
		}
	}
	if given > 1 {
		return merr.New(40674, "Only one type of resume option is allowed, but multiple were found.")
	}
	switch {
	case at.IsDefined():
		if at.Kind() != value.Timestamp {
			return merr.New(merr.TypeMismatch, "BSON field '$changeStream.startAtOperationTime' is the wrong type "+
				"'%s', expected type 'timestamp'", expr.TypeName(at))
		}
		st.pos = journal.After(max(at.Raw64(), 1) - 1)
		if st.pos.Time < since {
			return historyLost()
		}
	case resume.IsDefined():
		return st.resume(resume, "resumeAfter", since)
	case start.IsDefined():
		return st.resume(start, "startAfter", since)
	default:
		now, err := st.eng.Journal().Now(st.run.Context())
		if err != nil {
			return err
		}
		st.pos = journal.After(now)
	}
	return nil
}

// resume begins after a token.
func (st *Stream) resume(doc value.Value, option string, since uint64) error {
	data := doc.Get("_data")
	switch {
	case !data.IsDefined():
		return merr.New(merr.MissingField, "BSON field '$changeStream.%s._data' is missing but a required field",
			option)
	case data.Kind() != value.String:
		return merr.New(merr.TypeMismatch, "BSON field '$changeStream.%s._data' is the wrong type '%s', expected type "+
			"'string'", option, expr.TypeName(data))
	}
	t, hexadecimal, ok := changes.ParseToken(data.Str())
	switch {
	case !hexadecimal:
		return merr.New(merr.FailedToParse, "resume token string was not a valid hex string")
	case !ok:
		return merr.New(merr.InvalidResumeToken, "the resume token is malformed, or belongs to another server")
	case t.Kind == changes.Invalidate && option == "resumeAfter":
		return merr.New(merr.InvalidResumeToken, "Attempting to resume a change stream using 'resumeAfter' is not "+
			"allowed from an invalidate notification.")
	case t.Fragment > 0 && !st.o.Split:
		return merr.New(merr.ChangeStreamFatal, "the resume token is of a fragment of an event, but the stream has no "+
			"stage %s", SplitStage)
	case t.Time < since:
		return historyLost()
	}
	if st.pos = t.Position(); t.Kind == changes.HighWater {
		return nil
	}
	e, err := st.eng.Journal().Find(st.run.Context(), st.pos)
	if status.Is(err, status.Gone) {
		return historyLost()
	}
	if err != nil {
		return err
	}
	if e == nil || !st.wants(e) {
		return merr.New(merr.ChangeStreamFatal, "cannot resume stream; the resume token was not found. %s",
			update.Show(doc))
	}
	st.last = t
	switch {
	case t.Kind == changes.Invalidate:
	case t.Fragment > 0: // the event comes again, without its first fragments
		st.skip, st.pos = int(t.Fragment), journal.After(t.Time-1)
		if t.N > 0 {
			st.pos = journal.Position{Time: t.Time, N: t.N - 1}
		}
	case st.invalidates(e):
		st.events = append(st.events, st.invalidate(e))
	}
	return nil
}

func historyLost() error {
	return merr.New(merr.ChangeStreamHistoryLost, "Resume of change stream was not possible, as the resume point may "+
		"no longer be in the oplog.")
}

// tokenDoc returns the document of a token.
func tokenDoc(t changes.Token) value.Value {
	at, b := bson.Begin(make([]byte, 0, 64))
	return value.ObjectOf(bson.End(bson.AppendString(b, "_data", t.String()), at))
}
