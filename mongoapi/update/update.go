// Package update compiles MongoDB updates: documents of operators, replacements and pipelines.
//
// The registry of operators is the table ops (ops.go). A new operator needs one entry there, its implementation, and
// lines in testdata.
package update

import (
	"sort"
	"strings"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/agg"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// Update is a compiled update.
type Update struct {
	ops     []op
	replace value.Value
	pipe    *agg.Transform
	filters map[string]*filter.Filter
}

// op is one operator on one path.
type op struct {
	path  string
	segs  []string
	apply applyFn
	ins   bool // only if this update inserts the document
	array bool // the path has $, $[] or $[identifier]
}

// Context is the input of an update besides the document.
type Context struct {
	Env    *expr.Env
	Filter *filter.Filter // the filter that selected the document, for the positional $
	Insert bool           // an upsert inserts the document
	Stamp  func() uint64  // returns a new time of the cluster
}

// Options describe the other parts of the statement.
type Options struct {
	ArrayFilters value.Value
	Scope        *expr.Scope
	Run          *expr.Run // that of the Env with which it will be applied; nil = it is never ended
	// Dollar, if set, reports whether a replacement may have a field whose name begins with '$'.
	Dollar func(name []byte) bool
}

// IsReplacement reports whether the update replaces whole documents.
func (u *Update) IsReplacement() bool { return u.replace.IsDefined() }

// Rewrites reports whether the update is a write even of a document that stays as it is. MongoDB compares the bytes of
// a replacement with those of the document, which begins with its `_id`. So a replacement that doesn't begin with one
// always counts as a modification, has an event in change streams, and so on.
func (u *Update) Rewrites() bool {
	it := u.replace.Iter()
	return u.replace.IsDefined() && !(it.Next() && string(it.Key()) == "_id")
}

// Compile compiles an update. u must not change as long as the result is used.
func Compile(u value.Value, o Options) (*Update, error) {
	out := &Update{}
	switch u.Kind() {
	case value.Array:
		if o.ArrayFilters.Len() > 0 {
			return nil, merr.New(merr.FailedToParse, "arrayFilters may not be specified for pipeline-style updates")
		}
		var err error
		out.pipe, err = agg.CompileTransform(u, o.Scope)
		return out, err
	case value.Object:
	default:
		return nil, merr.New(merr.FailedToParse, "Update argument must be either an object or an array")
	}
	it := u.Iter()
	if !it.Next() || len(it.Key()) == 0 || it.Key()[0] != '$' {
		out.replace = u
		return out, checkReplacement(u, o)
	}
	if err := out.compileFilters(o); err != nil {
		return nil, err
	}
	for it := u.Iter(); it.Next(); {
		if err := out.compileOperator(string(it.Key()), it.Value(), o); err != nil {
			return nil, err
		}
	}
	if err := out.checkFilters(u); err != nil {
		return nil, err
	}
	return out, out.arrange()
}

func checkReplacement(u value.Value, o Options) error {
	if o.ArrayFilters.Len() > 0 {
		return merr.New(merr.FailedToParse, "arrayFilters may not be specified for replacement-style updates")
	}
	for it := u.Iter(); it.Next(); {
		if k := it.Key(); len(k) > 0 && k[0] == '$' && (o.Dollar == nil || !o.Dollar(k)) {
			return merr.New(merr.DollarPrefixedFieldName, "The dollar ($) prefixed field '%s' in '%s' is not "+
				"allowed in the context of an update's replacement document. "+
				"Consider using an aggregation pipeline with $replaceWith.", k, k)
		}
	}
	return nil
}

func (u *Update) compileOperator(name string, arg value.Value, o Options) error {
	mk, ok := ops[name]
	if !ok {
		return merr.New(merr.FailedToParse, "Unknown modifier: %s. Expected a valid update modifier or "+
			"pipeline-style update specified as an array", name)
	}
	if arg.Kind() != value.Object {
		return merr.New(merr.FailedToParse, "Modifiers operate on fields but we found type %s instead. For example: "+
			"{$mod: {<field>: ...}} not {%s: %s}",
			expr.TypeName(arg), name, merr.Show(arg))
	}
	for it := arg.Iter(); it.Next(); {
		path := string(it.Key())
		segs, err := splitPath(path)
		if err != nil {
			return err
		}
		apply, err := mk(path, it.Value(), o)
		if err != nil {
			return err
		}
		n := op{path: path, segs: segs, apply: apply, ins: name == "$setOnInsert"}
		for _, s := range segs {
			n.array = n.array || s[0] == '$' && !expr.DBRefName(s)
		}
		u.ops = append(u.ops, n)
		if name == "$rename" { // the new name is checked for conflicts, and the operator of the old name does the work
			to, err := splitPath(it.Value().Str())
			if err != nil {
				return err
			}
			u.ops = append(u.ops, op{path: it.Value().Str(), segs: to})
		}
	}
	return nil
}

func splitPath(path string) ([]string, error) {
	if path == "" {
		return nil, merr.New(merr.EmptyFieldName, "An empty update path is not valid.")
	}
	segs := strings.Split(path, ".")
	for i, s := range segs {
		if s == "" {
			return nil, merr.New(merr.EmptyFieldName, "The update path '%s' contains an empty field name, which is "+
				"not allowed.", path)
		}
		if s[0] != '$' || expr.DBRefName(s) {
			continue
		}
		if s != "$" && !strings.HasPrefix(s, "$[") {
			return nil, merr.New(merr.DollarPrefixedFieldName, "The dollar ($) prefixed field '%s' in '%s' is not "+
				"allowed in the context of an update's replacement document. "+
				"Consider using an aggregation pipeline with $replaceWith.", s, path)
		}
		if i == 0 {
			return nil, merr.New(merr.BadValue, "Cannot have array filter or positional identifier in the first "+
				"component of path '%s'", path)
		}
	}
	if len(segs) > 200 {
		return nil, merr.New(merr.BadValue, "update path '%.40s..' has too many components", path)
	}
	return segs, nil
}

// arrange sorts the operators by path, which is also the order of new fields, and refuses two operators on the same
// path or on a path and one below it.
func (u *Update) arrange() error {
	sort.SliceStable(u.ops, func(i, j int) bool { return comparePaths(u.ops[i].segs, u.ops[j].segs) < 0 })
	for i := 1; i < len(u.ops); i++ {
		// A prefix sorts directly before the paths below it, unless another path below it is in between.
		a, b := u.ops[i-1], u.ops[i]
		if isPrefix(a.segs, b.segs) {
			return merr.New(merr.ConflictingUpdateOperators, "Updating the path '%s' would create a conflict at '%s'",
				b.path, a.path)
		}
	}
	return nil
}

func isPrefix(a, b []string) bool {
	if len(a) > len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func comparePaths(a, b []string) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		if a[i] == b[i] {
			continue
		}
		x, y := arrayIndex(a[i]), arrayIndex(b[i])
		if x >= 0 && y >= 0 {
			return x - y
		}
		return strings.Compare(a[i], b[i])
	}
	return len(a) - len(b)
}

