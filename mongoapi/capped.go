package mongoapi

import (
	"cmp"
	"context"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/agg"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/changes"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
	"github.com/orrerydb/orrery/mongoapi/project"
	"github.com/orrerydb/orrery/mongoapi/update"
)

// A capped collection keeps its newest documents, in the order of insertion: see core.Capped. A tailable cursor on one
// reads in that order, and goes on when it has come to the end, at any of the processes that share a store.
//
// Example: {create: "log", capped: true, size: 1 << 20, max: 1000} has up to 1,000 documents. A cursor with tailable
// and awaitData gives those, and then each document that is inserted.

const (
	cappedStep = 256     // sizes are multiples of it, in bytes
	cappedMost = 1 << 50 // the largest size
)

// appendCapped appends the options capped, size and max of a new collection.
func (r *request) appendCapped(dst []byte, body value.Value) ([]byte, error) {
	size, most := args.Given(body, "size"), args.Given(body, "max")
	if !args.Flag(body, "capped", false) {
		if size.IsDefined() || most.IsDefined() {
			return dst, merr.New(merr.InvalidOptions, "the 'capped' field needs to be true when either the 'size' or "+
				"'max' fields are present")
		}
		return dst, nil
	}
	if !size.IsDefined() {
		return dst, merr.New(merr.InvalidOptions, "the 'size' field is required when 'capped' is true")
	}
	n, err := cappedSize("create.size", size)
	if err != nil {
		return dst, err
	}
	dst = bson.AppendBool(dst, "capped", true)
	dst = bson.AppendInt64(dst, "size", n)
	if most.IsDefined() {
		m, err := cappedMax(most)
		if err != nil {
			return dst, err
		}
		if m > 0 {
			dst = bson.AppendInt64(dst, "max", m)
		}
	}
	return dst, nil
}

// cappedSize reads the size of a capped collection.
func cappedSize(field string, v value.Value) (int64, error) {
	n, ok := num.ToInt64(v, true)
	if !ok || n < 1 || n > cappedMost {
		return 0, merr.New(51024, "BSON field '%s' value must be >= 1 and <= %d, actual value '%d'", field,
			int64(cappedMost), n)
	}
	return (n + cappedStep - 1) / cappedStep * cappedStep, nil
}

// cappedMax reads the largest number of documents; 0 = any number.
func cappedMax(v value.Value) (int64, error) {
	n, ok := num.ToInt64(v, true)
	if !ok || n >= 1<<31 {
		return 0, merr.New(merr.InvalidOptions, "max in a capped collection has to be < 2^31 or not set")
	}
	return max(n, 0), nil
}

// shownOf returns the order of a collection's documents without a sort: in a capped one that of insertion.
func (k *coll) shownOf(shown exec.Shown) exec.Shown {
	if k != nil && k.Spec().Capped != nil && shown == exec.Creation {
		return exec.Oldest
	}
	return shown
}

// appendCappedStats appends what collStats says about limits.
func (k *coll) appendCappedStats(dst []byte, scale int64) []byte {
	c := k.Spec().Capped
	dst = bson.AppendBool(dst, "capped", c != nil)
	if c == nil {
		return dst
	}
	dst = value.AppendElement(dst, "max", value.IntOf(c.Items))
	return value.AppendElement(dst, "maxSize", value.IntOf(c.Bytes/scale))
}

// findTail begins a tailable cursor.
func (r *request) findTail(dst []byte, k *coll, name string) ([]byte, error) {
	c, a, err := r.tailCursor(k, name)
	if err != nil {
		return dst, err
	}
	return r.firstFound(dst, c, a)
}

// tailCursor makes a tailable cursor. It may outlive the request's bytes.
func (r *request) tailCursor(k *coll, name string) (*cursor, findArgs, error) {
	if k.Spec().Capped == nil {
		return nil, findArgs{}, merr.New(merr.BadValue, "error processing query: ns=%s.%s tailable cursor requested "+
			"on non capped collection", r.db, name)
	}
	if err := r.own(); err != nil {
		return nil, findArgs{}, err
	}
	a, err := r.findArgs()
	if err != nil {
		return nil, a, err
	}
	scope, err := r.scope(r.body)
	if err != nil {
		return nil, a, err
	}
	f, err := filter.Compile(a.filter, r.filterOptions(scope))
	if err != nil {
		return nil, a, err
	}
	p, err := project.Compile(a.projection, project.Options{Scope: scope, Find: true, Query: f})
	if err != nil {
		return nil, a, err
	}
	t := &cappedTail{k: k, run: r.exprEnv().Run, env: r.exprEnv(), f: f, skip: a.skip, left: -1, more: true,
		news: k.Changed()}
	if a.limit > 0 {
		t.left = a.limit
	}
	c := &cursor{ns: r.db + "." + name, env: r.exprEnv(), src: t, tail: t, awaits: a.await, keep: a.keep,
		cmd: r.body.Bytes()}
	if !p.Plain() {
		c.proj = p
	}
	return c, a, nil
}

