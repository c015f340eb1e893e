package mongoapi

import (
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
	"github.com/orrerydb/orrery/mongoapi/update"
)

// indexProperty is the container's property with a collection's declared indexes: a BSON array of their documents. The
// core indexes every path. A declaration is listed for clients, and a compound index also becomes a composite index of
// the indexing policy.
const indexProperty = "mongo.indexes"

const maxIndexes = 500

// idIndex is the index that every collection has.
func idIndex() value.Value {
	at, b := bson.Begin(nil)
	b = bson.AppendInt32(b, "v", 2)
	ka, b := bson.BeginObject(b, "key")
	b = bson.End(bson.AppendInt32(b, "_id", 1), ka)
	return value.ObjectOf(bson.End(bson.AppendString(b, "name", "_id_"), at))
}

// indexSpecs returns the declared indexes, without the one on `_id`.
func (k *coll) indexSpecs() []value.Value { return indexSpecsOf(k.Definition) }

func indexSpecsOf(c core.Definition) []value.Value {
	if b := c.Spec().Properties[indexProperty]; len(b) >= 5 {
		return value.Elements(value.ArrayOf(b))
	}
	return nil
}

// saveIndexes stores the declared indexes. An index on _ts with a lifetime sets the container's default time to live.
func (r *request) saveIndexes(k *coll, specs []value.Value) error {
	s := k.Spec().Clone()
	if s.Properties == nil {
		s.Properties = map[string][]byte{}
	}
	s.Properties[indexProperty] = value.MakeArray(specs).Bytes()
	s.IndexingPolicy = policyFor(s.IndexingPolicy, k.indexSpecs(), specs)
	had, has := false, (*int32)(nil)
	for _, o := range k.indexSpecs() {
		had = had || o.Get("expireAfterSeconds").IsDefined()
	}
	for _, n := range specs {
		if ttl := n.Get("expireAfterSeconds"); ttl.IsDefined() {
			n64, _ := num.ToInt64(ttl, true)
			n32 := int32(n64)
			has = &n32
		}
	}
	if had || has != nil {
		s.DefaultTTL = has
	}
	c, err := r.s.eng.ReplaceContainer(r.ctx, k.Database(), k.ID(), s)
	if err == nil {
		*k = *newColl(c)
	}
	return err
}

func cannotCreate(format string, args ...any) error {
	return merr.New(merr.CannotCreateIndex, format, args...)
}

// indexDoc validates an index of createIndexes and returns the document that is stored and listed.
func indexDoc(spec value.Value) (value.Value, error) {
	if spec.Kind() != value.Object {
		return spec, merr.New(merr.TypeMismatch, "The elements of the 'indexes' array must be objects, but got %s",
			expr.TypeName(spec))
	}
	key := spec.Get("key")
	if key.Kind() != value.Object {
		return spec, merr.New(merr.FailedToParse, "The 'key' field is a required property of an index specification")
	}
	if err := checkIndexKey(key); err != nil {
		return spec, err
	}
	name := spec.Get("name")
	if name.Kind() != value.String || len(name.Bytes()) == 0 {
		return spec, merr.New(merr.FailedToParse, "The 'name' field is a required property of an index specification")
	}
	if name.Str() == "*" {
		return spec, cannotCreate("The index name '*' is not valid.")
	}
	at, b := bson.Begin(nil)
	b = bson.AppendInt32(b, "v", 2)
	b = value.AppendElement(b, "key", key)
	b = value.AppendElement(b, "name", name)
	for it := spec.Iter(); it.Next(); {
		k, v := string(it.Key()), it.Value()
		if err := checkIndexOption(k, v, key); err != nil {
			return spec, err
		}
		switch k {
		case "expireAfterSeconds", "hidden", "wildcardProjection":
			b = value.AppendElement(b, k, v)
		}
	}
	return value.ObjectOf(bson.End(b, at)), nil
}

