package mongoapi

import (
	"context"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
	"github.com/orrerydb/orrery/mongoapi/stages"
)

// The profiler writes a document about each command of a database to its collection system.profile, before the reply is
// sent: at level 1 those that take slowms or longer, at level 2 all of them. A filter takes the place of the time. The
// level is this server's and lasts until it ends, as in MongoDB. The collection keeps the last megabyte of what this
// server has written. While no database is profiled a command reads one number more.

const (
	profileCollection = "system.profile"
	// profileBytes limits the documents of a database's system.profile.
	profileBytes = 1 << 20
	// profileCommand is the longest command that a document shows, in bytes.
	profileCommand = 16 << 10
	defaultSlowMS  = 100
)

// profiler has the levels of the databases. Safe for concurrent use.
type profiler struct {
	on atomic.Int32 // the number of databases whose level isn't 0

	mu     sync.Mutex
	slow   int64 // ms; of all databases, like the rate
	rate   float64
	levels map[string]*profile
}

// profile is the state of one database.
type profile struct {
	level  int32
	filter *filter.Filter // nil: the time decides
	shown  value.Value    // the filter as it was given

	mu   sync.Mutex // held while a document is written
	kept []kept
	size int
}

// kept is a document of system.profile.
type kept struct {
	id   value.Value
	size int
}

func (p *profiler) init() {
	p.slow, p.rate, p.levels = defaultSlowMS, 1, map[string]*profile{}
}

var profileArguments = args.Set{"slowms": args.Number, "sampleRate": args.Number, "filter": args.Any}

// setProfile is the command profile. It answers with the state before the change.
func setProfile(r *request, dst []byte) ([]byte, error) {
	c, err := r.profileChange()
	if err != nil {
		return dst, err
	}
	if c.sets() && c.level > 0 {
		if err := r.makeProfile(); err != nil {
			return dst, err
		}
	}
	p := &r.s.profiles
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.levels[r.db]
	if d == nil {
		d = &profile{}
	}
	dst = bson.AppendInt32(dst, "was", d.level)
	dst = value.AppendElement(dst, "slowms", value.IntOf(p.slow))
	dst = bson.AppendDouble(dst, "sampleRate", p.rate)
	if d.filter != nil {
		dst = value.AppendElement(dst, "filter", d.shown)
		dst = bson.AppendString(dst, "note", "When a filter expression is set, slowms and sampleRate are not used for "+
			"profiling and slow-query log lines.")
	}
	r.raised = d.level == 0
	p.change(r.db, d, &c)
	return dst, nil
}

// profileChange is what the command profile asks for. Undefined values leave what there is.
type profileChange struct {
	level      int64 // of a number outside of the levels only the rest of the command counts
	slow, rate value.Value
	shown      value.Value // the filter as it is given; a string removes it
	filter     *filter.Filter
}

func (c *profileChange) sets() bool { return c.level >= 0 && c.level <= 2 }

// profileChange reads the arguments of profile.
func (r *request) profileChange() (c profileChange, err error) {
	var ok bool
	if c.level, ok = num.ToInt64(r.arg, true); !r.arg.IsNumber() || !ok {
		return c, args.Want(false, r.name, []byte(r.name), r.arg, "types '[int, decimal, double, long]'")
	}
	c.slow, c.rate = args.Given(r.body, "slowms"), args.Given(r.body, "sampleRate")
	if rate := num.ToFloat(c.rate); c.rate.IsDefined() && !(rate >= 0 && rate <= 1) {
		return c, merr.New(merr.BadValue, "'sampleRate' must be between 0.0 and 1.0 inclusive")
	}
	c.shown = args.Given(r.body, "filter")
	switch {
	case c.shown.Kind() == value.Object:
		c.shown = c.shown.Clone()
		c.filter, err = filter.Compile(c.shown, filter.Options{})
	case c.shown.IsDefined() && c.shown.Str() != "unset":
		err = merr.New(merr.BadValue, "Expected an object, or the string 'unset'.")
	}
	return c, err
}

