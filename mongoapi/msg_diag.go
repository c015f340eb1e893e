package mongoapi

import (
	"context"
	"net"
	"sort"
	"strings"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/ru"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/indexes"
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

// usage returns the number of a collection's documents and their bytes.
func (k *coll) usage(ctx context.Context) (n, size int64, err error) {
	if n, err = k.Count(ctx); err != nil {
		return 0, 0, err
	}
	if size, err = k.Size(ctx); err != nil {
		return 0, 0, err
	}
	return n, size, k.Settle()
}

// appendStats appends the size figures of a collection. The store has only one size: that of all items.
func (k *coll) appendStats(ctx context.Context, dst []byte, scaleArg value.Value) ([]byte, error) {
	scale, err := divisor(scaleArg)
	if err != nil {
		return dst, err
	}
	n, size, err := k.usage(ctx)
	if err != nil {
		return dst, err
	}
	dst = value.AppendElement(dst, "size", value.IntOf(size/scale))
	dst = value.AppendElement(dst, "count", value.IntOf(n))
	if n > 0 {
		dst = value.AppendElement(dst, "avgObjSize", value.IntOf(size/n))
	}
	dst = value.AppendElement(dst, "storageSize", value.IntOf(size/scale))
	dst = k.appendCappedStats(dst, scale)
	dst = bson.AppendInt32(dst, "nindexes", int32(len(k.indexSpecs())+1))
	dst = bson.AppendInt32(dst, "totalIndexSize", 0)
	at, dst := bson.BeginObject(dst, "indexSizes")
	for _, s := range append([]value.Value{indexes.OnID()}, k.indexSpecs()...) {
		dst = bson.AppendInt32(dst, s.Get("name").Str(), 0)
	}
	dst = bson.End(dst, at)
	dst = value.AppendElement(dst, "totalSize", value.IntOf(size/scale))
	return value.AppendElement(dst, "scaleFactor", value.IntOf(scale)), nil
}

func collStatsCommand(r *request, dst []byte) ([]byte, error) {
	name, k, err := r.openNamed()
	if err != nil {
		return dst, err
	}
	dst = bson.AppendString(dst, "ns", r.db+"."+name)
	if r.hasOplog(r.db, name) {
		return r.appendOplogStats(dst, args.Given(r.body, "scale"))
	}
	if k == nil {
		scale, err := divisor(args.Given(r.body, "scale"))
		if err != nil {
			return dst, err
		}
		for _, f := range []string{"size", "count", "storageSize", "totalSize", "nindexes", "totalIndexSize"} {
			dst = bson.AppendInt32(dst, f, 0)
		}
		at, dst := bson.BeginObject(dst, "indexSizes")
		return value.AppendElement(bson.End(dst, at), "scaleFactor", value.IntOf(scale)), nil
	}
	return k.appendStats(r.ctx, dst, args.Given(r.body, "scale"))
}

func dbStats(r *request, dst []byte) ([]byte, error) {
	scale, err := divisor(args.Given(r.body, "scale"))
	if err != nil {
		return dst, err
	}
	var collections, objects, size, indexes int64
	for c, err := range r.s.eng.Stats(r.ctx, r.db) {
		if err != nil {
			return dst, err
		}
		collections++
		objects, size, indexes = objects+c.Items, size+c.Bytes, indexes+int64(len(indexSpecsOf(c.Definition)))+1
		if err := c.Settle(); err != nil {
			return dst, err
		}
	}
	views, err := r.listedViews(true)
	if err != nil {
		return dst, err
	}
	dst = bson.AppendString(dst, "db", r.db)
	dst = bson.AppendInt64(dst, "collections", collections)
	dst = bson.AppendInt64(dst, "views", int64(len(views)))
	dst = bson.AppendInt64(dst, "objects", objects)
	avg := 0.0
	if objects > 0 {
		avg = float64(size) / float64(objects)
	}
	dst = bson.AppendDouble(dst, "avgObjSize", avg)
	dst = bson.AppendDouble(dst, "dataSize", float64(size)/float64(scale))
	dst = bson.AppendDouble(dst, "storageSize", float64(size)/float64(scale))
	dst = bson.AppendInt64(dst, "indexes", indexes)
	dst = bson.AppendDouble(dst, "indexSize", 0)
	dst = bson.AppendDouble(dst, "totalSize", float64(size)/float64(scale))
	dst = bson.AppendInt64(dst, "scaleFactor", scale)
	if r.s.o.Disk == nil {
		return dst, nil
	}
	free, total, err := r.s.o.Disk()
	if err != nil {
		return dst, nil // a disk that can't be asked doesn't keep the other figures back
	}
	dst = bson.AppendDouble(dst, "fsUsedSize", float64(total-free)/float64(scale))
	return bson.AppendDouble(dst, "fsTotalSize", float64(total)/float64(scale)), nil
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
		if n, size, err = k.usage(r.ctx); err != nil {
			return dst, err
		}
	}
	dst = bson.AppendInt64(dst, "size", size)
	return bson.AppendInt64(dst, "numObjects", n), nil
}