// Apply returns the changed document with its own bytes. doc isn't changed. Apply refuses a change of `_id`.
func (u *Update) Apply(doc value.Value, c Context) ([]byte, error) {
	var out []byte
	switch {
	case u.replace.IsDefined():
		var err error
		if out, err = u.applyReplacement(doc, c.Stamp); err != nil {
			return nil, err
		}
	case u.pipe != nil:
		v, err := u.pipe.Apply(c.Env, doc)
		if err != nil {
			return nil, err
		}
		out = idFirst(v, doc.Get("_id"))
	default:
		root := newRoot(doc)
		if err := u.applyOps(root, doc, c); err != nil {
			return nil, err
		}
		if err := c.Env.Run.Cut(); err != nil { // a condition of $pull was given up
			return nil, err
		}
		out = root.append(make([]byte, 0, len(doc.Bytes())+64))
	}
	old, now := doc.Get("_id"), value.ObjectOf(out).Get("_id")
	if old.IsDefined() && !filter.Equal(old, now) {
		if u.replace.IsDefined() || u.pipe != nil {
			return nil, merr.New(merr.ImmutableField, "After applying the update, the (immutable) field '_id' was "+
				"found to have been altered to _id: %s", merr.Show(now))
		}
		return nil, merr.New(merr.ImmutableField, "Performing an update on the path '_id' would modify the "+
			"immutable field '_id'")
	}
	return out, nil
}

