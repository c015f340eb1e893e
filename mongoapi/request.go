package mongoapi

import (
	"context"
	"errors"
	"math"
	"runtime/debug"
	"strings"
	"time"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/admit"
	"github.com/orrerydb/orrery/internal/deadline"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/failpoint"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
	"github.com/orrerydb/orrery/mongoapi/peer"
	"github.com/orrerydb/orrery/mongoapi/users"
	"github.com/orrerydb/orrery/mongoapi/wire"
)

// maxDepth limits the levels of documents in messages: the document itself, and 200 in it. storedDepth limits those of
// stored documents.
const (
	maxDepth    = 201
	storedDepth = 180
)

// request is one command. It is valid during the call of its handler. Its values point into the connection's read
// buffer.
type request struct {
	s    *Server
	c    *conn
	ctx  context.Context
	name string
	def  int         // command.index; 0: it isn't known
	arg  value.Value // the value of the command's name: usually the collection
	body value.Value
	db   string
	seqs []wire.Seq
	env  *expr.Env

	lsid      value.Value
	txn       int64 // -1 if the command has none
	multi     *transaction
	kept      *keptSnapshot // that it reads; nil: the present state
	concern   args.ReadConcern
	done      map[uint32]outcome // its statements that were made before this process began
	start     time.Time
	api       apiParams
	after     uint64 // the cluster time after which it reads; 0 = any
	maxTimeMS int64
	seen      uint64 // the time up to which the journal was settled when the command began; 0 = there is none
	commit    uint64 // the cluster time of the last commit that the command has made; 0 = it isn't known
	charge    float64
	limit     *deadline.Context // ctx of a command that runs; nil = it was refused before
	cancel    context.CancelFunc
	retried   []int32     // statements that an earlier attempt of the command has made
	unmet     *merr.Error // a write concern that can't be satisfied
	failure   *failpoint.Failure
	prof      *profiling // nil, if nothing is known that only the profiler shows
	failed    int32      // code of the first failed statement in a command that succeeds

	inTxn     bool // it has the argument autocommit
	starts    bool // it begins a transaction
	waits     bool // it has a write concern
	writes    bool // the command writes documents
	retry     bool // the command is a retryable write
	timeGiven bool // maxTimeMS is given
	resumable bool // the command reads a change stream
	legacy    bool // received as OP_QUERY
	help      bool // the client asks what the command is
	more      bool // there is another reply to the same command
	saidOK    bool // the handler wrote the field ok itself, at the service's position
	logged    bool // its fault is already logged
	raised    bool // it is the command profile, and its database wasn't profiled when it began
}

// statistics are the reply of getLastRequestStatistics.
type statistics struct {
	name   string
	charge float64
	millis int64
}

// run appends the reply document of a command.
func (c *conn) run(dst, body []byte, seqs []wire.Seq, legacy bool) []byte {
	at := len(dst)
	r := &request{s: c.s, c: c, ctx: c.ctx, seqs: seqs, txn: -1, legacy: legacy}
	r.start, c.did = c.s.clk.Now(), effects{}
	out, err := r.guarded(dst, body)
	r.endRun()
	if r.env != nil {
		r.c.did.read(r.env.Run.TakeRead())
	}
	code := r.failed
	if err != nil {
		err = r.interrupted(err)
		r.more = false
		out = r.appendError(dst[:at], err)
		code = merr.From(err).Code
	}
	c.note(r, code)
	if c.s.profiles.on.Load() > 0 {
		r.profile(out[at:], err)
	}
	out = r.timed(out, at)
	c.more = r.more
	if r.cancel != nil {
		r.cancel()
	}
	if r.limit != nil {
		r.limit.End()
	}
	took := c.s.clk.Now().Sub(r.start)
	c.s.counters.add(r, code)
	c.s.tops.count(r, took)
	if r.name != "getLastRequestStatistics" {
		c.last = statistics{r.name, r.charge, took.Milliseconds()}
	}
	return out
}

