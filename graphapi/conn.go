package graphapi

import (
	"bytes"
	"context"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/ru"
	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/wire/message"
	"github.com/orrerydb/orrery/internal/admit"
)

// conn is one WebSocket connection. Its goroutine reads frames (which also answers pings) and never runs a traversal.
// Each request runs on a worker goroutine. A semaphore limits the running requests of a connection.
//
// Invariants:
//  1. Only the reading goroutine uses login, the map of sessions, and buf.
//  2. Each request gets exactly one final message (a message other than 206), unless the connection ends before.
//  3. wmu is held while a message is written, so messages of different requests never mix.
//
// Example: a client sends requests A and B without a session. A runs on a worker; the reading goroutine reads B, which
// runs on another worker. B finishes first and its 200 is sent before A's. In a session, B's worker waits for A's
// channel after, so A's reply is first.
type conn struct {
	srv    *Server
	ws     *websocket.Conn
	out    *sender         // below ws
	client string          // its address, for the observer
	bare   bool            // see readsBareElements
	ctx    context.Context // ends with the connection
	cancel context.CancelFunc

	buf      []byte // the frame being read; when it is full it grows by a quarter
	login    login
	sessions map[string]*session

	slots        chan struct{} // one token per running request
	pending      atomic.Int32
	pendingBytes atomic.Int64
	running      sync.WaitGroup // workers
	jobs         chan job       // unbuffered: only an idle worker receives
	resting      atomic.Bool
	draining     atomic.Bool

	wmu sync.Mutex
	in  *budget.Account // for the frame being read

	// Counters for the server's sweep, so that no message needs a timer. reads counts messages, pings and pongs. writes
	// is odd while a message is written. got counts received bytes of frames. reading is true while a frame is
	// incomplete, challenged while a login is expected. The seen fields are the values at the last sweep, and only the
	// sweep uses them.
	reads, writes, got             atomic.Uint64
	reading, challenged            atomic.Bool
	seenReads, seenWrites, seenGot uint64
	seenPieces                     uint64
	// Numbers of consecutive sweeps: without a read; within the same write; without a further byte of a frame; without
	// the login.
	idle, stuck, stalled, anonymous int
}

func newConn(s *Server, ws *websocket.Conn, out *sender) *conn {
	ctx, cancel := context.WithCancel(context.Background())
	c := &conn{srv: s, ws: ws, out: out, ctx: ctx, cancel: cancel,
		slots: make(chan struct{}, maxRunning), jobs: make(chan job)}
	c.login.done = !s.o.Auth
	if s.o.Observe != nil {
		c.client = ws.RemoteAddr().String()
	}
	c.in = s.o.Budget.Open("request")
	ws.SetReadLimit(maxFrame + 256) // the mime header doesn't count as part of the request
	ping := ws.PingHandler()
	ws.SetPingHandler(func(data string) error {
		c.reads.Add(1)
		return ping(data)
	})
	ws.SetPongHandler(func(string) error { c.reads.Add(1); return nil })
	return c
}

// serve reads until the connection ends.
func (c *conn) serve() {
	defer func() {
		c.cancel()
		c.running.Wait()
		c.ws.Close()
	}()
	for {
		typ, body, tooMuch, err := c.read()
		if err != nil {
			return
		}
		c.reads.Add(1)
		c.frame(typ == websocket.TextMessage, body, tooMuch)
		if cap(c.buf) > keepBuffer {
			c.buf = nil
		}
		c.in.Close()
	}
}

// read reads one message into the connection's buffer. If the budget has no memory for the message, it is read to its
// end, only its beginning is kept, and tooMuch is the reason.
func (c *conn) read() (typ int, body []byte, tooMuch, err error) {
	typ, r, err := c.ws.NextReader()
	if err != nil {
		return 0, nil, nil, err
	}
	c.reading.Store(true)
	defer c.reading.Store(false)
	c.buf = c.buf[:0]
	limit := maxFrame + 256
	if !c.login.done {
		limit = maxLoginBytes
	}
	charged := 0
	var beginning []byte
	for {
		c.buf = slices.Grow(c.buf, bytes.MinRead)
		n, err := r.Read(c.buf[len(c.buf):cap(c.buf)])
		c.got.Add(uint64(n))
		c.buf = c.buf[:len(c.buf)+n]
		switch {
		case err == io.EOF && tooMuch != nil:
			return typ, beginning, tooMuch, nil
		case err == io.EOF:
			return typ, c.buf, nil, nil
		case err != nil:
			return 0, nil, nil, err
		case tooMuch != nil:
			c.buf = c.buf[:0]
			continue
		case len(c.buf) > limit:
			tooMuch = fail(kindMalformed, "a request before the login may have %d bytes", maxLoginBytes)
		case cap(c.buf) > freeBytes && cap(c.buf) > charged:
			tooMuch = c.in.Grow(int64(cap(c.buf) - charged))
			charged = cap(c.buf)
		}
		if tooMuch != nil {
			beginning = bytes.Clone(c.buf[:min(len(c.buf), mimeBytes)])
			c.buf = nil
			c.in.Close()
		}
	}
}

