package mongoapi

import (
	"sort"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/users"
)

// parameter is a server parameter.
type parameter struct {
	show func(r *request, dst []byte, key string) []byte
	set  func(s *Server, v value.Value) error // nil: it can't be changed while the server runs
}

// parameters are those that getParameter shows.
var parameters = map[string]parameter{
	"allowDiskUseByDefault": constant(value.BoolOf(true)),
	"authenticationMechanisms": {show: func(_ *request, dst []byte, key string) []byte {
		return bson.AppendStrings(dst, key, "SCRAM-SHA-1", "SCRAM-SHA-256")
	}},
	"cursorTimeoutMillis": {show: func(_ *request, dst []byte, key string) []byte {
		return bson.AppendInt64(dst, key, cursorIdle.Milliseconds())
	}},
	"enableFlowControl":                    constant(value.BoolOf(false)), // there is no member that could lag
	"enableOverrideClusterChainingSetting": constant(value.BoolOf(false)),
	"enableTestCommands": {show: func(r *request, dst []byte, key string) []byte {
		return bson.AppendBool(dst, key, r.s.o.TestCommands)
	}},
	"featureCompatibilityVersion": {show: func(r *request, dst []byte, key string) []byte {
		at, dst := bson.BeginObject(dst, key)
		return bson.End(r.s.release.appendFeature(dst, "version"), at)
	}},
	"localLogicalSessionTimeoutMinutes": {show: func(_ *request, dst []byte, key string) []byte {
		return bson.AppendInt32(dst, key, sessionMinutes)
	}},
	"logComponentVerbosity": {set: setVerbosity, show: func(r *request, dst []byte, key string) []byte {
		at, dst := bson.BeginObject(dst, key)
		return bson.End(r.s.verbosities.append(dst, ""), at)
	}},
	"logLevel": {set: setLogLevel, show: func(r *request, dst []byte, key string) []byte {
		return bson.AppendInt32(dst, key, r.s.verbosities.level(""))
	}},
	"maxAcceptableLogicalClockDriftSecs": {show: func(_ *request, dst []byte, key string) []byte {
		return bson.AppendInt64(dst, key, int64(maxDrift.Seconds()))
	}},
	"minSnapshotHistoryWindowInSeconds": constant(value.Int32Of(int32(snapshotLife.Seconds()))),
	"notablescan":                       constant(value.BoolOf(false)),
	"quiet":                             constant(value.BoolOf(false)),
	"requireApiVersion":                 constant(value.BoolOf(false)),
	"scramIterationCount":               constant(value.Int32Of(users.IterationsSHA1)),
	"scramSHA256IterationCount":         constant(value.Int32Of(users.IterationsSHA256)),
	"transactionLifetimeLimitSeconds":   constant(value.Int32Of(int32(transactionLife.Seconds()))),
	"ttlMonitorEnabled":                 constant(value.BoolOf(true)),
}

// constant is a parameter that has the same value in every server.
func constant(v value.Value) parameter {
	return parameter{show: func(_ *request, dst []byte, key string) []byte { return value.AppendElement(dst, key, v) }}
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
			dst = parameters[name].show(r, dst, name)
			continue
		}
		at, b := bson.BeginObject(dst, name)
		b = parameters[name].show(r, b, "value")
		b = bson.AppendBool(b, "settableAtRuntime", parameters[name].set != nil)
		dst = bson.End(bson.AppendBool(b, "settableAtStartup", false), at)
	}
	return dst, nil
}

// setParameter changes parameters, and replies the value that the first one had. It refuses what can't be changed while
// the server runs: flags of the command line and constants.
func setParameter(r *request, dst []byte) ([]byte, error) {
	if err := r.adminOnly(); err != nil {
		return dst, err
	}
	var names []string
	for it := r.body.Iter(); it.Next(); {
		name := string(it.Key())
		if name == r.name || generic(name) {
			continue
		}
		p, ok := parameters[name]
		if !ok {
			return dst, merr.New(merr.InvalidOptions, "attempted to set unrecognized parameter [%s], use help:true to "+
				"see options ", name)
		}
		if p.set == nil {
			return dst, merr.New(merr.IllegalOperation, "not allowed to change [%s] at runtime", name)
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return dst, merr.New(merr.InvalidOptions, "no option found to set, use help:true to see options ")
	}
	sort.Strings(names)
	dst = parameters[names[0]].show(r, dst, "was")
	for _, name := range names {
		if err := parameters[name].set(r.s, r.body.Get(name)); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// generic reports whether all commands may have an argument.
func generic(name string) bool {
	switch name {
	case "$db", "help", "lsid", "$clusterTime", "maxTimeMS", "writeConcern", "readConcern", "apiVersion", "apiStrict",
		"apiDeprecationErrors", "txnNumber", "autocommit", "startTransaction":
		return true
	}
	_, ok := genericArgs[name]
	return ok
}
