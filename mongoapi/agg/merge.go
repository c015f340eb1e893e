package agg

import (
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// writer writes all documents. They are read completely before the first write, because the target may be the source.
func writer(w WriteSpec) stage {
	return func(x *Exec, src Iter) (Iter, error) {
		docs := sorted(x, src, "result", nil)
		return lazy(x, docs, "result", func(docs Iter, _ *hold) ([]value.Value, error) {
			return nil, x.Host.Write(w, docs)
		}), nil
	}
}

func out(_ *compiler, arg value.Value) (stage, error) {
	w := WriteSpec{Replace: true, On: []string{"_id"}, WhenMatched: "fail", WhenNotMatched: "insert"}
	switch arg.Kind() {
	case value.String:
		w.Coll = arg.Str()
	case value.Object:
		for it := arg.Iter(); it.Next(); {
			name, v, want := string(it.Key()), it.Value(), "string"
			switch name {
			case "db":
				w.DB = v.Str()
			case "coll":
				w.Coll = v.Str()
			case "timeseries":
				want = "object"
			default:
				return nil, merr.New(merr.UnknownField, "BSON field '$out.%s' is an unknown field.", name)
			}
			if expr.TypeName(v) != want {
				return nil, wrongType("$out."+name, v, want)
			}
		}
		if err := onlyOnce("$out", arg); err != nil {
			return nil, err
		}
		switch {
		case !arg.Get("coll").IsDefined():
			return nil, missingField("$out.coll")
		case !arg.Get("db").IsDefined():
			return nil, missingField("$out.db")
		case arg.Get("timeseries").IsDefined():
			if err := checkTimeseries(arg.Get("timeseries")); err != nil {
				return nil, err
			}
			return nil, merr.NotSupported("$out to a time series collection")
		}
	default:
		return nil, merr.New(16990, "$out only supports a string or object argument, but found %s", expr.TypeName(arg))
	}
	if strings.HasPrefix(w.Coll, "system.") {
		return nil, merr.New(17385, "Can't $out to special collection: %s", w.Coll)
	}
	if internalDB(w.DB) {
		return nil, merr.New(31321, "Can't $out to internal database: %s", w.DB)
	}
	return writer(w), nil
}

// internalDB reports whether a database is the server's own.
func internalDB(name string) bool { return name == "admin" || name == "config" || name == "local" }

// checkTimeseries checks the option of $out that makes a time series collection.
func checkTimeseries(t value.Value) error {
	const at = "$out.timeseries."
	for it := t.Iter(); it.Next(); {
		switch name, v := string(it.Key()), it.Value(); name {
		case "timeField", "metaField", "granularity":
			if v.Kind() != value.String {
				return wrongType(at+name, v, "string")
			}
			if name == "granularity" && !slices.Contains([]string{"seconds", "minutes", "hours"}, v.Str()) {
				return merr.New(merr.BadValue, "Enumeration value '%s' for field '%s' is not a valid value.", v.Str(),
					at+name)
			}
		case "bucketMaxSpanSeconds", "bucketRoundingSeconds":
			if !v.IsNumber() {
				return merr.New(merr.TypeMismatch, "BSON field '%s' is the wrong type '%s', expected types '[long, "+
					"int, decimal, double']", at+name, expr.TypeName(v))
			}
		default:
			return merr.New(merr.UnknownField, "BSON field '%s' is an unknown field.", at+name)
		}
	}
	if !t.Get("timeField").IsDefined() {
		return missingField(at + "timeField")
	}
	return nil
}

// mergeModes are the supported pairs of whenMatched and whenNotMatched.
var mergeModes = map[string][]string{
	"replace":      {"insert", "discard", "fail"},
	"merge":        {"insert", "discard", "fail"},
	"pipeline":     {"insert", "discard", "fail"},
	"keepExisting": {"insert"},
	"fail":         {"insert"},
}

// MergePipeline is a pipeline as whenMatched of $merge. It runs on the existing document; $$new is the other one.
type MergePipeline struct {
	lets []letVar
	t    *Transform
}

// Apply returns what an existing document becomes.
func (m *MergePipeline) Apply(e *expr.Env, old, with value.Value) (value.Value, error) {
	inner := e.Fork()
	for _, l := range m.lets {
		v, err := l.x(e.With(with))
		if err != nil {
			return v, err
		}
		inner.Set(l.slot, v)
	}
	return m.t.Apply(inner, old)
}

func merge(c *compiler, arg value.Value) (stage, error) {
	w := WriteSpec{On: []string{"_id"}, WhenMatched: "merge", WhenNotMatched: "insert"}
	if arg.Kind() != value.String && arg.Kind() != value.Object {
		return nil, merr.New(51182, "$merge only supports a string or object argument, not %s", expr.TypeName(arg))
	}
	into, lets, pipeline := arg, value.Undef(), value.Undef()
	if arg.Kind() == value.Object {
		if into = arg.Get("into"); !into.IsDefined() {
			return nil, missingField("$merge.into")
		}
		var err error
		if lets, pipeline, err = w.readMerge(arg); err != nil {
			return nil, err
		}
	}
	if err := w.setTarget(into); err != nil {
		return nil, err
	}
	if !slices.Contains(mergeModes[w.WhenMatched], w.WhenNotMatched) {
		return nil, merr.New(51181, "Combination of $merge modes 'whenMatched: %s' and 'whenNotMatched: %s' is not "+
			"supported", w.WhenMatched, w.WhenNotMatched)
	}
	if pipeline.IsDefined() {
		var err error
		if w.Pipeline, err = c.mergePipeline(pipeline, lets); err != nil {
			return nil, err
		}
	} else if lets.IsDefined() {
		return nil, merr.New(51199, "Cannot use 'let' variables with 'whenMatched: %s' mode", w.WhenMatched)
	}
	return writer(w), nil
}

// readMerge reads the fields of $merge. pipeline is that of whenMatched, and lets are its variables.
func (w *WriteSpec) readMerge(arg value.Value) (lets, pipeline value.Value, err error) {
	for it := arg.Iter(); it.Next() && err == nil; {
		switch v := it.Value(); string(it.Key()) {
		case "into":
		case "on":
			w.On, err = mergeOn(v)
		case "let":
			if lets = v; v.Kind() != value.Object {
				err = wrongType("$merge.let", v, "object")
			}
		case "whenMatched":
			switch v.Kind() {
			case value.Array:
				w.WhenMatched, pipeline = "pipeline", v
			case value.String:
				if w.WhenMatched = v.Str(); mergeModes[w.WhenMatched] == nil || w.WhenMatched == "pipeline" {
					err = merr.New(merr.BadValue, "Enumeration value '%s' for field 'whenMatched' is not a valid "+
						"value.", w.WhenMatched)
				}
			default:
				err = merr.New(51191, "$merge 'whenMatched' field must be either a string or an array, but found %s",
					expr.TypeName(v))
			}
		case "whenNotMatched":
			if v.Kind() != value.String {
				err = wrongType("$merge.whenNotMatched", v, "string")
			} else if w.WhenNotMatched = v.Str(); !slices.Contains(mergeModes["merge"], w.WhenNotMatched) {
				err = merr.New(merr.BadValue, "Enumeration value '%s' for field '$merge.whenNotMatched' is not a "+
					"valid value.", w.WhenNotMatched)
			}
		default:
			err = merr.New(merr.UnknownField, "BSON field '$merge.%s' is an unknown field.", it.Key())
		}
	}
	return lets, pipeline, err
}

// mergeOn returns the argument on of $merge.
func mergeOn(v value.Value) ([]string, error) {
	list := []value.Value{v}
	switch v.Kind() {
	case value.String:
	case value.Array:
		if list = value.Elements(v); len(list) == 0 {
			return nil, merr.New(51187, "If explicitly specifying $merge 'on', must include at least one field")
		}
	default:
		return nil, merr.New(51186, "$merge 'on' field  must be either a string or an array of strings, but found %s",
			expr.TypeName(v))
	}
	var on []string
	for _, f := range list {
		if f.Kind() != value.String {
			return nil, merr.New(51134, "$merge 'on' array elements must be strings, but found %s", expr.TypeName(f))
		}
		if _, err := expr.FieldPath(f.Str()); err != nil {
			return nil, err
		}
		if slices.Contains(on, f.Str()) {
			return nil, merr.New(31465, "Found a duplicate field '%s'", f.Str())
		}
		on = append(on, f.Str())
	}
	return on, nil
}

// setTarget reads the collection that $merge names.
func (w *WriteSpec) setTarget(into value.Value) error {
	switch into.Kind() {
	case value.String:
		w.Coll = into.Str()
	case value.Object:
		for it := into.Iter(); it.Next(); {
			name, v := string(it.Key()), it.Value()
			if name != "db" && name != "coll" {
				return merr.New(merr.UnknownField, "BSON field 'into.%s' is an unknown field.", name)
			}
			if v.Kind() != value.String {
				return wrongType("into."+name, v, "string")
			}
		}
		if w.DB, w.Coll = into.Get("db").Str(), into.Get("coll").Str(); !into.Get("coll").IsDefined() {
			return missingField("into.coll")
		}
	default:
		return merr.New(51178, "$merge 'into' field  must be either a string or an object, but found %s",
			expr.TypeName(into))
	}
	if strings.HasPrefix(w.Coll, "system.") {
		return merr.New(31319, "Cannot $merge to special collection: %s", w.Coll)
	}
	if internalDB(w.DB) {
		return merr.New(31320, "Cannot $merge to internal database: %s", w.DB)
	}
	return nil
}

// mergePipeline compiles whenMatched. Without a let, or with one that doesn't name it, the variable new is the
// document.
func (c *compiler) mergePipeline(p, lets value.Value) (*MergePipeline, error) {
	m, scope := &MergePipeline{}, c.o.Scope
	bind := func(name string, v value.Value) error {
		x, err := expr.Compile(v, c.o.Scope)
		if err != nil {
			return err
		}
		var slot int
		if scope, slot, err = expr.BindUser(scope, name); err != nil {
			return err
		}
		m.lets = append(m.lets, letVar{slot, x})
		return nil
	}
	root := value.StringOf("$$ROOT")
	for it := lets.Iter(); lets.IsDefined() && it.Next(); {
		if string(it.Key()) == "new" && it.Value().Str() != "$$ROOT" {
			return nil, merr.New(51273, "'let' may not define a value for the reserved 'new' variable other than "+
				"'$$ROOT'")
		}
		if err := bind(string(it.Key()), it.Value()); err != nil {
			return nil, err
		}
	}
	if !lets.Get("new").IsDefined() {
		if err := bind("new", root); err != nil {
			return nil, err
		}
	}
	var err error
	m.t, err = CompileTransform(p, scope)
	return m, err
}
