package mongoapi

import (
	"cmp"
	"os"
	"runtime"
	"strings"

	"github.com/orrerydb/orrery/core/bson"
)

// machine is what hostInfo tells of the machine besides what Go knows. What isn't known is left out.
type machine struct {
	memory  int64 // bytes; 0: not known
	limit   int64 // bytes that the process may use at most
	nodes   int32 // of memory; 0: not known
	name    string
	version string
	extra   func(dst []byte) []byte
}

// cpuArchs are MongoDB's names of architectures that have other ones in Go.
var cpuArchs = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

func cpuArch() string { return cmp.Or(cpuArchs[runtime.GOARCH], runtime.GOARCH) }

// hostInfo tells about the machine.
func hostInfo(r *request, dst []byte) ([]byte, error) {
	m := thisMachine()
	host, _ := os.Hostname()
	at, dst := bson.BeginObject(dst, "system")
	dst = bson.AppendDate(dst, "currentTime", r.s.clk.Now().UnixMilli())
	dst = bson.AppendString(dst, "hostname", host)
	dst = bson.AppendInt32(dst, "cpuAddrSize", 64)
	if m.memory > 0 {
		dst = bson.AppendInt64(dst, "memSizeMB", m.memory>>20)
		dst = bson.AppendInt64(dst, "memLimitMB", m.limit>>20)
	}
	dst = bson.AppendInt32(dst, "numCores", int32(runtime.NumCPU()))
	dst = bson.AppendString(dst, "cpuArch", cpuArch())
	if m.nodes > 0 {
		dst = bson.AppendBool(dst, "numaEnabled", m.nodes > 1)
		dst = bson.AppendInt32(dst, "numNumaNodes", m.nodes)
	}
	dst = bson.End(dst, at)
	at, dst = bson.BeginObject(dst, "os")
	dst = bson.AppendString(dst, "type", strings.ToUpper(runtime.GOOS[:1])+runtime.GOOS[1:])
	dst = bson.AppendString(dst, "name", m.name)
	dst = bson.AppendString(dst, "version", m.version)
	dst = bson.End(dst, at)
	at, dst = bson.BeginObject(dst, "extra")
	return bson.End(m.extra(dst), at), nil
}
