package mongoapi

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/mongoapi/internal/mtest"
)

// streamsOf are the streams of a script.
type streamsOf struct {
	t      *testing.T
	c      *client
	last   map[string]bson.RawValue // by stream: the token of its last event, or of its last batch
	id     map[string]int64         // cursors
	on     map[string]string        // collections of the cursors
	db     map[string]string        // their databases
	awaits map[string]bool          // whether they wait for a batch
	wait   int                      // milliseconds for which a batch is waited for
}

func newStreams(t *testing.T, c *client) *streamsOf {
	return &streamsOf{t: t, c: c, last: map[string]bson.RawValue{}, id: map[string]int64{}, on: map[string]string{},
		db: map[string]string{}, awaits: map[string]bool{}, wait: 30}
}

// tail opens a cursor with a find on the database local, or on db with "on".
func (s *streamsOf) tail(name, find string) string {
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(find), false, &d); err != nil {
		s.t.Fatalf("%s: %v", find, err)
	}
	db := "db"
	if d[0].Value == oplogName {
		db = "local"
	}
	return s.opened(name, append(d, bson.E{Key: "$db", Value: db}))
}

// opened opens a cursor with a command.
func (s *streamsOf) opened(name string, d bson.D) string {
	raw, _ := s.c.ask(d)
	if raw.Lookup("ok").Double() != 1 {
		return shown(s.t, raw) + "\n"
	}
	s.id[name] = raw.Lookup("cursor", "id").Int64()
	s.awaits[name] = d[0].Key == "aggregate" || slices.ContainsFunc(d, func(e bson.E) bool {
		return e.Key == "awaitData" && e.Value == true
	})
	s.db[name], s.on[name], _ = strings.Cut(raw.Lookup("cursor", "ns").StringValue(), ".")
	if token, err := raw.LookupErr("cursor", "postBatchResumeToken"); err == nil {
		s.last[name] = token
	}
	return s.shown(name, raw, "firstBatch")
}

// watch opens a stream: {$changeStream} with the options of the first line, and the stages of the others.
func (s *streamsOf) watch(name, on string, options bson.D, stages []string) string {
	db, coll := "db", any("c")
	switch on {
	case "":
	case "db":
		coll = 1
	case "deployment":
		db, coll = "admin", 1
		options = append(bson.D{{Key: "allChangesForCluster", Value: true}}, options...)
	default:
		coll = on
	}
	pipeline := bson.A{bson.D{{Key: "$changeStream", Value: options}}}
	for _, l := range stages {
		var d bson.D
		if err := bson.UnmarshalExtJSON([]byte(l), false, &d); err != nil {
			s.t.Fatalf("%s: %v", l, err)
		}
		pipeline = append(pipeline, d)
	}
	return s.opened(name, bson.D{{Key: "aggregate", Value: coll}, {Key: "pipeline", Value: pipeline},
		{Key: "cursor", Value: bson.D{}}, {Key: "$db", Value: db}})
}

// shown returns the events of a batch, one a line, without what differs from run to run.
func (s *streamsOf) shown(name string, raw bson.Raw, batch string) string {
	var b strings.Builder
	events, _ := raw.Lookup("cursor", batch).Array().Values()
	for _, e := range events {
		d, out := bson.D{}, bson.D{}
		if err := bson.Unmarshal(e.Document(), &d); err != nil {
			s.t.Fatal(err)
		}
		for _, f := range d {
			switch f.Key {
			case "_id":
				if id := e.Document().Lookup("_id"); id.Type == bson.TypeEmbeddedDocument {
					s.last[name] = id
					continue
				}
				out = append(out, f)
			case "clusterTime", "wallTime", "ts", "wall":
			case "ui":
				out = append(out, bson.E{Key: f.Key, Value: "there"})
			case "collectionUUID":
				out = append(out, bson.E{Key: f.Key, Value: "there"})
			default:
				out = append(out, f)
			}
		}
		text, err := bson.MarshalExtJSON(out, false, false)
		if err != nil {
			s.t.Fatal(err)
		}
		b.Write(append(text, '\n'))
	}
	return b.String()
}

