package mongoapi

import (
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/users"
	"github.com/orrerydb/orrery/mongoapi/wire"
)

// hello announces the primary of a replica set with one member, or a single server.
func hello(r *request, dst []byte) ([]byte, error) {
	if app := r.body.Get("client").Get("application").Get("name"); app.Kind() == value.String {
		r.c.app = app.Str()
	}
	if err := r.awaitTopology(); err != nil {
		return dst, err
	}
	dst = r.appendTopologyVersion(dst)
	if r.name == "hello" {
		dst = putBool(dst, "isWritablePrimary", true)
	} else {
		dst = putBool(dst, "ismaster", true)
	}
	dst = putBool(dst, "helloOk", true)
	if !r.s.o.Standalone {
		dst = r.appendMember(dst)
	}
	dst = putInt32(dst, "maxBsonObjectSize", wire.MaxDocument)
	dst = putInt32(dst, "maxMessageSizeBytes", wire.MaxMessage)
	dst = putInt32(dst, "maxWriteBatchSize", wire.MaxWriteBatch)
	dst = putDate(dst, "localTime", r.s.clk.Now().UnixMilli())
	dst = putInt32(dst, "logicalSessionTimeoutMinutes", sessionMinutes)
	dst = putInt32(dst, "connectionId", r.c.id)
	dst = putInt32(dst, "minWireVersion", 0)
	dst = putInt32(dst, "maxWireVersion", r.s.release.wire)
	dst = putBool(dst, "readOnly", false)
	dst = appendCompressors(dst, r.body.Get("compression"))
	if u := r.body.Get("saslSupportedMechs"); u.Kind() == value.String {
		names, err := r.s.mechanisms(u.Str())
		if err != nil {
			return dst, err
		}
		dst = bson.AppendStrings(dst, "saslSupportedMechs", names...)
	}
	if a := r.body.Get("speculativeAuthenticate"); a.Kind() == value.Object && a.Get("saslStart").IsDefined() {
		n := len(dst)
		at, b := putObject(dst, "speculativeAuthenticate")
		db := a.Get("db").Str()
		if db == "" {
			db = users.DB
		}
		if b, err := r.saslStart(b, a, db); err == nil {
			return putEnd(b, at), nil
		}
		r.c.sasl = nil
		dst = dst[:n]
	}
	return dst, nil
}

func buildInfo(r *request, dst []byte) ([]byte, error) {
	dst = putString(dst, "version", r.s.release.version())
	dst = putString(dst, "gitVersion", "unknown")
	dst = value.AppendElement(dst, "modules", value.MakeArray(nil))
	dst = putString(dst, "allocator", "go")
	dst = putString(dst, "javascriptEngine", "none")
	dst = putString(dst, "sysInfo", "deprecated")
	dst = r.s.release.appendNumbers(dst, "versionArray")
	dst = putInt32(dst, "bits", 64)
	dst = putBool(dst, "debug", false)
	dst = putInt32(dst, "maxBsonObjectSize", wire.MaxDocument)
	return bson.AppendStrings(dst, "storageEngines", "orrery"), nil
}

func whatsMyURI(r *request, dst []byte) ([]byte, error) {
	return putString(dst, "you", r.c.nc.RemoteAddr().String()), nil
}
