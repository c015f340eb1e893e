package mongoapi

import (
	"bytes"
	"cmp"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/agg"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// What currentOp and $currentOp list. A command leaves a reference to its own document while it runs; everything else
// is written when somebody asks.

// kinds are the kinds of operations that aren't called commands.
var kinds = map[string]string{"find": "query", "getMore": "getmore", "insert": "insert", "update": "update",
	"delete": "remove"}

// maxShownOp is the size in bytes from which on a command is shown as a text of that length.
const maxShownOp = 1000

// operations lists the running commands, and with o idle connections, transactions and cursors.
func (r *request) operations(o agg.Ops) []value.Value {
	sees := func(user string) bool { return o.AllUsers || !r.s.o.Auth || user == r.c.user }
	out := r.c.home.operations(o, sees, r)
	if !o.NoIdleSessions {
		out = append(out, r.s.idleTransactions(sees)...)
	}
	if o.IdleCursors {
		out = append(out, r.idleCursors(sees, o.Truncate)...)
	}
	return out
}

// operations lists the running commands for a request, and with o idle connections.
func (s *Server) operations(o agg.Ops, sees func(user string) bool, r *request) (out []value.Value) {
	s.mu.Lock()
	conns := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	sort.Slice(conns, func(i, j int) bool { return conns[i].id < conns[j].id })
	for _, c := range conns {
		if op := c.numbered(); sees(op.user) && (op.seq != 0 || o.IdleConnections) {
			out = append(out, s.operation(c, op, o.Truncate, r))
		}
	}
	return out
}

// operation describes the command of a connection; without one the connection.
func (s *Server) operation(c *conn, op operation, truncate bool, r *request) value.Value {
	now := s.clk.Now()
	at, b := bson.Begin(nil)
	b = bson.AppendString(b, "type", "op")
	b = bson.AppendString(b, "host", c.nc.LocalAddr().String())
	b = bson.AppendString(b, "desc", "conn"+strconv.Itoa(int(c.id)))
	b = bson.AppendInt32(b, "connectionId", c.id)
	b = bson.AppendString(b, "client", c.nc.RemoteAddr().String())
	if app := op.client.app(); app != "" {
		b = bson.AppendString(b, "appName", app)
	}
	if len(op.client) > 0 {
		b = value.AppendElement(b, "clientMetadata", value.ObjectOf(op.client))
	}
	b = bson.AppendBool(b, "active", op.seq != 0)
	b = bson.AppendString(b, "currentOpTime", opTime(now))
	b = appendUsers(b, op.user)
	if op.seq == 0 {
		return value.ObjectOf(bson.End(b, at))
	}
	body := value.ObjectOf(op.body)
	b = bson.AppendBool(b, "threaded", true)
	b = s.appendOpID(b, op.number)
	if id := body.Get("lsid").Get("id"); id.IsDefined() {
		b = appendSession(b, id, op.user)
	}
	if body.Get("autocommit").IsDefined() {
		ta, tb := bson.BeginObject(b, "transaction")
		pa, tb := bson.BeginObject(tb, "parameters")
		tb = value.AppendElement(tb, "txnNumber", body.Get("txnNumber"))
		b = bson.End(bson.End(bson.AppendBool(tb, "autocommit", false), pa), ta)
	}
	b = bson.AppendInt64(b, "secs_running", int64(now.Sub(op.since).Seconds()))
	b = bson.AppendInt64(b, "microsecs_running", now.Sub(op.since).Microseconds())
	b = bson.AppendString(b, "op", cmp.Or(kinds[op.name], "command"))
	b = bson.AppendString(b, "ns", op.namespace(body))
	b = appendCommand(b, "command", body, truncate)
	b, origin := r.s.cursors.appendUsed(b, c, op.seq, truncate)
	if text := r.planOfOther(&op, origin); text != "" {
		b = bson.AppendString(b, "planSummary", text)
	}
	b = bson.AppendInt32(b, "numYields", 0)
	for _, name := range []string{"locks", "lockStats", "flowControlStats"} {
		la, lb := bson.BeginObject(b, name)
		b = bson.End(lb, la)
	}
	b = bson.AppendBool(b, "waitingForLock", false)
	return value.ObjectOf(bson.End(bson.AppendBool(b, "waitingForFlowControl", false), at))
}

// opTime is a time as operations show it.
func opTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000-07:00") }

// namespace returns the collection of a command, or what stands for it.
func (op *operation) namespace(body value.Value) string {
	it := body.Iter()
	it.Next()
	switch arg := it.Value(); {
	case op.name == "getMore":
		return op.ns + "." + body.Get("collection").Str()
	case arg.Kind() == value.String:
		return op.ns
	case op.name == "aggregate":
		return op.ns + "." + noCollection
	}
	return op.ns + ".$cmd"
}

// appendUsers appends effectiveUsers, if there is one.
func appendUsers(b []byte, user string) []byte {
	if user == "" {
		return b
	}
	name, db, _ := strings.Cut(fullName(user), "@")
	at, b := bson.BeginArray(b, "effectiveUsers")
	ua, b := bson.BeginObject(b, "0")
	return bson.End(bson.End(bson.AppendString(bson.AppendString(b, "user", name), "db", db), ua), at)
}

// appendSession appends the session of an operation.
func appendSession(b []byte, id value.Value, user string) []byte {
	at, b := bson.BeginObject(b, "lsid")
	return bson.End(value.AppendElement(value.AppendElement(b, "id", id), "uid", uidOf(user)), at)
}

// appendCommand appends a command without its secrets. A large one becomes a text, besides its comment.
func appendCommand(b []byte, name string, body value.Value, truncate bool) []byte {
	comment := body.Get("comment")
	at, b := bson.BeginObject(b, name)
	begin, command := len(b), ""
	_ = fields(body, func(name string, _ value.Value, element []byte) error {
		if command = cmp.Or(command, name); secret(command, name) {
			b = bson.AppendString(b, name, "xxx")
		} else {
			b = append(b, element...)
		}
		return nil
	})
	b = bson.End(b, at)
	if !truncate || len(b)-at <= maxShownOp {
		return b
	}
	ca, whole := bson.Begin(nil)
	_ = fields(value.ObjectOf(b[begin-4:]), func(name string, _ value.Value, element []byte) error {
		if name != "comment" {
			whole = append(whole, element...)
		}
		return nil
	})
	text := merr.ShowShort(value.ObjectOf(bson.End(whole, ca)), maxShownOp)
	b = bson.AppendString(b[:begin], "$truncated", text)
	return bson.End(value.AppendElement(b, "comment", comment), at)
}

// idleTransactions lists the open transactions that no command runs in.
func (s *Server) idleTransactions(sees func(user string) bool) (out []value.Value) {
	now := s.clk.Now()
	for _, t := range s.sessions.running(func(t *transaction) bool { return !t.busy.Load() }) {
		if !sees(t.user) {
			continue
		}
		at, b := bson.Begin(nil)
		b = bson.AppendString(b, "type", "idleSession")
		b = bson.AppendString(b, "desc", "inactive transaction")
		b = bson.AppendBool(b, "active", false)
		b = appendSession(b, t.lsid, t.user)
		ta, b := bson.BeginObject(b, "transaction")
		pa, b := bson.BeginObject(b, "parameters")
		b = bson.AppendInt64(b, "txnNumber", t.number)
		b = bson.AppendBool(b, "autocommit", false)
		ra, b := bson.BeginObject(b, "readConcern")
		if t.level != "" {
			b = bson.AppendString(b, "level", t.level)
		}
		b = bson.End(bson.End(b, ra), pa)
		b = bson.AppendString(b, "startWallClockTime", t.since.UTC().Format(time.RFC3339Nano))
		b = bson.AppendInt64(b, "timeOpenMicros", now.Sub(t.since).Microseconds())
		b = bson.AppendString(b, "expiryTime", t.since.Add(transactionLife).UTC().Format(time.RFC3339Nano))
		b = bson.End(b, ta)
		out = append(out, value.ObjectOf(bson.End(b, at)))
	}
	return sortedBy(out, "lsid", "id")
}

// idleCursors lists the cursors that no command uses.
func (r *request) idleCursors(sees func(user string) bool, truncate bool) (out []value.Value) {
	cs := r.s.cursors
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, c := range cs.m {
		if c.inUse || !sees(c.user) {
			continue
		}
		at, b := bson.Begin(nil)
		b = bson.AppendString(b, "type", "idleCursor")
		b = bson.AppendString(b, "host", r.c.nc.LocalAddr().String())
		b = bson.AppendString(b, "ns", c.ns)
		if len(c.lsid) == 16 {
			b = appendSession(b, value.UUIDOf(c.lsid), c.user)
		}
		out = append(out, value.ObjectOf(bson.End(appendUsers(c.appendShown(b, truncate), c.user), at)))
	}
	return sortedBy(out, "cursor", "cursorId")
}

// sortedBy sorts documents by a field of a field.
func sortedBy(docs []value.Value, name, below string) []value.Value {
	sort.Slice(docs, func(i, j int) bool {
		return value.CompareBSON(docs[i].Get(name).Get(below), docs[j].Get(name).Get(below)) < 0
	})
	return docs
}

// appendUsed appends the cursor that a command uses, if there is one, and returns the command that has opened it.
func (cs *cursors) appendUsed(b []byte, by *conn, seq uint32, truncate bool) ([]byte, []byte) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, c := range cs.m {
		if c.inUse && c.by == by && c.seq == seq {
			return c.appendShown(b, truncate), bytes.Clone(c.cmd)
		}
	}
	return b, nil
}

