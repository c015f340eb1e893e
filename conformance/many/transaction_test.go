package many

import (
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// A transaction belongs to the server that has begun it. Another one answers with the error after which drivers run the
// whole transaction again, and writes nothing. The commit of one that was made is found at every server, so a driver
// that repeats it elsewhere is told that it was made.
func TestTransactionsAtAnotherServer(t *testing.T) {
	cl := start(t, 2)
	cl.fill(cl.client(""), 3)
	number := int64(0)
	statement := func(p *process, first bool, cmd bson.D) bson.D {
		cmd = append(cmd, bson.E{Key: "lsid", Value: session}, bson.E{Key: "txnNumber", Value: number},
			bson.E{Key: "autocommit", Value: false})
		if first {
			cmd = append(cmd, bson.E{Key: "startTransaction", Value: true})
		}
		if name := cmd[0].Key; name != "commitTransaction" && name != "abortTransaction" {
			return p.run(t, cmd)
		}
		return p.runOn(t, "admin", cmd)
	}
	insert := func(id string) bson.D {
		return bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.M{"_id": id}}}}
	}
	commit := bson.D{{Key: "commitTransaction", Value: 1}, {Key: "writeConcern", Value: bson.M{"w": "majority"}}}
	find := bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.M{"_id": "a"}}}
	here, elsewhere := cl.all[0], cl.all[1]
	for _, then := range []bson.D{insert("b"), find, commit} {
		number++
		if got := statement(here, true, insert("a")); codeOf(got) != 0 {
			t.Fatal(extended(t, got))
		}
		got := extended(t, statement(elsewhere, false, then))
		if !strings.Contains(got, `"code":251,"codeName":"NoSuchTransaction"`) ||
			!strings.Contains(got, `"errorLabels":["TransientTransactionError"]`) {
			t.Errorf("%s at the other server: %s", then[0].Key, got)
		}
		statement(here, false, bson.D{{Key: "abortTransaction", Value: 1}})
	}
	if n, err := cl.client("").Database("db").Collection("c").CountDocuments(bg, bson.M{}); n != 3 || err != nil {
		t.Errorf("%d documents, %v", n, err)
	}
	number++
	statement(here, true, insert("a"))
	for i, p := range []*process{here, elsewhere, here} {
		if got := statement(p, false, commit); codeOf(got) != 0 || field(got, "ok") != 1.0 {
			t.Errorf("commit number %d: %s", i, extended(t, got))
		}
	}
	for i, p := range cl.all {
		if got := fmt.Sprint(p.run(t, find)); strings.Count(got, "_id") != 1 {
			t.Errorf("server %d finds %s", i, got)
		}
	}
}
