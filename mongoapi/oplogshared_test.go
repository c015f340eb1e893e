package mongoapi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/orrerydb/orrery/core"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// oplogTail is a tail of the oplog whose getMores go to several servers in turn.
type oplogTail struct {
	t    *testing.T
	at   []*client
	id   int64
	turn int
	got  []string
}

// tailOplog opens a tail at the first of the servers.
func tailOplog(t *testing.T, at []*client, more ...bson.E) *oplogTail {
	t.Helper()
	raw, e := at[0].ask(append(bson.D{{Key: "find", Value: oplogName}, {Key: "tailable", Value: true},
		{Key: "awaitData", Value: true}, {Key: "batchSize", Value: 2}, {Key: "$db", Value: "local"}}, more...))
	if e.OK != 1 {
		t.Fatalf("%+v", e)
	}
	c := &oplogTail{t: t, at: at, id: raw.Lookup("cursor", "id").Int64()}
	c.take(raw, "firstBatch")
	return c
}

func (c *oplogTail) take(raw bson.Raw, batch string) int {
	docs, _ := raw.Lookup("cursor", batch).Array().Values()
	for _, d := range docs {
		at, n := d.Document().Lookup("ts").Timestamp()
		list, _ := d.Document().Lookup("o", "applyOps").ArrayOK()
		ops, _ := list.Values()
		c.got = append(c.got, fmt.Sprint(at, ".", n, " ", d.Document().Lookup("op"), d.Document().Lookup("o", "_id"),
			" ", len(ops)))
	}
	return len(docs)
}

// next reads a batch at the next server, and returns its length.
func (c *oplogTail) next() (n int, e errorReply) {
	c.turn++
	raw, e := c.at[c.turn%len(c.at)].ask(bson.D{{Key: "getMore", Value: c.id}, {Key: "collection", Value: oplogName},
		{Key: "batchSize", Value: 1}, {Key: "maxTimeMS", Value: 150}, {Key: "$db", Value: "local"}})
	if e.OK != 1 {
		return 0, e
	}
	if id := raw.Lookup("cursor", "id").Int64(); id != c.id {
		c.t.Errorf("the id of the cursor is %d, and was %d", id, c.id)
	}
	return c.take(raw, "nextBatch"), e
}

// TestOplogTailsOfSharedStore: clients write at both servers over one store, also several documents at a time, and a
// transaction that is two documents of the oplog. A tail that stays at a server and those that go from server to server
// have all entries, each once, in the same order.
func TestOplogTailsOfSharedStore(t *testing.T) {
	both := serveShared(t, 2, Options{})
	addr := func(i int) *client { return connect(t, both[i].RemoteAddr().String()) }
	do := func(c *client, d bson.D) {
		t.Helper()
		if raw, e := c.ask(d); e.OK != 1 || strings.Contains(raw.String(), "writeErrors") {
			t.Errorf("%v: %v", d[0], raw)
		}
	}
	writes := bson.E{Key: "filter", Value: bson.D{{Key: "op", Value: bson.D{{Key: "$in", Value: bson.A{"i", "c"}}}},
		{Key: "ns", Value: bson.D{{Key: "$in", Value: bson.A{"db.c", "admin.$cmd"}}}}}}
	tails := []*oplogTail{tailOplog(t, []*client{addr(0)}, writes), tailOplog(t, []*client{addr(1), addr(0)}, writes),
		tailOplog(t, []*client{addr(0), addr(1)}, writes, bson.E{Key: "skip", Value: 3})}
	const each = 15
	var writers, readers sync.WaitGroup
	for i := range both {
		c := addr(i)
		writers.Go(func() {
			for n := range each {
				do(c, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{
					bson.D{{Key: "_id", Value: fmt.Sprint(i, ".", n)}},
					bson.D{{Key: "_id", Value: fmt.Sprint(i, "-", n)}}}}, {Key: "$db", Value: "db"}})
			}
			inTxn := bson.D{{Key: "lsid", Value: sessionID(fmt.Sprint(i))}, {Key: "txnNumber", Value: int64(7)},
				{Key: "autocommit", Value: false}}
			for n := range 3 {
				cmd := bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id",
					Value: fmt.Sprint(i, "t", n)}, {Key: "pad", Value: strings.Repeat("x", 5<<20)}}}}}
				if n == 0 {
					cmd = append(cmd, bson.E{Key: "startTransaction", Value: true})
				}
				do(c, append(append(cmd, inTxn...), bson.E{Key: "$db", Value: "db"}))
			}
			do(c, append(append(bson.D{{Key: "commitTransaction", Value: 1}}, inTxn...),
				bson.E{Key: "$db", Value: "admin"}))
		})
	}
	done := make(chan struct{})
	for _, c := range tails {
		readers.Go(func() { drain(t, done, c.next) })
	}
	writers.Wait()
	close(done)
	readers.Wait()
	want := tails[0].got
	for i, c := range tails {
		if i == 2 {
			c.got = append(slices.Clone(want[:3]), c.got...)
		}
		if !slices.Equal(c.got, want) {
			t.Errorf("tail %d has %d entries, and tail 0 %d:\n%v\n%v", i, len(c.got), len(want), c.got, want)
		}
	}
	if n := len(slices.Compact(slices.Sorted(slices.Values(want)))); n < 2*(2*each+2) || n != len(want) {
		t.Errorf("%d entries of %d are different ones", n, len(want))
	}
}