// planOfOther returns how another command finds its documents, planned now; "" if it can't be told. origin is the
// command that has opened its cursor.
func (r *request) planOfOther(op *operation, origin []byte) string {
	cmd := value.ObjectOf(op.body)
	db := cmd.Get("$db").Str()
	if op.name == "getMore" && len(origin) > 0 {
		cmd = value.ObjectOf(origin)
	}
	first := cmd.Iter()
	if !first.Next() || !explains[string(first.Key())] {
		return ""
	}
	for command, statements := range map[string]string{"update": "updates", "delete": "deletes"} {
		if string(first.Key()) == command && cmd.Get(statements).Len() != 1 {
			return "" // they are in a document sequence, or several
		}
	}
	other := *r
	other.db, other.seqs, other.multi, other.kept = db, nil, nil, nil
	return other.planSummary(cmd)
}

// appendShown appends what operations show of a cursor. The caller holds the lock of the cursors.
func (c *cursor) appendShown(b []byte, truncate bool) []byte {
	at, b := bson.BeginObject(b, "cursor")
	b = bson.AppendInt64(b, "cursorId", c.id)
	b = bson.AppendDate(b, "lastAccessDate", c.used.UnixMilli())
	b = bson.AppendBool(b, "noCursorTimeout", c.keep)
	b = bson.AppendBool(b, "tailable", c.tail != nil)
	b = bson.AppendBool(b, "awaitData", c.awaits)
	if len(c.cmd) > 0 {
		b = appendCommand(b, "originatingCommand", value.ObjectOf(c.cmd), truncate)
	}
	return bson.End(b, at)
}

