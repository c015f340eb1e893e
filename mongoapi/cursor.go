package mongoapi

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/agg"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
	"github.com/orrerydb/orrery/mongoapi/project"
)

const (
	cursorIdle = 10 * time.Minute
	// cursorRest is the time after which idle cursors are parked: they release what they hold in the store, and later
	// resume at their position.
	cursorRest = 5 * time.Second
	// cursorShort is the longest idle time of a cursor that holds memory while memory is short.
	cursorShort = 30 * time.Second
	// cursorKept is the longest idle time of a cursor with noCursorTimeout: that of its session, which refreshSessions
	// extends.
	cursorKept = sessionMinutes * time.Minute
	// maxCursors limits the open cursors. Beyond it the one that is idle the longest is closed.
	maxCursors = 10000
	// maxBatch limits the documents of one reply in bytes. At least one document is always returned.
	maxBatch = 16 << 20
	// firstBatch is the default number of documents in a first batch.
	firstBatch = 101
)

// cursor is a result that is read in batches. At most one command uses it at a time, guarded by inUse.
//
// Example: find returns 101 documents and the cursor id 7. The cursor rests: it keeps a continuation and, for a
// pipeline, its state. getMore 7 takes the cursor, reads from the continuation, and gives it back. After 10 idle
// minutes the sweep removes it.
type cursor struct {
	id    int64
	ns    string
	run   *expr.Run
	lsid  []byte
	user  string
	src   agg.Iter
	proj  *project.Projection
	env   *expr.Env
	live  func() []*source // the sources that it reads, besides src
	held  value.Value      // a document that didn't fit into the last batch
	mem   *budget.Account  // of held
	share sharing          // what other processes need
	used  time.Time        // the time of the last read, or with keep of the session's last refresh
	inUse bool
	by    *conn  // the connection that uses it,
	seq   uint32 // and the number of the command
	gone  bool   // killed during its use
	keep  bool   // noCursorTimeout
	left  timeLeft
	txn   int64 // the transaction that has opened it; -1: none
	api   apiParams

	cmd    []byte // the command that has opened it; nil: src has all of its documents
	tail   tail   // what follows when there are no more documents; nil: the cursor ends
	awaits bool   // a getMore without documents waits for some

	lead *source // its documents, or what becomes of each alone, are those of the cursor; nil: there is none
}

type cursors struct {
	clk *clock.Clock
	mu  sync.Mutex
	m   map[int64]*cursor

	opened, timedOut int64 // since the server began
}

func newCursors(clk *clock.Clock) *cursors { return &cursors{clk: clk, m: map[int64]*cursor{}} }

// add registers a cursor and assigns its id.
func (cs *cursors) add(c *cursor) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for c.id == 0 || cs.m[c.id] != nil {
		c.id = cs.clk.Int63()
	}
	cs.put(c)
	cs.opened++
}

// put registers a cursor under its id. If there are too many, the one that is idle the longest is removed. The caller
// holds the lock.
func (cs *cursors) put(c *cursor) {
	c.used = cs.clk.Now()
	if len(cs.m) >= maxCursors {
		var oldest *cursor
		for _, o := range cs.m {
			if !o.inUse && (oldest == nil || o.used.Before(oldest.used)) {
				oldest = o
			}
		}
		cs.remove(oldest)
	}
	cs.m[c.id] = c
}

// errCursorKilled is the cause with which a command on a killed cursor ends.
var errCursorKilled = errors.New("mongoapi: the cursor was killed")

// remove removes a cursor and ends the command that reads it. The caller holds the lock.
func (cs *cursors) remove(c *cursor) {
	if c == nil {
		return
	}
	delete(cs.m, c.id)
	if c.inUse {
		c.gone = true
		c.by.p.Kill(c.seq, errCursorKilled)
		return
	}
	c.close()
}

func (c *cursor) close() {
	c.src.Close()
	c.run.Close()
	c.mem.Close()
}

