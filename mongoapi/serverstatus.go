package mongoapi

import (
	"math"
	"os"
	"runtime/metrics"

	"github.com/orrerydb/orrery/core/bson"
)

// traffic are the bytes that connections have read and written, as they were on the wire.
type traffic struct{ in, out int64 }

// activity is what the connections of a server do at present, and what all of them have read and written.
type activity struct {
	readers, writers, others int32 // commands that run
	traffic
}

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

// serverStatus tells what monitors read. There is no global lock: globalLock has the running commands, and no queue.
func serverStatus(r *request, dst []byte) ([]byte, error) {
	now := r.s.clk.Now()
	name, _ := os.Hostname()
	dst = bson.AppendString(dst, "host", name)
	dst = bson.AppendString(dst, "version", r.s.release.version())
	dst = bson.AppendString(dst, "process", "orrery")
	dst = bson.AppendInt64(dst, "pid", int64(os.Getpid()))
	up := now.Sub(r.s.began)
	dst = bson.AppendDouble(dst, "uptime", math.Floor(up.Seconds()))
	dst = bson.AppendInt64(dst, "uptimeMillis", up.Milliseconds())
	dst = bson.AppendInt64(dst, "uptimeEstimate", int64(up.Seconds()))
	dst = bson.AppendDate(dst, "localTime", now.UnixMilli())
	busy := r.c.home.activity()
	all := busy.readers + busy.writers + busy.others
	at, dst := bson.BeginObject(dst, "connections")
	dst = bson.AppendInt32(dst, "current", int32(r.c.home.connections()))
	dst = bson.AppendInt32(dst, "totalCreated", r.c.home.connID.Load())
	dst = bson.End(bson.AppendInt32(dst, "active", all), at)
	at, dst = bson.BeginObject(dst, "globalLock")
	dst = bson.AppendInt64(dst, "totalTime", up.Microseconds())
	dst = appendClients(dst, "currentQueue", 0, 0, 0)
	dst = bson.End(appendClients(dst, "activeClients", all, busy.readers, busy.writers), at)
	at, dst = bson.BeginObject(dst, "network")
	dst = bson.AppendInt64(dst, "bytesIn", busy.in)
	dst = bson.AppendInt64(dst, "bytesOut", busy.out)
	dst = bson.End(bson.AppendInt64(dst, "numRequests", r.s.tops.total()), at)
	dst = r.s.tops.appendOpCounters(dst)
	if !r.s.o.Standalone {
		at, dst = bson.BeginObject(dst, "repl")
		dst = bson.AppendBool(dst, "isWritablePrimary", true)
		dst = bson.End(r.appendMember(dst), at)
	}
	mem := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(mem)
	at, dst = bson.BeginObject(dst, "mem")
	dst = bson.AppendInt32(dst, "bits", 64)
	dst = bson.AppendInt32(dst, "resident", int32((mem[0].Value.Uint64()-mem[1].Value.Uint64())>>20))
	dst = bson.AppendInt32(dst, "virtual", int32(mem[0].Value.Uint64()>>20))
	dst = bson.End(bson.AppendBool(dst, "supported", true), at)
	at, dst = bson.BeginObject(dst, "metrics")
	ca, dst := bson.BeginObject(dst, "cursor")
	oa, dst := bson.BeginObject(dst, "open")
	dst = bson.AppendInt64(dst, "total", int64(r.s.cursors.open()))
	dst = bson.End(bson.End(bson.End(dst, oa), ca), at)
	at, dst = bson.BeginObject(dst, "storageEngine")
	dst = bson.AppendString(dst, "name", "orrery")
	return bson.End(dst, at), nil
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
