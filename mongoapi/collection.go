package mongoapi

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/indexes"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/order"
	"github.com/orrerydb/orrery/mongoapi/update"
)

// idPath is the partition key path of an unsharded collection: each document is a logical partition.
const idPath = "/id"

// coll is a container in the form that commands use.
type coll struct {
	*core.Container
	tx   *core.Transaction // that the command's calls belong to; nil: none
	of   *transaction      // that has tx; nil: none
	ns   string
	keys [][]string // stored names in the partition key's paths
	byID bool       // the partition key is the `_id`
	opts []byte     // the options that it was created with; nil: none

	uses *indexUses // nil: they aren't counted

	stable bool // the command keeps to the Stable API

	valid     *validator // once validated is set
	validated bool
}

// open returns a collection, nil without an error if it doesn't exist. A view is an error.
func (r *request) open(db, name string) (*coll, error) {
	k, err := r.lookUp(db, name)
	if k != nil || err != nil {
		return k, err
	}
	d, err := r.viewDoc(db, name)
	if d.IsDefined() {
		err = notOnView(db, name)
	}
	return nil, err
}

// openNamed opens the collection that the command's first argument names.
func (r *request) openNamed() (name string, k *coll, err error) {
	if name, err = r.collection(); err == nil {
		k, err = r.open(r.db, name)
	}
	return name, k, err
}

