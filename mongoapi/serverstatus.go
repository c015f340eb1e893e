package mongoapi

import (
	"math"
	"os"
	"runtime/metrics"
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
	dst = putString(dst, "host", name)
	dst = putString(dst, "version", r.s.release.version())
	dst = putString(dst, "process", "orrery")
	dst = putInt64(dst, "pid", int64(os.Getpid()))
	up := now.Sub(r.s.began)
	dst = putDouble(dst, "uptime", math.Floor(up.Seconds()))
	dst = putInt64(dst, "uptimeMillis", up.Milliseconds())
	dst = putDate(dst, "localTime", now.UnixMilli())
	busy := r.c.home.activity()
	all := busy.readers + busy.writers + busy.others
	at, dst := putObject(dst, "connections")
	dst = putInt32(dst, "current", int32(r.c.home.connections()))
	dst = putInt32(dst, "totalCreated", r.c.home.connID.Load())
	dst = putEnd(putInt32(dst, "active", all), at)
	at, dst = putObject(dst, "globalLock")
	dst = putInt64(dst, "totalTime", up.Microseconds())
	dst = appendClients(dst, "currentQueue", 0, 0, 0)
	dst = putEnd(appendClients(dst, "activeClients", all, busy.readers, busy.writers), at)
	at, dst = putObject(dst, "network")
	dst = putInt64(dst, "bytesIn", busy.in)
	dst = putInt64(dst, "bytesOut", busy.out)
	dst = putEnd(putInt64(dst, "numRequests", r.s.tops.total()), at)
	dst = r.s.tops.appendOpCounters(dst)
	if !r.s.o.Standalone {
		at, dst = putObject(dst, "repl")
		dst = putBool(dst, "isWritablePrimary", true)
		dst = putEnd(r.appendMember(dst), at)
	}
	mem := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(mem)
	at, dst = putObject(dst, "mem")
	dst = putInt32(dst, "bits", 64)
	dst = putInt32(dst, "resident", int32((mem[0].Value.Uint64()-mem[1].Value.Uint64())>>20))
	dst = putInt32(dst, "virtual", int32(mem[0].Value.Uint64()>>20))
	dst = putEnd(putBool(dst, "supported", true), at)
	at, dst = putObject(dst, "metrics")
	ca, dst := putObject(dst, "cursor")
	oa, dst := putObject(dst, "open")
	dst = putInt64(dst, "total", int64(r.s.cursors.open()))
	dst = putEnd(putEnd(putEnd(dst, oa), ca), at)
	at, dst = putObject(dst, "storageEngine")
	dst = putString(dst, "name", "orrery")
	return putEnd(dst, at), nil
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
	at, dst := putObject(dst, "data")
	dst = putDate(dst, "start", r.s.clk.Now().UnixMilli())
	for _, p := range parts {
		pa, b := putObject(dst, p.name)
		b, err := p.fn(r, putDate(b, "start", r.s.clk.Now().UnixMilli()))
		if err != nil {
			return dst, err
		}
		dst = putEnd(putDate(b, "end", r.s.clk.Now().UnixMilli()), pa)
	}
	return putEnd(putDate(dst, "end", r.s.clk.Now().UnixMilli()), at), nil
}

// appendClients appends a number of clients, and how many of them read and write.
func appendClients(dst []byte, name string, total, readers, writers int32) []byte {
	at, dst := putObject(dst, name)
	dst = putInt32(dst, "total", total)
	dst = putInt32(dst, "readers", readers)
	return putEnd(putInt32(dst, "writers", writers), at)
}