// masked replaces what differs from run to run in a text: tokens and the names of temporary collections.
func masked(s string) string {
	return untemp.ReplaceAllString(untoken.ReplaceAllString(s, "TOKEN"), "tmp.agg_out.UUID")
}

var (
	untoken = regexp.MustCompile(`82[0-9A-F]{38}`)
	untemp  = regexp.MustCompile(`tmp\.agg_out\.[-0-9a-f]*`)
)

// events reads a stream until nothing comes.
func (s *streamsOf) events(name string) (out string) {
	for {
		db := "db"
		if v := s.db[name]; v != "" {
			db = v
		}
		more := bson.D{{Key: "getMore", Value: s.id[name]}, {Key: "collection", Value: s.on[name]},
			{Key: "$db", Value: db}}
		if s.awaits[name] {
			more = append(more, bson.E{Key: "maxTimeMS", Value: s.wait})
		}
		raw, _ := s.c.ask(more)
		if raw.Lookup("ok").Double() != 1 {
			return out + shown(s.t, raw) + "\n"
		}
		batch := s.shown(name, raw, "nextBatch")
		if out += batch; raw.Lookup("cursor", "id").Int64() == 0 {
			return out + "closed\n"
		}
		if batch == "" {
			return out
		}
	}
}

// TestStreams runs testdata/streams. "server" starts one, "run" sends commands and prints what is wrong with them, if
// anything; "show" prints a reply. "watch s" opens the stream s of collection c (on=other, on=db, on=deployment) with
// the options of the first line and the stages of the others; "from=t" begins behind the last event of stream t, as
// "with" says. "tail s" opens a cursor with a find. "events s" prints what the stream or cursor has.
func TestStreams(t *testing.T) {
	datadriven.Walk(t, "testdata/streams", func(t *testing.T, path string) {
		runStreams(t, path, 30, func(standalone bool) (reads, writes *client) {
			_, addr := serve(t, Options{Standalone: standalone}, nil)
			c := connect(t, addr)
			return c, c
		})
	})
}

// TestStreamsOfSharedStore runs testdata/streams on two servers over one store, whose clocks differ by a day: one
// writes what the other one reads.
func TestStreamsOfSharedStore(t *testing.T) {
	datadriven.Walk(t, "testdata/streams", func(t *testing.T, path string) {
		runStreams(t, path, 150, func(standalone bool) (reads, writes *client) {
			cs := serveShared(t, 2, Options{Standalone: standalone})
			return cs[0], cs[1]
		})
	})
}

// serveShared starts servers over one store, whose clocks differ by a day.
func serveShared(t *testing.T, n int, o Options) (out []*client) {
	store := kvtest.NewShared(memkv.New(), 1)
	for i := range n {
		clk := clock.Fake(time.Unix(1_700_000_000, 0).Add(time.Duration(i) * 24 * time.Hour))
		e, err := core.Open(context.Background(), store.Engine(), core.Options{Clock: clk})
		if err != nil {
			t.Fatal(err)
		}
		o.Clock = clk
		s := New(e, o)
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = s.Serve(ln) }()
		t.Cleanup(func() {
			_ = s.Shutdown(context.Background())
			if problems, err := e.Check(context.Background()); err != nil || len(problems) > 0 {
				t.Errorf("check: %v, %v", problems, err)
			}
			_ = e.Close()
		})
		out = append(out, connect(t, ln.Addr().String()))
	}
	return out
}

