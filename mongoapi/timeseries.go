package mongoapi

import (
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/indexes"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// A time series is a collection whose documents have a date in the field timeField. They are stored as they are, not in
// buckets. What their metaField identifies can be updated, and nothing else.

// granularities are the names of the option, with the seconds that a bucket would span.
var granularities = map[string]int32{"seconds": 3600, "minutes": 86400, "hours": 2592000}

// roundings are the seconds to which a bucket's begin would be rounded.
var roundings = map[string]int32{"seconds": 60, "minutes": 3600, "hours": 86400}

// timeSeriesFields are the fields of the option timeseries, changeableSeries those that collMod changes.
var (
	changeableSeries = args.Set{"granularity": args.String, "bucketMaxSpanSeconds": args.Number,
		"bucketRoundingSeconds": args.Number}
	timeSeriesFields = changeableSeries.With(args.Set{"timeField": args.String, "metaField": args.String})
)

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
	g, err := granularityOf("create", v)
	if err != nil {
		return v, err
	}
	own, rounding, err := spans(v)
	switch {
	case err != nil:
		return v, err
	case g != "" && own != 0 && own != granularities[g]:
		return v, merr.New(merr.InvalidOptions, "Timeseries 'bucketMaxSpanSeconds' is not configurable to a value "+
			"other than the default of %d for the provided granularity", granularities[g])
	case g != "" && rounding != 0:
		return v, errRoundingGiven
	case own != rounding && g == "":
		return v, errSpansDiffer
	case g == "" && own == 0:
		g = "seconds"
	}
	return seriesDoc(v, g, own), nil
}

var (
	errRoundingGiven = merr.New(merr.InvalidOptions, "Timeseries 'bucketRoundingSeconds' is not configurable "+
		"alongside the granularity parameter")
	errSpansDiffer = merr.New(merr.InvalidOptions, "Timeseries 'bucketRoundingSeconds' needs to be equal to "+
		"'bucketMaxSpanSeconds'")
)

// granularityOf returns the granularity in the option timeseries of a command, "" if it has none.
func granularityOf(command string, v value.Value) (string, error) {
	g := args.Given(v, "granularity")
	if !g.IsDefined() {
		return "", nil
	}
	if _, ok := granularities[g.Str()]; !ok {
		return "", args.NotInEnum(g.Str(), command+".timeseries.granularity")
	}
	return g.Str(), nil
}

// spans returns the own bucketMaxSpanSeconds and bucketRoundingSeconds, 0 for what isn't given.
func spans(v value.Value) (longest, rounding int32, err error) {
	read := func(name string) int32 {
		x := args.Given(v, name)
		n, _ := num.ToInt64(x, true)
		if x.IsDefined() && (n < 1 || n > 31536000) {
			err = merr.New(51024, "BSON field '%s' value must be >= 1 and <= 31536000, actual value '%d'", name, n)
		}
		return int32(n)
	}
	return read("bucketMaxSpanSeconds"), read("bucketRoundingSeconds"), err
}

// seriesDoc returns the option timeseries as it is stored and listed: with a granularity, or else with an own span.
func seriesDoc(v value.Value, granularity string, own int32) value.Value {
	at, b := bson.Begin(nil)
	b = value.AppendElement(b, "timeField", v.Get("timeField"))
	b = value.AppendElement(b, "metaField", args.Given(v, "metaField"))
	if granularity != "" {
		b = bson.AppendString(b, "granularity", granularity)
		own = granularities[granularity]
	} else {
		b = bson.AppendInt32(b, "bucketRoundingSeconds", own)
	}
	return value.ObjectOf(bson.End(bson.AppendInt32(b, "bucketMaxSpanSeconds", own), at))
}

