package mongoapi

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// sharers are two processes with one store.
type sharers struct {
	t     *testing.T
	store *memkv.Engine
	kv    [2]*kvtest.Process
	core  [2]*core.Engine
	clk   [2]*clock.Clock
	at    [2]*client
}

func startSharers(t *testing.T) *sharers {
	t.Helper()
	x := &sharers{t: t, store: memkv.New()}
	shared := kvtest.NewShared(x.store, 1)
	for i := range x.at {
		x.clk[i], x.kv[i] = clock.Fake(time.Unix(1_700_000_000, 0)), shared.Engine()
		e, err := core.Open(context.Background(), x.kv[i], core.Options{Clock: x.clk[i]})
		if err != nil {
			t.Fatal(err)
		}
		x.core[i] = e
		s := New(e, Options{Clock: x.clk[i]})
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = s.Serve(ln) }()
		t.Cleanup(func() {
			_ = s.Shutdown(context.Background())
			_ = e.Close() // a process that was killed says that it is closed
		})
		x.at[i] = connect(t, ln.Addr().String())
	}
	return x
}

// left returns how many records of cursors, and parts of them, are stored.
func (x *sharers) left() (int, int) {
	x.t.Helper()
	snap, err := x.store.Snapshot(context.Background())
	if err != nil {
		x.t.Fatal(err)
	}
	defer snap.Close()
	count := func(lo, hi []byte) (n int) {
		it, err := snap.Iter(lo, hi)
		if err != nil {
			x.t.Fatal(err)
		}
		defer it.Close()
		for ok := it.First(); ok; ok = it.Next() {
			n++
		}
		return n
	}
	const records, parts = 0x03, 0x04 // docs/formats.md
	of := func(space byte) int {
		return count([]byte{0x11, space, core.CursorRecord}, []byte{0x11, space, core.CursorRecord + 1})
	}
	return of(records), of(parts)
}

func (x *sharers) wantNothing(after string) {
	x.t.Helper()
	if records, parts := x.left(); records+parts > 0 {
		x.t.Errorf("after %s %d records and %d parts are left", after, records, parts)
	}
}

// fill inserts n documents with a text of some bytes.
func (x *sharers) fill(n, size int) {
	x.t.Helper()
	for i := range n {
		d := bson.D{{Key: "_id", Value: i}, {Key: "text", Value: strings.Repeat(string(rune('a'+i%26)), size)}}
		if raw, e := x.at[0].ask(bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{d}}}); e.OK != 1 {
			x.t.Fatal(raw)
		}
	}
}

// open opens a cursor at a process with a command.
func (x *sharers) open(p int, cmd bson.D) (id int64, docs []bson.Raw) {
	x.t.Helper()
	raw, e := x.at[p].ask(cmd)
	if e.OK != 1 {
		x.t.Fatal(raw)
	}
	return raw.Lookup("cursor", "id").Int64(), batch(raw, "firstBatch")
}

// more reads a batch at a process. n 0: as large as one may be.
func (x *sharers) more(p int, coll string, id int64, n int) (next int64, docs []bson.Raw, code int32) {
	x.t.Helper()
	raw, e := x.at[p].ask(bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: coll},
		{Key: "batchSize", Value: n}})
	if e.OK != 1 {
		return 0, nil, e.Code
	}
	return raw.Lookup("cursor", "id").Int64(), batch(raw, "nextBatch"), 0
}

func batch(raw bson.Raw, name string) (docs []bson.Raw) {
	all, _ := raw.Lookup("cursor", name).Array().Values()
	for _, v := range all {
		docs = append(docs, v.Document())
	}
	return docs
}

func pipelineOf(size int, stages ...string) bson.D {
	p := bson.A{}
	for _, s := range stages {
		var d bson.D
		if err := bson.UnmarshalExtJSON([]byte(s), false, &d); err != nil {
			panic(err)
		}
		p = append(p, d)
	}
	return bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: p},
		{Key: "cursor", Value: bson.D{{Key: "batchSize", Value: size}}}}
}

const grouped = `{"$group": {"_id": "$_id", "text": {"$first": "$text"}}}`

