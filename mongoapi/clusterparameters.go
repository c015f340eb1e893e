package mongoapi

import (
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// Parameters of all servers of a replica set. There is one: how long change streams have the images of documents. Here
// they have them as long as the events, so its value is always "off".

const streamOptions = "changeStreamOptions"

// clusterParameter returns a parameter by its name.
func clusterParameter(name string) (value.Value, error) {
	if name != streamOptions {
		return value.Undef(), merr.New(merr.NoSuchKey, "Unknown server parameter: %s", name)
	}
	at, b := bson.Begin(nil)
	b = bson.AppendString(b, "_id", name)
	b = value.AppendElement(b, "clusterParameterTime", value.TimestampOf(0))
	b = value.AppendElement(b, "preAndPostImages", single("expireAfterSeconds", value.StringOf("off")))
	return value.ObjectOf(bson.End(b, at)), nil
}

// clusterWide refuses a command about parameters of all servers where there are none.
func (r *request) clusterWide() error {
	if err := r.adminOnly(); err != nil {
		return err
	}
	if r.s.o.Standalone {
		return merr.New(merr.IllegalOperation, "%s cannot be run on standalones", r.name)
	}
	return nil
}

func getClusterParameter(r *request, dst []byte) ([]byte, error) {
	if err := r.clusterWide(); err != nil {
		return dst, err
	}
	names := []value.Value{r.arg}
	switch {
	case r.arg.Str() == "*" && r.arg.Kind() == value.String:
		names[0] = value.StringOf(streamOptions)
	case r.arg.Kind() == value.Array:
		if names = value.Elements(r.arg); len(names) == 0 {
			return dst, merr.New(merr.BadValue, "Must supply at least one cluster server parameter name to "+
				"getClusterParameter")
		}
	}
	var out []value.Value
	for _, v := range names {
		if v.Kind() != value.String {
			return dst, merr.New(merr.TypeMismatch, "BSON field 'getClusterParameter.getClusterParameter' is the "+
				"wrong type '%s', expected types '[string, array]'", expr.TypeName(v))
		}
		p, err := clusterParameter(v.Str())
		if err != nil {
			return dst, err
		}
		out = append(out, p)
	}
	return value.AppendElement(dst, "clusterParameters", value.MakeArray(out)), nil
}

// setClusterParameter takes the value that the parameter has, and checks others as MongoDB does.
func setClusterParameter(r *request, dst []byte) ([]byte, error) {
	if err := r.clusterWide(); err != nil {
		return dst, err
	}
	it := r.arg.Iter()
	switch {
	case r.arg.Kind() != value.Object:
		return dst, args.Want(false, r.name, []byte(r.name), r.arg, "type 'object'")
	case !it.Next():
		return dst, merr.New(merr.BadValue, "%s needs the name of a parameter", r.name)
	}
	if _, err := clusterParameter(string(it.Key())); err != nil {
		return dst, err
	}
	v := it.Value()
	if err := (args.Set{"preAndPostImages": args.Object}).Check(streamOptions, v); err != nil {
		return dst, err
	}
	images := args.Given(v, "preAndPostImages")
	if err := (args.Set{"expireAfterSeconds": args.Any}).Check("preAndPostImages", images); err != nil {
		return dst, err
	}
	after := args.Given(images, "expireAfterSeconds")
	n, _ := num.ToInt64(after, true)
	switch {
	case after.Kind() == value.String && after.Str() == "off", !after.IsDefined():
		return dst, nil
	case after.Kind() == value.String:
		return dst, merr.New(merr.BadValue, "Non-numeric value of 'expireAfterSeconds' should be 'off'")
	case !after.IsNumber():
		return dst, args.Want(false, "preAndPostImages", []byte("expireAfterSeconds"), after,
			"types '[string, int, decimal, double, long]'")
	case n <= 0:
		return dst, merr.New(merr.BadValue, "Numeric value of 'expireAfterSeconds' should be positive")
	}
	return dst, merr.NotSupported("an own lifetime of the images of change streams")
}