// change replaces the state d of a database. The caller holds the lock.
func (p *profiler) change(db string, d *profile, c *profileChange) {
	if c.slow.IsDefined() {
		p.slow, _ = num.ToInt64(c.slow, true)
	}
	if c.rate.IsDefined() {
		p.rate = num.ToFloat(c.rate)
	}
	if !c.sets() && !c.shown.IsDefined() {
		return
	}
	n := &profile{level: d.level, filter: d.filter, shown: d.shown, kept: d.kept, size: d.size}
	if c.shown.IsDefined() {
		n.filter, n.shown = c.filter, c.shown
	}
	if c.sets() {
		n.level = int32(c.level)
	}
	switch {
	case d.level == 0 && n.level > 0:
		p.on.Add(1)
	case d.level > 0 && n.level == 0:
		p.on.Add(-1)
	}
	p.levels[db] = n
}

// makeProfile makes the collection that the database's documents are written to.
func (r *request) makeProfile() error {
	if _, err := r.s.eng.EnsureDatabase(r.ctx, r.db); err != nil {
		return err
	}
	_, err := r.s.eng.CreateContainer(r.ctx, r.db, newSpec(profileCollection, idPath))
	if status.Is(err, status.Conflict) {
		return nil
	}
	return err
}

// profiled are the values of the field op. Others are commands.
var profiled = map[string]string{"find": "query", "insert": "insert", "update": "update", "delete": "remove",
	"getMore": "getmore"}

// profile writes a document about a command that has ended, if its database is profiled. Commands that contain a
// password, or that anybody may send, are left out, and those whose statements have documents of their own.
func (r *request) profile(reply []byte, failure error) {
	if def, ok := commands[r.name]; !ok || def.open || def.users || r.profiling().done {
		return
	}
	p := &r.s.profiles
	p.mu.Lock()
	d, slow, rate := p.levels[r.db], p.slow, p.rate
	p.mu.Unlock()
	if d == nil || d.level == 0 || r.raised {
		return
	}
	took := r.s.clk.Now().Sub(r.start).Milliseconds()
	if d.filter == nil && (d.level == 1 && took < slow || rate < 1 && r.s.clk.Float64() >= rate) {
		return
	}
	entry := r.profileEntry(took, reply, failure)
	if d.filter != nil {
		env := &expr.Env{NowMS: r.start.UnixMilli(), Random: r.s.clk.Float64}
		if ok, err := d.filter.Match(env, entry); err != nil || !ok {
			return
		}
	}
	if err := d.write(context.WithoutCancel(r.ctx), r.s, r.db, entry); err != nil {
		r.s.log.Warn("The profile of a database can't be written", "database", r.db, "error", err)
	}
}

// profiling is what only the profiler shows of a command.
type profiling struct {
	done      bool        // its statements were profiled
	statement value.Value // the statement that it stands for
	origin    []byte      // the command that opened the cursor of a getMore; nil = it isn't known
}

func (r *request) profiling() profiling {
	if r.prof == nil {
		return profiling{}
	}
	return *r.prof
}

// profileMark is what a command had done when one of its statements began. The zero mark is that of no profiler.
type profileMark struct {
	start   time.Time
	effects effects
	charge  float64
}

// markProfile returns the mark of a statement of an update or delete that begins now.
func (r *request) markProfile() (m profileMark) {
	if r.s.profiles.on.Load() == 0 || r.name != "update" && r.name != "delete" {
		return m
	}
	return profileMark{r.s.clk.Now(), r.c.did, r.charge}
}

