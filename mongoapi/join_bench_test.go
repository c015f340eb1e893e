package mongoapi

import (
	"fmt"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/mongoapi/wire"
)

// benchAsk returns a function that runs a command on a connection, and fails if its reply isn't ok.
func benchAsk(b *testing.B, c *conn) func(bson.D) bson.Raw {
	var m wire.Msg
	var out []byte
	return func(d bson.D) bson.Raw {
		beginBench(c)
		defer endBench(c)
		var err error
		if out, err = c.answer(out[:0], wire.Header{OpCode: wire.OpMsg}, opMsg(b, d), &m); err != nil {
			b.Fatal(err)
		}
		r := bson.Raw(out[wire.HeaderSize+5:])
		if r.Lookup("ok").Double() != 1 {
			b.Fatal(r)
		}
		return r
	}
}

// BenchmarkLookup joins 1,000 orders, each with the customer that has its number at an indexed field, among 20,000. The
// metric share is the speed as a part of that of finds by 100 numbers each, which read the same customers. The metric
// single is that of the same join with a pipeline, which is made document by document.
func BenchmarkLookup(b *testing.B) {
	const orders, customers = 1000, 20_000
	_, c := diskConn(b)
	ask := benchAsk(b, c)
	for i := 0; i < customers; i += 1000 {
		var batch bson.A
		for n := i; n < i+1000; n++ {
			batch = append(batch, bson.D{{Key: "_id", Value: n}, {Key: "number", Value: n},
				{Key: "name", Value: fmt.Sprint("customer ", n)}})
		}
		ask(bson.D{{Key: "insert", Value: "customers"}, {Key: "documents", Value: batch}})
	}
	var batch, numbers bson.A
	for n := range orders {
		number := n * 7919 % customers
		numbers = append(numbers, number)
		batch = append(batch, bson.D{{Key: "_id", Value: n}, {Key: "customer", Value: number}})
	}
	ask(bson.D{{Key: "insert", Value: "orders"}, {Key: "documents", Value: batch}})
	join := func(more ...bson.E) time.Duration {
		began := time.Now()
		spec := append(bson.D{{Key: "from", Value: "customers"}, {Key: "localField", Value: "customer"},
			{Key: "foreignField", Value: "number"}, {Key: "as", Value: "c"}}, more...)
		r := ask(bson.D{{Key: "aggregate", Value: "orders"}, {Key: "pipeline", Value: bson.A{
			bson.D{{Key: "$lookup", Value: spec}}, bson.D{{Key: "$match", Value: bson.D{{Key: "c.number",
				Value: bson.D{{Key: "$gte", Value: 0}}}}}}, bson.D{{Key: "$count", Value: "n"}}}},
			{Key: "cursor", Value: bson.D{}}})
		if n := r.Lookup("cursor", "firstBatch", "0", "n").AsInt64(); n != orders {
			b.Fatal(n)
		}
		return time.Since(began)
	}
	find := func() time.Duration {
		began := time.Now()
		for i := 0; i < orders; i += 100 {
			ask(bson.D{{Key: "find", Value: "customers"}, {Key: "batchSize", Value: 100}, {Key: "filter",
				Value: bson.D{{Key: "number", Value: bson.D{{Key: "$in", Value: numbers[i : i+100]}}}}}})
		}
		return time.Since(began)
	}
	var joined, found, single time.Duration
	for b.Loop() {
		joined += join()
		found += find()
		single += join(bson.E{Key: "pipeline", Value: bson.A{}})
	}
	b.ReportMetric(float64(joined.Nanoseconds())/float64(b.N)/orders, "ns/join")
	b.ReportMetric(float64(found)/float64(joined), "share")
	b.ReportMetric(float64(joined)/float64(single), "single")
	b.ReportMetric(0, "ns/op")
}
