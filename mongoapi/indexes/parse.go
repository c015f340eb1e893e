package indexes

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

// CannotCreate is the error for an index that can't be: 67.
func CannotCreate(format string, args ...any) error {
	return merr.New(merr.CannotCreateIndex, format, args...)
}

// Parse validates an index of createIndexes and returns the document that is stored and listed: v, key, name, and
// the options that are set. With lenient, unknown options are left out.
func Parse(spec value.Value, lenient bool) (value.Value, error) {
	if spec.Kind() != value.Object {
		return spec, merr.New(merr.TypeMismatch, "The elements of the 'indexes' array must be objects, but got %s",
			expr.TypeName(spec))
	}
	d, err := parse(spec, lenient)
	if e, ok := err.(*merr.Error); ok && !(IsOnID(spec.Get("key")) && e.Code == merr.InvalidIndexSpecification) {
		c := *e
		c.Msg = "Error in specification " + update.Show(spec) + " :: caused by :: " + e.Msg
		return spec, &c
	}
	if err == nil && d.Get("name").Str() == "*" {
		err = merr.New(merr.BadValue, "The index name '*' is not valid.")
	}
	return d, err
}

func parse(spec value.Value, lenient bool) (value.Value, error) {
	key, name := spec.Get("key"), spec.Get("name")
	mismatch := func(name, want string, v value.Value) error {
		return merr.New(merr.TypeMismatch, "The field '%s' must be %s, but got %s", name, want, expr.TypeName(v))
	}
	if key.IsDefined() && key.Kind() != value.Object {
		return spec, mismatch("key", "an object", key)
	}
	if key.IsDefined() {
		if err := checkKey(key); err != nil {
			return spec, err
		}
	}
	switch {
	case name.IsDefined() && name.Kind() != value.String:
		return spec, mismatch("name", "a string", name)
	case !key.IsDefined():
		return spec, merr.New(merr.FailedToParse, "The 'key' field is a required property of an index specification")
	case !name.IsDefined():
		return spec, merr.New(merr.FailedToParse, "The 'name' field is a required property of an index specification")
	case len(name.Bytes()) == 0:
		return spec, CannotCreate("index name cannot be empty")
	case strings.IndexByte(name.Str(), 0) >= 0:
		return spec, CannotCreate("index name cannot contain NUL bytes")
	}
	var texts []string
	words := isText(spec)
	if words {
		var err error
		if key, texts, err = textKey(key); err != nil {
			return spec, err
		}
	}
	version, err := version(spec)
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
		o := option{string(it.Key()), it.Value(), spec, key}
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
	return d, CheckOptions(d)
}

// version returns the version of an index, which is stored and listed.
func version(spec value.Value) (int32, error) {
	v := spec.Get("v")
	if !v.IsDefined() {
		return 2, nil
	}
	if !v.IsNumber() {
		return 0, merr.New(merr.TypeMismatch, "The field 'v' must be a number, but got %s", expr.TypeName(v))
	}
	n, ok := num.ToInt64(v, false)
	if !ok || n < 1 || n > 2 {
		return 0, CannotCreate("Invalid index specification %s; cannot create an index with v=%s", update.Show(spec),
			update.Show(v))
	}
	return int32(n), nil
}

func checkKey(key value.Value) error {
	if key.Len() == 0 {
		return CannotCreate("Index keys cannot be empty.")
	}
	if key.Len() > 32 {
		return CannotCreate("Index key pattern has more than 32 fields")
	}
	for it := key.Iter(); it.Next(); {
		path, v := string(it.Key()), it.Value()
		switch {
		case v.IsNumber():
			if num.IsZero(v) {
				return CannotCreate("Values in the index key pattern cannot be 0.")
			}
		case v.Kind() == value.String:
			switch v.Str() {
			case "hashed": // it guarantees no order, and every path supports equality
			case "2dsphere", "2d", "text":
			case cosmosSearch:
				if key.Len() != 1 {
					return CannotCreate("Can not create compound index with cosmosSearch")
				}
			case "geoHaystack":
				return CannotCreate("%s indexes are not supported by this server", v.Str())
			default:
				return CannotCreate("Unknown index plugin '%s'", v.Str())
			}
		default:
			return CannotCreate("Values in v:2 index key pattern cannot be of type %s. Only numbers > 0, numbers < "+
				"0, and strings are allowed.", expr.TypeName(v))
		}
		if path == "" || strings.Contains(path, "..") || strings.HasPrefix(path, ".") || strings.HasSuffix(path, ".") {
			return CannotCreate("Index keys cannot contain an empty field.")
		}
		if path == "$**" && v.Kind() == value.String && v.Str() != "text" {
			return CannotCreate("A wildcard index can't be of the type %s", v.Str())
		}
		for i, part := range strings.Split(path, ".") {
			switch {
			case !strings.HasPrefix(part, "$"), part == "$**":
			case i > 0 && (part == "$id" || part == "$ref" || part == "$db"): // of a DBRef
			default:
				return CannotCreate("Index key contains an illegal field name: field name starts with '$'.")
			}
		}
	}
	return nil
}

// option is an option of an index specification.
type option struct {
	name      string
	v         value.Value
	spec, key value.Value
}

