package mongoapi

import (
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/xdg-go/scram"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/mongoapi/peer"
	"github.com/orrerydb/orrery/mongoapi/users"
	"github.com/orrerydb/orrery/mongoapi/wire"
)

// hasty are limits that a test can wait for. With patient limits, a busy machine is fast enough too.
var (
	hasty = peer.Limits{
		Login: 200 * time.Millisecond,
		Idle:  400 * time.Millisecond,
		Stall: 300 * time.Millisecond,
		Small: 32 << 10,
	}
	patient = peer.Limits{Login: soon, Idle: 1500 * time.Millisecond, Stall: time.Second, Small: 32 << 10}
)

// cutOff reports whether the server closes a connection. Data that it sends before is skipped.
func cutOff(c net.Conn) bool {
	_ = c.SetReadDeadline(time.Now().Add(soon))
	_, err := io.Copy(io.Discard, c)
	ne, timeout := err.(net.Error)
	return !timeout || !ne.Timeout()
}

func greeting() bson.D { return bson.D{{Key: "hello", Value: 1}, {Key: "$db", Value: "admin"}} }

func startLogin(payload string) bson.D {
	return bson.D{
		{Key: "saslStart", Value: 1},
		{Key: "mechanism", Value: "SCRAM-SHA-256"},
		{Key: "payload", Value: []byte(payload)},
		{Key: "options", Value: bson.D{{Key: "skipEmptyExchange", Value: true}}},
		{Key: "$db", Value: "admin"},
	}
}

// login logs a client in as the account.
func (c *client) login() {
	c.t.Helper()
	if e := c.loginAs("admin", "localhost", "a2V5", ""); e.OK != 1 {
		c.t.Fatal(e)
	}
}

// loginAs logs a client in as a user of a database. "" = SCRAM-SHA-256.
func (c *client) loginAs(db, user, password, mechanism string) errorReply {
	c.t.Helper()
	hash := scram.SHA256
	switch mechanism {
	case "":
		mechanism = users.MechSHA256
	case users.MechSHA1:
		digest := md5.Sum([]byte(user + ":mongo:" + password))
		hash, password = scram.SHA1, hex.EncodeToString(digest[:])
	}
	start := startLogin("\x00" + user + "\x00" + password)
	start[1].Value, start[4].Value = mechanism, db
	if mechanism == users.MechPlain {
		_, e := c.ask(start)
		return e
	}
	cl, err := hash.NewClientUnprepped(user, password, "")
	if err != nil {
		c.t.Fatal(err)
	}
	conv := cl.NewConversation()
	step, _ := conv.Step("")
	start[2].Value = []byte(step)
	raw, e := c.ask(start)
	if e.OK != 1 {
		return e
	}
	_, payload := raw.Lookup("payload").Binary()
	if step, err = conv.Step(string(payload)); err != nil {
		c.t.Fatal(err)
	}
	_, e = c.ask(bson.D{{Key: "saslContinue", Value: 1}, {Key: "conversationId", Value: 1},
		{Key: "payload", Value: []byte(step)}, {Key: "$db", Value: db}})
	return e
}

// Without skipEmptyExchange a login ends with a third message. It says nothing, and most drivers leave it empty; Java's
// of 3.x repeat the signature of the server in it. The login isn't done before.
func TestLastExchange(t *testing.T) {
	_, addr := serve(t, Options{Auth: true}, nil)
	for _, last := range []string{"", "v=c2lnbmF0dXJl"} {
		c := connect(t, addr)
		cl, err := scram.SHA256.NewClientUnprepped("localhost", "a2V5", "")
		if err != nil {
			t.Fatal(err)
		}
		conv := cl.NewConversation()
		step, _ := conv.Step("")
		start := startLogin(step)
		raw, _ := c.ask(append(start[:3:3], start[4]))
		_, payload := raw.Lookup("payload").Binary()
		if step, err = conv.Step(string(payload)); err != nil {
			t.Fatal(err)
		}
		list := bson.D{{Key: "listDatabases", Value: 1}, {Key: "$db", Value: "admin"}}
		for i, want := range []struct {
			payload string
			done    bool
			code    int32
		}{{step, false, 13}, {last, true, 0}} {
			raw, e := c.ask(bson.D{{Key: "saslContinue", Value: 1}, {Key: "conversationId", Value: 1},
				{Key: "payload", Value: []byte(want.payload)}, {Key: "$db", Value: "admin"}})
			if done, _ := raw.Lookup("done").BooleanOK(); e.OK != 1 || done != want.done {
				t.Errorf("%q, message %d: %s", last, i+2, raw)
			}
			if raw, e := c.ask(list); e.Code != want.code {
				t.Errorf("%q, after message %d: %s", last, i+2, raw)
			}
		}
	}
}