// guarded executes a command. A panic in it ends the command, not the connection.
func (r *request) guarded(dst, body []byte) (out []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			r.logged = true
			r.s.log.Error("mongo command failed", "command", r.operation(), "panic", p, "stack", string(debug.Stack()))
			out, err = dst, merr.New(merr.InternalError, "internal error")
		}
	}()
	return r.execute(dst, body)
}

// interrupted returns the error for a command that was ended from outside. Other errors are returned unchanged.
func (r *request) interrupted(err error) error {
	if !r.stopped(err) {
		return err
	}
	switch cause := context.Cause(r.ctx); {
	case errors.Is(cause, peer.ErrLeft):
		return merr.New(merr.ClientDisconnect, "operation was interrupted because a client disconnected")
	case errors.Is(cause, errCursorKilled):
		return merr.New(merr.CursorKilled, "operation was interrupted because its cursor was killed")
	case errors.Is(cause, peer.ErrKilled):
		return merr.New(merr.Interrupted, "operation was interrupted")
	}
	return errTimeUp
}

var errTimeUp = merr.New(merr.MaxTimeMSExpired, "operation exceeded time limit")

// stopped reports whether err is the error of an ended context.
func (r *request) stopped(err error) bool {
	return err != nil && r.ctx != nil && r.ctx.Err() != nil &&
		(errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || status.Is(err, status.Timeout))
}

func (r *request) execute(dst, body []byte) ([]byte, error) {
	if err := r.wellFormed(body); err != nil {
		return dst, err
	}
	r.body = value.ObjectOf(body)
	def, err := r.command()
	if err != nil {
		return dst, err
	}
	r.def = def.index
	if r.help && (r.c.authed || def.open) {
		return r.call(dst, command{fn: help})
	}
	if err := r.permit(def); err != nil {
		return dst, err
	}
	r.announce()
	own := new(struct { // a single allocation for both
		limit deadline.Context
		place admit.Place
	})
	own.limit.Context, own.limit.Clock = r.ctx, r.s.real
	if !def.open && !def.free {
		if err := own.place.Enter(r.ctx, r.s.o.Gate); err != nil {
			return dst, err
		}
		defer own.place.Leave()
		own.limit.Place = &own.place
	}
	if r.maxTimeMS > 0 && r.name != "getMore" { // there it may be a time to wait
		own.limit.At = r.s.real.Now().Add(time.Duration(r.maxTimeMS) * time.Millisecond)
	}
	r.limit = &own.limit
	r.ctx = r.limit
	if j := r.s.eng.Journal(); j.Active() && !j.Shared() {
		r.seen = j.Mark()
	}
	r.writes, r.retry = def.retry, def.retry && r.txn >= 0 && !r.inTxn
	if r.s.fails.On() {
		return r.failing(dst, def)
	}
	if r.s.o.Faults != nil && !def.open {
		return r.disturbed(dst, def)
	}
	return r.perform(dst, def)
}

// perform runs a handler, or returns the kept reply of a retryable write.
func (r *request) perform(dst []byte, def command) ([]byte, error) {
	switch {
	case r.retry:
		return r.once(dst, def)
	case r.inTxn:
		return r.inTransaction(dst, def)
	case r.concern.Level == "snapshot":
		return r.atSnapshot(dst, def)
	}
	return r.call(dst, def)
}

// call runs a handler and completes its reply.
func (r *request) call(dst []byte, def command) ([]byte, error) {
	at, dst := bson.Begin(dst)
	dst, err := def.fn(r, dst)
	if err != nil {
		return dst, err
	}
	dst = appendUnmet(r.appendRetried(dst), r.unmet)
	if !r.saidOK {
		dst = bson.AppendDouble(dst, "ok", 1)
	}
	return bson.End(dst, at), nil
}

// announce makes the command visible to commands that list operations.
func (r *request) announce() {
	seq, _ := r.c.p.Running()
	c := r.c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.op = operation{seq: seq, name: r.name, ns: r.db, since: r.start, body: r.body.Bytes(), user: c.user,
		client: c.client}
	if r.arg.Kind() == value.String {
		c.op.ns = c.namespace(r.db, r.arg.Str())
	}
}