// TestOplogTailOfLargeInserts: what is read and not shown takes much memory, and is given up between two batches. Each
// entry is shown once.
func TestOplogTailOfLargeInserts(t *testing.T) {
	_, addr := serve(t, Options{}, nil)
	c := connect(t, addr)
	tail := tailOplog(t, []*client{c}, bson.E{Key: "filter", Value: bson.D{{Key: "op", Value: "i"}}})
	var docs bson.A
	for i := range 12 {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "pk", Value: 1}, {Key: "pad",
			Value: strings.Repeat("x", 200<<10)}})
	}
	if raw, e := c.ask(bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: docs}}); e.OK != 1 {
		t.Fatal(raw)
	}
	for n := 1; n > 0; {
		n, _ = tail.next()
	}
	different := slices.Compact(slices.Sorted(slices.Values(tail.got)))
	if len(different) != len(docs) || len(tail.got) != len(docs) {
		t.Errorf("%d entries, %d different ones: %v", len(tail.got), len(different), tail.got)
	}
}

// TestWaitingTailsWriteNothing: the record of a tail that waits isn't written again, however often its client asks.
func TestWaitingTailsWriteNothing(t *testing.T) {
	x := startSharers(t)
	if raw, e := x.at[0].ask(bson.D{{Key: "create", Value: "log"}, {Key: "capped", Value: true},
		{Key: "size", Value: 1 << 20}, {Key: "$db", Value: "db"}}); e.OK != 1 {
		t.Fatal(raw)
	}
	capped, oplog := tailAt(t, x.at[:1], "log"), tailOplog(t, x.at[1:2])
	for n := 1; n > 0; { // the entries that there are
		n, _ = oplog.next()
	}
	record := func(id int64) core.Record {
		r, err := x.core[0].Record(context.Background(), cursorRecord(id))
		if err != nil || !r.Exists() {
			t.Fatal(err)
		}
		return r.Clone()
	}
	before := []core.Record{record(capped.id), record(oplog.id)}
	for range 3 {
		if n, e := capped.next("log"); n != 0 || e.OK != 1 {
			t.Errorf("%d documents, %+v", n, e)
		}
		if n, e := oplog.next(); n != 0 || e.OK != 1 {
			t.Errorf("%d entries, %+v", n, e)
		}
	}
	for i, id := range []int64{capped.id, oplog.id} {
		if now := record(id); !now.Same(&before[i]) {
			t.Errorf("the record of cursor %d was written", id)
		}
	}
}