// profileStatement writes the document about a statement that has ended: each of a command's updates and deletes has
// its own, which shows the statement in place of the command.
func (r *request) profileStatement(m profileMark, spec value.Value, failure error) {
	if m.start.IsZero() {
		return
	}
	if r.env != nil {
		r.c.did.read(r.env.Run.TakeRead())
	}
	one := *r
	one.start, one.charge, one.seqs, one.prof = m.start, r.charge-m.charge, nil, &profiling{statement: spec}
	all := r.c.did
	r.c.did.since(&m.effects)
	defer func() { r.c.did = all }()
	at, b := bson.Begin(nil) // the command as explain takes it
	b = bson.AppendString(b, r.name, r.arg.Str())
	list, b := bson.BeginArray(b, statementsOf[r.name])
	b = bson.End(bson.AppendDocument(b, "0", spec.Bytes()), list)
	b = value.AppendElement(b, "let", args.Given(r.body, "let"))
	b = value.AppendElement(b, "comment", r.body.Get("comment"))
	one.body = value.ObjectOf(bson.End(b, at))
	one.profile(nil, failure)
	r.prof = &profiling{done: true}
}

// statementsOf are the arguments with the statements of the commands whose statements are profiled.
var statementsOf = map[string]string{"update": "updates", "delete": "deletes"}

// profileEntry is the document about a command that took so many milliseconds.
func (r *request) profileEntry(took int64, reply []byte, failure error) value.Value {
	ns := r.db
	if coll := r.arg.Str(); coll != "" {
		ns += "." + coll
	} else if r.name == "getMore" {
		ns += "." + r.body.Get("collection").Str()
	}
	op := profiled[r.name]
	if op == "" {
		op = "command"
	}
	at, b := bson.Begin(nil)
	b = value.AppendElement(b, "_id", r.s.ids.next())
	b = bson.AppendString(b, "op", op)
	b = bson.AppendString(b, "ns", ns)
	ca, b := bson.BeginObject(b, "command")
	switch body := r.body.Bytes(); {
	case len(body) > profileCommand:
		b = bson.AppendString(b, r.name, r.arg.Str())
		b = bson.AppendString(b, "$truncated", "the command has more than 16 KiB")
	case r.profiling().statement.IsDefined():
		b = r.appendStatement(b)
	default:
		b = append(b, body[4:len(body)-1]...)
	}
	b = bson.End(b, ca)
	b = r.appendCursor(b, reply, failure)
	b = r.appendFound(b)
	b = bson.AppendDouble(b, "requestCharge", r.charge)
	if reply != nil {
		b = bson.AppendInt32(b, "responseLength", int32(len(reply)))
	}
	b = bson.AppendString(b, "protocol", "op_msg")
	b = bson.AppendInt64(b, "millis", took)
	if failure != nil {
		e := merr.From(failure)
		b = bson.AppendBool(b, "ok", false)
		b = bson.AppendString(b, "errMsg", e.Msg)
		b = bson.AppendString(b, "errName", e.CodeName())
		b = bson.AppendInt32(b, "errCode", e.Code)
	}
	b = bson.AppendDate(b, "ts", r.start.UnixMilli())
	b = bson.AppendString(b, "client", r.c.nc.RemoteAddr().String())
	b = bson.AppendString(b, "appName", r.c.client.app())
	b = bson.AppendString(b, "user", r.c.user)
	return value.ObjectOf(bson.End(b, at))
}

// appendStatement appends the statement with its flags, also those that aren't given.
func (r *request) appendStatement(b []byte) []byte {
	statement := r.prof.statement
	for it := statement.Iter(); it.Next(); {
		if key := string(it.Key()); key != "multi" && key != "upsert" {
			b = value.AppendElement(b, key, it.Value())
		}
	}
	if r.name == "update" {
		b = bson.AppendBool(b, "multi", args.Flag(statement, "multi", false))
		b = bson.AppendBool(b, "upsert", args.Flag(statement, "upsert", false))
	}
	return value.AppendElement(b, "comment", r.body.Get("comment"))
}