func checkIndexKey(key value.Value) error {
	if key.Len() == 0 {
		return cannotCreate("Index keys cannot be empty.")
	}
	if key.Len() > 32 {
		return cannotCreate("Index key pattern has more than 32 fields")
	}
	for it := key.Iter(); it.Next(); {
		path, v := string(it.Key()), it.Value()
		switch {
		case v.IsNumber():
			if num.IsZero(v) {
				return cannotCreate("Values in the index key pattern cannot be 0.")
			}
		case v.Kind() == value.String:
			switch v.Str() {
			case "hashed": // it guarantees no order, and every path supports equality
			case "text", "2dsphere", "2d", "geoHaystack":
				return cannotCreate("%s indexes are not supported by this server", v.Str())
			default:
				return cannotCreate("Unknown index plugin '%s'", v.Str())
			}
		default:
			return cannotCreate("Values in v:2 index key pattern cannot be of type %s. Only numbers > 0, numbers < "+
				"0, and strings are allowed.", expr.TypeName(v))
		}
		if path == "" || strings.Contains(path, "..") || strings.HasPrefix(path, ".") || strings.HasSuffix(path, ".") {
			return cannotCreate("Index keys cannot contain an empty field.")
		}
		if strings.HasPrefix(path, "$") && path != "$**" {
			return cannotCreate("Index key contains an illegal field name: field name starts with '$'.")
		}
	}
	return nil
}

// checkIndexOption refuses options that the store wouldn't enforce.
func checkIndexOption(k string, v, key value.Value) error {
	switch k {
	case "key", "name", "v", "ns", "background", "hidden", "wildcardProjection", "textIndexVersion",
		"2dsphereIndexVersion", "comment":
		return nil
	case "unique":
		if it := key.Iter(); it.Next() && string(it.Key()) == "_id" && key.Len() == 1 {
			return nil
		}
		if expr.Truthy(v) {
			return cannotCreate("unique indexes on other fields than _id are not supported by this server")
		}
	case "sparse":
		if expr.Truthy(v) {
			return cannotCreate("sparse indexes are not supported by this server")
		}
	case "partialFilterExpression":
		return cannotCreate("partial indexes are not supported by this server")
	case "collation":
		if checkCollation(v) != nil {
			return cannotCreate("indexes with a collation are not supported by this server")
		}
	case "expireAfterSeconds":
		n, ok := num.ToInt64(v, true)
		if !ok || n < 0 || n > 1<<31-1 {
			return cannotCreate("TTL index 'expireAfterSeconds' option must be within an acceptable range, try a " +
				"lower number")
		}
		it := key.Iter()
		if it.Next(); key.Len() != 1 || string(it.Key()) != "_ts" {
			return cannotCreate("The 'expireAfterSeconds' option is supported on '_ts' field only")
		}
		if n == 0 {
			return cannotCreate("TTL index 'expireAfterSeconds' must be positive on this server")
		}
	case "storageEngine", "weights", "default_language", "language_override", "bits", "min", "max", "bucketSize",
		"clustered", "prepareUnique":
		return cannotCreate("the index option %s is not supported by this server", k)
	default:
		return merr.New(merr.InvalidIndexSpecification, "The field '%s' is not valid for an index specification. "+
			"Specification: %s", k, update.Show(key))
	}
	return nil
}

func createIndexes(r *request, dst []byte) ([]byte, error) {
	name, err := r.collection()
	if err != nil {
		return dst, err
	}
	list := given(r.body, "indexes")
	if !list.IsDefined() {
		return dst, merr.New(merr.MissingField, "BSON field 'createIndexes.indexes' is missing but a required field")
	}
	if list.Len() == 0 {
		return dst, merr.New(merr.BadValue, "Must specify at least one index to create")
	}
	var docs []value.Value
	for _, spec := range value.Elements(list) {
		d, err := indexDoc(spec)
		if err != nil {
			return dst, err
		}
		docs = append(docs, d)
	}
	k, created, err := r.ensure(r.db, name)
	if err != nil {
		return dst, err
	}
	specs := k.indexSpecs()
	before := len(specs) + 1
	changed := false
	for _, d := range docs {
		known, err := k.known(specs, d)
		if err != nil {
			return dst, err
		}
		if !known {
			specs, changed = append(specs, d), true
		}
	}
	if len(specs) > maxIndexes {
		return dst, cannotCreate("add index fails, too many indexes for %s", k.namespace())
	}
	if changed {
		if err := r.saveIndexes(k, specs); err != nil {
			return dst, err
		}
	}
	dst = bson.AppendInt32(dst, "numIndexesBefore", int32(before))
	dst = bson.AppendInt32(dst, "numIndexesAfter", int32(len(specs)+1))
	dst = bson.AppendBool(dst, "createdCollectionAutomatically", created)
	if !changed {
		dst = bson.AppendString(dst, "note", "all indexes already exist")
	}
	return dst, nil
}