// Drivers of the time before OP_MSG log in by OP_QUERY, whose collection names the database.
func TestLoginByOpQuery(t *testing.T) {
	c := newConn(t, newTestServer(t, Options{Auth: true}), false)
	ask := func(d bson.D) (raw bson.Raw, ok bool) {
		b, err := bson.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		raw = answerRaw(t, c, wire.OpQuery,
			append([]byte("\x00\x00\x00\x00admin.$cmd\x00\x00\x00\x00\x00\xff\xff\xff\xff"), b...))
		return raw, raw.Lookup("ok").Double() == 1
	}
	if raw, ok := ask(bson.D{{Key: "buildInfo", Value: 1}}); !ok {
		t.Errorf("buildInfo: %s", raw)
	}
	cl, err := scram.SHA256.NewClientUnprepped("localhost", "a2V5", "")
	if err != nil {
		t.Fatal(err)
	}
	conv := cl.NewConversation()
	step, _ := conv.Step("")
	raw, ok := ask(startLogin(step)[:4]) // without $db
	if !ok {
		t.Fatalf("saslStart: %s", raw)
	}
	_, payload := raw.Lookup("payload").Binary()
	if step, err = conv.Step(string(payload)); err != nil {
		t.Fatal(err)
	}
	if raw, ok = ask(bson.D{{Key: "saslContinue", Value: 1}, {Key: "conversationId", Value: 1},
		{Key: "payload", Value: []byte(step)}}); !ok {
		t.Fatalf("saslContinue: %s", raw)
	}
	if !c.authed {
		t.Error("nobody is logged in")
	}
	if raw, ok = ask(bson.D{{Key: "listDatabases", Value: 1}}); ok || raw.Lookup("code").AsInt64() != 352 {
		t.Errorf("listDatabases: %s", raw)
	}
}

// TestOldMessages tests what clients learn that read by the messages of the time before OP_MSG: an error in the form
// that they know. Those that write get no reply, as ever: the connection ends.
func TestOldMessages(t *testing.T) {
	_, addr := serve(t, Options{}, nil)
	c := connect(t, addr)
	const coll = "\x00\x00\x00\x00db.c\x00"
	for _, x := range []struct {
		op   uint32
		body string
		name string
	}{
		{wire.OpQuery, coll + "\x00\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00", "OP_QUERY"},
		{wire.OpGetMore, coll + "\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00", "OP_GET_MORE"},
	} {
		if _, err := c.Write(message(x.op, []byte(x.body))); err != nil {
			t.Fatal(err)
		}
		h, msg := c.frame()
		d := bson.Raw(msg[wire.HeaderSize+20:])
		text, _ := d.Lookup("$err").StringValueOK()
		if h.OpCode != wire.OpReply || msg[wire.HeaderSize] != wire.ReplyFailed ||
			d.Lookup("code").AsInt64() != 5739101 || !strings.HasPrefix(text, x.name+" is no longer supported. ") {
			t.Errorf("%s: %v, flags %x, %v", x.name, h, msg[wire.HeaderSize], d)
		}
	}
	const opInsert = 2002
	if _, err := c.Write(message(opInsert, []byte(coll+"\x05\x00\x00\x00\x00"))); err != nil {
		t.Fatal(err)
	}
	if raw, err := c.recv(); err == nil {
		t.Errorf("an OP_INSERT is answered: %v", raw)
	}
}

// TestBeforeLogin: a client that hasn't logged in has short limits.
func TestBeforeLogin(t *testing.T) {
	_, addr := serve(t, Options{Auth: true, Limits: hasty}, nil)
	for _, x := range []struct {
		name string
		do   func(c *client)
	}{
		{"says nothing", func(*client) {}},
		{"begins a header", func(c *client) { _, _ = c.Write([]byte{60, 0, 0}) }},
		{"begins a message", func(c *client) { _, _ = c.Write(rawMsg(t, greeting())[:30]) }},
		{"sends a long message", func(c *client) {
			c.ask(greeting())
			c.send(append(greeting(), bson.E{Key: "pad", Value: strings.Repeat("x", 32<<10)}))
		}},
		{"sends a message slowly", func(c *client) {
			for _, b := range rawMsg(t, append(greeting(), bson.E{Key: "pad", Value: strings.Repeat("x", 500)})) {
				if _, err := c.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(5 * time.Millisecond)
			}
		}},
		{"stops after a hello", func(c *client) { c.ask(greeting()) }},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			c := connect(t, addr)
			x.do(c)
			if !cutOff(c) {
				t.Error("the connection is still there")
			}
		})
	}
	_, idle := serve(t, Options{Auth: true, Limits: peer.Limits{Login: hasty.Login, Idle: time.Hour, Stall: soon,
		Small: hasty.Small}}, nil)
	t.Run("stops within a login", func(t *testing.T) {
		t.Parallel()
		c := connect(t, idle)
		if c.ask(startLogin("n,,n=localhost,r=abcdefghijklmnop")); !cutOff(c) {
			t.Error("a half login may wait as long as a monitor")
		}
	})
	_, addr2 := serve(t, Options{Auth: true, Limits: patient}, nil)
	t.Run("a monitor is served on", func(t *testing.T) {
		t.Parallel()
		c := connect(t, addr2)
		for range 6 {
			if _, e := c.ask(greeting()); e.OK != 1 {
				t.Fatal(e)
			}
			time.Sleep(patient.Idle / 4)
		}
	})
	t.Run("who has logged in may be silent", func(t *testing.T) {
		t.Parallel()
		c := connect(t, addr2)
		c.login()
		time.Sleep(patient.Idle + patient.Stall)
		if _, e :=
			c.ask(
				bson.D{{Key: "find", Value: "c"},
					{Key: "filter", Value: bson.D{{Key: "a", Value: strings.Repeat("x", 100<<10)}}}}); e.OK != 1 {
			t.Error(e)
		}
	})
}

