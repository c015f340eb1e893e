package mongoapi

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/internal/admit"
	"github.com/orrerydb/orrery/internal/observe"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// soon is a time within which an expected event has certainly happened.
const soon = 20 * time.Second

// endless is a pipeline of 5000^3 steps.
var endless = bson.A{
	bson.D{{Key: "$documents", Value: bson.A{bson.D{{Key: "a", Value: 1}}}}},
	bson.D{{Key: "$project", Value: bson.D{{Key: "x", Value: loops(3)}}}},
}

// loops nests n loops of 5000 steps.
func loops(n int) any {
	if n == 0 {
		return bson.D{{Key: "$add", Value: bson.A{"$$value", "$$this"}}}
	}
	in := loops(n - 1)
	if n > 1 {
		in = bson.D{{Key: "$add", Value: bson.A{"$$value", in}}}
	}
	return bson.D{
		{
			Key: "$reduce",
			Value: bson.D{
				{Key: "input", Value: bson.D{{Key: "$range", Value: bson.A{0, 5000}}}},
				{Key: "initialValue", Value: 0},
				{Key: "in", Value: in},
			},
		},
	}
}

func pipe(p bson.A) bson.D {
	return bson.D{
		{Key: "aggregate", Value: 1},
		{Key: "pipeline", Value: p},
		{Key: "cursor", Value: bson.D{}},
		{Key: "$db", Value: "admin"},
	}
}

// serve runs a server on a free port.
func serve(t *testing.T, o Options, b *budget.Budget) (*Server, string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := newServerWithin(t, o, b)
	go func() { _ = s.Serve(ln) }()
	return s, ln.Addr().String()
}

// client is one raw connection.
type client struct {
	t *testing.T
	net.Conn
}

func connect(t *testing.T, addr string) *client {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &client{t, c}
}

func (c *client) send(d bson.D) {
	c.t.Helper()
	if _, err := c.Write(rawMsg(c.t, d)); err != nil {
		c.t.Fatal(err)
	}
}

// rawMsg returns an OP_MSG with a document, which may contain its database.
func rawMsg(t testing.TB, d bson.D) []byte {
	for _, e := range d {
		if e.Key == "$db" {
			b, err := bson.Marshal(d)
			if err != nil {
				t.Fatal(err)
			}
			return message(2013, append([]byte{0, 0, 0, 0, 0}, b...))
		}
	}
	return opMsg(t, d)
}

