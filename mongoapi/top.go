package mongoapi

import (
	"math/bits"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// opClass is a class of commands in the counters of serverStatus and top.
type opClass uint8

const (
	opCommand opClass = iota
	opInsert
	opQuery
	opUpdate
	opDelete
	opGetMore
	opClasses
)

// opNames are the names of the classes in opcounters, topNames those in top.
var (
	opNames  = [opClasses]string{"command", "insert", "query", "update", "delete", "getmore"}
	topNames = [opClasses]string{"commands", "insert", "queries", "update", "remove", "getmore"}
)

// opOrder is the order of the classes in opcounters.
var opOrder = [opClasses]opClass{opInsert, opQuery, opUpdate, opDelete, opGetMore, opCommand}

func classOf(command string) opClass {
	switch command {
	case "insert":
		return opInsert
	case "find", "aggregate", "count", "distinct":
		return opQuery
	case "update", "findAndModify", "findandmodify":
		return opUpdate
	case "delete":
		return opDelete
	case "getMore":
		return opGetMore
	}
	return opCommand
}

// topUsage are a namespace's commands since the first top: their number and microseconds, and how many took from 2^i to
// below 2^(i+1) microseconds, at i.
type topUsage [opClasses]struct {
	n, micros atomic.Int64
	spread    [32]atomic.Int64
}

// tops counts what commands do. The numbers of all commands are always counted. Those of namespaces are only counted
// after somebody has asked for them, with top or $collStats, because a namespace has to be looked up for each command;
// so the first one begins with zeros, which is what programs need that show differences.
type tops struct {
	all [opClasses]struct{ n, micros atomic.Int64 }
	on  atomic.Bool
	m   sync.Map // namespace to *topUsage
}

// count counts a command that has ended.
func (t *tops) count(r *request, took time.Duration) {
	class := classOf(r.name)
	t.all[class].n.Add(1)
	t.all[class].micros.Add(took.Microseconds())
	if !t.on.Load() || r.arg.Kind() != value.String || r.db == "" {
		return
	}
	name := r.arg.Str()
	if class == opGetMore {
		name = r.body.Get("collection").Str()
	}
	u, ok := t.m.Load(r.db + "." + name)
	if !ok {
		u, _ = t.m.LoadOrStore(r.db+"."+name, new(topUsage))
	}
	e := &u.(*topUsage)[class]
	e.n.Add(1)
	e.micros.Add(took.Microseconds())
	e.spread[min(max(bits.Len64(uint64(took.Microseconds())), 1), len(e.spread))-1].Add(1)
}

// latencyKind are the classes that share a row of latencies.
type latencyKind struct {
	name    string
	classes []opClass
}

var latencyKinds = [...]latencyKind{{"reads", []opClass{opQuery, opGetMore}},
	{"writes", []opClass{opInsert, opUpdate, opDelete}}, {"commands", []opClass{opCommand}}}

// appendLatency appends the latencyStats of a namespace. Those of transactions aren't counted: their commands are among
// the others.
func (t *tops) appendLatency(dst []byte, ns string, histograms bool) []byte {
	t.on.Store(true)
	u := new(topUsage)
	if have, ok := t.m.Load(ns); ok {
		u = have.(*topUsage)
	}
	at, dst := bson.BeginObject(dst, "latencyStats")
	for _, kind := range append(latencyKinds[:], latencyKind{name: "transactions"}) {
		var n, micros int64
		var spread [len(u[0].spread)]int64
		for _, c := range kind.classes {
			n, micros = n+u[c].n.Load(), micros+u[c].micros.Load()
			for i := range spread {
				spread[i] += u[c].spread[i].Load()
			}
		}
		ka, b := bson.BeginObject(dst, kind.name)
		if histograms {
			var list []value.Value
			for i, count := range spread {
				if count > 0 {
					ea, e := bson.Begin(nil)
					e = bson.AppendInt64(e, "micros", 1<<i&^1) // all below 2 are in the first
					list = append(list, value.ObjectOf(bson.End(bson.AppendInt64(e, "count", count), ea)))
				}
			}
			b = value.AppendElement(b, "histogram", value.MakeArray(list))
		}
		b = bson.AppendInt64(b, "latency", micros)
		dst = bson.End(bson.AppendInt64(b, "ops", n), ka)
	}
	return bson.End(dst, at)
}

// top tells how long the commands on each collection took.
func top(r *request, dst []byte) ([]byte, error) {
	if r.db != "admin" {
		return dst, merr.New(merr.Unauthorized, "top may only be run against the admin database.")
	}
	t := &r.s.tops
	t.on.Store(true)
	var names []string
	t.m.Range(func(ns, _ any) bool {
		names = append(names, ns.(string))
		return true
	})
	sort.Strings(names)
	at, dst := bson.BeginObject(dst, "totals")
	dst = bson.AppendString(dst, "note", "all times in microseconds")
	for _, ns := range names {
		u, _ := t.m.Load(ns)
		na, nb := bson.BeginObject(dst, ns)
		dst = bson.End(u.(*topUsage).append(nb), na)
	}
	return bson.End(dst, at), nil
}

func (u *topUsage) append(dst []byte) []byte {
	var read, write, all [2]int64
	for class := range u {
		x := [2]int64{u[class].micros.Load(), u[class].n.Load()}
		for i := range x {
			all[i] += x[i]
			switch opClass(class) {
			case opQuery, opGetMore:
				read[i] += x[i]
			case opInsert, opUpdate, opDelete:
				write[i] += x[i]
			}
		}
	}
	entry := func(name string, x [2]int64) {
		at, b := bson.BeginObject(dst, name)
		b = bson.AppendInt64(b, "time", x[0])
		dst = bson.End(bson.AppendInt64(b, "count", x[1]), at)
	}
	entry("total", all)
	entry("readLock", read)
	entry("writeLock", write)
	for _, class := range []opClass{opQuery, opGetMore, opInsert, opUpdate, opDelete, opCommand} {
		entry(topNames[class], [2]int64{u[class].micros.Load(), u[class].n.Load()})
	}
	return dst
}

// total returns the number of commands of all classes.
func (t *tops) total() (n int64) {
	for i := range t.all {
		n += t.all[i].n.Load()
	}
	return n
}

// appendAll appends the latencies of the commands of all namespaces.
func (t *tops) appendAll(dst []byte) []byte {
	for _, kind := range latencyKinds {
		var n, micros int64
		for _, c := range kind.classes {
			n, micros = n+t.all[c].n.Load(), micros+t.all[c].micros.Load()
		}
		dst = appendCounts(dst, kind.name, named{"latency", micros}, named{"ops", n})
	}
	return dst
}
