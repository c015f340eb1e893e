package mongoapi

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/core/yield"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/failpoint"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
	"github.com/orrerydb/orrery/mongoapi/streams"
)

// awaitTime is the time that a getMore waits for documents if it doesn't say for how long.
const awaitTime = time.Second

// awaited fills a batch that is empty so far, when there are documents or the time is over.
func (r *request) awaited(c *cursor, dst []byte, n int) (out []byte, end bool, err error) {
	wait := awaitTime
	if r.timeGiven {
		wait = time.Duration(r.maxTimeMS) * time.Millisecond
	}
	if most := r.s.o.MaxTime; most > 0 {
		wait = min(wait, most/2)
	}
	for empty := len(dst); ; {
		var here, ended bool
		began := r.s.clk.Now()
		_ = yield.While(r.ctx, func() error {
			r.c.waits(1)
			wait, here, ended = r.park(wait, c.tail.Notify)
			r.c.waits(-1)
			return nil
		})
		r.rested(r.s.clk.Now().Sub(began))
		if err := r.ctx.Err(); err != nil || !here {
			return dst, false, cmp.Or(err, context.Canceled)
		}
		if ended {
			return dst, false, notFound(c.id)
		}
		if dst, end, err = c.fill(r, dst, n, false); err != nil || len(dst) > empty || c.tailed(end) || wait <= 0 {
			return dst, end, err
		}
	}
}

// nextBatch fills a batch. If the cursor awaits documents and there are none, it waits for them. end says that there
// was no document behind the batch.
func (r *request) nextBatch(c *cursor, dst []byte, n int) (out []byte, end bool, err error) {
	empty := len(dst)
	dst, end, err = c.fill(r, dst, n, false)
	if c.awaits && err == nil && len(dst) == empty && !c.tailed(end) {
		return r.awaited(c, dst, n)
	}
	return dst, end, err
}

// rested leaves a time out of that which the command takes, as it is logged and counted: its client has asked to wait.
func (r *request) rested(d time.Duration) {
	r.start, r.c.seen.began = r.start.Add(d), r.c.seen.began.Add(d)
}

func getMore(r *request, dst []byte) ([]byte, error) {
	id, name, n, err := r.readGetMore()
	if err != nil {
		return dst, err
	}
	take := r.take
	if r.shares() {
		take = r.takeShared
	}
	c, err := take(id, r.db+"."+name)
	if err != nil {
		return dst, err
	}
	if _, r.resumable = c.tail.(*streams.Stream); len(c.cmd) > 0 && r.s.profiles.on.Load() > 0 {
		r.prof = &profiling{origin: c.cmd}
	}
	if r.timeGiven && !c.awaits {
		r.s.cursors.give(c, false)
		return dst, merr.New(merr.BadValue, "cannot set maxTimeMS on getMore command for a non-awaitData cursor")
	}
	done := true // unless the read succeeds
	defer func() { r.s.cursors.give(c, done) }()
	if err := r.failAt(failpoint.GetMore); err != nil {
		return dst, err
	}
	src, _ := c.src.(*source)
	charged := 0.0
	if src != nil {
		charged = src.charge
	}
	spent, err := r.limitTime(c)
	if err != nil {
		return dst, err
	}
	defer spent()
	c.run.Under(r.ctx)
	at, dst := bson.BeginObject(dst, "cursor")
	ba, dst := bson.BeginArray(dst, "nextBatch")
	dst, last, err := r.nextBatch(c, dst, n)
	end := last
	if err == nil {
		end = c.tailed(last)
	}
	tryAgain := src != nil && throttled(err) // nothing was read: the cursor stays
	if r.shares() && c.share.record.Exists() && !tryAgain {
		if aerr := r.advance(c, end || err != nil); err == nil {
			err = aerr
		}
	}
	if src != nil && (end || err != nil && !tryAgain) {
		src.release()
	} else {
		c.rest()
	}
	if src != nil {
		r.charge += src.charge - charged
	}
	r.c.did.read(c.run.TakeRead())
	if err != nil {
		done = !tryAgain
		return dst, err
	}
	if done = end; done {
		id = 0
	}
	r.more = !done
	dst = bson.End(dst, ba)
	dst = c.appendToken(dst, last)
	dst = bson.AppendInt64(dst, "id", id)
	dst = bson.AppendString(dst, "ns", c.ns)
	return bson.End(dst, at), nil
}

// readGetMore reads the arguments of a getMore: the cursor, the name of its collection, and how many documents are
// wanted; -1: as many as fit.
func (r *request) readGetMore() (id int64, name string, n int, err error) {
	if r.arg.Kind() != value.Int64 {
		return 0, "", 0, args.Want(false, r.name, []byte(r.name), r.arg, "type 'long'")
	}
	coll := args.Given(r.body, "collection")
	if !coll.IsDefined() {
		return 0, "", 0, merr.New(merr.MissingField,
			"BSON field 'getMore.collection' is missing but a required field")
	}
	if name = coll.Str(); name == "" { // other names are compared with the cursor's: some are no collection's
		return 0, "", 0, merr.New(merr.InvalidNamespace, "Invalid namespace specified '%s.'", r.db)
	}
	n = -1
	if b := args.Given(r.body, "batchSize"); b.IsDefined() {
		size, ok := num.ToInt64(b, true)
		if !ok || size < 0 {
			return 0, "", 0, merr.New(51024, "BSON field 'batchSize' value must be >= 0, actual value '%d'", size)
		}
		if size > 0 {
			n = int(min(size, 1<<31-1))
		}
	}
	return r.arg.Int(), name, n, nil
}

func killCursors(r *request, dst []byte) ([]byte, error) {
	name := r.arg.Str() // not always a collection's name: a cursor may have no collection
	if r.arg.Kind() != value.String || name == "" {
		return dst, merr.New(merr.InvalidNamespace, "collection name has invalid type %s", expr.TypeName(r.arg))
	}
	list := args.Given(r.body, "cursors")
	if !list.IsDefined() {
		return dst, merr.New(merr.MissingField, "BSON field 'killCursors.cursors' is missing but a required field")
	}
	i := 0
	for it := list.Iter(); it.Next(); i++ {
		if v := it.Value(); v.Kind() != value.Int64 {
			return dst, args.Want(false, "killCursors.cursors", strconv.AppendInt(nil, int64(i), 10), v, "type 'long'")
		}
	}
	kill := r.kill
	if r.shares() {
		kill = r.killShared
	}
	var killed, missing []value.Value
	for _, v := range value.Elements(list) {
		ok, err := kill(v.Int(), r.db+"."+name)
		if err != nil {
			return dst, err
		}
		if ok {
			killed = append(killed, v)
		} else {
			missing = append(missing, v)
		}
	}
	dst = value.AppendElement(dst, "cursorsKilled", value.MakeArray(killed))
	dst = value.AppendElement(dst, "cursorsNotFound", value.MakeArray(missing))
	dst = value.AppendElement(dst, "cursorsAlive", value.MakeArray(nil))
	return value.AppendElement(dst, "cursorsUnknown", value.MakeArray(nil)), nil
}

// take is cursors.take.
func (r *request) take(id int64, ns string) (*cursor, error) { return r.s.cursors.take(id, ns, r) }

// kill removes a cursor of this user and collection. It returns false if there is none.
func (r *request) kill(id int64, ns string) (bool, error) {
	cs := r.s.cursors
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := cs.m[id]
	if c == nil || c.user != r.c.user || c.ns != ns {
		return false, nil
	}
	cs.remove(c)
	return true, nil
}
