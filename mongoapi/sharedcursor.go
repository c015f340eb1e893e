package mongoapi

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/agg"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// If several processes share the store, any of them may get the next getMore of a cursor. So a cursor that has more
// documents after its first batch has a record in the store, under its id: the command that has opened it, and its
// position. Each batch replaces the record by one with the next position, before the reply is sent. A process whose
// cursor in memory has the version of the stored record goes on with it. Otherwise it compiles the command again and
// goes on at the position.
//
// What the position is depends on the cursor:
//
//   - find, and a pipeline whose stages transform one document after another: the continuation of the query, and what
//     the stages have made of the last document and not yet returned.
//   - another pipeline, for example with $group or a $sort behind it: its result is computed completely with the first
//     batch, and is stored in parts of the record (storedresult.go). The position is a number in it. A result of more
//     than maxStored bytes isn't shared: other processes then answer that they don't find the cursor.
//   - a list, for example of collections: the same.
//   - a tailable cursor on a capped collection: the continuation of the query, and the id of the last document; on the
//     oplog: the time of the last entry.
//
// A tail that waits has the same position after each empty batch. Its record is written again only now and then, so
// that it isn't removed as one that nobody uses.
//
// Example: process A answers a find of 250 documents with the first 101 and cursor 7. B gets getMore 7. It doesn't have
// the cursor, reads the record, compiles the find, and goes on after document 101. The next getMore comes to A again,
// whose cursor is older than the record. It does the same.

// sharing is the part of a cursor that is about its record.
type sharing struct {
	record core.Record   // as this process has last written or read it; doesn't exist without a shared store
	docs   []value.Value // what the stages have returned beyond the batches; read before src
	here   bool          // other processes can't go on: the result is too large, or not stored yet
	wrote  time.Time     // when this process wrote the record last
}

// movableTail is a tail that other processes can go on with. The stream of a client that goes elsewhere is resumed by
// its driver.
type movableTail interface {
	tail
	// AppendPosition appends the position to the cursor's record.
	AppendPosition(b []byte) []byte
}

func cursorRecord(id int64) core.RecordName {
	return core.RecordName{Kind: core.CursorRecord, Name: string(binary.BigEndian.AppendUint64(nil, uint64(id)))}
}

// movable reports whether other processes can go on with a cursor.
func (c *cursor) movable() bool {
	_, can := c.tail.(movableTail)
	return c.tail == nil || can
}

// publish makes the record of a cursor that has returned its first batch.
func (r *request) publish(c *cursor) error {
	r.sign(c)
	if c.lead == nil && c.tail == nil {
		return r.publishResult(c)
	}
	if err := c.settle(); err != nil {
		return err
	}
	err := r.write(c)
	if status.Is(err, status.TooLarge) { // the command is
		c.share.here = true
		err = r.write(c)
	}
	return err
}

// write makes the record of a cursor, or replaces it, and adds parts to it.
func (r *request) write(c *cursor, parts ...[]byte) error {
	began, position := r.s.clk.Now(), c.position()
	if c.share.record.Exists() && len(parts) == 0 && bytes.Equal(position, c.share.record.Data) &&
		began.Sub(c.share.wrote) < c.patience()/8 {
		return nil
	}
	for {
		was := c.share.record
		for c.id == 0 {
			c.id = r.s.clk.Int63()
		}
		now, ok, err := r.s.eng.WriteRecord(r.ctx, cursorRecord(c.id), was, position, c.patience(), parts...)
		switch {
		case err != nil:
			return err
		case ok:
			c.share.record, c.share.wrote = now, began
			return nil
		case was.Exists():
			return r.overtaken(c)
		}
		c.id = 0 // another cursor has it
	}
}

// overtaken returns the error for a cursor whose record isn't what it was.
func (r *request) overtaken(c *cursor) error {
	is, err := r.s.eng.Record(r.ctx, cursorRecord(c.id))
	if err != nil {
		return err
	}
	if is.Exists() {
		return inUse(c.id)
	}
	return merr.New(merr.CursorKilled, "operation was interrupted because its cursor was killed")
}

// settle brings a cursor to a position that a record can hold: the stages return what they still have of the last
// document, and the query has a continuation.
func (c *cursor) settle() error {
	s := c.lead
	if s == nil || c.share.here {
		return nil
	}
	if c.src != agg.Iter(s) {
		s.paused = true
		defer func() { s.paused = false }()
		size := 0
		for {
			d, ok, err := c.src.Next()
			if err != nil {
				return failed(err)
			}
			if !ok {
				break
			}
			c.share.docs = append(c.share.docs, d.Clone())
			size += len(d.Bytes())
		}
		if size > freeReply {
			if err := c.mem.Grow(int64(size)); err != nil {
				return err
			}
		}
	}
	s.park()
	return nil
}

