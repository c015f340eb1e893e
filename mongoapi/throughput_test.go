package mongoapi

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// slowSplits is an engine whose writes after the next one wait for let, if on is set.
type slowSplits struct {
	kv.Engine
	on    atomic.Bool
	wrote atomic.Int32
	let   chan bool
}

// Write implements kv.Engine.
func (e *slowSplits) Write(ctx context.Context, b *kv.Batch, pre []kv.Precondition) (kv.Commit, error) {
	if e.on.Load() && e.wrote.Add(1) > 1 {
		<-e.let
	}
	return e.Engine.Write(ctx, b, pre)
}

// A strict server refuses another throughput while partitions are split for the last one.
func TestLockedThroughput(t *testing.T) {
	for _, strict := range []bool{true, false} {
		store := &slowSplits{Engine: memkv.New(), let: make(chan bool)}
		e, err := core.Open(context.Background(), store, core.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c := connect(t, listenWith(t, e, Options{Strict: strict}))
		release := sync.OnceFunc(func() {
			store.on.Store(false)
			close(store.let)
		})
		t.Cleanup(release) // before the server is shut down, also if the test fails
		action := func(name string, ru int) errorReply {
			_, reply := c.ask(bson.D{{Key: "customAction", Value: name}, {Key: "collection", Value: "c"},
				{Key: "shardKey", Value: "k"}, {Key: "offerThroughput", Value: ru}})
			return reply
		}
		if r := action("CreateCollection", 400); r.OK != 1 {
			t.Fatal(r)
		}
		store.on.Store(true)
		if r := action("UpdateCollection", 20000); r.OK != 1 {
			t.Fatal(r)
		}
		if strict {
			if r := action("UpdateCollection", 500); r.Code != merr.ConflictingOperation {
				t.Errorf("while partitions are split: %+v", r)
			}
		}
		release()
		for strict {
			if is, err := e.Resizing(t.Context(), "db", "c"); err != nil {
				t.Fatal(err)
			} else if !is {
				break
			}
		}
		if r := action("UpdateCollection", 500); r.OK != 1 {
			t.Errorf("strict %v: %+v", strict, r)
		}
	}
}