// TestReadersThatNeverRead: the memory for clients that don't read is limited by the budget, and they are disconnected.
func TestReadersThatNeverRead(t *testing.T) {
	const limit = 64 << 20
	b := budget.New(limit, 0)
	s, addr := serve(t, Options{Limits: patient}, b)
	c := connect(t, addr)
	for i := range 20 {
		if _, e :=
			c.ask(
				bson.D{{Key: "insert", Value: "c"},
					{Key: "documents", Value: bson.A{
						bson.D{{Key: "_id", Value: i}, {Key: "pad", Value: strings.Repeat("x", 1<<20)}}}}}); e.OK != 1 {
			t.Fatal(e)
		}
	}
	collected := func() (m runtime.MemStats) {
		runtime.GC() // twice: what a pool holds outlives the first
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m
	}
	before := collected()
	var readers []*client
	for range 30 {
		r := connect(t, addr)
		_ = r.Conn.(*net.TCPConn).SetReadBuffer(4096)
		readers = append(readers, r)
		r.send(bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: 100}})
	}
	for began := time.Now(); b.Used() < limit/2; time.Sleep(time.Millisecond) {
		if time.Since(began) > soon {
			t.Fatalf("%d bytes of replies are known", b.Used())
		}
	}
	during := collected()
	if b.Used() > limit || int64(during.HeapAlloc-before.HeapAlloc) > 4*limit {
		t.Errorf("%d of the budget, %d of memory", b.Used(), during.HeapAlloc-before.HeapAlloc)
	}
	for began := time.Now(); b.Used() > 0 && time.Since(began) < 2*soon; time.Sleep(10 * time.Millisecond) {
	}
	if b.Used() > 0 { // short replies may be in the system's buffers
		t.Errorf("%d bytes are still held for them", b.Used())
	}
	if s.connections() == len(readers)+1 {
		t.Error("nobody was cut off")
	}
	if _, e := c.ask(bson.D{{Key: "find", Value: "c"}, {Key: "limit", Value: 1}}); e.OK != 1 {
		t.Error(e)
	}
}

// TestMessageWithoutMemory: a message without memory in the budget is refused as by a busy server, and the connection
// stays open. If no reply is expected, none is sent.
func TestMessageWithoutMemory(t *testing.T) {
	b := budget.New(1<<30, 256<<10)
	_, addr := serve(t, Options{}, b)
	c := connect(t, addr)
	large := bson.D{
		{Key: "insert", Value: "c"},
		{
			Key:   "documents",
			Value: bson.A{bson.D{{Key: "_id", Value: 1}, {Key: "pad", Value: strings.Repeat("x", 1<<20)}}},
		},
	}
	if _, e := c.ask(large); e.Code != 292 {
		t.Errorf("%+v", e)
	}
	silent := rawMsg(t, large)
	binary.LittleEndian.PutUint32(silent[16:], 2) // moreToCome
	if _, err := c.Write(silent); err != nil {
		t.Fatal(err)
	}
	if _, e := c.ask(bson.D{{Key: "count", Value: "c"}}); e.OK != 1 {
		t.Errorf("%+v", e)
	}
}

// TestRules: the limits of the next message, depending on the state of the connection.
func TestRules(t *testing.T) {
	s := newTestServer(t, Options{Limits: hasty})
	half := &conversation{}
	for _, x := range []struct {
		c    *conn
		want peer.Rules
	}{
		{&conn{}, peer.Rules{Login: true, First: hasty.Login}},
		{&conn{met: true}, peer.Rules{Login: true, First: hasty.Idle}},
		{&conn{met: true, sasl: half}, peer.Rules{Login: true, First: hasty.Login}},
		{&conn{authed: true}, peer.Rules{First: hasty.Login}},
		{&conn{met: true, authed: true}, peer.Rules{}},
		{&conn{met: true, authed: true, sasl: half}, peer.Rules{}}, // a server without logins, whose client began one
	} {
		x.c.s = s
		if got := x.c.rules(); got != x.want {
			t.Errorf("met %v, logged in %v, within a login %v: %+v", x.c.met, x.c.authed, x.c.sasl != nil, got)
		}
	}
}