// readArguments reads the command's name and checks its arguments. ok is false for an unknown command.
func (r *request) readArguments() (def command, ok bool, err error) {
	it := r.body.Iter()
	if !it.Next() {
		return def, false, merr.New(merr.FailedToParse, "the command document is empty")
	}
	if def, ok = commands[string(it.Key())]; ok {
		r.name = def.name // without a copy
	} else {
		r.name = string(it.Key())
	}
	r.arg = it.Value()
	var few [args.Few][]byte
	seen := few[:0]
	for it.Next() {
		generic, err := r.readGeneric(it.Key(), it.Value())
		if err != nil {
			return def, ok, err
		}
		kind, known := args.Any, false
		if !generic {
			kind, known = def.args[string(it.Key())]
		}
		switch {
		case generic || known:
			if args.Contains(seen, it.Key()) {
				return def, ok, args.Duplicate(r.name, it.Key())
			}
			seen = append(seen, it.Key())
		case def.strict:
			return def, ok, args.Unknown(r.name, it.Key())
		}
		if generic {
			continue
		}
		if err := kind.Check(r.name, it.Key(), it.Value()); err != nil {
			return def, ok, err
		}
	}
	if ok && len(r.seqs) > 0 {
		if err := r.checkSeqs(def); err != nil {
			return def, ok, err
		}
	}
	return def, ok, r.checkGeneric()
}

// readGeneric reads a generic argument. known is false for other arguments.
func (r *request) readGeneric(key []byte, v value.Value) (known bool, err error) {
	switch string(key) {
	case "$db":
		if v.Kind() != value.String {
			return true, merr.New(merr.TypeMismatch, "$db must be a string")
		}
		r.db = v.Str()
	case "lsid":
		r.lsid = v.Get("id")
		if r.lsid.Kind() != value.UUID {
			return true, merr.New(merr.InvalidUUID, "lsid.id must be a UUID")
		}
	case "txnNumber":
		n, ok := num.ToInt64(v, false)
		if !ok || n < 0 {
			return true, merr.New(merr.TypeMismatch, "txnNumber must be a non-negative long")
		}
		r.txn = n
	case "autocommit":
		if v.Kind() != value.Bool {
			return true, args.WrongType(string(key), "bool", v)
		}
		if r.inTxn = true; v.Bool() {
			return true, merr.New(merr.InvalidOptions, "Specifying autocommit=true is not allowed.")
		}
	case "startTransaction":
		if v.Kind() != value.Bool {
			return true, args.WrongType(string(key), "bool", v)
		}
		if r.starts = v.Bool(); !r.starts {
			return true, merr.New(merr.InvalidOptions, "Specifying startTransaction=false is not allowed.")
		}
	case "apiVersion", "apiStrict", "apiDeprecationErrors":
		return true, r.readAPI(key, v)
	case "help":
		r.help = expr.Truthy(v)
	case "maxTimeMS":
		n, err := maxTime(v)
		if err != nil {
			return true, err
		}
		r.maxTimeMS, r.timeGiven = n, true
	case "$clusterTime":
		if v.Kind() != value.Object {
			return true, args.WrongType("$clusterTime", "object", v)
		}
		return true, r.gossip(v)
	case "readConcern":
		r.concern, err = args.ParseReadConcern(v)
		r.after = max(r.concern.After, r.concern.At)
		return true, err
	case "writeConcern":
		r.waits = true
		r.unmet, err = args.ParseWriteConcern(v)
		return true, err
	default:
		kind, ok := genericArgs[string(key)]
		if !ok {
			return false, nil
		}
		return true, kind.Check(r.name, key, v)
	}
	return true, nil
}