// mimeBytes is the largest length of the mime type in a frame, its length byte included.
const mimeBytes = 256

// frame processes one frame. A frame that can't be read or is too large gets an error reply, and the connection stays
// open.
func (c *conn) frame(text bool, body []byte, tooMuch error) {
	mime := []byte(textMime)
	size := len(body)
	if !text {
		var ok bool
		if mime, body, ok = splitFrame(body); !ok {
			r := &reply{c: c, codec: serializers[defaultMime].codec, noID: true}
			r.fail(fail(kindMalformed, "the frame is shorter than its mime type"))
			return
		}
	}
	ser := lookup(mime)
	r := &reply{c: c, codec: ser.answer(c.login.service), text: text, service: c.login.service,
		started: c.srv.o.Clock.Now()}
	if tooMuch != nil {
		r.noID = true
		r.fail(failureOf(tooMuch))
		return
	}
	if ser.refuse != "" {
		r.noID = true
		r.fail(fail(kindMalformed, "%s is not supported; use GraphBinary or GraphSON", ser.refuse))
		return
	}
	req, err := ser.codec.ReadRequest(body)
	if err != nil {
		if fe, ok := err.(*message.FormatError); ok {
			r.id, r.noID = fe.ID, !fe.HasID
		}
		r.fail(failureOf(err))
		return
	}
	r.id = req.ID
	c.admit(&work{conn: c, req: req, reply: r, ser: ser, size: size})
}

// reply writes the messages for one request.
type reply struct {
	c       *conn
	codec   message.Codec
	id      gvalue.UUID
	noID    bool
	text    bool // send text frames
	service bool // in the service's flavour
	// bytecode says that the request is bytecode: Gremlin Server answers its failures with another code.
	bytecode bool
	started  time.Time
	charge   float64 // of the request so far
	seen     *observed
	place    *admit.Place // held during the evaluation
	told     float64      // the part of charge in earlier messages
	toldMs   float64      // the part of the time in earlier messages
}

// fail replies with an error.
func (r *reply) fail(f *failure) {
	row := &answers[f.kind]
	activity := r.c.srv.o.Clock.UUID()
	resp := message.Response{ID: r.id, NoID: r.noID, Code: row.code, Message: f.text(), NullData: true}
	if r.bytecode && f.kind == kindRuntime {
		resp.Code = codeServerError
	}
	if r.service {
		resp.Code = row.serviceCode
		if f.kind != kindBadLogin && f.kind != kindOwnerNotFound {
			resp.Message = f.serviceText(activity, r.id)
		}
	}
	resp.Attributes = r.attributes(row.msStatus, activity)
	if f.sub != 0 {
		resp.Attributes = append(resp.Attributes, message.Attribute{Key: "x-ms-substatus-code", Value: int32(f.sub)})
	}
	if f.retryAfter > 0 {
		resp.Attributes = append(resp.Attributes,
			message.Attribute{Key: "x-ms-retry-after-ms", Value: timeSpan(f.retryAfter)})
	}
	if row.serviceType == "DocumentClientException" && r.service {
		resp.Attributes = append(resp.Attributes,
			message.Attribute{Key: "x-ms-source", Value: "Microsoft.Azure.Documents.Client"})
	}
	if !r.service && row.exception != "" {
		resp.Attributes = append(resp.Attributes, message.Attribute{Key: "exceptions", Value: []any{row.exception}},
			message.Attribute{Key: "stackTrace", Value: row.exception + ": " + f.text()})
	}
	if f.failMsg != "" {
		resp.Attributes = append(resp.Attributes, message.Attribute{Key: "failStepMessage", Value: f.failMsg})
	}
	r.failed(f.kind)
	r.send(&resp, nil, 0)
}

// attributes returns the attributes of every message: the cost of this chunk and of the request so far.
func (r *reply) attributes(msStatus int32, activity gvalue.UUID) []message.Attribute {
	now := r.c.srv.o.Clock.Now()
	ms := float64(now.Sub(r.started).Nanoseconds()/100) / 1e4
	if r.started.IsZero() {
		ms = 0
	}
	as := make([]message.Attribute, 0, 10)
	as = append(as,
		message.Attribute{Key: "x-ms-status-code", Value: msStatus},
		message.Attribute{Key: "x-ms-request-charge", Value: ru.Sum(r.charge - r.told)},
		message.Attribute{Key: "x-ms-total-request-charge", Value: ru.Sum(r.charge)},
		message.Attribute{Key: "x-ms-server-time-ms", Value: ms - r.toldMs},
		message.Attribute{Key: "x-ms-total-server-time-ms", Value: ms},
		message.Attribute{Key: "x-ms-activity-id", Value: activity.String()})
	r.told, r.toldMs = r.charge, ms
	return as
}

var writeBuffers = sync.Pool{New: func() any { b := make([]byte, 0, 4096); return &b }}

