package mongoapi

import (
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// TestBatchesHoldNothing: large documents are returned once and in order, whatever limit ends a batch, and a resting
// cursor holds no memory.
func TestBatchesHoldNothing(t *testing.T) {
	const docs = 40
	for _, x := range []struct {
		name string
		b    *budget.Budget
	}{
		{"batches as large as they may be", budget.New(1<<30, 0)},
		{"batches cut by a request's share", budget.New(1<<30, 3<<20)},
		{"batches cut by the budget", budget.New(3<<20, 0)},
	} {
		t.Run(x.name, func(t *testing.T) {
			_, addr := serve(t, Options{}, x.b)
			c := connect(t, addr)
			for i := range docs {
				size := 1 << 20
				if i%3 == 0 {
					size = 1 << 10 * (i + 1)
				}
				c.ask(bson.D{
					{Key: "insert", Value: "c"},
					{
						Key: "documents",
						Value: bson.A{
							bson.D{
								{Key: "_id", Value: i},
								{Key: "g", Value: i % 2},
								{Key: "pad", Value: strings.Repeat("x", size)},
							},
						},
					},
				})
			}
			for _, q := range []struct {
				args bson.D
				want int
			}{
				{bson.D{{Key: "sort", Value: bson.D{{Key: "_id", Value: 1}}}}, docs},
				{
					bson.D{{Key: "sort", Value: bson.D{{Key: "_id", Value: 1}}}, {Key: "skip", Value: 3},
						{Key: "limit", Value: 30}}, 30},
				{
					bson.D{{Key: "filter", Value: bson.D{{Key: "g", Value: 1}}},
						{Key: "sort", Value: bson.D{{Key: "_id", Value: 1}}}}, docs / 2},
			} {
				raw, e := c.ask(append(bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: 1000}}, q.args...))
				n, last, batch := 0, int32(-1), "firstBatch"
				for {
					if e.OK != 1 {
						t.Fatal(e)
					}
					vs, _ := raw.Lookup("cursor", batch).Array().Values()
					for _, v := range vs {
						id := v.Document().Lookup("_id").Int32()
						if n++; id <= last {
							t.Fatalf("%d behind %d", id, last)
						}
						last = id
					}
					id := raw.Lookup("cursor", "id").Int64()
					if id == 0 {
						break
					}
					for began := time.Now(); x.b.Used() > 0; time.Sleep(time.Millisecond) {
						// The memory of the reply is released when it is sent.
						if time.Since(began) > soon {
							t.Fatalf("a resting cursor holds %d bytes", x.b.Used())
						}
					}
					raw, e = c.ask(bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "c"}})
					batch = "nextBatch"
				}
				if n != q.want {
					t.Errorf("%v: %d documents, want %d", q.args, n, q.want)
				}
			}
		})
	}
}

// TestPipelineWithoutMemory: after a batch that the budget cut short, a pipeline continues after its last document.
func TestPipelineWithoutMemory(t *testing.T) {
	b := budget.New(1<<30, 256<<10)
	_, addr := serve(t, Options{}, b)
	c := connect(t, addr)
	docs := bson.A{}
	for i := range 300 {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "pad", Value: strings.Repeat("x", 2000+i)}})
	}
	for len(docs) > 0 {
		c.ask(bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: docs[:50]}})
		docs = docs[50:]
	}
	p := bson.A{
		bson.D{{Key: "$sort", Value: bson.D{{Key: "_id", Value: 1}}}},
		bson.D{{Key: "$addFields", Value: bson.D{{Key: "x", Value: 1}}}},
	}
	raw, e := c.ask(bson.D{
		{Key: "aggregate", Value: "c"},
		{Key: "pipeline", Value: p},
		{Key: "cursor", Value: bson.D{{Key: "batchSize", Value: 1000}}},
	})
	n, batches := int32(0), 0
	for batch := "firstBatch"; ; batch = "nextBatch" {
		if e.OK != 1 {
			t.Fatal(e)
		}
		vs, _ := raw.Lookup("cursor", batch).Array().Values()
		for _, v := range vs {
			if id := v.Document().Lookup("_id").Int32(); id != n {
				t.Fatalf("%d behind %d", id, n-1)
			}
			n++
		}
		batches++
		id := raw.Lookup("cursor", "id").Int64()
		if id == 0 {
			break
		}
		raw, e = c.ask(bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "c"}})
	}
	if n != 300 || batches < 3 {
		t.Errorf("%d documents in %d batches", n, batches)
	}
}

