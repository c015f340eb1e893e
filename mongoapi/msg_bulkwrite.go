package mongoapi

import (
	"strings"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/agg"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// The command bulkWrite makes inserts, updates and deletes in several collections, and answers with a cursor that has
// a document for each. Its operations are the statements of the commands for one kind of write, under other names: each
// is rewritten to such a statement, and executed by the same code. Inserts into one collection that follow each other
// are executed together.
//
// Example: {bulkWrite: 1, ops: [{insert: 0, document: {_id: 1}}, {update: 1, filter: {}, updateMods: {$inc: {n: 1}}}],
// nsInfo: [{ns: "a.c"}, {ns: "b.d"}]} inserts into a.c, and executes the statement {q: {}, u: {$inc: {n: 1}}} in b.d.
// The cursor has {ok: 1, idx: 0, n: 1} and {ok: 1, idx: 1, n: 1, nModified: 1}.

// bulkCollection is the name in the namespace of the command's cursors.
const bulkCollection = "$cmd.bulkWrite"

// bulkKind is a kind of operation.
type bulkKind struct {
	args   args.Set
	needs  []string          // besides the number of its collection
	called map[string]string // the arguments that have another name in a statement
}

var bulkKinds = map[string]bulkKind{
	"insert": {args: args.Set{"insert": args.Number, "document": args.Object}, needs: []string{"document"}},
	"update": {
		args: args.Set{"update": args.Number, "filter": args.Object, "sort": args.Object, "multi": args.StrictBool,
			"updateMods": args.Any, "upsert": args.StrictBool, "upsertSupplied": args.StrictBool,
			"arrayFilters": args.Documents, "hint": args.Hint, "constants": args.Object, "collation": args.Object,
			"sampleId": args.Any},
		needs:  []string{"filter", "updateMods"},
		called: map[string]string{"filter": "q", "updateMods": "u", "constants": "c"},
	},
	"delete": {
		args: args.Set{"delete": args.Number, "filter": args.Object, "multi": args.StrictBool, "hint": args.Hint,
			"collation": args.Object, "sampleId": args.Any},
		needs:  []string{"filter"},
		called: map[string]string{"filter": "q"},
	},
}

var (
	bulkWriteArguments = args.Set{
		"ops": args.Documents, "nsInfo": args.Documents, "ordered": args.StrictBool, "errorsOnly": args.StrictBool,
		"bypassDocumentValidation": args.SafeBool, "bypassEmptyTsReplacement": args.OptionalBool, "let": args.Object,
		"cursor": args.Object, "stmtIds": args.Array,
	}
	bulkNamespace = args.Set{
		"ns": args.String, "collectionUUID": args.Any, "encryptionInformation": args.Object,
		"isTimeseriesNamespace": args.StrictBool, "shardVersion": args.Any, "databaseVersion": args.Any,
	}
	bulkCursor = args.Set{"batchSize": args.Number}
)

// bulkOp is one operation.
type bulkOp struct {
	kind string
	on   int // the place of its collection
	op   value.Value
}

// bulk is a bulkWrite that is executed.
type bulk struct {
	*request
	ops     []bulkOp
	targets []writeTarget
	ordered bool

	errorsOnly                                            bool
	results                                               []value.Value
	errors, inserted, matched, modified, upserts, deleted int32
}

func bulkWrite(r *request, dst []byte) ([]byte, error) {
	if r.db != "admin" {
		return dst, merr.New(merr.Unauthorized, "bulkWrite may only be run against the admin database.")
	}
	b := &bulk{request: r, ordered: r.ordered(), errorsOnly: args.Flag(r.body, "errorsOnly", false)}
	size, err := b.read()
	if err != nil {
		return dst, err
	}
	scope, err := r.scope(r.body)
	if err != nil {
		return dst, err
	}
	for i := range b.targets {
		b.targets[i].scope = scope
	}
	if err := b.run(); err != nil {
		return dst, err
	}
	c := &cursor{ns: "admin." + bulkCollection, src: agg.NewSlice(b.results)}
	if dst, err = r.first(dst, c, size, false); err != nil {
		return dst, err
	}
	dst = bson.AppendInt32(dst, "nErrors", b.errors)
	dst = bson.AppendInt32(dst, "nInserted", b.inserted)
	dst = bson.AppendInt32(dst, "nMatched", b.matched)
	dst = bson.AppendInt32(dst, "nModified", b.modified)
	dst = bson.AppendInt32(dst, "nUpserted", b.upserts)
	return bson.AppendInt32(dst, "nDeleted", b.deleted), nil
}

// read reads and checks all of the command before anything is written. It returns the size of the first batch, -1 for
// any.
func (b *bulk) read() (size int, err error) {
	size = -1
	if c := args.Given(b.body, "cursor"); c.IsDefined() {
		if err := bulkCursor.Check("bulkWrite.cursor", c); err != nil {
			return 0, err
		}
		if v := args.Given(c, "batchSize"); v.IsDefined() {
			n, err := notNegative("batchSize", v)
			if err != nil {
				return 0, err
			}
			size = n
		}
	}
	spaces, err := b.documents("nsInfo")
	if err != nil {
		return 0, err
	}
	ops, err := b.documents("ops")
	if err != nil {
		return 0, err
	}
	for _, d := range spaces {
		if err := bulkNamespace.Check("bulkWrite.nsInfo", d); err != nil {
			return 0, err
		}
		if !args.Given(d, "ns").IsDefined() {
			return 0, missingField("bulkWrite.nsInfo.ns")
		}
	}
	for _, d := range ops {
		op, err := readBulkOp(d)
		if err != nil {
			return 0, err
		}
		b.ops = append(b.ops, op)
	}
	if err := checkBatch(len(ops)); err != nil {
		return 0, err
	}
	for _, d := range spaces {
		t, err := b.bulkTarget(d.Get("ns"))
		if err != nil {
			return 0, err
		}
		b.targets = append(b.targets, t)
	}
	for _, op := range b.ops {
		if op.on >= len(b.targets) {
			return 0, merr.New(merr.BadValue, "BulkWrite ops entry %s has an invalid nsInfo index.", merr.Show(op.op))
		}
		if t := b.targets[op.on]; b.multi != nil && reserved(t.db) {
			return 0, refusedInside(t.db)
		}
	}
	return size, nil
}

// bulkTarget returns a collection that nsInfo names.
func (b *bulk) bulkTarget(ns value.Value) (writeTarget, error) {
	db, name, _ := strings.Cut(ns.Str(), ".")
	if db == "" || name == "" {
		return writeTarget{}, merr.New(merr.InvalidNamespace, "Invalid namespace specified for bulkWrite: '%s'", db)
	}
	if err := validDB(db); err != nil {
		return writeTarget{}, err
	}
	return writeTarget{request: b.request, db: db, name: name}, namedCollection(db, name)
}

// readBulkOp reads an operation. Its first field says what it is.
func readBulkOp(d value.Value) (op bulkOp, err error) {
	it := d.Iter()
	it.Next()
	op = bulkOp{kind: string(it.Key()), op: d}
	kind, ok := bulkKinds[op.kind]
	if !ok {
		return op, args.Unknown("bulkWrite", it.Key())
	}
	if err := kind.args.Check("bulkWrite.ops", d); err != nil {
		return op, err
	}
	if op.on, err = notNegative(op.kind, d.Get(op.kind)); err != nil {
		return op, err
	}
	for _, name := range kind.needs {
		if !args.Given(d, name).IsDefined() {
			return op, missingField("bulkWrite.ops." + name)
		}
	}
	if u := d.Get("updateMods"); u.IsDefined() && u.Kind() != value.Object && u.Kind() != value.Array {
		return op, merr.New(merr.FailedToParse, "Update argument must be either an object or an array")
	}
	return op, nil
}

// notNegative reads a number that is a size or a place.
func notNegative(name string, v value.Value) (int, error) {
	n, _ := num.ToInt64(v, true)
	if n < 0 {
		return 0, merr.New(merr.BadValue, "BSON field '%s' value must be >= 0, actual value '%d'", name, n)
	}
	return int(min(n, 1<<31-1)), nil
}

// run executes the operations. An ordered command, and one in a transaction, ends with the first error.
func (b *bulk) run() error {
	for i := 0; i < len(b.ops); {
		n, err := b.next(i)
		if err != nil {
			return err
		}
		if i += n; b.errors > 0 && (b.ordered || b.multi != nil) {
			return nil
		}
	}
	return nil
}

// next executes the operation at i, or all inserts into one collection from there on. It returns how many these were.
func (b *bulk) next(i int) (n int, err error) {
	op := b.ops[i]
	t := &b.targets[op.on]
	if t.k == nil {
		if t.k, err = b.open(t.db, t.name); err != nil {
			b.fail(i, op, b.brief(err))
			return 1, nil
		}
	}
	var o outcome
	ends := false
	switch op.kind {
	case "insert":
		return b.insert(i, t)
	case "update":
		o, ends, err = t.update(op.statement(), i)
	default:
		o, ends, err = t.delete(op.statement(), i)
	}
	switch {
	case ends:
		return 1, err
	case err != nil:
		b.fail(i, op, b.brief(err))
	default:
		b.done(i, op, o)
	}
	return 1, nil
}

// insert executes the inserts from i on.
func (b *bulk) insert(i int, t *writeTarget) (n int, err error) {
	var docs []value.Value
	for _, op := range b.ops[i:] {
		if op.kind != "insert" || op.on != b.ops[i].on {
			break
		}
		docs = append(docs, op.op.Get("document"))
	}
	if t.k == nil {
		if t.k, _, err = b.ensure(t.db, t.name); err != nil {
			return 0, err
		}
	}
	_, bad, err := b.insertAll(t.k, docs, i, b.ordered || b.multi != nil)
	if err != nil {
		return 0, err
	}
	for j := range docs {
		if err := bad[j]; err == nil {
			b.done(i+j, b.ops[i], outcome{matched: 1})
		} else {
			b.fail(i+j, b.ops[i], err)
		}
		if b.errors > 0 && (b.ordered || b.multi != nil) {
			break
		}
	}
	return len(docs), nil
}

// statement returns the operation as a statement of an update or a delete.
func (o bulkOp) statement() value.Value {
	at, b := bson.Begin(make([]byte, 0, len(o.op.Bytes())+16))
	called := bulkKinds[o.kind].called
	for it := o.op.Iter(); it.Next(); {
		key, el := it.Key(), it.Element()
		switch name := called[string(key)]; {
		case string(key) == o.kind || o.kind == "delete" && string(key) == "multi":
		case name != "":
			b = append(bson.AppendHead(b, el[0], name), el[len(key)+2:]...)
		default:
			b = append(b, el...)
		}
	}
	if o.kind == "delete" {
		limit := int32(1)
		if args.Flag(o.op, "multi", false) {
			limit = 0
		}
		b = bson.AppendInt32(b, "limit", limit)
	}
	return value.ObjectOf(bson.End(b, at))
}

// done adds the result of an operation.
func (b *bulk) done(i int, op bulkOp, o outcome) {
	n := o.matched
	switch {
	case op.kind == "insert":
		b.inserted += n
	case op.kind == "delete":
		n = o.modified
		b.deleted += n
	case o.upserted.IsDefined():
		n = 1
		b.upserts++
	default:
		b.matched += n
		b.modified += o.modified
	}
	if b.errorsOnly {
		return
	}
	at, d := bson.Begin(nil)
	d = bson.AppendInt32(bson.AppendDouble(d, "ok", 1), "idx", int32(i))
	d = bson.AppendInt32(d, "n", n)
	if op.kind == "update" {
		d = bson.AppendInt32(d, "nModified", o.modified)
	}
	if o.upserted.IsDefined() {
		up, e := bson.BeginObject(d, "upserted")
		d = bson.End(value.AppendElement(e, "_id", o.upserted), up)
	}
	b.results = append(b.results, value.ObjectOf(bson.End(d, at)))
}

// fail adds the error of an operation.
func (b *bulk) fail(i int, op bulkOp, err error) {
	e := merr.From(err)
	if b.errors++; b.errors == 1 {
		b.request.failed = e.Code
	}
	at, d := bson.Begin(nil)
	d = bson.AppendInt32(bson.AppendDouble(d, "ok", 0), "idx", int32(i))
	d = bson.AppendInt32(d, "code", e.Code)
	d = append(bson.AppendString(d, "errmsg", e.Msg), e.Extra...)
	d = bson.AppendInt32(d, "n", 0)
	if op.kind == "update" {
		d = bson.AppendInt32(d, "nModified", 0)
	}
	b.results = append(b.results, value.ObjectOf(bson.End(d, at)))
}

// bulkWrites is the right that a bulkWrite needs in each of its collections.
func (m may) bulkWrites() bool {
	spaces, err := m.r.documents("nsInfo")
	if err != nil {
		return true // the command is refused for that
	}
	ops, err := m.r.documents("ops")
	if err != nil {
		return true
	}
	actions := map[string]string{"insert": "insert", "update": "update", "delete": "remove"}
	for _, d := range ops {
		op, err := readBulkOp(d)
		if err != nil || op.on >= len(spaces) {
			return true
		}
		db, name, _ := strings.Cut(spaces[op.on].Get("ns").Str(), ".")
		allowed := m.writes
		if op.kind == "delete" {
			allowed = m.coll
		}
		if !allowed(db, name, actions[op.kind]) || args.Flag(d, "upsert", false) && !m.coll(db, name, "insert") {
			return false
		}
	}
	return true
}