// idFirst returns a document's bytes with its `_id` in front; old is the `_id` of one that has none.
func idFirst(d, old value.Value) []byte {
	id := d.Get("_id")
	if !id.IsDefined() {
		id = old
	}
	it := d.Iter()
	if !id.IsDefined() || it.Next() && string(it.Key()) == "_id" {
		return d.Bytes()
	}
	at, b := bson.Begin(make([]byte, 0, len(d.Bytes())+24))
	b = value.AppendElement(b, "_id", id)
	for it := d.Iter(); it.Next(); {
		if string(it.Key()) != "_id" {
			b = append(b, it.Element()...)
		}
	}
	return bson.End(b, at)
}

// applyReplacement returns the replacement with the old `_id` in front, and the times of stamp for empty timestamps.
func (u *Update) applyReplacement(doc value.Value, stamp func() uint64) ([]byte, error) {
	id := doc.Get("_id")
	given := u.replace.Get("_id")
	if !id.IsDefined() {
		id = given
	} else if given.IsDefined() && !filter.Equal(id, given) {
		return nil, merr.New(merr.ImmutableField, "After applying the update, the (immutable) field '_id' was found "+
			"to have been altered to _id: %s", merr.Show(given))
	}
	at, b := bson.Begin(make([]byte, 0, len(u.replace.Bytes())+24))
	b = value.AppendElement(b, "_id", id)
	for it := u.replace.Iter(); it.Next(); {
		switch {
		case string(it.Key()) == "_id":
		case EmptyTimestamp(it.Value()):
			b = value.AppendElement(b, string(it.Key()), value.TimestampOf(stamp()))
		default:
			b = append(b, it.Element()...)
		}
	}
	return bson.End(b, at), nil
}

// EmptyTimestamp reports whether v is Timestamp(0, 0), which stands for the time of the write when it is a field of an
// inserted document or of a replacement.
func EmptyTimestamp(v value.Value) bool { return v.Kind() == value.Timestamp && v.Raw64() == 0 }

func (u *Update) applyOps(root *node, doc value.Value, c Context) error {
	for i := range u.ops {
		o := &u.ops[i]
		if o.apply == nil || o.ins && !c.Insert {
			continue
		}
		if !o.array {
			if err := o.apply(root, o.segs, &c); err != nil {
				return err
			}
			continue
		}
		paths, err := u.expand(root, o.path, nil, o.segs, doc, c)
		if err != nil {
			return err
		}
		for _, p := range paths {
			if err := o.apply(root, p, &c); err != nil {
				return err
			}
		}
	}
	return nil
}

// Base returns the document from which an upsert starts: the equalities of the query.
func Base(eqs []filter.Equality) ([]byte, error) {
	root := newRoot(value.ObjectOf(bson.Empty))
	for i, e := range eqs {
		segs := strings.Split(e.Path, ".")
		for _, other := range eqs[:i] {
			o := strings.Split(other.Path, ".")
			switch {
			case other.Path == e.Path:
				return nil, merr.New(merr.NotSingleValueField, "cannot infer query fields to set, path '%s' is "+
					"matched twice", e.Path)
			case isPrefix(o, segs) || isPrefix(segs, o):
				return nil, merr.New(merr.NotSingleValueField, "cannot infer query fields to set, both paths '%s' and "+
					"'%s' are matched", other.Path, e.Path)
			}
		}
		if err := root.put(segs, e.Value); err != nil {
			return nil, err
		}
	}
	return root.append(nil), nil
}