// sources returns the sources of the cursor that hold something in the store.
func (c *cursor) sources() []*source {
	if s, ok := c.src.(*source); ok {
		return []*source{s}
	}
	if c.live != nil {
		return c.live()
	}
	return nil
}

// holds reports whether an idle cursor may hold memory: computed results of its pipeline, or a long command.
func (c *cursor) holds() bool {
	s, ok := c.src.(*stored)
	return c.live != nil || c.run.Held()+c.mem.Used() > 0 || ok && s.mem.Used() > 0
}

// patience returns how long the cursor may be idle.
func (c *cursor) patience() time.Duration {
	if c.keep {
		return cursorKept
	}
	return cursorIdle
}

// expire removes cursors that were idle for too long and parks others. While memory is short for running commands, idle
// cursors that hold memory are removed earlier.
func (cs *cursors) expire(b *budget.Budget) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	now := cs.clk.Now()
	short := scarce(b)
	for _, c := range cs.m {
		switch idle := now.Sub(c.used); {
		case c.inUse:
		case idle > c.patience(), short && idle > cursorShort && c.holds():
			cs.remove(c)
			cs.timedOut++
		case idle >= cursorRest:
			for _, s := range c.sources() {
				s.park()
			}
			if s, ok := c.src.(*stored); ok {
				s.park()
			}
		}
	}
}

// refresh treats the cursors with noCursorTimeout of these sessions as if they were read now.
func (cs *cursors) refresh(user string, sessions map[string]bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, c := range cs.m {
		if c.keep && c.lsid != nil && c.user == user && sessions[string(c.lsid)] {
			c.used = cs.clk.Now()
		}
	}
}

func (cs *cursors) closeAll() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, c := range cs.m {
		cs.remove(c)
	}
}

func notFound(id int64) error { return merr.New(merr.CursorNotFound, "cursor id %d not found", id) }

// take gives a cursor to a getMore.
func (cs *cursors) take(id int64, ns string, r *request) (*cursor, error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := cs.m[id]
	if c == nil {
		return nil, notFound(id)
	}
	if err := c.allows(r, ns); err != nil {
		return nil, err
	}
	c.use(r)
	return c, nil
}

// use marks a cursor as used by a command. The caller holds the lock.
func (c *cursor) use(r *request) {
	c.inUse, c.by = true, r.c
	c.seq, _ = r.c.p.Running()
}

func inUse(id int64) error { return merr.New(12051, "cursor id %d is already in use", id) }

// allows refuses a getMore that must not read a cursor. The caller holds the lock.
func (c *cursor) allows(r *request, ns string) error {
	id, lsid := c.id, r.lsid.Bytes()
	switch {
	case c.ns != ns:
		return merr.New(merr.Unauthorized, "Requested getMore on namespace '%s', but cursor belongs to a "+
			"different namespace %s", ns, c.ns)
	case c.user != r.c.user:
		return merr.New(merr.Unauthorized, "cursor id %d was not created by the authenticated user", id)
	case c.inUse:
		return inUse(id)
	case c.lsid == nil && lsid != nil:
		return merr.New(
			50736, "Cannot run getMore on cursor %d, which was not created in a session, in session %x", id, lsid)
	case c.lsid != nil && lsid == nil:
		return merr.New(50737, "Cannot run getMore on cursor %d, which was created in session %x, without an lsid",
			id, c.lsid)
	case !bytes.Equal(c.lsid, lsid):
		return merr.New(50738, "Cannot run getMore on cursor %d, which was created in session %x, in session %x",
			id, c.lsid, lsid)
	}
	if err := r.sameAPI(c.api, "cursor-creating command"); err != nil {
		return err
	}
	return c.allowsIn(r)
}

// give returns a cursor after its use. With done it is removed.
func (cs *cursors) give(c *cursor, done bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c.inUse, c.by = false, nil
	c.used = cs.clk.Now()
	if done || c.gone {
		delete(cs.m, c.id)
		c.close()
	}
}