// maxTime reads maxTimeMS.
func maxTime(v value.Value) (int64, error) {
	n, _ := num.ToInt64(v, true)
	_, whole := num.ToInt64(v, false)
	switch {
	case !v.IsNumber():
		return 0, merr.New(merr.BadValue, "maxTimeMS must be a number")
	case n < 0 || n > math.MaxInt32:
		return 0, merr.New(merr.BadValue, "%d value for maxTimeMS is out of range [0, %d]", n, math.MaxInt32)
	case !whole:
		return 0, merr.New(merr.BadValue, "maxTimeMS has non-integral value")
	}
	return n, nil
}

// checkGeneric checks the combination of generic arguments.
func (r *request) checkGeneric() error {
	if r.txn >= 0 && !r.lsid.IsDefined() {
		return merr.New(merr.InvalidOptions, "Transaction number requires a session ID to also be specified")
	}
	if r.txn >= 0 && r.s.o.Standalone {
		return merr.New(merr.IllegalOperation,
			"Transaction numbers are only allowed on a replica set member or mongos")
	}
	if err := r.checkTransaction(); err != nil {
		return err
	}
	if err := r.checkAfter(); err != nil {
		return err
	}
	if r.db == "" && !r.legacy {
		if r.body.Get("$db").IsDefined() {
			return merr.New(merr.InvalidNamespace, "Invalid database name: ''")
		}
		return merr.New(merr.MissingDB, "OP_MSG requests require a $db argument")
	}
	if r.db == externalDB && commands[r.name].open {
		return nil
	}
	return validDB(r.db)
}

// externalDB is the database of users that another system knows. Drivers name it in logins with PLAIN. It has no data.
const externalDB = "$external"

func validDB(name string) error {
	if len(name) > 63 || strings.ContainsAny(name, "/\\. \"$*<>:|?\x00") {
		return merr.New(merr.InvalidNamespace, "Invalid database name: '%s'", name)
	}
	return nil
}

// exprEnv returns the environment of expressions. The first call creates it.
func (r *request) exprEnv() *expr.Env {
	if r.env == nil {
		clk := r.s.clk
		r.env = &expr.Env{NowMS: clk.Now().UnixMilli(), Random: clk.Float64, Later: r.s.release.later,
			Run: expr.NewRun(r.ctx, r.s.eng.Budget())}
		if r.s.o.Scripts != nil {
			r.env.Run.Scripting(r.s.o.Scripts)
		}
		if r.c.user != "" {
			run, eng, who := r.env.Run, r.s.eng, r.c.who // a later batch of a cursor has another ctx
			r.env.Roles = func() (value.Value, error) {
				return rolesOf(users.Store{Engine: eng, Ctx: run.Context()}, who)
			}
		}
		if r.mayUseDisk() {
			r.env.Run.Spill(r.s.eng.Spill())
		}
	}
	return r.env
}

// mayUseDisk reports whether the command lets sorts and groups write what doesn't fit into memory to files: it may say
// no, and else may.
func (r *request) mayUseDisk() bool { return args.Flag(r.body, "allowDiskUse", true) }

// endRun releases the memory of the command, or of a statement that has ended.
func (r *request) endRun() {
	if r.env != nil {
		r.env.Run.Close()
	}
}

// filterOptions returns the options of the command's filters.
func (r *request) filterOptions(s *expr.Scope) filter.Options {
	return filter.Options{Scope: s, Run: r.exprEnv().Run}
}

// scope compiles the `let` of a command and binds its variables.
func (r *request) scope(cmd value.Value) (*expr.Scope, error) {
	var s *expr.Scope
	if r.api.strict == apiTrue && !r.s.release.settled {
		s = expr.Stable()
	}
	let := args.Given(cmd, "let")
	if !let.IsDefined() {
		return s, nil
	}
	outside, e := s, r.exprEnv()
	for it := let.Iter(); it.Next(); {
		x, err := expr.Compile(it.Value(), outside)
		if err != nil {
			return nil, err
		}
		v, err := x(e.With(value.ObjectOf(bson.Empty)))
		if err != nil {
			return nil, err
		}
		var slot int
		if s, slot, err = expr.BindUser(s, string(it.Key())); err != nil {
			return nil, err
		}
		e.Set(slot, v)
	}
	return s, nil
}