// reopenTail makes the cursor of a find at its position, which another process has stored. k is the collection with the
// name; nil: there is none.
func (r *request) reopenTail(k *coll, name string, at value.Value) (*cursor, error) {
	rid := [8]byte(at.Get("collection").Bytes())
	if k == nil || k.RID() != rid {
		return nil, droppedUnder(rid)
	}
	c, _, err := r.tailCursor(k, name)
	if err != nil {
		return nil, err
	}
	c.run = r.exprEnv().Run
	t := c.src.(*cappedTail)
	t.token, t.id = at.Get("after").Str(), at.Get("id").Clone()
	t.skip, t.left = at.Get("skip").Int(), at.Get("left").Int()
	return c, nil
}

// droppedUnder is the error of a cursor whose collection was dropped.
func droppedUnder(rid [8]byte) error {
	return merr.New(merr.QueryPlanKilled, "collection dropped. UUID %s", changes.UUIDText(rid))
}

// AppendPosition implements movableTail.
func (t *cappedTail) AppendPosition(b []byte) []byte {
	rid := t.k.RID()
	b = bson.AppendBinary(b, "collection", rid[:])
	b = bson.AppendString(b, "after", t.token)
	if t.token != "" {
		b = value.AppendElement(b, "id", t.id)
	}
	b = bson.AppendInt64(b, "skip", t.skip)
	return bson.AppendInt64(b, "left", t.left)
}

// cappedTail gives the documents of a capped collection in the order of insertion. It is an agg.Iter that has no more
// documents for the moment.
type cappedTail struct {
	k    *coll
	run  *expr.Run
	env  *expr.Env
	f    *filter.Filter
	news core.News
	skip int64
	left int64 // documents still to be returned; -1 = all
	done bool

	rows  *exec.Rows
	bound uint64      // items from this counter on may come later than others before them
	token string      // the position after the last document that was read
	id    value.Value // of that document, which is its partition key too
	at    uint64      // the mark before the rows were opened
	more  bool        // there may be more without news
}

// Next implements agg.Iter.
func (t *cappedTail) Next() (value.Value, bool, error) {
	for {
		if t.done || t.left == 0 {
			return value.Undef(), false, nil
		}
		if err := t.run.Step(); err != nil {
			return value.Undef(), false, err
		}
		if t.rows == nil {
			if ok, err := t.open(); !ok || err != nil {
				return value.Undef(), false, err
			}
		}
		if !t.rows.Next() {
			err := t.rows.Err()
			t.close()
			if status.Is(err, status.Unavailable) {
				continue // the state that it was reading is too old
			}
			t.more = false
			return value.Undef(), false, err
		}
		it := t.rows.Item()
		if core.CounterOf(it) >= t.bound {
			t.close()
			t.more = false
			return value.Undef(), false, nil
		}
		t.id = it.ID().Clone()
		d := value.ObjectOf(it.Doc).Clone()
		t.token = t.rows.Continuation()
		if ok, err := t.f.Match(t.env, d); err != nil {
			return d, false, err
		} else if !ok {
			continue
		}
		if t.skip > 0 {
			t.skip--
			continue
		}
		if t.left > 0 {
			t.left--
		}
		return d, true, nil
	}
}

// open begins to read after the position. It returns false if there is nothing new.
func (t *cappedTail) open() (bool, error) {
	mark, news := t.news.News(t.at)
	if !news && !t.more {
		return false, nil
	}
	if t.token != "" {
		_, err := t.k.Read(t.run.Context(), core.PartitionKey{t.id}, t.id)
		switch {
		case status.Is(err, status.NotFound) && status.From(err).Sub == status.SubOwnerNotFound:
			return false, droppedUnder(t.k.RID())
		case status.Is(err, status.NotFound):
			return false, merr.New(merr.CappedPositionLost, "CollectionScan died due to position in capped collection "+
				"being deleted. Last seen record id: %s", update.Show(t.id))
		case err != nil:
			return false, err
		}
	}
	t.at, t.bound = mark, t.k.Settled()
	var err error
	t.rows, err = t.k.Query(t.run.Context(), &exec.Query{PlanHash: 1, Shown: exec.Oldest, Continuation: t.token,
		Number: true, NoFiles: true})
	return err == nil, err
}

