package mongoapi

import (
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
	"github.com/orrerydb/orrery/mongoapi/update"
)

// writeReply collects the results of the statements of a write command.
type writeReply struct {
	n, modified int32
	upserted    []byte // elements of the array
	upserts     int
	errs        []byte
	errors      int
	first       int32 // code of the first error
}

// fail adds the error of a statement. If it returns an error, the whole command fails with it.
func (w *writeReply) fail(index int, err error) {
	e := merr.From(err)
	if w.errors == 0 {
		w.first = e.Code
	}
	at, b := bson.Begin(bson.AppendIndexHead(w.errs, bson.TypeDocument, w.errors))
	b = bson.AppendInt32(b, "index", int32(index))
	b = bson.AppendInt32(b, "code", e.Code)
	b = append(b, e.Extra...)
	b = bson.AppendString(b, "errmsg", e.Msg)
	w.errs = bson.End(b, at)
	w.errors++
}

// maxTold is how many bytes a command tells about failed statements. As in MongoDB, further ones have no text.
const maxTold = 1 << 20

// brief returns the error of a statement, without text and details if the command has told enough: so a reply has room
// for the errors of all statements.
func (r *request) brief(err error) error {
	e := merr.From(err)
	if r.c.did.told >= maxTold {
		return &merr.Error{Code: e.Code}
	}
	r.c.did.told += len(e.Msg) + len(e.Extra)
	return err
}

func (w *writeReply) upsert(index int, id value.Value) {
	at, b := bson.Begin(bson.AppendIndexHead(w.upserted, bson.TypeDocument, w.upserts))
	b = bson.AppendInt32(b, "index", int32(index))
	b = value.AppendElement(b, "_id", id)
	w.upserted = bson.End(b, at)
	w.upserts++
}

func (w *writeReply) append(dst []byte, update bool) []byte {
	dst = bson.AppendInt32(dst, "n", w.n)
	if update {
		if w.upserts > 0 {
			at, b := bson.BeginArray(dst, "upserted")
			dst = bson.End(append(b, w.upserted...), at)
		}
		dst = bson.AppendInt32(dst, "nModified", w.modified)
	}
	if w.errors > 0 {
		at, b := bson.BeginArray(dst, "writeErrors")
		dst = bson.End(append(b, w.errs...), at)
	}
	return dst
}

// ordered returns the argument ordered, true if absent.
func (r *request) ordered() bool { return args.Flag(r.body, "ordered", true) }

// wrote appends the results of the statements of a write command.
func (r *request) wrote(dst []byte, w *writeReply, update bool) []byte {
	if r.failed = w.first; r.silent() {
		w = &writeReply{}
	}
	return w.append(dst, update)
}

// silent reports whether the write concern is one of w: 0 without a wish for the journal. MongoDB answers such a write
// without results or errors, if the client waits for an answer at all.
func (r *request) silent() bool {
	if !r.waits {
		return false
	}
	c := args.Given(r.body, "writeConcern")
	n, whole := num.ToInt64(c.Get("w"), true)
	return c.Get("w").IsNumber() && whole && n == 0 && !expr.Truthy(c.Get("j")) && !expr.Truthy(c.Get("fsync"))
}

// statements returns the statements of a write command. Each has the arguments a.
func (r *request) statements(name string, a args.Set) ([]value.Value, error) {
	specs, err := r.docs(name)
	if err != nil {
		return nil, err
	}
	where := r.name + "." + name
	for _, s := range specs {
		if err := a.Check(where, s); err != nil {
			return nil, err
		}
	}
	return specs, nil
}

func insert(r *request, dst []byte) ([]byte, error) {
	name, err := r.collection()
	if err != nil {
		return dst, err
	}
	docs, err := r.docs("documents")
	if err != nil {
		return dst, err
	}
	k, _, err := r.ensure(r.db, name)
	if err != nil {
		return dst, err
	}
	var w writeReply
	n, bad, err := r.insertAll(k, docs, 0, r.ordered())
	if err != nil {
		return dst, err
	}
	w.n = n
	for i := range docs {
		if err := bad[i]; err != nil {
			w.fail(i, err)
		}
	}
	return r.wrote(dst, &w, false), nil
}

// insertAll inserts documents. They are statements of the command, from the one with the number first on. It returns
// how many were inserted and the errors of the others, by place; an error only if that ends the command.
func (r *request) insertAll(k *coll, docs []value.Value, first int, ordered bool) (int32, map[int]error, error) {
	n, bad, err := r.insertEach(k, docs, first, ordered)
	r.c.did.statements[opInsert] += int32(len(docs))
	r.c.did.inserted += n
	return n, bad, err
}

