package mongoapi

import (
	"cmp"
	"slices"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/journal"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/agg"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/changes"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/update"
)

// A change stream is a pipeline that begins with $changeStream. It reads the journal of the store, in which the first
// stream of a collection, of a database or of the deployment has its changes recorded from then on. The cursor of a
// stream keeps a position and holds nothing in the store. A getMore that finds no event waits until the journal tells
// it of one, so a stream without events costs nothing but its getMores.
//
// Example: {aggregate: "orders", pipeline: [{$changeStream: {}}, {$match: {operationType: "insert"}}], cursor: {}}
// answers with an empty batch, the cursor 7 and a token. getMore 7 waits. An insert into "orders" wakes it, and the
// reply has the event. Its _id is the token from which another stream goes on.

const (
	changeStreamStage = "$changeStream"
	splitStage        = "$changeStreamSplitLargeEvent"
)

// streamArguments are the options of $changeStream.
var streamArguments = args.Set{
	"fullDocument": args.String, "fullDocumentBeforeChange": args.String, "resumeAfter": args.Object,
	"startAfter": args.Object, "startAtOperationTime": args.Any, "allChangesForCluster": args.SafeBool,
	"showExpandedEvents": args.OptionalBool, "showMigrationEvents": args.OptionalBool,
	"showSystemEvents": args.OptionalBool, "showRawUpdateDescription": args.OptionalBool,
}

// streamStages are the stages that a change stream may have.
var streamStages = []string{"$match", "$project", "$addFields", "$set", "$unset", "$replaceRoot", "$replaceWith",
	"$redact", splitStage}

// streamOptions are the options of a change stream.
type streamOptions struct {
	ns       journal.Namespace
	after    string // the mode of fullDocument
	before   string // the mode of fullDocumentBeforeChange
	expanded bool
	split    bool
}

// isStream reports whether a pipeline begins with $changeStream, and returns the options of that stage.
func isStream(body value.Value) (value.Value, bool) {
	first := body.Get("pipeline").At(0)
	if first.Kind() != value.Object {
		return first, false
	}
	it := first.Iter()
	return it.Value(), it.Next() && string(it.Key()) == changeStreamStage
}

// streamCursor makes the cursor of a change stream. It may outlive the request's bytes.
func (r *request) streamCursor(name string) (*cursor, error) {
	if err := r.own(); err != nil {
		return nil, err
	}
	if r.s.o.Standalone {
		return nil, merr.New(merr.OnlyOnReplicaSets, "The $changeStream stage is only supported on replica sets")
	}
	spec := r.body.Get("pipeline").At(0).Get(changeStreamStage)
	if spec.Kind() != value.Object {
		return nil, merr.New(50808, "$changeStream stage expects a document as argument")
	}
	if err := streamArguments.Check(changeStreamStage, spec); err != nil {
		return nil, err
	}
	o, err := r.streamOptions(spec, name)
	if err != nil {
		return nil, err
	}
	if o.ns.Coll != "" {
		if d, err := r.viewDoc(r.db, name); d.IsDefined() || err != nil {
			return nil, cmp.Or(err, notOnView(r.db, name))
		}
	}
	p, err := r.streamPipeline(&o)
	if err != nil {
		return nil, err
	}
	since, err := r.recordChanges(o.ns)
	if err != nil {
		return nil, err
	}
	st := &stream{s: r.s, run: r.exprEnv().Run, o: o}
	if err := st.begin(r, spec, since); err != nil {
		return nil, err
	}
	if st.last.Time == 0 { // it begins at a time
		st.shown = st.pos.Time
		if err := r.s.eng.Journal().Keep(r.ctx, st.shown); err != nil {
			return nil, err
		}
	}
	st.topic = r.s.eng.Journal().Watch(o.ns)
	c := &cursor{ns: r.db + "." + name, env: r.exprEnv(), run: st.run, tail: st, awaits: true}
	c.src, err = p.Run(&agg.Exec{Env: r.exprEnv(), Host: &host{r: r, db: r.db, coll: name}},
		&matching{src: st, f: p.Lead.Filter, env: r.exprEnv()})
	if err != nil {
		st.Close()
		return nil, failed(err)
	}
	c.src = &unchangedIDs{src: c.src, st: st}
	if o.split {
		c.src = &splitting{src: c.src, st: st}
	}
	return c, nil
}