// position returns the content of the cursor's record.
func (c *cursor) position() []byte {
	at, b := bson.Begin(nil)
	b = bson.AppendString(b, "ns", c.ns)
	b = bson.AppendString(b, "user", c.user)
	if c.lsid != nil {
		b = bson.AppendBinary(b, "lsid", c.lsid)
	}
	b = c.api.append(b)
	b = bson.AppendBool(b, "keep", c.keep)
	b = bson.AppendBool(b, "here", c.share.here)
	if c.share.here {
		return bson.End(b, at)
	}
	if list, ok := c.src.(*stored); ok {
		b = bson.AppendInt64(b, "size", list.size)
		b = bson.AppendInt64(b, "next", list.at)
		return bson.End(b, at)
	}
	rest := c.share.docs
	if c.held.IsDefined() {
		rest = append([]value.Value{c.held}, rest...)
	}
	b = value.AppendElement(b, "docs", value.MakeArray(rest))
	if t, ok := c.tail.(movableTail); ok {
		b = bson.AppendDocument(b, "command", c.cmd)
		b = bson.AppendInt64(b, "now", c.env.NowMS)
		return bson.End(t.AppendPosition(b), at)
	}
	s := c.lead
	b = bson.AppendDocument(b, "command", c.cmd)
	b = bson.AppendInt64(b, "now", c.env.NowMS)
	rid := s.k.RID()
	b = bson.AppendBinary(b, "collection", rid[:])
	b = bson.AppendString(b, "after", s.q.Continuation)
	b = bson.AppendInt64(b, "skip", s.skip)
	b = bson.AppendInt64(b, "left", s.left)
	b = bson.AppendBool(b, "done", s.done)
	return bson.End(b, at)
}

// advance replaces the record of a cursor that has returned a batch, or removes it at the end.
func (r *request) advance(c *cursor, end bool) error {
	if !end {
		if err := c.settle(); err != nil {
			return err
		}
		return r.write(c)
	}
	ok, err := r.s.eng.DropRecord(r.ctx, cursorRecord(c.id), c.share.record)
	if err != nil || ok {
		return err
	}
	return r.overtaken(c)
}

// takeShared gives a cursor of a shared store to a getMore.
func (r *request) takeShared(id int64, ns string) (*cursor, error) {
	record, err := r.s.eng.Record(r.ctx, cursorRecord(id))
	if err != nil {
		return nil, err
	}
	c, err := r.take(id, ns)
	if err == nil && (!c.share.record.Exists() || c.share.record.Same(&record)) { // one without a record is only here
		return c, nil
	}
	if err == nil { // another process has gone on with it, or has removed it
		r.s.cursors.give(c, true)
	} else if merr.From(err).Code != merr.CursorNotFound {
		return nil, err
	}
	if !record.Exists() {
		return nil, notFound(id)
	}
	if c, err = r.revive(id, ns, record); err != nil {
		return nil, err
	}
	if !r.s.cursors.adopt(c, r) {
		c.close()
		return nil, inUse(id)
	}
	return c, nil
}

// adopt registers a cursor that another process has opened, and gives it to a getMore. It returns false if another
// getMore has it already.
func (cs *cursors) adopt(c *cursor, r *request) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.m[c.id] != nil {
		return false
	}
	cs.put(c)
	c.use(r)
	return true
}

