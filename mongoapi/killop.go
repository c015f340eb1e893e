package mongoapi

import (
	"sort"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
	"github.com/orrerydb/orrery/mongoapi/peer"
)

// opID returns the number of an operation. It contains the numbers of its connection and of the command on it, so that
// a late killOp doesn't end the next command.
func (c *conn) opID(seq uint32) int64 { return int64(c.id)<<32 | int64(seq) }

// operations lists the running commands.
func (s *Server) operations() []value.Value {
	s.mu.Lock()
	conns := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	sort.Slice(conns, func(i, j int) bool { return conns[i].id < conns[j].id })
	var out []value.Value
	now := s.clk.Now()
	for _, c := range conns {
		c.mu.Lock()
		op := c.op
		c.mu.Unlock()
		if op.seq == 0 {
			continue
		}
		at, b := bson.Begin(nil)
		b = bson.AppendString(b, "type", "op")
		b = bson.AppendString(b, "host", c.nc.LocalAddr().String())
		b = bson.AppendInt32(b, "connectionId", c.id)
		b = bson.AppendString(b, "client", c.nc.RemoteAddr().String())
		b = bson.AppendBool(b, "active", true)
		b = bson.AppendInt64(b, "opid", c.opID(op.seq))
		b = bson.AppendString(b, "op", "command")
		b = bson.AppendString(b, "ns", op.ns)
		b = bson.AppendInt64(b, "secs_running", int64(now.Sub(op.since).Seconds()))
		b = bson.AppendInt64(b, "microsecs_running", now.Sub(op.since).Microseconds())
		ca, b := bson.BeginObject(b, "command")
		b = bson.End(bson.AppendString(b, op.name, op.ns), ca)
		out = append(out, value.ObjectOf(bson.End(b, at)))
	}
	return out
}

// currentOp lists the running commands, including itself.
func currentOp(r *request, dst []byte) ([]byte, error) {
	if r.db != "admin" {
		return dst, merr.New(merr.Unauthorized, "currentOp may only be run against the admin database.")
	}
	return value.AppendElement(dst, "inprog", value.MakeArray(r.s.operations())), nil
}

// killOp ends a running command. It is no error if the command has already ended.
func killOp(r *request, dst []byte) ([]byte, error) {
	if r.db != "admin" {
		return dst, merr.New(merr.Unauthorized, "killOp may only be run against the admin database.")
	}
	v := given(r.body, "op")
	if !v.IsDefined() {
		return dst, merr.New(merr.MissingField, "BSON field 'killOp.op' is missing but a required field")
	}
	id, ok := num.ToInt64(v, false)
	if !ok {
		return dst, merr.New(merr.BadValue,
			"Expected field 'op' to have a value exactly representable as a 64-bit integer")
	}
	r.s.mu.Lock()
	for c := range r.s.conns {
		if int64(c.id) == id>>32 {
			c.p.Kill(uint32(id), peer.ErrKilled)
		}
	}
	r.s.mu.Unlock()
	return bson.AppendString(dst, "info", "attempting to kill op"), nil
}
