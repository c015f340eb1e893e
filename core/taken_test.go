package core_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
)

// TestTakenDocumentsStay takes every second document of queries that find their items in different ways. What was taken
// must not change when the query goes on, though it reads the items into the same memory.
func TestTakenDocumentsStay(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{ID: "c",
			PartitionKey: core.PartitionKeyDef{Paths: []string{"/p"}, Kind: "Hash", Version: 2}})
		const items = 60
		for i := range items {
			put(t, c, core.Create, fmt.Sprintf(`{"id":"i%02d","p":"p%d","n":%d,"pad":"%s"}`, i, i%3, i%2,
				strings.Repeat(string(rune('a'+i%26)), i*97%1900)))
		}
		n := access.NewPath("n")
		both := access.In(n, value.Int32Of(0), value.Int32Of(1))
		for name, q := range map[string]*exec.Query{
			"scan":      {},
			"created":   {Shown: exec.Creation},
			"partition": {PK: pk("p1")},
			"index":     {Pred: access.Eq(n, value.Int32Of(1))},
			"union":     {Pred: both, Shown: exec.Creation},
			"ids":       {Pred: access.In(access.ID, value.StringOf("i07"), value.StringOf("i58"))},
			"points":    {PK: pk("p1"), Pred: access.In(access.ID, value.StringOf("i07"), value.StringOf("i58"))},
			"sorted":    {OrderBy: []exec.Order{{Path: n}}, Compare: value.CompareCosmos},
		} {
			r, err := inTurn(c).Query(bg, q)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			var taken [][]byte
			var shown []string
			for i := 0; r.Next(); i++ {
				if i%2 == 0 {
					shown = append(shown, string(r.Item().Doc))
					taken = append(taken, r.TakeDoc())
				}
			}
			if r.Err() != nil || len(taken) == 0 {
				t.Fatalf("%s: %d documents, %v", name, len(taken), r.Err())
			}
			r.Close()
			for i := range taken {
				if string(taken[i]) != shown[i] {
					t.Errorf("%s: document %d has changed after it was taken", name, i)
				}
			}
		}
	})
}
