package mongoapi

import (
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/mongoapi/agg"
)

// someDocs adds documents with a number and an array to a collection.
func someDocs(c *client, name string, n int, pad string) {
	docs := bson.A{}
	for i := range n {
		docs = append(docs, bson.D{
			{Key: "_id", Value: i},
			{Key: "n", Value: i},
			{Key: "list", Value: bson.A{1, 2, 3, 4}},
			{Key: "pad", Value: pad},
		})
	}
	c.ask(bson.D{{Key: "insert", Value: name}, {Key: "documents", Value: docs}})
}

// numbers returns a list of n numbers.
func numbers(n int) bson.A {
	out := bson.A{}
	for i := range n {
		out = append(out, i)
	}
	return out
}

// sessionID returns a session as in refreshSessions and in the argument lsid.
func sessionID(letter string) bson.D {
	return bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: []byte(strings.Repeat(letter, 16))}}}
}

// TestIdleCursorsAreCharged: the data that an idle cursor keeps in addition to a position counts in the memory budget
// until the cursor is closed.
func TestIdleCursorsAreCharged(t *testing.T) {
	b := budget.New(64<<20, 0)
	s, addr := serve(t, Options{}, b)
	c := connect(t, addr)
	someDocs(c, "c", 5, strings.Repeat("x", 100<<10))
	in := bson.D{{Key: "n", Value: bson.D{{Key: "$in", Value: numbers(10_000)}}}}
	cursor := bson.E{Key: "cursor", Value: bson.D{{Key: "batchSize", Value: 2}}}
	agg := func(stages ...any) bson.D {
		return bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A(stages)}, cursor}
	}
	for _, x := range []struct {
		name string
		cmd  bson.D
		min  int64
	}{
		{"a long filter", bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: in}, {Key: "batchSize", Value: 1}},
			1 << 20},
		{
			"a long pipeline", agg(bson.D{{Key: "$match", Value: in}},
				bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}), 1 << 20},
		{"a long expression", agg(bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: numbers(10_000)}}}}), 200 << 10},
		{"a document by its id", bson.D{
			{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "_id", Value: 1}}},
			{Key: "batchSize", Value: 0}}, 100 << 10},
		{"an array that is taken apart", agg(bson.D{{Key: "$unwind", Value: "$list"}}), 100 << 10},
		{
			"a group",
			agg(bson.D{
				{
					Key: "$group", Value: bson.D{
						{Key: "_id", Value: "$_id"}, {Key: "p", Value: bson.D{{Key: "$first", Value: "$pad"}}}}}}),
			300 << 10},
	} {
		began := time.Now()
		for b.Used() > 0 && time.Since(began) < soon { // the memory of the previous reply is released when it is sent
			time.Sleep(time.Millisecond)
		}
		raw, e := c.ask(x.cmd)
		id, ok := raw.Lookup("cursor", "id").Int64OK()
		if e.Code != 0 || !ok || id == 0 {
			t.Fatalf("%s: %.300s", x.name, raw)
		}
		if _, e := c.ask(bson.D{{Key: "ping", Value: 1}}); e.OK != 1 {
			t.Fatal(e)
		}
		if held := b.Used(); held < x.min {
			t.Errorf("%s: an idle cursor holds %d bytes, want at least %d", x.name, held, x.min)
		}
		if x.name == "a document by its id" {
			raw, _ := c.ask(bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "c"}})
			if vs, _ := raw.Lookup("cursor", "nextBatch").Array().Values(); len(vs) != 1 {
				t.Errorf("%s: %d documents behind an empty batch", x.name, len(vs))
			}
		}
		c.ask(bson.D{{Key: "killCursors", Value: "c"}, {Key: "cursors", Value: bson.A{id}}})
		if n := s.cursors.open(); n != 0 {
			t.Errorf("%s: %d cursors are left", x.name, n)
		}
		c.ask(bson.D{{Key: "ping", Value: 1}})
		if held := b.Used(); held != 0 {
			t.Errorf("%s: a cursor that was killed holds %d bytes", x.name, held)
		}
	}
}

// TestCommandsWithoutMemory: a command whose filter needs too much memory is refused, and the memory of each statement
// is released after it.
func TestCommandsWithoutMemory(t *testing.T) {
	b := budget.New(16<<20, 4<<20)
	_, addr := serve(t, Options{}, b)
	c := connect(t, addr)
	someDocs(c, "c", 5, "")
	in := func(n int) bson.D { return bson.D{{Key: "n", Value: bson.D{{Key: "$in", Value: numbers(n)}}}} }
	statements := func(n, of int) (updates, deletes bson.A) {
		for range n {
			updates = append(
				updates,
				bson.D{
					{Key: "q", Value: in(of)},
					{Key: "u", Value: bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}},
				})
			deletes = append(
				deletes,
				bson.D{{Key: "q", Value: append(in(of), bson.E{Key: "nope", Value: 1})}, {Key: "limit", Value: 0}},
			)
		}
		return updates, deletes
	}
	updates, deletes := statements(30, 2000) // each needs 320 KB of memory
	for _, x := range []struct {
		cmd  bson.D
		code int32
	}{
		{bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: in(2000)}}, 0},
		{bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: in(100_000)}}, 292},
		{bson.D{{Key: "count", Value: "c"}, {Key: "query", Value: in(100_000)}}, 292},
		{bson.D{{Key: "distinct", Value: "c"}, {Key: "key", Value: "n"}, {Key: "query", Value: in(100_000)}}, 292},
		{
			bson.D{{Key: "aggregate", Value: "c"},
				{Key: "pipeline", Value: bson.A{bson.D{{Key: "$match", Value: in(100_000)}}}},
				{Key: "cursor", Value: bson.D{}}}, 292},
		{bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: updates}}, 0},
		{bson.D{{Key: "delete", Value: "c"}, {Key: "deletes", Value: deletes}}, 0},
	} {
		raw, e := c.ask(x.cmd)
		if n := raw.Lookup("writeErrors"); e.Code != x.code || n.Type != 0 {
			t.Errorf("%s: %.300s, want %d", x.cmd[0].Key, raw, x.code)
		}
	}
}