func (c *client) recv() (bson.Raw, error) {
	_ = c.SetReadDeadline(time.Now().Add(soon))
	var h [16]byte
	if _, err := io.ReadFull(c, h[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.LittleEndian.Uint32(h[:])-16)
	if _, err := io.ReadFull(c, b); err != nil {
		return nil, err
	}
	return bson.Raw(b[5:]), nil
}

func (c *client) ask(d bson.D) (bson.Raw, errorReply) {
	c.t.Helper()
	c.send(d)
	raw, err := c.recv()
	if err != nil {
		c.t.Fatal(err)
	}
	var e errorReply
	if err := bson.Unmarshal(raw, &e); err != nil {
		c.t.Fatal(err)
	}
	return raw, e
}

// watcher is an Observer that records what it is told.
type watcher struct {
	observe.None
	mu     sync.Mutex
	began  int
	done   []observe.Request
	plans  []string
	change chan struct{}
}

func newWatcher() *watcher { return &watcher{change: make(chan struct{}, 1000)} }

func (w *watcher) Begin(api string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.began++
	if api != "mongo" {
		w.began = -1000
	}
}

func (w *watcher) Done(r *observe.Request) {
	plan := ""
	if r.Explain != nil {
		plan = r.Explain()
	}
	w.mu.Lock()
	w.done, w.plans = append(w.done, *r), append(w.plans, plan)
	w.mu.Unlock()
	w.change <- struct{}{}
}

// nth waits for the n-th request to end.
func (w *watcher) nth(t *testing.T, n int) (observe.Request, string) {
	t.Helper()
	for {
		w.mu.Lock()
		if len(w.done) >= n {
			defer w.mu.Unlock()
			return w.done[n-1], w.plans[n-1]
		}
		w.mu.Unlock()
		select {
		case <-w.change:
		case <-time.After(soon):
			t.Fatalf("request %d doesn't end", n)
		}
	}
}

// waitOp waits until a command runs and returns its number.
func waitOp(t *testing.T, c *client, name string) int32 {
	t.Helper()
	for began := time.Now(); time.Since(began) < soon; time.Sleep(5 * time.Millisecond) {
		raw, _ := c.ask(bson.D{{Key: "currentOp", Value: 1}, {Key: "$db", Value: "admin"}})
		ops, _ := raw.Lookup("inprog").Array().Values()
		for _, op := range ops {
			if cmd, err := op.Document().Lookup("command").Document().IndexErr(0); err == nil && cmd.Key() == name {
				return op.Document().Lookup("opid").Int32()
			}
		}
	}
	t.Fatalf("no %s runs", name)
	return 0
}

// TestEndsOfCommands ends a command that would run for hours in each possible way.
func TestEndsOfCommands(t *testing.T) {
	w := newWatcher()
	var log bytes.Buffer
	_, addr := serve(t, Options{Observe: w, Logger: slog.New(slog.NewTextHandler(&log, nil))}, nil)
	other := connect(t, addr)
	t.Run("its client leaves", func(t *testing.T) {
		c := connect(t, addr)
		c.send(pipe(endless))
		waitOp(t, other, "aggregate")
		_ = c.Close()
		for n := 1; ; n++ {
			r, _ := w.nth(t, n)
			if r.Operation != "aggregate" {
				continue
			}
			if !r.Left || r.Status != "279" || r.Failed {
				t.Errorf("%+v", r)
			}
			return
		}
	})
	t.Run("it is killed", func(t *testing.T) {
		c := connect(t, addr)
		c.send(pipe(endless))
		op := waitOp(t, other, "aggregate")
		if _, e :=
			other.ask(bson.D{{Key: "killOp", Value: 1}, {Key: "op", Value: op}, {Key: "$db", Value: "admin"}}); e.OK !=
			1 {
			t.Fatal(e)
		}
		if raw, err := c.recv(); err != nil || raw.Lookup("code").Int32() != 11601 {
			t.Fatalf("%s %v", raw, err)
		}
		if _, e := c.ask(bson.D{{Key: "ping", Value: 1}}); e.OK != 1 {
			t.Error("the connection doesn't go on", e)
		}
	})
	t.Run("maxTimeMS", func(t *testing.T) {
		if _, e := connect(t, addr).ask(append(pipe(endless), bson.E{Key: "maxTimeMS", Value: 50})); e.Code != 50 {
			t.Error(e)
		}
	})
	t.Run("a pipelined message comes meanwhile", func(t *testing.T) {
		c := connect(t, addr)
		c.send(append(pipe(endless), bson.E{Key: "maxTimeMS", Value: 300}))
		time.Sleep(100 * time.Millisecond)
		c.send(bson.D{{Key: "ping", Value: 1}})
		for i, code := range []int32{50, 0} {
			raw, err := c.recv()
			if got, _ := raw.Lookup("code").Int32OK(); err != nil || got != code {
				t.Fatalf("answer %d: %s %v", i, raw, err)
			}
		}
	})
	if strings.Contains(log.String(), "level=ERROR") {
		t.Error(log.String())
	}
}

func TestMaxTime(t *testing.T) {
	_, addr := serve(t, Options{MaxTime: 100 * time.Millisecond}, nil)
	c := connect(t, addr)
	began := time.Now()
	if _, e := c.ask(pipe(endless)); e.Code != 50 || e.CodeName != "MaxTimeMSExpired" ||
		time.Since(began) < 100*time.Millisecond {
		t.Errorf("%+v after %v", e, time.Since(began))
	}
	if _, e := c.ask(append(pipe(endless), bson.E{Key: "maxTimeMS", Value: 3_600_000})); e.Code != 50 {
		t.Errorf("with an hour of its own: %+v", e)
	}
	time.Sleep(150 * time.Millisecond) // an idle connection has no age
	if _, e := c.ask(bson.D{{Key: "ping", Value: 1}}); e.OK != 1 {
		t.Error(e)
	}
}

// lookups nests n $lookup stages over all documents: the number of steps is the number of documents to the power of
// n+1. Each $lookup uses a value of its document, so that none is evaluated once for all.
func lookups(n int, docs bson.D) bson.D {
	all := bson.D{{Key: "$ne", Value: bson.A{"$_id", bson.D{{Key: "$add", Value: bson.A{"$$id", 0.5}}}}}}
	p := bson.A{docs, bson.D{{Key: "$match", Value: bson.D{{Key: "$expr", Value: all}}}}}
	if n > 1 {
		p = append(p, lookups(n-1, docs))
	}
	return bson.D{{Key: "$lookup", Value: bson.D{{Key: "let", Value: bson.D{{Key: "id", Value: "$_id"}}},
		{Key: "pipeline", Value: p}, {Key: "as", Value: "x"}}}}
}

// TestLoopsEnd: each kind of loop ends soon after its context.
func TestLoopsEnd(t *testing.T) {
	_, addr := serve(t, Options{MaxTime: 60 * time.Millisecond}, nil)
	c := connect(t, addr)
	rng := func(n int) bson.D { return bson.D{{Key: "$range", Value: bson.A{0, n}}} }
	over := func(op, body string, input, in any) bson.D {
		return bson.D{{Key: op, Value: bson.D{{Key: "input", Value: input}, {Key: body, Value: in}}}}
	}
	docs := bson.D{{Key: "$documents", Value: over("$map", "in", rng(900), bson.D{{Key: "_id", Value: "$$this"}})}}
	long := bson.D{
		{
			Key: "$reduce",
			Value: bson.D{
				{Key: "input", Value: rng(20)},
				{Key: "initialValue", Value: "a"},
				{Key: "in", Value: bson.D{{Key: "$concat", Value: bson.A{"$$value", "$$value"}}}},
			},
		},
	}
	slow := over("$map", "in", rng(2000), over("$filter", "cond", rng(2000), false))
	for name, p := range map[string]bson.A{
		"$map in $map": {
			docs,
			bson.D{
				{Key: "$project", Value: bson.D{
					{
						Key: "x", Value: over(
							"$map", "in", rng(5000),
							over("$map", "in", rng(5000), over("$map", "in", rng(5000), "$$this")))}}}}},
		"$filter of a constant": {
			docs,
			bson.D{
				{Key: "$project", Value: bson.D{
					{Key: "x", Value: over("$map", "in", rng(5000), over("$filter", "cond", rng(50000), false))}}}}},
		"$reduce":                {docs, bson.D{{Key: "$project", Value: bson.D{{Key: "x", Value: loops(3)}}}}},
		"$group by what is slow": {docs, bson.D{{Key: "$group", Value: bson.D{{Key: "_id", Value: slow}}}}},
		"$sort behind it": {docs, bson.D{{Key: "$addFields", Value: bson.D{{Key: "x", Value: slow}}}},
			bson.D{{Key: "$sort", Value: bson.D{{Key: "x", Value: 1}}}}},
		"$expr": {
			docs,
			bson.D{
				{Key: "$match", Value: bson.D{{Key: "$expr", Value: bson.D{{Key: "$eq", Value: bson.A{slow, 1}}}}}}}},
		"$facet": {
			docs,
			bson.D{
				{
					Key: "$facet", Value: bson.D{
						{
							Key: "a", Value: bson.A{
								bson.D{{Key: "$project", Value: bson.D{{Key: "x", Value: slow}}}}}}}}}},
		"$unionWith":                   {docs, bson.D{{Key: "$unionWith", Value: bson.D{{Key: "pipeline", Value: bson.A{docs, bson.D{{Key: "$project", Value: bson.D{{Key: "x", Value: slow}}}}}}}}}, bson.D{{Key: "$count", Value: "n"}}},
		"$lookup with a pipeline":      {docs, lookups(4, docs)},
		"$regexFindAll of a long text": {docs, bson.D{{Key: "$project", Value: bson.D{{Key: "x", Value: bson.D{{Key: "$regexFindAll", Value: bson.D{{Key: "input", Value: long}, {Key: "regex", Value: "a(.*b)?"}}}}}}}}},
		"a filter on a long text":      {docs, bson.D{{Key: "$project", Value: bson.D{{Key: "x", Value: long}}}}, bson.D{{Key: "$match", Value: bson.D{{Key: "x", Value: bson.Regex{Pattern: "(a{900}b|a{901}c)"}}}}}},
		"$in of a long list": {
			docs,
			bson.D{
				{Key: "$project", Value: bson.D{
					{
						Key: "x", Value: over(
							"$map", "in", rng(100000), bson.D{{Key: "$in", Value: bson.A{-1, rng(100000)}}})}}}}},
		"$switch, $cond and $and": {docs,
			bson.D{
				{Key: "$project", Value: bson.D{
					{
						Key: "x", Value: over(
							"$map", "in", rng(5000),
							over("$map", "in", rng(50000), bson.D{{Key: "$cond", Value: bson.A{"$$this", 1, 2}}}))}}}}},
		"$sortArray of many lists": {docs,
			bson.D{
				{Key: "$project", Value: bson.D{
					{
						Key: "x", Value: over(
							"$map", "in", rng(5000),
							bson.D{
								{Key: "$sortArray",
									Value: bson.D{
										{Key: "input", Value: rng(50000)}, {Key: "sortBy", Value: -1}}}})}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			if _, e := c.ask(pipe(p)); e.Code != 50 && e.Code != 146 && e.Code != 292 || time.Since(began) > soon/2 {
				t.Errorf("%+v after %v", e, time.Since(began))
			}
		})
	}
}

// TestKillCursorsEndsItsReader: a getMore on a cursor that is killed ends.
func TestKillCursorsEndsItsReader(t *testing.T) {
	_, addr := serve(t, Options{}, nil)
	c, other := connect(t, addr), connect(t, addr)
	p := bson.A{bson.D{{Key: "$documents", Value: bson.A{bson.D{{Key: "a", Value: 0}}, bson.D{{Key: "a", Value: 1}}}}},
		bson.D{
			{
				Key:   "$project",
				Value: bson.D{{Key: "x", Value: bson.D{{Key: "$cond", Value: bson.A{"$a", loops(3), 0}}}}},
			},
		}}
	d := set(pipe(p), "cursor", bson.D{{Key: "batchSize", Value: 1}})
	raw, e := c.ask(d)
	id := raw.Lookup("cursor", "id").Int64()
	if e.OK != 1 || id == 0 {
		t.Fatal(raw)
	}
	c.send(
		bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "$cmd.aggregate"}, {Key: "$db", Value: "admin"}},
	)
	waitOp(t, other, "getMore")
	raw, e = other.ask(bson.D{
		{Key: "killCursors", Value: "$cmd.aggregate"},
		{Key: "cursors", Value: bson.A{id}},
		{Key: "$db", Value: "admin"},
	})
	if e.OK != 1 {
		t.Fatal(raw)
	}
	if raw, err := c.recv(); err != nil || raw.Lookup("code").Int32() != 237 {
		t.Fatalf("%s %v", raw, err)
	}
	if _, e := c.ask(bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "$cmd.aggregate"},
		{Key: "$db", Value: "admin"}}); e.Code != 43 {
		t.Error(e)
	}
}

