package mongoapi

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/peer"
	"github.com/orrerydb/orrery/mongoapi/users"
	"github.com/orrerydb/orrery/mongoapi/wire"
)

// conn is one connection. Its goroutine owns all fields except those below mu.
type conn struct {
	s      *Server // executes the commands
	home   *Server // has accepted the connection; another one than s only with Options.Turn
	leave  func()  // ends the turn, see Options.Turn; nil: there is none
	nc     net.Conn
	p      *peer.Conn
	id     int32
	authed bool
	met    bool // a message has been read
	user   string
	who    *users.Principal // the user; nil: the account, or nobody
	client metadata         // what the client says about itself
	did    effects          // of the command that runs
	sasl   *conversation
	last   statistics
	out    int32           // request id of the last reply
	ctx    context.Context // of the current message
	mem    *budget.Account // for the message and its reply
	held   int             // bytes of the reply that are counted in mem, including a part that needn't be
	seen   seen
	hangUp bool // a fail point closes the connection
	more   bool // the reply is followed by another one, without a message between them
	// repeats is set while a message is answered again.
	repeats bool
	zip     wire.Compressor // of the current message, and so of its reply; wire.Noop = none
	plain   []byte          // the message that a compressed one contains
	packed  []byte          // a compressed reply

	mu    sync.Mutex
	op    operation
	bytes traffic
}

// operation is the running command, for commands that list and kill operations.
type operation struct {
	seq    uint32 // 0: none
	number uint32 // by which clients know it; 0: none does
	name   string
	ns     string
	since  time.Time
	body   []byte // the command's document, in the buffer of the connection

	// of the connection; they stay when the command ends
	user   string
	client metadata
}

// keepBuffer is the largest read or write buffer in bytes that a connection keeps for the next request.
const keepBuffer = 64 << 10

// wrongPort is the reply to HTTP, which probes of MongoDB know.
const wrongPort = "HTTP/1.0 200 OK\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: 85\r\n\r\n" +
	"It looks like you are trying to access MongoDB over HTTP on the native driver port.\r\n"

func (c *conn) serve() {
	var in, out []byte
	var m wire.Msg
	c.mem = c.s.eng.Budget().Open("message")
	defer c.mem.Close()
	defer c.rest()
	for {
		h, msg, err := c.p.Read(in, c.rules())
		refused := refusal(err)
		if err != nil && refused == nil {
			if errors.Is(err, wire.ErrHTTP) {
				_ = c.p.Write([]byte(wrongPort))
			}
			return
		}
		c.met = true
		received := len(msg)
		if in = msg; cap(in) > keepBuffer {
			in = nil
		}
		if c.zip = wire.Noop; h.OpCode == wire.OpCompressed && refused == nil {
			h, msg, refused = c.unpack(h, msg)
		}
		for c.repeats, c.more = false, true; c.more; c.repeats = true {
			ctx, ok := c.p.Begin(h.OpCode == wire.OpMsg && wire.Flags(msg)&wire.FlagMore != 0)
			if !ok {
				return
			}
			ctx = c.enter(ctx)
			c.home.rouse()
			if c.s.o.Requests != nil {
				c.s.o.Requests.Add(1)
			}
			c.begin(ctx)
			if refused != nil {
				out, err = c.refuse(out[:0], h, msg, refused)
			} else {
				out, err = c.answer(out[:0], h, msg, &m)
			}
			var sent []byte
			if err == nil && len(out) > 0 {
				sent = c.pack(out)
				err = c.p.Write(sent)
			}
			c.ended(err, received, len(sent))
			received = 0
			c.rest()
			if cap(out) > keepBuffer {
				out = nil
			}
			c.mem.Close()
			if !c.p.End() || err != nil {
				return
			}
			h.RequestID = c.out // the next reply, if there is one, answers this one
		}
	}
}

// enter begins a turn of the connection, if there are any. It returns the context of the turn.
func (c *conn) enter(ctx context.Context) context.Context {
	if c.home.o.Turn != nil {
		c.s, ctx, c.leave = c.home.o.Turn(ctx)
	}
	return ctx
}

