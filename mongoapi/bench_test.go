package mongoapi

import (
	"net"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/mongoapi/wire"
)

// benchCommand measures a command without the reads and writes of its connection.
func benchCommand(b *testing.B, command bson.D) {
	s := newTestServer(b, Options{})
	here, there := net.Pipe()
	b.Cleanup(func() { _, _ = here.Close(), there.Close() })
	c := benchConn(s, here)
	insert := opMsg(b, bson.D{
		{Key: "insert", Value: "c"},
		{
			Key:   "documents",
			Value: bson.A{bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: 1}, {Key: "b", Value: "text"}}},
		},
	})
	var m wire.Msg
	if _, err := c.answer(nil, wire.Header{OpCode: wire.OpMsg}, insert, &m); err != nil {
		b.Fatal(err)
	}
	raw := opMsg(b, command)
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		beginBench(c)
		out, _ = c.answer(out[:0], wire.Header{OpCode: wire.OpMsg}, raw, &m)
		endBench(c)
	}
}

func BenchmarkFindByID(b *testing.B) {
	benchCommand(b, bson.D{
		{Key: "find", Value: "c"},
		{Key: "filter", Value: bson.D{{Key: "_id", Value: 1}}},
		{Key: "limit", Value: int64(1)},
		{Key: "singleBatch", Value: true},
	})
}

func BenchmarkFind(b *testing.B) {
	benchCommand(b, bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "a", Value: 1}}}})
}

func BenchmarkUpdate(b *testing.B) {
	st := bson.D{
		{Key: "q", Value: bson.D{{Key: "_id", Value: 1}}},
		{Key: "u", Value: bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 2}}}}},
	}
	benchCommand(b, bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{st}}})
}
