package mongoapi

import (
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/collation"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
	"github.com/orrerydb/orrery/mongoapi/project"
	"github.com/orrerydb/orrery/mongoapi/update"
)

func cannotCreate(format string, args ...any) error {
	return merr.New(merr.CannotCreateIndex, format, args...)
}

// indexDoc validates an index of createIndexes and returns the document that is stored and listed: v, key, name, and
// the options that are set. With lenient, unknown options are left out.
func indexDoc(spec value.Value, lenient bool) (value.Value, error) {
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
	var texts []string
	words := isText(spec)
	if words {
		var err error
		if key, texts, err = textKey(key); err != nil {
			return spec, err
		}
	}
	version, err := indexVersion(spec)
	if err != nil {
		return spec, err
	}
	at, b := bson.Begin(nil)
	b = bson.AppendInt32(b, "v", version)
	b = value.AppendElement(b, "key", key)
	b = value.AppendElement(b, "name", name)
	for it := spec.Iter(); it.Next(); {
		if words && textOption[string(it.Key())] {
			continue
		}
		o := indexOption{string(it.Key()), it.Value(), spec, key}
		v, err := o.stored(lenient)
		if err != nil {
			return spec, err
		}
		if v.IsDefined() {
			b = value.AppendElement(b, o.name, v)
		}
	}
	if words {
		b, err = textOptions(b, spec, texts)
	} else {
		b, err = placeOptions(b, spec)
	}
	if err != nil {
		return spec, err
	}
	d := value.ObjectOf(bson.End(b, at))
	return d, checkIndexOptions(d)
}

// indexVersion returns the version of an index, which is stored and listed.
func indexVersion(spec value.Value) (int32, error) {
	v := spec.Get("v")
	if !v.IsDefined() {
		return 2, nil
	}
	if !v.IsNumber() {
		return 0, merr.New(merr.TypeMismatch, "The field 'v' must be a number, but got %s", expr.TypeName(v))
	}
	n, ok := num.ToInt64(v, false)
	if !ok || n < 1 || n > 2 {
		return 0, cannotCreate("Invalid index specification %s; cannot create an index with v=%s", update.Show(spec),
			update.Show(v))
	}
	return int32(n), nil
}

// idKey reports whether a key is that of the index on `_id`.
func idKey(key value.Value) bool {
	it := key.Iter()
	return key.Len() == 1 && it.Next() && string(it.Key()) == "_id" && it.Value().IsNumber()
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
			case "2dsphere", "2d", "text":
			case "geoHaystack":
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
		if path == "$**" && v.Kind() == value.String && v.Str() != "text" {
			return cannotCreate("A wildcard index can't be of the type %s", v.Str())
		}
		if strings.HasPrefix(path, "$") && path != "$**" {
			return cannotCreate("Index key contains an illegal field name: field name starts with '$'.")
		}
	}
	return nil
}

// indexOption is an option of an index specification.
type indexOption struct {
	name      string
	v         value.Value
	spec, key value.Value
}

// stored returns the option as it is stored, Undefined if it isn't.
func (o indexOption) stored(lenient bool) (value.Value, error) {
	switch o.name {
	case "key", "name", "v", "ns":
		return value.Undef(), nil
	case "collation":
		if o.v.Kind() != value.Object {
			return o.v, merr.New(merr.TypeMismatch, "The field 'collation' must be an object, but got %s",
				expr.TypeName(o.v))
		}
		if o.v.Len() == 0 {
			return o.v, merr.New(merr.BadValue, "The field 'collation' cannot be an empty object.")
		}
		c, err := collation.Parse(o.v)
		return collation.Doc(c), err
	}
	if idKey(o.key) && indexOptions[o.name] != "" {
		return o.v, merr.New(merr.InvalidIndexSpecification, "The field '%s' is not valid for an _id index "+
			"specification. Specification: %s", o.name, update.Show(o.spec))
	}
	mismatch := func(want string) error {
		return merr.New(merr.TypeMismatch, "The field '%s' must be %s, but got %s", o.name, want, expr.TypeName(o.v))
	}
	switch indexOptions[o.name] {
	case "flag":
		switch {
		case o.v.Kind() != value.Bool && !o.v.IsNumber():
			return o.v, mismatch("a bool")
		case o.name == "background" || !expr.Truthy(o.v): // builds never stop writers
			return value.Undef(), nil
		}
		return value.BoolOf(true), nil
	case "seconds":
		return o.seconds()
	case "object":
		if o.v.Kind() != value.Object {
			return o.v, mismatch("an object")
		}
		return o.v, nil
	case "any":
		return o.v, nil
	case "refused":
		return o.v, cannotCreate("the index option %s is not supported by this server", o.name)
	}
	if lenient {
		return value.Undef(), nil
	}
	return o.v, merr.New(merr.InvalidIndexSpecification, "The field '%s' is not valid for an index specification. "+
		"Specification: %s", o.name, update.Show(o.spec))
}