// fill appends up to n documents (n < 0: no limit) as the elements of an array, within maxBatch and the available
// memory. done means that there are no more documents. whole is set if there will be no other batch.
func (c *cursor) fill(r *request, dst []byte, n int, whole bool) (out []byte, done bool, err error) {
	start, most := len(dst), 0
	src, _ := c.src.(*source)
	if s, ok := c.src.(*stored); ok {
		s.begin(n)
	}
	for i := 0; n < 0 || i < n; i++ {
		marked := i > 0 && src != nil && len(c.share.docs) == 0 &&
			(len(dst)-start+2*most > maxBatch || r.c.scant(len(dst)+2*most))
		if marked { // the next document may not fit: record the position
			src.rest()
		}
		d, ok, err := c.next()
		if !ok || err != nil {
			return dst, true, err
		}
		size := len(d.Bytes())
		if size > maxDocument+16<<10 {
			return dst, true, merr.New(merr.BSONObjectTooLarge,
				"BSONObj size: %d is invalid. Size must be between 0 and %d", size, maxDocument)
		}
		most = max(most, size)
		if i > 0 && len(dst)-start+size > maxBatch {
			return dst, false, c.back(d, marked)
		}
		if err := c.room(r, len(dst)+size, i == 0); err != nil {
			if i == 0 || whole || r.ctx.Err() != nil {
				return dst, true, err
			}
			return dst, false, c.back(d, marked) // a short batch; the rest follows when there is memory
		}
		dst = bson.AppendIndexHead(dst, bson.TypeDocument, i)
		r.c.did.returned++
		if c.proj == nil {
			dst = append(dst, d.Bytes()...)
		} else if dst, err = c.proj.Append(dst, c.env, d); err != nil {
			return dst, true, err
		}
	}
	return dst, c.exhausted(n), nil
}

// tailed reports whether a cursor has ended. end says that it has no more documents now: that ends it, unless it has a
// tail.
func (c *cursor) tailed(end bool) bool {
	if c.tail == nil {
		return end
	}
	return end && c.tail.Over() && !c.held.IsDefined()
}

// exhausted reports whether there are no documents after a batch of n.
func (c *cursor) exhausted(n int) bool {
	if len(c.share.docs) > 0 {
		return false
	}
	switch src := c.src.(type) {
	case *source:
		return n != 0 && src.exhausted()
	case *agg.Slice:
		return src.Empty() && !c.held.IsDefined()
	case *stored:
		return src.empty() && !c.held.IsDefined()
	}
	return false
}

// room reserves memory for a reply of n bytes. If necessary it first releases the memory of the cursor's own sorts, so
// that the reply can be sent.
func (c *cursor) room(r *request, n int, wait bool) error {
	err := r.c.room(r.ctx, n, false)
	if !status.Is(err, status.TooManyRequests) {
		return err
	}
	for _, s := range c.sources() {
		s.spill()
	}
	return r.c.room(r.ctx, n, wait)
}

// next returns the document that was held back, otherwise the next one.
func (c *cursor) next() (value.Value, bool, error) {
	docs := c.share.docs
	d := c.held
	switch {
	case d.IsDefined():
		c.held = value.Undef()
	case len(docs) > 0:
		d, c.share.docs = docs[0], docs[1:]
	default:
		return c.src.Next()
	}
	if len(c.share.docs) == 0 {
		c.mem.Close()
	}
	return d, true, nil
}

// back keeps a document for the next batch. If the position before it was recorded (marked), the document isn't kept
// but read again, so a resting cursor holds no memory.
func (c *cursor) back(d value.Value, marked bool) error {
	if marked {
		c.src.(*source).unread()
		return nil
	}
	if s, ok := c.src.(*stored); ok && s.unread() {
		return nil
	}
	if n := len(d.Bytes()); n > freeReply { // a small document must not cost the client its cursor
		if err := c.mem.Grow(int64(n)); err != nil {
			return err
		}
	}
	c.held = d.Clone()
	return nil
}

