package mongoapi

import (
	"math"
	"os"
	"runtime/metrics"
	"time"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/mongoapi/args"
)

// traffic are the bytes that connections have read and written, as they were on the wire.
type traffic struct{ in, out int64 }

// activity is what the connections of a server do at present, and what all of them have read and written.
type activity struct {
	readers, writers, others int32 // commands that run
	traffic
}

func (a *activity) all() int32 { return a.readers + a.writers + a.others }

// activity returns the activity of the server.
func (s *Server) activity() (a activity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.traffic = s.left
	for c := range s.conns {
		c.mu.Lock()
		a.in += c.bytes.in
		a.out += c.bytes.out
		if c.op.seq != 0 {
			switch classOf(c.op.name) {
			case opQuery, opGetMore:
				a.readers++
			case opInsert, opUpdate, opDelete:
				a.writers++
			default:
				a.others++
			}
		}
		c.mu.Unlock()
	}
	return a
}

// statusReply is what the parts of a serverStatus are made from.
type statusReply struct {
	*request
	up   time.Duration
	busy activity
}

// statusParts are the parts of serverStatus, in its order. A client leaves one out with {serverStatus: 1, NAME: 0}.
// There is no global lock: globalLock has the running commands, and no queue. What only a member that replicates from
// another one does, or one that waits for others, is 0.
var statusParts = []struct {
	name string
	fn   func(s *statusReply, dst []byte) []byte
}{
	{"asserts", (*statusReply).asserts},
	{"connections", (*statusReply).connections},
	{"extra_info", (*statusReply).extraInfo},
	{"flowControl", func(_ *statusReply, dst []byte) []byte { return bson.AppendBool(dst, "enabled", false) }},
	{"globalLock", (*statusReply).globalLock},
	{"logicalSessionRecordCache", (*statusReply).sessions},
	{"network", (*statusReply).network},
	{"opLatencies", (*statusReply).latencies},
	{"opcounters", func(s *statusReply, dst []byte) []byte { return s.s.counters.appendOpCounters(dst) }},
	{"opcountersRepl", (*statusReply).replicated},
	{"repl", (*statusReply).repl},
	{"security", (*statusReply).security},
	{"storageEngine", (*statusReply).storageEngine},
	{"transactions", (*statusReply).transactions},
	{"mem", (*statusReply).mem},
	{"metrics", (*statusReply).metrics},
}

// serverStatus tells what monitors read.
func serverStatus(r *request, dst []byte) ([]byte, error) {
	now := r.s.clk.Now()
	name, _ := os.Hostname()
	dst = bson.AppendString(dst, "host", name)
	dst = bson.AppendString(dst, "version", r.s.release.version())
	dst = bson.AppendString(dst, "process", "orrery")
	dst = bson.AppendInt64(dst, "pid", int64(os.Getpid()))
	s := &statusReply{request: r, up: now.Sub(r.s.began), busy: r.c.home.activity()}
	dst = bson.AppendDouble(dst, "uptime", math.Floor(s.up.Seconds()))
	dst = bson.AppendInt64(dst, "uptimeMillis", s.up.Milliseconds())
	dst = bson.AppendInt64(dst, "uptimeEstimate", int64(s.up.Seconds()))
	dst = bson.AppendDate(dst, "localTime", now.UnixMilli())
	for _, p := range statusParts {
		if !args.Flag(r.body, p.name, true) || p.name == "repl" && r.s.o.Standalone {
			continue
		}
		at, b := bson.BeginObject(dst, p.name)
		dst = bson.End(p.fn(s, b), at)
	}
	return dst, nil
}

func (s *statusReply) asserts(dst []byte) []byte {
	n := &s.s.counters
	for _, c := range []named{{"regular", n.faults.Load()}, {"warning", 0}, {"msg", 0},
		{"user", n.told.Load() + n.conflicts.Load()}, {"tripwire", 0}, {"rollovers", 0}} {
		dst = bson.AppendInt64(dst, c.name, c.n)
	}
	return dst
}

func (s *statusReply) connections(dst []byte) []byte {
	current := int32(s.c.home.connections())
	dst = bson.AppendInt32(dst, "current", current)
	if most := s.s.o.MaxConnections; most > 0 {
		dst = bson.AppendInt32(dst, "available", max(0, int32(most)-current))
	}
	dst = bson.AppendInt32(dst, "totalCreated", s.c.home.connID.Load())
	dst = bson.AppendInt32(dst, "active", s.busy.all())
	return bson.AppendInt32(dst, "threaded", current)
}

func (s *statusReply) extraInfo(dst []byte) []byte {
	dst = bson.AppendString(dst, "note", "fields vary by platform")
	for _, u := range usage() {
		dst = bson.AppendInt64(dst, u.name, u.n)
	}
	return dst
}

func (s *statusReply) globalLock(dst []byte) []byte {
	dst = bson.AppendInt64(dst, "totalTime", s.up.Microseconds())
	dst = appendClients(dst, "currentQueue", 0, 0, 0)
	return appendClients(dst, "activeClients", s.busy.all(), s.busy.readers, s.busy.writers)
}

func (s *statusReply) sessions(dst []byte) []byte {
	return bson.AppendInt32(dst, "activeSessionsCount", int32(s.s.sessions.known()))
}

func (s *statusReply) network(dst []byte) []byte {
	for _, prefix := range []string{"bytes", "physicalBytes"} {
		dst = bson.AppendInt64(dst, prefix+"In", s.busy.in)
		dst = bson.AppendInt64(dst, prefix+"Out", s.busy.out)
	}
	return bson.AppendInt64(dst, "numRequests", s.s.tops.total())
}

