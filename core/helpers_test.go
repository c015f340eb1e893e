package core_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

var bg = context.Background()

// engines are the storage engines that every test of this file runs on. kv.Checked checks their contracts. One of them
// says that it is behind a network, so readers read ahead.
var engines = map[string]func(t testing.TB) kv.Engine{
	"mem": func(testing.TB) kv.Engine { return kv.Checked(&kvtest.Slow{Engine: memkv.New(), Far: true}) },
	"pebble": func(t testing.TB) kv.Engine {
		e, err := pebblekv.Open(t.TempDir(),
			pebblekv.Options{Relaxed: true, Scanned: core.OnlyScanned, Kept: core.GotSingly})
		if err != nil {
			t.Fatal(err)
		}
		return kv.Checked(e)
	},
	"shared": func(t testing.TB) kv.Engine { return sharedBy(t, 2, kvtest.Faults{}) },
}

// farEngines returns the engines, and a store of three processes whose calls take time. They are for tests that run
// beside others, because those tests wait.
func farEngines() map[string]func(t testing.TB) kv.Engine {
	all := maps.Clone(engines)
	all["far"] = func(t testing.TB) kv.Engine { return sharedBy(t, 3, kvtest.Faults{Most: time.Millisecond}) }
	return all
}

// sharedBy returns the engine of the first of n processes over a store whose calls end as f says.
func sharedBy(t testing.TB, n int, f kvtest.Faults) kv.Engine {
	s := kvtest.NewShared(memkv.New(), 1)
	s.SetFaults(f)
	e := kv.Checked(s.Engine())
	beside.Store(e, func() kv.Engine { return kv.Checked(s.Engine()) })
	besides.Store(e, n-1)
	t.Cleanup(func() { beside.Delete(e); besides.Delete(e) })
	return e
}

// distant reports whether the engines are behind a network, where a request takes a thousand times as long. The file
// that core/kv/tikvkv adds to these tests sets it.
var distant = func() bool { return false }

// overNetwork returns n, or few for tests over a network.
func overNetwork(n, few int) int {
	if distant() {
		return few
	}
	return n
}

// ownEngines are the engines whose store belongs to one process.
var ownEngines = map[string]func(t testing.TB) kv.Engine{"mem": engines["mem"], "pebble": engines["pebble"]}

// beside has the function that returns the engine of one more process over the same store, by kv.Engine, for engines
// that are one of several. besides has their number, unless it is one.
var beside, besides sync.Map

// A test on a shared engine has two processes or more. The helpers put, ids and paged use them in turn, so that the one
// reads what the other has written.
var (
	twins sync.Map // by *core.Engine and *core.Container: those of the other processes
	turns atomic.Int64
)

// twinsOf returns the containers of the other processes.
func twinsOf(c *core.Container) []*core.Container {
	others, _ := twins.Load(c)
	all, _ := others.([]*core.Container)
	return all
}

// inTurn returns the container of the process whose turn it is.
func inTurn(c *core.Container) *core.Container {
	others := twinsOf(c)
	if len(others) == 0 {
		return c
	}
	if i := int(turns.Add(1)) % (len(others) + 1); i < len(others) {
		return others[i]
	}
	return c
}

// inOneProcess has the helpers use a container only in the process that it was opened in: for what a process counts by
// itself, as consumption, and for creation order, which over several processes is one of blocks.
func inOneProcess(c *core.Container) { twins.Delete(c) }