// indexOptions has the kinds of the options.
var indexOptions = map[string]string{
	"unique": "flag", "sparse": "flag", "hidden": "flag", "background": "flag", "expireAfterSeconds": "seconds",
	"partialFilterExpression": "object", "wildcardProjection": "object", "storageEngine": "object",
	"weights": "any", "default_language": "any", "language_override": "any", "textIndexVersion": "any",
	"2dsphereIndexVersion": "any", "bits": "any", "min": "any", "max": "any", "bucketSize": "any", "comment": "any",
	"clustered": "refused", "prepareUnique": "refused", "dropDups": "refused",
}

// textOption are the options of text indexes, which textOptions writes.
var textOption = map[string]bool{"weights": true, "default_language": true, "language_override": true,
	"textIndexVersion": true}

// seconds returns expireAfterSeconds.
func (o indexOption) seconds() (value.Value, error) {
	if !o.v.IsNumber() {
		return o.v, cannotCreate("TTL index 'expireAfterSeconds' option must be numeric, but received a type of '%s'. "+
			"Index spec: %s", expr.TypeName(o.v), update.Show(o.spec))
	}
	n, ok := num.ToInt64(o.v, true)
	if ok && n < 0 {
		return o.v, cannotCreate("TTL index 'expireAfterSeconds' option cannot be less than 0. Index spec: %s",
			update.Show(o.spec))
	}
	if !ok || n > 1<<31-1 {
		return o.v, cannotCreate("TTL index 'expireAfterSeconds' option must be within an acceptable range, try a "+
			"lower number. Index spec: %s", update.Show(o.spec))
	}
	return value.Int32Of(int32(n)), nil
}

// checkIndexOptions refuses options that don't go together.
func checkIndexOptions(d value.Value) error {
	key := d.Get("key")
	wild, hashed := false, 0
	for it := key.Iter(); it.Next(); {
		name := string(it.Key())
		wild = wild || name == "$**" || strings.HasSuffix(name, ".$**")
		if it.Value().Kind() == value.String && it.Value().Str() == "hashed" {
			hashed++
		}
	}
	set := func(name string) bool { return d.Get(name).IsDefined() }
	switch {
	case set("sparse") && set("partialFilterExpression"):
		return cannotCreate("cannot mix \"partialFilterExpression\" and \"sparse\" options")
	case wild && set("unique"):
		return cannotCreate("Index type 'wildcard' does not support the unique option")
	case wild && set("sparse"):
		return cannotCreate("Index type 'wildcard' does not support the sparse option")
	case wild && set("expireAfterSeconds"):
		return cannotCreate("Index type 'wildcard' cannot be a TTL index")
	case !wild && set("wildcardProjection"):
		return merr.New(merr.BadValue, "The field 'wildcardProjection' is only allowed in 'wildcard' indexes")
	case set("wildcardProjection") && !key.Get("$**").IsDefined():
		return merr.New(merr.FailedToParse, "The field 'wildcardProjection' is only allowed when 'key' is "+
			"{\"$**\": \u00b11}")
	case set("wildcardProjection") && d.Get("wildcardProjection").Len() == 0:
		return merr.New(merr.FailedToParse, "The 'wildcardProjection' field can't be an empty object")
	case hashed > 1:
		return merr.New(31303, "A maximum of one index field is allowed to be hashed but found %d for 'key' %s", hashed,
			update.Show(key))
	case hashed > 0 && set("unique"):
		return merr.New(merr.HashedUnique, "Currently hashed indexes cannot guarantee uniqueness. Use a regular index.")
	case set("expireAfterSeconds") && key.Len() != 1:
		return cannotCreate("TTL indexes are single-field indexes, compound indexes do not support TTL. Index spec: %s",
			update.Show(d))
	case set("expireAfterSeconds") && onTS(d) && d.Get("expireAfterSeconds").Int() == 0:
		return cannotCreate("TTL index 'expireAfterSeconds' on '_ts' must be positive on this server")
	}
	if p := d.Get("wildcardProjection"); p.IsDefined() {
		if _, err := project.Compile(p, project.Options{}); err != nil {
			return err
		}
	}
	_, err := declaredOf(d)
	return err
}

