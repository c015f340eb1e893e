package mongoapi

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// Two processes have one store. What the one tells of a collection's contents after the other has written is right, or
// an error that drivers repeat the command after: it is never what was in memory before, whichever of its reads fail.
func TestRepliesAreNotFromMemory(t *testing.T) {
	store := kvtest.NewShared(memkv.New(), 1)
	var clients [2]*client
	for i := range clients {
		e, err := core.Open(context.Background(), store.Engine(), core.Options{})
		if err != nil {
			t.Fatal(err)
		}
		clients[i] = connect(t, listen(t, e))
	}
	n := 0
	write := func() {
		n++
		e := bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: n}}}}}
		if _, e := clients[1].ask(e); e.OK != 1 {
			t.Fatal(e)
		}
	}
	write()
	for name, c := range map[string]struct {
		command bson.D
		want    string // in the reply as Extended JSON; %d is the number of documents
	}{
		"count":     {bson.D{{Key: "count", Value: "c"}}, `"n":{"$numberInt":"%d"}`},
		"collStats": {bson.D{{Key: "collStats", Value: "c"}}, `"count":{"$numberInt":"%d"}`},
		"dbStats":   {bson.D{{Key: "dbStats", Value: 1}}, `"objects":{"$numberLong":"%d"}`},
		"dataSize":  {bson.D{{Key: "dataSize", Value: "db.c"}}, `"numObjects":{"$numberLong":"%d"}`},
		"$collStats": {bson.D{{Key: "aggregate", Value: "c"}, {Key: "cursor", Value: bson.D{}},
			{Key: "pipeline", Value: bson.A{bson.D{{Key: "$collStats", Value: bson.D{{Key: "count",
				Value: bson.D{}}}}}}}}, `"count":{"$numberInt":"%d"}`},
	} {
		t.Run(name, func(t *testing.T) {
			right, refused := 0, 0
			store.Interrupt(kv.ErrUnavailable, true, write, func() {
				raw, e := clients[0].ask(c.command)
				text, _ := bson.MarshalExtJSON(raw, true, false)
				switch {
				case e.OK != 1 && e.Code == merr.ShutdownInProgress:
					refused++
				case e.OK != 1 || !strings.Contains(string(text), fmt.Sprintf(c.want, n)):
					t.Errorf("with %d documents: %s", n, text)
				default:
					right++
				}
			})
			if right == 0 || refused == 0 {
				t.Errorf("%d right answers, %d refusals", right, refused)
			}
		})
	}
}
