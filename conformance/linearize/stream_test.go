package linearize

import (
	"context"
	"sync"
	"testing"

	"github.com/anishathalye/porcupine"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// follower reads a change stream of the database over all lives of the server. After an error it goes on behind the
// last event.
type follower struct {
	t        *testing.T
	cl       *mongo.Client
	wg       sync.WaitGroup
	count    int
	versions [slots][]int32 // that each document has had, as the events tell; 0 = it was deleted
}

// lastID is the document whose event is the last one.
const lastID = 1000

// begin opens the stream, and reads it until end.
func (f *follower) begin() {
	s, err := f.watch(nil)
	if err != nil {
		f.t.Fatal(err)
	}
	f.wg.Go(func() {
		var seen bson.Raw
		for {
			for s != nil && s.Next(context.Background()) {
				seen = s.ResumeToken()
				if f.event(s) {
					_ = s.Close(context.Background())
					return
				}
			}
			if s != nil {
				f.refused(s.Err())
				_ = s.Close(context.Background())
			}
			if s, err = f.watch(seen); err != nil {
				f.refused(err)
				s = nil
			}
		}
	})
}

func (f *follower) watch(after bson.Raw) (*mongo.ChangeStream, error) {
	o := options.ChangeStream()
	if after != nil {
		o.SetResumeAfter(after)
	}
	return f.cl.Database(database).Watch(context.Background(), mongo.Pipeline{}, o)
}

// refused fails the test for an error of the server itself.
func (f *follower) refused(err error) {
	if answered(err) {
		f.t.Errorf("the stream: %v", err)
	}
}

// event reads an event. It reports whether that is the last one.
func (f *follower) event(s *mongo.ChangeStream) (last bool) {
	var e struct {
		Type string `bson:"operationType"`
		Key  struct {
			ID int `bson:"_id"`
		} `bson:"documentKey"`
		Full   account `bson:"fullDocument"`
		Update struct {
			Fields account `bson:"updatedFields"`
		} `bson:"updateDescription"`
	}
	if err := s.Decode(&e); err != nil {
		f.t.Error(err)
	}
	if e.Key.ID == lastID {
		return true
	}
	f.count++
	v := int32(0)
	switch e.Type {
	case "insert":
		v = e.Full.V
	case "update":
		v = e.Update.Fields.V
	case "delete":
	default:
		f.t.Errorf("an event of type %q", e.Type)
	}
	f.versions[e.Key.ID] = append(f.versions[e.Key.ID], v)
	return false
}

// end writes the last document, and waits until the stream has it.
func (f *follower) end() {
	if _, err := coll(f.cl, lastID).InsertOne(context.Background(), account{ID: lastID}); err != nil {
		f.t.Error(err)
		return
	}
	f.wg.Wait()
}

// judge compares the events with the operations. Each event must be what one operation made of the version before it.
// An operation that was answered has one event for each document that it has written.
func (f *follower) judge(ops []porcupine.Operation) {
	f.t.Helper()
	type step struct{ from, to int32 }
	for n, vs := range f.versions {
		steps := map[step]bool{} // whether the outcome isn't known
		for _, o := range ops {
			c := o.Input.(change)
			if to, ok := c.writes[n]; ok {
				steps[step{c.reads[n], to}] = o.Output.(bool)
			}
		}
		at := int32(0)
		for i, v := range vs {
			s := step{at, v}
			if _, ok := steps[s]; !ok {
				f.t.Errorf("document %d, event %d of %d: nothing made version %d of %d, or it comes twice", n, i+1,
					len(vs), v, at)
			}
			delete(steps, s)
			at = v
		}
		for s, unknown := range steps {
			if !unknown {
				f.t.Errorf("document %d: no event says that version %d became %d", n, s.from, s.to)
			}
		}
	}
}