// getCmdLineOpts shows how the server was started, by the names of MongoDB's options: what those have in common with
// the server's own ones.
func getCmdLineOpts(r *request, dst []byte) ([]byte, error) {
	dst = bson.AppendStrings(dst, "argv", "orrery", "serve")
	at, dst := bson.BeginObject(dst, "parsed")
	if a, ok := r.c.nc.LocalAddr().(*net.TCPAddr); ok {
		na, b := bson.BeginObject(dst, "net")
		dst = bson.End(bson.AppendInt32(b, "port", int32(a.Port)), na)
	}
	if !r.s.o.Standalone {
		ra, b := bson.BeginObject(dst, "replication")
		dst = bson.End(bson.AppendString(b, "replSetName", r.s.o.SetName), ra)
	}
	authorization := "disabled"
	if r.s.o.Auth {
		authorization = "enabled"
	}
	sa, b := bson.BeginObject(dst, "security")
	dst = bson.End(bson.AppendString(b, "authorization", authorization), sa)
	return bson.End(dst, at), nil
}

func getLastRequestStatistics(r *request, dst []byte) ([]byte, error) {
	dst = bson.AppendString(dst, "CommandName", r.c.last.name)
	dst = bson.AppendDouble(dst, "RequestCharge", ru.Sum(r.c.last.charge))
	return bson.AppendInt64(dst, "RequestDurationInMilliSeconds", r.c.last.millis), nil
}

// adminOnly are the commands that run against the database admin only.
var adminOnly = map[string]bool{"configureFailPoint": true, "enableSharding": true, "getCmdLineOpts": true,
	"getDiagnosticData": true, "getLog": true, "getParameter": true, "hostInfo": true, "killAllSessions": true,
	"killOp": true, "listDatabases": true, "renameCollection": true, "shardCollection": true, "top": true}

func listCommands(r *request, dst []byte) ([]byte, error) {
	names := make([]string, 0, len(commands))
	for n, def := range commands {
		if !def.test || r.s.o.TestCommands {
			names = append(names, n)
		}
	}
	sort.Strings(names)
	at, dst := bson.BeginObject(dst, "commands")
	for _, n := range names {
		ca, b := bson.BeginObject(dst, n)
		_, text := helpOf(n)
		b = bson.AppendString(b, "help", text)
		b = bson.AppendBool(b, "requiresAuth", !commands[n].open)
		b = bson.AppendBool(b, "secondaryOk", !commands[n].retry)
		b = bson.AppendBool(b, "adminOnly", adminOnly[n] || strings.HasPrefix(n, "replSet"))
		dst = bson.End(b, ca)
	}
	return bson.End(dst, at), nil
}
