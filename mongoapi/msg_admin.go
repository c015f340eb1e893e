package mongoapi

import (
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/users"
)

// adminOnly refuses a command on another database than admin.
func (r *request) adminOnly() error {
	if r.db != users.DB {
		return merr.New(merr.Unauthorized, "%s may only be run against the admin database.", r.name)
	}
	return nil
}

// connPoolStats describes the connections to other servers: there are none.
func connPoolStats(_ *request, dst []byte) ([]byte, error) {
	for _, f := range []string{"numClientConnections", "numAScopedConnections", "totalInUse", "totalAvailable",
		"totalLeased", "totalCreated", "totalRefreshing"} {
		dst = bson.AppendInt32(dst, f, 0)
	}
	for _, f := range []string{"pools", "hosts", "replicaSets"} {
		at, b := bson.BeginObject(dst, f)
		dst = bson.End(b, at)
	}
	return dst, nil
}

// planCacheClear has nothing to do: each query is planned with the figures of its snapshot. Index filters can't be set,
// so planCacheClearFilters has nothing to do either.
func planCacheClear(r *request, dst []byte) ([]byte, error) {
	if _, err := r.collection(); err != nil {
		return dst, err
	}
	q := r.body.Get("query")
	for _, name := range []string{"query", "sort", "projection"} {
		switch v := r.body.Get(name); {
		case v.IsDefined() && v.Kind() != value.Object:
			return dst, merr.New(merr.BadValue, "optional field %s must be an object", name)
		case v.IsDefined() && !q.IsDefined():
			return dst, merr.New(merr.BadValue, "sort or projection provided without query")
		}
	}
	_, err := filter.Compile(q, r.filterOptions(nil))
	return dst, err
}

// planCacheListFilters lists the index filters: there are none.
func planCacheListFilters(r *request, dst []byte) ([]byte, error) {
	if _, err := r.collection(); err != nil {
		return dst, err
	}
	return value.AppendElement(dst, "filters", value.MakeArray(nil)), nil
}

// fsync has nothing to flush: what was answered is durable. Writes can't be locked out.
func fsync(r *request, dst []byte) ([]byte, error) {
	if err := r.adminOnly(); err != nil {
		return dst, err
	}
	if args.Flag(r.body, "lock", false) {
		return dst, merr.NotSupported("the option lock of fsync")
	}
	return bson.AppendInt32(dst, "numFiles", 1), nil
}

func fsyncUnlock(r *request, dst []byte) ([]byte, error) {
	if err := r.adminOnly(); err != nil {
		return dst, err
	}
	return dst, merr.New(merr.IllegalOperation, "fsyncUnlock called when not locked")
}

// setFeatureVersion accepts the announced release's version alone.
func setFeatureVersion(r *request, dst []byte) ([]byte, error) {
	if err := r.adminOnly(); err != nil {
		return dst, err
	}
	v, feature := r.arg, r.s.release.feature
	switch {
	case v.Kind() != value.String:
		return dst, args.Want(false, r.name, []byte(r.name), v, "type 'string'")
	case v.Str() != feature:
		return dst, merr.New(4926900, "Invalid feature compatibility version value '%s'; expected '%s'. See "+
			"https://docs.mongodb.com/master/release-notes/%s-compatibility/#feature-compatibility.", v.Str(), feature,
			feature)
	case !args.Flag(r.body, "confirm", false):
		return dst, merr.New(7369100, "Once you have upgraded to %s, you will not be able to downgrade FCV and "+
			"binary version without support assistance. Please re-run this command with 'confirm: true' to "+
			"acknowledge this and continue with the FCV upgrade.", feature)
	}
	return dst, nil
}

// features shows whether there is JavaScript, and a number for the ids that the server makes.
func features(r *request, dst []byte) ([]byte, error) {
	if r.s.o.Scripts != nil {
		at, js := bson.BeginObject(dst, "js")
		dst = bson.End(bson.AppendBool(js, "utf8", true), at)
	}
	machine := int64(0)
	for _, b := range r.s.process[4:9] { // what the ids of this process have in common
		machine = machine<<8 | int64(b)
	}
	return bson.AppendInt64(dst, "oidMachine", machine), nil
}

// shardingState shows that the server is no shard.
func shardingState(r *request, dst []byte) ([]byte, error) {
	if err := r.adminOnly(); err != nil {
		return dst, err
	}
	return bson.AppendBool(dst, "enabled", false), nil
}
