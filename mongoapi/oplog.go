package mongoapi

import (
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/journal"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/agg"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/project"
	"github.com/orrerydb/orrery/mongoapi/streams"
)

// local.oplog.rs is a view of the journal in the shape of a replica set's oplog, for programs that tail that. It can
// be read with find, in both natural orders and with tailable cursors, and with count, distinct and pipelines. The
// first of them begins to record all changes.
//
// A transaction is one document of the oplog, a command applyOps, as long as it fits. All of its entries in the journal
// have the same time.
//
// Example: a program finds the newest entry with {$natural: -1} and limit 1. It goes on from its ts with the filter
// {ts: {$gt: ts}} and a tailable cursor that awaits data.

const oplogName = "oplog.rs"

func isOplog(db, name string) bool { return db == "local" && name == oplogName }

// hasOplog reports whether a name is that of the oplog, and the server has one.
func (r *request) hasOplog(db, name string) bool { return isOplog(db, name) && !r.s.o.Standalone }

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
	o, err := streams.OpenOplog(r.s.eng, r.exprEnv(), streams.OplogQuery{Filter: f, TS: a.filter, Skip: a.skip,
		Limit: a.limit, Newest: newest, Tailable: a.tailable}, since)
	if err != nil {
		return nil, a, err
	}
	c := &cursor{ns: "local." + oplogName, env: r.exprEnv(), src: o, keep: a.keep, cmd: r.body.Bytes()}
	if a.tailable {
		c.tail, c.awaits = o, a.await
	}
	if !p.Plain() {
		c.proj = p
	}
	return c, a, nil
}

// reopenOplog makes the cursor of a find on the oplog at its position, which another process has stored.
func (r *request) reopenOplog(id int64, at value.Value) (*cursor, error) {
	c, _, err := r.oplogCursor()
	if err != nil {
		return nil, err
	}
	o, ok := c.src.(*streams.Oplog)
	if !ok {
		return nil, notFound(id)
	}
	o.Resume(at)
	c.run = r.exprEnv().Run
	return c, nil
}

// oplogOrder reports whether the newest entry comes first. ok is false for an order that the oplog doesn't have.
func oplogOrder(a findArgs) (newest, ok bool) {
	if a.sort.Len() == 1 && a.sort.Get("ts").IsNumber() {
		n, _ := value.Number(a.sort.Get("ts"))
		return n < 0, true
	}
	return a.shown == exec.Newest, a.sort.Len() == 0 || a.sort.Get("$natural").IsDefined()
}

// oplogView is the oplog for count and distinct, which are pipelines on it.
var oplogView = &view{name: oplogName, on: oplogName}

// oplogEntries gives a pipeline the entries of the oplog from the time on that its first stage asks for.
func (r *request) oplogEntries() (agg.Iter, error) {
	since, err := r.recordChanges(journal.Namespace{})
	if err != nil {
		return nil, err
	}
	all, err := filter.Compile(value.Undef(), filter.Options{})
	if err != nil {
		return nil, err
	}
	q := streams.OplogQuery{Filter: all, TS: r.body.Get("pipeline").At(0).Get("$match")}
	return streams.OpenOplog(r.s.eng, r.exprEnv(), q, since)
}

// appendOplogStats appends the figures of the oplog: its limit, and what of it is used. Its entries aren't counted.
func (r *request) appendOplogStats(dst []byte, scaleArg value.Value) ([]byte, error) {
	scale, err := divisor(scaleArg)
	if err != nil {
		return dst, err
	}
	j := r.s.eng.Journal()
	used, err := j.Used(r.ctx)
	if err != nil {
		return dst, err
	}
	for _, name := range []string{"size", "storageSize", "totalSize"} {
		dst = value.AppendElement(dst, name, value.IntOf(used/scale))
	}
	dst = bson.AppendBool(dst, "capped", true)
	dst = value.AppendElement(dst, "maxSize", value.IntOf(j.Bytes()/scale))
	dst = bson.AppendInt32(dst, "nindexes", 0)
	dst = bson.AppendInt32(dst, "totalIndexSize", 0)
	at, dst := bson.BeginObject(dst, "indexSizes")
	return value.AppendElement(bson.End(dst, at), "scaleFactor", value.IntOf(scale)), nil
}

// appendLocalInfo appends the oplog and the set's configuration to the collections of the database local.
func (r *request) appendLocalInfo(docs []value.Value, nameOnly bool) []value.Value {
	for _, name := range []string{oplogName, configName} {
		at, b := bson.Begin(nil)
		b = bson.AppendString(b, "name", name)
		b = bson.AppendString(b, "type", "collection")
		if !nameOnly {
			oa, ob := bson.BeginObject(b, "options")
			if name == oplogName {
				ob = bson.AppendBool(ob, "capped", true)
				ob = bson.AppendInt64(ob, "size", r.s.eng.Journal().Bytes())
			}
			b = bson.End(ob, oa)
			ia, ib := bson.BeginObject(b, "info")
			b = bson.End(bson.AppendBool(ib, "readOnly", true), ia)
		}
		docs = append(docs, value.ObjectOf(bson.End(b, at)))
	}
	return docs
}

var _ movableTail = (*streams.Oplog)(nil)