// onTS reports whether an index is on the time of the last write. With a lifetime it sets the container's default time
// to live, as in the service.
func onTS(d value.Value) bool {
	it := d.Get("key").Iter()
	return it.Next() && string(it.Key()) == "_ts"
}

// declaredOf returns what the core enforces of an index.
func declaredOf(d value.Value) (out []core.Declared, err error) {
	x := core.Declared{Name: d.Get("name").Str(), Sparse: d.Get("sparse").IsDefined()}
	for it := d.Get("key").Iter(); it.Next(); {
		x.Paths = append(x.Paths, strings.Split(string(it.Key()), "."))
	}
	if f := d.Get("partialFilterExpression"); f.IsDefined() {
		if x.Only, err = partialFilter(f, 0); err != nil {
			return nil, err
		}
	}
	c, err := collation.Parse(d.Get("collation"))
	if err != nil {
		return nil, err
	}
	if c != nil {
		o := c.Options()
		x.Collation, x.CollatedOnly = &o, x.Only != nil
	}
	if d.Get("unique").IsDefined() {
		u := x
		u.Unique = true
		out = append(out, u)
	}
	if after := d.Get("expireAfterSeconds"); after.IsDefined() && !onTS(d) {
		n := int32(after.Int())
		x.After = &n
		out = append(out, x)
	}
	return out, nil
}

// maxFilterDepth is the depth of $and and $or in the filter of a partial index.
const maxFilterDepth = 20

// partialFilter translates the filter of a partial index.
func partialFilter(f value.Value, depth int) (*core.Condition, error) {
	if depth > maxFilterDepth {
		return nil, cannotCreate("the partialFilterExpression is too deep")
	}
	out := &core.Condition{}
	for it := f.Iter(); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch {
		case name == "$and" || name == "$or":
			parts, err := partialFilters(name, v, depth)
			if err != nil {
				return nil, err
			}
			if name == "$and" {
				out.All = append(out.All, parts...)
			} else {
				out.All = append(out.All, core.Condition{Any: parts})
			}
		case strings.HasPrefix(name, "$"):
			return nil, inPartial(name)
		case v.Kind() == value.Object && operators(v):
			for ops := v.Iter(); ops.Next(); {
				part, err := partialOperator(strings.Split(name, "."), string(ops.Key()), ops.Value())
				if err != nil {
					return nil, err
				}
				out.All = append(out.All, part)
			}
		default:
			part, err := partialOperator(strings.Split(name, "."), "$eq", v)
			if err != nil {
				return nil, err
			}
			out.All = append(out.All, part)
		}
	}
	return out, nil
}

func inPartial(what string) error {
	return cannotCreate("Expression not supported in partial index: %s", what)
}

// operators reports whether an object has operators and isn't a value.
func operators(v value.Value) bool {
	it := v.Iter()
	return it.Next() && strings.HasPrefix(string(it.Key()), "$")
}

func partialFilters(name string, v value.Value, depth int) (out []core.Condition, err error) {
	if v.Kind() != value.Array || v.Len() == 0 {
		return nil, merr.New(merr.BadValue, "%s argument must be a non-empty array", name)
	}
	for it := v.Iter(); it.Next(); {
		if it.Value().Kind() != value.Object {
			return nil, merr.New(merr.BadValue, "%s argument's entries must be objects", name)
		}
		part, err := partialFilter(it.Value(), depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, *part)
	}
	return out, nil
}

// comparisons are the comparisons of a partial index's filter.
var comparisons = map[string]string{"$eq": core.OpEqual, "$lt": core.OpLess, "$lte": core.OpLessOrEqual,
	"$gt": core.OpGreater, "$gte": core.OpGreaterOrEqual}

func partialOperator(path []string, op string, v value.Value) (c core.Condition, err error) {
	switch op {
	case "$exists":
		if !expr.Truthy(v) {
			return c, inPartial("$not")
		}
		return core.Condition{Op: core.OpExists, Path: path}, nil
	case "$type":
		return partialTypes(path, v)
	case "$in":
		if v.Kind() != value.Array || v.Len() == 0 {
			return c, merr.New(merr.BadValue, "$in needs an array")
		}
		for it := v.Iter(); it.Next(); {
			part, err := partialOperator(path, "$eq", it.Value())
			if err != nil {
				return c, err
			}
			c.Any = append(c.Any, part)
		}
		return c, nil
	}
	is, ok := comparisons[op]
	if !ok || v.Kind() == value.Regex {
		return c, inPartial(op)
	}
	return core.Condition{Op: is, Path: path, Value: value.AppendTyped(nil, v)}, nil
}

