package mongoapi

import (
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// A transaction is under one time in streams, which can go on within it, and one document of the oplog, or a chain of
// them if it is large, in both directions.
func TestStreamsOfTransactions(t *testing.T) {
	for _, x := range []struct{ docs, size, parts int }{{1, 10, 1}, {300, 10, 1}, {12, 1 << 20, 2}} {
		t.Run(fmt.Sprintf("%d documents of %d bytes", x.docs, x.size), func(t *testing.T) {
			_, addr := serve(t, Options{}, nil)
			c := connect(t, addr)
			ask := func(d bson.D) bson.Raw {
				t.Helper()
				raw, e := c.ask(d)
				if e.OK != 1 {
					t.Fatalf("%s: %v", d[0].Key, e)
				}
				return raw
			}
			s := newStreams(t, c)
			s.watch("before", "", bson.D{}, nil)
			oplog := bson.D{{Key: "find", Value: oplogName}, {Key: "filter", Value: bson.D{{Key: "op", Value: "c"},
				{Key: "ns", Value: "admin.$cmd"}}}, {Key: "$db", Value: "local"}}
			ask(oplog)
			inTxn := bson.D{{Key: "lsid", Value: sessionID("a")}, {Key: "txnNumber", Value: int64(7)},
				{Key: "autocommit", Value: false}}
			for i := range x.docs {
				doc := bson.D{{Key: "_id", Value: i}, {Key: "pad", Value: strings.Repeat("x", x.size)}}
				cmd := bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{doc}}}
				if i == 0 {
					cmd = append(cmd, bson.E{Key: "startTransaction", Value: true})
				}
				ask(append(append(cmd, inTxn...), bson.E{Key: "$db", Value: "db"}))
			}
			ask(append(append(bson.D{{Key: "commitTransaction", Value: 1}}, inTxn...),
				bson.E{Key: "$db", Value: "admin"}))

			stream := func(option string, token any) []bson.Raw {
				spec := bson.D{}
				if token != nil {
					spec = bson.D{{Key: option, Value: token}}
				}
				raw := ask(bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{bson.D{{
					Key: "$changeStream", Value: spec}}}}, {Key: "cursor", Value: bson.D{}}, {Key: "$db", Value: "db"}})
				return everything(t, c, raw, "c", "db")
			}
			events := stream("resumeAfter", s.last["before"])
			if len(events) != x.docs {
				t.Fatalf("a stream has %d events", len(events))
			}
			for i, e := range events {
				n, _ := e.Lookup("txnNumber").Int64OK()
				if !e.Lookup("clusterTime").Equal(events[0].Lookup("clusterTime")) || n != 7 ||
					!strings.Contains(e.Lookup("lsid").String(), `"uid"`) ||
					int(e.Lookup("documentKey", "_id").Int32()) != i {
					t.Fatalf("event %d: %.300s", i, e)
				}
			}
			for _, i := range []int{0, x.docs / 2, x.docs - 1} {
				if rest := stream("resumeAfter", events[i].Lookup("_id")); len(rest) != x.docs-1-i {
					t.Errorf("behind event %d of %d a stream has %d", i, x.docs, len(rest))
				}
			}
			if again := stream("startAtOperationTime", events[0].Lookup("clusterTime")); len(again) != x.docs {
				t.Errorf("from the time of the transaction a stream has %d events", len(again))
			}

			parts := everything(t, c, ask(oplog), oplogName, "local")
			newest := bson.D{{Key: "$natural", Value: -1}}
			back := everything(t, c, ask(append(oplog[:2:2], bson.E{Key: "sort", Value: newest},
				oplog[2])), oplogName, "local")
			if len(parts) != x.parts || len(back) != x.parts {
				t.Fatalf("the oplog has %d documents, and backwards %d", len(parts), len(back))
			}
			before, n := bson.RawValue{}, 0
			for i, p := range parts {
				if !p.Lookup("lsid").Equal(events[0].Lookup("lsid")) || string(p) != string(back[x.parts-1-i]) {
					t.Errorf("%.300s", p)
				}
				if _, err := p.LookupErr("o", "partialTxn"); (err == nil) != (i < x.parts-1) ||
					i > 0 && !p.Lookup("prevOpTime", "ts").Equal(before) {
					t.Errorf("part %d: %.300s", i, p)
				}
				ops, _ := p.Lookup("o", "applyOps").Array().Values()
				for _, op := range ops {
					if op.Document().Lookup("op").StringValue() != "i" ||
						int(op.Document().Lookup("o", "_id").Int32()) != n {
						t.Fatalf("operation %d: %.300s", n, op.Document())
					}
					n++
				}
				before = p.Lookup("ts")
			}
			if !before.Equal(events[0].Lookup("clusterTime")) || n != x.docs {
				t.Errorf("the last of %d operations has the time %v", n, before)
			}
			if x.parts > 1 { // a program goes on behind the first part
				after := append(bson.D{}, oplog...)
				after[1].Value = append(bson.D{{Key: "ts", Value: bson.D{{Key: "$gt", Value: parts[0].Lookup("ts")}}}},
					oplog[1].Value.(bson.D)...)
				if rest := everything(t, c, ask(after), oplogName, "local"); len(rest) != x.parts-1 {
					t.Errorf("behind the first part are %d", len(rest))
				}
			}
		})
	}
}

// everything reads a cursor until nothing comes.
func everything(t *testing.T, c *client, raw bson.Raw, coll, db string) (out []bson.Raw) {
	t.Helper()
	for batch := "firstBatch"; ; batch = "nextBatch" {
		docs, _ := raw.Lookup("cursor", batch).Array().Values()
		for _, d := range docs {
			out = append(out, append(bson.Raw{}, d.Document()...))
		}
		id := raw.Lookup("cursor", "id").Int64()
		if id == 0 || batch == "nextBatch" && len(docs) == 0 {
			return out
		}
		more := bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: coll}, {Key: "$db", Value: db}}
		if db == "db" { // a stream
			more = append(more, bson.E{Key: "maxTimeMS", Value: 30})
		}
		var e errorReply
		if raw, e = c.ask(more); e.OK != 1 {
			t.Fatal(e)
		}
	}
}
