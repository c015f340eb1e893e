package agg

import (
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// The stages of this file return what the server knows about itself and read no documents.

// from makes a source of the documents that the host returns.
func (c *compiler) from(docs func(h Host) ([]value.Value, error)) (stage, error) {
	c.out.source = func(x *Exec) (Iter, error) {
		all, err := docs(x.Host)
		return NewSlice(all), err
	}
	return nil, nil
}

func collStats(c *compiler, arg value.Value) (stage, error) {
	if arg.Kind() != value.Object {
		return nil, merr.New(5447000, "$collStats must take a nested object but found: %s", expr.TypeName(arg))
	}
	for it := arg.Iter(); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case "storageStats", "count", "latencyStats", "queryExecStats":
			if v.Kind() != value.Object {
				return nil, wrongType("$collStats."+name, v, "object")
			}
		default:
			return nil, merr.New(merr.UnknownField, "BSON field '$collStats.%s' is an unknown field.", name)
		}
		switch {
		case name == "queryExecStats":
			return nil, merr.NotSupported("the option " + name + " of $collStats")
		case name == "count" && v.Len() > 0:
			return nil, merr.New(merr.UnknownField, "BSON field '$collStats.count.%s' is an unknown field.",
				firstKey(v))
		}
	}
	if l := arg.Get("latencyStats"); l.IsDefined() {
		for it := l.Iter(); it.Next(); {
			switch {
			case string(it.Key()) != "histograms":
				return nil, merr.New(merr.UnknownField, "BSON field '$collStats.latencyStats.%s' is an unknown field.",
					it.Key())
			case it.Value().Kind() != value.Bool:
				return nil, wrongType("$collStats.latencyStats.histograms", it.Value(), "bool")
			}
		}
	}
	return c.from(func(h Host) ([]value.Value, error) { return h.CollStats(arg) })
}

// firstKey returns the first name in an object.
func firstKey(v value.Value) string {
	it := v.Iter()
	it.Next()
	return string(it.Key())
}

func indexStats(c *compiler, arg value.Value) (stage, error) {
	if arg.Kind() != value.Object || arg.Len() != 0 {
		return nil, merr.New(28803, "The $indexStats stage specification must be an empty object")
	}
	return c.from(Host.IndexStats)
}

func listCatalog(c *compiler, arg value.Value) (stage, error) {
	if arg.Kind() != value.Object || arg.Len() != 0 {
		return nil, merr.New(merr.FailedToParse, "The $listCatalog stage specification must be an empty object")
	}
	return c.from(Host.ListCatalog)
}

// Ops are the options of $currentOp. localOps, targetAllNodes and backtrace have no meaning here: a server is alone.
type Ops struct {
	AllUsers, IdleConnections, IdleCursors, NoIdleSessions, Truncate bool
}

func (o *Ops) set(name string, v bool) {
	switch name {
	case "allUsers":
		o.AllUsers = v
	case "idleConnections":
		o.IdleConnections = v
	case "idleCursors":
		o.IdleCursors = v
	case "idleSessions":
		o.NoIdleSessions = !v
	case "truncateOps":
		o.Truncate = v
	}
}

// currentOp compiles $currentOp. mongosh's db.currentOp() sends this stage and not the command of that name.
func currentOp(c *compiler, arg value.Value) (stage, error) {
	if arg.Kind() != value.Object {
		return nil, merr.New(merr.FailedToParse, "$currentOp options must be specified in an object, but found: %s",
			expr.TypeName(arg))
	}
	var o Ops
	for it := arg.Iter(); it.Next(); {
		switch name := string(it.Key()); name {
		case "allUsers", "idleConnections", "idleCursors", "idleSessions", "localOps", "truncateOps", "backtrace",
			"targetAllNodes":
			if it.Value().Kind() != value.Bool {
				return nil, merr.New(merr.FailedToParse, "The '%s' parameter of the $currentOp stage must be a "+
					"boolean value, but found: %s", name, expr.TypeName(it.Value()))
			}
			o.set(name, it.Value().Bool())
		default:
			return nil, merr.New(merr.FailedToParse, "Unrecognized option '%s' in $currentOp stage.", name)
		}
	}
	if err := onlyOnce("$currentOp", arg); err != nil {
		return nil, err
	}
	return c.from(func(h Host) ([]value.Value, error) { return h.CurrentOp(o) })
}

