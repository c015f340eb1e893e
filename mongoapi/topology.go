package mongoapi

import (
	"bytes"
	"time"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// A driver's monitor asks for the server's description with hello. It names the version that it knows, and how long the
// server may wait for a newer one. If the monitor takes several replies to one message (exhaust), it is told again each
// time that the waiting ends. The description of a server never changes during its life, so a wait takes its whole
// time, unless the client disconnects. Only its version does, with a fail point whose error says that the server steps
// down or shuts down: drivers then look again. A waiting connection costs what an idle one costs.
//
// Example: hello with topologyVersion {processId: P, counter: 0} and maxAwaitTimeMS 10000 is answered after 10 s if P
// is this server's process, and immediately after a restart.

// appendTopologyVersion appends the version of the server's description.
func (r *request) appendTopologyVersion(dst []byte) []byte {
	at, dst := bson.BeginObject(dst, "topologyVersion")
	dst = value.AppendElement(dst, "processId", value.ObjectIDOf(r.c.home.process))
	return bson.End(bson.AppendInt64(dst, "counter", r.c.home.topology.Load()), at)
}

// awaitTopology waits for a newer description than the one that the client knows.
func (r *request) awaitTopology() error {
	known, most := r.body.Get("topologyVersion"), r.body.Get("maxAwaitTimeMS")
	switch {
	case !known.IsDefined() && !most.IsDefined():
		return nil
	case !most.IsDefined():
		return merr.New(31368, "A request with a 'topologyVersion' must include 'maxAwaitTimeMS'")
	case !known.IsDefined():
		return merr.New(31368, "A request with 'maxAwaitTimeMS' must include a 'topologyVersion'")
	}
	if err := numberArg.check(r.name, []byte("maxAwaitTimeMS"), most); err != nil {
		return err
	}
	ms, ok := num.ToInt64(most, true)
	if !ok || ms < 0 {
		return merr.New(31373, "maxAwaitTimeMS must be a non-negative integer")
	}
	if err := objectArg.check(r.name, []byte("topologyVersion"), known); err != nil {
		return err
	}
	process, counter := known.Get("processId"), known.Get("counter")
	switch {
	case process.Kind() != value.ObjectID || counter.Kind() != value.Int64:
		return merr.New(merr.TypeMismatch, "topologyVersion needs a processId, an ObjectId, and a counter, a long")
	case counter.Int() < 0:
		return merr.New(31372, "topologyVersion must have a non-negative counter")
	}
	same := bytes.Equal(process.Bytes(), r.c.home.process)
	now := r.c.home.topology.Load()
	if same && counter.Int() > now {
		return merr.New(31382, "Received a topology version with counter: %d which is greater than the server "+
			"topology version counter: %d", counter.Int(), now)
	}
	seen := counter.Int()
	if r.c.repeats { // it knows the version of the last reply
		seen = r.c.told
	} else if !same {
		seen = -1
	}
	if seen != now {
		r.more = true
		return nil
	}
	wait := min(time.Duration(min(ms, time.Hour.Milliseconds()))*time.Millisecond, r.s.o.Limits.Idle/2)
	r.c.mu.Lock()
	r.c.op = operation{} // meanwhile nothing runs
	r.c.mu.Unlock()
	r.c.rest()
	ctx, ok := r.c.p.Pause(wait, func() bool { return r.c.home.topology.Load() != now })
	if !ok {
		r.c.hangUp = true
		return merr.New(merr.ClientDisconnect, "the client disconnected, or the server shuts down")
	}
	r.more = true
	ctx = r.c.enter(ctx)
	r.s, r.ctx, r.c.ctx = r.c.s, ctx, ctx
	r.start = r.s.clk.Now()
	r.c.seen.began = r.start // the wait is no work
	return nil
}

// changed makes the version of the server's description another one, and tells those that wait for it.
func (s *Server) changed() {
	s.topology.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.p.Wake()
	}
}

// leaves reports whether an error says that the server is no primary any more, or shuts down.
func leaves(code int32) bool {
	switch code {
	case 10058, 10107, 11600, 11602, 13435, 13436, 189, 91:
		return true
	}
	return false
}