// TestCursorsWhenMemoryIsShort: the computed results of an idle pipeline are dropped when others need the memory, and
// nothing else is.
func TestCursorsWhenMemoryIsShort(t *testing.T) {
	b := budget.New(8<<20, 0)
	clk := clock.Fake(time.Unix(1_700_000_000, 0))
	s, addr := serve(t, Options{Clock: clk}, b)
	c := connect(t, addr)
	docs := bson.A{}
	for i := range 500 {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "pad", Value: strings.Repeat("x", 2000)}})
	}
	c.ask(bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: docs}})
	open := func() (find, group int64) {
		raw, _ := c.ask(bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: 2}})
		find = raw.Lookup("cursor", "id").Int64()
		raw, _ = c.ask(bson.D{
			{Key: "aggregate", Value: "c"},
			{Key: "cursor", Value: bson.D{{Key: "batchSize", Value: 2}}},
			{
				Key: "pipeline",
				Value: bson.A{
					bson.D{
						{
							Key: "$group",
							Value: bson.D{
								{Key: "_id", Value: "$_id"},
								{Key: "p", Value: bson.D{{Key: "$first", Value: "$pad"}}},
							},
						},
					},
				},
			},
		})
		return find, raw.Lookup("cursor", "id").Int64()
	}
	more := func(id int64) int32 {
		_, e := c.ask(
			bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "c"}, {Key: "batchSize", Value: 2}},
		)
		return e.Code
	}
	find, group := open()
	clk.Advance(cursorShort + time.Second)
	s.cursors.expire(b)
	if more(find) != 0 || more(group) != 0 {
		t.Fatal("with memory to spare cursors are dropped")
	}
	other := b.Open("other")
	for other.Grow(1<<10) == nil {
	}
	s.cursors.expire(b)
	if code := more(group); code == 43 {
		t.Error("a cursor that was just used is dropped")
	}
	clk.Advance(cursorShort + time.Second)
	s.cursors.expire(b)
	if held := b.Used() - other.Used(); more(group) != 43 || held > 128<<10 {
		t.Errorf("an idle pipeline still holds %d bytes", held)
	}
	other.Close()
	if code := more(find); code != 0 {
		t.Errorf("the cursor of a query: %d", code)
	}
}

// TestRepliesAreBounded: the memory for replies to retryable writes is limited, whatever the replies are.
func TestRepliesAreBounded(t *testing.T) {
	ss := newSessions(clock.New())
	reply := make([]byte, 4<<20)
	var last *session
	for i := range 50 {
		last, _ = ss.get(key16([]byte{15: byte(i)}), [16]byte{}, "")
		last.reply = reply
		ss.count(last, len(reply))
	}
	if ss.size > maxReplies || len(ss.m) != maxReplies/len(reply) || ss.m[last.key] != last {
		t.Errorf("%d bytes of %d sessions", ss.size, len(ss.m))
	}
	for range 3 {
		ss.count(last, 100)
	}
	for _, s := range ss.m {
		ss.mu.Lock()
		ss.remove(s)
		ss.remove(s)
		ss.mu.Unlock()
	}
	if ss.size != 0 {
		t.Errorf("%d bytes of no session", ss.size)
	}
}

