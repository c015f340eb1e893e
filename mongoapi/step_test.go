package mongoapi

import (
	"context"
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/filter"
)

// TestSourceEnds: reading documents ends with its context, also if each document matches and nothing is computed.
func TestSourceEnds(t *testing.T) {
	s := newTestServer(t, Options{})
	c := newConn(t, s, true)
	docs := bson.A{}
	for i := range 2000 {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "a", Value: i % 7}})
	}
	ask(t, c, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: docs}})
	cont, err := s.eng.Container("db", "c")
	if err != nil {
		t.Fatal(err)
	}
	f, err := filter.Compile(valueOf(t, bson.D{{Key: "a", Value: bson.D{{Key: "$gte", Value: 0}}}}), filter.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	e := &expr.Env{Run: expr.NewRun(ctx, nil)}
	src := newSource(newColl(cont), f, nil, exec.Creation, 0, 0, e)
	defer src.Close()
	n := 0
	for ; n < 2000; n++ {
		if n == 10 {
			cancel()
		}
		if _, _, err = src.Next(); err != nil {
			break
		}
	}
	if !errors.Is(err, context.Canceled) || n > 400 {
		t.Errorf("%d documents, %v", n, err)
	}
	counted := newSource(newColl(cont), f, nil, exec.Creation, 0, 0, e)
	if n, err := counted.count(); !errors.Is(err, context.Canceled) {
		t.Errorf("counted %d, %v", n, err)
	}
}