// lookUp returns a collection, nil without an error if it doesn't exist or is a view.
func (r *request) lookUp(db, name string) (*coll, error) {
	if r.multi != nil {
		if k := r.multi.fresh[db+"."+name]; k != nil {
			return k, nil
		}
	}
	c, err := r.s.eng.Within(r.ctx).Container(db, name)
	if status.Is(err, status.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	k := r.collOf(c)
	switch {
	case r.multi != nil:
		r.multi.uses(k)
		k.of = r.multi
		k.tx, err = r.begun(c)
	case r.kept != nil:
		k.tx = r.kept.tx
	}
	return k, err
}

func (r *request) collOf(c *core.Container) *coll {
	k := newColl(c)
	k.uses = r.s.uses.of(k.Num())
	k.stable = r.api.strict == apiTrue
	return k
}

func newColl(c *core.Container) *coll {
	k := &coll{Container: c, keys: c.KeyPaths(), opts: c.Spec().Properties[optionsProperty]}
	k.byID = len(k.keys) == 1 && len(k.keys[0]) == 1 && k.keys[0][0] == "_id"
	return k
}

// namespace returns "db.collection" for messages and cursors.
func (k *coll) namespace() string {
	if k.ns == "" {
		k.ns = k.Database() + "." + k.ID()
	}
	return k.ns
}

// ensure returns a collection. It creates the collection and its database if necessary; then with can change its spec.
func (r *request) ensure(db, name string, with ...func(s *core.ContainerSpec)) (k *coll, created bool, err error) {
	for {
		if k, err = r.open(db, name); k != nil || err != nil {
			return k, false, err
		}
		if err = validCollection(db, name); err != nil {
			return nil, false, err
		}
		if err = r.otherCase(db); err != nil {
			return nil, false, err
		}
		if isOplog(db, name) {
			return nil, false, merr.New(merr.InvalidNamespace, "cannot write to local.oplog.rs: it is read only")
		}
		if strings.HasPrefix(name, "system.") {
			return nil, false, merr.New(merr.InvalidNamespace, "Invalid system namespace: %s.%s", db, name)
		}
		if r.multi != nil {
			k, err = r.createInside(db, name, with...)
			return k, err == nil, err
		}
		if k, err = r.makeCollection(db, name, with...); k != nil || err != nil {
			return k, k != nil, err
		}
	}
}

// otherCase refuses to create a database whose name differs from that of another one only in case. The other APIs can
// create such databases; they are all used.
func (r *request) otherCase(db string) error {
	dbs, err := r.s.eng.Databases(r.ctx)
	if err != nil {
		return err
	}
	other := ""
	for _, d := range dbs {
		switch {
		case d.ID == db:
			return nil
		case strings.EqualFold(d.ID, db):
			other = d.ID
		}
	}
	if other == "" {
		return nil
	}
	return merr.New(merr.DatabaseDifferCase, "db already exists with different case already have: [%s] trying to "+
		"create [%s]", other, db)
}

// makeCollection creates a collection, and its database if necessary. It returns nil without an error if somebody else
// created it first, or dropped the database.
func (r *request) makeCollection(db, name string, with ...func(s *core.ContainerSpec)) (*coll, error) {
	d, err := r.s.eng.EnsureDatabase(r.ctx, db)
	if err != nil {
		return nil, err
	}
	spec := newSpec(name, idPath)
	spec.Throughput = core.ThroughputIn(d)
	for _, f := range with {
		f(&spec)
	}
	c, err := r.s.eng.CreateContainer(r.ctx, db, spec)
	switch {
	case err == nil:
		return newColl(c), nil
	case status.Is(err, status.Conflict) || status.Is(err, status.NotFound):
		return nil, nil
	}
	return nil, err
}

func newSpec(name, path string) core.ContainerSpec {
	return core.ContainerSpec{ID: name, Origin: "mongo", ExtendedJSON: true,
		PartitionKey: core.PartitionKeyDef{Paths: []string{path}, Kind: "Hash", Version: 2}}
}

// plainKey reports whether an equality with v can determine an item's id or a part of its key: v must be a single
// value, not one that matches others.
func plainKey(v value.Value) bool {
	switch v.Kind() {
	case value.Undefined, value.Null, value.Array, value.Object, value.Regex:
		return false
	}
	return true
}

// partition returns the partition key that a filter determines, or nil.
func (k *coll) partition(f *filter.Filter) core.PartitionKey {
	pk := make(core.PartitionKey, 0, len(k.keys))
	for _, segs := range k.keys {
		path := segs[0]
		if len(segs) > 1 {
			path = strings.Join(segs, ".")
		}
		v := f.Exact(path)
		if !plainKey(v) {
			return nil
		}
		pk = append(pk, v)
	}
	return pk
}

// point returns the partition key and `_id` if a filter determines both.
func (k *coll) point(f *filter.Filter) (pk core.PartitionKey, id value.Value, ok bool) {
	if id = f.Exact("_id"); !plainKey(id) || f.Near() != nil || f.Text() != nil {
		return nil, id, false
	}
	if k.byID {
		return core.PartitionKey{id}, id, true
	}
	pk = k.partition(f)
	return pk, id, pk != nil
}

// query returns the core's query for a filter and a sort.
func (k *coll) query(f *filter.Filter, o order.Order, limit int64, e *expr.Env) *exec.Query {
	q := &exec.Query{PlanHash: 1, NoFiles: e.Run.Space() == nil}
	if !f.All() {
		q.Pred = f.Pred(e)
		q.Match = func(it *core.Item) (bool, error) { return f.Match(e, value.ObjectOf(it.Doc)) }
	}
	near := f.Near()
	if e.Run.Collation() != nil {
		k.collate(q, f, slices.Clone(o), e)
	}
	if len(q.OrderBy) > 0 {
		// the order of strings is that of the collation
	} else if len(o) > 0 || near != nil {
		for _, c := range o {
			q.OrderBy = append(q.OrderBy, exec.Order{Path: access.NewPath(c.Path...).Element(), Desc: c.Desc,
				Key: sortKey(o, c, e)})
		}
		if len(o) == 0 {
			q.OrderBy = []exec.Order{nearOrder(near)}
		}
		q.Compare, q.Collation = order.CompareKeys, access.BSONOrder
	}
	if limit > 0 && limit < 1<<31 {
		q.Limit = int(limit)
	}
	return q
}

// sortKey returns the function that makes the keys of one column of an order. It also finds documents that can't be
// sorted: those in which two columns lead through arrays. Documents without arrays cost nothing more.
func sortKey(o order.Order, c order.Column, e *expr.Env) func(*core.Item) value.Value {
	return func(it *core.Item) value.Value {
		d := value.ObjectOf(it.Doc)
		key, array := order.KeyOf(d, c)
		if array {
			if err := o.Check(d); err != nil {
				e.Run.Fail(err)
			}
		}
		return key
	}
}

// newDocument validates a document to be stored and moves `_id` to the front, or adds one. If nothing has to change,
// the result has d's own bytes.
func (r *request) newDocument(k *coll, d value.Value) (value.Value, error) {
	id := d.Get("_id")
	if err := checkID(id); err != nil {
		return d, err
	}
	first, had := true, false
	for it := d.Iter(); it.Next(); {
		key := it.Key()
		if string(key) == "_id" {
			switch {
			case it.Element()[0] == bson.TypeUndefined: // which otherwise reads as null
				return d, merr.New(merr.InvalidIDField, "The '_id' value cannot be of type undefined")
			case had:
				return d, merr.New(merr.BadValue, "can't have multiple _id fields in one document")
			}
			had = true
		}
		if len(key) > 0 && key[0] == '$' && !k.isKeyField(key) && k.Spec().Origin != "mongo" {
			return d, merr.New(merr.DollarPrefixedFieldName, "The dollar ($) prefixed field '%s' in '%s' is not "+
				"valid for storage.", key, key)
		}
		if first && string(key) == "_id" {
			id = it.Value()
		} else if first {
			id = value.Undef()
		}
		first = false
	}
	if !id.IsDefined() { // missing or not the first field
		id = d.Get("_id")
		if !id.IsDefined() {
			id = r.s.ids.next()
		}
		at, b := bson.Begin(make([]byte, 0, len(d.Bytes())+24))
		b = value.AppendElement(b, "_id", id)
		for it := d.Iter(); it.Next(); {
			if string(it.Key()) != "_id" {
				b = append(b, it.Element()...)
			}
		}
		d = value.ObjectOf(bson.End(b, at))
	}
	if n := len(d.Bytes()); n > maxDocument {
		return d, merr.New(merr.BSONObjectTooLarge, "object to insert too large. size in bytes: %d, max size: %d", n,
			maxDocument)
	}
	if bson.Deeper(d.Bytes(), storedDepth, nil) {
		return d, merr.New(merr.Overflow, "cannot insert document because it exceeds %d levels of nesting", storedDepth)
	}
	return d, k.checkStored(d)
}

// isKeyField reports whether name is the container's partition key. Tables have theirs in `$pk`, and documents without
// it can't be stored there. k is nil for a collection that doesn't exist.
func (k *coll) isKeyField(name []byte) bool {
	if k == nil {
		return false
	}
	paths := k.KeyPaths()
	return len(paths) == 1 && len(paths[0]) == 1 && paths[0][0] == string(name)
}

func checkID(id value.Value) error {
	switch id.Kind() {
	case value.Array, value.Regex:
		return merr.New(merr.InvalidIDField, "The '_id' value cannot be of type %s", expr.TypeName(id))
	case value.Object:
		for it := id.Iter(); it.Next(); {
			if key := it.Key(); len(key) > 0 && key[0] == '$' {
				return merr.New(merr.DollarPrefixedFieldName, "_id fields may not contain '$'-prefixed fields: %s "+
					"is not valid for storage.", key)
			}
		}
	}
	return nil
}

// maxDocument is the largest document that a client may store, in bytes.
const maxDocument = 16 << 20

// checkStored checks what the indexes and the shard key ask of a document.
func (k *coll) checkStored(d value.Value) error {
	if err := indexes.Check(k.Spec(), d); err != nil {
		return err
	}
	if k.byID || k.Spec().Origin != "mongo" {
		return nil
	}
	for _, segs := range k.keys {
		v := d
		for _, s := range segs {
			v = v.Get(s)
		}
		if !v.IsDefined() || v.Kind() == value.Array {
			return merr.New(merr.ShardKeyNotFound, "document does not contain shard key")
		}
	}
	return nil
}

// checkShardKey refuses an update that changes the shard key.
func (k *coll) checkShardKey(old, now value.Value) error {
	if k.byID {
		return nil
	}
	for _, segs := range k.keys {
		a, b := old, now
		for _, s := range segs {
			a, b = a.Get(s), b.Get(s)
		}
		if a.IsDefined() != b.IsDefined() || a.IsDefined() && !filter.Equal(a, b) {
			return merr.New(merr.ImmutableField, "Performing an update on the path '%s' would modify the immutable "+
				"field '%s'", strings.Join(segs, "."), strings.Join(segs, "."))
		}
	}
	return nil
}

// duplicateKey is the error E11000 for an existing `_id`.
func (k *coll) duplicateKey(id value.Value) *merr.Error {
	e := merr.New(merr.DuplicateKey, "E11000 duplicate key error collection: %s index: _id_ dup key: { _id: %s }",
		k.namespace(), update.Show(id))
	at, b := bson.BeginObject(nil, "keyPattern")
	b = bson.End(bson.AppendInt32(b, "_id", 1), at)
	at, b = bson.BeginObject(b, "keyValue")
	e.Extra = bson.End(value.AppendElement(b, "_id", id), at)
	return e
}

// duplicateValue is the error E11000 for values that a unique index has already. The index is one of specs, unless that
// list is older than the index.
func (k *coll) duplicateValue(dup *core.Duplicate, specs []value.Value) *merr.Error {
	at, b := bson.Begin(nil)
	for _, p := range dup.Paths {
		b = bson.AppendInt32(b, strings.Join(p, "."), 1)
	}
	under := value.Undef()
	if dup.Index == "_id_" {
		under = k.option("collation")
	}
	key := value.ObjectOf(bson.End(b, at))
	for _, d := range specs {
		if d.Get("name").Str() == dup.Index {
			key, under = d.Get("key"), d.Get("collation")
		}
	}
	shown := strings.Builder{}
	at, b = bson.BeginObject(value.AppendElement(nil, "keyPattern", key), "keyValue")
	for i, it := 0, key.Iter(); i < len(dup.Values) && it.Next(); i++ {
		v := dup.Values[i]
		if i > 0 {
			shown.WriteString(", ")
		}
		fmt.Fprintf(&shown, "%s: %s", it.Key(), update.Show(v))
		b = value.AppendElement(b, it.Key(), v)
	}
	of := ""
	if under.IsDefined() {
		of = " collation: " + update.Show(under)
	}
	e := merr.New(merr.DuplicateKey, "E11000 duplicate key error collection: %s index: %s%s dup key: { %s }",
		k.namespace(), dup.Index, of, shown.String())
	e.Extra = bson.End(b, at)
	return e
}

// writeError converts the core's error of one write.
func (k *coll) writeError(err error, id value.Value) error {
	s, ok := err.(*status.Error)
	if !ok {
		return err
	}
	var dup *core.Duplicate
	var arrays *core.ParallelArrays
	if errors.As(err, &dup) {
		return k.duplicateValue(dup, k.indexSpecs())
	}
	if errors.As(err, &arrays) {
		return merr.New(merr.CannotIndexParallelArrays, "%s", arrays.Error())
	}
	switch s.Code {
	case status.Conflict:
		return k.duplicateKey(id)
	case status.NotFound:
		return merr.New(merr.NamespaceNotFound, "ns not found: %s", k.namespace())
	case status.TooLarge:
		if k.tx != nil {
			return merr.New(merr.TransactionTooLarge, "%s", s.Msg)
		}
	}
	return err
}
