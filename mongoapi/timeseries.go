package mongoapi

import (
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/indexes"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// A time series is a collection whose documents have a date in the field timeField. They are stored as they are, not in
// buckets. What their metaField identifies can be updated, and nothing else.

// granularities are the names of the option, with the seconds that a bucket would span.
var granularities = map[string]int32{"seconds": 3600, "minutes": 86400, "hours": 2592000}

// timeSeriesFields are the fields of the option timeseries.
var timeSeriesFields = args.Set{"timeField": args.String, "metaField": args.String, "granularity": args.String,
	"bucketMaxSpanSeconds": args.Number, "bucketRoundingSeconds": args.Number}

// timeSeries checks the option timeseries of create, and returns it as it is listed.
func timeSeries(v value.Value) (value.Value, error) {
	if err := timeSeriesFields.Check("create.timeseries", v); err != nil {
		return v, err
	}
	at, meta := args.Given(v, "timeField"), args.Given(v, "metaField")
	switch {
	case !at.IsDefined():
		return v, merr.New(merr.MissingField, "BSON field 'create.timeseries.timeField' is missing but a required "+
			"field")
	case at.Str() == "" || strings.Contains(at.Str(), ".") || strings.HasPrefix(at.Str(), "$"):
		return v, merr.New(merr.InvalidOptions, "'timeField' must be a top-level field and not contain a '.'")
	case meta.Str() == "_id":
		return v, merr.New(merr.InvalidOptions, "The 'metaField' cannot be _id")
	case strings.Contains(meta.Str(), "."):
		return v, merr.New(merr.InvalidOptions, "'metaField' must be a top-level field and not contain a '.'")
	case meta.Str() == at.Str():
		return v, merr.New(merr.InvalidOptions, "The 'metaField' and 'timeField' cannot be the same field")
	}
	granularity := "seconds"
	if g := args.Given(v, "granularity"); g.IsDefined() {
		granularity = g.Str()
	}
	span, ok := granularities[granularity]
	if !ok {
		return v, args.NotInEnum(granularity, "create.timeseries.granularity")
	}
	ba, b := bson.Begin(nil)
	b = bson.AppendString(b, "timeField", at.Str())
	b = value.AppendElement(b, "metaField", meta)
	own := args.Given(v, "bucketMaxSpanSeconds")
	if !own.IsDefined() {
		b = bson.AppendString(b, "granularity", granularity)
		return value.ObjectOf(bson.End(bson.AppendInt32(b, "bucketMaxSpanSeconds", span), ba)), nil
	}
	n, _ := num.ToInt64(own, true)
	rounding := args.Given(v, "bucketRoundingSeconds")
	if m, _ := num.ToInt64(rounding, true); args.Given(v, "granularity").IsDefined() && n != int64(span) || m != n {
		return v, merr.New(merr.InvalidOptions, "Timeseries 'bucketMaxSpanSeconds' and 'bucketRoundingSeconds' must "+
			"be equal, and are not configurable together with 'granularity'")
	}
	if n < 1 || n > 31536000 {
		return v, merr.New(51024, "BSON field 'bucketMaxSpanSeconds' value must be >= 1 and <= 31536000, actual value "+
			"'%d'", n)
	}
	b = value.AppendElement(b, "bucketRoundingSeconds", rounding)
	return value.ObjectOf(bson.End(value.AppendElement(b, "bucketMaxSpanSeconds", own), ba)), nil
}

// clusteredIndex checks the option clusteredIndex of create, and returns it as it is listed. All collections are
// clustered by their _id here, so it has no other effect.
func clusteredIndex(v value.Value) (value.Value, error) {
	if v.Kind() == value.Bool && v.Bool() {
		v = value.ObjectOf(bson.Empty)
	}
	if v.Kind() != value.Object || v.Len() == 0 {
		return v, merr.New(merr.TypeMismatch, "The 'clusteredIndex' option must be an object with 'key' and 'unique'")
	}
	err := args.Set{"v": args.Number, "key": args.Object, "name": args.String, "unique": args.SafeBool}.Check(
		"create.clusteredIndex", v)
	if err != nil {
		return v, err
	}
	name := "_id_"
	if n := args.Given(v, "name"); n.IsDefined() {
		name = n.Str()
	}
	switch {
	case !args.Given(v, "key").IsDefined():
		return v, merr.New(merr.MissingField, "BSON field 'create.clusteredIndex.key' is missing but a required field")
	case !args.Given(v, "unique").IsDefined():
		return v, merr.New(merr.MissingField, "BSON field 'create.clusteredIndex.unique' is missing but a required "+
			"field")
	case !indexes.IsOnID(v.Get("key")):
		return v, merr.New(merr.InvalidIndexSpecification, "The field 'key' for a clusteredIndex must be {_id: 1}: %s",
			merr.Show(v))
	case !args.Flag(v, "unique", false):
		return v, merr.New(5979700, "The clusteredIndex option requires unique: true to be specified")
	}
	at, b := bson.Begin(nil)
	b = bson.AppendInt32(b, "v", 2)
	b = value.AppendElement(b, "key", v.Get("key"))
	b = bson.AppendString(b, "name", name)
	return value.ObjectOf(bson.End(bson.AppendBool(b, "unique", true), at)), nil
}

// expiry checks the option expireAfterSeconds of create: "off" is none.
func expiry(body, v value.Value) (value.Value, error) {
	if v.Kind() == value.String && v.Str() == "off" || v.Kind() == value.Null {
		return value.Undef(), nil
	}
	if !v.IsNumber() {
		return v, merr.New(merr.TypeMismatch, "BSON field 'create.expireAfterSeconds' is the wrong type, expected "+
			"types '[string, int, decimal, double, long']")
	}
	n, ok := num.ToInt64(v, true)
	switch {
	case !args.Given(body, "timeseries").IsDefined() && !args.Given(body, "clusteredIndex").IsDefined():
		return v, merr.New(merr.InvalidOptions, "'expireAfterSeconds' is only supported on time-series collections or "+
			"when the 'clusteredIndex' option is specified")
	case n < 0:
		return v, merr.New(merr.InvalidOptions, "TTL index 'expireAfterSeconds' option cannot be less than 0")
	case !ok || n > 1<<31-1:
		return v, merr.New(merr.InvalidOptions, "TTL index 'expireAfterSeconds' option must be within an acceptable "+
			"range, try a lower number")
	}
	return value.Int64Of(n), nil
}

// declaredByOptions returns what the store enforces because of a collection's options: unique `_id`s by a collation,
// and
// the end of documents' lives.
func declaredByOptions(s *core.ContainerSpec) []core.Declared {
	out := declaredIDs(s)
	o := optionsIn(s.Properties[optionsProperty])
	after := o.Get("expireAfterSeconds")
	if !after.IsDefined() {
		return out
	}
	n := int32(after.Int())
	path := []string{"_id"}
	if at := o.Get("timeseries").Get("timeField"); at.IsDefined() {
		path = []string{at.Str()}
	}
	return append(out, core.Declared{Name: "expireAfterSeconds", Paths: [][]string{path}, After: &n})
}

// series returns the option timeseries, Undefined if the collection isn't a time series.
func (k *coll) series() value.Value {
	if k == nil || k.opts == nil {
		return value.Undef()
	}
	return k.option("timeseries")
}

// checkMeasurement refuses a document of a time series without a date in its timeField.
func (k *coll) checkMeasurement(d value.Value) error {
	if at := k.series().Get("timeField"); at.IsDefined() && d.Get(at.Str()).Kind() != value.Date {
		return merr.New(merr.BadValue, "'%s' must be present and contain a valid BSON UTC datetime value", at.Str())
	}
	return nil
}

// checkSeriesUpdate refuses an update of a time series of more than its metaField.
func (k *coll) checkSeriesUpdate(spec value.Value) error {
	ts := k.series()
	if !ts.IsDefined() {
		return nil
	}
	meta, u := ts.Get("metaField").Str(), spec.Get("u")
	within := func(path string) bool { return meta != "" && (path == meta || strings.HasPrefix(path, meta+".")) }
	switch {
	case meta == "":
		return merr.New(merr.InvalidOptions, "Cannot perform an update on a time-series collection that does not "+
			"have a metaField")
	case args.Flag(spec, "upsert", false):
		return merr.New(merr.InvalidOptions, "Cannot perform a non-multi update or an upsert on a time-series "+
			"collection")
	case !args.Flag(spec, "multi", false):
		return merr.New(merr.InvalidOptions, "Cannot perform a non-multi update on a time-series collection")
	case u.Kind() != value.Object:
		return merr.New(merr.InvalidOptions, "Cannot perform an update with a pipeline on a time-series collection")
	}
	for it := spec.Get("q").Iter(); it.Next(); {
		if name := string(it.Key()); !within(name) && !strings.HasPrefix(name, "$") {
			return merr.New(merr.InvalidOptions, "Cannot perform an update on a time-series collection when "+
				"querying on a field that is not the metaField '%s'", meta)
		}
	}
	for it := u.Iter(); it.Next(); {
		if !strings.HasPrefix(string(it.Key()), "$") {
			return merr.New(merr.InvalidOptions, "Cannot perform a replacement-style update on a time-series "+
				"collection")
		}
		for f := it.Value().Iter(); f.Next(); {
			if !within(string(f.Key())) {
				return merr.New(merr.InvalidOptions, "Cannot perform an update on a time-series collection that "+
					"modifies a field that is not the metaField '%s'", meta)
			}
		}
	}
	return nil
}
