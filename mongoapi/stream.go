package mongoapi

import (
	"cmp"
	"slices"

	"github.com/orrerydb/orrery/core/journal"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/agg"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/streams"
)

// A change stream is a pipeline that begins with $changeStream. It reads the journal of the store, in which the first
// stream of a collection, of a database or of the deployment has its changes recorded from then on. The cursor of a
// stream keeps a position and holds nothing in the store. A getMore that finds no event waits until the journal tells
// it of one, so a stream without events costs nothing but its getMores.
//
// Example: {aggregate: "orders", pipeline: [{$changeStream: {}}, {$match: {operationType: "insert"}}], cursor: {}}
// answers with an empty batch, the cursor 7 and a token. getMore 7 waits. An insert into "orders" wakes it, and the
// reply has the event. Its _id is the token from which another stream goes on.

const changeStreamStage = "$changeStream"

// streamArguments are the options of $changeStream.
var streamArguments = args.Set{
	"fullDocument": args.String, "fullDocumentBeforeChange": args.String, "resumeAfter": args.Object,
	"startAfter": args.Object, "startAtOperationTime": args.Any, "allChangesForCluster": args.SafeBool,
	"showExpandedEvents": args.OptionalBool, "showMigrationEvents": args.OptionalBool,
	"showSystemEvents": args.OptionalBool, "showRawUpdateDescription": args.OptionalBool,
}

// streamStages are the stages that a change stream may have.
var streamStages = []string{"$match", "$project", "$addFields", "$set", "$unset", "$replaceRoot", "$replaceWith",
	"$redact", streams.SplitStage}

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
	if level := r.body.Get("readConcern").Get("level"); level.IsDefined() && r.concern.Level != "majority" {
		return nil, r.notWithConcern("Aggregation stage " + changeStreamStage + " cannot run with a readConcern " +
			"other than 'majority'. Current readConcern: " + r.concern.Level)
	}
	o, err := r.streamOptions(spec, name)
	if err != nil {
		return nil, err
	}
	if o.NS.Coll != "" {
		if d, err := r.viewDoc(r.db, name); d.IsDefined() || err != nil {
			return nil, cmp.Or(err, notOnView(r.db, name))
		}
	}
	p, err := r.streamPipeline(&o)
	if err != nil {
		return nil, err
	}
	since, err := r.recordChanges(o.NS)
	if err != nil {
		return nil, err
	}
	x, err := streams.Open(r.s.eng, r.exprEnv().Run, o, spec, since)
	if err != nil {
		return nil, err
	}
	c := &cursor{ns: r.db + "." + name, env: r.exprEnv(), run: r.exprEnv().Run, tail: x, awaits: true}
	c.src, err = x.Through(p, &agg.Exec{Env: r.exprEnv(), Host: &host{r: r, db: r.db, coll: name}})
	if err != nil {
		return nil, failed(err)
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
func (r *request) streamOptions(spec value.Value, name string) (o streams.Options, err error) {
	o = streams.Options{NS: journal.Namespace{DB: r.db, Coll: name}, After: "default", Before: "off",
		Expanded: args.Flag(spec, "showExpandedEvents", false)}
	whole := r.arg.IsNumber()
	switch {
	case args.Flag(spec, "allChangesForCluster", false):
		if r.db != "admin" || !whole {
			return o, merr.New(merr.InvalidOptions, "A $changeStream with 'allChangesForCluster:true' may only be "+
				"opened on the 'admin' database, and with no collection name; found %s.%s", r.db, name)
		}
		o.NS = journal.Namespace{}
	case r.db == "admin" || r.db == "local" || r.db == "config":
		return o, merr.New(merr.InvalidNamespace, "$changeStream may not be opened on the internal %s database", r.db)
	case whole:
		o.NS.Coll = ""
	case streams.SystemCollection(name):
		return o, merr.New(merr.InvalidNamespace, "$changeStream may not be opened on the internal %s.%s collection",
			r.db, name)
	}
	for _, f := range []struct {
		name string
		to   *string
		is   []string
	}{{"fullDocument", &o.After, []string{"default", "updateLookup", "whenAvailable", "required"}},
		{"fullDocumentBeforeChange", &o.Before, []string{"off", "whenAvailable", "required"}}} {
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

// streamPipeline compiles the stages after $changeStream.
func (r *request) streamPipeline(o *streams.Options) (*agg.Pipeline, error) {
	stages := value.Elements(r.body.Get("pipeline"))[1:]
	if n := len(stages); n > 0 {
		if v := stages[n-1].Get(streams.SplitStage); v.IsDefined() {
			if v.Kind() != value.Object || v.Len() > 0 {
				return nil, merr.New(7182800, "$changeStreamSplitLargeEvent spec should be an empty object")
			}
			o.Split, stages = true, stages[:n-1]
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
		case name == streams.SplitStage:
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