func (s *statusReply) latencies(dst []byte) []byte {
	t := &s.s.counters.transactions
	return appendCounts(s.s.tops.appendAll(dst), "transactions", named{"latency", t.micros.Load()},
		named{"ops", t.committed.Load() + t.aborted.Load()})
}

func (s *statusReply) replicated(dst []byte) []byte {
	for _, class := range opOrder {
		dst = bson.AppendInt64(dst, opNames[class], 0)
	}
	return dst
}

func (s *statusReply) repl(dst []byte) []byte {
	return s.appendMember(bson.AppendBool(dst, "isWritablePrimary", true))
}

func (s *statusReply) security(dst []byte) []byte {
	at, dst := bson.BeginObject(dst, "authentication")
	ma, dst := bson.BeginObject(dst, "mechanisms")
	return bson.End(bson.End(s.s.counters.appendLogins(dst), ma), at)
}

func (s *statusReply) storageEngine(dst []byte) []byte {
	dst = bson.AppendString(dst, "name", "orrery")
	dst = bson.AppendBool(dst, "supportsCommittedReads", true)
	dst = bson.AppendBool(dst, "supportsSnapshotReadConcern", true)
	return bson.AppendBool(dst, "readOnly", false)
}

func (s *statusReply) transactions(dst []byte) []byte {
	n := &s.s.counters
	open := s.s.sessions.running(func(*transaction) bool { return true })
	active := int64(0)
	for _, t := range open {
		if t.busy.Load() {
			active++
		}
	}
	for _, c := range []named{{"retriedCommandsCount", n.retried.commands.Load()},
		{"retriedStatementsCount", n.retried.statements.Load()}, {"currentActive", active},
		{"currentInactive", int64(len(open)) - active}, {"currentOpen", int64(len(open))},
		{"totalAborted", n.transactions.aborted.Load()}, {"totalCommitted", n.transactions.committed.Load()},
		{"totalStarted", n.transactions.started.Load()}} {
		dst = bson.AppendInt64(dst, c.name, c.n)
	}
	return dst
}

func (s *statusReply) mem(dst []byte) []byte {
	mem := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(mem)
	dst = bson.AppendInt32(dst, "bits", 64)
	dst = bson.AppendInt32(dst, "resident", int32((mem[0].Value.Uint64()-mem[1].Value.Uint64())>>20))
	dst = bson.AppendInt32(dst, "virtual", int32(mem[0].Value.Uint64()>>20))
	return bson.AppendBool(dst, "supported", true)
}

func (s *statusReply) metrics(dst []byte) []byte {
	n := &s.s.counters
	at, dst := bson.BeginObject(dst, "commands")
	dst = bson.End(n.appendCommands(dst), at)
	at, dst = bson.BeginObject(dst, "cursor")
	dst = bson.End(s.s.cursors.appendCounts(dst), at)
	dst = appendCounts(dst, "document", named{"deleted", n.documents.deleted.Load()},
		named{"inserted", n.documents.inserted.Load()}, named{"returned", n.documents.returned.Load()},
		named{"updated", n.documents.updated.Load()})
	at, dst = bson.BeginObject(dst, "getLastError")
	dst = appendCounts(dst, "wtime", named{"num", 0}, named{"totalMillis", 0})
	dst = bson.End(bson.AppendInt64(dst, "wtimeouts", 0), at)
	dst = appendCounts(dst, "operation", named{"writeConflicts", n.conflicts.Load()})
	dst = appendCounts(dst, "queryExecutor", named{"scanned", n.read.keys.Load()},
		named{"scannedObjects", n.read.docs.Load()})
	rounds, removed := s.s.eng.Reaped()
	return appendCounts(dst, "ttl", named{"deletedDocuments", removed}, named{"passes", rounds})
}

// getDiagnosticData puts together what programs that watch servers ask for in one command: a part for each of several
// commands, with the times between which it was made. MongoDB answers with its last sample, up to a second old.
func getDiagnosticData(r *request, dst []byte) ([]byte, error) {
	if err := r.adminOnly(); err != nil {
		return dst, err
	}
	parts := []struct {
		name string
		fn   func(*request, []byte) ([]byte, error)
	}{{"serverStatus", serverStatus}, {"replSetGetStatus", replSetGetStatus}}
	if r.s.o.Standalone {
		parts = parts[:1]
	}
	at, dst := bson.BeginObject(dst, "data")
	dst = bson.AppendDate(dst, "start", r.s.clk.Now().UnixMilli())
	for _, p := range parts {
		pa, b := bson.BeginObject(dst, p.name)
		b, err := p.fn(r, bson.AppendDate(b, "start", r.s.clk.Now().UnixMilli()))
		if err != nil {
			return dst, err
		}
		dst = bson.End(bson.AppendDate(b, "end", r.s.clk.Now().UnixMilli()), pa)
	}
	return bson.End(bson.AppendDate(dst, "end", r.s.clk.Now().UnixMilli()), at), nil
}

// appendClients appends a number of clients, and how many of them read and write.
func appendClients(dst []byte, name string, total, readers, writers int32) []byte {
	at, dst := bson.BeginObject(dst, name)
	dst = bson.AppendInt32(dst, "total", total)
	dst = bson.AppendInt32(dst, "readers", readers)
	return bson.End(bson.AppendInt32(dst, "writers", writers), at)
}
