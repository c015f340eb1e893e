package mongoapi

import (
	"slices"
	"sync"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/ru"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/agg"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
	"github.com/orrerydb/orrery/mongoapi/order"
	"github.com/orrerydb/orrery/mongoapi/project"
)

// findArgs are the arguments of find. The same code reads those of count and similar commands.
type findArgs struct {
	filter, sort, projection value.Value
	skip, limit              int64
	batch                    int64 // -1 if absent
	single, keep             bool
	tailable, await          bool
	simple                   bool // only filter, limit and batch
	hint, min, max           value.Value
	key, number              bool // returnKey, showRecordId
	shown                    exec.Shown
}

func (r *request) findArgs() (findArgs, error) {
	a, plain := findArgs{batch: -1}, true // plain: none of the arguments that aren't kept
	for it := r.body.Iter(); it.Next(); {
		key, v := it.Key(), it.Value()
		if v.Kind() == value.Null { // null counts as absent
			continue
		}
		var err error
		switch string(key) {
		case "filter":
			a.filter = v
		case "sort":
			a.sort = v
		case "projection":
			a.projection = v
		case "skip":
			a.skip, err = count64(key, v)
		case "limit":
			if n, ok := num.ToInt64(v, true); ok && n < 0 && r.body.Get("count").IsDefined() { // there it has no sign
				a.limit = -n
				continue
			}
			a.limit, err = count64(key, v)
		case "batchSize":
			a.batch, err = count64(key, v)
		case "singleBatch":
			a.single = a.single || expr.Truthy(v)
		case "noCursorTimeout":
			a.keep = expr.Truthy(v)
		case "hint":
			a.hint, plain = v, false
		case "tailable":
			a.tailable = expr.Truthy(v)
		case "awaitData":
			a.await = expr.Truthy(v)
		case "collation":
			plain = plain && v.Len() == 0
		case "min":
			a.min = v
		case "max":
			a.max = v
		case "returnKey":
			a.key = expr.Truthy(v)
		case "showRecordId":
			a.number = expr.Truthy(v)
		}
		if err != nil {
			return a, err
		}
	}
	a.simple = plain && a.sort.Len() == 0 && a.projection.Len() == 0 && a.skip == 0 && a.batch != 0 &&
		!a.tailable && !a.await && a.min.Len() == 0 && a.max.Len() == 0 && !a.key && !a.number
	a.shown = naturalOrder(exec.Creation, a.sort, a.hint)
	return a, a.checkTail()
}

// checkTail checks the arguments of a tailable cursor.
func (a *findArgs) checkTail() error {
	switch {
	case a.await && !a.tailable:
		return merr.New(merr.FailedToParse, "Cannot set 'awaitData' without also setting 'tailable'")
	case a.tailable && a.single:
		return merr.New(merr.FailedToParse, "Cannot use tailable option with the 'singleBatch' option")
	case a.tailable && a.sort.Len() > 0 && a.shown != exec.Oldest:
		return merr.New(merr.BadValue, "cannot use tailable option with a sort other than {$natural: 1}")
	}
	return nil
}

func count64(name []byte, v value.Value) (int64, error) {
	n, ok := num.ToInt64(v, true) // a fraction is truncated
	if !ok {
		return 0, merr.New(merr.BadValue, "BSON field '%s' has a value that is no 64-bit integer", name)
	}
	if n < 0 {
		return 0, merr.New(51024, "BSON field '%s' value must be >= 0, actual value '%d'", name, n)
	}
	return n, nil
}

func find(r *request, dst []byte) ([]byte, error) {
	name, err := r.collection()
	if err != nil {
		return dst, err
	}
	a, err := r.findArgs()
	if err != nil {
		return dst, err
	}
	if isOplog(r.db, name) {
		c, a, err := r.oplogCursor()
		if err != nil {
			return dst, err
		}
		return r.firstFound(dst, c, a)
	}
	id, point := value.Value{}, false
	if a.simple {
		id, point = onlyID(a.filter)
	}
	k, v, err := r.openRead(r.db, name)
	if err != nil {
		return dst, err
	}
	if v != nil {
		return r.findOnView(dst, v, a)
	}
	if err := checkHint(k, a.hint); err != nil {
		return dst, err
	}
	if k != nil && a.tailable {
		return r.findTail(dst, k, name)
	}
	if k != nil && point && k.hasPoints() {
		return r.findPoint(dst, k, id)
	}
	c, a, err := r.findCursor(k, name)
	if err != nil {
		return dst, err
	}
	return r.firstFound(dst, c, a)
}

// firstFound appends the first batch of a find.
func (r *request) firstFound(dst []byte, c *cursor, a findArgs) ([]byte, error) {
	n := firstBatch
	if a.batch >= 0 {
		n = int(min(a.batch, 1<<31-1))
	}
	if a.single && a.batch < 0 {
		n = -1
	}
	return r.first(dst, c, n, a.single)
}

