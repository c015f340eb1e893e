package mongoapi

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// tailedAt is a tailable cursor whose getMores go to several servers in turn.
type tailedAt struct {
	t    *testing.T
	at   []*client
	id   int64
	turn int
	got  []string
}

// tailAt opens a cursor at the first of the servers.
func tailAt(t *testing.T, at []*client, coll string, more ...bson.E) *tailedAt {
	d := append(bson.D{{Key: "find", Value: coll}, {Key: "tailable", Value: true}, {Key: "awaitData", Value: true},
		{Key: "batchSize", Value: 3}, {Key: "$db", Value: "db"}}, more...)
	raw, e := at[0].ask(d)
	if e.OK != 1 {
		t.Fatalf("%+v", e)
	}
	c := &tailedAt{t: t, at: at, id: raw.Lookup("cursor", "id").Int64()}
	c.take(raw, "firstBatch")
	return c
}

func (c *tailedAt) take(raw bson.Raw, batch string) int {
	docs, _ := raw.Lookup("cursor", batch).Array().Values()
	for _, d := range docs {
		c.got = append(c.got, d.Document().Lookup("_id").StringValue())
	}
	return len(docs)
}

// next reads a batch at the next server, and returns its length.
func (c *tailedAt) next(coll string) (n int, e errorReply) {
	c.turn++
	raw, e := c.at[c.turn%len(c.at)].ask(bson.D{{Key: "getMore", Value: c.id}, {Key: "collection", Value: coll},
		{Key: "batchSize", Value: 7}, {Key: "maxTimeMS", Value: 150}, {Key: "$db", Value: "db"}})
	if e.OK != 1 {
		return 0, e
	}
	if id := raw.Lookup("cursor", "id").Int64(); id != c.id {
		c.t.Errorf("the id of the cursor is %d, and was %d", id, c.id)
	}
	return c.take(raw, "nextBatch"), e
}

// drain calls next, which reads a batch of a tail, until it has had nothing several times after done was closed: on a
// busy machine a batch may be empty because its time is over.
func drain(t *testing.T, done chan struct{}, next func() (int, errorReply)) {
	over, empty := false, 0
	for {
		n, e := next()
		if e.OK != 1 {
			t.Errorf("%+v", e)
		}
		if empty++; n > 0 || !over {
			empty = 0
		}
		if e.OK != 1 || empty > 5 {
			return
		}
		select {
		case <-done:
			over = true
		default:
		}
	}
}

// TestTailsOfSharedStore: writers insert at both servers over one store. A tail of each server, and one that goes from
// server to server, have all documents, each once, in the same order.
func TestTailsOfSharedStore(t *testing.T) {
	both := serveShared(t, 2, Options{})
	do := func(c *client, d bson.D) {
		t.Helper()
		raw, e := c.ask(append(d, bson.E{Key: "$db", Value: "db"}))
		if _, err := raw.LookupErr("writeErrors"); e.OK != 1 || err == nil {
			t.Errorf("%v: %v", d, raw)
		}
	}
	do(both[0], bson.D{{Key: "create", Value: "log"}, {Key: "capped", Value: true}, {Key: "size", Value: 1 << 20}})
	do(both[1], bson.D{{Key: "insert", Value: "log"}, {Key: "documents", Value: bson.A{
		bson.D{{Key: "_id", Value: "a"}}, bson.D{{Key: "_id", Value: "b"}}, bson.D{{Key: "_id", Value: "c"}},
		bson.D{{Key: "_id", Value: "d"}}, bson.D{{Key: "_id", Value: "e"}}}}})
	addr := func(i int) *client { return connect(t, both[i].RemoteAddr().String()) }
	tails := []*tailedAt{tailAt(t, []*client{addr(0)}, "log"), tailAt(t, []*client{addr(1)}, "log"),
		tailAt(t, []*client{addr(1), addr(0)}, "log"),
		tailAt(t, []*client{addr(0), addr(1)}, "log", bson.E{Key: "skip", Value: 2})}
	const each = 40
	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	for i := range both {
		for w := range 2 {
			c := addr(i)
			writers.Go(func() {
				for n := range each {
					do(c, bson.D{{Key: "insert", Value: "log"}, {Key: "documents", Value: bson.A{
						bson.D{{Key: "_id", Value: fmt.Sprintf("%d.%d.%03d", i, w, n)}}}}})
				}
			})
		}
	}
	for _, c := range tails {
		readers.Go(func() { drain(t, done, func() (int, errorReply) { return c.next("log") }) })
	}
	writers.Wait()
	close(done)
	readers.Wait()
	want := tails[0].got
	for i, c := range tails {
		if i == 3 {
			c.got = append([]string{"a", "b"}, c.got...)
		}
		if !slices.Equal(c.got, want) {
			t.Errorf("tail %d has %v, and tail 0 %v", i, c.got, want)
		}
	}
	if slices.Sort(want); len(slices.Compact(want)) != 5+4*each {
		t.Errorf("%d documents, wanted %d", len(want), 5+4*each)
	}
}

// TestTailsEndAtAnotherServer: a tail whose place was removed, whose collection was dropped, or that was killed, ends
// at any server.
func TestTailsEndAtAnotherServer(t *testing.T) {
	both := serveShared(t, 2, Options{})
	do := func(c *client, d bson.D) {
		t.Helper()
		if raw, e := c.ask(append(d, bson.E{Key: "$db", Value: "db"})); e.OK != 1 {
			t.Errorf("%v: %v", d, raw)
		}
	}
	insert := func(id string) {
		do(both[0], bson.D{{Key: "insert", Value: "log"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id",
			Value: id}}}}})
	}
	create := func() {
		do(both[0], bson.D{{Key: "create", Value: "log"}, {Key: "capped", Value: true}, {Key: "size", Value: 4096},
			{Key: "max", Value: 2}})
		insert("a")
	}
	for _, x := range []struct {
		name string
		does func(c *tailedAt)
		code int32
	}{
		{"its place was removed", func(*tailedAt) { insert("b"); insert("c"); insert("d") }, 136},
		{"the collection was dropped", func(*tailedAt) { do(both[1], bson.D{{Key: "drop", Value: "log"}}) }, 175},
		{"the collection was dropped and made again", func(*tailedAt) {
			do(both[1], bson.D{{Key: "drop", Value: "log"}})
			create()
		}, 175},
		{"it was killed", func(c *tailedAt) {
			do(both[0], bson.D{{Key: "killCursors", Value: "log"}, {Key: "cursors", Value: bson.A{c.id}}})
		}, 43},
	} {
		create()
		c := tailAt(t, []*client{both[1], both[0]}, "log")
		x.does(c)
		if _, e := c.next("log"); e.Code != x.code {
			t.Errorf("%s: %+v, wanted code %d", x.name, e, x.code)
		}
		_, _ = both[0].ask(bson.D{{Key: "drop", Value: "log"}, {Key: "$db", Value: "db"}})
	}
}