// A result of 20 MB is read in turns by two processes, and by the second one alone when the first one has ended. The
// batches are small, or as large as they may be. Documents lie in several parts of the record. Afterwards none is left.
func TestResultsAtAnotherProcess(t *testing.T) {
	for _, c := range []struct {
		name          string
		docs, size, n int
		killed        bool
	}{
		{"two documents", 20, 1 << 20, 2, false},
		{"full batches", 40, 1 << 20, 0, false},
		{"small documents", 3000, 200, 700, false},
		{"the first process has ended", 20, 1 << 20, 3, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := startSharers(t)
			x.fill(c.docs, c.size)
			id, docs := x.open(0, pipelineOf(1, grouped, `{"$sort": {"_id": 1}}`))
			if records, parts := x.left(); records != 1 || parts < (c.docs-1)*c.size/resultPart {
				t.Errorf("%d records with %d parts", records, parts)
			}
			if c.killed {
				x.kv[0].Kill()
			}
			for turn := 1; id != 0; turn++ {
				p := turn % 2
				if c.killed {
					p = 1
				}
				next, got, code := x.more(p, "c", id, c.n)
				if code != 0 || next != 0 && next != id {
					t.Fatalf("batch %d: %d, %d", turn, next, code)
				}
				id, docs = next, append(docs, got...)
			}
			for i, d := range docs {
				want := strings.Repeat(string(rune('a'+i%26)), c.size)
				if d.Lookup("_id").Int32() != int32(i) || d.Lookup("text").StringValue() != want {
					t.Fatalf("document %d has _id %s", i, d.Lookup("_id"))
				}
			}
			if len(docs) != c.docs {
				t.Errorf("%d documents of %d", len(docs), c.docs)
			}
			x.wantNothing("the last batch")
		})
	}
}

// Whatever ends a cursor removes its result, at whatever process. Only the last case leaves it for its time.
func TestResultsAreRemoved(t *testing.T) {
	x := startSharers(t)
	x.fill(9, 1<<20)
	session := bson.E{Key: "lsid", Value: sessionID("s")}
	for name, end := range map[string]func(id int64){
		"killCursors": func(id int64) {
			x.at[1].ask(bson.D{{Key: "killCursors", Value: "c"}, {Key: "cursors", Value: bson.A{id}}})
		},
		"endSessions": func(int64) {
			x.at[1].ask(bson.D{{Key: "endSessions", Value: bson.A{sessionID("s")}}})
		},
		"its time": func(int64) {
			for range 2 {
				for _, e := range x.core {
					if err := e.ExpireRecords(context.Background()); err != nil {
						t.Fatal(err)
					}
				}
				for _, clk := range x.clk {
					clk.Advance(cursorIdle + time.Second)
				}
			}
			for _, e := range x.core {
				if err := e.ExpireRecords(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		id, _ := x.open(0, append(pipelineOf(1, grouped), session))
		if records, parts := x.left(); records != 1 || parts < 8<<20/resultPart {
			t.Errorf("%s: %d records with %d parts", name, records, parts)
		}
		end(id)
		x.wantNothing(name)
		for p := range x.at {
			raw, e := x.at[p].ask(bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "c"}, session})
			if e.Code != merr.CursorNotFound {
				t.Errorf("after %s at process %d: %s", name, p, raw)
			}
		}
	}
}

// A result that ends with an error, or that its first batch holds, leaves nothing.
func TestResultsWithoutACursor(t *testing.T) {
	x := startSharers(t)
	x.fill(9, 1<<20)
	late := pipelineOf(1, grouped, `{"$sort": {"_id": 1}}`,
		`{"$addFields": {"x": {"$divide": [1, {"$subtract": [8, "$_id"]}]}}}`)
	if raw, e := x.at[0].ask(late); e.OK == 1 || e.Code == 0 {
		t.Errorf("a division by zero in the last document: %s", raw)
	}
	x.wantNothing("an error")
	if id, docs := x.open(0, pipelineOf(20, grouped)); id != 0 || len(docs) != 9 {
		t.Errorf("cursor %d, %d documents", id, len(docs))
	}
	x.wantNothing("one batch")
}

// Of a result that is larger than what is stored, all documents are read where it was computed. Other processes refuse
// it.
func TestResultsAboveTheLimit(t *testing.T) {
	x := startSharers(t)
	x.fill(1, 2<<20)
	numbers := make([]string, maxStored>>21+10)
	for i := range numbers {
		numbers[i] = fmt.Sprint(i)
	}
	id, docs := x.open(0, pipelineOf(1, `{"$addFields": {"n": [`+strings.Join(numbers, ",")+`]}}`,
		`{"$unwind": "$n"}`, `{"$limit": 1000}`))
	if _, _, code := x.more(1, "c", id, 0); code != merr.CursorNotFound {
		t.Errorf("another process: %d", code)
	}
	for open := id; open != 0; {
		next, got, code := x.more(0, "c", id, 0)
		if code != 0 {
			t.Fatal(code)
		}
		open, docs = next, append(docs, got...)
	}
	for i, d := range docs {
		if d.Lookup("n").Int32() != int32(i) {
			t.Fatalf("document %d has %s", i, d.Lookup("n"))
		}
	}
	if len(docs) != len(numbers) {
		t.Errorf("%d documents of %d", len(docs), len(numbers))
	}
	x.wantNothing("the last batch")
}

// What isn't read by a query goes on at another process too: lists, other stages, and a look-up of one document, whose
// projection is applied.
func TestOtherResultsAtAnotherProcess(t *testing.T) {
	x := startSharers(t)
	x.fill(6, 10)
	x.at[0].ask(bson.D{{Key: "create", Value: "d"}})
	size := bson.E{Key: "cursor", Value: bson.D{{Key: "batchSize", Value: 1}}}
	none := bson.E{Key: "cursor", Value: bson.D{{Key: "batchSize", Value: 0}}}
	lookUp := `{"$lookup": {"from": "c", "localField": "_id", "foreignField": "_id", "as": "of"}}`
	for name, cmd := range map[string]bson.D{
		"listCollections": {{Key: "listCollections", Value: 1}, size},
		"listIndexes":     {{Key: "listIndexes", Value: "c"}, none},
		"$lookup":         pipelineOf(2, grouped, `{"$sort": {"_id": 1}}`, lookUp),
		"$facet":          pipelineOf(0, `{"$facet": {"a": [{"$sort": {"_id": 1}}], "b": [{"$count": "n"}]}}`),
		"one and a projection": {{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "_id", Value: 3}}},
			{Key: "projection", Value: bson.D{{Key: "_id", Value: 1}}}, {Key: "batchSize", Value: 0}},
	} {
		read := func(turn int) (all []string) {
			id, docs := x.open(0, cmd)
			_, coll, _ := strings.Cut(x.ns(id), ".")
			for p := turn; id != 0; p += turn {
				next, got, code := x.more(p%2, coll, id, 2)
				if code != 0 {
					t.Errorf("%s: %d", name, code)
				}
				id, docs = next, append(docs, got...)
			}
			for _, d := range docs {
				all = append(all, d.String())
			}
			return all
		}
		here, there := read(0), read(1)
		if len(here) == 0 || fmt.Sprint(here) != fmt.Sprint(there) {
			t.Errorf("%s: at one process\n%s\nat two\n%s", name, here, there)
		}
		if strings.Contains(name, "projection") && strings.Contains(fmt.Sprint(here), "text") {
			t.Errorf("%s: %s", name, here)
		}
	}
	x.wantNothing("the last batches")
}

