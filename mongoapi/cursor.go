package mongoapi

import (
	"bytes"
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/agg"
	"github.com/orrerydb/orrery/mongoapi/bw"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
	"github.com/orrerydb/orrery/mongoapi/project"
)

const (
	cursorIdle = 10 * time.Minute
	// maxCursors bounds the open cursors; beyond it the one that was idle longest goes.
	maxCursors = 10000
	// maxBatch bounds the documents of one reply, in bytes; one document is always given.
	maxBatch = 16 << 20
	// firstBatch is how many documents a first batch has when the client doesn't say.
	firstBatch = 101
)

// cursor is a result that is read batch by batch. Between batches nobody uses it; inUse guards that.
type cursor struct {
	id    int64
	ns    string
	lsid  []byte
	user  string
	src   agg.Iter
	proj  *project.Projection
	env   *expr.Env
	held  value.Value // a document that didn't fit the last batch
	used  time.Time
	inUse bool
	gone  bool // killed while in use
	keep  bool // noCursorTimeout
}

type cursors struct {
	clk *clock.Clock
	mu  sync.Mutex
	m   map[int64]*cursor
}

func newCursors(clk *clock.Clock) *cursors { return &cursors{clk: clk, m: map[int64]*cursor{}} }

// add registers a cursor and gives it an id.
func (cs *cursors) add(c *cursor) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for c.id == 0 || cs.m[c.id] != nil {
		c.id = cs.clk.Int63()
	}
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

// remove forgets a cursor; the caller holds the lock.
func (cs *cursors) remove(c *cursor) {
	if c == nil {
		return
	}
	delete(cs.m, c.id)
	if c.inUse {
		c.gone = true
		return
	}
	c.src.Close()
}