// stored returns the option as it is stored, Undefined if it isn't.
func (o option) stored(lenient bool) (value.Value, error) {
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
	if IsOnID(o.key) && options[o.name] != "" {
		return o.v, merr.New(merr.InvalidIndexSpecification, "The field '%s' is not valid for an _id index "+
			"specification. Specification: %s", o.name, update.Show(o.spec))
	}
	mismatch := func(want string) error {
		return merr.New(merr.TypeMismatch, "The field '%s' must be %s, but got %s", o.name, want, expr.TypeName(o.v))
	}
	switch options[o.name] {
	case "flag":
		switch {
		case o.name == "hidden" && o.v.Kind() != value.Bool:
			return o.v, mismatch("a bool")
		case o.v.Kind() != value.Bool && !o.v.IsNumber(): // the quote isn't closed in MongoDB's text either
			return o.v, merr.New(merr.TypeMismatch, "The field '%s has value %s: %s, which is not convertible to bool",
				o.name, o.name, update.Show(o.v))
		case o.name == "background", o.name == "sparse": // kept as they were given; builds never stop writers
			return value.BoolOf(expr.Truthy(o.v)), nil
		case !expr.Truthy(o.v):
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
	case "ignored": // of old clients: MongoDB drops no duplicates since 3.0
		return value.Undef(), nil
	case "refused":
		return o.v, CannotCreate("the index option %s is not supported by this server", o.name)
	}
	if lenient {
		return value.Undef(), nil
	}
	return o.v, merr.New(merr.InvalidIndexSpecification, "The field '%s' is not valid for an index specification. "+
		"Specification: %s", o.name, update.Show(o.spec))
}

// options has the kinds of the options.
var options = map[string]string{
	"unique": "flag", "sparse": "flag", "hidden": "flag", "background": "flag", "expireAfterSeconds": "seconds",
	"partialFilterExpression": "object", "wildcardProjection": "object", "storageEngine": "object",
	"weights": "any", "default_language": "any", "language_override": "any", "textIndexVersion": "any",
	"2dsphereIndexVersion": "any", "bits": "any", "min": "any", "max": "any", "bucketSize": "any", "comment": "any",
	cosmosOptions: "object",
	"clustered":   "refused", "prepareUnique": "flag", "dropDups": "ignored",
}

// textOption are the options of text indexes, which textOptions writes.
var textOption = map[string]bool{"weights": true, "default_language": true, "language_override": true,
	"textIndexVersion": true}

// Seconds checks the option expireAfterSeconds of a specification, and returns it as it is stored.
func Seconds(v, spec value.Value) (value.Value, error) {
	return option{"expireAfterSeconds", v, spec, value.Undef()}.seconds()
}

// seconds returns expireAfterSeconds.
func (o option) seconds() (value.Value, error) {
	if !o.v.IsNumber() {
		return o.v, CannotCreate("TTL index 'expireAfterSeconds' option must be numeric, but received a type of '%s'. "+
			"Index spec: %s", expr.TypeName(o.v), update.Show(o.spec))
	}
	n, ok := num.ToInt64(o.v, true)
	if ok && n < 0 {
		return o.v, CannotCreate("TTL index 'expireAfterSeconds' option cannot be less than 0. Index spec: %s",
			update.Show(o.spec))
	}
	if !ok || n > 1<<31-1 {
		return o.v, CannotCreate("TTL index 'expireAfterSeconds' option must be within an acceptable range, try a "+
			"lower number. Index spec: %s", update.Show(o.spec))
	}
	return value.Int32Of(int32(n)), nil
}

// CheckOptions refuses options of an index that don't go together.
func CheckOptions(d value.Value) error {
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
	case set(cosmosOptions) || cosmosKey(key):
		return checkCosmos(d)
	case d.Get("sparse").Bool() && set("partialFilterExpression"):
		return CannotCreate("cannot mix \"partialFilterExpression\" and \"sparse\" options")
	case set("unique") && set("prepareUnique"):
		return CannotCreate("Index spec cannot have both 'unique' and 'prepareUnique' set")
	case wild && refusesDuplicates(d):
		return CannotCreate("Index type 'wildcard' does not support the unique option")
	case wild && d.Get("sparse").Bool():
		return CannotCreate("Index type 'wildcard' does not support the sparse option")
	case wild && set("expireAfterSeconds"):
		return CannotCreate("Index type 'wildcard' cannot be a TTL index")
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
	case hashed > 0 && refusesDuplicates(d):
		return merr.New(merr.HashedUnique, "Currently hashed indexes cannot guarantee uniqueness. Use a regular index.")
	case set("expireAfterSeconds") && key.Len() != 1:
		return CannotCreate("TTL indexes are single-field indexes, compound indexes do not support TTL. Index spec: %s",
			update.Show(d))
	case set("expireAfterSeconds") && OnTS(d) && d.Get("expireAfterSeconds").Int() == 0:
		return CannotCreate("TTL index 'expireAfterSeconds' on '_ts' must be positive on this server")
	}
	if p := d.Get("wildcardProjection"); p.IsDefined() {
		if _, err := project.Compile(p, project.Options{}); err != nil {
			return err
		}
	}
	_, err := Declared(d)
	return err
}

// OnTS reports whether an index is on the time of the last write. With a lifetime it sets the container's default time
// to live, as in the service.
func OnTS(d value.Value) bool {
	it := d.Get("key").Iter()
	return it.Next() && string(it.Key()) == "_ts"
}

// refusesDuplicates reports whether an index is unique, or is being made unique.
func refusesDuplicates(d value.Value) bool {
	return d.Get("unique").IsDefined() || d.Get("prepareUnique").IsDefined()
}

// Declared returns what the core enforces of an index.
func Declared(d value.Value) (out []core.Declared, err error) {
	x := core.Declared{Name: d.Get("name").Str(), Sparse: d.Get("sparse").Bool()}
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
	if refusesDuplicates(d) {
		u := x
		u.Unique = true
		out = append(out, u)
	}
	if after := d.Get("expireAfterSeconds"); after.IsDefined() && !OnTS(d) {
		n := int32(after.Int())
		x.After = &n
		out = append(out, x)
	}
	return out, nil
}
