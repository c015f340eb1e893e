package mongoapi

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// BenchmarkTransaction is a transaction of two updates in two collections, without the network.
func BenchmarkTransaction(b *testing.B) {
	s := newTestServer(b, Options{})
	c := benchConn(s, nil)
	var out []byte
	do := func(d bson.D, db string) {
		raw, err := bson.Marshal(append(d, bson.E{Key: "$db", Value: db}))
		if err != nil {
			b.Fatal(err)
		}
		out = c.run(out[:0], raw, nil, false)
		if ok := bson.Raw(out).Lookup("ok").Double(); ok != 1 {
			b.Fatal(bson.Raw(out))
		}
	}
	for _, name := range []string{"a", "b"} {
		one := bson.A{bson.D{{Key: "_id", Value: 1}}}
		do(bson.D{{Key: "insert", Value: name}, {Key: "documents", Value: one}}, "db")
	}
	lsid := bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: []byte("0123456789abcdef")}}}
	statement := bson.D{{Key: "q", Value: bson.D{{Key: "_id", Value: 1}}},
		{Key: "u", Value: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}}}
	b.ReportAllocs()
	for n := range b.N {
		in := bson.D{{Key: "lsid", Value: lsid}, {Key: "txnNumber", Value: int64(n)}, {Key: "autocommit", Value: false}}
		for i, name := range []string{"a", "b"} {
			d := append(bson.D{{Key: "update", Value: name}, {Key: "updates", Value: bson.A{statement}}}, in...)
			if i == 0 {
				d = append(d, bson.E{Key: "startTransaction", Value: true})
			}
			do(d, "db")
		}
		do(append(bson.D{{Key: "commitTransaction", Value: 1}}, in...), "admin")
	}
}