// first appends the reply of a command that opens a cursor: the first batch, and an id if there are more documents.
func (r *request) first(dst []byte, c *cursor, n int, single bool) ([]byte, error) {
	kept := false
	defer func() {
		if !kept {
			c.close()
		}
	}()
	if c.run == nil {
		c.run = r.exprEnv().Run
	}
	c.mem = r.s.eng.Budget().Open("document")
	at, dst := bson.BeginObject(dst, "cursor")
	ba, dst := bson.BeginArray(dst, "firstBatch")
	dst, done, err := c.fill(r, dst, n, single)
	if err != nil {
		return dst, err
	}
	dst = bson.End(dst, ba)
	dst = c.appendToken(dst, done)
	done = c.tailed(done)
	keep := !done && !single
	if keep && r.shares() && c.movable() {
		if err := r.publish(c); err != nil {
			return dst, err
		}
	} else if s, ok := c.src.(*agg.Slice); ok && keep {
		if err := c.run.Hold(s.Size()); err != nil {
			return dst, err
		}
	}
	if keep {
		c.rest()
	}
	if s, ok := c.src.(*source); ok {
		s.release()
		r.charge += s.charge
	}
	if keep {
		r.c.did.read(c.run.TakeRead())
		r.leave(c)
		r.keep(c)
		kept = true
	}
	dst = bson.AppendInt64(dst, "id", c.id)
	dst = bson.AppendString(dst, "ns", c.ns)
	return bson.End(r.appendAt(dst), at), nil
}

// keep registers a cursor with more documents. From then on the request must not use the cursor or its Run: another
// connection may end the session and close it.
func (r *request) keep(c *cursor) {
	r.sign(c)
	r.env = nil
	r.s.cursors.add(c)
	r.owns(c)
}

// sign records in a cursor whose it is.
func (r *request) sign(c *cursor) {
	if lsid := r.lsid.Bytes(); len(lsid) > 0 {
		c.lsid = bytes.Clone(lsid)
	}
	c.user, c.txn, c.api = r.c.user, -1, r.api
	if r.multi != nil {
		c.txn = r.txn
	}
}

// bodySize is the approximate number of bytes that a command needs for each byte of its body, without filters: the body
// itself, and the expressions and projections compiled from it.
const bodySize = 4

// own copies the command's body, which a cursor needs after the end of the request. The request no longer refers to the
// message, because a pipeline keeps the request.
func (r *request) own() error {
	if err := r.exprEnv().Run.Hold(bodySize * len(r.body.Bytes())); err != nil {
		return err
	}
	r.body, r.seqs = r.body.Clone(), nil
	if it := r.body.Iter(); it.Next() { // on a view it isn't the command that the client has sent
		r.arg = it.Value()
	}
	r.lsid = r.body.Get("lsid").Get("id")
	return nil
}

// rest prepares a cursor for the time between batches, when its request has ended. A query releases the store
// immediately. A pipeline may have partial results that it would have to compute again, so the sweep parks it later.
func (c *cursor) rest() {
	if s, ok := c.src.(*source); ok {
		s.park()
	} else {
		for _, s := range c.sources() {
			s.rest()
		}
	}
	if c.tail != nil {
		c.tail.Rest()
	}
	c.run.Under(context.Background())
}

// appendToken appends the position after a batch, if the cursor has one. end says that there was no document behind the
// batch.
func (c *cursor) appendToken(dst []byte, end bool) []byte {
	if c.tail == nil {
		return dst
	}
	if t := c.tail.TokenAfter(end && !c.held.IsDefined()); t.IsDefined() {
		dst = value.AppendElement(dst, "postBatchResumeToken", t)
	}
	return dst
}

// list appends the reply of a cursor whose documents are all known.
func (r *request) list(dst []byte, ns string, docs []value.Value) ([]byte, error) {
	n := firstBatch
	if b := r.body.Get("cursor").Get("batchSize"); b.IsNumber() {
		size, _ := num.ToInt64(b, true)
		n = int(max(0, min(size, 1<<31-1)))
	}
	for i, d := range docs {
		docs[i] = d.Clone()
	}
	return r.first(dst, &cursor{ns: ns, src: agg.NewSlice(docs)}, n, false)
}