// runStreams runs a script. start returns connections to the servers that read and that write.
func runStreams(t *testing.T, path string, wait int, start func(standalone bool) (reads, writes *client)) {
	s := newStreams(t, nil)
	s.wait = wait
	var writes *client
	arg := func(d *datadriven.TestData, name string) (v string) {
		d.MaybeScanArgs(t, name, &v)
		return v
	}
	datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
		s.t = t
		switch d.Cmd {
		case "server":
			s.c, writes = start(d.HasArg("standalone"))
		case "run":
			var b strings.Builder
			for _, l := range mtest.Lines(d.Input) {
				raw, _ := writes.ask(command1(t, l))
				if _, err := raw.LookupErr("writeErrors"); err == nil || raw.Lookup("ok").AsFloat64() != 1 {
					b.WriteString(shown(t, raw) + "\n")
				}
			}
			return b.String()
		case "show":
			raw, _ := s.c.ask(command1(t, d.Input))
			return shown(t, raw) + "\n"
		case "watch":
			lines := mtest.Lines(d.Input)
			var options bson.D
			if err := bson.UnmarshalExtJSON([]byte(lines[0]), false, &options); err != nil {
				t.Fatalf("%s: %v", lines[0], err)
			}
			if from := arg(d, "from"); from != "" {
				options = append(options, bson.E{Key: arg(d, "with"), Value: s.last[from]})
			}
			return masked(s.watch(d.CmdArgs[0].Key, arg(d, "on"), options, lines[1:]))
		case "tail":
			return masked(s.tail(d.CmdArgs[0].Key, d.Input))
		case "events":
			return masked(s.events(d.CmdArgs[0].Key))
		}
		return ""
	})
}

// A stream begins after what was acknowledged before it, and a time of a reply is one at which a stream can begin.
func TestStreamTimes(t *testing.T) {
	s, addr := serve(t, Options{}, nil)
	c := connect(t, addr)
	streams := newStreams(t, c)
	insert := func(id int) bson.RawValue {
		raw, e := c.ask(bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id",
			Value: id}}}}, {Key: "$db", Value: "db"}})
		if e.OK != 1 {
			t.Fatal(e)
		}
		return raw.Lookup("operationTime")
	}
	insert(1)
	streams.watch("first", "", bson.D{}, nil)
	at := insert(2)
	insert(3)
	read, _ := c.ask(bson.D{{Key: "find", Value: "c"}, {Key: "$db", Value: "db"}})
	insert(4)
	ids := func(name string, before ...string) (out []string) {
		for _, l := range strings.Split(strings.Join(before, "")+streams.events(name), "\n") {
			if _, k, ok := strings.Cut(l, `"documentKey":{"_id":`); ok {
				out = append(out, strings.TrimSuffix(k, "}}"))
			}
		}
		return out
	}
	if got := fmt.Sprint(ids("first")); got != "[2 3 4]" {
		t.Errorf("a stream has %s", got)
	}
	first := streams.watch("write", "", bson.D{{Key: "startAtOperationTime", Value: at}}, nil)
	if got := fmt.Sprint(ids("write", first)); got != "[2 3 4]" {
		t.Errorf("a stream from the time of a write has %s", got)
	}
	first = streams.watch("read", "", bson.D{{Key: "startAtOperationTime", Value: read.Lookup("operationTime")}}, nil)
	if got := ids("read", first); len(got) == 0 || got[len(got)-1] != "4" || got[0] == "2" {
		t.Errorf("a stream from the time of a read has %v", got)
	}
	if got := streams.watch("before", "", bson.D{{Key: "startAtOperationTime", Value: bson.Timestamp{T: 1, I: 1}}},
		nil); !strings.Contains(got, `"code":286`) {
		t.Errorf("a stream from before its record answers %s", got)
	}
	if n := s.cursors.open(); n != 3 {
		t.Errorf("%d cursors are open, want 3", n)
	}
}

