package mongoapi

import (
	"os"
	"runtime"
	"sort"
	"strings"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/bw"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// divisor reads a scale argument.
func divisor(v value.Value) (int64, error) {
	if !v.IsDefined() {
		return 1, nil
	}
	n, ok := num.ToInt64(v, true)
	if !ok || n < 1 {
		return 0, merr.New(51024, "BSON field 'scale' value must be >= 1")
	}
	return n, nil
}

// appendStats appends the size figures of a collection. The store keeps one size: that of all items.
func (k *coll) appendStats(dst []byte, scaleArg value.Value) ([]byte, error) {
	scale, err := divisor(scaleArg)
	if err != nil {
		return dst, err
	}
	n, size := k.Count(), k.Size()
	if err := k.Settle(); err != nil {
		return dst, err
	}
	dst = bw.Value(dst, "size", value.IntOf(size/scale))
	dst = bw.Value(dst, "count", value.IntOf(n))
	if n > 0 {
		dst = bw.Value(dst, "avgObjSize", value.IntOf(size/n))
	}
	dst = bw.Value(dst, "storageSize", value.IntOf(size/scale))
	dst = bw.Bool(dst, "capped", false)
	dst = bw.Int32(dst, "nindexes", int32(len(k.indexSpecs())+1))
	dst = bw.Int32(dst, "totalIndexSize", 0)
	at, dst := bw.BeginObject(dst, "indexSizes")
	for _, s := range append([]value.Value{idIndex()}, k.indexSpecs()...) {
		dst = bw.Int32(dst, s.Get("name").Str(), 0)
	}
	dst = bw.End(dst, at)
	dst = bw.Value(dst, "totalSize", value.IntOf(size/scale))
	return bw.Value(dst, "scaleFactor", value.IntOf(scale)), nil
}

func collStatsCommand(r *request, dst []byte) ([]byte, error) {
	name, err := r.collection()
	if err != nil {
		return dst, err
	}
	k, err := r.open(r.db, name)
	if err != nil {
		return dst, err
	}
	dst = bw.String(dst, "ns", r.db+"."+name)
	if k == nil {
		for _, f := range []string{"size", "count", "storageSize", "totalSize", "nindexes", "totalIndexSize"} {
			dst = bw.Int32(dst, f, 0)
		}
		return dst, nil
	}
	return k.appendStats(dst, r.body.Get("scale"))
}

func dbStats(r *request, dst []byte) ([]byte, error) {
	scale, err := divisor(r.body.Get("scale"))
	if err != nil {
		return dst, err
	}
	var collections, objects, size, indexes int64
	for c, err := range r.s.eng.Stats(r.db) {
		if err != nil {
			return dst, err
		}
		collections++
		objects, size, indexes = objects+c.Items, size+c.Bytes, indexes+int64(len(indexSpecsOf(c.Definition)))+1
		if err := c.Settle(); err != nil {
			return dst, err
		}
	}
	dst = bw.String(dst, "db", r.db)
	dst = bw.Int64(dst, "collections", collections)
	dst = bw.Int64(dst, "views", 0)
	dst = bw.Int64(dst, "objects", objects)
	avg := 0.0
	if objects > 0 {
		avg = float64(size) / float64(objects)
	}
	dst = bw.Double(dst, "avgObjSize", avg)
	dst = bw.Double(dst, "dataSize", float64(size)/float64(scale))
	dst = bw.Double(dst, "storageSize", float64(size)/float64(scale))
	dst = bw.Int64(dst, "indexes", indexes)
	dst = bw.Double(dst, "indexSize", 0)
	dst = bw.Double(dst, "totalSize", float64(size)/float64(scale))
	return bw.Int64(dst, "scaleFactor", scale), nil
}

func dataSize(r *request, dst []byte) ([]byte, error) {
	db, name, err := splitNS(r.arg)
	if err != nil {
		return dst, err
	}
	for _, f := range []string{"min", "max", "keyPattern"} {
		if r.body.Get(f).IsDefined() {
			return dst, merr.NotSupported("a range of dataSize")
		}
	}
	k, err := r.open(db, name)
	if err != nil {
		return dst, err
	}
	var size, n int64
	if k != nil {
		size, n = k.Size(), k.Count()
		err = k.Settle()
	}
	dst = bw.Int64(dst, "size", size)
	return bw.Int64(dst, "numObjects", n), err
}

func connectionStatus(r *request, dst []byte) ([]byte, error) {
	at, dst := bw.BeginObject(dst, "authInfo")
	users := []value.Value(nil)
	if r.c.user != "" {
		ua, b := bw.Begin(nil)
		b = bw.String(b, "user", r.c.user)
		users = append(users, value.ObjectOf(bw.End(bw.String(b, "db", "admin"), ua)))
	}
	dst = bw.Value(dst, "authenticatedUsers", bw.ArrayValue(users))
	dst = bw.Value(dst, "authenticatedUserRoles", bw.ArrayValue(nil))
	return bw.End(dst, at), nil
}

func getCmdLineOpts(_ *request, dst []byte) ([]byte, error) {
	dst = bw.Strings(dst, "argv", "orrery", "serve")
	at, dst := bw.BeginObject(dst, "parsed")
	return bw.End(dst, at), nil
}

func getLastRequestStatistics(r *request, dst []byte) ([]byte, error) {
	dst = bw.String(dst, "CommandName", r.c.last.name)
	dst = bw.Double(dst, "RequestCharge", r.c.last.charge)
	return bw.Int64(dst, "RequestDurationInMilliSeconds", r.c.last.millis), nil
}

func getLog(r *request, dst []byte) ([]byte, error) {
	switch r.arg.Str() {
	case "*":
		return bw.Strings(dst, "names", "global", "startupWarnings"), nil
	case "global", "startupWarnings":
		dst = bw.Int32(dst, "totalLinesWritten", 0)
		return bw.Value(dst, "log", bw.ArrayValue(nil)), nil
	}
	return dst, merr.New(merr.OperationFailed, "no RamLog named: %s", r.arg.Str())
}

func getParameter(r *request, dst []byte) ([]byte, error) {
	n := len(dst)
	if r.arg.Str() == "*" || r.body.Get("featureCompatibilityVersion").IsDefined() {
		at, b := bw.BeginObject(dst, "featureCompatibilityVersion")
		dst = bw.End(bw.String(b, "version", "7.0"), at)
	}
	if len(dst) == n {
		return dst, merr.New(merr.InvalidOptions, "no option found to get")
	}
	return dst, nil
}

func hostInfo(r *request, dst []byte) ([]byte, error) {
	name, _ := os.Hostname()
	at, dst := bw.BeginObject(dst, "system")
	dst = bw.Date(dst, "currentTime", r.s.clk.Now().UnixMilli())
	dst = bw.String(dst, "hostname", name)
	dst = bw.Int32(dst, "cpuAddrSize", 64)
	dst = bw.Int32(dst, "numCores", int32(runtime.NumCPU()))
	dst = bw.String(dst, "cpuArch", runtime.GOARCH)
	dst = bw.End(dst, at)
	at, dst = bw.BeginObject(dst, "os")
	dst = bw.String(dst, "type", strings.ToUpper(runtime.GOOS[:1])+runtime.GOOS[1:])
	dst = bw.String(dst, "name", runtime.GOOS)
	dst = bw.End(dst, at)
	at, dst = bw.BeginObject(dst, "extra")
	return bw.End(dst, at), nil
}

func listCommands(_ *request, dst []byte) ([]byte, error) {
	names := make([]string, 0, len(commands))
	for n := range commands {
		names = append(names, n)
	}
	sort.Strings(names)
	at, dst := bw.BeginObject(dst, "commands")
	for _, n := range names {
		ca, b := bw.BeginObject(dst, n)
		b = bw.Bool(b, "requiresAuth", !commands[n].open)
		dst = bw.End(b, ca)
	}
	return bw.End(dst, at), nil
}

func replSetGetStatus(r *request, dst []byte) ([]byte, error) {
	dst = bw.String(dst, "set", setName)
	dst = bw.Date(dst, "date", r.s.clk.Now().UnixMilli())
	dst = bw.Int32(dst, "myState", 1)
	at, dst := bw.BeginArray(dst, "members")
	ma, dst := bw.BeginObject(dst, "0")
	dst = bw.Int32(dst, "_id", 0)
	dst = bw.String(dst, "name", r.c.nc.LocalAddr().String())
	dst = bw.Double(dst, "health", 1)
	dst = bw.Int32(dst, "state", 1)
	dst = bw.String(dst, "stateStr", "PRIMARY")
	dst = bw.Bool(dst, "self", true)
	return bw.End(bw.End(dst, ma), at), nil
}

func serverStatus(r *request, dst []byte) ([]byte, error) {
	now := r.s.clk.Now()
	name, _ := os.Hostname()
	dst = bw.String(dst, "host", name)
	dst = bw.String(dst, "version", Version)
	dst = bw.String(dst, "process", "orrery")
	dst = bw.Int64(dst, "pid", int64(os.Getpid()))
	up := now.Sub(r.s.began)
	dst = bw.Double(dst, "uptime", up.Seconds())
	dst = bw.Int64(dst, "uptimeMillis", up.Milliseconds())
	dst = bw.Date(dst, "localTime", now.UnixMilli())
	at, dst := bw.BeginObject(dst, "connections")
	dst = bw.Int32(dst, "current", int32(r.s.connections()))
	dst = bw.Int32(dst, "totalCreated", r.s.connID.Load())
	dst = bw.End(dst, at)
	at, dst = bw.BeginObject(dst, "metrics")
	ca, dst := bw.BeginObject(dst, "cursor")
	oa, dst := bw.BeginObject(dst, "open")
	dst = bw.Int64(dst, "total", int64(r.s.cursors.open()))
	dst = bw.End(bw.End(bw.End(dst, oa), ca), at)
	at, dst = bw.BeginObject(dst, "storageEngine")
	dst = bw.String(dst, "name", "orrery")
	return bw.End(dst, at), nil
}
