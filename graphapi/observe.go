package graphapi

import (
	"strconv"
	"time"

	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/traversal/run"
	"github.com/orrerydb/orrery/graphapi/wire/message"
	"github.com/orrerydb/orrery/internal/observe"
)

// observed is a request with what the observer will be told about it.
type observed struct {
	observe.Request
	req   *message.Request // nil: the request evaluates nothing
	did   run.Stats
	began time.Time
	done  bool
}

// begin tells the observer that a request has begun. known says that its operation is one of ours.
func (w *work) begin(known bool) {
	if w.conn.srv.o.Observe == nil {
		return
	}
	op := w.req.Op
	if !known {
		op = "unknown"
	}
	w.reply.seen = w.conn.srv.observe(op, w.conn.client)
	w.reply.seen.began = w.reply.started
}

// observe begins a client's request. It returns nil if there is no observer.
func (s *Server) observe(op, client string) *observed {
	if s.o.Observe == nil {
		return nil
	}
	s.o.Observe.Begin("gremlin")
	return &observed{Request: observe.Request{API: "gremlin", Operation: op, Client: client}, began: s.o.Clock.Now()}
}

// evaluates records what the request runs.
func (o *observed) evaluates(r *message.Request) {
	if o != nil {
		o.req = r
	}
}

// evaluated records what the evaluation has read and written.
func (o *observed) evaluated(did run.Stats) {
	if o != nil {
		o.did = did
	}
}

// about records the graph.
func (o *observed) about(n GraphName) {
	if o != nil {
		o.Target = n.Database + "/" + n.Graph
	}
}

// failed records the kind of the request's failure.
func (r *reply) failed(k kind) {
	if r.seen != nil {
		r.seen.Failed = k.isFault()
	}
}

// gone reports whether the client has disconnected. It is asked before a reply is written: a client may leave as soon
// as it has the reply.
func (r *reply) gone() bool {
	return r.c.ctx != nil && r.c.ctx.Err() != nil && !r.c.draining.Load()
}

// ended tells the observer that the request was answered; code 0 means no reply. Only the first call has an effect.
func (r *reply) ended(code int) {
	if r.seen == nil || r.seen.done {
		return
	}
	o := r.seen
	o.done = true
	o.Left = code == 0
	o.Status, o.Charge = strconv.Itoa(code), r.charge
	if o.Left {
		o.Status, o.Failed = "left", false
	}
	o.Duration = r.c.srv.o.Clock.Now().Sub(o.began)
	if o.req != nil {
		o.Explain = o.explain
	}
	r.c.srv.o.Observe.Done(&o.Request)
}

// explain returns the text of an evaluation and its figures.
func (o *observed) explain() string {
	text := o.req.Script
	if o.req.Bytecode != nil {
		text = gvalue.Text(o.req.Bytecode)
	}
	return text + "\n" + strconv.FormatInt(o.did.Items, 10) + " items read, " +
		strconv.FormatInt(o.did.Writes, 10) + " written"
}