// recordChanges begins to record a namespace.
func (r *request) recordChanges(ns journal.Namespace) (uint64, error) {
	since, err := r.s.eng.RecordChanges(r.ctx, ns)
	if status.Is(err, status.NotSupported) {
		return 0, merr.NotSupported("a change stream on a store that is only read")
	}
	return since, err
}

// streamOptions reads the options of a change stream except those about its begin, and what it is on.
func (r *request) streamOptions(spec value.Value, name string) (o streamOptions, err error) {
	o = streamOptions{ns: journal.Namespace{DB: r.db, Coll: name}, after: "default", before: "off",
		expanded: args.Flag(spec, "showExpandedEvents", false)}
	whole := r.arg.IsNumber()
	switch {
	case args.Flag(spec, "allChangesForCluster", false):
		if r.db != "admin" || !whole {
			return o, merr.New(merr.InvalidOptions, "A $changeStream with 'allChangesForCluster:true' may only be "+
				"opened on the 'admin' database, and with no collection name; found %s.%s", r.db, name)
		}
		o.ns = journal.Namespace{}
	case r.db == "admin" || r.db == "local" || r.db == "config":
		return o, merr.New(merr.InvalidNamespace, "$changeStream may not be opened on the internal %s database", r.db)
	case whole:
		o.ns.Coll = ""
	case systemCollection(name):
		return o, merr.New(merr.InvalidNamespace, "$changeStream may not be opened on the internal %s.%s collection",
			r.db, name)
	}
	for _, f := range []struct {
		name string
		to   *string
		is   []string
	}{{"fullDocument", &o.after, []string{"default", "updateLookup", "whenAvailable", "required"}},
		{"fullDocumentBeforeChange", &o.before, []string{"off", "whenAvailable", "required"}}} {
		v := args.Given(spec, f.name)
		if !v.IsDefined() {
			continue
		}
		if *f.to = v.Str(); !slices.Contains(f.is, *f.to) {
			return o, merr.New(merr.BadValue, "Enumeration value '%s' for field '$changeStream.%s' is not a valid "+
				"value.", v.Str(), f.name)
		}
	}
	return o, nil
}

// systemCollection reports whether a collection belongs to the server.
func systemCollection(name string) bool { return len(name) >= 7 && name[:7] == "system." }

// streamPipeline compiles the stages after $changeStream.
func (r *request) streamPipeline(o *streamOptions) (*agg.Pipeline, error) {
	stages := value.Elements(r.body.Get("pipeline"))[1:]
	if n := len(stages); n > 0 {
		if v := stages[n-1].Get(splitStage); v.IsDefined() {
			if v.Kind() != value.Object || v.Len() > 0 {
				return nil, merr.New(7182800, "$changeStreamSplitLargeEvent spec should be an empty object")
			}
			o.split, stages = true, stages[:n-1]
		}
	}
	scope, err := r.scope(r.body)
	if err != nil {
		return nil, err
	}
	for _, s := range stages {
		switch name := stageName(s); {
		case name == changeStreamStage:
			return nil, merr.New(40602, "$changeStream is only valid as the first stage in a pipeline")
		case name == splitStage:
			return nil, merr.New(40601, "%s can only be the final stage in the pipeline", name)
		}
	}
	p, err := agg.Compile(value.MakeArray(stages), agg.Options{Scope: scope, Run: r.exprEnv().Run})
	if err != nil {
		return nil, err
	}
	for _, s := range stages {
		if name := stageName(s); !slices.Contains(streamStages, name) {
			return nil, merr.New(merr.IllegalOperation, "%s is not permitted in a $changeStream pipeline", name)
		}
	}
	return p, nil
}

func stageName(s value.Value) string {
	if s.Kind() != value.Object {
		return ""
	}
	it := s.Iter()
	it.Next()
	return string(it.Key())
}

