package door

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/xdg-go/scram"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/wire"
)

// mongoPool keeps connections that have logged in.
type mongoPool struct {
	addr, user, password string
	idle                 chan *mongoConn
}

func newMongoPool(s *Server) *mongoPool {
	return &mongoPool{addr: s.Mongo, user: cmp.Or(s.MongoUser, s.Account),
		password: cmp.Or(s.MongoPassword, s.Key), idle: make(chan *mongoConn, 16)}
}

func (p *mongoPool) close() {
	for {
		select {
		case c := <-p.idle:
			_ = c.Close()
		default:
			return
		}
	}
}

// take returns a connection for a command. give takes it back when its reply was read.
func (p *mongoPool) take(ctx context.Context) (*mongoConn, error) {
	select {
	case c := <-p.idle:
		return c, nil
	default:
	}
	d := net.Dialer{Timeout: 10 * time.Second}
	nc, err := d.DialContext(ctx, "tcp", p.addr)
	if err != nil {
		return nil, lost(p.addr, err)
	}
	c := &mongoConn{Conn: nc, addr: p.addr}
	if err := c.login(p.user, p.password); err != nil {
		return nil, errors.Join(err, nc.Close())
	}
	return c, nil
}

func (p *mongoPool) give(c *mongoConn) {
	c.used = true
	select {
	case p.idle <- c:
	default:
		_ = c.Close()
	}
}

// run runs a command until it is answered, and calls f with the reply, which is valid until f returns. docs are the
// documents of its sequence called seq.
func (p *mongoPool) run(ctx context.Context, db string, cmd []byte, seq string, docs []byte,
	f func(doc.Doc) error) error {
	return tries(ctx, func() error {
		c, err := p.take(ctx)
		if err != nil {
			return err
		}
		reply, err := c.run(ctx, db, cmd, seq, docs)
		if err != nil {
			_ = c.Close()
			return err
		}
		err = commandError(reply)
		if err == nil && f != nil {
			err = f(reply)
		}
		p.give(c)
		return err
	})
}

// mongoError is a reply with an error.
type mongoError struct {
	code int64
	text string
}

// Error implements error.
func (e *mongoError) Error() string { return fmt.Sprintf("%s (%d)", e.text, e.code) }

// The errors of a busy server, of a command which took too long, and of a full disk.
const (
	mongoBusy     = 16500
	mongoTimeout  = 50
	mongoDiskFull = 14031
)

// commandError returns the error of a reply.
func commandError(reply doc.Doc) error {
	if n, _ := value.Number(doc.Get(reply, "ok")); n == 1 {
		return nil
	}
	err := &mongoError{doc.Get(reply, "code").Int(), doc.Get(reply, "errmsg").Str()}
	if err.code == mongoBusy || err.code == mongoTimeout {
		return &Again{Err: err, Wait: 100 * time.Millisecond}
	}
	return err
}

// mongoConn is a connection.
type mongoConn struct {
	net.Conn
	addr string
	buf  []byte
	id   int32
	used bool // a command was answered before
}

// command returns a command's document without its database.
func command(name, arg string, rest func([]byte) []byte) []byte {
	at, b := bson.Begin(nil)
	b = bson.AppendString(b, name, arg)
	if rest != nil {
		b = rest(b)
	}
	return bson.End(b, at)
}

// mongoPatience is how long an answer may take.
const mongoPatience = 2 * time.Minute

// wall is the time of sockets.
var wall = clock.New()

// longestReply is the size of the longest reply in bytes.
const longestReply = 64 << 20

// run sends a command as one message and reads its reply.
func (c *mongoConn) run(ctx context.Context, db string, cmd []byte, seq string, docs []byte) (doc.Doc, error) {
	_ = c.SetDeadline(wall.Now().Add(mongoPatience))
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	c.id++
	msg := wire.BeginMsg(c.buf[:0], c.id, 0, 0)
	at := len(msg)
	msg = append(msg, cmd[:len(cmd)-1]...)
	msg = bson.End(bson.AppendString(msg, "$db", db), at)
	if seq != "" {
		msg = append(msg, 1) // a section of documents
		size := len(msg)
		msg = append(append(append(msg, 0, 0, 0, 0), seq...), 0)
		msg = append(msg, docs...)
		putLength(msg[size:], len(msg)-size)
	}
	wire.EndMsg(msg, 0)
	c.buf = msg
	if _, err := c.Write(msg); err != nil {
		return nil, c.lost(ctx, err)
	}
	var head [wire.HeaderSize]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return nil, c.lost(ctx, err)
	}
	h, err := wire.ParseHeader(head[:], longestReply)
	if err != nil || h.OpCode != wire.OpMsg {
		return nil, fmt.Errorf("%s doesn't speak MongoDB's protocol", c.addr)
	}
	if n := int(h.Length); cap(c.buf) < n {
		c.buf = make([]byte, n)
	}
	c.buf = c.buf[:h.Length]
	copy(c.buf, head[:])
	if _, err := io.ReadFull(c, c.buf[wire.HeaderSize:]); err != nil {
		return nil, c.lost(ctx, err)
	}
	var m wire.Msg
	if err := wire.ParseMsg(c.buf, &m); err != nil {
		return nil, err
	}
	if err := doc.Validate(m.Body, 0); err != nil {
		return nil, err
	}
	return m.Body, nil
}

func (c *mongoConn) lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return lost(c.addr, err)
}

func putLength(b []byte, n int) {
	b[0], b[1], b[2], b[3] = byte(n), byte(n>>8), byte(n>>16), byte(n>>24)
}

// login logs in by SCRAM-SHA-256 if the server asks for it.
func (c *mongoConn) login(user, password string) error {
	ctx := context.Background()
	hello, err := c.run(ctx, "admin", command("hello", "", nil), "", nil)
	if err == nil {
		err = commandError(hello)
	}
	if err != nil || password == "" {
		return err
	}
	client, err := scram.SHA256.NewClient(user, password, "")
	if err != nil {
		return errors.New("the account and its key can't be used for a login")
	}
	conv := client.NewConversation()
	step, err := conv.Step("")
	name, id := "saslStart", int64(0)
	for range 4 {
		if err != nil {
			return err
		}
		at, b := bson.Begin(nil)
		b = bson.AppendInt32(b, name, 1)
		if name == "saslStart" {
			b = bson.AppendString(b, "mechanism", "SCRAM-SHA-256")
		} else {
			b = bson.AppendInt32(b, "conversationId", int32(id))
		}
		b = bson.End(bson.AppendBinary(b, "payload", []byte(step)), at)
		reply, err := c.run(ctx, "admin", b, "", nil)
		if err == nil {
			err = commandError(reply)
		}
		if err != nil {
			return fmt.Errorf("the login at %s: %w", c.addr, err)
		}
		if d := doc.Get(reply, "done"); d.Kind() == value.Bool && d.Bool() {
			return nil
		}
		name, id = "saslContinue", doc.Get(reply, "conversationId").Int()
		if step, err = conv.Step(string(doc.Get(reply, "payload").Bytes())); err != nil {
			return fmt.Errorf("the login at %s: %w", c.addr, err)
		}
	}
	return errors.New("the login takes too many steps")
}
