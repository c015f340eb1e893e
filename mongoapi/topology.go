package mongoapi

import (
	"bytes"
	"time"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// A driver's monitor asks for the server's description with hello. It names the version that it knows, and how long the
// server may wait for a newer one. If the monitor takes several replies to one message (exhaust), it is told again each
// time that the waiting ends. The description of a server never changes during its life, so a wait always takes its
// whole time, unless the client disconnects. A waiting connection costs what an idle one costs.
//
// Example: hello with topologyVersion {processId: P, counter: 0} and maxAwaitTimeMS 10000 is answered after 10 s if P
// is this server's process, and immediately after a restart.

// appendTopologyVersion appends the version of the server's description.
func (r *request) appendTopologyVersion(dst []byte) []byte {
	at, dst := bson.BeginObject(dst, "topologyVersion")
	dst = value.AppendElement(dst, "processId", value.ObjectIDOf(r.c.home.process))
	return bson.End(bson.AppendInt64(dst, "counter", 0), at)
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
	if err := args.Number.Check(r.name, []byte("maxAwaitTimeMS"), most); err != nil {
		return err
	}
	ms, ok := num.ToInt64(most, true)
	if !ok || ms < 0 {
		return merr.New(31373, "maxAwaitTimeMS must be a non-negative integer")
	}
	if err := args.Object.Check(r.name, []byte("topologyVersion"), known); err != nil {
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
	if same && counter.Int() > 0 {
		return merr.New(31382, "Received a topology version with counter: %d which is greater than the server "+
			"topology version counter: 0", counter.Int())
	}
	if !same && !r.c.repeats { // else it knows the version of the last reply
		r.more = true
		return nil
	}
	wait := min(time.Duration(min(ms, time.Hour.Milliseconds()))*time.Millisecond, r.s.o.Limits.Idle/2)
	r.c.mu.Lock()
	r.c.op = operation{user: r.c.user, client: r.c.client} // meanwhile nothing runs
	r.c.mu.Unlock()
	r.c.rest()
	r.c.waits(1)
	ctx, ok := r.c.p.Pause(wait)
	r.c.waits(-1)
	r.start = r.s.clk.Now()
	r.c.seen.began = r.start // the wait is no work
	if !ok {
		r.c.hangUp = true
		return merr.New(merr.ClientDisconnect, "the client disconnected, or the server shuts down")
	}
	r.more = true
	ctx = r.c.enter(ctx)
	r.s, r.ctx, r.c.ctx = r.c.s, ctx, ctx
	return nil
}
