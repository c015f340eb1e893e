package mongoapi

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
	"github.com/orrerydb/orrery/mongoapi/peer"
)

// numbered returns the running command of a connection, with a number. It gets one when it is listed for the first
// time: no client can know it before, and no other command has it, so that a late killOp doesn't end the next one. It
// is a whole number of 32 bits, as programs expect it.
//
// If several processes share the store, the same number is given by each of them. So the id of an operation is a text
// with the process before the number, as a mongos has the shard before it: "9f86d081884c7d65:17". killOp ends
// operations of the process that answers, and refuses all others, instead of ending one with the same number.
func (c *conn) numbered() operation {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.op.seq != 0 && c.op.number == 0 {
		c.op.number = c.home.opNumber.Add(1) & (1<<31 - 1)
	}
	op := c.op
	op.body = bytes.Clone(op.body)
	return op
}

// opSeparator is between the process and the number of an operation.
const opSeparator = ":"

// appendOpID appends the element opid.
func (s *Server) appendOpID(b []byte, number uint32) []byte {
	if p := s.eng.ProcessID(); p != "" {
		return bson.AppendString(b, "opid", p+opSeparator+strconv.FormatInt(int64(number), 10))
	}
	return bson.AppendInt32(b, "opid", int32(number))
}

// parseOpID returns the number of the operation that killOp names.
func (s *Server) parseOpID(v value.Value) (int64, error) {
	mine := s.eng.ProcessID()
	if mine == "" || v.Kind() != value.String && !v.IsNumber() {
		if err := args.Number.Check("killOp", []byte("op"), v); err != nil {
			return 0, err
		}
		id, ok := num.ToInt64(v, false)
		if !ok {
			return 0, merr.New(merr.BadValue,
				"Expected field 'op' to have a value exactly representable as a 64-bit integer")
		}
		return id, nil
	}
	given := ""
	if v.Kind() == value.String {
		given = v.Str()
	}
	process, text, ok := strings.Cut(given, opSeparator)
	if !ok || text == "" {
		return 0, merr.New(merr.OpWithoutShard, "The op argument to killOp must be of the format shardid:opid")
	}
	if process != mine {
		return 0, merr.New(merr.ShardNotFound,
			"Shard %s not found: this server is %s, and ends only its own operations", process, mine)
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, merr.New(merr.OpNotANumber, "Invalid op id: %s", text)
	}
	return id, nil
}

// killOp ends a running command. It is no error if the command has already ended.
func killOp(r *request, dst []byte) ([]byte, error) {
	if r.db != "admin" {
		return dst, merr.New(merr.Unauthorized, "killOp may only be run against the admin database.")
	}
	v := args.Given(r.body, "op")
	if !v.IsDefined() {
		return dst, merr.New(merr.NoSuchKey, `Missing expected field "op"`)
	}
	id, err := r.s.parseOpID(v)
	if err != nil {
		return dst, err
	}
	r.c.home.mu.Lock()
	for c := range r.c.home.conns {
		c.mu.Lock()
		op := c.op
		c.mu.Unlock()
		if op.number != 0 && int64(op.number) == id {
			c.p.Kill(op.seq, peer.ErrKilled)
		}
	}
	r.c.home.mu.Unlock()
	return bson.AppendString(dst, "info", "attempting to kill op"), nil
}