// findCursor makes the cursor of a find. It may outlive the request's bytes.
func (r *request) findCursor(k *coll, name string) (*cursor, findArgs, error) {
	if err := r.own(); err != nil {
		return nil, findArgs{}, err
	}
	a, err := r.findArgs()
	if err != nil {
		return nil, a, err
	}
	if err := r.collate(k, args.Given(r.body, "collation")); err != nil {
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
	o, err := order.Compile(a.sort)
	if err != nil {
		return nil, a, err
	}
	p, err := project.Compile(a.projection, project.Options{Scope: scope, Find: true, Run: r.exprEnv().Run, Query: f})
	if err != nil {
		return nil, a, err
	}
	c := &cursor{ns: r.db + "." + name, env: r.exprEnv(), keep: a.keep, src: agg.NewSlice(nil), cmd: r.body.Bytes()}
	if !p.Plain() {
		c.proj = p
	}
	if o != nil {
		keys := slices.Clone(o).With(r.exprEnv().Run.Collation())
		c.env.SortKey = func(doc value.Value) value.Value { return value.MakeArray(keys.Keys(doc)) }
	}
	if k != nil {
		c.src, err = r.openFind(k, f, o, a, c)
	}
	c.lead, _ = c.src.(*source)
	return c, a, err
}

// openFind opens the documents of a find: a look-up if the filter determines one item, otherwise a query.
func (r *request) openFind(k *coll, f *filter.Filter, o order.Order, a findArgs, c *cursor) (agg.Iter, error) {
	b, err := r.bounds(k, a)
	if err != nil {
		return nil, err
	}
	if b != nil || a.key || a.number {
		if b != nil && len(o) == 0 {
			o = b.order()
		}
		src := newSource(k, f, o, a.shown, a.skip, a.limit, r.exprEnv())
		if b != nil {
			src.bound(b)
		}
		if a.key || a.number {
			src.reshape(c.env, c.proj, r.shownKey(k, a), a.key, a.number && !a.key)
			c.proj = nil
		}
		return src, nil
	}
	pk, id, ok := k.point(f)
	if !ok {
		return newSource(k, f, o, a.shown, a.skip, a.limit, r.exprEnv()), nil
	}
	it, err := k.Read(r.ctx, pk, id)
	r.chargeRead(it)
	k.uses.point()
	if status.Is(err, status.NotFound) || a.skip > 0 {
		return agg.NewSlice(nil), nil
	}
	if err != nil {
		return nil, err
	}
	d := value.ObjectOf(it.Doc)
	match, err := f.Match(r.exprEnv(), d)
	if !match {
		return agg.NewSlice(nil), err
	}
	return agg.NewSlice([]value.Value{d}), err
}

// chargeRead adds the charge of a point read; nil = the item is missing.
func (r *request) chargeRead(it *core.Item) {
	n := 0
	if it != nil {
		n = len(it.Doc)
		r.c.did.read(1, 1)
	}
	r.charge += ru.Read(n)
}

// onlyID reports whether a query is exactly {_id: value}.
func onlyID(q value.Value) (value.Value, bool) {
	if q.Kind() != value.Object {
		return q, false
	}
	it := q.Iter()
	if !it.Next() || string(it.Key()) != "_id" {
		return q, false
	}
	id := it.Value()
	return id, !it.Next() && plainKey(id)
}

// hasPoints reports whether an `_id` alone is the key of a document.
func (k *coll) hasPoints() bool { return k.byID && !k.option("collation").IsDefined() }

// findPoint is a find by `_id` only: a read and a copy.
func (r *request) findPoint(dst []byte, k *coll, id value.Value) ([]byte, error) {
	p := pointReads.Get().(*pointRead)
	defer p.put()
	it, err := k.readInto(r.ctx, p, core.PartitionKey{id}, id)
	if err != nil && !status.Is(err, status.NotFound) {
		return dst, err
	}
	r.chargeRead(it)
	k.uses.point()
	if err == nil {
		if err := r.c.room(r.ctx, len(dst)+len(it.Doc), true); err != nil {
			return dst, err
		}
	}
	at, dst := bson.BeginObject(dst, "cursor")
	ba, dst := bson.BeginArray(dst, "firstBatch")
	if err == nil {
		r.c.did.returned++
		dst = bson.AppendDocument(dst, "0", it.Doc)
	}
	dst = bson.End(dst, ba)
	dst = bson.AppendInt64(dst, "id", 0)
	dst = bson.AppendHead(dst, bson.TypeString, "ns")
	n := len(r.db) + 1 + len(k.ID())
	dst = append(dst, byte(n+1), byte((n+1)>>8), 0, 0)
	dst = append(append(append(dst, r.db...), '.'), k.ID()...)
	dst = append(dst, 0)
	return bson.End(r.appendAt(dst), at), nil
}

// pointRead is the memory of a document that is read and copied to the reply, reused by the next such read. Commands
// take it from pointReads, so that idle connections have none.
type pointRead struct {
	it  core.Item
	mem core.Mem
}

var pointReads = sync.Pool{New: func() any { return new(pointRead) }}

// put gives the memory back, unless a large document has enlarged it.
func (p *pointRead) put() {
	if p.it = (core.Item{}); p.mem.Size() <= keepBuffer {
		pointReads.Put(p)
	}
}