// revive makes a cursor from its record.
func (r *request) revive(id int64, ns string, record core.Record) (*cursor, error) {
	at := value.ObjectOf(record.Data).Clone()
	own := &cursor{id: id, ns: at.Get("ns").Str(), user: at.Get("user").Str(), lsid: at.Get("lsid").Bytes(), txn: -1,
		api: apiIn(at)}
	if err := own.allows(r, ns); err != nil {
		return nil, err
	}
	if at.Get("here").Bool() {
		return nil, merr.New(merr.CursorNotFound, "cursor id %d not found: its result is too large for another "+
			"process than the one that has computed it", id)
	}
	var c *cursor
	var err error
	if cmd := at.Get("command"); cmd.IsDefined() {
		c, err = r.reopen(id, at, cmd)
	} else {
		c, err = r.relist(id, at)
	}
	if err != nil {
		return nil, err
	}
	c.id, c.ns, c.user, c.lsid, c.keep, c.txn = id, own.ns, own.user, own.lsid, at.Get("keep").Bool(), -1
	c.api = own.api
	if ms, _ := num.ToInt64(at.Get("command").Get("maxTimeMS"), true); ms > 0 && !c.awaits {
		c.left = timeLeft{limited: true, d: time.Duration(ms) * time.Millisecond}
	}
	c.mem = r.s.eng.Budget().Open("document")
	c.share.docs, c.share.record = value.Elements(at.Get("docs")), record
	if err := c.run.Hold(len(record.Data)); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// relist makes the cursor of a result that is stored.
func (r *request) relist(id int64, at value.Value) (*cursor, error) {
	size := at.Get("size")
	if !size.IsDefined() {
		return nil, notFound(id) // an earlier version has stored it
	}
	run := expr.NewRun(r.ctx, r.s.eng.Budget())
	return &cursor{src: &stored{eng: r.s.eng, id: id, run: run, mem: r.s.eng.Budget().Open("result"),
		size: size.Int(), at: at.Get("next").Int()}, run: run, env: &expr.Env{Run: run}}, nil
}

// reopen makes the cursor of a command at its position.
func (r *request) reopen(id int64, at, cmd value.Value) (c *cursor, err error) {
	again := &request{s: r.s, c: r.c, ctx: r.ctx, txn: -1, body: cmd}
	if _, _, err := again.readArguments(); err != nil {
		return nil, err
	}
	again.exprEnv().NowMS = at.Get("now").Int()
	defer func() {
		if err != nil {
			again.endRun()
		}
	}()
	name := again.arg.Str()
	switch again.name {
	case "find":
		if isOplog(again.db, name) {
			return again.reopenOplog(id, at)
		}
		k, err := again.open(again.db, name)
		if err != nil {
			return nil, err
		}
		if expr.Truthy(cmd.Get("tailable")) {
			return again.reopenTail(k, name, at)
		}
		if c, _, err = again.findCursor(k, name); err != nil {
			return nil, err
		}
		c.run = again.exprEnv().Run
	default:
		if c, _, err = again.aggregateCursor(name); err != nil {
			return nil, err
		}
	}
	s := c.lead
	if s == nil {
		c.src.Close()
		return nil, notFound(id) // the collection was dropped
	}
	if rid := s.k.RID(); string(rid[:]) != string(at.Get("collection").Bytes()) {
		c.src.Close()
		return nil, notFound(id) // and was created again
	}
	s.q.Continuation = at.Get("after").Str()
	s.token = s.q.Continuation
	s.skip, s.left, s.done = at.Get("skip").Int(), at.Get("left").Int(), at.Get("done").Bool()
	return c, nil
}

// maxKills is how often the removal of a cursor is tried while other processes read it.
const maxKills = 10

// killShared removes a cursor of this user and collection, wherever it is read. It returns false if there is none.
func (r *request) killShared(id int64, ns string) (bool, error) {
	if _, err := r.kill(id, ns); err != nil {
		return false, err
	}
	for range maxKills {
		record, err := r.s.eng.Record(r.ctx, cursorRecord(id))
		if err != nil {
			return false, err
		}
		if at := value.ObjectOf(record.Data); !record.Exists() || at.Get("user").Str() != r.c.user ||
			at.Get("ns").Str() != ns {
			return false, nil
		}
		if ok, err := r.s.eng.DropRecord(r.ctx, cursorRecord(id), record); ok || err != nil {
			return ok, err
		}
	}
	return false, inUse(id)
}

// sharedCursors calls f for the records of the cursors of sessions of this user.
func (r *request) sharedCursors(sessions map[string]bool,
	f func(core.RecordName, core.Record, value.Value) error) error {
	if !r.s.eng.Shared() {
		return nil
	}
	type found struct {
		name   core.RecordName
		record core.Record
	}
	var all []found
	err := r.s.eng.Records(r.ctx, core.CursorRecord, 8, "", func(n core.RecordName, c core.Record) error {
		at := value.ObjectOf(c.Data)
		if sessions[string(at.Get("lsid").Bytes())] && at.Get("user").Str() == r.c.user {
			all = append(all, found{n, c.Clone()})
		}
		return nil
	})
	for _, x := range all {
		if err == nil {
			err = f(x.name, x.record, value.ObjectOf(x.record.Data))
		}
	}
	return err
}

// refreshShared extends the cursors with noCursorTimeout of sessions.
func (r *request) refreshShared(sessions map[string]bool) error {
	return r.sharedCursors(sessions, func(n core.RecordName, c core.Record, at value.Value) error {
		if !at.Get("keep").Bool() {
			return nil
		}
		_, _, err := r.s.eng.WriteRecord(r.ctx, n, c, c.Data, cursorKept)
		return err // if it isn't what it was, it was read: that extends it too
	})
}

// endShared removes the cursors of sessions.
func (r *request) endShared(sessions map[string]bool) error {
	return r.sharedCursors(sessions, func(n core.RecordName, _ core.Record, at value.Value) error {
		_, err := r.killShared(int64(binary.BigEndian.Uint64([]byte(n.Name))), at.Get("ns").Str())
		return err
	})
}
