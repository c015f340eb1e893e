package graphapi

import (
	"context"
	"fmt"
	"math/rand"
	"testing"
	"time"

	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/gvalue/gvtest"
	"github.com/orrerydb/orrery/graphapi/wire/graphbinary"
	"github.com/orrerydb/orrery/graphapi/wire/graphson"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// FuzzBytecode: for any bytecode there is no panic and no failure other than the client's or a limit, the request ends
// soon after its timeout, and the results can be sent.
func FuzzBytecode(f *testing.F) {
	for seed := range int64(400) {
		f.Add(seed)
	}
	_, graphs := newEngine(f)
	g, err := graphs.OpenGraph(context.Background(), defaultGraph, true)
	if err != nil {
		f.Fatal(err)
	}
	for i := range 4 {
		evaluate(f, graphs, defaultGraph, message.Request{Script: fmt.Sprintf("g.addV('person').property(id, "+
			"%d).property('name', 'marko').property('age', %d)", i, i)})
		evaluate(f, graphs, defaultGraph,
			message.Request{Script: fmt.Sprintf("g.V(0).addE('knows').to(V(%d)).property('w', 0.5)", i)})
	}
	allowed := map[kind]bool{kindCompile: true, kindRuntime: true, kindUnsupported: true, kindTimeout: true,
		kindFail: true, kindMemory: true, kindConflict: true}
	f.Fuzz(func(t *testing.T, seed int64) {
		b := gvtest.Traversal(rand.New(rand.NewSource(seed)))
		started := time.Now()
		_, err := g.Evaluate(context.Background(), &message.Request{Bytecode: b, Timeout: 20 * time.Millisecond},
			func(v any, bulk int64) error {
				if _, err := (graphbinary.Codec{}).AppendItem(nil, v, bulk, message.Options{}); err != nil {
					return err
				}
				_, err := (graphson.Codec{Version: 3}).AppendItem(nil, v, bulk, message.Options{})
				return err
			})
		if err != nil && !allowed[failureOf(err).kind] {
			t.Errorf("%s: %v", gvalue.Text(b), err)
		}
		if d := time.Since(started); d > 5*time.Second {
			t.Errorf("%s: took %v", gvalue.Text(b), d)
		}
	})
}