// rest ends the turn of the connection.
func (c *conn) rest() {
	if c.leave != nil {
		c.leave()
		c.leave = nil
	}
}

// refusal returns the error of a refused message, nil for all others. It is a separate function so that a message
// without an error doesn't allocate.
func refusal(err error) *peer.Refused {
	if err == nil {
		return nil
	}
	var r *peer.Refused
	if !errors.As(err, &r) {
		return nil
	}
	return r
}

// rules returns the limits for the next message.
func (c *conn) rules() peer.Rules {
	r := peer.Rules{Login: !c.authed, Mem: c.mem}
	switch l := &c.s.o.Limits; {
	case !c.met || !c.authed && c.sasl != nil:
		r.First = l.Login
	case !c.authed:
		r.First = l.Idle
	}
	return r
}

// answer appends the reply to a message, or nothing if no reply is expected. An error ends the connection.
func (c *conn) answer(dst []byte, h wire.Header, msg []byte, m *wire.Msg) ([]byte, error) {
	c.out++
	c.more = false
	switch h.OpCode {
	case wire.OpMsg:
		if err := wire.ParseMsg(msg, m); err != nil {
			return c.malformed(dst, h, merr.New(merr.ProtocolError, "%s", err.Error()))
		}
		if m.Flags&wire.FlagMore != 0 { // the client expects no reply
			c.run(nil, m.Body, m.Seqs, false)
			c.more = false
			return dst, c.hung()
		}
		at := len(dst)
		dst = wire.BeginMsg(dst, c.out, h.RequestID, 0)
		dst = c.run(dst, m.Body, m.Seqs, false)
		if c.more = c.more && m.Flags&wire.FlagExhaust != 0; c.more {
			wire.SetFlags(dst[at:], wire.FlagMore)
		}
		return wire.EndMsg(dst, at), c.hung()
	case wire.OpQuery:
		q, err := wire.ParseQuery(msg)
		if err != nil {
			return dst, err
		}
		db, coll, _ := bytes.Cut(q.Collection, []byte{'.'})
		if string(coll) != "$cmd" {
			return c.outdated(dst, h, "OP_QUERY"), nil
		}
		at := len(dst)
		dst = wire.BeginReply(dst, c.out, h.RequestID, wire.ReplyAwaits)
		dst = c.runQuery(dst, db, q.Doc)
		c.more = false
		return wire.EndMsg(dst, at), c.hung()
	case wire.OpGetMore:
		return c.outdated(dst, h, "OP_GET_MORE"), nil
	}
	return dst, wire.ErrMalformed // those without a reply too, which were removed as well: OP_INSERT, OP_UPDATE ..
}

// outdated replies to a message by which clients read before there was OP_MSG, in the form that they know.
func (c *conn) outdated(dst []byte, h wire.Header, op string) []byte {
	at := len(dst)
	dst = wire.BeginReply(dst, c.out, h.RequestID, wire.ReplyFailed)
	doc, dst := bson.Begin(dst)
	dst = bson.AppendString(dst, "$err", op+" is no longer supported. The client driver may require an upgrade. "+
		legacyHelp)
	dst = bson.AppendInt32(dst, "code", 5739101)
	dst = bson.AppendDouble(dst, "ok", 0)
	return wire.EndMsg(bson.End(dst, doc), at)
}

// legacyHelp says where clients of that time can read more.
const legacyHelp = "For more details see https://dochub.mongodb.org/core/legacy-opcode-removal"

// refuse replies to a refused message, unless no reply is expected.
func (c *conn) refuse(dst []byte, h wire.Header, start []byte, cause *peer.Refused) ([]byte, error) {
	c.out++
	c.more = false
	switch {
	case h.OpCode == wire.OpCompressed: // whether a reply is expected stands in what can't be read
	case h.OpCode != wire.OpMsg, wire.Flags(start)&wire.FlagMore != 0:
		return dst, nil
	}
	return c.malformed(dst, h, cause.Cause)
}
