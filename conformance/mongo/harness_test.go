// Package mongo tests the MongoDB API with the official Go driver.
package mongo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"reflect"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/mongoapi"
)

const (
	account = "localhost"
	key     = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
)

var bg = context.Background()

// server is an Orrery in this process whose MongoDB API has its own port.
type server struct {
	engine *core.Engine
	addr   string
}

func start(t *testing.T) *server {
	t.Helper()
	return startWith(t, mongoapi.Options{Account: account, Key: key, Auth: true})
}

func startWith(t *testing.T, o mongoapi.Options) *server {
	t.Helper()
	e, err := core.Open(bg, memkv.New(), core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := mongoapi.New(e, o)
	done := make(chan error, 1)
	go func() { done <- m.Serve(ln) }()
	t.Cleanup(func() {
		if err := m.Shutdown(bg); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if problems, err := e.Check(bg); err != nil || len(problems) > 0 {
			t.Errorf("check: %v %v", problems, err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return &server{engine: e, addr: ln.Addr().String()}
}

// uri returns a connection string with the account's credentials and further options ("a=b&c=d").
func (s *server) uri(opts string) string {
	return fmt.Sprintf("mongodb://%s@%s/?%s", url.UserPassword(account, key), s.addr, opts)
}

func dial(t *testing.T, uri string) *mongo.Client {
	t.Helper()
	c, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Disconnect(bg); err != nil {
			t.Error(err)
		}
	})
	return c
}

func (s *server) client(t *testing.T) *mongo.Client { return dial(t, s.uri("directConnection=true")) }

// doc parses relaxed Extended JSON.
func doc(t *testing.T, text string) bson.D {
	t.Helper()
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(text), false, &d); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return d
}

func docs(t *testing.T, texts ...string) []bson.D {
	var out []bson.D
	for _, s := range texts {
		out = append(out, doc(t, s))
	}
	return out
}

// pipeline parses an array of stages.
func pipeline(t *testing.T, text string) any {
	t.Helper()
	for _, e := range doc(t, `{"p":`+text+`}`) {
		return e.Value
	}
	return nil
}

func text(v any) string {
	b, err := bson.MarshalExtJSON(v, false, false)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// wantDocs compares documents with their relaxed Extended JSON.
func wantDocs(t *testing.T, got []bson.D, want ...string) {
	t.Helper()
	var g []string
	for _, d := range got {
		g = append(g, text(d))
	}
	var w []string
	for _, s := range want {
		w = append(w, text(doc(t, s)))
	}
	if !reflect.DeepEqual(g, w) {
		t.Fatalf("got  %v\nwant %v", g, w)
	}
}

func all(t *testing.T, c *mongo.Cursor, err error) []bson.D {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var out []bson.D
	if err := c.All(bg, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantCode requires a server error with this code.
func wantCode(t *testing.T, err error, code int) {
	t.Helper()
	var se mongo.ServerError
	if !errors.As(err, &se) || !se.HasErrorCode(code) {
		t.Fatalf("error %v, want code %d", err, code)
	}
}

// fill creates a collection with the given documents.
func fill(t *testing.T, c *mongo.Collection, texts ...string) {
	t.Helper()
	_, err := c.InsertMany(bg, docs(t, texts...))
	must(t, err)
}