// changedSeries returns the option timeseries after a collMod: spans may become longer, and not shorter. There are no
// buckets, so nothing else changes.
func (k *coll) changedSeries(v value.Value) (value.Value, error) {
	now := k.series()
	if !now.IsDefined() {
		return v, merr.New(merr.InvalidOptions, "option only supported on a time-series collection: timeseries")
	}
	if err := changeableSeries.Check("collMod.timeseries", v); err != nil {
		return v, err
	}
	g, err := granularityOf("collMod", v)
	if err != nil {
		return v, err
	}
	own, rounding, err := spans(v)
	if err != nil {
		return v, err
	}
	was := now.Get("granularity").Str()
	span := int32(now.Get("bucketMaxSpanSeconds").Int())
	rounded := int32(now.Get("bucketRoundingSeconds").Int())
	if was != "" {
		rounded = roundings[was]
	}
	switch {
	case g == "" && own == 0 && rounding == 0, g != "" && g == was && own == 0 && rounding == 0:
		return now, nil
	case g != "" && own != 0 && own != granularities[g]:
		return v, merr.New(merr.InvalidOptions, "Timeseries 'bucketMaxSpanSeconds' is not configurable to a value "+
			"other than the default for the provided granularity")
	case g != "" && rounding != 0:
		return v, errRoundingGiven
	case g != "" && granularities[g] < granularities[was]:
		return v, merr.New(merr.InvalidOptions, "Invalid transition for timeseries.granularity. Can only transition "+
			"from 'seconds' to 'minutes' or 'minutes' to 'hours'.")
	case g == "" && (own == 0 || rounding == 0):
		return v, merr.New(merr.InvalidOptions, "Timeseries 'bucketMaxSpanSeconds' and 'bucketRoundingSeconds' need "+
			"to be set alongside each other")
	case g == "" && own != rounding:
		return v, errSpansDiffer
	case g != "":
		own, rounding = granularities[g], roundings[g]
	}
	switch {
	case own == span && rounding == rounded:
		return now, nil
	case own < span:
		return v, merr.New(merr.InvalidOptions, "Timeseries 'bucketMaxSpanSeconds' needs to be equal or greater to "+
			"transition")
	case rounding < rounded:
		return v, merr.New(merr.InvalidOptions, "Timeseries 'bucketRoundingSeconds' needs to be equal or greater to "+
			"transition")
	}
	return seriesDoc(now, g, own), nil
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
	v, err := lifetime("create", v)
	if err == nil && v.IsDefined() && !args.Given(body, "timeseries").IsDefined() &&
		!args.Given(body, "clusteredIndex").IsDefined() {
		err = merr.New(merr.InvalidOptions, "'expireAfterSeconds' is only supported on time-series collections or "+
			"when the 'clusteredIndex' option is specified")
	}
	return v, err
}

// changedExpiry checks the option expireAfterSeconds of collMod.
func (k *coll) changedExpiry(v value.Value) (value.Value, error) {
	if !k.series().IsDefined() && !k.option("clusteredIndex").IsDefined() {
		return v, merr.New(merr.InvalidOptions, "'expireAfterSeconds' option is only supported on collections "+
			"clustered by _id")
	}
	return lifetime("collMod", v)
}

// lifetime reads seconds; Undefined for "off".
func lifetime(command string, v value.Value) (value.Value, error) {
	switch {
	case v.Kind() == value.String && v.Str() == "off" || v.Kind() == value.Null:
		return value.Undef(), nil
	case v.Kind() == value.String:
		return v, merr.New(merr.InvalidOptions, "Invalid string value for the 'clusteredIndex::expireAfterSeconds' "+
			"option. Got: '%s'. Accepted value is 'off'", v.Str())
	case !v.IsNumber():
		return v, merr.New(merr.TypeMismatch, "BSON field '%s.expireAfterSeconds' is the wrong type '%s', expected "+
			"types '[string, int, decimal, double, long']", command, expr.TypeName(v))
	}
	n, ok := num.ToInt64(v, true)
	switch {
	case n < 0:
		return v, merr.New(merr.InvalidOptions, "TTL index 'expireAfterSeconds' option cannot be less than 0")
	case !ok || n > 1<<31-1:
		return v, merr.New(merr.InvalidOptions, "TTL index 'expireAfterSeconds' option must be within an acceptable "+
			"range, try a lower number")
	}
	return value.Int64Of(n), nil
}

// declaredByOptions returns what the store enforces because of a collection's options: unique `_id`s by a collation,
// and the end of documents' lives.
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