// TestNamespaceOfGetMore: a getMore must name the cursor's namespace. A wrong name leaves the cursor as it is.
func TestNamespaceOfGetMore(t *testing.T) {
	_, addr := serve(t, Options{}, nil)
	c := connect(t, addr)
	p := bson.A{bson.D{{Key: "$documents", Value: bson.A{bson.D{{Key: "a", Value: 0}}, bson.D{{Key: "a", Value: 1}}}}}}
	raw, e := c.ask(set(pipe(p), "cursor", bson.D{{Key: "batchSize", Value: 1}}))
	if e.OK != 1 {
		t.Fatal(raw)
	}
	id := raw.Lookup("cursor", "id").Int64()
	for _, x := range []struct {
		collection any
		code       int32
	}{{"", 73}, {"another", 13}, {7, 14}, {"$cmd.aggregate", 0}, {"$cmd.aggregate", 43}} {
		_, e := c.ask(bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: x.collection},
			{Key: "$db", Value: "admin"}})
		if e.Code != x.code {
			t.Errorf("%v: %+v", x.collection, e)
		}
	}
}

// TestCursorOfAnotherConnection: a cursor outlives the connection that opened it.
func TestCursorOfAnotherConnection(t *testing.T) {
	s, addr := serve(t, Options{}, nil)
	c := connect(t, addr)
	docs := bson.A{}
	for i := range 40 {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "l", Value: bson.A{1, 2, 3, i}}})
	}
	c.ask(bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: docs}})
	for name, p := range map[string]bson.A{
		"stream": {bson.D{{Key: "$addFields", Value: bson.D{{Key: "x", Value: 1}}}}},
		"sort": {bson.D{{Key: "$sort", Value: bson.D{{Key: "l", Value: -1}}}},
			bson.D{{Key: "$addFields", Value: bson.D{{Key: "x", Value: 1}}}}},
		"unwind": {bson.D{{Key: "$unwind", Value: "$l"}},
			bson.D{{Key: "$match", Value: bson.D{{Key: "l", Value: 2}}}}, bson.D{{Key: "$limit", Value: 40}}},
		"union": {bson.D{{Key: "$limit", Value: 20}},
			bson.D{
				{Key: "$unionWith", Value: bson.D{
					{Key: "coll", Value: "c"}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$limit", Value: 20}}}}}}}},
		"lookup":   {bson.D{{Key: "$lookup", Value: bson.D{{Key: "from", Value: "c"}, {Key: "localField", Value: "_id"}, {Key: "foreignField", Value: "_id"}, {Key: "as", Value: "j"}}}}},
		"blocking": {bson.D{{Key: "$group", Value: bson.D{{Key: "_id", Value: "$_id"}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			first := connect(t, addr)
			raw, _ := first.ask(bson.D{
				{Key: "aggregate", Value: "c"},
				{Key: "pipeline", Value: p},
				{Key: "cursor", Value: bson.D{{Key: "batchSize", Value: 3}}},
			})
			id, n := raw.Lookup("cursor", "id").Int64(), 3
			_ = first.Close()
			for began := time.Now(); s.connections() > 1 && time.Since(began) < soon; time.Sleep(time.Millisecond) {
			}
			for id != 0 {
				s.cursors.mu.Lock()
				for _, cur := range s.cursors.m { // what the sweep does with a cursor that is idle for long
					for _, src := range cur.sources() {
						src.park()
					}
				}
				s.cursors.mu.Unlock()
				raw, e := c.ask(
					bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "c"}, {Key: "batchSize", Value: 7}},
				)
				if e.OK != 1 {
					t.Fatal(e)
				}
				id = raw.Lookup("cursor", "id").Int64()
				vs, _ := raw.Lookup("cursor", "nextBatch").Array().Values()
				n += len(vs)
			}
			if n != 40 {
				t.Errorf("%d documents of 40", n)
			}
		})
	}
}

// TestPanic: a panic in a command is answered and logged, and the connection stays open.
func TestPanic(t *testing.T) {
	commands["faulty"] = command{fn: func(*request, []byte) ([]byte, error) { panic("a fault for the test") }}
	defer delete(commands, "faulty")
	var log bytes.Buffer
	w := newWatcher()
	_, addr := serve(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Observe: w}, nil)
	c := connect(t, addr)
	if _, e := c.ask(bson.D{{Key: "faulty", Value: 1}}); e.Code != 1 || e.Errmsg != "internal error" {
		t.Error(e)
	}
	if r, _ := w.nth(t, 1); !r.Failed || r.Status != "1" {
		t.Errorf("%+v", r)
	}
	if text := log.String(); strings.Count(text, "level=ERROR") != 1 ||
		!strings.Contains(text, "a fault for the test") ||
		!strings.Contains(text, "live_test.go") {
		t.Error(text)
	}
	if _, e := c.ask(bson.D{{Key: "ping", Value: 1}}); e.OK != 1 {
		t.Error(e)
	}
}

// TestGate: at the limit commands are refused with the service's text, except those that need no work.
func TestGate(t *testing.T) {
	g := admit.New(admit.Options{Running: 1, Wait: 30 * time.Millisecond})
	_, addr := serve(t, Options{Gate: g}, nil)
	if err := g.Enter(context.Background()); err != nil {
		t.Fatal(err)
	}
	c := connect(t, addr)
	for _, d := range []bson.D{{{Key: "ping", Value: 1}}, {{Key: "hello", Value: 1}},
		{{Key: "currentOp", Value: 1}, {Key: "$db", Value: "admin"}}, {{Key: "endSessions", Value: bson.A{}}}} {
		if raw, e := c.ask(d); e.OK != 1 {
			t.Errorf("%s: %s", d[0].Key, raw)
		}
	}
	for _, d := range []bson.D{{{Key: "find", Value: "c"}}, whole["insert"], whole["update"],
		{{Key: "listCollections", Value: 1}}} {
		if raw, e := c.ask(d); e.Code != 16500 || !strings.Contains(e.Errmsg, "RetryAfterMs=30,") {
			t.Errorf("%s: %s", d[0].Key, raw)
		}
	}
	g.Leave()
	if _, e := c.ask(bson.D{{Key: "find", Value: "c"}}); e.OK != 1 || g.Running() != 0 {
		t.Error(e, g.Running())
	}
}

func TestObserve(t *testing.T) {
	w := newWatcher()
	_, addr := serve(t, Options{Observe: w}, nil)
	c := connect(t, addr)
	dup := bson.D{
		{Key: "insert", Value: "c"},
		{Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "_id", Value: 1}}}},
	}
	for i, x := range []struct {
		d                      bson.D
		operation, status, tgt string
		charged, plan          bool
	}{
		{bson.D{{Key: "ping", Value: 1}}, "ping", "ok", "db", false, false},
		{dup, "insert", "11000", "db.c", true, false},
		{bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "a", Value: 1}}}}, "find", "ok", "db.c",
			true, true},
		{bson.D{{Key: "count", Value: "c"}}, "count", "ok", "db.c", true, true},
		{whole["distinct"], "distinct", "ok", "db.c", true, true},
		{whole["aggregate"], "aggregate", "ok", "db.c", true, true},
		{whole["update"], "update", "ok", "db.c", true, true},
		{whole["delete"], "delete", "ok", "db.c", true, true},
		{whole["findAndModify"], "findAndModify", "ok", "db.c", true, true},
		{bson.D{{Key: "find", Value: "c"}, {Key: "nope", Value: 1}}, "find", "40415", "db.c", false, true},
		{bson.D{{Key: "someLongInvention", Value: "c"}}, "unknown", "59", "db.c", false, false},
		{bson.D{{Key: "applyOps", Value: "c"}}, "applyOps", "115", "db.c", false, false},
	} {
		c.ask(x.d)
		r, plan := w.nth(t, i+1)
		if r.API != "mongo" || r.Operation != x.operation || r.Status != x.status || r.Target != x.tgt || r.Failed ||
			r.Left ||
			r.Client != c.LocalAddr().String() ||
			r.Charge > 0 != x.charged ||
			r.Duration <= 0 {
			t.Errorf("%s: %+v", x.d[0].Key, r)
		}
		if x.plan != (plan != "") || x.plan && x.status == "ok" && !strings.Contains(plan, "\n") {
			t.Errorf("%s: the plan %q", x.d[0].Key, plan)
		}
	}
	if _, err := c.Write(message(2013, []byte{0, 0, 0, 0, 9})); err != nil {
		t.Fatal(err)
	}
	if r, _ := w.nth(t, 13); r.Operation != "message" || r.Status != "17" {
		t.Errorf("a malformed message: %+v", r)
	}
	if w.began != 13 {
		t.Errorf("%d requests began", w.began)
	}
}