// TestAgeOfCursors: an idle cursor is removed after ten minutes, one with noCursorTimeout when its session would end. A
// cursor that is read in time stays.
func TestAgeOfCursors(t *testing.T) {
	clk := clock.Fake(time.Unix(1_700_000_000, 0))
	s, addr := serve(t, Options{Clock: clk}, nil)
	c := connect(t, addr)
	someDocs(c, "c", 100, "")
	open := func(args ...bson.E) int64 {
		raw, _ := c.ask(append(bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: 2}}, args...))
		return raw.Lookup("cursor", "id").Int64()
	}
	pass := func(d time.Duration) {
		clk.Advance(d)
		s.cursors.expire(nil)
	}
	more := func(id int64, args ...bson.E) int32 {
		_, e := c.ask(
			append(
				bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "c"}, {Key: "batchSize", Value: 2}},
				args...),
		)
		return e.Code
	}
	keep := bson.E{Key: "noCursorTimeout", Value: true}
	a, b := bson.E{Key: "lsid", Value: sessionID("a")}, bson.E{Key: "lsid", Value: sessionID("b")}
	plain, read, kept := open(), open(), open(keep)
	ended, refreshed := open(keep, a), open(keep, b)
	pass(cursorIdle - time.Second)
	if code := more(read); code != 0 {
		t.Fatalf("a cursor in time: %d", code)
	}
	pass(2 * time.Second)
	for id, want := range map[int64]int32{plain: 43, read: 0, kept: 0} {
		if code := more(id); code != want {
			t.Errorf("after %v: %d, want %d", cursorIdle, code, want)
		}
	}
	c.ask(bson.D{{Key: "refreshSessions", Value: bson.A{sessionID("b")}}})
	pass(cursorKept - cursorIdle)
	if code := more(ended, a); code != 43 {
		t.Errorf("a cursor whose session has ended: %d", code)
	}
	if code := more(refreshed, b); code != 0 {
		t.Errorf("a cursor whose session was refreshed: %d", code)
	}
}

// TestNumberOfCursors: when there are too many cursors, the one that is idle the longest is removed, and never one in
// use.
func TestNumberOfCursors(t *testing.T) {
	clk := clock.Fake(time.Unix(1_700_000_000, 0))
	cs := newCursors(clk)
	var all []*cursor
	for range maxCursors + 2 {
		c := &cursor{src: agg.NewSlice(nil)}
		cs.add(c)
		c.inUse = len(all) == 0
		all = append(all, c)
		clk.Advance(time.Millisecond)
	}
	if n := cs.open(); n != maxCursors {
		t.Errorf("%d cursors are open, want %d", n, maxCursors)
	}
	for i, c := range all[:5] {
		if open := cs.m[c.id] != nil; open != (i == 0 || i > 2) {
			t.Errorf("cursor %d is open: %v", i, open)
		}
	}
}

// TestWaitingIsNoWork: the time that a getMore waits for documents isn't counted as its duration, by which it would be
// logged as slow.
func TestWaitingIsNoWork(t *testing.T) {
	w := newWatcher()
	_, addr := serve(t, Options{Observe: w}, nil)
	c := connect(t, addr)
	c.ask(bson.D{{Key: "create", Value: "c"}, {Key: "capped", Value: true}, {Key: "size", Value: 4096}})
	c.ask(bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 1}}}}})
	raw, _ := c.ask(bson.D{{Key: "find", Value: "c"}, {Key: "tailable", Value: true}, {Key: "awaitData", Value: true}})
	const wait = 500 * time.Millisecond
	began := time.Now()
	c.ask(bson.D{{Key: "getMore", Value: raw.Lookup("cursor", "id").Int64()}, {Key: "collection", Value: "c"},
		{Key: "maxTimeMS", Value: wait.Milliseconds()}})
	took := time.Since(began)
	if r, _ := w.nth(t, 4); r.Operation != "getMore" || r.Status != "ok" || took < wait || r.Duration > took-wait/2 ||
		r.Duration <= 0 {
		t.Errorf("%+v, answered after %v", r, took)
	}
}