// partialTypes translates $type: a name or number of a type, or several.
func partialTypes(path []string, v value.Value) (core.Condition, error) {
	list := []value.Value{v}
	if v.Kind() == value.Array {
		list = value.Elements(v)
	}
	c := core.Condition{Op: core.OpType, Path: path}
	for _, t := range list {
		n, number := num.ToInt64(t, true)
		switch {
		case t.Kind() == value.String && t.Str() == "number":
			c.Types = append(c.Types, bson.TypeDouble, bson.TypeInt32, bson.TypeInt64, bson.TypeDecimal128)
		case t.Kind() == value.String && typeNumbers[t.Str()] != 0:
			c.Types = append(c.Types, typeNumbers[t.Str()])
		case number && n > 0 && n < 256:
			c.Types = append(c.Types, byte(n))
		case number && n == -1:
			c.Types = append(c.Types, bson.TypeMinKey)
		default:
			return c, merr.New(merr.BadValue, "Unknown type name alias: %s", update.Show(t))
		}
	}
	return c, nil
}

// typeNumbers are the types by their names in $type.
var typeNumbers = map[string]byte{
	"double": bson.TypeDouble, "string": bson.TypeString, "object": bson.TypeDocument, "array": bson.TypeArray,
	"binData": bson.TypeBinary, "objectId": bson.TypeObjectID, "bool": bson.TypeBool, "date": bson.TypeDate,
	"null": bson.TypeNull, "regex": bson.TypeRegex, "javascript": bson.TypeCode, "symbol": bson.TypeSymbol,
	"int": bson.TypeInt32, "timestamp": bson.TypeTimestamp, "long": bson.TypeInt64, "decimal": bson.TypeDecimal128,
	"minKey": bson.TypeMinKey, "maxKey": bson.TypeMaxKey,
}

// known reports whether an index is already declared. An index is told by its key, filter, and whether it is unique or
// sparse. One with the same name that is another one is an error, and so is the same one with another name or other
// options.
func (k *coll) known(specs []value.Value, d value.Value) (bool, error) {
	if idKey(d.Get("key")) {
		return true, nil
	}
	for _, o := range append([]value.Value{idIndex()}, specs...) {
		same, name := sameIndex(o, d), o.Get("name").Str()
		switch sameName := name == d.Get("name").Str(); {
		case sameName && same && sameOptions(o, d):
			return true, nil
		case sameName && same:
			return false, merr.New(merr.IndexOptionsConflict, "An equivalent index already exists with the same "+
				"name but different options. Requested index: %s, existing index: %s", update.Show(d), update.Show(o))
		case sameName:
			return false, merr.New(merr.IndexKeySpecsConflict, "An existing index has the same name as the "+
				"requested index. When index names are not specified, they are auto generated and can cause "+
				"conflicts. Please refer to our documentation. Requested index: %s, existing index: %s", update.Show(d),
				update.Show(o))
		}
	}
	for _, o := range specs {
		if !sameIndex(o, d) {
			continue
		}
		if sameOptions(o, d) {
			return false, merr.New(merr.IndexOptionsConflict, "Index already exists with a different name: %s",
				o.Get("name").Str())
		}
		return false, merr.New(merr.IndexOptionsConflict, "An equivalent index already exists with a different name "+
			"and options. Requested index: %s, existing index: %s", update.Show(d), update.Show(o))
	}
	return false, nil
}

// telling are the fields that tell an index from others.
var telling = []string{"key", "unique", "sparse", "partialFilterExpression", "collation"}

func sameIndex(a, b value.Value) bool {
	for _, name := range telling {
		if value.CompareBSON(a.Get(name), b.Get(name)) != 0 {
			return false
		}
	}
	return true
}

// sameOptions reports whether two indexes have the same other options. Whether they are hidden doesn't count.
func sameOptions(a, b value.Value) bool {
	for name := range indexOptions {
		if name != "hidden" && name != "comment" && value.CompareBSON(a.Get(name), b.Get(name)) != 0 {
			return false
		}
	}
	return true
}
