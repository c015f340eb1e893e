package mongoapi

import (
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
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

// planCacheClear has nothing to do: each query is planned with the figures of its snapshot.
func planCacheClear(r *request, dst []byte) ([]byte, error) {
	_, err := r.collection()
	return dst, err
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

// setParameter refuses what can't be changed while the server runs: flags of the command line and constants.
func setParameter(r *request, dst []byte) ([]byte, error) {
	if err := r.adminOnly(); err != nil {
		return dst, err
	}
	for it := r.body.Iter(); it.Next(); {
		name := string(it.Key())
		if name == r.name {
			continue
		}
		if _, ok := genericArgs[name]; ok || name == "$db" || name == "lsid" || name == "$clusterTime" ||
			name == "maxTimeMS" || name == "writeConcern" || name == "readConcern" {
			continue
		}
		if _, ok := parameters[name]; ok {
			return dst, merr.New(merr.IllegalOperation, "not allowed to change [%s] at runtime", name)
		}
		return dst, merr.New(merr.InvalidOptions, "attempted to set unrecognized parameter [%s], use help:true to see "+
			"options ", name)
	}
	return dst, merr.New(merr.InvalidOptions, "no option found to set, use help:true to see options ")
}