// collection returns the collection that the command's first argument names.
func (r *request) collection() (string, error) { return collectionOf(r.db, r.arg) }

func collectionOf(db string, arg value.Value) (string, error) {
	if arg.Kind() != value.String {
		return "", merr.New(merr.InvalidNamespace, "collection name has invalid type %s", expr.TypeName(arg))
	}
	name := arg.Str()
	return name, namedCollection(db, name)
}

// namedCollection checks a name in a command. It may be one that no collection can have, as in MongoDB: then nothing is
// found. validCollection checks the name of a new collection.
func namedCollection(db, name string) error {
	switch {
	case name == "" || db == "":
		return merr.New(merr.InvalidNamespace, "Invalid namespace specified '%s.%s'", db, name)
	case strings.IndexByte(name, 0) >= 0:
		return merr.New(merr.InvalidNamespace, "namespaces cannot have embedded null characters")
	}
	return nil
}

func validCollection(db, name string) error {
	if err := namedCollection(db, name); err != nil {
		return err
	}
	switch {
	case strings.IndexByte(name, '$') >= 0 || name[0] == '.' || name[len(name)-1] == '.':
		return merr.New(merr.InvalidNamespace, "Invalid collection name: %s", name)
	case len(db)+len(name)+1 > 255:
		return merr.New(merr.InvalidNamespace,
			"Fully qualified namespace is too long. Namespace: %s.%s Max: 255", db, name)
	}
	return nil
}

// docs returns the documents of a write command, of which there must be some, but not too many.
func (r *request) docs(name string) ([]value.Value, error) {
	out, err := r.documents(name)
	if err != nil {
		return nil, err
	}
	return out, checkBatch(len(out))
}

// documents returns the documents of an argument: the command's document sequence with this name, or its array field.
func (r *request) documents(name string) ([]value.Value, error) {
	for i := range r.seqs {
		if string(r.seqs[i].Name) == name {
			var out []value.Value
			for s := r.seqs[i]; ; {
				d, ok := s.Next()
				if !ok {
					return out, nil
				}
				out = append(out, value.ObjectOf(d))
			}
		}
	}
	v := args.Given(r.body, name)
	if !v.IsDefined() {
		return nil, missingField(r.name + "." + name)
	}
	return value.Elements(v), nil
}

func missingField(name string) error {
	return merr.New(merr.MissingField, "BSON field '%s' is missing but a required field", name)
}

func checkBatch(n int) error {
	if n < 1 || n > wire.MaxWriteBatch {
		return merr.New(merr.InvalidLength, "Write batch sizes must be between 1 and %d. Got %d operations.",
			wire.MaxWriteBatch, n)
	}
	return nil
}

// runQuery replies to a command by OP_QUERY, which is only allowed for the first commands of a connection: drivers of
// the time before OP_MSG log in by it. Its database is part of its collection's name.
func (c *conn) runQuery(dst, db, body []byte) []byte {
	r := request{s: c.s, c: c, txn: -1, legacy: true}
	it := value.ObjectOf(body).Iter()
	it.Next()
	switch name := string(it.Key()); name {
	case "hello", "isMaster", "ismaster":
		return c.run(dst, body, nil, true)
	case "authenticate", "buildInfo", "buildinfo", "saslContinue", "saslStart":
		if !value.ObjectOf(body).Get("$db").IsDefined() {
			at, b := bson.Begin(nil)
			b = append(b, body[4:len(body)-1]...)
			body = bson.End(bson.AppendString(b, "$db", string(db)), at)
		}
		return c.run(dst, body, nil, true)
	default:
		return r.appendError(dst, merr.New(merr.UnsupportedOpQuery, "Unsupported OP_QUERY command: %s. The client "+
			"driver may require an upgrade. "+legacyHelp, name))
	}
}