// planCacheStats compiles $planCacheStats. There is no plan cache: each query is planned with the figures of its own
// snapshot, so the stage returns nothing.
func planCacheStats(c *compiler, arg value.Value) (stage, error) {
	if arg.Kind() != value.Object {
		return nil, merr.New(merr.FailedToParse, "$planCacheStats value must be an object. Found: %s",
			expr.TypeName(arg))
	}
	for it := arg.Iter(); it.Next(); {
		if string(it.Key()) != "allHosts" {
			return nil, merr.New(merr.FailedToParse, "$planCacheStats parameters object may contain only 'allHosts' "+
				"field. Found: %s", it.Key())
		}
		switch {
		case it.Value().Kind() != value.Bool:
			return nil, merr.New(merr.FailedToParse, "allHosts parameter to $planCacheStats must be bool. Found: %s",
				expr.TypeName(it.Value()))
		case it.Value().Bool():
			return nil, merr.New(4503200, "$planCacheStats stage supports allHosts parameter only for sharded clusters")
		}
	}
	return c.from(func(Host) ([]value.Value, error) { return nil, nil })
}

// SessionUsers are the users whose sessions are listed.
type SessionUsers struct {
	All   bool
	Names []string // "user@db"; none: the caller
}

// listSessions compiles $listSessions and $listLocalSessions.
//
//go:noinline // each caller would get its own copy of the closure
func listSessions(local bool) func(c *compiler, arg value.Value) (stage, error) {
	name := "$listSessions"
	if local {
		name = "$listLocalSessions"
	}
	return func(c *compiler, arg value.Value) (stage, error) {
		if arg.Kind() != value.Object {
			return nil, merr.New(merr.TypeMismatch, "%s options must be specified in an object, but found: %s", name,
				expr.TypeName(arg))
		}
		var u SessionUsers
		for it := arg.Iter(); it.Next(); {
			switch v := it.Value(); string(it.Key()) {
			case "allUsers":
				if v.Kind() != value.Bool {
					return nil, wrongType(name+".allUsers", v, "bool")
				}
				u.All = v.Bool()
			case "users":
				if v.Kind() != value.Array {
					return nil, wrongType(name+".users", v, "array")
				}
				for _, one := range value.Elements(v) {
					user, db := one.Get("user"), one.Get("db")
					if one.Kind() != value.Object || user.Kind() != value.String || db.Kind() != value.String {
						return nil, merr.New(merr.BadValue, "Each of the users of %s must be an object with the "+
							"strings 'user' and 'db'", name)
					}
					u.Names = append(u.Names, user.Str()+"@"+db.Str())
				}
			default:
				return nil, merr.New(merr.UnknownField, "BSON field '%s.%s' is an unknown field.", name, it.Key())
			}
		}
		if err := onlyOnce(name, arg); err != nil {
			return nil, err
		}
		if u.All && len(u.Names) > 0 {
			return nil, merr.New(merr.UnknownField, "%s may not specify {allUsers:true} and {users:[...]} at the same "+
				"time", name)
		}
		return c.from(func(h Host) ([]value.Value, error) { return h.Sessions(local, u) })
	}
}

// atlasOnly is the error of a stage that MongoDB has only in Atlas.
func atlasOnly(name string) func(*compiler, value.Value) (stage, error) {
	return func(*compiler, value.Value) (stage, error) {
		return nil, merr.New(6047401, "%s stage is only allowed on MongoDB Atlas", name)
	}
}
