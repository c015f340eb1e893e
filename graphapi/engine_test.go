package graphapi

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/traversal/run"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

func newEngine(t testing.TB) (*core.Engine, *engineGraphs) {
	e, err := core.Open(context.Background(), memkv.New(), core.Options{MinSlots: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e, &engineGraphs{core: e, known: map[GraphName]*engineGraph{}}
}

// evaluate runs a script and returns the texts of its results.
func evaluate(t testing.TB, o Opener, n GraphName, r message.Request) (out []string, err error) {
	t.Helper()
	g, err := o.OpenGraph(context.Background(), n, false)
	if err != nil {
		return nil, err
	}
	_, err = g.Evaluate(context.Background(), &r, func(v any, bulk int64) error {
		for range bulk {
			out = append(out, gvalue.Text(v))
		}
		return nil
	})
	return out, err
}

// A missing graph is created only if that is allowed. A graph that was dropped and created again isn't the old one.
func TestOpenGraph(t *testing.T) {
	ctx := context.Background()
	e, graphs := newEngine(t)
	n := GraphName{"db", "g"}
	if _, err := graphs.OpenGraph(ctx, n, false); !status.Is(err, status.NotFound) {
		t.Errorf("missing graph: %v", err)
	}
	for range 2 {
		if _, err := graphs.OpenGraph(ctx, n, true); err != nil {
			t.Fatal(err)
		}
		if _, err := evaluate(t, graphs, n, message.Request{Script: "g.addV('x').property('name', 'a')"}); err != nil {
			t.Fatal(err)
		}
		got, err := evaluate(t, graphs, n, message.Request{Script: "g.V().count()"})
		if err != nil || len(got) != 1 || got[0] != "1" {
			t.Errorf("got %v %v", got, err)
		}
		if err := e.DropContainer(ctx, "db", "g"); err != nil {
			t.Fatal(err)
		}
		if _, err := evaluate(t, graphs, n, message.Request{Script: "g.V()"}); !status.Is(err, status.NotFound) {
			t.Errorf("dropped graph: %v", err)
		}
	}
}

func TestEvaluateTimeout(t *testing.T) {
	_, graphs := newEngine(t)
	n := GraphName{"db", "g"}
	if _, err := graphs.OpenGraph(context.Background(), n, true); err != nil {
		t.Fatal(err)
	}
	_, err := evaluate(t, graphs, n, message.Request{Script: "g.inject(1).repeat(identity()).until(not(identity()))",
		Timeout: 20 * time.Millisecond})
	if err == nil || failureOf(err).kind != kindTimeout {
		t.Errorf("got %v", err)
	}
}

// An error of the client's connection is returned unchanged, not as a failure of the traversal.
func TestEmitError(t *testing.T) {
	_, graphs := newEngine(t)
	g, err := graphs.OpenGraph(context.Background(), defaultGraph, true)
	if err != nil {
		t.Fatal(err)
	}
	want := errors.New("gone")
	if _, err := g.Evaluate(context.Background(), &message.Request{Script: "g.inject(1, 2)"}, func(any, int64) error {
		return want
	}); err != want {
		t.Errorf("got %v", err)
	}
}

// Every kind of failure of the engine has its reply.
func TestStepKinds(t *testing.T) {
	for k := run.Parse; k <= run.ReadOnly; k++ {
		if _, ok := stepKinds[k]; !ok {
			t.Errorf("kind %d has no answer", k)
		}
	}
	f := failureOf(&run.Error{Kind: run.Parse, Msg: "Unable to resolve symbol 'c' in the current context",
		Line: 1, Col: 2})
	if f.kind != kindCompile || f.msg != "Unable to resolve symbol 'c' in the current context @ line 1, column 2." ||
		f.serviceMsg != "Gremlin Query Compilation Error: "+f.msg {
		t.Errorf("got %+v", f)
	}
}
