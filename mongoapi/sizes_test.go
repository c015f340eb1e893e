package mongoapi

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// A document above 16 MiB is refused, with the words of the server for an insert, an update and an upsert.
func TestDocumentsThatAreTooLarge(t *testing.T) {
	_, addr := serve(t, Options{}, nil)
	c := connect(t, addr)
	half := strings.Repeat("x", 9<<20)
	set := func(field string) bson.D { return bson.D{{Key: "$set", Value: bson.D{{Key: field, Value: half}}}} }
	in := func(name, list string, d bson.D) bson.D {
		return bson.D{{Key: name, Value: "c"}, {Key: list, Value: bson.A{d}}, {Key: "$db", Value: "db"}}
	}
	modify := bson.D{{Key: "findAndModify", Value: "c"}, {Key: "query", Value: bson.M{"_id": 2}},
		{Key: "update", Value: set("b")}, {Key: "$db", Value: "db"}}
	for _, step := range []struct {
		cmd  bson.D
		code int32
		text string
	}{
		{in("insert", "documents", bson.D{{Key: "_id", Value: 1}, {Key: "s", Value: strings.Repeat("x", 16<<20)}}),
			10334, "object to insert too large. size in bytes: 16777238, max size: 16777216"},
		{in("insert", "documents", bson.D{{Key: "_id", Value: 2}, {Key: "a", Value: half}}), 0, ""},
		{in("update", "updates", bson.D{{Key: "q", Value: bson.M{"_id": 2}}, {Key: "u", Value: set("b")}}), 10334,
			"Resulting document after update is larger than 16777216"},
		{modify, 10334, "Plan executor error during findAndModify :: caused by :: Resulting document after update is " +
			"larger than 16777216"},
		{in("update", "updates", bson.D{{Key: "q", Value: bson.D{{Key: "_id", Value: 3}, {Key: "a", Value: half}}},
			{Key: "u", Value: set("b")}, {Key: "upsert", Value: true}}), 17420,
			"Document to upsert is larger than 16777216"},
	} {
		raw, _ := c.ask(step.cmd)
		var reply struct {
			Code   int32
			Errmsg string
			Errors []struct {
				Code   int32
				Errmsg string
			} `bson:"writeErrors"`
		}
		if err := bson.Unmarshal(raw, &reply); err != nil {
			t.Fatal(err)
		}
		if len(reply.Errors) > 0 {
			reply.Code, reply.Errmsg = reply.Errors[0].Code, reply.Errors[0].Errmsg
		}
		if reply.Code != step.code || reply.Errmsg != step.text {
			t.Errorf("%s: %d %s, want %d %s", step.cmd[0].Key, reply.Code, reply.Errmsg, step.code, step.text)
		}
	}
}

// A reply has an error for each statement that failed, and no more text than a driver takes.
func TestManyErrorsAreBrief(t *testing.T) {
	_, addr := serve(t, Options{}, nil)
	c := connect(t, addr)
	const n = 20_000
	id := strings.Repeat("x", 400)
	all := func(d bson.D) (out bson.A) {
		for range n {
			out = append(out, d)
		}
		return out
	}
	command := func(name string, arg any, list string, d bson.D) bson.D {
		return bson.D{{Key: name, Value: arg}, {Key: list, Value: all(d)}, {Key: "ordered", Value: false},
			{Key: "$db", Value: "db"}}
	}
	if raw, e := c.ask(bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id",
		Value: id}}}}, {Key: "$db", Value: "db"}}); e.OK != 1 {
		t.Fatal(raw)
	}
	bulk := command("bulkWrite", 1, "ops", bson.D{{Key: "insert", Value: 0},
		{Key: "document", Value: bson.D{{Key: "_id", Value: id}}}})
	bulk[3].Value = "admin"
	bulk = append(bulk, bson.E{Key: "nsInfo", Value: bson.A{bson.D{{Key: "ns", Value: "db.c"}}}})
	for name, x := range map[string]struct {
		cmd  bson.D
		code int32
	}{
		"insert": {command("insert", "c", "documents", bson.D{{Key: "_id", Value: id}}), 11000},
		"update": {command("update", "c", "updates", bson.D{{Key: "q", Value: bson.D{}},
			{Key: "u", Value: bson.D{{Key: "$set", Value: bson.D{{Key: "_id." + id, Value: 1}}}}}}), 28},
		"bulkWrite": {bulk, 11000},
	} {
		raw, _ := c.ask(x.cmd)
		var reply struct {
			Errors []struct {
				Index  int32
				Code   int32
				Errmsg string
			} `bson:"writeErrors"`
			Cursor struct {
				Batch []struct {
					Code   int32
					Errmsg string
				} `bson:"firstBatch"`
			}
			Failed int32 `bson:"nErrors"`
		}
		if err := bson.Unmarshal(raw, &reply); err != nil {
			t.Fatal(err)
		}
		if name == "bulkWrite" {
			batch := reply.Cursor.Batch
			if last := batch[len(batch)-1]; reply.Failed != n || len(batch) != n || last.Code != x.code ||
				last.Errmsg != "" || batch[0].Errmsg == "" {
				t.Errorf("%s: %d of %d errors, %+v", name, len(batch), reply.Failed, last)
			}
			continue
		}
		if len(reply.Errors) != n || len(raw) > 4<<20 {
			t.Fatalf("%s: %d errors, %d bytes", name, len(reply.Errors), len(raw))
		}
		if first, last := reply.Errors[0], reply.Errors[n-1]; first.Code != x.code || first.Errmsg == "" ||
			last.Code != x.code || last.Errmsg != "" || last.Index != n-1 {
			t.Errorf("%s: %+v, %+v", name, first, last)
		}
	}
}