// currentOp lists the running commands, including itself. Its other arguments are a filter of what it lists.
func currentOp(r *request, dst []byte) ([]byte, error) {
	if r.db != "admin" {
		return dst, merr.New(merr.Unauthorized, "currentOp may only be run against the admin database.")
	}
	o := agg.Ops{AllUsers: !ownOps(r.body), Truncate: true}
	at, b := bson.Begin(nil)
	_ = fields(r.body, func(name string, v value.Value, element []byte) error {
		switch {
		case name == "$all":
			o.IdleConnections = expr.Truthy(v)
		case name == "$ownOps", name == "$truncateOps", name == r.name, generic(name):
		default:
			b = append(b, element...)
		}
		return nil
	})
	f, err := filter.Compile(value.ObjectOf(bson.End(b, at)), r.filterOptions(nil))
	if err != nil {
		return dst, err
	}
	ops := []value.Value{}
	for _, d := range r.operations(o) {
		ok, err := f.Match(r.exprEnv(), d)
		if err != nil {
			return dst, err
		}
		if ok {
			ops = append(ops, d)
		}
	}
	return value.AppendElement(dst, "inprog", value.MakeArray(ops)), nil
}

// ownOps reports whether a currentOp asks only for the operations of its user, which needs no right.
func ownOps(body value.Value) bool { return expr.Truthy(args.Given(body, "$ownOps")) }

// CurrentOp implements agg.Host.
func (h *host) CurrentOp(o agg.Ops) ([]value.Value, error) {
	if h.db != "admin" || h.coll != noCollection {
		return nil, merr.New(merr.InvalidNamespace, "$currentOp must be run against the 'admin' database with "+
			"{aggregate: 1}")
	}
	return h.r.operations(o), nil
}