func (cs *cursors) expire() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	now := cs.clk.Now()
	for _, c := range cs.m {
		if !c.inUse && !c.keep && now.Sub(c.used) > cursorIdle {
			cs.remove(c)
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

// open returns how many cursors there are.
func (cs *cursors) open() int {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return len(cs.m)
}

func notFound(id int64) error { return merr.New(merr.CursorNotFound, "cursor id %d not found", id) }

// take gives a cursor to a getMore.
func (cs *cursors) take(id int64, ns string, r *request) (*cursor, error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := cs.m[id]
	switch {
	case c == nil:
		return nil, notFound(id)
	case c.ns != ns:
		return nil, merr.New(merr.Unauthorized, "Requested getMore on namespace '%s', but cursor belongs to a different namespace %s", ns, c.ns)
	case c.user != r.c.user:
		return nil, merr.New(merr.Unauthorized, "cursor id %d was not created by the authenticated user", id)
	case c.inUse:
		return nil, merr.New(12051, "cursor id %d is already in use", id)
	}
	lsid := r.lsid.Bytes()
	switch {
	case c.lsid == nil && lsid != nil:
		return nil, merr.New(50736, "Cannot run getMore on cursor %d, which was not created in a session, in session %x", id, lsid)
	case c.lsid != nil && lsid == nil:
		return nil, merr.New(50737, "Cannot run getMore on cursor %d, which was created in session %x, without an lsid", id, c.lsid)
	case !bytes.Equal(c.lsid, lsid):
		return nil, merr.New(50738, "Cannot run getMore on cursor %d, which was created in session %x, in session %x", id, c.lsid, lsid)
	}
	c.inUse = true
	return c, nil
}

// give takes a cursor back; done forgets it.
func (cs *cursors) give(c *cursor, done bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c.inUse = false
	c.used = cs.clk.Now()
	if done || c.gone {
		delete(cs.m, c.id)
		c.src.Close()
	}
}

// fill appends up to n documents (n < 0: any number) as the elements of an array, within maxBatch. done says that there are
// no more.
func (c *cursor) fill(dst []byte, n int) (out []byte, done bool, err error) {
	start := len(dst)
	for i := 0; n < 0 || i < n; i++ {
		d := c.held
		c.held = value.Undef()
		if !d.IsDefined() {
			var ok bool
			if d, ok, err = c.src.Next(); !ok || err != nil {
				return dst, true, err
			}
		}
		if len(d.Bytes()) > maxDocument+16<<10 {
			return dst, true, merr.New(merr.BSONObjectTooLarge, "BSONObj size: %d is invalid. Size must be between 0 and %d", len(d.Bytes()), maxDocument)
		}
		if i > 0 && len(dst)-start+len(d.Bytes()) > maxBatch {
			c.held = d.Clone()
			return dst, false, nil
		}
		dst = append(dst, 0x03)
		dst = append(strconv.AppendInt(dst, int64(i), 10), 0)
		if c.proj == nil {
			dst = append(dst, d.Bytes()...)
		} else if dst, err = c.proj.Append(dst, c.env, d); err != nil {
			return dst, true, err
		}
	}
	if s, ok := c.src.(*source); ok && n != 0 {
		return dst, s.exhausted(), nil
	}
	return dst, false, nil
}

// first appends the reply of a command that opens a cursor: its first batch, and an id when there is more.
func (r *request) first(dst []byte, c *cursor, n int, single bool) ([]byte, error) {
	at, dst := bw.BeginObject(dst, "cursor")
	ba, dst := bw.BeginArray(dst, "firstBatch")
	dst, done, err := c.fill(dst, n)
	if err != nil {
		c.src.Close()
		return dst, err
	}
	dst = bw.End(dst, ba)
	if done || single {
		c.src.Close()
	} else {
		c.rest(r)
		r.s.cursors.add(c)
	}
	if s, ok := c.src.(*source); ok {
		r.charge += s.charge
	}
	dst = bw.Int64(dst, "id", c.id)
	dst = bw.String(dst, "ns", c.ns)
	return bw.End(dst, at), nil
}

// rest prepares a cursor for the time between batches: it outlives the request, whose bytes go.
func (c *cursor) rest(r *request) {
	c.lsid, c.user = append([]byte(nil), r.lsid.Bytes()...), r.c.user
	if len(c.lsid) == 0 {
		c.lsid = nil
	}
	if s, ok := c.src.(*source); ok {
		s.park()
		s.ctx = context.Background()
	}
}

func getMore(r *request, dst []byte) ([]byte, error) {
	id, ok := num.ToInt64(r.arg, false)
	if !ok || r.arg.Kind() != value.Int64 {
		return dst, merr.New(merr.TypeMismatch, "BSON field 'getMore.getMore' is the wrong type '%s', expected type 'long'", expr.TypeName(r.arg))
	}
	name := r.body.Get("collection")
	if name.Kind() != value.String {
		return dst, merr.New(merr.TypeMismatch, "BSON field 'getMore.collection' must be a string")
	}
	n := -1
	if b := r.body.Get("batchSize"); b.IsDefined() {
		size, ok := num.ToInt64(b, false)
		if !ok || size < 0 {
			return dst, merr.New(merr.BadValue, "BSON field 'batchSize' value must be >= 0")
		}
		if size > 0 {
			n = int(min(size, 1<<31-1))
		}
	}
	c, err := r.s.cursors.take(id, r.db+"."+name.Str(), r)
	if err != nil {
		return dst, err
	}
	src, _ := c.src.(*source)
	charged := 0.0
	if src != nil {
		src.ctx, charged = r.ctx, src.charge
	}
	at, dst := bw.BeginObject(dst, "cursor")
	ba, dst := bw.BeginArray(dst, "nextBatch")
	dst, done, err := c.fill(dst, n)
	if src != nil {
		src.park()
		src.ctx = context.Background()
		r.charge += src.charge - charged
	}
	r.s.cursors.give(c, done || err != nil)
	if err != nil {
		return dst, err
	}
	dst = bw.End(dst, ba)
	if done {
		id = 0
	}
	dst = bw.Int64(dst, "id", id)
	dst = bw.String(dst, "ns", c.ns)
	return bw.End(dst, at), nil
}

func killCursors(r *request, dst []byte) ([]byte, error) {
	name, err := r.collection()
	if err != nil {
		return dst, err
	}
	list := r.body.Get("cursors")
	if list.Kind() != value.Array {
		return dst, merr.New(merr.TypeMismatch, "BSON field 'killCursors.cursors' is the wrong type '%s', expected type 'array'", expr.TypeName(list))
	}
	var killed, missing []value.Value
	cs := r.s.cursors
	cs.mu.Lock()
	for _, v := range bw.Elements(list) {
		c := cs.m[v.Int()]
		if c == nil || c.user != r.c.user || c.ns != r.db+"."+name {
			missing = append(missing, v)
			continue
		}
		cs.remove(c)
		killed = append(killed, v)
	}
	cs.mu.Unlock()
	dst = bw.Value(dst, "cursorsKilled", bw.ArrayValue(killed))
	dst = bw.Value(dst, "cursorsNotFound", bw.ArrayValue(missing))
	dst = bw.Value(dst, "cursorsAlive", bw.ArrayValue(nil))
	return bw.Value(dst, "cursorsUnknown", bw.ArrayValue(nil)), nil
}

// list appends the reply of a cursor whose documents are at hand.
func (r *request) list(dst []byte, ns string, docs []value.Value) ([]byte, error) {
	n := firstBatch
	if b := r.body.Get("cursor").Get("batchSize"); b.IsNumber() {
		size, _ := num.ToInt64(b, true)
		n = int(max(0, min(size, 1<<31-1)))
	}
	for i, d := range docs {
		docs[i] = d.Clone()
	}
	return r.first(dst, &cursor{ns: ns, src: agg.NewSlice(docs)}, n, len(docs) <= n)
}