// A client goes on behind a batch without events, at a server that was started again with its clock set back by an
// hour.
func TestStreamAfterRestart(t *testing.T) {
	eng, now := memkv.New(), time.Unix(1_700_000_000, 0)
	start := func(at time.Time) (c *client, clk *clock.Clock, stop func()) {
		clk = clock.Fake(at)
		e, err := core.Open(context.Background(), stays{eng}, core.Options{Clock: clk})
		if err != nil {
			t.Fatal(err)
		}
		s := New(e, Options{Clock: clk})
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = s.Serve(ln) }()
		return connect(t, ln.Addr().String()), clk, func() {
			_ = s.Shutdown(context.Background())
			_ = e.Close()
		}
	}
	c, clk, stop := start(now)
	before := newStreams(t, c)
	before.watch("s", "", bson.D{}, nil)
	clk.Advance(5 * time.Second)
	raw, _ := c.ask(bson.D{{Key: "getMore", Value: before.id["s"]}, {Key: "collection", Value: "c"},
		{Key: "maxTimeMS", Value: 1}, {Key: "$db", Value: "db"}})
	token := raw.Lookup("cursor", "postBatchResumeToken")
	if token.Equal(before.last["s"]) {
		t.Fatal("the position of a stream without events doesn't move: the test tests nothing")
	}
	stop()
	c, _, stop = start(now.Add(-time.Hour))
	defer stop()
	c.ask(bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 1}}}},
		{Key: "$db", Value: "db"}})
	after := newStreams(t, c)
	got := after.watch("s", "", bson.D{{Key: "resumeAfter", Value: token}}, nil) + after.events("s")
	if strings.Count(got, `"operationType":"insert"`) != 1 {
		t.Errorf("behind the position the stream has %q", got)
	}
}

// stays is an engine that stays open for the next user.
type stays struct{ kv.Engine }

// Close implements kv.Engine.
func (stays) Close() error { return nil }

// An event is delivered when it happens, not when a wait is over; a killed cursor ends a wait.
func TestStreamWaits(t *testing.T) {
	_, addr := serve(t, Options{}, nil)
	a, b := connect(t, addr), connect(t, addr)
	streams := newStreams(t, a)
	streams.watch("s", "", bson.D{}, nil)
	more := bson.D{{Key: "getMore", Value: streams.id["s"]}, {Key: "collection", Value: "c"},
		{Key: "maxTimeMS", Value: 60_000}, {Key: "$db", Value: "db"}}
	begun := time.Now()
	a.send(more)
	time.Sleep(50 * time.Millisecond)
	b.ask(bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{}}}, {Key: "$db", Value: "db"}})
	raw, err := a.recv()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(raw.Lookup("cursor", "nextBatch").Array()); n < 20 || time.Since(begun) > 30*time.Second {
		t.Errorf("after %v the batch has %d bytes", time.Since(begun), n)
	}
	a.send(more)
	time.Sleep(50 * time.Millisecond)
	b.ask(bson.D{{Key: "killCursors", Value: "c"}, {Key: "cursors", Value: bson.A{streams.id["s"]}},
		{Key: "$db", Value: "db"}})
	if raw, err = a.recv(); err != nil {
		t.Fatal(err)
	}
	if code, _ := raw.Lookup("code").AsInt64OK(); code != 237 || time.Since(begun) > 30*time.Second {
		t.Errorf("a killed stream answers %v", raw)
	}
}

// TestTokenOfFullBatch tests that a batch that has as many events as it may have ends at its last event: what is behind
// it wasn't looked at.
func TestTokenOfFullBatch(t *testing.T) {
	_, addr := serve(t, Options{}, nil)
	c := connect(t, addr)
	streams := newStreams(t, c)
	streams.watch("s", "", bson.D{}, nil)
	c.ask(bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{}, bson.D{}}}})
	for i := range 3 {
		raw, _ := c.ask(bson.D{{Key: "getMore", Value: streams.id["s"]}, {Key: "collection", Value: "c"},
			{Key: "batchSize", Value: 1}, {Key: "maxTimeMS", Value: 10}})
		token := raw.Lookup("cursor", "postBatchResumeToken")
		events, _ := raw.Lookup("cursor", "nextBatch").Array().Values()
		switch {
		case i < 2 && (len(events) != 1 || !token.Equal(events[0].Document().Lookup("_id"))):
			t.Errorf("batch %d: %d events, position %v", i, len(events), token)
		case i == 2 && len(events) != 0:
			t.Errorf("%d events more than happened", len(events))
		}
	}
}