// known reports whether an index is already declared. The same name or key with other content is an error.
func (k *coll) known(specs []value.Value, d value.Value) (bool, error) {
	for _, o := range append([]value.Value{idIndex()}, specs...) {
		sameKey := value.CompareBSON(o.Get("key"), d.Get("key")) == 0
		sameName := o.Get("name").Str() == d.Get("name").Str()
		switch {
		case sameKey && o.Get("name").Str() == "_id_":
			return true, nil
		case sameKey && sameName && value.CompareBSON(o.Get("expireAfterSeconds"), d.Get("expireAfterSeconds")) == 0:
			return true, nil
		case sameKey && sameName:
			return false, merr.New(merr.IndexOptionsConflict, "An equivalent index already exists with the same "+
				"name but different options. Requested index: %s, existing index: %s", update.Show(d), update.Show(o))
		case sameName:
			return false, merr.New(merr.IndexKeySpecsConflict, "An existing index has the same name as the "+
				"requested index. When index names are not specified, they are auto generated and can cause "+
				"conflicts. Please refer to our documentation. Requested index: %s, existing index: %s", update.Show(d),
				update.Show(o))
		case sameKey:
			return false, merr.New(merr.IndexOptionsConflict, "Index already exists with a different name: %s",
				o.Get("name").Str())
		}
	}
	return false, nil
}

func listIndexes(r *request, dst []byte) ([]byte, error) {
	name, err := r.collection()
	if err != nil {
		return dst, err
	}
	k, err := r.open(r.db, name)
	if err != nil {
		return dst, err
	}
	if k == nil {
		return dst, merr.New(merr.NamespaceNotFound, "ns does not exist: %s.%s", r.db, name)
	}
	return r.list(dst, k.namespace(), append([]value.Value{idIndex()}, k.indexSpecs()...))
}

func dropIndexes(r *request, dst []byte) ([]byte, error) {
	name, err := r.collection()
	if err != nil {
		return dst, err
	}
	k, err := r.open(r.db, name)
	if err != nil {
		return dst, err
	}
	if k == nil {
		return dst, merr.New(merr.NamespaceNotFound, "ns not found %s.%s", r.db, name)
	}
	specs := k.indexSpecs()
	was := len(specs) + 1
	which := []value.Value{r.body.Get("index")}
	if which[0].Kind() == value.Array {
		which = value.Elements(which[0])
	}
	for _, w := range which {
		if specs, err = without(specs, w); err != nil {
			return dst, err
		}
	}
	if len(specs)+1 != was {
		if err := r.saveIndexes(k, specs); err != nil {
			return dst, err
		}
	}
	return bson.AppendInt32(dst, "nIndexesWas", int32(was)), nil
}

// without removes the indexes that w names: by name, by key, or all with "*".
func without(specs []value.Value, w value.Value) ([]value.Value, error) {
	if w.Kind() == value.String && w.Str() == "*" {
		return nil, nil
	}
	if w.Kind() != value.String && w.Kind() != value.Object {
		return nil, merr.New(merr.TypeMismatch, "BSON field 'dropIndexes.index' is the wrong type '%s', expected "+
			"types '[string, object]'", expr.TypeName(w))
	}
	if w.Str() == "_id_" || w.Kind() == value.Object && value.CompareBSON(w, idIndex().Get("key")) == 0 {
		return nil, merr.New(merr.InvalidOptions, "cannot drop _id index")
	}
	for i, s := range specs {
		if w.Kind() == value.String && s.Get("name").Str() == w.Str() || w.Kind() == value.Object &&
			value.CompareBSON(s.Get("key"), w) == 0 {
			return append(append([]value.Value(nil), specs[:i]...), specs[i+1:]...), nil
		}
	}
	if w.Kind() == value.String {
		return nil, merr.New(merr.IndexNotFound, "index not found with name [%s]", w.Str())
	}
	return nil, merr.New(merr.IndexNotFound, "can't find index with key: %s", update.Show(w))
}
