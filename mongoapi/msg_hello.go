package mongoapi

import (
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/wire"
)

// setName is the replica set's name in the service's connection strings.
const setName = "globaldb"

// hello says that this is the primary of a replica set of one. Its address is the one that the client dialled, so that a
// driver which discovers the set finds it again.
func hello(r *request, dst []byte) ([]byte, error) {
	addr := r.s.o.Advertise
	if addr == "" {
		addr = r.c.nc.LocalAddr().String()
	}
	if r.name == "hello" {
		dst = bson.Bool(dst, "isWritablePrimary", true)
	} else {
		dst = bson.Bool(dst, "ismaster", true)
	}
	dst = bson.Bool(dst, "helloOk", true)
	dst = bson.String(dst, "setName", setName)
	dst = bson.Int32(dst, "setVersion", 1)
	dst = bson.Bool(dst, "secondary", false)
	dst = bson.Strings(dst, "hosts", addr)
	dst = bson.String(dst, "primary", addr)
	dst = bson.String(dst, "me", addr)
	dst = bson.Int32(dst, "maxBsonObjectSize", wire.MaxDocument)
	dst = bson.Int32(dst, "maxMessageSizeBytes", wire.MaxMessage)
	dst = bson.Int32(dst, "maxWriteBatchSize", wire.MaxWriteBatch)
	dst = bson.Date(dst, "localTime", r.s.clk.Now().UnixMilli())
	dst = bson.Int32(dst, "logicalSessionTimeoutMinutes", sessionMinutes)
	dst = bson.Int32(dst, "connectionId", r.c.id)
	dst = bson.Int32(dst, "minWireVersion", 0)
	dst = bson.Int32(dst, "maxWireVersion", MaxWire)
	dst = bson.Bool(dst, "readOnly", false)
	if u := r.body.Get("saslSupportedMechs"); u.Kind() == value.String {
		dst = bson.Strings(dst, "saslSupportedMechs", "SCRAM-SHA-256", "SCRAM-SHA-1")
	}
	if a := r.body.Get("speculativeAuthenticate"); a.Kind() == value.Object && a.Get("saslStart").IsDefined() {
		n := len(dst)
		at, b := bson.BeginObject(dst, "speculativeAuthenticate")
		if b, err := r.saslStart(b, a); err == nil {
			return bson.End(b, at), nil
		}
		r.c.sasl = nil
		dst = dst[:n]
	}
	return dst, nil
}

func buildInfo(_ *request, dst []byte) ([]byte, error) {
	dst = bson.String(dst, "version", Version)
	dst = bson.String(dst, "gitVersion", "unknown")
	dst = bson.Value(dst, "modules", bson.ArrayValue(nil))
	dst = bson.String(dst, "allocator", "go")
	dst = bson.String(dst, "javascriptEngine", "none")
	dst = bson.String(dst, "sysInfo", "deprecated")
	dst = bson.Value(dst, "versionArray", bson.ArrayValue([]value.Value{value.Int32Of(7), value.Int32Of(0), value.Int32Of(0), value.Int32Of(0)}))
	dst = bson.Int32(dst, "bits", 64)
	dst = bson.Bool(dst, "debug", false)
	dst = bson.Int32(dst, "maxBsonObjectSize", wire.MaxDocument)
	return bson.Strings(dst, "storageEngines", "orrery"), nil
}

func whatsMyURI(r *request, dst []byte) ([]byte, error) {
	return bson.String(dst, "you", r.c.nc.RemoteAddr().String()), nil
}
