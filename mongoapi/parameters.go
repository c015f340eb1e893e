package mongoapi

import (
	"sort"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// parameters are the server parameters that getParameter shows. None can be set.
var parameters = map[string]func(r *request, dst []byte, key string) []byte{
	"authenticationMechanisms": func(_ *request, dst []byte, key string) []byte {
		return bson.AppendStrings(dst, key, "SCRAM-SHA-1", "SCRAM-SHA-256")
	},
	"cursorTimeoutMillis": func(_ *request, dst []byte, key string) []byte {
		return bson.AppendInt64(dst, key, cursorIdle.Milliseconds())
	},
	"enableTestCommands": func(r *request, dst []byte, key string) []byte {
		return bson.AppendBool(dst, key, r.s.o.TestCommands)
	},
	"featureCompatibilityVersion": func(r *request, dst []byte, key string) []byte {
		at, dst := bson.BeginObject(dst, key)
		return bson.End(r.s.release.appendFeature(dst, "version"), at)
	},
	"localLogicalSessionTimeoutMinutes": func(_ *request, dst []byte, key string) []byte {
		return bson.AppendInt32(dst, key, sessionMinutes)
	},
	"maxAcceptableLogicalClockDriftSecs": func(_ *request, dst []byte, key string) []byte {
		return bson.AppendInt64(dst, key, int64(maxDrift.Seconds()))
	},
}

// getParameter shows the parameters that the command names, or all of them.
func getParameter(r *request, dst []byte) ([]byte, error) {
	all, details := r.arg.Str() == "*", false
	if r.arg.Kind() == value.Object {
		for it := r.arg.Iter(); it.Next(); {
			switch v := it.Value(); {
			case string(it.Key()) != "allParameters" && string(it.Key()) != "showDetails":
				return dst, args.Unknown("getParameter", it.Key())
			case v.Kind() != value.Bool && !v.IsNumber():
				return dst, args.Want(false, "getParameter", it.Key(), v, "types '[bool, long, int, decimal, double]'")
			case string(it.Key()) == "allParameters":
				all = expr.Truthy(v)
			default:
				details = expr.Truthy(v)
			}
		}
	}
	names := make([]string, 0, len(parameters))
	for name := range parameters {
		if all || r.body.Get(name).IsDefined() {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return dst, merr.New(merr.InvalidOptions, "no option found to get")
	}
	sort.Strings(names)
	for _, name := range names {
		if !details {
			dst = parameters[name](r, dst, name)
			continue
		}
		at, b := bson.BeginObject(dst, name)
		b = parameters[name](r, b, "value")
		b = bson.AppendBool(b, "settableAtRuntime", false)
		dst = bson.End(bson.AppendBool(b, "settableAtStartup", false), at)
	}
	return dst, nil
}