func (r *request) insertEach(k *coll, docs []value.Value, first int, ordered bool) (int32, map[int]error, error) {
	if err := r.failWrite(); err != nil {
		return 0, nil, err
	}
	if len(docs) > 1 {
		return r.insertMany(k, docs, first, ordered)
	}
	if _, ok := r.doneBefore(first); ok {
		return 1, nil, nil
	}
	switch err := r.insertOne(k, docs[0], first); {
	case r.ends(err):
		return 0, nil, err
	case err != nil:
		return 0, map[int]error{0: err}, nil
	}
	return 1, nil, nil
}

func (r *request) insertOne(k *coll, d value.Value, number int) error {
	d, err := r.newDocument(k, r.stamped(d))
	if err == nil {
		err = r.validate(k, value.Undef(), d)
	}
	if err != nil {
		return err
	}
	res, err := k.Write(r.ctx, core.Write{Kind: core.Create, Doc: d.Bytes(), With: r.record(number, inserted),
		Mark: r.mark(number, inserted)})
	if _, made := err.(*madeBefore); made {
		r.again(number)
		return nil
	}
	if err != nil {
		return k.writeError(err, d.Get("_id"))
	}
	r.made(&res)
	return nil
}

// stamp returns a new time of the cluster.
func (r *request) stamp() uint64 { return r.s.times.tick(r.s.clk.Now(), true) }

// stamped returns a document to be inserted with new times for the empty timestamps among its fields. One in the _id
// stays.
func (r *request) stamped(d value.Value) value.Value {
	empty := false
	for it := d.Iter(); it.Next() && !empty; {
		empty = update.EmptyTimestamp(it.Value()) && string(it.Key()) != "_id"
	}
	if !empty {
		return d
	}
	at, b := bson.Begin(make([]byte, 0, len(d.Bytes())))
	for it := d.Iter(); it.Next(); {
		if update.EmptyTimestamp(it.Value()) && string(it.Key()) != "_id" {
			b = value.AppendElement(b, string(it.Key()), value.TimestampOf(r.stamp()))
		} else {
			b = append(b, it.Element()...)
		}
	}
	return value.ObjectOf(bson.End(b, at))
}

// made counts what a write has done.
func (r *request) made(res *core.Result) {
	r.charge += res.Charge
	r.commit = max(r.commit, res.Time)
}

// inserted is the result of the insert of one document.
func inserted() outcome { return outcome{matched: 1} }

// insertMany is insertAll for several documents.
func (r *request) insertMany(k *coll, docs []value.Value, first int, ordered bool) (n int32, bad map[int]error,
	err error) {
	marks := r.marks(first, len(docs))
	ws := make([]core.Write, 0, len(docs))
	at := make([]int, 0, len(docs)) // the statement of each write
	var stop error
	stopAt := 0
	bad = map[int]error{}
	for i, d := range docs {
		d, err := r.newDocument(k, r.stamped(d))
		if err == nil {
			err = r.validate(k, value.Undef(), d)
		}
		if err != nil {
			if ordered {
				stop, stopAt = err, i
				break
			}
			bad[i] = r.brief(err)
			continue
		}
		if _, ok := r.doneBefore(first + i); ok {
			n++
			continue
		}
		ws = append(ws, core.Write{Kind: core.Create, Doc: d.Bytes(), With: r.record(first+i, inserted)})
		if marks != nil {
			ws[len(ws)-1].Mark = &marks[i]
		}
		at = append(at, i)
	}
	failed := false
	for i := 0; i < len(ws) && !(ordered && failed); { // again only after a statement that was made before
		for _, o := range k.WriteMany(r.ctx, ws[i:], ordered) {
			_, made := o.Err.(*madeBefore)
			switch {
			case r.ends(o.Err):
				return n, bad, o.Err
			case o.Err != nil && !made:
				failed = true
				bad[at[i]] = r.brief(k.writeError(o.Err, value.ObjectOf(ws[i].Doc).Get("_id")))
			default:
				r.made(&o.Result)
				n++
			}
			if made {
				r.again(first + at[i])
			}
			i++
		}
	}
	if stop != nil && !failed {
		bad[stopAt] = stop
	}
	return n, bad, nil
}

// anyError returns one of the errors of an insert, nil if there is none.
func anyError(bad map[int]error) error {
	for _, err := range bad {
		return err
	}
	return nil
}