func (t *cappedTail) close() {
	if t.rows != nil {
		t.rows.Close()
		t.rows = nil
	}
}

// Close implements agg.Iter.
func (t *cappedTail) Close() {
	t.close()
	if t.done = true; t.news != nil {
		t.news.Leave()
		t.news = nil
	}
}

func (t *cappedTail) Notify(wake func()) (stop func()) { return t.news.Notify(t.at, wake) }

func (t *cappedTail) Over() bool { return t.done || t.left == 0 }

func (t *cappedTail) TokenAfter(bool) value.Value { return value.Undef() }

func (t *cappedTail) Rest() {
	if t.rows != nil {
		t.close()
		t.more = true
	}
}

// convertToCapped replaces a collection by a capped one with its newest documents. Its indexes are lost.
func convertToCapped(r *request, dst []byte) ([]byte, error) {
	name, err := r.collection()
	if err != nil {
		return dst, err
	}
	return dst, r.copyCapped(name, name)
}

// cloneCollectionAsCapped copies the newest documents of a collection to a new capped one.
func cloneCollectionAsCapped(r *request, dst []byte) ([]byte, error) {
	name, err := r.collection()
	if err != nil {
		return dst, err
	}
	to, err := collectionOf(r.db, r.body.Get("toCollection"))
	if err != nil {
		return dst, err
	}
	if err := validCollection(r.db, to); err != nil {
		return dst, err
	}
	k, err := r.open(r.db, to)
	if err == nil && k != nil {
		err = merr.New(merr.NamespaceExists, "cloneCollectionAsCapped failed - destination collection %s.%s already "+
			"exists. source collection: %s.%s", r.db, to, r.db, name)
	}
	if err != nil {
		return dst, err
	}
	return dst, r.copyCapped(name, to)
}

// copyCapped copies a collection to a capped one of the command's size, which may replace it.
func (r *request) copyCapped(name, to string) (err error) {
	from, err := r.open(r.db, name)
	if err != nil {
		return err
	}
	if from == nil {
		return merr.New(merr.NamespaceNotFound, "source collection %s.%s does not exist", r.db, name)
	}
	if !from.byID {
		return merr.New(merr.IllegalOperation, "can't convert a sharded collection to a capped one: %s.%s", r.db, name)
	}
	if !args.Given(r.body, "size").IsDefined() {
		return merr.New(merr.InvalidOptions, "Capped collection size must be greater than zero")
	}
	at, spec := bson.Begin(nil)
	spec = bson.AppendBool(spec, "capped", true)
	spec = value.AppendElement(spec, "size", r.body.Get("size"))
	at1, opts := bson.Begin(nil)
	if opts, err = r.appendCapped(opts, value.ObjectOf(bson.End(spec, at))); err != nil {
		return err
	}
	opts = bson.End(opts, at1)
	temp := "tmp.capped." + r.s.clk.UUID().String()
	k, _, err := r.ensure(r.db, temp, func(s *core.ContainerSpec) {
		s.Properties = map[string][]byte{optionsProperty: opts}
		followOptions(s)
		s.Event = createEvent(opts)
	})
	if err != nil {
		return err
	}
	defer func() {
		if err != nil { // the command's own context may have ended
			_ = r.s.eng.DropContainer(context.WithoutCancel(r.ctx), r.db, temp)
		}
	}()
	all, err := filter.Compile(value.Undef(), filter.Options{})
	if err != nil {
		return err
	}
	src := newSource(from, all, nil, exec.Oldest, 0, 0, r.exprEnv())
	defer src.Close()
	mem := r.s.eng.Budget().Open("result")
	defer mem.Close()
	var batch []value.Value
	for more := true; more; batch = batch[:0] {
		if more, err = nextBatch(src, &batch, mem); err != nil {
			return err
		}
		if len(batch) == 0 {
			break
		}
		_, bad, err := r.insertMany(k, batch, 0, true)
		if err = cmp.Or(err, anyError(bad)); err != nil {
			return err
		}
	}
	_, err = r.s.eng.RenameContainer(r.ctx, r.db, temp, to, name == to)
	return err
}

var (
	_ agg.Iter    = (*cappedTail)(nil)
	_ movableTail = (*cappedTail)(nil)
)
