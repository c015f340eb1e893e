package mongoapi

import (
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/bw"
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
		dst = bw.Bool(dst, "isWritablePrimary", true)
	} else {
		dst = bw.Bool(dst, "ismaster", true)
	}
	dst = bw.Bool(dst, "helloOk", true)
	dst = bw.String(dst, "setName", setName)
	dst = bw.Int32(dst, "setVersion", 1)
	dst = bw.Bool(dst, "secondary", false)
	dst = bw.Strings(dst, "hosts", addr)
	dst = bw.String(dst, "primary", addr)
	dst = bw.String(dst, "me", addr)
	dst = bw.Int32(dst, "maxBsonObjectSize", wire.MaxDocument)
	dst = bw.Int32(dst, "maxMessageSizeBytes", wire.MaxMessage)
	dst = bw.Int32(dst, "maxWriteBatchSize", wire.MaxWriteBatch)
	dst = bw.Date(dst, "localTime", r.s.clk.Now().UnixMilli())
	dst = bw.Int32(dst, "logicalSessionTimeoutMinutes", sessionMinutes)
	dst = bw.Int32(dst, "connectionId", r.c.id)
	dst = bw.Int32(dst, "minWireVersion", 0)
	dst = bw.Int32(dst, "maxWireVersion", MaxWire)
	dst = bw.Bool(dst, "readOnly", false)
	if u := r.body.Get("saslSupportedMechs"); u.Kind() == value.String {
		dst = bw.Strings(dst, "saslSupportedMechs", "SCRAM-SHA-256", "SCRAM-SHA-1")
	}
	if a := r.body.Get("speculativeAuthenticate"); a.Kind() == value.Object && a.Get("saslStart").IsDefined() {
		n := len(dst)
		at, b := bw.BeginObject(dst, "speculativeAuthenticate")
		if b, err := r.saslStart(b, a); err == nil {
			return bw.End(b, at), nil
		}
		r.c.sasl = nil
		dst = dst[:n]
	}
	return dst, nil
}

func buildInfo(_ *request, dst []byte) ([]byte, error) {
	dst = bw.String(dst, "version", Version)
	dst = bw.String(dst, "gitVersion", "unknown")
	dst = bw.Value(dst, "modules", bw.ArrayValue(nil))
	dst = bw.String(dst, "allocator", "go")
	dst = bw.String(dst, "javascriptEngine", "none")
	dst = bw.String(dst, "sysInfo", "deprecated")
	dst = bw.Value(dst, "versionArray", bw.ArrayValue([]value.Value{value.Int32Of(7), value.Int32Of(0), value.Int32Of(0), value.Int32Of(0)}))
	dst = bw.Int32(dst, "bits", 64)
	dst = bw.Bool(dst, "debug", false)
	dst = bw.Int32(dst, "maxBsonObjectSize", wire.MaxDocument)
	return bw.Strings(dst, "storageEngines", "orrery"), nil
}

func whatsMyURI(r *request, dst []byte) ([]byte, error) {
	return bw.String(dst, "you", r.c.nc.RemoteAddr().String()), nil
}