// openTwins opens the other processes over the store of an engine, if that is a shared one.
func openTwins(t testing.TB, of kv.Engine, e *core.Engine, o core.Options) {
	open, ok := beside.Load(of)
	if !ok {
		return
	}
	n := 1
	if more, ok := besides.Load(of); ok {
		n = more.(int)
	}
	var all []*core.Engine
	for range n {
		twin, err := core.Open(bg, open.(func() kv.Engine)(), o)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, twin)
		t.Cleanup(func() {
			if err := twin.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	twins.Store(e, all)
	t.Cleanup(func() { twins.Delete(e) })
}

// someSlots is the number of slots of containers in tests that don't say how many: with several of them, what a client
// sees as one order is merged.
const someSlots = 4

// onEngines runs f on an engine of each kind. Afterwards the checker must find nothing.
func onEngines(t *testing.T, o core.Options, f func(t *testing.T, e *core.Engine)) {
	on(t, engines, o, f)
}

// on does the same with some engines.
func on(t *testing.T, engines map[string]func(testing.TB) kv.Engine, o core.Options,
	f func(t *testing.T, e *core.Engine)) {
	o.MinSlots = cmp.Or(o.MinSlots, someSlots)
	for name, open := range engines {
		t.Run(name, func(t *testing.T) {
			eng := open(t)
			e, err := core.Open(bg, eng, o)
			if err != nil {
				t.Fatal(err)
			}
			openTwins(t, eng, e, o)
			defer func() {
				problems, err := e.Check(bg)
				if err != nil || len(problems) > 0 {
					t.Errorf("check: %v %s", err, strings.Join(problems, "\n"))
				}
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			}()
			f(t, e)
		})
	}
}

// opened opens a store. At the end of the test the checker must find nothing, and the store is closed.
func opened(t testing.TB, eng kv.Engine, o core.Options) *core.Engine {
	t.Helper()
	e, err := core.Open(bg, eng, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		clean(t, e)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// The counters of a container, without their errors: the helpers panic where the store can't be read.
func counted(c *core.Container) int64                 { return must(c.Count(bg)) }
func bytesOf(c *core.Container) int64                 { return must(c.Size(bg)) }
func lastLSN(c *core.Container) int64                 { return must(c.LSN(bg)) }
func givenLSN(c *core.Container) int64                { return must(c.GivenLSN(bg)) }
func partitionsOf(c *core.Container) []core.Partition { return must(c.Partitions(bg)) }
func resizing(e *core.Engine, db, id string) bool     { return must(e.Resizing(bg, db, id)) }

func newContainer(t testing.TB, e *core.Engine, spec core.ContainerSpec) *core.Container {
	t.Helper()
	if _, err := e.EnsureDatabase(bg, "db"); err != nil {
		t.Fatal(err)
	}
	if spec.ID == "" {
		spec.ID = "c"
	}
	if spec.PartitionKey.Paths == nil {
		spec.PartitionKey.Paths = []string{"/pk"}
	}
	c, err := e.CreateContainer(bg, "db", spec)
	if err != nil {
		t.Fatal(err)
	}
	if others, ok := twins.Load(e); ok {
		var all []*core.Container
		for _, twin := range others.([]*core.Engine) {
			other, err := twin.Container("db", spec.ID)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, other)
		}
		twins.Store(c, all)
		t.Cleanup(func() { twins.Delete(c) })
	}
	return c
}

// databases returns the number of databases.
func databases(t testing.TB, e *core.Engine) int {
	t.Helper()
	dbs, err := e.Databases(bg)
	if err != nil {
		t.Fatal(err)
	}
	return len(dbs)
}

// containersOf returns the number of containers of database "db".
func containersOf(t testing.TB, e *core.Engine) int {
	t.Helper()
	n, err := e.ContainerCount(bg, "db")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func mustDoc(t testing.TB, json string) doc.Doc {
	t.Helper()
	d, err := doc.FromJSON(nil, []byte(json), doc.JSONOptions{Names: doc.NoSQL})
	if err != nil {
		t.Fatalf("%s: %v", json, err)
	}
	return d
}

func put(t testing.TB, c *core.Container, kind core.WriteKind, json string) core.Result {
	t.Helper()
	r, err := inTurn(c).Write(bg, core.Write{Kind: kind, Doc: mustDoc(t, json)})
	if err != nil {
		t.Fatalf("%s: %v", json, err)
	}
	return r
}

func pk(v ...string) core.PartitionKey {
	var p core.PartitionKey
	for _, s := range v {
		p = append(p, value.StringOf(s))
	}
	return p
}

func json(it *core.Item) string {
	return string(doc.AppendJSON(nil, value.ObjectOf(it.Doc)))
}

func wantCode(t testing.TB, err error, code status.Code, sub int) {
	t.Helper()
	if err == nil || status.CodeOf(err) != code || status.From(err).Sub != sub {
		t.Fatalf("error is %v, want code %d sub-status %d", err, code, sub)
	}
}

// ids runs a query to its end in one page.
func ids(t testing.TB, c *core.Container, q *exec.Query) []string {
	t.Helper()
	r, err := inTurn(c).Query(bg, q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out []string
	for r.Next() {
		out = append(out, r.Item().ID().Str())
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	return out
}

// paged runs a query in pages of n rows.
func paged(t testing.TB, c *core.Container, q exec.Query, n int) []string {
	t.Helper()
	var out []string
	q.Page = n
	for pages := 0; pages < 10000; pages++ {
		r, err := inTurn(c).Query(bg, &q)
		if err != nil {
			t.Fatal(err)
		}
		k := 0
		for k < n && r.Next() {
			out = append(out, r.Item().ID().Str())
			k++
		}
		if r.Err() != nil {
			t.Fatal(r.Err())
		}
		tok := r.Continuation()
		if len(tok) > 1024 {
			t.Fatalf("continuation of %d bytes", len(tok))
		}
		done := r.Exhausted()
		r.Close()
		if done || tok == "" {
			return out
		}
		q.Continuation = tok
	}
	t.Fatal("the query does not end")
	return nil
}

// eqQuery is an exact query for the items whose field is n.
func eqQuery(field string, n int) *exec.Query {
	return &exec.Query{Pred: access.Eq(access.NewPath(field), value.Int32Of(int32(n))), PlanHash: uint64(n),
		Match: func(it *core.Item) (bool, error) {
			return value.EqualCosmos(doc.Get(it.Doc, field), value.Int32Of(int32(n))), nil
		}}
}

// sealed appends the checksum of a token.
func sealed(b []byte) []byte { return binary.BigEndian.AppendUint32(b, uint32(xxhash.Sum64(b))) }
