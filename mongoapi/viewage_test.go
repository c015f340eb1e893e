package mongoapi

import (
	"context"
	"net"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// TestCursorsOfStatesThatAreTooOld: a read that returns one document after another continues in a newer state. A read
// that needs a single state to its end fails with the code of a lost cursor, not with that of a server that shuts down.
func TestCursorsOfStatesThatAreTooOld(t *testing.T) {
	// every state is immediately too old
	e, err := core.Open(context.Background(), memkv.New(), core.Options{ViewAge: 1})
	if err != nil {
		t.Fatal(err)
	}
	addr := listen(t, e)
	c := connect(t, addr)
	const docs = 5000
	for at := 0; at < docs; {
		list := bson.A{}
		for range 500 {
			list = append(list, bson.D{{Key: "_id", Value: at}, {Key: "n", Value: at * 7919 % docs},
				{Key: "l", Value: bson.A{at, 1}}})
			at++
		}
		if _, e := c.ask(bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: list}}); e.OK != 1 {
			t.Fatal(e)
		}
	}
	read := func(d bson.D) (n int, code int32) {
		raw, e := c.ask(d)
		for batch := "firstBatch"; ; batch = "nextBatch" {
			if e.OK != 1 {
				return n, e.Code
			}
			vs, _ := raw.Lookup("cursor", batch).Array().Values()
			n += len(vs)
			id := raw.Lookup("cursor", "id").Int64()
			if id == 0 {
				return n, 0
			}
			raw, e = c.ask(
				bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "c"}, {Key: "batchSize", Value: 1000}},
			)
		}
	}
	find := func(more ...bson.E) bson.D {
		return append(bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: 1000}}, more...)
	}
	aggregate := func(stages ...any) bson.D {
		return bson.D{
			{Key: "aggregate", Value: "c"},
			{Key: "pipeline", Value: bson.A(stages)},
			{Key: "cursor", Value: bson.D{}},
		}
	}
	some := bson.D{{Key: "n", Value: bson.D{{Key: "$gte", Value: 1000}}}}
	sort := bson.D{{Key: "l", Value: -1}} // of arrays, whose order no index has
	field := bson.D{{Key: "$addFields", Value: bson.D{{Key: "x", Value: 1}}}}
	for name, x := range map[string]struct {
		ask  bson.D
		n    int
		code int32
	}{
		"all":           {find(), docs, 0},
		"a filter":      {find(bson.E{Key: "filter", Value: some}), docs - 1000, 0},
		"a group":       {aggregate(bson.D{{Key: "$group", Value: bson.D{{Key: "_id", Value: "$n"}}}}), docs, 0},
		"a sort":        {find(bson.E{Key: "sort", Value: sort}), 0, 43},
		"sorted stages": {aggregate(bson.D{{Key: "$sort", Value: sort}}, field), 0, 43},
	} {
		if n, code := read(x.ask); n != x.n || code != x.code {
			t.Errorf("%s: %d documents, code %d; want %d, code %d", name, n, code, x.n, x.code)
		}
	}
	for _, d := range []bson.D{{{Key: "count", Value: "c"}, {Key: "query", Value: some}},
		{{Key: "distinct", Value: "c"}, {Key: "key", Value: "_id"}}} { // of an index, not of the documents
		if _, e := c.ask(d); e.Code != 43 {
			t.Errorf("%s: %+v", d[0].Key, e)
		}
	}
}

// listen serves an engine until the test ends, and then closes it.
func listen(t *testing.T, e *core.Engine) (addr string) {
	t.Helper()
	return listenWith(t, e, Options{})
}

// listenWith is listen with options.
func listenWith(t *testing.T, e *core.Engine, o Options) (addr string) {
	t.Helper()
	o.Account, o.Key = "localhost", "a2V5"
	s := New(e, o)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(ln) }()
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}
