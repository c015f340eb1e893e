package mongo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/journal"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/mongoapi"
)

// soon is a time within which an expected event has certainly come.
const soon = 30 * time.Second

// event is what the tests look at.
type event struct {
	ID   bson.Raw `bson:"_id"`
	Type string   `bson:"operationType"`
	NS   struct {
		DB   string `bson:"db"`
		Coll string `bson:"coll"`
	} `bson:"ns"`
	Key struct {
		ID any `bson:"_id"`
	} `bson:"documentKey"`
	Full   bson.D `bson:"fullDocument"`
	Before bson.D `bson:"fullDocumentBeforeChange"`
	Update struct {
		Fields  bson.D   `bson:"updatedFields"`
		Removed []string `bson:"removedFields"`
	} `bson:"updateDescription"`
}

// next returns the next event of a stream.
func next(t *testing.T, s *mongo.ChangeStream) (e event) {
	t.Helper()
	ctx, cancel := context.WithTimeout(bg, soon)
	defer cancel()
	if !s.Next(ctx) {
		t.Fatalf("no event: %v", s.Err())
	}
	must(t, s.Decode(&e))
	return e
}

// told describes events: type, collection and key.
func told(t *testing.T, s *mongo.ChangeStream, n int) string {
	t.Helper()
	var out []string
	for range n {
		e := next(t, s)
		text := strings.TrimSpace(e.Type + " " + e.NS.Coll)
		if e.Key.ID != nil {
			text += fmt.Sprint(" ", e.Key.ID)
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

func closing(t *testing.T, s *mongo.ChangeStream, err error) *mongo.ChangeStream {
	t.Helper()
	must(t, err)
	t.Cleanup(func() { _ = s.Close(bg) })
	return s
}

// TestWatch: streams of a collection, a database and the deployment.
func TestWatch(t *testing.T) {
	cl := start(t).client(t)
	db := cl.Database("db")
	c := db.Collection("c")
	one, err := c.Watch(bg, mongo.Pipeline{}, options.ChangeStream().SetFullDocument(options.UpdateLookup))
	one = closing(t, one, err)
	all, err := db.Watch(bg, mongo.Pipeline{})
	all = closing(t, all, err)
	every, err := cl.Watch(bg, bson.A{bson.D{{Key: "$match", Value: bson.D{{Key: "operationType", Value: "insert"}}}}})
	every = closing(t, every, err)
	_, err = c.InsertOne(bg, doc(t, `{"_id": 1, "a": 1}`))
	must(t, err)
	_, err = db.Collection("d").InsertOne(bg, doc(t, `{"_id": 2}`))
	must(t, err)
	_, err = c.UpdateByID(bg, 1, doc(t, `{"$set": {"b": 2}, "$unset": {"a": 1}}`))
	must(t, err)
	_, err = c.ReplaceOne(bg, doc(t, `{"_id": 1}`), doc(t, `{"c": 3}`))
	must(t, err)
	_, err = c.DeleteOne(bg, doc(t, `{"_id": 1}`))
	must(t, err)
	_, err = cl.Database("other").Collection("e").InsertOne(bg, doc(t, `{"_id": 3}`))
	must(t, err)
	if got := told(t, all, 5); got != "insert c 1, insert d 2, update c 1, replace c 1, delete c 1" {
		t.Errorf("the database has %s", got)
	}
	if got := told(t, every, 3); got != "insert c 1, insert d 2, insert e 3" {
		t.Errorf("the deployment has %s", got)
	}
	next(t, one)
	u := next(t, one)
	if text(u.Update.Fields) != `{"b":2}` || !slices.Equal(u.Update.Removed, []string{"a"}) || u.Full != nil {
		t.Errorf("the update is %+v", u)
	}
}

// TestWatchImages: documents before and after changes.
func TestWatchImages(t *testing.T) {
	db := start(t).client(t).Database("db")
	must(t, db.CreateCollection(bg, "c", options.CreateCollection().SetChangeStreamPreAndPostImages(
		bson.D{{Key: "enabled", Value: true}})))
	c := db.Collection("c")
	s, err := c.Watch(bg, mongo.Pipeline{}, options.ChangeStream().SetFullDocument(options.Required).
		SetFullDocumentBeforeChange(options.Required))
	s = closing(t, s, err)
	_, err = c.InsertOne(bg, doc(t, `{"_id": 1, "a": 1}`))
	must(t, err)
	_, err = c.UpdateByID(bg, 1, doc(t, `{"$set": {"a": 2}}`))
	must(t, err)
	_, err = c.DeleteOne(bg, doc(t, `{"_id": 1}`))
	must(t, err)
	next(t, s)
	if e := next(t, s); text(e.Before) != `{"_id":1,"a":1}` || text(e.Full) != `{"_id":1,"a":2}` {
		t.Errorf("an update is %+v", e)
	}
	if e := next(t, s); text(e.Before) != `{"_id":1,"a":2}` {
		t.Errorf("a deletion is %+v", e)
	}
}

// TestWatchInvalidate: a stream ends with its collection, and another one begins behind that.
func TestWatchInvalidate(t *testing.T) {
	db := start(t).client(t).Database("db")
	c := db.Collection("c")
	_, err := c.InsertOne(bg, doc(t, `{"_id": 1}`))
	must(t, err)
	s, err := c.Watch(bg, mongo.Pipeline{})
	s = closing(t, s, err)
	must(t, c.Drop(bg))
	if got := told(t, s, 2); got != "drop c, invalidate" {
		t.Fatalf("the stream has %s", got)
	}
	at := s.ResumeToken()
	if s.Next(bg) || s.ID() != 0 {
		t.Errorf("the stream goes on: %v, %v", s.Current, s.Err())
	}
	_, err = c.InsertOne(bg, doc(t, `{"_id": 2}`))
	must(t, err)
	if _, err := c.Watch(bg, mongo.Pipeline{}, options.ChangeStream().SetResumeAfter(at)); code(err) != 260 {
		t.Errorf("resumeAfter answers %v", err)
	}
	s, err = c.Watch(bg, mongo.Pipeline{}, options.ChangeStream().SetStartAfter(at))
	if s = closing(t, s, err); told(t, s, 1) != "insert c 2" {
		t.Errorf("startAfter has %v", s.Current)
	}
}

// code returns the code of a command's error.
func code(err error) int32 {
	var e mongo.CommandError
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// kept is an engine that stays open for the next process.
type kept struct{ kv.Engine }

func (kept) Close() error { return nil }

// TestWatchOverRestarts: a stream is on a server that stops and starts again at its address, while its partitions are
// split. The driver resumes the stream by itself, and a program resumes it by its token. Both get every insert once.
func TestWatchOverRestarts(t *testing.T) {
	eng := kept{memkv.New()}
	addr := "127.0.0.1:0"
	var e *core.Engine
	var m *mongoapi.Server
	run := func() {
		var err error
		e, err = core.Open(bg, eng, core.Options{})
		must(t, err)
		ln, err := net.Listen("tcp", addr)
		must(t, err)
		addr = ln.Addr().String()
		m = mongoapi.New(e, mongoapi.Options{Account: account, Key: key})
		go func(m *mongoapi.Server) { _ = m.Serve(ln) }(m)
	}
	stop := func() {
		ctx, cancel := context.WithTimeout(bg, 2*time.Second)
		defer cancel()
		_ = m.Shutdown(ctx)
		must(t, e.Close())
	}
	run()
	t.Cleanup(func() { stop() }) // behind the client
	cl := dial(t, "mongodb://"+addr+"/?directConnection=true&serverSelectionTimeoutMS=20000")
	c := cl.Database("db").Collection("c")
	s, err := c.Watch(bg, mongo.Pipeline{})
	s = closing(t, s, err)
	const rounds, each = 4, 40
	seen, resumed := map[any]int{}, map[any]int{}
	var token bson.Raw
	for round := range rounds {
		var wg sync.WaitGroup
		for i := range each {
			wg.Go(func() {
				_, err := c.InsertOne(bg, bson.D{{Key: "_id", Value: fmt.Sprint(round, ".", i)}})
				if err != nil {
					t.Error(err)
				}
			})
		}
		k, err := e.Container("db", "c")
		if err == nil {
			ps, err := k.Partitions(bg)
			must(t, err)
			must(t, k.SplitPartition(bg, ps[0].ID))
		}
		wg.Wait()
		for range each {
			seen[next(t, s).Key.ID]++
		}
		o := options.ChangeStream()
		if token != nil {
			o.SetResumeAfter(token)
		} else {
			at := e.Journal().Since(journal.Namespace{DB: "db", Coll: "c"}) + 1
			o.SetStartAtOperationTime(&bson.Timestamp{T: uint32(at >> 32), I: uint32(at)})
		}
		again, err := c.Watch(bg, mongo.Pipeline{}, o)
		must(t, err)
		for range each {
			resumed[next(t, again).Key.ID]++
		}
		token = again.ResumeToken()
		must(t, again.Close(bg))
		stop()
		run()
	}
	for name, got := range map[string]map[any]int{"the driver": seen, "a token": resumed} {
		if len(got) != rounds*each {
			t.Errorf("%s has %d inserts, want %d", name, len(got), rounds*each)
		}
		for id, n := range got {
			if n != 1 {
				t.Errorf("%s has insert %v %d times", name, id, n)
			}
		}
	}
}

// TestTailable: a cursor on a capped collection goes on.
func TestTailable(t *testing.T) {
	db := start(t).client(t).Database("db")
	must(t, db.CreateCollection(bg, "log", options.CreateCollection().SetCapped(true).SetSizeInBytes(1<<20).
		SetMaxDocuments(100)))
	c := db.Collection("log")
	_, err := c.InsertOne(bg, bson.D{{Key: "_id", Value: 0}})
	must(t, err)
	cur, err := c.Find(bg, bson.D{}, options.Find().SetCursorType(options.TailableAwait))
	must(t, err)
	defer cur.Close(bg)
	ctx, cancel := context.WithTimeout(bg, soon)
	ahead := make(chan bool, 50) // documents that the reader doesn't have: of more than 100 it would lose some
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := range 300 {
			select {
			case ahead <- true:
			case <-ctx.Done():
				return
			}
			if _, err := c.InsertOne(bg, bson.D{{Key: "_id", Value: i + 1}}); err != nil {
				t.Error(err)
			}
		}
	})
	defer writer.Wait()
	defer cancel()
	for want := range int32(301) {
		if !cur.Next(ctx) {
			t.Fatalf("document %d: %v", want, cur.Err())
		}
		if got := cur.Current.Lookup("_id").Int32(); got != want {
			t.Fatalf("document %d comes as %d", want, got)
		}
		if want > 0 {
			<-ahead
		}
	}
	writer.Wait() // the reader may have the last document before its insert is over, and before the oldest one is gone
	if n, err := c.CountDocuments(bg, bson.D{}); n != 100 || err != nil {
		t.Errorf("the collection has %d documents (%v)", n, err)
	}
}