// The cursor of a snapshot stays with the process that holds the snapshot. Others don't find it, and store nothing.
func TestCursorsOfASnapshotStay(t *testing.T) {
	x := startSharers(t)
	x.fill(6, 10)
	session := bson.E{Key: "lsid", Value: sessionID("s")}
	concern := bson.E{Key: "readConcern", Value: bson.D{{Key: "level", Value: "snapshot"}}}
	id, _ := x.open(0, append(pipelineOf(1, grouped), concern, session))
	x.wantNothing("the first batch")
	more := bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "c"}, session}
	for i, want := range []int32{merr.CursorNotFound, 0} {
		if raw, e := x.at[1-i].ask(more); e.Code != want {
			t.Errorf("process %d: %s", 1-i, raw)
		}
	}
}

// ns returns the namespace of a cursor, as $currentOp shows it at the process that has it.
func (x *sharers) ns(id int64) string {
	x.t.Helper()
	idle := bson.D{{Key: "$currentOp", Value: bson.D{{Key: "idleCursors", Value: true}}}}
	raw, _ := x.at[0].ask(bson.D{{Key: "aggregate", Value: 1}, {Key: "$db", Value: "admin"},
		{Key: "cursor", Value: bson.D{}}, {Key: "pipeline", Value: bson.A{idle}}})
	for _, d := range batch(raw, "firstBatch") {
		if c, ok := d.Lookup("cursor", "cursorId").Int64OK(); ok && c == id {
			return d.Lookup("ns").StringValue()
		}
	}
	x.t.Fatalf("no idle cursor %d: %s", id, raw)
	return ""
}
