package many

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// inserted reads n events of a stream and returns what was inserted.
func inserted(t *testing.T, s *mongo.ChangeStream, n int) (ids []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(bg, time.Minute)
	defer cancel()
	for len(ids) < n && s.Next(ctx) {
		var e struct {
			OperationType string
			DocumentKey   struct {
				ID string `bson:"_id"`
			}
		}
		ok(t, s.Decode(&e))
		if e.OperationType != "insert" {
			t.Errorf("an event of type %s", e.OperationType)
		}
		ids = append(ids, e.DocumentKey.ID)
	}
	if err := s.Err(); err != nil {
		t.Fatalf("after %d events: %v", len(ids), err)
	}
	return ids
}

// A change stream's cursor is at the server that has opened it. Each getMore gets to another one, and the driver opens
// the stream again there. It gives each event once, and in order, also if one document after another is asked for.
func TestStreamsAtAnotherServer(t *testing.T) {
	for _, servers := range []int{2, 3} {
		for _, batch := range []int32{1, 100} {
			t.Run(fmt.Sprintf("%d servers, batches of %d", servers, batch), func(t *testing.T) {
				cl := start(t, servers)
				c := cl.client("")
				coll := cl.fill(c, 3)
				s, err := coll.Watch(bg, mongo.Pipeline{}, options.ChangeStream().SetBatchSize(batch).
					SetMaxAwaitTime(20*time.Millisecond))
				ok(t, err)
				defer s.Close(bg)
				var want []string
				for round := range 4 {
					for i := range 10 {
						id := fmt.Sprintf("event-%d-%d", round, i)
						_, err := coll.InsertOne(bg, bson.M{"_id": id})
						ok(t, err)
						want = append(want, id)
					}
					if got := inserted(t, s, 10); !slices.Equal(got, want[10*round:]) {
						t.Fatalf("round %d gives %q", round, got)
					}
				}
				again, err := coll.Watch(bg, mongo.Pipeline{}, options.ChangeStream().SetBatchSize(batch).
					SetResumeAfter(s.ResumeToken()))
				ok(t, err)
				defer again.Close(bg)
				_, err = coll.InsertOne(bg, bson.M{"_id": "last"})
				ok(t, err)
				for _, s := range []*mongo.ChangeStream{s, again} {
					if got := inserted(t, s, 1); !slices.Equal(got, []string{"last"}) {
						t.Errorf("after the token: %q", got)
					}
				}
			})
		}
	}
}

// What another server answers to the getMore of a change stream.
func TestGetMoreOfAStreamElsewhere(t *testing.T) {
	cl := start(t, 2)
	cl.fill(cl.client(""), 3)
	opened := cl.all[0].run(t, bson.D{{Key: "aggregate", Value: "c"}, {Key: "cursor", Value: bson.D{}},
		{Key: "pipeline", Value: bson.A{bson.D{{Key: "$changeStream", Value: bson.D{}}}}}})
	cursor, _ := field(opened, "cursor").(bson.D)
	id, _ := field(cursor, "id").(int64)
	more := bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "c"}, {Key: "maxTimeMS", Value: 1}}
	got := untimed(cl.all[1].run(t, more))
	want := fmt.Sprintf(`{"ok":0.0,"errmsg":"cursor id %d not found","code":43,"codeName":"CursorNotFound"}`, id)
	if id == 0 || extended(t, got) != want {
		t.Errorf("%s, want %s", extended(t, got), want)
	}
	if got := cl.all[0].run(t, more); codeOf(got) != 0 {
		t.Errorf("the server that has the stream: %s", extended(t, got))
	}
}