// TestMemory: the memory of a command counts in the budget. Above the share of one command it fails like in MongoDB. If
// others use the rest of the budget it fails like in a busy service. Afterwards everything is released
// (newServerWithin).
func TestMemory(t *testing.T) {
	const limit = 8 << 20
	b := budget.New(limit, 2<<20)
	_, addr := serve(t, Options{}, b)
	c := connect(t, addr)
	pad := strings.Repeat("x", 2000)
	for i := range 30 {
		docs := bson.A{}
		for j := range 100 {
			docs = append(docs, bson.D{{Key: "_id", Value: i*100 + j}, {Key: "pad", Value: fmt.Sprint(i, j, pad)}})
		}
		if _, e := c.ask(bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: docs}}); e.OK != 1 {
			t.Fatal(e)
		}
	}
	doc := func(k string, v any) bson.D { return bson.D{{Key: k, Value: v}} }
	agg := func(p ...any) bson.D {
		return bson.D{
			{Key: "aggregate", Value: "c"},
			{Key: "pipeline", Value: bson.A(p)},
			{Key: "cursor", Value: bson.D{}},
		}
	}
	group := func(id any, acc any) bson.D {
		return doc("$group", bson.D{{Key: "_id", Value: id}, {Key: "x", Value: acc}})
	}
	sized := func(operator string, operand any) bson.D { // an array that exists only while it is counted
		return agg(doc("$limit", 1), doc("$project", doc("x", doc("$size", doc(operator, operand)))))
	}
	rows := map[string]bson.D{
		"$group":    agg(group("$pad", doc("$sum", 1))),
		"$first":    agg(group("$_id", doc("$first", "$$ROOT"))),
		"$push":     agg(group(nil, doc("$push", "$pad"))),
		"$addToSet": agg(group(nil, doc("$addToSet", "$pad"))),
		"$topN": agg(group(nil, doc("$topN", bson.D{
			{Key: "n", Value: 5000},
			{Key: "sortBy", Value: doc("_id", 1)},
			{Key: "output", Value: "$pad"},
		}))),
		"$lastN":       agg(group(nil, doc("$lastN", bson.D{{Key: "n", Value: 5000}, {Key: "input", Value: "$pad"}}))),
		"$sort":        agg(doc("$addFields", doc("y", 1)), doc("$sort", doc("y", 1))),
		"$sortByCount": agg(doc("$sortByCount", "$pad")),
		"$bucket": agg(doc("$bucket", bson.D{
			{Key: "groupBy", Value: "$_id"},
			{Key: "boundaries", Value: bson.A{0, 10000}},
			{Key: "output", Value: doc("x", doc("$push", "$pad"))},
		})),
		"$bucketAuto": agg(doc("$bucketAuto", bson.D{
			{Key: "groupBy", Value: "$_id"},
			{Key: "buckets", Value: 2},
			{Key: "output", Value: doc("x", doc("$push", "$pad"))},
		})),
		"$graphLookup": agg(doc("$limit", 1), doc("$graphLookup", bson.D{
			{Key: "from", Value: "c"},
			{Key: "startWith", Value: nil},
			{Key: "connectFromField", Value: "_id"},
			{Key: "connectToField", Value: "nothing"},
			{Key: "as", Value: "x"},
		})),
		"$facet": agg(doc("$facet", doc("x", bson.A{}))),
		"$lookup": agg(doc("$limit", 1), doc(
			"$lookup",
			bson.D{{Key: "from", Value: "c"}, {Key: "pipeline", Value: bson.A{}}, {Key: "as", Value: "x"}},
		)),
		"$sample":       agg(doc("$sample", doc("size", 5000))),
		"$out":          agg(doc("$out", "copy")),
		"$merge":        agg(doc("$merge", "copy")),
		"distinct":      {{Key: "distinct", Value: "c"}, {Key: "key", Value: "pad"}},
		"an expression": sized("$map", bson.D{{Key: "input", Value: doc("$range", bson.A{0, 3000})}, {Key: "in", Value: "$pad"}}),
		"$concatArrays": sized("$concatArrays",
			bson.A{doc("$range", bson.A{0, 100000}), doc("$range", bson.A{0, 100000})}),
		"$mergeObjects*": agg(group(
			nil,
			doc("$mergeObjects", doc("$arrayToObject", bson.A{bson.A{bson.A{doc("$toString", "$_id"), "$pad"}}})),
		)),
	}
	delete(rows, "$mergeObjects*")
	for name, d := range rows {
		if raw, e := c.ask(d); e.Code != 292 && e.Code != 146 {
			t.Errorf("%s beyond its share: %.200s", name, raw)
		}
	}
	if used := b.Used(); used != 0 {
		t.Fatalf("%d bytes are left over", used)
	}
	// A result in batches uses the available memory.
	raw, e := c.ask(bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: 100000}})
	if id, _ := raw.Lookup("cursor", "id").Int64OK(); e.OK != 1 || id == 0 || len(raw) > 2<<20+freeReply {
		t.Errorf("a batch of %d bytes, the cursor %d: %+v", len(raw), id, e)
	} else if _, e := c.ask(bson.D{{Key: "killCursors", Value: "c"}, {Key: "cursors", Value: bson.A{id}}}); e.OK != 1 {
		t.Error(e)
	}
	var others []*budget.Account
	for b.Used() < limit { // including what the connection is just releasing
		o := b.Open("other")
		for o.Grow(1<<10) == nil {
		}
		others = append(others, o)
	}
	for name, d := range rows {
		if raw, e := c.ask(d); e.Code != 16500 || !strings.Contains(e.Errmsg, "RetryAfterMs=") {
			t.Errorf("%s when others hold the memory: %.200s", name, raw)
		}
	}
	for _, o := range others {
		o.Close()
	}
	if _, e := c.ask(agg(doc("$count", "n"))); e.OK != 1 {
		t.Error(e)
	}
}