// TestParametersAtAnotherServer: a getMore at another server of a store has the API parameters of the cursor's command.
func TestParametersAtAnotherServer(t *testing.T) {
	cs := serveShared(t, 2, Options{})
	docs := bson.A{}
	for i := range 10 {
		docs = append(docs, bson.D{{Key: "_id", Value: i}})
	}
	ask := func(c *client, d bson.D) reply {
		c.send(append(d, bson.E{Key: "$db", Value: "db"}))
		raw, err := c.recv()
		if err != nil {
			t.Fatal(err)
		}
		var r reply
		if err := bson.Unmarshal(raw, &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	ask(cs[1], bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: docs}})
	strict := []bson.E{{Key: "apiVersion", Value: "1"}, {Key: "apiStrict", Value: true}}
	for _, x := range []struct {
		opened, continued []bson.E
		code              int32
	}{
		{strict, strict, 0}, {nil, nil, 0}, {strict, nil, 347}, {nil, strict, 347}, {strict, strict[:1], 347},
	} {
		r := ask(cs[1], append(bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: 2}}, x.opened...))
		r = ask(cs[0], append(bson.D{{Key: "getMore", Value: r.Cursor.ID}, {Key: "collection", Value: "c"}},
			x.continued...))
		if r.Code != x.code {
			t.Errorf("opened with %v, continued with %v: %d %s, wanted %d", x.opened, x.continued, r.Code, r.Errmsg,
				x.code)
		}
	}
}

// reply is what the tests of cursors read of a reply.
type reply struct {
	Cursor struct{ ID int64 }
	Code   int32
	Errmsg string
}

// TestTimeOfCursors tests that a cursor's reads together have the time limit of its command, in which idle time doesn't
// count, and that only cursors that wait for documents have a limit for each getMore.
func TestTimeOfCursors(t *testing.T) {
	_, addr := serve(t, Options{TestCommands: true}, nil)
	c := connect(t, addr)
	do := func(d bson.D) bson.Raw {
		t.Helper()
		raw, e := c.ask(d)
		if e.OK != 1 {
			t.Fatalf("%v: %+v", d, e)
		}
		return raw
	}
	do(bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{}, bson.D{}, bson.D{}, bson.D{}}}})
	open := func(more ...bson.E) bson.D {
		raw := do(append(bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: 1}}, more...))
		return bson.D{{Key: "getMore", Value: raw.Lookup("cursor", "id").Int64()}, {Key: "collection", Value: "c"},
			{Key: "batchSize", Value: 1}}
	}
	within := func(ms int) bson.E { return bson.E{Key: "maxTimeMS", Value: ms} }

	short := open(within(1000))
	time.Sleep(1100 * time.Millisecond)
	do(short)

	endless := open()
	if _, e := c.ask(append(endless, within(1000))); e.Code != 2 {
		t.Errorf("a getMore with a limit: %+v, want 2", e)
	}
	do(endless) // it is still there

	limited := open(within(60000))
	admin := func(mode string) {
		do(bson.D{{Key: "configureFailPoint", Value: "maxTimeAlwaysTimeOut"}, {Key: "mode", Value: mode},
			{Key: "$db", Value: "admin"}})
	}
	admin("alwaysOn")
	do(endless)
	if _, e := c.ask(limited); e.Code != 50 {
		t.Errorf("a getMore without time: %+v, want 50", e)
	}
	admin("off")
	if _, e := c.ask(limited); e.Code != 43 {
		t.Errorf("a getMore after one without time: %+v, want 43", e)
	}
}

// TestSessionsOfTransactionsStay: a session whose transaction runs isn't removed for others, which must not wait for
// that. It keeps no reply. If there are too many of them, no other one is made.
func TestSessionsOfTransactionsStay(t *testing.T) {
	ss := newSessions(clock.New())
	id := func(i int) [16]byte { return [16]byte{byte(i), byte(i >> 8), byte(i >> 16)} }
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range maxSessions {
			s, err := ss.get(id(i), id(i), "")
			if err != nil {
				t.Error(err)
				return
			}
			ss.opened(&transaction{of: s})
		}
		first, _ := ss.get(id(0), id(0), "")
		ss.count(first, maxReplies+1)
		for i := range 1000 {
			if _, err := ss.get(id(maxSessions+i), id(0), ""); merr.From(err) == nil ||
				merr.From(err).Code != merr.TooManyLogicalSessions {
				t.Errorf("one more session: %v", err)
				return
			}
		}
		for tx := range ss.open {
			ss.closed(tx)
			ss.closed(tx)
			break
		}
		if _, err := ss.get(id(maxSessions), id(0), ""); err != nil || len(ss.m) != maxSessions {
			t.Errorf("%v, %d sessions", err, len(ss.m))
		}
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("the sessions are locked")
	}
}
