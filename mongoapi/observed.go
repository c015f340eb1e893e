package mongoapi

import (
	"context"
	"strconv"
	"time"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/observe"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/update"
)

// apiName is the name of this API for observers.
const apiName = "mongo"

// seen is the request as reported to the observer. The connection keeps it, so reporting doesn't allocate.
type seen struct {
	req     observe.Request
	client  string
	began   time.Time
	r       *request      // the command, if there is one
	explain func() string // of r; bound once
	ns      string        // of the last request, which is often also the next one's
}

// begin starts a message.
func (c *conn) begin(ctx context.Context) {
	c.ctx, c.held = ctx, 0
	s := &c.seen
	if c.s.o.Observe == nil {
		return
	}
	if s.explain == nil {
		s.client, s.explain = c.nc.RemoteAddr().String(), c.explainSeen
	}
	s.began, s.r = c.s.clk.Now(), nil
	s.req = observe.Request{API: apiName, Operation: "message", Status: "malformed", Client: s.client}
	c.s.o.Observe.Begin(apiName)
}

// waits tells the observer that n more commands only wait for something to happen.
func (c *conn) waits(n int) {
	if o := c.home.o.Observe; o != nil {
		o.Waits(apiName, n)
	}
}

// ended is called when the reply is written, or could not be. received and sent are the bytes of message and reply.
func (c *conn) ended(err error, received, sent int) {
	c.mu.Lock()
	c.op = operation{user: c.op.user, client: c.op.client}
	c.bytes.in += int64(received)
	c.bytes.out += int64(sent)
	c.mu.Unlock()
	s := &c.seen
	if c.s.o.Observe == nil {
		return
	}
	s.req.Left = err != nil || c.p.Left()
	s.req.Duration = c.s.clk.Now().Sub(s.began)
	c.s.o.Observe.Done(&s.req)
	s.r = nil
}

// note records the result of a command. code is 0 for success.
func (c *conn) note(r *request, code int32) {
	s := &c.seen
	if c.s.o.Observe == nil {
		return
	}
	q := &s.req
	q.Operation, q.Status, q.Charge = r.operation(), "ok", r.charge
	if code != 0 {
		q.Status = strconv.Itoa(int(code))
	}
	switch code {
	case merr.InternalError, merr.ShutdownInProgress, merr.WriteConcernFailed:
		q.Failed = true
	}
	db := r.db
	if db == "" { // an argument before it was refused
		db = r.body.Get("$db").Str()
	}
	if q.Target = db; r.arg.Kind() == value.String {
		q.Target = c.namespace(db, r.arg.Str())
	}
	if explains[r.name] {
		s.r, q.Explain = r, s.explain
	}
}

// namespace returns "db.coll". Most requests have the same one as the request before.
func (c *conn) namespace(db, coll string) string {
	ns := &c.seen.ns
	if n := len(db); len(*ns) != n+1+len(coll) || (*ns)[:n] != db || (*ns)[n+1:] != coll {
		*ns = db + "." + coll
	}
	return *ns
}

// operation returns the command's name if it is a known one, because names are labels of metrics.
func (r *request) operation() string {
	if _, ok := commands[r.name]; ok || unsupported[r.name] {
		return r.name
	}
	return "unknown"
}

// explains are the commands whose plan can be shown.
var explains = map[string]bool{"find": true, "aggregate": true, "count": true, "distinct": true, "update": true,
	"delete": true, "findAndModify": true, "findandmodify": true}

// explainSeen returns the text of the command and how its documents are found.
func (c *conn) explainSeen() string {
	if c.seen.r == nil {
		return ""
	}
	r := *c.seen.r
	r.ctx, r.env = context.Background(), nil // the command's own may have ended
	defer r.endRun()
	x, err := r.explained(r.body)
	if err != nil {
		return merr.From(err).Msg
	}
	p, err := r.planOf(x, false)
	if err != nil {
		return merr.From(err).Msg
	}
	return update.Show(r.body) + "\n" + p.text
}