// TestStatusCodes: the core's errors as drivers see them.
func TestStatusCodes(t *testing.T) {
	busy := status.New(status.TooManyRequests, "busy")
	busy.RetryAfter = 1500 * time.Millisecond
	for _, x := range []struct {
		err   error
		code  int32
		name  string
		text  string
		retry bool // by a driver with retryable writes
	}{
		{status.New(status.StoreFull, "The disk is full."), 14031, "OutOfDiskSpace", "The disk is full.", false},
		{status.New(status.MemoryLimit, "too much"), 292, "QueryExceededMemoryLimitNoDiskUseAllowed",
			"too much", false},
		{busy, 16500, "RequestRateTooLarge", "Error=16500, RetryAfterMs=1500, Details='", false},
		{status.New(status.UnknownOutcome, "who knows"), 64, "WriteConcernFailed", "who knows", false},
		{status.New(status.Locked, "not yet"), 117, "ConflictingOperationInProgress", "not yet", false},
		{status.New(status.Unavailable, "closing"), 91, "ShutdownInProgress", "closing", true},
		{errors.New("a secret"), 1, "InternalError", "internal error", false},
	} {
		e := merr.From(x.err)
		if e.Code != x.code || e.CodeName() != x.name || !strings.HasPrefix(e.Msg, x.text) ||
			retryable(e.Code) != x.retry {
			t.Errorf("%v: %d %s %s", x.err, e.Code, e.CodeName(), e.Msg)
		}
	}
}
