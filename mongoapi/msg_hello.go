package mongoapi

import (
	"bytes"
	"runtime"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/users"
	"github.com/orrerydb/orrery/mongoapi/wire"
)

// metadata is the document that a client sends about itself, with its driver, system and application. Empty if it has
// sent none.
type metadata []byte

// Limits of what a client says about itself, which its connection keeps.
const maxMetadata, maxAppName = 1024, 128

// checkMetadata refuses what isn't such a document, or is too long. What MongoDB requires to be in it may be missing.
func checkMetadata(m value.Value) error {
	app := m.Get("application")
	switch name := app.Get("name"); {
	case m.Kind() != value.Object:
		return merr.New(merr.TypeMismatch, "The client metadata document must be a document")
	case len(m.Bytes()) > maxMetadata:
		return merr.New(merr.MetadataTooLarge, "The client metadata document must be less then or equal to %d bytes",
			maxMetadata)
	case app.IsDefined() && app.Kind() != value.Object:
		return merr.New(merr.TypeMismatch,
			"The 'application' field is required to be a BSON document in the client metadata document")
	case name.IsDefined() && name.Kind() != value.String:
		return merr.New(merr.TypeMismatch,
			"The 'application.name' field must be a string in the client metadata document")
	case len(name.Str()) > maxAppName:
		return merr.New(merr.AppNameTooLarge, "The 'application.name' field must be less then or equal to %d bytes in "+
			"the client metadata document", maxAppName)
	}
	return nil
}

// app is the name that the client gave itself.
func (m metadata) app() string {
	if len(m) == 0 {
		return ""
	}
	return value.ObjectOf(m).Get("application").Get("name").Str()
}

// hello announces the primary of a replica set with one member, or a single server.
func hello(r *request, dst []byte) ([]byte, error) {
	if m := r.body.Get("client"); m.IsDefined() {
		if err := checkMetadata(m); err != nil {
			return dst, err
		}
		r.c.client = bytes.Clone(m.Bytes())
	}
	if err := r.awaitTopology(); err != nil {
		return dst, err
	}
	dst = r.appendTopologyVersion(dst)
	if r.name == "hello" {
		dst = bson.AppendBool(dst, "isWritablePrimary", true)
	} else {
		dst = bson.AppendBool(dst, "ismaster", true)
	}
	dst = bson.AppendBool(dst, "helloOk", true)
	if !r.s.o.Standalone {
		dst = r.appendMember(dst)
	}
	dst = bson.AppendInt32(dst, "maxBsonObjectSize", wire.MaxDocument)
	dst = bson.AppendInt32(dst, "maxMessageSizeBytes", wire.MaxMessage)
	dst = bson.AppendInt32(dst, "maxWriteBatchSize", wire.MaxWriteBatch)
	dst = bson.AppendDate(dst, "localTime", r.s.clk.Now().UnixMilli())
	dst = bson.AppendInt32(dst, "logicalSessionTimeoutMinutes", sessionMinutes)
	dst = bson.AppendInt32(dst, "connectionId", r.c.id)
	dst = bson.AppendInt32(dst, "minWireVersion", 0)
	dst = bson.AppendInt32(dst, "maxWireVersion", r.s.release.wire)
	dst = bson.AppendBool(dst, "readOnly", false)
	dst = appendCompressors(dst, r.body.Get("compression"))
	if u := r.body.Get("saslSupportedMechs"); u.Kind() == value.String {
		names, err := r.mechanisms(u.Str())
		if err != nil {
			return dst, err
		}
		dst = bson.AppendStrings(dst, "saslSupportedMechs", names...)
	}
	if a := r.body.Get("speculativeAuthenticate"); a.Kind() == value.Object && a.Get("saslStart").IsDefined() {
		n := len(dst)
		at, b := bson.BeginObject(dst, "speculativeAuthenticate")
		db := a.Get("db").Str()
		if db == "" {
			db = users.DB
		}
		if b, err := r.saslStart(b, a, db); err == nil {
			return bson.End(b, at), nil
		}
		r.c.sasl = nil
		dst = dst[:n]
	}
	return dst, nil
}

func buildInfo(r *request, dst []byte) ([]byte, error) {
	dst = bson.AppendString(dst, "version", r.s.release.version())
	dst = bson.AppendString(dst, "gitVersion", "unknown")
	dst = value.AppendElement(dst, "modules", value.MakeArray(nil))
	dst = bson.AppendString(dst, "allocator", "go")
	engine := "none"
	if r.s.o.Scripts != nil {
		engine = "mozjs" // what programs look for
	}
	dst = bson.AppendString(dst, "javascriptEngine", engine)
	dst = bson.AppendString(dst, "sysInfo", "deprecated")
	dst = r.s.release.appendNumbers(dst, "versionArray")
	at, dst := bson.BeginObject(dst, "buildEnvironment")
	for _, name := range []string{"distarch", "target_arch"} {
		dst = bson.AppendString(dst, name, cpuArch())
	}
	dst = bson.End(bson.AppendString(dst, "target_os", runtime.GOOS), at)
	dst = bson.AppendInt32(dst, "bits", 64)
	dst = bson.AppendBool(dst, "debug", false)
	dst = bson.AppendInt32(dst, "maxBsonObjectSize", wire.MaxDocument)
	return bson.AppendStrings(dst, "storageEngines", "orrery"), nil
}

func whatsMyURI(r *request, dst []byte) ([]byte, error) {
	return bson.AppendString(dst, "you", r.c.nc.RemoteAddr().String()), nil
}