// begin finds the position at which the stream begins. since is the time since when its changes are recorded.
func (st *stream) begin(r *request, spec value.Value, since uint64) error {
	resume, start := args.Given(spec, "resumeAfter"), args.Given(spec, "startAfter")
	at := args.Given(spec, "startAtOperationTime")
	switch n := 0; {
	default:
		for _, v := range []value.Value{resume, start, at} {
			if v.IsDefined() {
				n++
			}
		}
		if n > 1 {
			return merr.New(40674, "Only one type of resume option is allowed, but multiple were found.")
		}
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
		return st.resume(r, resume, "resumeAfter", since)
	case start.IsDefined():
		return st.resume(r, start, "startAfter", since)
	default:
		now, err := r.s.eng.Journal().Now(r.ctx)
		if err != nil {
			return err
		}
		st.pos = journal.After(now)
	}
	return nil
}

// resume begins after a token.
func (st *stream) resume(r *request, doc value.Value, option string, since uint64) error {
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
	case t.Fragment > 0 && !st.o.split:
		return merr.New(merr.ChangeStreamFatal, "the resume token is of a fragment of an event, but the stream has no "+
			"stage %s", splitStage)
	case t.Time < since:
		return historyLost()
	}
	if st.pos = t.Position(); t.Kind == changes.HighWater {
		return nil
	}
	e, err := r.s.eng.Journal().Find(r.ctx, st.pos)
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

// matching filters the documents of a source.
type matching struct {
	src agg.Iter
	f   *filter.Filter
	env *expr.Env
}

// Next implements agg.Iter.
func (m *matching) Next() (value.Value, bool, error) {
	for {
		d, ok, err := m.src.Next()
		if !ok || err != nil {
			return d, ok, err
		}
		if ok, err = m.f.Match(m.env, d); ok || err != nil {
			return d, ok && err == nil, err
		}
	}
}

// Close implements agg.Iter.
func (m *matching) Close() { m.src.Close() }

// unchangedIDs refuses events whose _id isn't the one that the stream has given them.
type unchangedIDs struct {
	src agg.Iter
	st  *stream
}

// Next implements agg.Iter.
func (u *unchangedIDs) Next() (value.Value, bool, error) {
	d, ok, err := u.src.Next()
	if !ok || err != nil {
		return d, ok, err
	}
	if want := tokenDoc(u.st.last); !value.Identical(d.Get("_id"), want) {
		return d, false, merr.New(merr.ChangeStreamFatal, "Encountered an event whose _id field, which contains the "+
			"resume token, was modified by the pipeline. Modifying the _id field of an event makes it impossible to "+
			"resume the stream from that point. Only transformations that retain the unmodified _id field are "+
			"allowed. Expected: %s but found: %s", update.Show(want), shownID(d.Get("_id")))
	}
	return d, true, nil
}

// Close implements agg.Iter.
func (u *unchangedIDs) Close() { u.src.Close() }

func shownID(id value.Value) string {
	if !id.IsDefined() {
		return "MISSING"
	}
	return update.Show(id)
}

// splitting is the stage $changeStreamSplitLargeEvent.
type splitting struct {
	src  agg.Iter
	st   *stream
	left []value.Value
}

// Next implements agg.Iter.
func (s *splitting) Next() (value.Value, bool, error) {
	if len(s.left) == 0 {
		d, ok, err := s.src.Next()
		if !ok || err != nil {
			return d, ok, err
		}
		of := s.st.last
		if s.left = changes.Split(d, maxDocument, func(n int) value.Value {
			t := of
			t.Fragment = uint16(n)
			return tokenDoc(t)
		}); len(s.left) <= s.st.skip {
			return d, false, merr.New(7182500, "an event can't be split: one of its fields is too large")
		}
		s.left, s.st.skip = s.left[s.st.skip:], 0
	}
	d := s.left[0]
	if s.left = s.left[1:]; d.Get("splitEvent").IsDefined() {
		s.st.last.Fragment = uint16(d.Get("splitEvent").Get("fragment").Int())
	}
	return d, true, nil
}

// Close implements agg.Iter.
func (s *splitting) Close() { s.src.Close() }