// send writes one message. A failed write ends the connection.
func (r *reply) send(resp *message.Response, items []byte, n int) error {
	p := writeBuffers.Get().(*[]byte)
	b := r.codec.AppendResponse((*p)[:0], resp, items, n)
	typ := websocket.BinaryMessage
	if r.text {
		typ = websocket.TextMessage
	}
	c, gone := r.c, r.gone()
	c.wmu.Lock()
	c.writes.Add(1)
	err := c.ws.WriteMessage(typ, b)
	c.writes.Add(1)
	c.wmu.Unlock()
	if cap(b) <= maxChunkBytes+keepBuffer {
		*p = b
		writeBuffers.Put(p)
	}
	if err != nil {
		c.cancel()
		c.ws.Close()
	}
	switch {
	case resp.Code == message.PartialContent || resp.Code == message.Authenticate:
	case gone || err != nil && !c.draining.Load():
		r.ended(0)
	default:
		r.ended(resp.Code)
	}
	return err
}

// start runs a request on a worker, after the earlier ones of its session. It refuses the request if the connection has
// too many. It must be called on the reading goroutine.
func (c *conn) start(w *work, run func()) {
	if c.draining.Load() {
		w.reply.fail(&failure{kind: kindUnavailable})
		return
	}
	if n, size := c.pending.Add(1), c.pendingBytes.Add(int64(w.size)); n > maxPending || size > maxPendingBytes {
		c.done(w)
		w.reply.fail(&failure{kind: kindBusy})
		return
	}
	if w.size > freeBytes {
		w.held = c.srv.o.Budget.Open("request")
		if err := w.held.Grow(int64(w.size)); err != nil {
			c.done(w)
			w.reply.fail(failureOf(err))
			return
		}
	}
	j := job{w: w, run: run}
	if w.session != nil {
		j.before, j.after = w.session.last, make(chan struct{})
		w.session.last = j.after
	}
	select {
	case c.jobs <- j: // an idle worker takes it
	default:
		c.running.Add(1)
		go c.worker(j)
	}
}

// job is an accepted request.
type job struct {
	w      *work
	run    func()
	before chan struct{} // closed when the previous request of the session is finished; nil: none
	after  chan struct{} // to be closed when this one is finished; nil: no session
}

// worker runs j and then waits for further jobs, unless another worker is already waiting. Reuse saves time because the
// worker's stack has already grown.
func (c *conn) worker(j job) {
	defer c.running.Done()
	for {
		c.do(j)
		j = job{} // so that an idle worker doesn't keep a request alive
		if !c.resting.CompareAndSwap(false, true) {
			return
		}
		select {
		case j = <-c.jobs:
			c.resting.Store(false)
		case <-c.ctx.Done():
			return
		}
	}
}

func (c *conn) do(j job) {
	defer c.done(j.w)
	defer j.w.reply.ended(0) // a second call has no effect; if nothing was answered, the client has disconnected
	if j.after != nil {
		defer close(j.after)
	}
	if j.before != nil { // before taking a place, because the awaited request may need it
		<-j.before
	}
	select {
	case c.slots <- struct{}{}:
	case <-c.ctx.Done():
		return
	}
	defer func() { <-c.slots }()
	j.run()
}

func (c *conn) done(w *work) {
	c.pending.Add(-1)
	c.pendingBytes.Add(-int64(w.size))
	w.held.Close()
}

// drain waits for the running requests and closes the connection.
func (c *conn) drain() {
	c.draining.Store(true)
	for c.pending.Load() > 0 && c.ctx.Err() == nil {
		t := time.NewTimer(time.Millisecond)
		<-t.C
	}
	c.close(websocket.CloseGoingAway, "the server is closing")
}

// close ends the connection with a close frame.
func (c *conn) close(code int, text string) {
	// A shutdown waits for this, so the time is short: a client that doesn't read may get no reason.
	_ = c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, text),
		deadlines.Now().Add(closeWait))
	c.cancel()
	c.ws.Close()
}

// sweep closes the connection if the client sent nothing for idleTimeout, or nothing of one write was sent for
// writeTimeout, or an incomplete frame got no byte for stallTimeout, or a requested login didn't arrive for
// loginTimeout. It is called every sweepInterval.
func (c *conn) sweep() {
	reads, writes, got := c.reads.Load(), c.writes.Load(), c.got.Load()
	if c.idle++; reads != c.seenReads || c.pending.Load() > 0 {
		c.idle = 0
	}
	if c.stuck++; writes != c.seenWrites || writes%2 == 0 || c.out.pieces.Load() != c.seenPieces {
		c.stuck = 0
	}
	c.seenPieces = c.out.pieces.Load()
	if c.stalled++; got != c.seenGot || !c.reading.Load() {
		c.stalled = 0
	}
	if c.anonymous++; !c.challenged.Load() {
		c.anonymous = 0
	}
	c.seenReads, c.seenWrites, c.seenGot = reads, writes, got
	if c.idle > int(idleTimeout/sweepInterval) || c.stuck > int(writeTimeout/sweepInterval) ||
		c.stalled > int(stallTimeout/sweepInterval) || c.anonymous > int(loginTimeout/sweepInterval) {
		c.cancel()
		c.ws.Close()
	}
}