// appendCursor appends the cursor that a command has left open or has read, and the command that opened it.
func (r *request) appendCursor(b, reply []byte, failure error) []byte {
	var id, left value.Value
	if reply != nil && failure == nil {
		left = value.ObjectOf(reply).Get("cursor").Get("id")
	}
	switch {
	case r.name == "getMore":
		id = r.arg
	case left.Int() != 0:
		id = left
	}
	switch origin := r.profiling().origin; {
	case origin == nil:
	case len(origin) > profileCommand:
		at, o := bson.BeginObject(b, "originatingCommand")
		b = bson.End(bson.AppendString(o, "$truncated", "the command has more than 16 KiB"), at)
	default:
		b = bson.AppendDocument(b, "originatingCommand", origin)
	}
	b = value.AppendElement(b, "cursorid", id)
	if left.IsNumber() && left.Int() == 0 {
		b = bson.AppendBool(b, "cursorExhausted", true)
	}
	return b
}

// appendFound appends how the documents of a command were found, and what became of them.
func (r *request) appendFound(b []byte) []byte {
	e := &r.c.did
	b = bson.AppendInt64(b, "keysExamined", e.keys)
	b = bson.AppendInt64(b, "docsExamined", e.docs)
	class := classOf(r.name)
	if e.statements[opDelete] > 0 { // a findAndModify that removes
		class = opDelete
	}
	switch class {
	case opQuery, opGetMore:
		b = bson.AppendInt64(b, "nreturned", int64(e.returned))
	case opInsert:
		b = bson.AppendInt64(b, "ninserted", int64(e.inserted))
	case opUpdate:
		b = bson.AppendInt64(b, "nMatched", int64(e.updated))
		b = bson.AppendInt64(b, "nModified", int64(e.modified))
		b = bson.AppendInt64(b, "nUpserted", int64(e.inserted))
	case opDelete:
		b = bson.AppendInt64(b, "ndeleted", int64(e.deleted))
	}
	read := r.body // the command that tells how documents are found
	if r.name == "getMore" {
		origin := r.profiling().origin
		if origin == nil {
			return b
		}
		read = value.ObjectOf(origin)
	}
	first := read.Iter()
	if !first.Next() || !explains[string(first.Key())] {
		return b
	}
	if text := r.planSummary(read); text != "" {
		b = bson.AppendString(b, "planSummary", text)
	}
	return b
}

// planSummary returns how the documents of a command are found; "" if it can't be told. The command may have failed,
// also by a panic, which is caught here, too.
func (r *request) planSummary(cmd value.Value) (text string) {
	defer func() {
		if p := recover(); p != nil {
			r.s.log.Error("The plan of a command can't be shown", "command", r.operation(), "panic", p,
				"stack", string(debug.Stack()))
		}
	}()
	again := *r
	again.ctx, again.env = context.WithoutCancel(r.ctx), nil // its time may be up
	defer again.endRun()
	x, err := again.explained(cmd)
	if err != nil {
		return ""
	}
	p, err := again.planOf(x, false)
	if err != nil {
		return ""
	}
	at, plan := bson.Begin(nil)
	plan = bson.End(p.write(plan, false, x.above), at)
	return stages.Summary(value.ObjectOf(plan))
}

// write adds a document to system.profile, and removes the oldest ones.
func (d *profile) write(ctx context.Context, s *Server, db string, entry value.Value) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	c, err := s.eng.Within(ctx).Container(db, profileCollection)
	if status.Is(err, status.NotFound) { // it was dropped
		d.kept, d.size = nil, 0
		return nil
	}
	if err != nil {
		return err
	}
	id := entry.Get("_id")
	if _, err := c.Write(ctx, core.Write{Kind: core.Create, Doc: entry.Bytes()}); err != nil {
		return err
	}
	n := len(entry.Bytes())
	d.kept, d.size = append(d.kept, kept{id.Clone(), n}), d.size+n
	for d.size > profileBytes {
		old := d.kept[0]
		d.kept, d.size = d.kept[1:], d.size-old.size
		_, err := c.Write(ctx, core.Write{Kind: core.Delete, PK: core.PartitionKey{old.id}, ID: old.id})
		if err != nil && !status.Is(err, status.NotFound) {
			return err
		}
	}
	return nil
}
